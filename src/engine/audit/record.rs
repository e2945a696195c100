//! The entries that a change of a pin, a mark or a collected release leaves behind.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;

use super::{link, sealed};
use crate::api::audit::{
    Action, AuditEntry, AuditEntrySpec, Gap, ReleaseIdentity, Subject, SubjectKind,
};
use crate::api::pin::ReleasePin;

/// Who writes an entry, when, and what they know of releases.
#[derive(Clone, Copy, Debug)]
pub struct Recorder<'a> {
    /// The user who writes it, as the API server names them.
    pub by: &'a str,
    /// When it is written.
    pub now: Timestamp,
    /// The releases that are known by more than their names.
    pub releases: &'a [ReleaseIdentity],
}

impl Recorder<'_> {
    fn identify(&self, name: &str) -> ReleaseIdentity {
        let known = self.releases.iter().find(|release| release.name == name);
        known
            .cloned()
            .unwrap_or_else(|| ReleaseIdentity::named(name))
    }
}

/// A pin that the API server has not stored, so that nothing can be recorded of it.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("ReleasePin {0} has no uid or generation; pass the object that the API server returned")]
pub struct NotStored(String);

/// Returns the entries that a pin lacks, oldest first: none, the one of its present generation, or that
/// and the gap before it.
///
/// `newest` is the newest entry of the pin's chain. The operation on the pin counts only for the
/// generation that it names; any other change is an edit, by whom the API server stamped.
pub fn missing(
    pin: &ReleasePin,
    newest: Option<&AuditEntry>,
    recorder: &Recorder,
) -> Result<Vec<AuditEntry>, NotStored> {
    let subject = subject(pin).ok_or_else(|| NotStored(pin.name_any()))?;
    let generation = pin.metadata.generation.unwrap_or_default();
    let newest = newest.filter(|entry| entry.spec.subject == subject);
    let seen = newest.map_or(0, |entry| entry.spec.revision);
    if generation <= seen {
        return Ok(Vec::new());
    }
    let (component, environment) = (&pin.spec.component, &pin.spec.environment);
    let gap = (seen + 1 < generation).then(|| {
        let revisions = Gap {
            first: seen + 1,
            last: generation - 1,
        };
        let mut spec = blank(&subject, revisions.last, Action::Gap, newest, recorder);
        // When is not known; it was not after the change that follows.
        spec.at = present(pin, &subject, newest, recorder).at;
        spec.from = newest.and_then(|entry| entry.spec.to.clone());
        spec.gap = Some(revisions);
        sealed(spec, component, Some(environment))
    });
    let spec = present(pin, &subject, gap.as_ref().or(newest), recorder);
    let entry = sealed(spec, component, Some(environment));
    Ok(gap.into_iter().chain([entry]).collect())
}

/// Returns whose chain the entries of a stored pin are in.
pub(super) fn subject(pin: &ReleasePin) -> Option<Subject> {
    pin.metadata.generation?;
    Some(Subject {
        kind: SubjectKind::ReleasePin,
        name: pin.name_any(),
        uid: Some(pin.uid()?),
    })
}

/// Returns the entry of the pin's present generation, which follows `before`.
pub(super) fn present(
    pin: &ReleasePin,
    subject: &Subject,
    before: Option<&AuditEntry>,
    recorder: &Recorder,
) -> AuditEntrySpec {
    let generation = pin.metadata.generation.unwrap_or_default();
    let mut spec = blank(subject, generation, Action::Edit, before, recorder);
    spec.actor = pin.changed_by().map(str::to_owned);
    spec.holds = pin.spec.holds.clone();
    // What cannot be read was not written by an engine: the change is an edit like any other.
    match pin.operation().ok().flatten() {
        Some(operation) => {
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
            spec.at = written_at(pin).unwrap_or(spec.at);
            spec.from = before.and_then(|entry| entry.spec.to.clone());
        }
    }
    if spec.to.is_none() {
        let effective = pin.spec.effective_release(spec.at.0);
        spec.to = Some(recorder.identify(effective));
    }
    let named = &pin.spec.release_ref.name;
    let counts = spec.to.as_ref().map(|to| &to.name);
    spec.release_ref = (counts != Some(named)).then(|| named.clone());
    spec
}

/// Returns when somebody last wrote the pin, other than its status, by the API server's clock.
fn written_at(pin: &ReleasePin) -> Option<Time> {
    let managers = pin.metadata.managed_fields.iter().flatten();
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

/// What was done to a release: marked, or collected as garbage.
#[derive(Clone, Debug)]
pub struct OnRelease<'a> {
    /// The release.
    pub release: ReleaseIdentity,
    /// What was done to it.
    pub action: Action,
    /// The operation that did it.
    pub operation: Option<&'a str>,
    /// Who did it, by the API server's word.
    pub actor: Option<&'a str>,
    /// Why.
    pub reason: Option<&'a str>,
}

/// Returns the next entry of a component's chain, whose newest entry is `newest`.
pub fn of_release(
    component: &str,
    done: &OnRelease,
    newest: Option<&AuditEntry>,
    recorder: &Recorder,
) -> AuditEntry {
    let subject = Subject {
        kind: SubjectKind::Component,
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

/// Returns an entry that says nothing yet but where it stands.
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

/// The API keeps no fractions of a second.
fn whole_seconds(moment: Timestamp) -> Time {
    Time(Timestamp::from_second(moment.as_second()).unwrap_or(moment))
}
