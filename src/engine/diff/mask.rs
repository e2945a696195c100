//! What must never be shown: the values of Secrets, wherever a Secret stands in an object.

use serde_json::{Map, Value};

/// Stands for a value of a Secret.
pub(super) const MASK: &str = "***";
/// Stands for a value of a Secret that was another one before.
pub(super) const MASK_CHANGED: &str = "*** (changed)";
/// What `kubectl apply` keeps: the whole object as text, with every value of a Secret.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Tells whether a map is a Secret, wherever it stands.
pub(super) fn is_secret(map: &Map<String, Value>) -> bool {
    map.get("kind").and_then(Value::as_str) == Some("Secret")
}

/// Tells whether the items of a map are Secrets that need not say so themselves.
pub(super) fn is_secret_list(map: &Map<String, Value>) -> bool {
    map.get("kind").and_then(Value::as_str) == Some("SecretList")
}

/// Tells whether a field of a Secret carries its values.
pub(super) fn is_secret_field(key: &str) -> bool {
    matches!(key, "data" | "stringData")
}

/// Tells whether an annotation may be shown: only where it names its kind and holds no Secret.
pub(super) fn is_open_annotation(text: &Value) -> bool {
    let parsed = text.as_str().map(serde_json::from_str::<Value>);
    matches!(parsed, Some(Ok(value)) if value.get("kind").is_some_and(Value::is_string) && !holds_secret(&value))
}

fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            is_secret(map)
                || is_secret_list(map)
                || map
                    .iter()
                    .any(|(key, value)| key == LAST_APPLIED || holds_secret(value))
        }
        Value::Array(list) => list.iter().any(holds_secret),
        _ => false,
    }
}

/// Copies a value with the values of every Secret masked; `secret` when the value is one by its place.
pub(super) fn masked(value: &Value, secret: bool) -> Value {
    match value {
        Value::Object(map) => {
            let secret = secret || is_secret(map);
            let list = is_secret_list(map);
            let entries = map.iter().map(|(key, value)| {
                let shown = match key.as_str() {
                    field if secret && is_secret_field(field) => values(value),
                    LAST_APPLIED if !is_open_annotation(value) => MASK.into(),
                    field => masked(value, list && field == "items"),
                };
                (key.clone(), shown)
            });
            Value::Object(entries.collect())
        }
        Value::Array(list) => list.iter().map(|item| masked(item, secret)).collect(),
        scalar => scalar.clone(),
    }
}

/// Masks what stands under `data` or `stringData`: keys stay, values do not.
pub(super) fn values(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let entries = map.keys().map(|key| (key.clone(), Value::from(MASK)));
            Value::Object(entries.collect())
        }
        Value::Null => Value::Null,
        _ => MASK.into(),
    }
}
