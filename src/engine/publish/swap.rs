//! Writes a changed subject by compare-and-swap.
//!
//! The write is a JSON patch that tests the uid and the revision on the server. A concurrent write of the status or
//! of an annotation does not fail these tests. If the server does not answer, this module looks for the operation of
//! the plan in three places: the newest operation of the subject, the operation annotation that a later edit leaves
//! on the subject, and the audit entry of the revision.

use jiff::Timestamp;
use json_patch::jsonptr::PointerBuf;
use json_patch::{AddOperation, PatchOperation, RemoveOperation, ReplaceOperation, TestOperation};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::facts::changed;
use super::server::ApplyError;
use crate::api::hold::Hold;
use crate::api::labels;
use crate::api::operation::{self, Operation};
use crate::engine::audit::{self, AuditWriter};
use crate::engine::claim::Claims;
use crate::engine::plan::{Change, Plan};
use crate::engine::repeat::{ATTEMPTS, is_ambiguous, pause};
use crate::engine::subject::Numbering;
use crate::engine::whoami::Clock;

/// One change of a plan that is being written.
pub(super) struct Swap<'a> {
    pub(super) api: Api<DynamicObject>,
    pub(super) audit: AuditWriter,
    pub(super) plan: &'a Plan,
    pub(super) change: &'a Change,
    /// The start time of the change, which is the same in all attempts to write.
    pub(super) at: Timestamp,
}

/// The result of a change that was written.
pub(super) enum Swapped {
    /// The written change is still the newest change of the subject. Contains the subject.
    Ours(Box<DynamicObject>),
    /// Another user or tool has changed the subject after this change.
    Overwritten {
        /// The subject directly after this change, with only the fields that the audit entry needs.
        ours: Box<DynamicObject>,
        /// The change by another user or tool, as text with author and time.
        by: String,
        /// The live subject; None if it was deleted.
        object: Option<Box<DynamicObject>>,
    },
}

/// The result of one attempt to write the subject.
enum Step {
    Done(Swapped),
    /// Another client changed the subject between the read and the write, so the next attempt reads the subject
    /// again.
    Again,
    /// The server did not answer the read of the subject.
    Unread(kube::Error),
    /// The server did not answer the write, so the server may have made it.
    Unanswered(kube::Error),
}

