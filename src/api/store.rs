//! The setup of an embedded store: the kinds, policies and settings that bowline needs in the store.

use kube_embedded::{Objects, Setup, Stamp};
use serde_json::Value;

use super::{WRITTEN_CRDS, crds, labels, policies};

/// Returns the setup of an embedded store: bowline's kinds, its admission policies, and the annotation with
/// the user that the store adds to a changed ReleasePin.
pub fn store_setup() -> Setup {
    let texts = WRITTEN_CRDS.into_iter().chain([policies()]);
    Setup {
        manager: "bowline".to_owned(),
        objects: Objects::lazy(kube_embedded::digest(texts), objects),
        stamps: vec![Stamp {
            group: labels::OPENCHOREO_GROUP.to_owned(),
            plural: "releasepins".to_owned(),
            annotation: labels::CHANGED_BY.to_owned(),
        }],
        ..Setup::default()
    }
}

fn objects() -> Result<Vec<Value>, String> {
    let kinds = crds();
    let kinds = kinds.iter().map(serde_json::to_value);
    let mut objects: Vec<Value> = kinds
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let rules = bounded_yaml::documents("policies.yaml", policies());
    let rules = rules.map_err(|error| error.to_string())?.into_iter();
    // The store itself adds the annotation with the user, so it does not need the mutating policy.
    let validating = rules.map(|document| document.value).filter(|rule| {
        let kind = rule["kind"].as_str();
        kind.is_some_and(|kind| kind.starts_with("Validating"))
    });
    objects.extend(validating);
    Ok(objects)
}
