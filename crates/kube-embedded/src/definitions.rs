//! Validates CustomResourceDefinitions, and sets the accepted names and the conditions in their status.
//!
//! kube-apiserver sets the conditions later, in the background. This module sets them in the write that creates or
//! changes the definition.

mod naming;
mod rules;
mod structural;

use serde_json::{Value, json};

use super::apply::{self, Manager, Operation};
use super::catalog::{DEFINITIONS, Resource};
use super::object::{map_at, map_of, meta};
use super::origin::NotStored;
use super::status::{Cause, Failure};
use super::{Shared, encode, scale};

/// The finalizer of a CustomResourceDefinition. Because of it, the definition exists until its objects are deleted.
pub const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl Shared {
    /// Validates a new CustomResourceDefinition, and sets its defaults and its status. Does nothing for objects of
    /// other kinds.
    pub(super) async fn establish(
        &self,
        resource: &Resource,
        object: &mut Value,
        now: &str,
    ) -> Result<(), Failure> {
        if &*resource.storage != DEFINITIONS {
            return Ok(());
        }
        complete_names(object);
        let name = meta(object, "name").to_owned();
        let mut causes = misnamed(object);
        causes.extend(without_storage(object));
        causes.extend(nowhere(object));
        causes.extend(misplaced(object));
        causes.extend(unusable(&object["spec"]).await?);
        if !causes.is_empty() {
            return Err(Failure::invalid(&resource.subject, &name, causes));
        }
        let stored: Vec<Value> = storage_version(object).into_iter().collect();
        // No field manager owns this status, because the creation itself sets it.
        let status = json!({
            "acceptedNames": {"kind": "", "plural": ""},
            "conditions": [],
            "storedVersions": stored,
        });
        map_of(object).insert("status".into(), status);
        let before = object.clone();
        accept_names(object, &self.all(DEFINITIONS).await?, now);
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

    /// Validates a changed CustomResourceDefinition, and updates its status. Does nothing for objects of other kinds.
    pub(super) async fn reestablish(
        &self,
        resource: &Resource,
        old: &Value,
        object: &mut Value,
        now: &str,
    ) -> Result<(), Failure> {
        if &*resource.storage != DEFINITIONS || old["spec"] == object["spec"] {
            return Ok(());
        }
        complete_names(object);
        let mut causes: Vec<Cause> = without_storage(object).into_iter().collect();
        if old["spec"]["versions"] != object["spec"]["versions"] {
            causes.extend(misplaced(object));
            causes.extend(unusable(&object["spec"]).await?);
        }
        causes.extend(changed(old, object));
        if !causes.is_empty() {
            let name = meta(old, "name");
            return Err(Failure::invalid(&resource.subject, name, causes));
        }
        let stored = storage_version(object);
        if let (Some(stored), Some(Value::Array(list))) =
            (stored, object.pointer_mut("/status/storedVersions"))
            && !list.contains(&stored)
        {
            list.push(stored);
        }
        if old["spec"]["names"] != object["spec"]["names"] {
            accept_names(object, &self.all(DEFINITIONS).await?, now);
        }
        Ok(())
    }

    /// After the deletion of a definition, updates the definitions of the same group that wanted its names.
    pub(super) async fn free_names(
        &self,
        resource: &Resource,
        group: &Value,
        now: &str,
    ) -> Result<(), Failure> {
        let mut all = self.all(DEFINITIONS).await?;
        for at in 0..all.len() {
            let waits = |definition: &Value| {
                definition["spec"]["group"] == *group
                    && condition(definition, "NamesAccepted") == Some("False")
            };
            let Some(name) = all.get(at).filter(|d| waits(d)).map(|d| meta(d, "name")) else {
                continue;
            };
            let Some(row) = self.store.get(&resource.key("", name)).await? else {
                continue;
            };
            let old = encode::value(resource, &row)?;
            let mut object = old.clone();
            accept_names(&mut object, &all, now);
            if object == old {
                continue;
            }
            match self.put(resource, &old, &object, Vec::new()).await {
                // A conflict is ignored, because the other writer has checked the names too.
                Ok(_) | Err(NotStored::Conflict) => {}
                Err(NotStored::Failed(failure)) => return Err(failure),
            }
            if let Some(place) = all.get_mut(at) {
                *place = object;
            }
        }
        Ok(())
    }
}

/// Returns whether clients can use the objects of a definition.
pub fn is_established(definition: &Value) -> bool {
    condition(definition, "Established") != Some("False")
}

fn condition<'a>(definition: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = definition["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|found| found["type"] == kind)?;
    found["status"].as_str()
}

/// Checks whether other definitions already use the names of a definition, and writes the accepted names and the
/// conditions to its status.
fn accept_names(object: &mut Value, others: &[Value], now: &str) {
    let naming = naming::of(object, others);
    let names = match &naming.conflict {
        None => ("True", "NoConflicts", "no conflicts found"),
        Some((reason, message)) => ("False", *reason, message.as_str()),
    };
    set_condition(object, "NamesAccepted", names, now);
    // A definition that is already established keeps this condition, because it may have objects.
    if condition(object, "Established") != Some("True") {
        let established = match naming.conflict {
            None => (
                "True",
                "InitialNamesAccepted",
                "the initial names have been accepted",
            ),
            Some(_) => ("False", "NotAccepted", "not all names are accepted"),
        };
        set_condition(object, "Established", established, now);
    }
    map_at(object, "status").insert("acceptedNames".into(), naming.accepted);
}