impl Swap<'_> {
    /// Writes the change at most once. Retries until the result is known, with at most [`ATTEMPTS`] attempts.
    pub(super) async fn write(
        &self,
        claims: &mut Claims<'_>,
        clock: Clock<'_>,
    ) -> Result<Swapped, ApplyError> {
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
                what: format!("{} changed again and again", self.change.key().name),
            },
        })
    }

    /// Converts an error of an attempt. If `doubt` is true, an earlier write got no answer, so the new error says
    /// that the result is unknown.
    fn after(&self, doubt: bool, error: ApplyError) -> ApplyError {
        match error {
            ApplyError::Target(error) if doubt => ApplyError::Unknown {
                subject: self.change.key().name.to_string(),
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
        let kind = self.change.subject.kind;
        let known = match self.api.get_opt(&self.change.key().name).await {
            Ok(known) => known,
            Err(error) if is_ambiguous(&error) => return Ok(Step::Unread(error)),
            Err(error) => return Err(error.into()),
        };
        if known.as_ref().and_then(|object| kind.expected(object)) != self.change.expected
            || self.is_ours(&known)
        {
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
                self.api.create(&params, &self.made()).await
            }
            Some(object) => {
                // Write the audit entry of the previous change first, because the new entry must link to it.
                let newest = match self.audit.record(self.change.subject.kind, object).await {
                    // A user who may not create Events may still change the subject.
                    Err(kube::Error::Api(status))
                        if status.code == 403 && self.audit.writes_events() =>
                    {
                        None
                    }
                    newest => newest?,
                };
                let patch = self.patch(object, newest.as_ref().map(audit::link));
                let again = refused.as_ref() == Some(&patch);
                let params = PatchParams {
                    field_manager: manager,
                    ..PatchParams::default()
                };
                let name = &self.change.key().name;
                let json: Patch<()> = Patch::Json(patch.clone());
                match self.api.patch(name, &params, &json).await {
                    // Status 422 has two causes. Either a test in the patch failed because the subject changed; then
                    // the next attempt builds another patch. Or a rule of the server refuses the patch; then the next
                    // patch is the same.
                    Err(kube::Error::Api(status)) if status.code == 422 && !again => {
                        *refused = Some(patch);
                        return Ok(Step::Again);
                    }
                    answer => answer,
                }
            }
        };
        match written {
            Ok(object) => Ok(Step::Done(Swapped::Ours(Box::new(object)))),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(Step::Again),
            Err(error) if is_ambiguous(&error) => Ok(Step::Unanswered(error)),
            Err(error) => Err(error.into()),
        }
    }

    fn is_ours(&self, object: &Option<DynamicObject>) -> bool {
        let object = object.as_ref();
        let operation = object.and_then(|object| self.change.subject.kind.operation(object));
        operation.is_some_and(|operation| operation.id == self.plan.operation)
    }

    /// Finds out whether this change was made, after the subject has changed since plan time. `known` is the subject
    /// now, and `doubt` says whether a write of this change got no answer. Returns:
    ///
    /// - [`Swapped::Ours`] if the change was made and is the newest change of the subject;
    /// - [`Swapped::Overwritten`] if the change was made and the subject was changed or deleted afterwards;
    /// - [`ApplyError::Stale`] if the change was not made: nothing shows that it was made, and either `doubt` is false,
    ///   or the subject or the audit trail proves that it was not made;
    /// - [`ApplyError::Overtaken`] if `doubt` is true and nothing proves whether the change was made.
    pub(super) async fn settle(
        &self,
        known: Option<DynamicObject>,
        doubt: bool,
    ) -> Result<Swapped, ApplyError> {
        if let Some(object) = &known
            && self.is_ours(&known)
        {
            return Ok(Swapped::Ours(Box::new(object.clone())));
        }
        let what = changed(self.change, known.as_ref(), self.at);
        let (kind, revision) = (self.change.subject.kind, self.change.revision());
        let expected = self.change.expected.as_ref();
        let uid = expected.map(|expected| expected.uid.clone());
        let uid = uid.or_else(|| known.as_ref()?.uid());
        let left = known.as_ref().and_then(|object| self.left_on(object));
        let is_left = left.is_some();
        let entry = match (&uid, is_left) {
            (Some(uid), false) => {
                self.audit
                    .entry(&self.change.key().name, uid, revision)
                    .await?
            }
            _ => None,
        };
        let is_recorded = entry.as_ref().is_some_and(|entry| {
            entry.spec.operation.as_deref() == Some(self.plan.operation.as_str())
        });
        if is_left || is_recorded {
            return Ok(Swapped::Overwritten {
                ours: Box::new(self.as_made(uid, left)),
                by: what,
                object: known.map(Box::new),
            });
        }
        // The change was certainly not made in two cases: if the audit entry of its revision belongs to another
        // operation, or if the subject has no later revision that could hide the change.
        let of_another = entry.is_some_and(|entry| entry.spec.gap.is_none())
            || known.as_ref().is_some_and(|object| {
                object.uid() == uid && kind.number(object).unwrap_or_default() <= revision
            });
        match doubt && !of_another {
            true => Err(ApplyError::Overtaken { what }),
            false => Err(ApplyError::Stale { what }),
        }
    }

    /// Returns the operation annotation of the subject if it describes this change; otherwise None. Edits by other
    /// tools do not remove this annotation.
    fn left_on(&self, object: &DynamicObject) -> Option<String> {
        let left = object.annotations().get(labels::OPERATION)?;
        let operation: Operation = serde_json::from_str(left).ok()?;
        let ours =
            operation.id == self.plan.operation && operation.number == self.change.revision();
        ours.then(|| left.clone())
    }

    /// Returns the subject directly after this change, with only the fields that the audit entry needs.
    fn as_made(&self, uid: Option<String>, operation: Option<String>) -> DynamicObject {
        let mut object = self.made();
        let annotations = object.annotations_mut();
        if let Some(operation) = operation {
            annotations.insert(labels::OPERATION.to_owned(), operation);
        }
        let by = self.audit.by().to_owned();
        annotations.insert(labels::CHANGED_BY.to_owned(), by);
        object.metadata.uid = uid;
        object.metadata.generation = Some(self.change.revision());
        object
    }

    fn operation(&self) -> String {
        let (plan, change) = (self.plan, self.change);
        // Subjects that are numbered by an annotation have no other record of the actor and of the earlier holds, so
        // the operation contains both. For other kinds, an AuditEntry or a policy records them.
        let counts = self.counter().is_some();
        let operation = Operation {
            id: plan.operation.clone(),
            number: change.revision(),
            action: plan.action,
            at: Time(self.at),
            reason: plan.reason.clone(),
            from: change.from.clone(),
            to: Some(change.to.clone()),
            rendered_hash: change.rendered_hash.clone(),
            restored_from: change.restored_from,
            actor: counts.then(|| self.audit.by().to_owned()),
            holds_before: match counts {
                true => change.holds_before.clone(),
                false => Vec::new(),
            },
        };
        operation.to_annotation()
    }

    /// Returns the name and the new value of the annotation that numbers the revisions. None if the generation
    /// numbers the revisions.
    fn counter(&self) -> Option<(&'static str, String)> {
        match self.change.subject.kind.numbering {
            Numbering::Generation => None,
            Numbering::Annotation { name, .. } => Some((name, self.change.revision().to_string())),
        }
    }

    /// Returns the object for a change that creates its subject: the fields of the change and the operation
    /// annotation.
    fn made(&self) -> DynamicObject {
        let mut object = self.change.object();
        let operation = self.operation();
        object
            .annotations_mut()
            .insert(labels::OPERATION.to_owned(), operation);
        if let Some((name, number)) = self.counter() {
            object.annotations_mut().insert(name.to_owned(), number);
        }
        object
    }

    /// Builds the JSON patch for an existing subject. The patch tests the uid, and the generation or the fields that
    /// the plan depends on. `head` is the new audit head.
    fn patch(&self, object: &DynamicObject, head: Option<String>) -> json_patch::Patch {
        let mut patch = Operations::default();
        let metadata = &object.metadata;
        patch.test(&["metadata", "uid"], json!(metadata.uid));
        let known = serde_json::to_value(object).unwrap_or_default();
        let counted = match self.change.subject.kind.numbering {
            Numbering::Generation => {
                patch.test(&["metadata", "generation"], json!(metadata.generation));
                None
            }
            Numbering::Annotation { name, fields } => {
                for path in fields {
                    let mut steps = path.iter();
                    let value = steps.try_fold(&known, |value, step| value.get(step));
                    patch.test(path, value.cloned().unwrap_or_default());
                }
                Some(name)
            }
        };
        if metadata.annotations.is_none() {
            // Without this test, the new map `{}` would delete annotations that another client adds at the same time.
            patch.test(&["metadata", "annotations"], Value::Null);
            patch.add(&["metadata", "annotations"], json!({}));
        }
        let annotation = |name: &'static str| ["metadata", "annotations", name];
        if let (Some(name), Some(annotations)) = (counted, &metadata.annotations) {
            patch.test(&annotation(name), json!(annotations.get(name)));
        }
        if let Some((name, number)) = self.counter() {
            patch.add(&annotation(name), number.into());
        }
        patch.add(&annotation(labels::OPERATION), self.operation().into());
        match head {
            Some(head) => patch.add(&annotation(labels::AUDIT_HEAD), head.into()),
            None if operation::audit_head(object).is_some() => {
                patch.remove(&annotation(labels::AUDIT_HEAD));
            }
            None => {}
        }
        for field in self.change.all_fields() {
            let path: Vec<&str> = field.path.iter().map(String::as_str).collect();
            match (field.of(&known), field.value.clone()) {
                (Some(is), Some(value)) if is_same(is, &value) => {}
                (Some(_), Some(value)) => patch.replace(&path, value),
                (None, Some(value)) => patch.add(&path, value),
                (Some(_), None) => patch.remove(&path),
                (None, None) => {}
            }
        }
        json_patch::Patch(patch.0)
    }
}

