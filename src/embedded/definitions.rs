//! What the server itself writes about a CustomResourceDefinition: names accepted, established.
//!
//! A real server does this in the background; here it is true as soon as it is stored.

use serde_json::{Value, json};

use super::apply::{self, Manager, Operation};
use super::catalog::{DEFINITIONS, Resource};
use super::status::{Cause, Failure};

/// The finalizer that lets a definition go only after its objects.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Completes and checks a new definition; other kinds pass untouched.
pub fn establish(resource: &Resource, object: &mut Value, now: &str) -> Result<(), Failure> {
    if &*resource.storage != DEFINITIONS {
        return Ok(());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = text(&object["metadata"]["name"]);
    let (plural, group) = (
        text(&object["spec"]["names"]["plural"]),
        text(&object["spec"]["group"]),
    );
    let mut causes = Vec::new();
    if name != format!("{plural}.{group}") {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group"),
            field: "metadata.name".into(),
        });
    }
    let stored: Vec<String> = object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true)
        .map(|version| text(&version["name"]))
        .collect();
    if stored.len() != 1 {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: {}: must have exactly one version marked as storage version",
                object["spec"]["versions"]
            ),
            field: "spec.versions".into(),
        });
    }
    if !causes.is_empty() {
        return Err(Failure::invalid(&resource.subject, &name, causes));
    }
    complete_names(object);
    // What the creation itself put there belongs to no field manager.
    object["status"] = json!({
        "acceptedNames": {"kind": "", "plural": ""},
        "conditions": [],
        "storedVersions": stored,
    });
    let before = object.clone();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason,
            "message": message, "lastTransitionTime": now,
        })
    };
    object["status"] = json!({
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": object["spec"]["names"],
        "storedVersions": stored,
    });
    let manager = Manager {
        name: "kube-apiserver",
        operation: Operation::Update,
        api_version: &resource.api_version(),
        subresource: Some("status"),
        time: now,
        reset_fields: &["spec"],
    };
    apply::track_update(&resource.schema, Some(&before), object, &manager);
    Ok(())
}

/// Keeps what the server says about a definition in step with a changed one.
pub fn reestablish(resource: &Resource, old: &Value, object: &mut Value) {
    if &*resource.storage != DEFINITIONS || old["spec"] == object["spec"] {
        return;
    }
    complete_names(object);
    object["status"]["acceptedNames"] = object["spec"]["names"].clone();
    let stored = object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone());
    if let (Some(stored), Some(list)) = (stored, object["status"]["storedVersions"].as_array_mut())
        && !list.contains(&stored)
    {
        list.push(stored);
    }
}

fn complete_names(object: &mut Value) {
    let kind = object["spec"]["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let names = &mut object["spec"]["names"];
    if names["singular"].as_str().unwrap_or_default().is_empty() {
        names["singular"] = kind.to_lowercase().into();
    }
    if names["listKind"].as_str().unwrap_or_default().is_empty() {
        names["listKind"] = format!("{kind}List").into();
    }
    if !object["spec"]["conversion"].is_object() {
        object["spec"]["conversion"] = json!({"strategy": "None"});
    }
}
