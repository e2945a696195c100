//! Builds the audit entries of a change of a subject, of a mark on a release and of a deleted release.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::DynamicObject;

use super::{link, sealed};
use crate::api::bowline::audit::{
    Action, AuditEntry, AuditEntrySpec, COMPONENT, ContentRef, Gap, Subject,
};
use crate::api::operation;
use crate::engine::subject::Kind;

/// The values that every new audit entry contains.
#[derive(Clone, Copy, Debug)]
pub struct Recorder<'a> {
    /// The name under which the API server knows the user who writes the entry.
    pub by: &'a str,
    /// The time to write into new entries.
    pub now: Timestamp,
    /// The contents (such as releases) whose uid and hash are known. An entry about any other content has only the
    /// name of the content.
    pub known: &'a [ContentRef],
}

impl Recorder<'_> {
    fn identify(&self, content: ContentRef) -> ContentRef {
        let known = self.known.iter().find(|known| known.name == content.name);
        known.cloned().unwrap_or(content)
    }
}

/// The error for an object that the API server has not stored: the object has no uid, so it cannot have an audit
/// entry.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0} has no uid or generation; pass the object that the API server returned")]
pub struct NotStored(String);

/// Returns the missing audit entries of a subject, oldest first: no entry, one entry for the newest change, or a gap
/// entry and one entry for the newest change.
///
/// `newest` is the newest existing entry of the subject. The operation annotation describes only one generation of
/// the subject. Any other generation is recorded as an edit by the user in the managed fields.
pub fn missing(
    kind: &'static Kind,
    object: &DynamicObject,
    newest: Option<&AuditEntry>,
    recorder: &Recorder,
) -> Result<Vec<AuditEntry>, NotStored> {
    let not_stored = || NotStored(format!("{} {}", kind.name, object.name_any()));
    let subject = subject(kind, object).ok_or_else(not_stored)?;
    let number = kind.number(object).unwrap_or_default();
    let newest = newest.filter(|entry| entry.spec.subject == subject);
    let seen = newest.map_or(0, |entry| entry.spec.revision);
    if number <= seen {
        return Ok(Vec::new());
    }
    let (row, environment) = (kind.place)(object);
    let seal = |spec| sealed(spec, &row, environment.as_deref());
    let gap = (seen + 1 < number).then(|| {
        let revisions = Gap {
            first: seen + 1,
            last: number - 1,
        };
        let mut spec = blank(&subject, revisions.last, Action::Gap, newest, recorder);
        // The time of the gap is unknown. So the entry contains the latest possible time: that of the change after
        // the gap.
        spec.at = present(kind, object, &subject, newest, recorder).at;
        spec.from = newest.and_then(|entry| entry.spec.to.clone());
        spec.gap = Some(revisions);
        seal(spec)
    });
    let before = gap.as_ref().or(newest);
    let entry = seal(present(kind, object, &subject, before, recorder));
    Ok(gap.into_iter().chain([entry]).collect())
}

/// Returns an object as the subject of a chain; None if the API server has not stored the object.
pub(super) fn subject(kind: &Kind, object: &DynamicObject) -> Option<Subject> {
    kind.number(object)?;
    Some(Subject {
        kind: kind.name.to_owned(),
        namespace: None,
        name: object.name_any(),
        uid: Some(object.uid()?),
    })
}

/// Returns the audit entry for the current revision of an object. `before` is the previous entry of the chain.
pub(super) fn present(
    kind: &'static Kind,
    object: &DynamicObject,
    subject: &Subject,
    before: Option<&AuditEntry>,
    recorder: &Recorder,
) -> AuditEntrySpec {
    let number = kind.number(object).unwrap_or_default();
    let mut spec = blank(subject, number, Action::Edit, before, recorder);
    spec.actor = operation::changed_by(object).map(str::to_owned);
    spec.holds = kind.holds_of(object);
    // bowline always writes a readable operation annotation. So if it is unreadable, another program made the change.
    match kind.operation(object) {
        Some(operation) => {
            spec.actor = spec.actor.or(operation.actor);
            spec.operation = Some(operation.id);
            spec.action = operation.action;
            spec.at = operation.at;
            spec.reason = operation.reason;
            spec.from = operation.from;
            spec.to = operation.to;
            spec.restored_from = operation.restored_from;
            spec.rendered_hash = operation.rendered_hash;
        }
        None => {
            spec.at = written_at(object).unwrap_or(spec.at);
            spec.from = before.and_then(|entry| entry.spec.to.clone());
        }
    }
    let content = || (kind.content)(object, spec.at.0, false);
    let to = spec
        .to
        .take()
        .unwrap_or_else(|| recorder.identify(content()));
    spec.release_ref = (kind.release_ref)(object, &to);
    spec.to = Some(to);
    spec
}

/// Returns the time of the last write to an object by the API server's clock. Ignores writes of the status.
fn written_at(object: &DynamicObject) -> Option<Time> {
    let managers = object.metadata.managed_fields.iter().flatten();
    managers
        .filter(|manager| {
            manager
                .subresource
                .as_deref()
                .unwrap_or_default()
                .is_empty()
        })
        .filter_map(|manager| manager.time.clone())
        .max()
}

/// An action on a release that an audit entry records: a mark, or a deletion by gc.
#[derive(Clone, Debug)]
pub struct OnRelease<'a> {
    /// The marked or deleted release.
    pub release: ContentRef,
    /// The action that the audit entry records.
    pub action: Action,
    pub operation: Option<&'a str>,
    /// The name under which the API server knows the user who marked or deleted the release; None if it is unknown.
    pub actor: Option<&'a str>,
    pub reason: Option<&'a str>,
}

/// Returns the audit entry for an action on a release. `newest` is the newest entry of the component's chain.
pub fn of_release(
    component: &str,
    done: &OnRelease,
    newest: Option<&AuditEntry>,
    recorder: &Recorder,
) -> AuditEntry {
    let subject = Subject {
        kind: COMPONENT.to_owned(),
        namespace: None,
        name: component.to_owned(),
        uid: None,
    };
    let newest = newest.filter(|entry| entry.spec.subject == subject);
    let number = newest.map_or(1, |entry| entry.spec.revision.saturating_add(1));
    let mut spec = blank(&subject, number, done.action, newest, recorder);
    spec.operation = done.operation.map(str::to_owned);
    spec.actor = done.actor.map(str::to_owned);
    spec.reason = done.reason.map(str::to_owned);
    match done.action {
        Action::Collect => spec.from = Some(done.release.clone()),
        _ => spec.to = Some(done.release.clone()),
    }
    sealed(spec, component, None)
}

/// Returns an audit entry with only the subject, the revision, the action and the link to the previous entry.
pub(super) fn blank(
    subject: &Subject,
    revision: i64,
    action: Action,
    before: Option<&AuditEntry>,
    recorder: &Recorder,
) -> AuditEntrySpec {
    AuditEntrySpec {
        subject: subject.clone(),
        revision,
        operation: None,
        actor: None,
        recorded_by: recorder.by.to_owned(),
        action,
        at: whole_seconds(recorder.now),
        reason: None,
        from: None,
        to: None,
        release_ref: None,
        holds: Vec::new(),
        restored_from: None,
        rendered_hash: None,
        previous: before.map(link),
        gap: None,
        checkpoint: None,
    }
}

/// Rounds a time down to whole seconds, because the API stores no fractions.
fn whole_seconds(moment: Timestamp) -> Time {
    Time(Timestamp::from_second(moment.as_second()).unwrap_or(moment))
}