fn set_condition(object: &mut Value, kind: &str, said: (&str, &str, &str), now: &str) {
    let (status, reason, message) = said;
    let before = condition(object, kind).map(str::to_owned);
    let conditions = map_at(object, "status")
        .entry("conditions")
        .or_insert(Value::Null);
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Value::Array(list) = conditions else {
        return;
    };
    let found = list.iter_mut().find(|found| found["type"] == kind);
    let since = match &found {
        Some(found) if before.as_deref() == Some(status) => found["lastTransitionTime"].clone(),
        _ => now.into(),
    };
    let said = json!({
        "type": kind, "status": status, "reason": reason,
        "message": message, "lastTransitionTime": since,
    });
    match found {
        Some(found) => *found = said,
        None => list.push(said),
    }
}

/// Returns the errors in the schemas of a definition. The check runs on a blocking thread, because it compiles CEL
/// rules, which is slow.
async fn unusable(spec: &Value) -> Result<Vec<Cause>, Failure> {
    let spec = spec.clone();
    tokio::task::spawn_blocking(move || structural::check(&spec))
        .await
        .map_err(Failure::internal)
}

fn misnamed(object: &Value) -> Vec<Cause> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let name = meta(object, "name");
    let (plural, group) = (
        text(&object["spec"]["names"]["plural"]),
        text(&object["spec"]["group"]),
    );
    if name == format!("{plural}.{group}") {
        return Vec::new();
    }
    vec![Cause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {name:?}: must be spec.names.plural+\".\"+spec.group"),
        field: "metadata.name".into(),
    }]
}

fn without_storage(object: &Value) -> Option<Cause> {
    let versions = &object["spec"]["versions"];
    let stored = versions
        .as_array()
        .into_iter()
        .flatten()
        .filter(|version| version["storage"] == true);
    (stored.count() != 1).then(|| Cause {
        reason: "FieldValueInvalid".into(),
        message: format!(
            "Invalid value: {versions}: must have exactly one version marked as storage version"
        ),
        field: "spec.versions".into(),
    })
}

fn nowhere(object: &Value) -> Option<Cause> {
    let scope = &object["spec"]["scope"];
    (scope != "Cluster" && scope != "Namespaced").then(|| match scope {
        Value::Null => Cause {
            reason: "FieldValueRequired".into(),
            message: "Required value".into(),
            field: "spec.scope".into(),
        },
        scope => Cause {
            reason: "FieldValueNotSupported".into(),
            message: format!(
                "Unsupported value: {scope}: supported values: \"Cluster\", \"Namespaced\""
            ),
            field: "spec.scope".into(),
        },
    })
}

/// Returns an error for each invalid path in the subresource `scale` of a definition.
fn misplaced(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let versions = object["spec"]["versions"].as_array();
    for (at, version) in versions.into_iter().flatten().enumerate() {
        let scale = &version["subresources"]["scale"];
        if !scale.is_object() {
            continue;
        }
        for (field, below) in [
            ("specReplicasPath", "spec"),
            ("statusReplicasPath", "status"),
        ] {
            let path = scale[field].as_str().unwrap_or_default();
            if scale::is_place(path, below) {
                continue;
            }
            let (reason, message) = match path {
                "" => ("FieldValueRequired", "Required value".to_owned()),
                path if path.split('.').count() > scale::MOST_STEPS => (
                    "FieldValueInvalid",
                    format!(
                        "Invalid value: {path:?}: should name at most {} fields",
                        scale::MOST_STEPS - 1
                    ),
                ),
                path => (
                    "FieldValueInvalid",
                    format!("Invalid value: {path:?}: should be a json path under .{below}"),
                ),
            };
            causes.push(Cause {
                reason: reason.into(),
                message,
                field: format!("spec.versions[{at}].subresources.scale.{field}"),
            });
        }
    }
    causes
}

/// Returns an error for each changed field of a definition that must stay the same, because it determines where the
/// objects are stored.
fn changed(old: &Value, object: &Value) -> Vec<Cause> {
    let established = condition(old, "Established") == Some("True");
    [
        ("/spec/scope", "spec.scope", !established),
        ("/spec/names/kind", "spec.names.kind", !established),
        ("/spec/group", "spec.group", false),
        ("/spec/names/plural", "spec.names.plural", false),
    ]
    .into_iter()
    .filter(|(pointer, _, free)| !free && old.pointer(pointer) != object.pointer(pointer))
    .map(|(pointer, field, _)| Cause {
        reason: "FieldValueInvalid".into(),
        message: format!(
            "Invalid value: {}: field is immutable",
            object.pointer(pointer).unwrap_or(&Value::Null)
        ),
        field: field.into(),
    })
    .collect()
}

fn storage_version(object: &Value) -> Option<Value> {
    object["spec"]["versions"]
        .as_array()
        .into_iter()
        .flatten()
        .find(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
}

fn complete_names(object: &mut Value) {
    let kind = object["spec"]["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let spec = map_at(object, "spec");
    let names = map_of(spec.entry("names").or_insert(Value::Null));
    for (field, name) in [
        ("singular", kind.to_lowercase()),
        ("listKind", format!("{kind}List")),
    ] {
        let given = names.get(field).and_then(Value::as_str);
        if given.unwrap_or_default().is_empty() {
            names.insert(field.into(), name.into());
        }
    }
    let conversion = spec.entry("conversion").or_insert(Value::Null);
    if !conversion.is_object() {
        *conversion = json!({"strategy": "None"});
    }
}
