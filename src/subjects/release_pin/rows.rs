//! The rows of the read model, one per object: names, references, conditions, sizes and hashes; no
//! bodies.

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

/// The row of a ReleasePin.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// The namespace and name.
    pub key: Key,
    /// The uid, which differs from the uid of a later ReleasePin of the same name.
    pub uid: Box<str>,
    /// The generation, which grows with every change of the spec.
    pub generation: i64,
    /// The name of the component.
    pub component: Arc<str>,
    /// The name of the environment.
    pub environment: Arc<str>,
    /// The release in the releaseRef.
    pub release: Box<str>,
    /// The holds, including expired ones.
    pub holds: Box<[Hold]>,
    /// The GitOps tool that owns the object; None if no tool owns it.
    pub gitops: Option<GitOps>,
    /// The user who changed the ReleasePin last, according to the server.
    pub changed_by: Option<Box<str>>,
    /// The release that the controller applied last.
    pub applied: Option<Box<str>>,
    /// The name of the current snapshot.
    pub snapshot: Option<Box<str>>,
    /// The generation that the controller has observed.
    pub observed: Option<i64>,
    /// The Ready condition.
    pub ready: Option<Ready>,
    /// The recorded outcomes of the revisions, oldest first.
    pub moves: Box<[Move]>,
    /// The labels of the ReleasePin.
    pub labels: Labels,
    /// Whether the object is being deleted.
    pub deleting: bool,
}

/// The Ready condition of a ReleasePin.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// `True`, `False` or `Unknown`.
    pub status: Box<str>,
    /// The reason, one word.
    pub reason: Box<str>,
    /// The message of the controller.
    pub message: Box<str>,
    /// The time of the last change.
    pub since: Timestamp,
}

/// The recorded outcome of one revision of a ReleasePin.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The generation of the ReleasePin in this revision.
    pub generation: i64,
    /// The effective release of the revision.
    pub release: Box<str>,
    /// The time at which the revision started.
    pub since: Timestamp,
    /// The time at which the revision was replaced; None if it is the current one.
    pub until: Option<Timestamp>,
    /// Whether the release is healthy, or was healthy when it was replaced; None if unknown.
    pub healthy: Option<bool>,
}

/// The row of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseRow {
    /// The namespace and name.
    pub key: Key,
    /// The uid, which differs from the uid of a later release of the same name.
    pub uid: Box<str>,
    /// The component, from a label; None without the label.
    pub component: Option<Arc<str>>,
    /// The version as the user gave it.
    pub version: Option<Box<str>>,
    /// The content hash.
    pub hash: Option<Box<str>>,
    /// The size in bytes.
    pub size: Option<u64>,
    /// The images, separated by commas.
    pub images: Option<Box<str>>,
    /// The mark; None if the release has none.
    pub mark: Option<Verdict>,
    /// The details of the mark, if they are readable.
    pub marked: Option<Box<release::Mark>>,
    /// Whether the release has the label that protects it from deletion.
    pub pinned: bool,
    /// The time of the last claim.
    pub claimed: Option<Timestamp>,
    /// The GitOps tool that owns the object; None if no tool owns it.
    pub gitops: Option<GitOps>,
    /// The time of its creation.
    pub created: Timestamp,
    /// The labels of the release.
    pub labels: Labels,
    /// Whether the object is being deleted.
    pub deleting: bool,
}

/// The row of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotRow {
    /// The namespace and name.
    pub key: Key,
    /// The uid, which differs from the uid of a later snapshot of the same name.
    pub uid: Box<str>,
    /// The name of the component.
    pub component: Arc<str>,
    /// The name of the environment.
    pub environment: Arc<str>,
    /// The uid of the ReleasePin that the snapshot belongs to.
    pub owner: Option<Box<str>>,
    /// The hash of the references that it was resolved from.
    pub references: Option<Box<str>>,
    /// The size in bytes.
    pub size: Option<u64>,
    /// The time of its creation.
    pub created: Timestamp,
    /// The labels of the snapshot.
    pub labels: Labels,
}

impl Pin {
    /// Builds the row of a ReleasePin.
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

    /// Returns the effective release at `now`: that of the newest active hold with a release, or else the
    /// releaseRef.
    pub fn effective_release(&self, now: Timestamp) -> &str {
        pin::fixed(self.active_holds(now)).unwrap_or(&self.release)
    }

    /// Returns the active holds at `now`.
    pub fn active_holds(&self, now: Timestamp) -> impl Iterator<Item = &Hold> {
        let owned = self.gitops.is_some();
        self.holds
            .iter()
            .filter(move |hold| hold.is_effective(now, owned))
    }

    /// Returns every release that the ReleasePin names, including those of expired holds.
    pub fn named_releases(&self) -> impl Iterator<Item = &str> {
        let fixed = self.holds.iter().filter_map(|hold| hold.release.as_deref());
        std::iter::once(&*self.release).chain(fixed)
    }

    /// Returns whether the status of the ReleasePin is about the release that is effective at `now`.
    pub fn is_observed(&self, now: Timestamp) -> bool {
        self.observed == Some(self.generation)
            && self.applied.as_deref() == Some(self.effective_release(now))
    }

    /// Returns the Ready condition, if it is about the release that is effective at `now`.
    ///
    /// If the controller cannot resolve, render or apply a release, the status never names it as
    /// the applied release. Then the last outcome, which has no end yet, says which release the
    /// condition is about. It says so also after a newer change that leaves that release effective,
    /// such as a hold on it. If the status has no observed generation, a failure is about the
    /// effective release, unless the status names another release.
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

    /// Returns whether the controller has observed the current ReleasePin and reports it as ready.
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
    /// Builds the row of a release from its metadata.
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
    /// Builds the row of a snapshot from its metadata.
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
