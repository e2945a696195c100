//! What a broken rule says, worded as a real server does.

use std::fmt;

use serde_json::Value;

use crate::cel::double_text;

/// What a violated rule shows of the value that it is about.
#[derive(Debug, Clone, PartialEq)]
pub enum ViolationValue {
    /// Nothing: a whole object or list would be too long.
    Omitted,
    /// The value itself.
    Value(Value),
    /// Only its type, when the rule itself failed.
    TypeName(String),
}

/// A rule that an object breaks.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// Where, as in `spec.addons[0].gitRef`; empty for the object itself.
    pub path: String,
    /// What the rule says.
    pub message: String,
    /// `FieldValueInvalid`, `FieldValueForbidden`, `FieldValueRequired` or `FieldValueDuplicate`.
    pub reason: String,
    /// The type of the value by its schema.
    pub type_name: String,
    /// What the answer shows of the value.
    pub value: ViolationValue,
}

impl Violation {
    /// The name of the field as the answer words it.
    pub fn field(&self) -> &str {
        match self.path.as_str() {
            "" => "<nil>",
            path => path,
        }
    }

    /// The wording behind the field, as in `Invalid value: "x": must not change`; the message
    /// of a cause in a Status.
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

/// As a real server words it: `spec: Invalid value: must not change`.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field(), self.body())
    }
}

/// A value as Go's `%v` and `%q` write it.
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
