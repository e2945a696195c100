//! The messages about broken CEL rules, in the words of kube-apiserver.

use std::fmt;

use bounded_cel::double_text;
use serde_json::Value;

/// How the message about a violation shows the wrong value.
#[derive(Debug, Clone, PartialEq)]
pub enum ViolationValue {
    /// The message does not show the value, because a whole object or list would be too long.
    Omitted,
    /// The message shows this value.
    Value(Value),
    /// The message shows only this type of the value, because the evaluation of the rule failed.
    TypeName(String),
}

/// A value that breaks a CEL rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Violation {
    /// The path of the wrong value, such as `spec.addons[0].gitRef`; empty for the whole object.
    pub path: String,
    /// The message of the broken rule, or else the default message.
    pub message: String,
    /// The reason code that the rule declares: `FieldValueInvalid`, `FieldValueForbidden`, `FieldValueRequired` or
    /// `FieldValueDuplicate`.
    pub reason: String,
    /// The type that the schema declares for the value.
    pub type_name: String,
    /// How the message shows the wrong value.
    pub value: ViolationValue,
}

impl Violation {
    /// Returns the path of the wrong value as messages show it; `<nil>` for the whole object.
    pub fn field(&self) -> &str {
        match self.path.as_str() {
            "" => "<nil>",
            path => path,
        }
    }

    /// Returns the message without the path of the value, such as `Invalid value: "x": must not change`. This is the
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
