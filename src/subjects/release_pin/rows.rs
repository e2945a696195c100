//! The rows of the read model for ReleasePins, releases and snapshots. A row has names, references, conditions, sizes
//! and hashes, but no definitions, because these are large.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{ObjectMeta, PartialObjectMeta};

use super::ownership::{OF_PIN, OF_RELEASE};
use crate::api::hold::Hold;
use crate::api::openchoreo::pin::{self, Outcome, ReleasePinSpec};
use crate::api::openchoreo::release::{self, Verdict};
use crate::api::{ComponentEnvSnapshot, Release, ReleasePin, condition, labels};
use crate::engine::ownership::{GitOps, gitops};
use crate::engine::world::{Key, Labels};

/// A ReleasePin in the read model.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    pub key: Key,
    /// The uid of the ReleasePin, because a later ReleasePin with the same name has another uid.
    pub uid: Box<str>,
    /// The generation of the ReleasePin. The server increments it with every change of the spec.
    pub generation: i64,
    pub component: Arc<str>,
    pub environment: Arc<str>,
    /// The release that the releaseRef names.
    pub release: Box<str>,
    /// All holds of the ReleasePin, including the expired ones.
    pub holds: Box<[Hold]>,
    /// The GitOps tool that owns the ReleasePin; None if no tool owns it.
    pub gitops: Option<GitOps>,
    /// The user who made the newest change of the ReleasePin, by the name that the server knows; None if it is not
    /// recorded.
    pub changed_by: Option<Box<str>>,
    /// The release that the controller applied last; None if it has applied none.
    pub applied: Option<Box<str>>,
    /// The name of the current snapshot of the ReleasePin; None if it has none.
    pub snapshot: Option<Box<str>>,
    /// The generation of the ReleasePin that the controller has observed; None if it has observed none.
    pub observed: Option<i64>,
    /// The Ready condition in the status; None if the status does not have it.
    pub ready: Option<Ready>,
    /// The outcomes in the status of the ReleasePin, oldest first.
    pub moves: Box<[Move]>,
    pub labels: Labels,
    pub deleting: bool,
}

/// The Ready condition of a ReleasePin.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    pub status: Box<str>,
    /// The reason of the Ready condition, one word.
    pub reason: Box<str>,
    /// The message of the Ready condition.
    pub message: Box<str>,
    /// The time at which the Ready condition changed last.
    pub since: Timestamp,
}

/// The recorded outcome of one revision of a ReleasePin. The controller records it in the status.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The generation of the ReleasePin, which is also the number of the revision.
    pub generation: i64,
    /// The effective release of the revision.
    pub release: Box<str>,
    /// The time at which this revision became the current one.
    pub since: Timestamp,
    /// The time at which another revision replaced this one; None for the current revision.
    pub until: Option<Timestamp>,
    /// Whether the release was healthy when another release replaced it; for the current revision, whether it is
    /// healthy. None if unknown.
    pub healthy: Option<bool>,
}

/// A release in the read model.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseRow {
    pub key: Key,
    /// The uid of the release, because a later release with the same name has another uid.
    pub uid: Box<str>,
    /// The component of the release, from a label; None if the release has no such label.
    pub component: Option<Arc<str>>,
    /// The version of the release, from an annotation or a label; None if the release has no version.
    pub version: Option<Box<str>>,
    /// The hash of the release's content, from an annotation; None if the release has no such annotation.
    pub hash: Option<Box<str>>,
    /// The size of the release in bytes, from an annotation; None if the release has no such annotation.
    pub size: Option<u64>,
    /// The images of the release, separated by commas, from an annotation; None if the release has no such
    /// annotation.
    pub images: Option<Box<str>>,
    /// The verdict in the mark of the release; None if the release has no mark.
    pub mark: Option<Verdict>,
    /// The whole mark of the release; None if the release has no mark, or if the mark cannot be parsed.
    pub marked: Option<Box<release::Mark>>,
    /// Whether the release has the label that protects it from deletion.
    pub pinned: bool,
    /// The time of the last claim on the release; None if it was never claimed.
    pub claimed: Option<Timestamp>,
    /// The GitOps tool that owns the release; None if no tool owns it.
    pub gitops: Option<GitOps>,
    pub created: Timestamp,
    pub labels: Labels,
    pub deleting: bool,
}