/// Returns whether two field values are equal. Lists of holds are parsed before the comparison, because a server may
/// write times in another form.
fn is_same(is: &Value, wanted: &Value) -> bool {
    let holds = |value: &Value| serde_json::from_value::<Vec<Hold>>(value.clone()).ok();
    is == wanted || (is.is_array() && holds(is).is_some_and(|is| Some(is) == holds(wanted)))
}

#[derive(Default)]
struct Operations(Vec<PatchOperation>);

impl Operations {
    fn test(&mut self, path: &[&str], value: Value) {
        let path = PointerBuf::from_tokens(path.iter().copied());
        self.0
            .push(PatchOperation::Test(TestOperation { path, value }));
    }

    fn add(&mut self, path: &[&str], value: Value) {
        let path = PointerBuf::from_tokens(path.iter().copied());
        self.0
            .push(PatchOperation::Add(AddOperation { path, value }));
    }

    fn replace(&mut self, path: &[&str], value: Value) {
        let path = PointerBuf::from_tokens(path.iter().copied());
        self.0
            .push(PatchOperation::Replace(ReplaceOperation { path, value }));
    }

    fn remove(&mut self, path: &[&str]) {
        let path = PointerBuf::from_tokens(path.iter().copied());
        self.0
            .push(PatchOperation::Remove(RemoveOperation { path }));
    }
}
