//! The messages about broken CEL rules, in kube-apiserver's words.

use std::fmt;

use bounded_cel::double_text;
use serde_json::Value;

/// What the message about a violation shows of the value.
#[derive(Debug, Clone, PartialEq)]
pub enum ViolationValue {
    /// The message shows no value, because a whole object or list would be too long.
    Omitted,
    /// The message shows the value.
    Value(Value),
    /// The message shows only the type of the value, because the evaluation of the rule failed.
    TypeName(String),
}

/// The violation of one CEL rule by a value.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The path of the value, such as `spec.addons[0].gitRef`; empty for the whole object.
    pub path: String,
    /// The message of the rule, or the default message.
    pub message: String,
    /// The reason code: `FieldValueInvalid`, `FieldValueForbidden`, `FieldValueRequired` or
    /// `FieldValueDuplicate`.
    pub reason: String,
    /// The type of the value in the schema.
    pub type_name: String,
    /// What the message shows of the value.
    pub value: ViolationValue,
}

impl Violation {
    /// Returns the path of the field for messages; `<nil>` for the whole object.
    pub fn field(&self) -> &str {
        match self.path.as_str() {
            "" => "<nil>",
            path => path,
        }
    }

    /// Returns the message without the field, such as `Invalid value: "x": must not change`. It is the
    /// message of a cause in a Status.
    pub fn body(&self) -> String {
        let (kind, shows_value, detail) = match self.reason.as_str() {
            "FieldValueForbidden" => ("Forbidden", false, self.message.as_str()),
            "FieldValueRequired" => ("Required value", false, self.message.as_str()),
            "FieldValueDuplicate" => ("Duplicate value", true, ""),
            _ => ("Invalid value", true, self.message.as_str()),
        };
        let mut body = kind.to_owned();
        match &self.value {
            ViolationValue::Value(value) if shows_value => {
                body.push_str(&format!(": {}", shown(value)))
            }
            ViolationValue::TypeName(name) if shows_value => {
                body.push_str(&format!(": \"{name}\""))
            }
            _ => {}
        }
        if !detail.is_empty() {
            body.push_str(": ");
            body.push_str(detail);
        }
        body
    }
}

/// Formats the violation as kube-apiserver does: `spec: Invalid value: must not change`.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field(), self.body())
    }
}

/// Formats a value as Go's `%v` or `%q` does.
fn shown(value: &Value) -> String {
    match value {
        Value::Number(number) if !number.is_i64() => {
            double_text(number.as_f64().unwrap_or(f64::NAN))
        }
        Value::String(text) => {
            let mut out = String::from("\"");
            for c in text.chars() {
                match c {
                    '"' | '\\' => out.extend(['\\', c]),
                    '\n' => out.push_str("\\n"),
                    '\r' => out.push_str("\\r"),
                    '\t' => out.push_str("\\t"),
                    c if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", u32::from(c))),
                    c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
                    c => out.push(c),
                }
            }
            out.push('"');
            out
        }
        value => value.to_string(),
    }
}
