//! Finds the changes of ReleasePins by comparing the states of their files in git's log.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::branch::Told;
use super::identity::{or_else, pin_key};
use super::manifest;
use crate::api::labels;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::git::log::{Changed, Commit};
use crate::git::{BlobLimits, GitError};

/// A change of a ReleasePin by a commit on the branch.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub namespace: String,
    pub name: String,
    /// The spec of the ReleasePin on the branch before the change; None if the ReleasePin did not exist.
    pub before: Option<ReleasePinSpec>,
    /// For a ReleasePin that was removed and is created again: its spec before the removal. Otherwise None.
    pub earlier: Option<ReleasePinSpec>,
    /// The spec in the parent of the commit that made the change; None if the ReleasePin did not exist there. In a
    /// merged commit, it may differ from `before`.
    pub found: Option<ReleasePinSpec>,
    /// The spec of the ReleasePin after the change.
    pub after: ReleasePinSpec,
    /// The time when the change came to the branch.
    pub at: Timestamp,
    /// The commit that has the author and the reason of the change. One commit may change many ReleasePins.
    pub commit: Arc<Commit>,
}

impl Change {
    /// Returns the effective release of a spec at the time when the author wrote the commit. This time is used
    /// because a hold may have expired before a later merge.
    pub fn counted<'s>(&self, spec: &'s ReleasePinSpec) -> &'s str {
        spec.effective_release(self.commit.written)
    }
}

/// The removal of a ReleasePin by a commit on the branch.
#[derive(Clone, Debug, PartialEq)]
pub struct Removal {
    pub name: String,
    /// The spec of the ReleasePin before the removal.
    pub before: ReleasePinSpec,
    /// The commit that has the author and the reason of the removal.
    pub commit: Arc<Commit>,
}

/// A ReleasePin in a file: its namespace (empty if the file names none), its name and its spec.
pub(super) type Pin = (String, String, ReleasePinSpec);

/// A function that reads blobs by id. It passes each blob to its caller with the index of the id. The blob is None if
/// this clone does not have it or it is too large.
pub(super) type Blobs<'b> =
    &'b mut dyn FnMut(&[String], &mut dyn FnMut(usize, Option<Vec<u8>>)) -> Result<(), GitError>;

/// Returns the limits for reading blobs of manifests. They are the same as for files on disk.
pub fn blob_limits() -> BlobLimits<'static> {
    BlobLimits {
        bytes: bounded_yaml::Limits::default().bytes,
        words: &labels::GROUPS,
    }
}

/// The state of all ReleasePins on the branch after a commit.
#[derive(Default)]
pub(super) struct Standing {
    /// The spec of each ReleasePin, by namespace and name.
    pub(super) specs: BTreeMap<String, ReleasePinSpec>,
    /// For each file, the keys of the ReleasePins in it.
    pub(super) held: HashMap<String, BTreeSet<String>>,
    /// The last spec of each removed ReleasePin, by namespace and name.
    pub(super) gone: BTreeMap<String, ReleasePinSpec>,
    /// The removals of ReleasePins, oldest first.
    pub(super) removals: Vec<Removal>,
}

/// A state of a file in git's log: the index of a commit, and the change of the file by that commit.
pub(super) type State<'c> = (usize, &'c Changed);

/// Follows files back through renames. Returns the states of these files in git's log, oldest first, and all paths
/// that the files had.
pub(super) fn back<'c>(
    commits: &'c [Told],
    paths: &'c HashSet<String>,
) -> (Vec<State<'c>>, HashSet<&'c str>) {
    let mut paths: HashSet<&str> = paths.iter().map(String::as_str).collect();
    let mut states = Vec::new();
    if paths.is_empty() {
        return (states, paths);
    }
    for (at, told) in commits.iter().enumerate().rev() {
        for file in &told.commit.files {
            if paths.contains(file.path.as_str()) {
                states.push((at, file));
                paths.extend(file.from.as_deref());
            }
        }
    }
    states.reverse();
    (states, paths)
}

