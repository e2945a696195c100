//! Reads kustomizations: which files they name as resources and patches, and whether they rename objects or set a
//! namespace.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::identity::{PINS, RELEASES};
use super::index::{Held, Index, Known};
use super::is_in;

/// Records in `known` which files a kustomization names. The paths become relative to the root of the work tree.
pub(super) fn read(path: &str, value: &Value, known: &mut Known) {
    let add = |into: &mut Vec<String>, named: &Value| {
        if let Some(named) = named.as_str().filter(|text| !text.contains('\n')) {
            into.extend(beside(path, named));
        }
    };
    let list = |field: &str| value[field].as_array().into_iter().flatten();
    for field in ["patches", "patchesJson6902"] {
        list(field).for_each(|patch| add(&mut known.patches, &patch["path"]));
    }
    list("patchesStrategicMerge").for_each(|patch| add(&mut known.patches, patch));
    for field in ["resources", "components", "bases"] {
        list(field).for_each(|resource| add(&mut known.resources, resource));
    }
    let is_given = |field: &&str| value[*field].as_str().is_some_and(|text| !text.is_empty());
    known.renames = ["namePrefix", "nameSuffix"].iter().any(is_given);
    let namespace = value["namespace"].as_str().filter(|text| !text.is_empty());
    known.moves_to = namespace.map(str::to_owned);
}

/// Converts a path that is relative to a file to a path from the root of the work tree. None if the path leads out of
/// the work tree.
fn beside(path: &str, named: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in named.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns two sets: the files that kustomizations name as patches, and the files that they name as resources.
pub(super) fn named(files: &BTreeMap<String, Known>) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let patches = files.values().flat_map(|known| &known.patches);
    let resources = files.values().flat_map(|known| &known.resources);
    (
        patches.map(String::as_str).collect(),
        resources.map(String::as_str).collect(),
    )
}

/// Returns the kustomizations that rename ReleasePins or releases. Each comes with the path of one file that it
/// affects.
pub(super) fn renaming(index: &Index) -> Vec<(&str, &str)> {
    let renames = index.files.iter().filter(|(_, known)| known.renames);
    renames
        .filter_map(|(path, known)| Some((path.as_str(), affected(index, known, |_| true)?)))
        .collect()
}

/// Returns the kustomizations that set another namespace for ReleasePins or releases than their files have. Each
/// comes with the path of one file that it affects, and with the new namespace.
pub(super) fn moving(index: &Index) -> Vec<(&str, &str, &str)> {
    let files = index.files.iter();
    let moving = files.filter_map(|(path, known)| {
        let namespace = known.moves_to.as_deref()?;
        let file = affected(index, known, |held| {
            held.says_namespace && held.namespace != namespace
        })?;
        Some((path.as_str(), file, namespace))
    });
    moving.collect()
}

/// Returns a file among the resources of a kustomization that contains a ReleasePin or release for which `is_such` is
/// true. None if there is none.
fn affected<'i>(
    index: &'i Index,
    kustomization: &Known,
    is_such: impl Fn(&Held) -> bool,
) -> Option<&'i str> {
    let mut holding = index.files.iter().filter(|(_, known)| {
        let mut objects = known.objects.iter();
        objects.any(|held| [PINS, RELEASES].contains(&held.resource.as_str()) && is_such(held))
    });
    let found = holding.find(|(path, _)| {
        let mut resources = kustomization.resources.iter();
        resources.any(|resource| is_in(resource, path))
    });
    found.map(|(path, _)| path.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_kustomization() {
        for (path, named, expected) in [
            ("kustomization.yaml", "a.yaml", Some("a.yaml")),
            ("o/prod/kustomization.yaml", "../../base", Some("base")),
            ("o/kustomization.yaml", "./x//y.yaml", Some("o/x/y.yaml")),
            ("kustomization.yaml", "../outside.yaml", None),
        ] {
            assert_eq!(beside(path, named).as_deref(), expected, "{path} {named}");
        }
    }
}
