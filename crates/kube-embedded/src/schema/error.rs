//! An error in a field of an object, with the reason and message of kube-apiserver.

use std::fmt::Display;

use serde_json::Value;

use super::go::{go_json, quoted, shown};

/// An error in one field of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldError {
    /// The path of the field, such as `spec.list[0].name`.
    pub path: String,
    /// The kind of error, for `status.details.causes[].reason`.
    pub reason: Reason,
    /// The text about the error, for `status.details.causes[].message`.
    pub message: String,
}

impl Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// The kinds of errors in a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// A required field is missing.
    FieldValueRequired,
    /// The value of a field breaks a rule.
    FieldValueInvalid,
    /// The value of a field has the wrong type.
    FieldValueTypeInvalid,
    /// The value of a field is not one of the allowed values.
    FieldValueNotSupported,
    /// A key of a map or an item of a list occurs twice.
    FieldValueDuplicate,
    /// A string is too long.
    FieldValueTooLong,
    /// A list or a map has too many entries.
    FieldValueTooMany,
    /// The field must not be set.
    FieldValueForbidden,
}

impl Reason {
    /// Returns the name of this reason in the Kubernetes API.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::FieldValueRequired => "FieldValueRequired",
            Reason::FieldValueInvalid => "FieldValueInvalid",
            Reason::FieldValueTypeInvalid => "FieldValueTypeInvalid",
            Reason::FieldValueNotSupported => "FieldValueNotSupported",
            Reason::FieldValueDuplicate => "FieldValueDuplicate",
            Reason::FieldValueTooLong => "FieldValueTooLong",
            Reason::FieldValueTooMany => "FieldValueTooMany",
            Reason::FieldValueForbidden => "FieldValueForbidden",
        }
    }
}

impl FieldError {
    pub(super) fn new(path: impl Display, reason: Reason, message: String) -> FieldError {
        let path = path.to_string();
        let path = path.strip_prefix('.').unwrap_or(&path);
        FieldError {
            path: if path.is_empty() {
                "<nil>".to_owned()
            } else {
                path.to_owned()
            },
            reason,
            message,
        }
    }

    pub(super) fn invalid(path: impl Display, value: &Value, detail: &str) -> FieldError {
        let message = format!("Invalid value: {}: {detail}", shown(value));
        FieldError::new(path, Reason::FieldValueInvalid, message)
    }

    /// Creates the error for a missing required field. `detail` is added to the message unless it is empty.
    pub fn required(path: impl Display, detail: &str) -> FieldError {
        let message = if detail.is_empty() {
            "Required value".to_owned()
        } else {
            format!("Required value: {detail}")
        };
        FieldError::new(path, Reason::FieldValueRequired, message)
    }

    pub(super) fn too_many(path: impl Display, actual: usize, most: u64) -> FieldError {
        let items = if most == 1 { "item" } else { "items" };
        let message = format!("Too many: {actual}: must have at most {most} {items}");
        FieldError::new(path, Reason::FieldValueTooMany, message)
    }

    pub(super) fn duplicate(path: impl Display, value: &Value) -> FieldError {
        let message = format!("Duplicate value: {}", shown(value));
        FieldError::new(path, Reason::FieldValueDuplicate, message)
    }

    pub(super) fn unsupported(path: impl Display, value: &Value, allowed: &[Value]) -> FieldError {
        let allowed: Vec<String> = allowed
            .iter()
            .map(|v| match v {
                Value::String(text) => quoted(text),
                other => quoted(&go_json(other)),
            })
            .collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            shown(value),
            allowed.join(", ")
        );
        FieldError::new(path, Reason::FieldValueNotSupported, message)
    }
}