/// A ComponentEnvSnapshot in the read model.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotRow {
    pub key: Key,
    /// The uid of the snapshot, because a later snapshot with the same name has another uid.
    pub uid: Box<str>,
    pub component: Arc<str>,
    pub environment: Arc<str>,
    /// The uid of the ReleasePin that owns the snapshot; None if no ReleasePin owns it.
    pub owner: Option<Box<str>>,
    /// The hash of the references from which the snapshot was made; None if the snapshot does not record it.
    pub references: Option<Box<str>>,
    /// The size of the snapshot in bytes, from an annotation; None if the snapshot has no such annotation.
    pub size: Option<u64>,
    pub created: Timestamp,
    pub labels: Labels,
}

impl Pin {
    pub fn of(pin: &ReleasePin, key: Key, component: Arc<str>, environment: Arc<str>) -> Self {
        let ReleasePinSpec {
            release_ref, holds, ..
        } = &pin.spec;
        let status = pin.status.as_ref();
        let conditions = status.map_or(&[][..], |status| &status.conditions);
        let ready = condition::find(conditions, condition::READY).map(|ready| Ready {
            status: ready.status.as_str().into(),
            reason: ready.reason.as_str().into(),
            message: ready.message.as_str().into(),
            since: ready.last_transition_time.0,
        });
        let outcomes = status.map_or(&[][..], |status| &status.outcomes);
        Self {
            key,
            uid: pin.metadata.uid.as_deref().unwrap_or_default().into(),
            generation: pin.metadata.generation.unwrap_or_default(),
            component,
            environment,
            release: release_ref.name.as_str().into(),
            holds: holds.as_slice().into(),
            gitops: gitops(&pin.metadata, OF_PIN),
            changed_by: pin.changed_by().map(Into::into),
            applied: status.and_then(|status| Some(status.applied_release.as_deref()?.into())),
            snapshot: status.and_then(|status| Some(status.snapshot.as_deref()?.into())),
            observed: status.and_then(|status| status.observed_generation),
            ready,
            moves: outcomes.iter().map(Move::of).collect(),
            labels: Labels::of(pin.labels()),
            deleting: pin.metadata.deletion_timestamp.is_some(),
        }
    }

    /// Returns the effective release at `now`. It is the release of the newest active hold that names one, or else
    /// the release of the releaseRef.
    pub fn effective_release(&self, now: Timestamp) -> &str {
        pin::fixed(self.active_holds(now)).unwrap_or(&self.release)
    }

    /// Returns the holds of the ReleasePin that are active at `now`.
    pub fn active_holds(&self, now: Timestamp) -> impl Iterator<Item = &Hold> {
        let owned = self.gitops.is_some();
        self.holds
            .iter()
            .filter(move |hold| hold.is_effective(now, owned))
    }

    /// Returns every release that the ReleasePin names: in the releaseRef, and in all holds including the expired
    /// ones.
    pub fn named_releases(&self) -> impl Iterator<Item = &str> {
        let fixed = self.holds.iter().filter_map(|hold| hold.release.as_deref());
        std::iter::once(&*self.release).chain(fixed)
    }

    /// Returns whether the controller has observed the newest generation and applied the release that is
    /// effective at `now`.
    pub fn is_observed(&self, now: Timestamp) -> bool {
        self.observed == Some(self.generation)
            && self.applied.as_deref() == Some(self.effective_release(now))
    }

