//! Checks whether the types in an applied configuration match the schema. The messages are those of Kubernetes'
//! library structured-merge-diff.

use serde_json::Value;

use super::typed::{element, granular_list};
use crate::schema::{Kind, Type};

/// Returns the type errors in a value, each with the path of the wrong field.
pub(super) fn errors(ty: Type<'_>, value: &Value) -> Vec<String> {
    let mut out = Vec::new();
    check(ty, value, "", &mut out);
    out
}

/// The largest number of errors that are returned. Each error contains a whole path, so more of them would need much
/// memory.
const MOST: usize = 100;

fn check(ty: Type<'_>, value: &Value, path: &str, out: &mut Vec<String>) {
    if out.len() >= MOST {
        return;
    }
    let kind = ty.node().map_or(Kind::Any, |n| n.kind);
    let plain = ty
        .node()
        .is_some_and(|n| n.format.as_deref().is_none_or(|f| f == "byte"));
    let wrong = match (kind, value) {
        (Kind::Any | Kind::Opaque, _) | (_, Value::Null) => None,
        (Kind::Object, Value::Object(_)) | (Kind::Array, Value::Array(_)) => None,
        (Kind::Object, _) => Some(format!("expected map, got &{{{}}}", go_print(value))),
        (Kind::Array, _) => Some(format!("expected list, got &{{{}}}", go_print(value))),
        (Kind::Integer | Kind::Number, Value::Number(_)) => None,
        (Kind::Integer | Kind::Number, _) => Some(format!(
            "expected numeric (int or float), got {}",
            go_type(value)
        )),
        (Kind::Boolean, Value::Bool(_)) | (Kind::String, Value::String(_)) => None,
        (Kind::Boolean, _) => Some(format!("expected boolean, got &{{{}}}", go_print(value))),
        (Kind::String, _) if plain => Some(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            go_print(value)
        )),
        (_, Value::Object(_) | Value::Array(_)) => {
            Some(format!("expected scalar, got &{{{}}}", go_print(value)))
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        out.push(format!("{path}: {wrong}"));
        return;
    }
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match ty.field(key) {
                    Some(field) => check(field, value, &format!("{path}.{key}"), out),
                    None => {
                        out.push(format!("{path}.{key}: field not declared in schema"));
                        break;
                    }
                }
            }
        }
        Value::Array(items) if granular_list(ty) => {
            let mut seen = std::collections::BTreeSet::new();
            for (position, item) in items.iter().enumerate() {
                match element(ty, item) {
                    Err(why) => out.push(format!("{path}: element {position}: {why}")),
                    Ok(step) => {
                        let place = format!("{path}{step}");
                        if seen.insert(step.clone()) {
                            check(ty.items(), item, &place, out);
                        } else {
                            out.push(format!("{path}: duplicate entries for key {step}"));
                        }
                    }
                }
            }
        }
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                check(ty.items(), item, &format!("{path}[{position}]"), out);
            }
        }
        _ => {}
    }
}

/// Formats a value as Go's `%v` does.
fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!(
            "[{}]",
            items.iter().map(go_print).collect::<Vec<_>>().join(" ")
        ),
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(k, v)| format!("{k}:{}", go_print(v)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
