//! Reads the revisions of a workload from its ReplicaSets or ControllerRevisions.
//!
//! The controllers of Kubernetes copy the annotations of a workload to its newest revision. So each revision that
//! bowline published has bowline's operation annotation, which says who published it and why, even on a cluster
//! without AuditEntries.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ControllerRevision, ReplicaSet};
use kube::api::{Api, DynamicObject, ListParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::template::{self, DEPLOYMENT_KIND, TEMPLATE};
use crate::api::bowline::audit::{Action, ContentRef};
use crate::api::choreo::rendered::Health;
use crate::api::labels;
use crate::api::openchoreo::release::{Mark, Verdict};
use crate::api::operation::Operation;
use crate::connect::kinds;
use crate::engine::audit::EntriesOf;
use crate::engine::health;
use crate::engine::pages;
use crate::engine::repeat::repeat;
use crate::engine::revisions::{Cause, Revision, Revisions, Row, State};
use crate::engine::rights::{Lacking, Right};
use crate::engine::subject::command::{Content, SubjectError};
use crate::engine::subject::{Kind, SubjectRef, field};
use crate::text;

/// The annotation that contains the revision number. Both a ReplicaSet and its Deployment have it.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The annotation of a ReplicaSet that contains its earlier revision numbers. Only a ReplicaSet that was published
/// again has it.
pub(super) const EARLIER_NUMBERS: &str = "deployment.kubernetes.io/revision-history";
/// The annotation in which kubectl stores the reason of a change.
const CHANGE_CAUSE: &str = "kubernetes.io/change-cause";

/// A revision of a workload, stored on the server as a ReplicaSet or a ControllerRevision.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    pub number: i64,
    pub template: Value,
    /// The ReplicaSet or ControllerRevision that stores the revision.
    pub object: DynamicObject,
}

impl Stored {
    /// Returns the content of the revision in the form that plans and audit entries contain.
    pub fn content(&self) -> ContentRef {
        ContentRef {
            name: format!("rev {} {}", self.number, template::images(&self.template)),
            uid: None,
            hash: Some(template::hash(&self.template)),
        }
    }

    /// Returns the text of the revision's bad mark, with the note of its author; None if the revision is not marked
    /// bad.
    pub fn bad(&self) -> Option<String> {
        let mark = self.object.annotations().get(labels::MARK)?;
        if self.verdict() != Some(Verdict::Bad) {
            return None;
        }
        let Ok(mark) = serde_json::from_str::<Mark>(mark) else {
            return Some("marked bad".to_owned());
        };
        let reason = mark.note.map(|reason| format!(": {reason}"));
        Some(format!(
            "marked bad by {}{}",
            mark.by,
            reason.unwrap_or_default()
        ))
    }

    /// Returns the mark of the revision; None if it has no mark.
    pub fn verdict(&self) -> Option<Verdict> {
        verdict(self.object.annotations(), &template::hash(&self.template))
    }
}

/// Reads the mark of the revision whose template has this hash; None if it has no mark.
pub(super) fn verdict(annotations: &BTreeMap<String, String>, hash: &str) -> Option<Verdict> {
    Verdict::on_content(annotations.get(labels::MARK)?, hash)
}

/// A workload with its stored revisions.
pub struct Workload {
    /// The Kubernetes kind of the workload, such as `Deployment`.
    pub kind: &'static str,
    /// The workload, as the server returned it.
    pub object: DynamicObject,
    /// The stored revisions of the workload, oldest first.
    pub stored: Vec<Stored>,
}

