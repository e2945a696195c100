//! What pins were, as the files of the log say it.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::branch::Told;
use super::{chronicle, manifest};
use crate::api::pin::ReleasePinSpec;
use crate::git::GitError;
use crate::git::log::{Changed, Commit};

/// What a commit made of a pin.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The namespace.
    pub namespace: String,
    /// The name of the pin.
    pub name: String,
    /// What it said on the branch before; None where it was not there.
    pub before: Option<ReleasePinSpec>,
    /// What it said where the commit was made: on the side that a merge brought, another commit of that side
    /// may have come in between.
    pub found: Option<ReleasePinSpec>,
    /// What it says afterwards.
    pub after: ReleasePinSpec,
    /// When it came to the branch.
    pub at: Timestamp,
    /// The commit that says who and why; one commit may change many pins.
    pub commit: Arc<Commit>,
}

impl Change {
    /// Returns the release that a spec let count when the change was made. When it came to the branch, a hold
    /// may have been past its end.
    pub fn counted<'s>(&self, spec: &'s ReleasePinSpec) -> &'s str {
        spec.effective_release(self.commit.written)
    }
}

/// A pin of a file: its namespace as the file says it, its name and its spec.
pub(super) type Pin = (String, String, ReleasePinSpec);

/// Reads blobs, by their ids.
pub(super) type Blobs<'b> = &'b mut dyn FnMut(&[String]) -> Result<Vec<Option<Vec<u8>>>, GitError>;

/// How pins stand after some commit.
#[derive(Default)]
pub(super) struct Standing {
    /// Their specs, by namespace and name.
    pub(super) specs: BTreeMap<String, ReleasePinSpec>,
    /// The pins that files hold, by path.
    pub(super) held: HashMap<String, BTreeSet<String>>,
}

/// A state of a file: the number of the commit that made it, and what that made of it.
pub(super) type State<'c> = (usize, &'c Changed);

/// Follows files back through their renames. Returns their states, oldest first, and every path that they
/// had.
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

/// Lists the changes that commits made to the pins of files; of the blobs in `known` it is known what they
/// hold.
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
    let texts = blobs(&wanted)?.into_iter();
    let read = texts.map(|text| text.and_then(|text| read_pins(&text)));
    let read: HashMap<String, Option<Vec<Pin>>> = wanted.into_iter().zip(read).collect();
    // What could not be read then is no state that anybody had.
    let pins_of = |blob: &str| match known.get(blob) {
        Some(pins) => Some(*pins),
        None => read.get(blob)?.as_deref(),
    };
    let own = |pin: &Pin| {
        let own = chronicle::or_else(&pin.0, namespace).to_owned();
        (chronicle::pin_key(&own, &pin.1), own)
    };
    let Standing { specs, held } = standing;
    let mut found = Vec::new();
    for files in states.chunk_by(|(one, _), (other, _)| one == other) {
        let (mut went, mut came) = (BTreeSet::new(), BTreeSet::new());
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
            went.extend(was);
            came.extend(holds.iter().cloned());
            held.insert(file.path.clone(), holds);
        }
        for key in went.difference(&came) {
            if !held.values().any(|holds| holds.contains(key)) {
                specs.remove(key);
            }
        }
    }
    Ok(found)
}

/// Finds what the commit of a side that tells of a file made of it; None where the branch's own tells.
fn on_its_side<'t>(told: &'t Told, file: &Changed) -> Option<&'t Changed> {
    let teller = told.teller(file);
    if Arc::ptr_eq(teller, &told.commit) {
        return None;
    }
    let mut files = teller.files.iter();
    files.find(|own| own.path == file.path)
}

/// Reads the pins of a file as it was; None where it cannot be read.
pub(super) fn read_pins(bytes: &[u8]) -> Option<Vec<Pin>> {
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
