//! Kustomizations: the files of resources and of patches that they name, and whether they rename objects.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::index::{Index, Known};
use super::sync::{PINS, RELEASES};

/// Notes what a kustomization names; paths are from the root.
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
}

/// Returns the path of what a file names relative to itself; None where that is outside of the root.
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

/// Returns the files that kustomizations name as patches, or as resources.
pub(super) fn named(files: &BTreeMap<String, Known>) -> (BTreeSet<&str>, BTreeSet<&str>) {
    let patches = files.values().flat_map(|known| &known.patches);
    let resources = files.values().flat_map(|known| &known.resources);
    (
        patches.map(String::as_str).collect(),
        resources.map(String::as_str).collect(),
    )
}

/// Lists the kustomizations that rename ReleasePins or Releases, each with a file of these.
pub(super) fn renaming(index: &Index) -> Vec<(&str, &str)> {
    let renames = index.files.iter().filter(|(_, known)| known.renames);
    let renamed = |known: &Known| {
        let mut holding = index.files.iter().filter(|(_, known)| {
            let mut objects = known.objects.iter();
            objects.any(|held| [PINS, RELEASES].contains(&held.resource.as_str()))
        });
        let found = holding.find(|(path, _)| {
            let mut resources = known.resources.iter();
            resources.any(|resource| {
                let rest = path.strip_prefix(resource.as_str());
                rest.is_some_and(|rest| {
                    rest.is_empty() || rest.starts_with('/') || resource.is_empty()
                })
            })
        });
        found.map(|(path, _)| path.as_str())
    };
    renames
        .filter_map(|(path, known)| Some((path.as_str(), renamed(known)?)))
        .collect()
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