impl Workload {
    /// Reads a workload and its stored revisions from the server.
    pub async fn read(client: &Client, subject: &SubjectRef) -> Result<Self, SubjectError> {
        let key = &subject.key;
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &key.namespace, &(subject.kind.resource)());
        let found = repeat(|| api.get_opt(&key.name)).await;
        let found = found.map_err(|error| denied(error, "get", subject.kind.resource, subject))?;
        let object = found.ok_or_else(|| SubjectError::Missing {
            subject: subject.words(),
            namespace: key.namespace.to_string(),
        })?;
        let selected = ListParams::default().labels(&selector(&object));
        // The revisions are read as untyped objects, so that a rollback also restores fields that this
        // version of bowline does not know.
        let resource = stored_as(subject.kind);
        let stored = match subject.kind.name == DEPLOYMENT_KIND {
            true => of_set,
            false => of_kept,
        };
        let api: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), &key.namespace, &resource());
        let all = pages::all(&api, selected, pages::PAGE).await;
        let all = all.map_err(|error| denied(error, "list", resource, subject))?;
        let all = all.into_iter();
        let mut stored: Vec<Stored> = all.filter_map(|kept| stored(&object, kept)).collect();
        stored.sort_by_key(|stored| stored.number);
        Ok(Self {
            kind: subject.kind.name,
            object,
            stored,
        })
    }

    /// Returns the current pod template of the workload.
    pub fn template(&self) -> Value {
        field(&self.object, TEMPLATE).unwrap_or_default()
    }

    /// Returns a stored revision; None if it is not stored.
    pub fn find(&self, number: i64) -> Option<&Stored> {
        self.stored.iter().find(|stored| stored.number == number)
    }

    /// Returns the newest stored revision with the template of the workload; None if the Kubernetes
    /// controller has not stored the newest template yet.
    pub fn current(&self) -> Option<&Stored> {
        let hash = template::hash(&self.template());
        let mut newest = self.stored.iter().rev();
        newest.find(|stored| template::hash(&stored.template) == hash)
    }

    /// Returns the content of the workload in the form that plans and audit entries contain.
    pub fn content(&self) -> ContentRef {
        let template = self.template();
        self.current().map_or_else(
            || ContentRef {
                name: template::images(&template),
                uid: None,
                hash: Some(template::hash(&template)),
            },
            Stored::content,
        )
    }

    pub fn health(&self) -> health::Verdict {
        health::wait::of_workload(&self.object, self.kind)
    }
}

/// Returns the function of the API resource that stores the revisions of a kind.
pub(super) fn stored_as(kind: &Kind) -> fn() -> ApiResource {
    match kind.name == DEPLOYMENT_KIND {
        true => kinds::kind::<ReplicaSet>,
        false => kinds::kind::<ControllerRevision>,
    }
}

/// If the server denied a request, names the right that the user does not have.
fn denied(
    error: kube::Error,
    verb: &'static str,
    resource: fn() -> ApiResource,
    subject: &SubjectRef,
) -> SubjectError {
    match error {
        kube::Error::Api(status) if status.code == 403 => SubjectError::Denied(format!(
            "cannot read the revisions of {} in {}: {}",
            subject.words(),
            subject.key.namespace,
            Lacking::of(Right { verb, resource })
        )),
        error => error.into(),
    }
}

/// Reads the revisions of a workload from the server.
pub async fn read(
    client: &Client,
    subject: &SubjectRef,
    _: Timestamp,
) -> Result<Revisions<Content>, SubjectError> {
    let entries = EntriesOf::ask(client, subject.kind);
    let (workload, entries) = futures::join!(Workload::read(client, subject), entries);
    Ok(Revisions {
        record: entries.note(),
        ..revisions(subject, &workload?)
    })
}

/// Converts the stored revisions of a workload to the form that all kinds of subjects share.
fn revisions(subject: &SubjectRef, workload: &Workload) -> Revisions<Content> {
    let current = workload.current().map(|current| current.number);
    let before = std::iter::once(None).chain(workload.stored.iter().map(Some));
    let rows = workload.stored.iter().zip(before).map(|(stored, before)| {
        let is_current = Some(stored.number) == current;
        let verdict = is_current.then(|| workload.health());
        // If an old revision of a StatefulSet or DaemonSet becomes current again, Kubernetes does not update its
        // annotations. So the annotations of the workload are used too.
        let on_workload = is_current
            .then(|| published(stored, &workload.object))
            .flatten();
        let operation = on_workload.or_else(|| published(stored, &stored.object));
        Row::Known(Revision {
            number: stored.number,
            hash: stored.content().hash,
            created: created(stored, operation.as_ref()),
            restored_from: operation
                .as_ref()
                .and_then(|operation| operation.restored_from),
            cause: cause(stored, operation),
            state: match verdict.as_ref().map(|verdict| verdict.health) {
                None => State::Superseded,
                Some(Health::Healthy) => State::Healthy,
                Some(Health::Degraded) => State::Unhealthy,
                Some(_) => State::Current,
            },
            mark: stored.verdict(),
            why: stored
                .bad()
                .or_else(|| verdict.and_then(|verdict| verdict.message)),
            content: Some(Content {
                label: label(stored, before),
                objects: vec![manifest(subject, &stored.template)],
            }),
        })
    });
    let mut rows: Vec<Row<Content>> = rows.collect();
    // If another program made an old revision current again, the time of that change is not recorded.
    let mut newest = None;
    for row in &mut rows {
        if let Row::Known(revision) = row {
            revision.created = revision
                .created
                .filter(|created| newest.is_none_or(|newest| *created >= newest));
            newest = newest.max(revision.created);
        }
    }
    Revisions {
        subject: subject.words(),
        current: current.unwrap_or_default(),
        rows,
        record: None,
    }
}

