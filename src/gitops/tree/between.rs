//! Compares a commit with the work tree, and returns the ReleasePins, releases and marks that differ.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;

use super::identity::{PINS, RELEASES};
use super::moves::blob_limits;
use super::read::read_within_limit;
use super::{Tree, is_manifest, kustomize, manifest};
use crate::api::labels;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::openchoreo::release::{Mark, Verdict};
use crate::git::{Blob, GitError};

/// The namespace and the name of an object.
type Name = (String, String);

/// An object in the commit, and the same object in the work tree. None on a side that does not have the object.
pub type Sides<T> = (Option<T>, Option<T>);

/// The objects that differ between a commit and the work tree, by namespace and name.
#[derive(Debug)]
pub struct Between {
    /// The ReleasePins that differ between the commit and the work tree.
    pub pins: BTreeMap<Name, Sides<ReleasePinSpec>>,
    /// The releases whose specs differ between the commit and the work tree.
    pub releases: BTreeMap<Name, Sides<Value>>,
    /// The marks of releases in the commit and in the work tree, also if they are equal.
    pub marks: BTreeMap<Name, Sides<Noted>>,
    /// One text for each file of the commit that mentions an API group of bowline but is too large to read.
    pub unread: Vec<String>,
}

/// The mark of a release, with the note of its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Noted {
    pub verdict: Verdict,
    /// The note of the mark; empty if the author gave none or the mark cannot be parsed.
    pub note: String,
}

impl Noted {
    fn read(annotation: &str) -> Self {
        let mark = serde_json::from_str::<Mark>(annotation).ok();
        Self {
            verdict: Verdict::of_mark(annotation),
            note: mark.and_then(|mark| mark.note).unwrap_or_default(),
        }
    }
}

/// Compares the ReleasePins and releases of a commit with those of the work tree. Reads only files in the directory
/// that the user named.
pub fn between(tree: &Tree, commit: &str) -> Result<Between, GitError> {
    let (work, index, namespace) = (tree.work(), tree.index(), tree.namespace());
    let (patches, _) = kustomize::named(&index.files);
    let changed: BTreeSet<String> = work.changed_since(commit)?.into_iter().collect();
    // If a kustomization names a file as a patch now, the objects of the file no longer count. So the file is
    // compared even if it did not change.
    let patched = patches.iter().map(|path| (*path).to_owned());
    let paths: BTreeSet<String> = changed.iter().cloned().chain(patched).collect();
    let names: Vec<String> = paths
        .iter()
        .map(|path| format!("{commit}:{path}"))
        .collect();
    let (mut before, mut after) = (Side::default(), Side::default());
    let paths: Vec<String> = paths.into_iter().collect();
    let mut unread = Vec::new();
    work.each_blob(&names, blob_limits(), &mut |at, blob| {
        let Some(path) = paths.get(at) else {
            return;
        };
        let known = index.files.get(path);
        if !is_manifest(path) || known.is_some_and(|known| known.template) {
            return;
        }
        if let Blob::TooLarge { size, has_word } = blob
            && has_word
        {
            let error = bounded_yaml::YamlError::TooLarge {
                origin: format!("{path} in {commit}"),
                size,
                limit: blob_limits().bytes,
            };
            unread.push(error.to_string());
        }
        before.read(&namespace, &blob.whole().unwrap_or_default());
        if known.is_some() && !patches.contains(path.as_str()) {
            // A file that cannot be read counts as empty, because another check reports it.
            let now = read_within_limit(&work.root().join(path));
            after.read(&namespace, &now.unwrap_or_default());
        }
    })?;
    // The object may also be in a file that did not change; then it was not removed.
    let stays = |resource: &str, (namespace, name): &Name| {
        let place = tree.place(resource, namespace, name);
        place.is_some_and(|place| !changed.contains(&place.path))
    };
    Ok(Between {
        unread,
        pins: differing(before.pins, after.pins, |name| stays(PINS, name)),
        releases: differing(before.releases, after.releases, |name| {
            stays(RELEASES, name)
        }),
        marks: differing(before.marks, after.marks, |name| stays(RELEASES, name)),
    })
}

/// The objects on one side of the comparison: in the commit or in the work tree.
#[derive(Default)]
struct Side {
    pins: BTreeMap<Name, ReleasePinSpec>,
    releases: BTreeMap<Name, Value>,
    marks: BTreeMap<Name, Noted>,
}

impl Side {
    fn read(&mut self, namespace: &str, bytes: &[u8]) {
        // A file of the commit that cannot be parsed counts as a file without objects.
        for value in manifest::objects(bytes).unwrap_or_default() {
            let said = |field: &str| value["metadata"][field].as_str().unwrap_or_default();
            let namespace = match said("namespace") {
                "" => namespace,
                own => own,
            };
            let name = (namespace.to_owned(), said("name").to_owned());
            if manifest::is_a("ReleasePin", &value) {
                let spec = ReleasePinSpec::deserialize(&value["spec"]);
                self.pins.extend(spec.ok().map(|spec| (name, spec)));
            } else if manifest::is_a("Release", &value) {
                let mark = value["metadata"]["annotations"][labels::MARK].as_str();
                let mark = mark.map(Noted::read);
                self.marks.extend(mark.map(|mark| (name.clone(), mark)));
                self.releases.insert(name, value["spec"].clone());
            }
        }
    }
}

fn differing<T: PartialEq>(
    before: BTreeMap<Name, T>,
    mut after: BTreeMap<Name, T>,
    stays: impl Fn(&Name) -> bool,
) -> BTreeMap<Name, Sides<T>> {
    let mut found = BTreeMap::new();
    for (name, before) in before {
        let after = after.remove(&name);
        if after.as_ref() != Some(&before) && (after.is_some() || !stays(&name)) {
            found.insert(name, (Some(before), after));
        }
    }
    let new = after
        .into_iter()
        .map(|(name, after)| (name, (None, Some(after))));
    found.extend(new);
    found
}
