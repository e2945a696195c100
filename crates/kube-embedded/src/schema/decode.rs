//! Finds values of wrong types in objects of built-in kinds. The messages are those of Go's JSON decoder.
//!
//! kube-apiserver answers 400 with the first of these errors. This is different from custom resources, where a wrong
//! type is a validation error (422).

use base64::{DecodeError, Engine, prelude::BASE64_STANDARD};
use kube_values::{quantity::Parts, time};
use serde_json::Value;

use super::error::{FieldError, Reason};
use super::place::Place;
use super::{Additional, Kind, Node, Type};

pub(super) fn type_errors(ty: Type<'_>, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(ty, value, "", &Place::Root, &Place::Root, &mut errors);
    errors
}

/// Adds the first type error inside a value to `errors`. Unlike `path`, `fields` contains no list indexes, because Go
/// prints the path without them.
fn walk(
    ty: Type<'_>,
    value: &Value,
    owner: &str,
    path: &Place<'_>,
    fields: &Place<'_>,
    errors: &mut Vec<FieldError>,
) {
    // After the first error, nothing else is checked.
    let Some(node) = ty.node().filter(|_| errors.is_empty()) else {
        return;
    };
    if let Some(found) = mismatch(node, value) {
        let message = match found {
            Mismatch::Type(found) => {
                let place = if fields.is_root() {
                    "Go value".to_owned()
                } else {
                    format!("Go struct field {owner}.{fields}")
                };
                format!(
                    "json: cannot unmarshal {found} into {place} of type {}",
                    go_type(ty)
                )
            }
            Mismatch::Text(text) => text,
        };
        errors.push(FieldError {
            path: path.to_string(),
            reason: Reason::FieldValueTypeInvalid,
            message,
        });
        return;
    }
    match value {
        Value::Object(map) => {
            let owner = node.name.as_deref().map_or(owner, short);
            for (key, value) in map {
                let path = Place::Field(path, key);
                if let Some(slot) = node.properties.get(key) {
                    let fields = Place::Field(fields, key);
                    walk(ty.at(slot), value, owner, &path, &fields, errors);
                } else if let Additional::Typed(slot) = &node.additional {
                    walk(ty.at(slot), value, owner, &path, fields, errors);
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                let path = Place::Element(path, index);
                walk(ty.items(), item, owner, &path, fields, errors);
            }
        }
        _ => {}
    }
}

enum Mismatch {
    Type(String),
    Text(String),
}

fn mismatch(node: &Node, value: &Value) -> Option<Mismatch> {
    let found = match value {
        Value::Null => return None,
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = match node.kind {
        Kind::Any | Kind::Opaque => true,
        Kind::Object => value.is_object(),
        Kind::Array => value.is_array(),
        Kind::Boolean => value.is_boolean(),
        Kind::Number => value.is_number(),
        Kind::String => match (value.as_str(), node.format.as_deref()) {
            (Some(text), Some("date-time")) if time::timestamp(text).is_none() => {
                return Some(Mismatch::Text(format!(
                    "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
                )));
            }
            (Some(text), Some("byte")) => match illegal_byte(text) {
                Some(at) => {
                    let text = format!("illegal base64 data at input byte {at}");
                    return Some(Mismatch::Text(text));
                }
                None => true,
            },
            (text, _) => text.is_some(),
        },
        Kind::IntOrString => match value {
            Value::Number(n) if n.as_i64().is_none_or(|i| i32::try_from(i).is_err()) => {
                return Some(Mismatch::Type(format!("number {n}")));
            }
            other => other.is_string() || other.is_number(),
        },
        Kind::Quantity => match value {
            Value::Number(_) => true,
            Value::String(text) if Parts::parse(text).is_some() => true,
            _ => {
                return Some(Mismatch::Text(
                    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
                        .to_owned(),
                ));
            }
        },
        Kind::Integer => match value {
            Value::Number(n) => {
                let fits = n.as_i64().is_some_and(|i| {
                    node.format.as_deref() != Some("int32") || i32::try_from(i).is_ok()
                });
                if !fits {
                    return Some(Mismatch::Type(format!("number {n}")));
                }
                true
            }
            _ => false,
        },
    };
    (!fits).then(|| Mismatch::Type(found.to_owned()))
}

/// Returns the position of the first byte that is not base64; None if all bytes are. Ignores line ends and surplus
/// bits at the end, as Go does.
fn illegal_byte(text: &str) -> Option<usize> {
    match BASE64_STANDARD.decode(text.replace(['\r', '\n'], "")) {
        Ok(_) | Err(DecodeError::InvalidLastSymbol { .. }) => None,
        Err(DecodeError::InvalidByte(at, _)) => Some(at),
        Err(_) => Some(text.len() / 4 * 4),
    }
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

/// Returns the name of the Go type for error messages, as far as OpenAPI contains it.
fn go_type(ty: Type<'_>) -> String {
    let Some(node) = ty.node() else {
        return "interface {}".to_owned();
    };
    if let Some(name) = node
        .name
        .as_ref()
        .filter(|_| !matches!(node.kind, Kind::IntOrString | Kind::String))
    {
        let mut parts = name.rsplit('.');
        let kind = parts.next().unwrap_or_default();
        return match parts.next() {
            Some(package) => format!("{package}.{kind}"),
            None => kind.to_owned(),
        };
    }
    match node.kind {
        Kind::Array => format!("[]{}", go_type(ty.items())),
        Kind::Object => match &node.additional {
            Additional::Typed(slot) => match go_type(ty.at(slot)).as_str() {
                "resource.Quantity" => "v1.ResourceList".to_owned(),
                values => format!("map[string]{values}"),
            },
            _ => "map[string]interface {}".to_owned(),
        },
        Kind::Boolean => "bool".to_owned(),
        Kind::Integer => node.format.clone().unwrap_or_else(|| "int64".to_owned()),
        Kind::Number => "float64".to_owned(),
        Kind::String if node.format.as_deref() == Some("byte") => "[]uint8".to_owned(),
        Kind::String => "string".to_owned(),
        Kind::IntOrString => "int32".to_owned(),
        Kind::Quantity => "resource.Quantity".to_owned(),
        Kind::Any | Kind::Opaque => "interface {}".to_owned(),
    }
}
