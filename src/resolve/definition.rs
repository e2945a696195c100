//! Converts an object to a definition: checks its kind and name, and removes the fields that a server or a tool adds
//! to it.

use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::Object;
use crate::api::openchoreo::definitions;

/// The reason why an object is not the expected definition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DefinitionError {
    /// The object has no kind, or another kind than expected.
    #[error("expected {wanted}, found {found}")]
    Kind {
        /// The kind that the object has.
        found: String,
        /// The expected kind.
        wanted: String,
    },
    /// The object has no name, or another name than expected.
    #[error("its name is {found:?}, not {wanted:?}")]
    Name {
        /// The name that the object has.
        found: String,
        /// The expected name.
        wanted: String,
    },
    /// The fields of the object do not match its kind. Contains the error.
    #[error("{0}")]
    Fields(String),
}

/// Converts an object to the definition type `K`. Adds a warning to `warnings` for each field that the type does not
/// have.
pub fn typed<K>(
    mut object: Object,
    name: &str,
    warnings: &mut Vec<String>,
) -> Result<K, DefinitionError>
where
    K: Resource<DynamicType = ()> + DeserializeOwned + Serialize,
{
    let said = |field| object.get(field).and_then(Value::as_str).unwrap_or("");
    let (version, kind) = (said("apiVersion"), said("kind"));
    if version != K::api_version(&()) || kind != K::kind(&()) {
        return Err(DefinitionError::Kind {
            found: match (version, kind) {
                ("", "") => "no Kubernetes object".to_owned(),
                (version, kind) => format!("{kind:?} of {version:?}"),
            },
            wanted: format!("{} of {}", K::kind(&()), K::api_version(&())),
        });
    }
    object.remove("status");
    let before = Value::Object(object);
    let mut definition: K = serde_json::from_value(before.clone())
        .map_err(|error| DefinitionError::Fields(error.to_string()))?;
    let found = definition.meta().name.clone().unwrap_or_default();
    if found != name {
        return Err(DefinitionError::Name {
            found,
            wanted: name.to_owned(),
        });
    }
    *definition.meta_mut() = definitions::essential(definition.meta());
    if let Ok(after) = serde_json::to_value(&definition) {
        let spec = |value: &Value| value.get("spec").cloned().unwrap_or_default();
        unknown("spec", &spec(&before), &spec(&after), warnings);
    }
    Ok(definition)
}

/// Adds a warning for each field that the object `before` has, but the converted object `after` does not.
fn unknown(path: &str, before: &Value, after: &Value, warnings: &mut Vec<String>) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, value) in before {
                let path = format!("{path}.{key}");
                match after.get(key) {
                    Some(after) => unknown(&path, value, after, warnings),
                    None if is_empty(value) => {}
                    None => warnings.push(format!("{path} is not a field and was dropped")),
                }
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            for (at, (before, after)) in before.iter().zip(after).enumerate() {
                unknown(&format!("{path}[{at}]"), before, after, warnings);
            }
        }
        _ => {}
    }
}

/// Returns whether a value means the same as a missing field: null, or an empty list or map.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Addon, Component};
    use serde_json::json;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_a_server_adds_leaves_no_trace() {
        let written = object(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Component",
            "metadata": {"name": "cart", "labels": {"team": "shop"}},
            "spec": {"componentType": "deployment/web-app"},
        }));
        let stored = object(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Component",
            "metadata": {
                "name": "cart", "namespace": "shop", "uid": "1", "resourceVersion": "7", "generation": 2,
                "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"team": "shop"},
                "managedFields": [{"manager": "kubectl"}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
            },
            "spec": {"componentType": "deployment/web-app", "autoDeploy": false, "parameters": {}},
            "status": {"latestRelease": "cart-1"},
        }));
        let mut warnings = Vec::new();
        let written: Component = typed(written, "cart", &mut warnings).unwrap();
        let stored: Component = typed(stored, "cart", &mut warnings).unwrap();
        assert_eq!(written, stored);
        assert_eq!(warnings, Vec::<String>::new());
    }

    #[test]
    fn what_is_no_such_definition_says_why() {
        for (value, why) in [
            (json!({}), "found no Kubernetes object"),
            (json!({"apiVersion": "v1", "kind": "Addon"}), "of \"v1\""),
            (
                json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": "Component"}),
                "expected Addon of openchoreo.dev/v1alpha1",
            ),
            (
                json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": "Addon", "metadata": {"name": "b"}, "spec": {}}),
                "\"b\", not \"a\"",
            ),
            (
                json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": "Addon", "metadata": {"name": "a"}, "spec": {"creates": 3}}),
                "invalid type",
            ),
            (
                json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": "Addon", "metadata": {"name": "a"}}),
                "missing field",
            ),
        ] {
            let error = typed::<Addon>(object(value), "a", &mut Vec::new()).unwrap_err();
            assert!(error.to_string().contains(why), "{error} has no {why:?}");
        }
    }

    #[test]
    fn unknown_fields_are_named() {
        let value = json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Component", "metadata": {"name": "cart"},
            "spec": {
                "componentType": "deployment/web-app", "paramters": {"a": 1}, "nothing": {},
                "parameters": {"anything": {"goes": 1}},
                "addons": [{"name": "pvc", "instanceId": "data", "confg": 1}],
            },
        });
        let mut warnings = Vec::new();
        typed::<Component>(object(value), "cart", &mut warnings).unwrap();
        assert_eq!(
            warnings,
            [
                "spec.addons[0].confg is not a field and was dropped",
                "spec.paramters is not a field and was dropped",
            ]
        );
    }
}