/// Returns the changes of the ReleasePins in files. `known` contains the ReleasePins of blobs that are already
/// parsed.
pub(super) fn changes(
    blobs: Blobs<'_>,
    commits: &[Told],
    states: &[State<'_>],
    standing: &mut Standing,
    namespace: &str,
    known: HashMap<&str, &[Pin]>,
) -> Result<Vec<Change>, GitError> {
    let mut wanted: BTreeSet<&str> = BTreeSet::new();
    for (at, file) in states {
        wanted.extend(file.blob.as_deref());
        let told = commits.get(*at);
        wanted.extend(told.and_then(|told| on_its_side(told, file)?.old.as_deref()));
    }
    let wanted = wanted.into_iter().filter(|id| !known.contains_key(id));
    let wanted: Vec<String> = wanted.map(str::to_owned).collect();
    let mut read: HashMap<&str, Option<Vec<Pin>>> = HashMap::with_capacity(wanted.len());
    blobs(&wanted, &mut |at, text| {
        let id = wanted.get(at).map(String::as_str);
        let pins = text.and_then(|text| read_pins(&text));
        read.extend(id.map(|id| (id, pins)));
    })?;
    // If a state of a file cannot be parsed, it is skipped, so its ReleasePins keep their previous specs.
    let pins_of = |blob: &str| match known.get(blob) {
        Some(pins) => Some(*pins),
        None => read.get(blob)?.as_deref(),
    };
    let own = |pin: &Pin| {
        let own = or_else(&pin.0, namespace).to_owned();
        (pin_key(&own, &pin.1), own)
    };
    let Standing {
        specs,
        held,
        gone,
        removals,
    } = standing;
    let mut found = Vec::new();
    for files in states.chunk_by(|(one, _), (other, _)| one == other) {
        let (mut went, mut came) = (BTreeMap::new(), BTreeSet::new());
        for (at, file) in files {
            let Some(told) = commits.get(*at) else {
                continue;
            };
            let was = held.remove(file.from.as_ref().unwrap_or(&file.path));
            let was = was.unwrap_or_default();
            let pins = match &file.blob {
                None => Some([].as_slice()),
                Some(blob) => pins_of(blob),
            };
            let Some(pins) = pins else {
                held.insert(file.path.clone(), was);
                continue;
            };
            let side = on_its_side(told, file).map(|own| match &own.old {
                None => Some([].as_slice()),
                Some(old) => pins_of(old),
            });
            let mut holds = BTreeSet::new();
            for pin in pins {
                let (key, namespace) = own(pin);
                holds.insert(key.clone());
                let (_, name, spec) = pin;
                if specs.get(&key) == Some(spec) {
                    continue;
                }
                let before = specs.insert(key.clone(), spec.clone());
                found.push(Change {
                    earlier: gone.remove(&key),
                    namespace,
                    name: name.clone(),
                    found: match side.flatten() {
                        None => before.clone(),
                        Some(side) => {
                            let same = side.iter().find(|pin| own(pin).0 == key);
                            same.map(|(_, _, spec)| spec.clone())
                        }
                    },
                    before,
                    after: spec.clone(),
                    at: told.commit.at,
                    commit: told.teller(file).clone(),
                });
            }
            went.extend(was.into_iter().map(|key| (key, told.teller(file))));
            came.extend(holds.iter().cloned());
            held.insert(file.path.clone(), holds);
        }
        for (key, commit) in went {
            if came.contains(&key) || held.values().any(|holds| holds.contains(&key)) {
                continue;
            }
            if let Some(before) = specs.remove(&key) {
                let (_, name) = key.split_once('/').unwrap_or(("", &key));
                removals.push(Removal {
                    name: name.to_owned(),
                    before: before.clone(),
                    commit: commit.clone(),
                });
                gone.insert(key, before);
            }
        }
    }
    Ok(found)
}

/// Returns the change of a file in the merged commit that made it. None if the commit on the branch made the change
/// itself.
fn on_its_side<'t>(told: &'t Told, file: &Changed) -> Option<&'t Changed> {
    let teller = told.teller(file);
    if Arc::ptr_eq(teller, &told.commit) {
        return None;
    }
    let mut files = teller.files.iter();
    files.find(|own| own.path == file.path)
}

/// Parses the ReleasePins of a file. None if the file cannot be parsed.
pub(super) fn read_pins(bytes: &[u8]) -> Option<Vec<Pin>> {
    if memchr::memmem::find(bytes, b"ReleasePin").is_none() {
        return Some(Vec::new());
    }
    let objects = manifest::objects(bytes).ok()?.into_iter();
    let pins = objects.filter(|value| manifest::is_a("ReleasePin", value));
    let pins = pins.filter_map(|value| {
        let text = |field: &str| {
            let text = value["metadata"][field].as_str();
            text.unwrap_or_default().to_owned()
        };
        let spec = serde_json::from_value(value["spec"].clone()).ok()?;
        Some((text("namespace"), text("name"), spec))
    });
    Some(pins.collect())
}
