//! The publishing write: compare-and-swap of a ReleasePin on its uid and its generation.
//!
//! A JSON patch with tests of both does this in the server. The server repeats the patch by itself if
//! somebody writes the status or an annotation at the same time. If an answer is lost, bowline looks for
//! the operation: on the ReleasePin, in the annotation that an edit has left there, or in the audit entry
//! that the next writer has written.

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::facts::{changed, identity, planned};
use super::{ApplyError, Clock};
use crate::api::pin::{Operation, ReleasePinSpec};
use crate::api::reference::NameRef;
use crate::api::{ReleasePin, labels};
use crate::engine::repeat::{ATTEMPTS, is_ambiguous, pause};
use crate::subjects::release_pin::audit;
use crate::subjects::release_pin::claim::Claims;
use crate::subjects::release_pin::plan::{Item, Plan};
use crate::subjects::release_pin::recording::Scribe;

/// One change that is being published.
pub(super) struct Publication<'a> {
    pub(super) pins: Api<ReleasePin>,
    pub(super) scribe: Scribe,
    pub(super) plan: &'a Plan,
    pub(super) item: &'a Item,
    /// The start of the change; all attempts use the same time.
    pub(super) at: Timestamp,
}

/// A published change.
pub(super) enum Published {
    /// The ReleasePin has our change.
    Ours(Box<ReleasePin>),
    /// The ReleasePin had our change, and somebody has changed it since.
    Overwritten {
        /// The ReleasePin with our change, as far as the audit entry needs it.
        ours: Box<ReleasePin>,
        /// The later change, with author and time.
        by: String,
        /// The current ReleasePin; None if it was deleted.
        pin: Option<Box<ReleasePin>>,
    },
}

/// The result of one attempt.
enum Step {
    Done(Published),
    /// The ReleasePin changed: read it again.
    Again,
    /// The ReleasePin could not be read.
    Unread(kube::Error),
    /// It is unknown whether the write was made.
    Unanswered(kube::Error),
}

