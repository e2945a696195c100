//! The one write that counts: a pin is published by compare-and-swap on its uid and its generation.
//!
//! A JSON patch that tests both does that in the server, which repeats it by itself when somebody writes
//! the status or an annotation meanwhile, however fast. An answer that does not come is settled by looking
//! for the operation: on the pin, on the annotation that an edit left there, in the entry that whoever
//! came next has written.

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
use crate::engine::audit;
use crate::engine::claim::Claims;
use crate::engine::plan::{Item, Plan};
use crate::engine::recording::Scribe;
use crate::engine::repeat::{ATTEMPTS, is_ambiguous, pause};

/// The change of one pin on its way to the server.
pub(super) struct Publication<'a> {
    pub(super) pins: Api<ReleasePin>,
    pub(super) scribe: Scribe,
    pub(super) plan: &'a Plan,
    pub(super) item: &'a Item,
    /// When it was begun; the same however often it is sent.
    pub(super) at: Timestamp,
}

/// A change that was made.
pub(super) enum Published {
    /// The pin is as we made it.
    Ours(Box<ReleasePin>),
    /// The pin was as we made it, and somebody has changed it since.
    Overwritten {
        /// The pin as we made it, as far as its record needs it.
        ours: Box<ReleasePin>,
        /// What became of it then.
        by: String,
        /// The pin as it is.
        pin: Option<Box<ReleasePin>>,
    },
}

/// What one attempt came to.
enum Step {
    Done(Published),
    /// Something moved: look again.
    Again,
    /// What is there could not be read.
    Unread(kube::Error),
    /// Whether a write was done is not known.
    Unanswered(kube::Error),
}

impl Publication<'_> {
    /// Writes the pin, once, however often it takes to hear of it.
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

    /// What was sent before an error may have been done all the same.
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
                // What was changed before has to be on record before it is changed again.
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
                    // A test in it failed, and something has moved; else a rule refuses it again.
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

    /// The revision that the change makes.
    fn revision(&self) -> i64 {
        planned(self.item).map_or(1, |(_, generation)| generation + 1)
    }

    /// Tells what became of the change, of a pin that is not as it was planned from.
    ///
    /// `doubt` says that a write was sent and not answered: then nothing is called undone unless that is
    /// known.
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
        // At our revision stands what somebody else did, or nobody knows what.
        let of_another = entry.is_some_and(|entry| entry.spec.gap.is_none())
            || known.as_ref().is_some_and(|pin| {
                pin.uid() == uid && pin.metadata.generation.unwrap_or_default() <= revision
            });
        match doubt && !of_another {
            true => Err(ApplyError::Overtaken { what }),
            false => Err(ApplyError::Stale { what }),
        }
    }

    /// Finds our operation on a pin that was edited since: an edit keeps the annotation.
    fn left_on(&self, pin: &ReleasePin) -> Option<String> {
        let left = pin.annotations().get(labels::OPERATION)?;
        let operation: Operation = serde_json::from_str(left).ok()?;
        let ours = operation.id == self.plan.operation && operation.generation == self.revision();
        ours.then(|| left.clone())
    }

    /// The pin as we made it, for its record.
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

    /// The change of a pin that is there: nothing unless it has the uid and the generation that it had.
    fn moved(&self, pin: &ReleasePin, head: Option<String>) -> json_patch::Patch {
        let item = self.item;
        let mut patch = Operations::default();
        patch.test(["metadata", "uid"], json!(pin.metadata.uid));
        patch.test(["metadata", "generation"], json!(pin.metadata.generation));
        if pin.metadata.annotations.is_none() {
            // Those that somebody adds meanwhile must not be replaced.
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

/// What a pin says afterwards.
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
