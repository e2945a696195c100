//! Helpers for the table cells of all kinds.

use kube_values::selector::{Requirement, Selector, Wanted};
use serde_json::{Map, Value};

/// The cell text for a missing value.
pub(super) const NONE: &str = "<none>";
/// The cell text for a field that is not set.
pub(super) const UNSET: &str = "<unset>";

/// Returns the value at a JSON pointer; null if it does not exist.
pub(super) fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// Returns the text at a JSON pointer; empty if it does not exist or is not a text.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).as_str().unwrap_or_default()
}

/// Returns the text at a JSON pointer, or `absent` if the text is missing or empty.
pub(super) fn text_or<'a>(object: &'a Value, pointer: &str, absent: &'a str) -> &'a str {
    match text(object, pointer) {
        "" => absent,
        text => text,
    }
}

/// Returns the integer at a JSON pointer; 0 if it does not exist or is not an integer.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    at(object, pointer).as_i64().unwrap_or_default()
}

/// Returns the items of the list at a JSON pointer; empty if it does not exist or is not a list.
pub(super) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer).as_array().map_or(&[], Vec::as_slice)
}

/// Returns the number of entries in the list or map at a JSON pointer; 0 if it does not exist.
pub(super) fn count(object: &Value, pointer: &str) -> usize {
    match at(object, pointer) {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

/// Formats a value as the text of a cell: strings without quotes, lists and maps as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Returns the texts that the list items have at a JSON pointer, joined by commas.
pub(super) fn joined(list: &[Value], pointer: &str) -> String {
    let names: Vec<&str> = list.iter().map(|item| text(item, pointer)).collect();
    names.join(",")
}

/// Joins the first `most` items of a list. If there are more, appends their number.
pub(super) fn shortened(list: &[String], most: usize, separator: &str) -> String {
    let some: Vec<&str> = list.iter().take(most).map(String::as_str).collect();
    let some = some.join(separator);
    match list.len().saturating_sub(most) {
        0 => some,
        more => format!("{some} + {more} more..."),
    }
}

/// Formats labels as `key=value` pairs, joined by commas.
pub(super) fn labels(value: &Value) -> String {
    match value.as_object().filter(|labels| !labels.is_empty()) {
        None => NONE.to_owned(),
        Some(labels) => pairs(labels).collect::<Vec<_>>().join(","),
    }
}

fn pairs(labels: &Map<String, Value>) -> impl Iterator<Item = String> + '_ {
    labels
        .iter()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
}

/// Formats a LabelSelector object in the syntax of kubectl; empty if it has no requirements.
pub(super) fn selector(value: &Value) -> String {
    let selector = Selector::from_object(value);
    let is_unknown = |one: &Requirement| one.wanted == Wanted::Unknown;
    match selector.requirements.iter().any(is_unknown) {
        true => "<invalid>".to_owned(),
        false => selector.to_string(),
    }
}

/// Formats a LabelSelector object in the syntax of kubectl; [`NONE`] if it has no requirements.
pub(super) fn selector_or_none(value: &Value) -> String {
    match selector(value) {
        empty if empty.is_empty() => NONE.to_owned(),
        selector => selector,
    }
}

/// Returns whether the object has a status condition of the type `kind` that is True.
pub(super) fn is_true(object: &Value, kind: &str) -> bool {
    items(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
        .is_some_and(|condition| text(condition, "/status") == "True")
}