impl Publication<'_> {
    /// Writes the change exactly once, and retries until the result is known.
    pub(super) async fn publish(
        &self,
        claims: &mut Claims<'_>,
        clock: Clock<'_>,
    ) -> Result<Published, ApplyError> {
        let (mut refused, mut doubt, mut last) = (None, false, None);
        for attempt in 1..=ATTEMPTS {
            let step = self.attempt(&mut refused, doubt, claims, clock).await;
            match step.map_err(|error| self.after(doubt, error))? {
                Step::Done(published) => return Ok(published),
                Step::Again => {}
                Step::Unread(error) => {
                    last = Some(error);
                    pause(attempt).await;
                }
                Step::Unanswered(error) => {
                    (doubt, last) = (true, Some(error));
                    pause(attempt).await;
                }
            }
        }
        Err(match last {
            Some(error) => self.after(doubt, error.into()),
            None => ApplyError::Stale {
                what: format!("{} changed again and again", self.item.pin.name),
            },
        })
    }

    /// Replaces an error after an unanswered write: that write may have been made.
    fn after(&self, doubt: bool, error: ApplyError) -> ApplyError {
        match error {
            ApplyError::Target(error) if doubt => ApplyError::Unknown {
                pin: self.item.pin.name.to_string(),
                error,
            },
            error => error,
        }
    }

    async fn attempt(
        &self,
        refused: &mut Option<json_patch::Patch>,
        doubt: bool,
        claims: &mut Claims<'_>,
        clock: Clock<'_>,
    ) -> Result<Step, ApplyError> {
        let known = match self.pins.get_opt(&self.item.pin.name).await {
            Ok(known) => known,
            Err(error) if is_ambiguous(&error) => return Ok(Step::Unread(error)),
            Err(error) => return Err(error.into()),
        };
        if known.as_ref().and_then(identity) != planned(self.item) || self.is_ours(&known) {
            return self.settle(known, doubt).await.map(Step::Done);
        }
        claims.renew(clock()).await?;
        let manager = Some(labels::MANAGER_ENGINE.to_owned());
        let written = match &known {
            None => {
                let params = PostParams {
                    field_manager: manager,
                    ..PostParams::default()
                };
                self.pins.create(&params, &self.created()).await
            }
            Some(pin) => {
                // The previous change needs its audit entry before the next change.
                let newest = self.scribe.record(pin).await?;
                let patch = self.moved(pin, newest.as_ref().map(audit::link));
                let again = refused.as_ref() == Some(&patch);
                let params = PatchParams {
                    field_manager: manager,
                    ..PatchParams::default()
                };
                let name = &self.item.pin.name;
                let json: Patch<()> = Patch::Json(patch.clone());
                match self.pins.patch(name, &params, &json).await {
                    // A test of the patch failed because the ReleasePin changed; if the same patch fails
                    // again, a rule refuses it.
                    Err(kube::Error::Api(status)) if status.code == 422 && !again => {
                        *refused = Some(patch);
                        return Ok(Step::Again);
                    }
                    answer => answer,
                }
            }
        };
        match written {
            Ok(pin) => Ok(Step::Done(Published::Ours(Box::new(pin)))),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Step::Again),
            Err(error) if is_ambiguous(&error) => Ok(Step::Unanswered(error)),
            Err(error) => Err(error.into()),
        }
    }

    fn is_ours(&self, pin: &Option<ReleasePin>) -> bool {
        let operation = pin.as_ref().and_then(|pin| pin.operation().ok().flatten());
        operation.is_some_and(|operation| operation.id == self.plan.operation)
    }

    /// Returns the revision of the change.
    fn revision(&self) -> i64 {
        planned(self.item).map_or(1, |(_, generation)| generation + 1)
    }

    /// Finds the result of the change for a ReleasePin that is not in the state of the plan.
    ///
    /// `doubt`: a write was sent and not answered. Then the error says that the change was not made only
    /// if that is certain.
    pub(super) async fn settle(
        &self,
        known: Option<ReleasePin>,
        doubt: bool,
    ) -> Result<Published, ApplyError> {
        if let Some(pin) = &known
            && self.is_ours(&known)
        {
            return Ok(Published::Ours(Box::new(pin.clone())));
        }
        let what = changed(self.item, known.as_ref(), self.at);
        let revision = self.revision();
        let uid = planned(self.item).map(|(uid, _)| uid.to_owned());
        let uid = uid.or_else(|| known.as_ref()?.uid());
        let left = known.as_ref().and_then(|pin| self.left_on(pin));
        let is_left = left.is_some();
        let entry = match (&uid, is_left) {
            (Some(uid), false) => {
                self.scribe
                    .entry(&self.item.pin.name, uid, revision)
                    .await?
            }
            _ => None,
        };
        let is_recorded = entry.as_ref().is_some_and(|entry| {
            entry.spec.operation.as_deref() == Some(self.plan.operation.as_str())
        });
        if is_left || is_recorded {
            return Ok(Published::Overwritten {
                ours: Box::new(self.as_made(uid, left)),
                by: what,
                pin: known.map(Box::new),
            });
        }
        // Somebody else made our revision, or its author is unknown.
        let of_another = entry.is_some_and(|entry| entry.spec.gap.is_none())
            || known.as_ref().is_some_and(|pin| {
                pin.uid() == uid && pin.metadata.generation.unwrap_or_default() <= revision
            });
        match doubt && !of_another {
            true => Err(ApplyError::Overtaken { what }),
            false => Err(ApplyError::Stale { what }),
        }
    }

    /// Finds our operation on a ReleasePin that was edited since: an edit keeps the annotation.
    fn left_on(&self, pin: &ReleasePin) -> Option<String> {
        let left = pin.annotations().get(labels::OPERATION)?;
        let operation: Operation = serde_json::from_str(left).ok()?;
        let ours = operation.id == self.plan.operation && operation.generation == self.revision();
        ours.then(|| left.clone())
    }

    /// Returns the ReleasePin with our change, for the audit entry.
    fn as_made(&self, uid: Option<String>, operation: Option<String>) -> ReleasePin {
        let mut pin = self.created();
        if let Some(operation) = operation {
            pin.annotations_mut()
                .insert(labels::OPERATION.to_owned(), operation);
        }
        pin.metadata.uid = uid;
        pin.metadata.generation = Some(self.revision());
        let by = self.scribe.by().to_owned();
        pin.annotations_mut()
            .insert(labels::CHANGED_BY.to_owned(), by);
        pin
    }

    fn operation(&self) -> String {
        let (plan, item) = (self.plan, self.item);
        let operation = Operation {
            id: plan.operation.clone(),
            generation: self.revision(),
            action: plan.action,
            at: Time(self.at),
            reason: plan.reason.clone(),
            from: item.from.clone(),
            to: Some(item.to.clone()),
            rendered_hash: item.rendered_hash.clone(),
            restored_from: item.restored_from,
        };
        operation.to_annotation()
    }

    fn created(&self) -> ReleasePin {
        let item = self.item;
        let mut pin = ReleasePin::new(&item.pin.name, spec(item));
        for (label, value) in [
            (labels::COMPONENT, &item.component),
            (labels::ENVIRONMENT, &item.environment),
        ] {
            pin.labels_mut().insert(label.to_owned(), value.clone());
        }
        pin.annotations_mut()
            .insert(labels::OPERATION.to_owned(), self.operation());
        pin
    }

    /// Builds the patch of an existing ReleasePin. It tests the uid and the generation.
    fn moved(&self, pin: &ReleasePin, head: Option<String>) -> json_patch::Patch {
        let item = self.item;
        let mut patch = Operations::default();
        patch.test(["metadata", "uid"], json!(pin.metadata.uid));
        patch.test(["metadata", "generation"], json!(pin.metadata.generation));
        if pin.metadata.annotations.is_none() {
            // Annotations that somebody adds at the same time must not be lost.
            patch.test(["metadata", "annotations"], Value::Null);
            patch.add(["metadata", "annotations"], json!({}));
        }
        let annotation = |name: &'static str| ["metadata", "annotations", name];
        patch.add(annotation(labels::OPERATION), self.operation().into());
        match head {
            Some(head) => patch.add(annotation(labels::AUDIT_HEAD), head.into()),
            None if pin.audit_head().is_some() => patch.remove(annotation(labels::AUDIT_HEAD)),
            None => {}
        }
        if pin.spec.release_ref.name != item.release_ref {
            patch.replace(["spec", "releaseRef", "name"], json!(item.release_ref));
        }
        if pin.spec.holds != item.holds {
            match item.holds.is_empty() {
                true => patch.remove(["spec", "holds"]),
                false => patch.add(["spec", "holds"], json!(item.holds)),
            }
        }
        json_patch::Patch(patch.0)
    }
}