    /// Returns the Ready condition if it is about the release that is effective at `now`; otherwise None.
    ///
    /// If the controller fails to resolve, render or apply a release, the status does not name that release as
    /// applied. Then the newest outcome without an end tells which release the condition is about. If the controller
    /// has observed no generation yet, a failure is about the effective release, unless the status names an applied
    /// release.
    pub fn judged(&self, now: Timestamp) -> Option<&Ready> {
        let ready = self.ready.as_ref()?;
        if self.is_observed(now) {
            return Some(ready);
        }
        let open = self.moves.last().filter(|last| last.until.is_none());
        let effective = self.effective_release(now);
        let is_of_it = match (self.observed, open) {
            (None, _) => self.applied.is_none() && self.moves.is_empty(),
            (Some(observed), Some(open))
                if observed != self.generation || open.generation == self.generation =>
            {
                *open.release == *effective
            }
            (Some(observed), None) if observed != self.generation => {
                self.applied.as_deref() == Some(effective)
            }
            (Some(_), _) => true,
        };
        (is_of_it && &*ready.status == "False").then_some(ready)
    }

    /// Returns whether the controller has applied the effective release of the newest generation and reports Ready.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        let ready = self.ready.as_ref();
        self.is_observed(now) && ready.is_some_and(|ready| &*ready.status == "True")
    }
}

impl Move {
    fn of(outcome: &Outcome) -> Self {
        Self {
            generation: outcome.generation,
            release: outcome.release.as_str().into(),
            since: outcome.since.0,
            until: outcome.until.as_ref().map(|until| until.0),
            healthy: outcome.healthy,
        }
    }
}

impl ReleaseRow {
    pub fn of(made: &PartialObjectMeta<Release>, key: Key, component: Option<Arc<str>>) -> Self {
        let metadata: &ObjectMeta = &made.metadata;
        let annotation = |name| made.annotations().get(name).map(String::as_str);
        let created = metadata.creation_timestamp.as_ref();
        Self {
            key,
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            component,
            version: annotation(labels::VERSION_TEXT)
                .or_else(|| made.labels().get(labels::VERSION).map(String::as_str))
                .map(Into::into),
            hash: annotation(labels::CONTENT_HASH).map(Into::into),
            size: annotation(labels::SIZE).and_then(|size| size.parse().ok()),
            images: annotation(labels::IMAGES).map(Into::into),
            mark: annotation(labels::MARK).map(Verdict::of_mark),
            marked: annotation(labels::MARK).and_then(|mark| serde_json::from_str(mark).ok()),
            pinned: made.labels().get(labels::PINNED).map(String::as_str)
                == Some(labels::PINNED_TRUE),
            claimed: release::claimed_at(metadata),
            gitops: gitops(metadata, OF_RELEASE),
            created: created.map_or(Timestamp::UNIX_EPOCH, |created| created.0),
            labels: Labels::of(made.labels()),
            deleting: metadata.deletion_timestamp.is_some(),
        }
    }
}

impl SnapshotRow {
    pub fn of(
        snapshot: &PartialObjectMeta<ComponentEnvSnapshot>,
        key: Key,
        component: Arc<str>,
        environment: Arc<str>,
    ) -> Self {
        let metadata: &ObjectMeta = &snapshot.metadata;
        let size = snapshot.annotations().get(labels::SIZE);
        let references = snapshot.annotations().get(labels::REFERENCES_HASH);
        let owner = metadata.owner_references.iter().flatten();
        let owner = owner
            .into_iter()
            .find(|owner| owner.controller == Some(true));
        let created = metadata.creation_timestamp.as_ref();
        Self {
            key,
            uid: metadata.uid.as_deref().unwrap_or_default().into(),
            component,
            environment,
            owner: owner.map(|owner| owner.uid.as_str().into()),
            references: references.map(|hash| hash.as_str().into()),
            size: size.and_then(|size| size.parse().ok()),
            created: created.map_or(Timestamp::UNIX_EPOCH, |created| created.0),
            labels: Labels::of(snapshot.labels()),
        }
    }
}