/// Returns the images of a revision as text. Says if the revision only restarts the pods of the one before.
fn label(stored: &Stored, before: Option<&Stored>) -> String {
    let images = template::images(&stored.template);
    let hash = |stored: &Stored| template::hash(&stored.template);
    match before.is_some_and(|before| hash(before) == hash(stored)) {
        true => format!("{images}, restart"),
        false => images,
    }
}

/// Returns the time at which a revision was published. An old revision that is published again keeps its object, so
/// only the operation has the new time.
fn created(stored: &Stored, operation: Option<&Operation>) -> Option<Timestamp> {
    let recorded = operation.map(|operation| operation.at.0);
    recorded.or_else(|| Some(stored.object.creation_timestamp()?.0))
}

/// Returns the operation by which bowline published a revision, from the annotations of `object`. None if another
/// program published the revision.
fn published(stored: &Stored, object: &DynamicObject) -> Option<Operation> {
    published_in(object.annotations(), &template::hash(&stored.template))
}

/// Returns the time at which bowline published the template with this hash, from the annotations of a workload or of
/// its revision. None if another program published it.
pub(super) fn recorded(annotations: &BTreeMap<String, String>, hash: &str) -> Option<Timestamp> {
    published_in(annotations, hash).map(|operation| operation.at.0)
}

fn published_in(annotations: &BTreeMap<String, String>, hash: &str) -> Option<Operation> {
    [labels::OPERATION, labels::PUBLISHED]
        .iter()
        .find_map(|name| publishing(annotations.get(*name)?, hash))
}

/// Parses an operation; None if it did not publish the template with this hash.
///
/// Another program that changes the template leaves the annotation on the object. So the operation counts only if it
/// names the hash of the template.
pub(super) fn publishing(text: &str, hash: &str) -> Option<Operation> {
    let operation: Operation = serde_json::from_str(text).ok()?;
    let of = |content: &Option<ContentRef>| content.as_ref()?.hash.clone();
    let (from, to) = (of(&operation.from), of(&operation.to));
    (to.as_deref() == Some(hash) && from != to).then_some(operation)
}

fn cause(stored: &Stored, operation: Option<Operation>) -> Option<Cause> {
    if let Some(operation) = operation {
        return Some(Cause {
            action: operation.action,
            actor: operation.actor,
            reason: operation.reason,
            operation: Some(operation.id),
        });
    }
    let reason = stored.object.annotations().get(CHANGE_CAUSE)?;
    Some(Cause {
        action: Action::Edit,
        actor: None,
        reason: Some(text::line(reason).into_owned()),
        operation: None,
    })
}

/// Returns a manifest of the workload that contains only this template. A diff compares two of them.
pub(super) fn manifest(subject: &SubjectRef, template: &Value) -> Value {
    let resource = (subject.kind.resource)();
    json!({
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": &*subject.key.name, "namespace": &*subject.key.namespace},
        "spec": {"template": template},
    })
}

fn of_set(owner: &DynamicObject, set: DynamicObject) -> Option<Stored> {
    if !is_owned(owner, &set) {
        return None;
    }
    let number = set.annotations().get(REVISION)?.parse().ok()?;
    let template = template::plain(field(&set, TEMPLATE)?);
    Some(Stored {
        number,
        template,
        object: set,
    })
}

fn of_kept(owner: &DynamicObject, kept: DynamicObject) -> Option<Stored> {
    if !is_owned(owner, &kept) {
        return None;
    }
    let number = kept.data.get("revision")?.as_i64()?;
    let template = template::plain(field(&kept, &["data", "spec", "template"])?);
    Some(Stored {
        number,
        template,
        object: kept,
    })
}

fn is_owned(owner: &DynamicObject, object: &DynamicObject) -> bool {
    let mut owners = object.owner_references().iter();
    owners.any(|one| one.controller == Some(true) && Some(&one.uid) == owner.metadata.uid.as_ref())
}

/// Returns the label selector of a workload, in the form for a list request.
fn selector(object: &DynamicObject) -> String {
    let labels = object
        .data
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object);
    let equal = labels
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)));
    let rules = object
        .data
        .pointer("/spec/selector/matchExpressions")
        .and_then(Value::as_array);
    let rules = rules.into_iter().flatten().filter_map(expression);
    equal.chain(rules).collect::<Vec<_>>().join(",")
}

fn expression(rule: &Value) -> Option<String> {
    let word = |name: &str| rule.get(name).and_then(Value::as_str);
    let key = word("key")?;
    let values = rule.get("values").and_then(Value::as_array);
    let values: Vec<&str> = values
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let values = values.join(",");
    Some(match word("operator")? {
        "In" => format!("{key} in ({values})"),
        "NotIn" => format!("{key} notin ({values})"),
        "Exists" => key.to_owned(),
        "DoesNotExist" => format!("!{key}"),
        _ => return None,
    })
}