/// Returns the spec of the ReleasePin after the change.
pub(super) fn spec(item: &Item) -> ReleasePinSpec {
    ReleasePinSpec {
        component: item.component.clone(),
        environment: item.environment.clone(),
        release_ref: NameRef::new(&item.release_ref),
        holds: item.holds.clone(),
    }
}

/// The operations of a JSON patch.
#[derive(Default)]
struct Operations(Vec<PatchOperation>);

impl Operations {
    fn test<const N: usize>(&mut self, path: [&str; N], value: Value) {
        let path = PointerBuf::from_tokens(path);
        self.0
            .push(PatchOperation::Test(TestOperation { path, value }));
    }

    fn add<const N: usize>(&mut self, path: [&str; N], value: Value) {
        let path = PointerBuf::from_tokens(path);
        self.0
            .push(PatchOperation::Add(AddOperation { path, value }));
    }

    fn replace<const N: usize>(&mut self, path: [&str; N], value: Value) {
        let path = PointerBuf::from_tokens(path);
        self.0
            .push(PatchOperation::Replace(ReplaceOperation { path, value }));
    }

    fn remove<const N: usize>(&mut self, path: [&str; N]) {
        let path = PointerBuf::from_tokens(path);
        self.0
            .push(PatchOperation::Remove(RemoveOperation { path }));
    }
}
