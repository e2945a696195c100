//! Masks the values of Secrets, so that no diff shows them. A Secret may be at any place in an object, for example in
//! a list or a template.

use serde_json::{Map, Value};

/// The text that is shown instead of a value of a Secret.
pub(super) const MASK: &str = "***";
/// The text that is shown instead of a value of a Secret that the diff changes.
pub(super) const MASK_CHANGED: &str = "*** (changed)";
/// The name of the annotation that `kubectl apply` writes. For a Secret, it contains all secret values, because it
/// contains the whole object as JSON.
pub(super) const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether a JSON map is a Secret or a list of Secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// The map is no Secret.
    Open,
    Secret,
    /// The map is a SecretList. Its items are Secrets, even if an item has no kind.
    List,
}

impl Secrecy {
    pub(super) fn of(map: &Map<String, Value>) -> Self {
        match map.get("kind") {
            Some(Value::String(kind)) if kind == "Secret" => Self::Secret,
            Some(Value::String(kind)) if kind == "SecretList" => Self::List,
            _ => Self::Open,
        }
    }
}

/// Returns whether a field of a Secret contains secret values.
pub(super) fn is_secret_field(key: &str) -> bool {
    matches!(key, "data" | "stringData")
}

/// Returns whether the diff may show the annotation of `kubectl apply`. This is the case if the annotation contains
/// an object with a kind, and no Secret.
pub(super) fn is_open_annotation(text: &Value) -> bool {
    let parsed = text.as_str().map(serde_json::from_str::<Value>);
    matches!(parsed, Some(Ok(value)) if value.get("kind").is_some_and(Value::is_string) && !holds_secret(&value))
}

fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Object(map) => {
            Secrecy::of(map) != Secrecy::Open
                || map
                    .iter()
                    .any(|(key, value)| key == LAST_APPLIED || holds_secret(value))
        }
        Value::Array(list) => list.iter().any(holds_secret),
        _ => false,
    }
}

/// Copies a value and masks the values of all Secrets in it. `secret` says whether the value itself is part of a
/// Secret.
pub(super) fn masked(value: &Value, secret: bool) -> Value {
    match value {
        Value::Object(map) => {
            let own = Secrecy::of(map);
            let (secret, list) = (secret || own == Secrecy::Secret, own == Secrecy::List);
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

/// Masks the values of a Secret's `data` or `stringData` map. The keys stay visible.
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
