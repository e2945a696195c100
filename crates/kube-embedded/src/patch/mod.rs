//! Applies the patches of clients: JSON patch, merge patch and strategic merge patch. Server-side apply is in
//! `apply`.
//!
//! The functions only change JSON values. The caller must decode the result, set its defaults and validate it. A
//! [`PatchError`] contains the answer for the client.

mod json;
mod strategic;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub use json::json_patch;
pub use strategic::strategic_merge;

/// The largest number of operations in one JSON patch.
pub const MAX_OPERATIONS: usize = 10_000;
/// The largest number of bytes that the copy operations of one JSON patch may add to an object.
pub const MAX_COPIED: usize = 3 << 20;

/// The largest nesting depth of a value while a JSON patch is applied. The limit for the resulting object is lower
/// (see `object`).
pub const MAX_DEPTH: usize = 256;

/// The reason why a patch of a client could not be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch does not have the format that its media type requires. Contains the message.
    #[error("{0}")]
    Malformed(String),
    /// An operation of a JSON patch cannot be applied to this object.
    #[error("operation {index} of the JSON patch does not apply: {why}")]
    DoesNotApply {
        /// The index of the failed operation in the patch, counted from 0.
        index: usize,
        /// The reason why the operation failed, in words.
        why: String,
    },
    /// A JSON patch has more than [`MAX_OPERATIONS`] operations. Contains their number.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooManyOperations(usize),
    /// The object does not support this strategic merge patch. Contains the message.
    #[error("{0}")]
    Unsupported(String),
    /// A strategic merge patch contradicts itself, or no list item matches it. The API answers 500, as kube-apiserver
    /// does. Contains the message.
    #[error("{0}")]
    Unmergeable(String),
}

impl PatchError {
    /// Returns the HTTP status code and the reason for the Status answer.
    pub fn status(&self) -> (u16, &'static str) {
        match self {
            PatchError::Malformed(_) => (400, "BadRequest"),
            PatchError::DoesNotApply { .. } | PatchError::Unsupported(_) => (422, "Invalid"),
            PatchError::TooManyOperations(_) => (413, "RequestEntityTooLarge"),
            PatchError::Unmergeable(_) => (500, ""),
        }
    }

    /// Returns the message for the Status answer. For a JSON patch, it does not contain why an operation failed, as
    /// in kube-apiserver.
    pub fn message(&self) -> String {
        match self {
            PatchError::DoesNotApply { .. } | PatchError::Unsupported(_) => {
                "the server rejected our request due to an error in our request".to_owned()
            }
            PatchError::TooManyOperations(_) => format!("Request entity too large: {self}"),
            other => other.to_string(),
        }
    }
}

/// Applies a merge patch (RFC 7386): merges objects, removes the fields that are null in the patch, and
/// replaces all other values.
pub fn merge_patch(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let patch = match patch {
        Value::Object(patch) => patch,
        Value::Null => return Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
        other => {
            return Err(PatchError::Malformed(format!(
                "error decoding patch: {}",
                not_a_map(other)
            )));
        }
    };
    let mut merged = target.clone();
    merge_into(&mut merged, patch);
    Ok(merged)
}

fn merge_into(target: &mut Value, patch: &Map<String, Value>) {
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else {
        return;
    };
    for (key, value) in patch {
        match value {
            Value::Null => {
                map.remove(key);
            }
            Value::Object(inner) => {
                merge_into(map.entry(key.clone()).or_insert(Value::Null), inner)
            }
            other => {
                let mut value = other.clone();
                without_nulls(&mut value);
                map.insert(key.clone(), value);
            }
        }
    }
}

/// Removes the null fields of all objects inside a value. Null items of lists stay.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn not_a_map(value: &Value) -> String {
    format!(
        "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
        json_kind(value)
    )
}
