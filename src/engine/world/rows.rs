//! What the read model keeps of each object: names, references, conditions, sizes and hashes; no bodies.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{ObjectMeta, PartialObjectMeta};

use crate::api::pin::{self, Hold, Outcome, ReleasePinSpec};
use crate::api::release::{self, Verdict};
use crate::api::{ComponentEnvSnapshot, Release, ReleasePin, condition, labels};
use crate::engine::ownership::{self, GitOps};

/// The name of an object and its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Key {
    /// Makes a key.
    pub fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }
}

/// What the read model keeps of a pin.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    /// Its name.
    pub key: Key,
    /// What tells it from another pin of the same name.
    pub uid: Box<str>,
    /// Counts the changes of its spec.
    pub generation: i64,
    /// The component that is pinned.
    pub component: Arc<str>,
    /// Where it is pinned.
    pub environment: Arc<str>,
    /// The release that its releaseRef names.
    pub release: Box<str>,
    /// Who keeps it from being moved.
    pub holds: Box<[Hold]>,
    /// The tool that owns it, if one does.
    pub gitops: Option<GitOps>,
    /// Who changed it last, by the server's word.
    pub changed_by: Option<Box<str>>,
    /// The release that the controller applied last.
    pub applied: Option<Box<str>>,
    /// The snapshot that it was rendered from.
    pub snapshot: Option<Box<str>>,
    /// The generation that the controller has seen.
    pub observed: Option<i64>,
    /// How it is doing.
    pub ready: Option<Ready>,
    /// What became of its moves, oldest first.
    pub moves: Box<[Move]>,
    /// Its labels.
    pub labels: Labels,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// The labels of an object in one piece of memory, which those who look at them share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Option<Arc<str>>);

impl Labels {
    /// Keeps labels, by name.
    pub fn of(labels: &BTreeMap<String, String>) -> Self {
        let lines = labels.iter();
        let lines: String = lines
            .map(|(name, value)| format!("{name}={value}\n"))
            .collect();
        Self((!lines.is_empty()).then(|| format!("\n{lines}").into()))
    }

    /// Returns the value of a label.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Returns all of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.text().lines();
        lines.filter_map(|line| line.split_once('='))
    }

    /// Returns them as text, `\nname=value\n` each, for those who look through many.
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }
}

/// The Ready condition of a pin.
#[derive(Clone, Debug, PartialEq)]
pub struct Ready {
    /// `True`, `False` or `Unknown`.
    pub status: Box<str>,
    /// One word that says why.
    pub reason: Box<str>,
    /// A sentence that says why.
    pub message: Box<str>,
    /// Since when.
    pub since: Timestamp,
}

/// What became of one move of a pin.
#[derive(Clone, Debug, PartialEq)]
pub struct Move {
    /// The generation of the move.
    pub generation: i64,
    /// The release that ran.
    pub release: Box<str>,
    /// Since when it was wanted.
    pub since: Timestamp,
    /// When another one replaced it.
    pub until: Option<Timestamp>,
    /// Whether it is healthy, or was when it was replaced.
    pub healthy: Option<bool>,
}

/// What the read model keeps of a release.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseRow {
    /// Its name.
    pub key: Key,
    /// What tells it from another release of the same name.
    pub uid: Box<str>,
    /// The component that it is of, where its labels say so.
    pub component: Option<Arc<str>>,
    /// Its version as it was given.
    pub version: Option<Box<str>>,
    /// The hash of its content.
    pub hash: Option<Box<str>>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// Its images.
    pub images: Option<Box<str>>,
    /// Whether it was marked, and how.
    pub mark: Option<Verdict>,
    /// Who marked it and why, where that can be read.
    pub marked: Option<Box<release::Mark>>,
    /// Whether its label protects it.
    pub pinned: bool,
    /// When somebody last announced that a pin is about to name it.
    pub claimed: Option<Timestamp>,
    /// The tool that owns it, if one does.
    pub gitops: Option<GitOps>,
    /// When it was made.
    pub created: Timestamp,
    /// Its labels.
    pub labels: Labels,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What the read model keeps of a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct SnapshotRow {
    /// Its name.
    pub key: Key,
    /// What tells it from another snapshot of the same name.
    pub uid: Box<str>,
    /// The component that it is of.
    pub component: Arc<str>,
    /// The environment that it is of.
    pub environment: Arc<str>,
    /// The uid of the pin that it was made for.
    pub owner: Option<Box<str>>,
    /// The hash of the references that it was resolved from.
    pub references: Option<Box<str>>,
    /// Its size in bytes.
    pub size: Option<u64>,
    /// When it was made.
    pub created: Timestamp,
    /// Its labels.
    pub labels: Labels,
}

impl Pin {
    /// Keeps what matters of a pin.
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
            gitops: ownership::gitops(&pin.metadata, ownership::OF_PIN),
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

    /// Returns the release that counts at `now`: that of the newest active hold that fixes one, else that
    /// of its releaseRef.
    pub fn effective_release(&self, now: Timestamp) -> &str {
        pin::fixed(self.active_holds(now)).unwrap_or(&self.release)
    }

    /// Returns the holds that stop something at `now`.
    pub fn active_holds(&self, now: Timestamp) -> impl Iterator<Item = &Hold> {
        let owned = self.gitops.is_some();
        self.holds
            .iter()
            .filter(move |hold| hold.counts(now, owned))
    }

    /// Returns every release that the pin names, whether its hold is active or not.
    pub fn named_releases(&self) -> impl Iterator<Item = &str> {
        let fixed = self.holds.iter().filter_map(|hold| hold.release.as_deref());
        std::iter::once(&*self.release).chain(fixed)
    }

    /// Tells whether what the controller says of the pin is of the release that counts at `now`.
    pub fn is_observed(&self, now: Timestamp) -> bool {
        self.observed == Some(self.generation)
            && self.applied.as_deref() == Some(self.effective_release(now))
    }

    /// Returns the Ready condition, if it is about the release that is effective at `now`.
    ///
    /// A release that the controller cannot resolve, render or apply is never the applied one: then the
    /// open outcome says which release the condition is about, also after a newer change that leaves that
    /// release effective, like a hold on it. A failure without a generation is about the effective release,
    /// unless something names another one.
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

    /// Tells whether the controller has seen the pin as it is and found everything in order.
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
    /// Keeps what matters of a release, all of which stands in its metadata.
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
            gitops: ownership::gitops(metadata, ownership::OF_RELEASE),
            created: created.map_or(Timestamp::UNIX_EPOCH, |created| created.0),
            labels: Labels::of(made.labels()),
            deleting: metadata.deletion_timestamp.is_some(),
        }
    }
}

impl SnapshotRow {
    /// Keeps what matters of a snapshot, all of which stands in its metadata.
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
