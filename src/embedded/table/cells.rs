//! Pieces that cells of many kinds are made of.

use serde_json::{Map, Value};

/// What stands where there is nothing.
pub(super) const NONE: &str = "<none>";
/// What stands where nothing was chosen.
pub(super) const UNSET: &str = "<unset>";

/// A value by its JSON pointer.
pub(super) fn at<'a>(object: &'a Value, pointer: &str) -> &'a Value {
    object.pointer(pointer).unwrap_or(&Value::Null)
}

/// A text, empty where there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).as_str().unwrap_or_default()
}

/// A text, or what stands for its absence.
pub(super) fn text_or<'a>(object: &'a Value, pointer: &str, absent: &'a str) -> &'a str {
    match text(object, pointer) {
        "" => absent,
        text => text,
    }
}

/// A number, 0 where there is none.
pub(super) fn number(object: &Value, pointer: &str) -> i64 {
    at(object, pointer).as_i64().unwrap_or_default()
}

/// The items of a list.
pub(super) fn items<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer).as_array().map_or(&[], Vec::as_slice)
}

/// How many items or entries there are.
pub(super) fn count(object: &Value, pointer: &str) -> usize {
    match at(object, pointer) {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

/// Any value as text: words bare, lists and maps as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Names joined by commas.
pub(super) fn joined(list: &[Value], pointer: &str) -> String {
    let names: Vec<&str> = list.iter().map(|item| text(item, pointer)).collect();
    names.join(",")
}

/// The first `most` of a list, and how many more there are.
pub(super) fn shortened(list: &[String], most: usize, separator: &str) -> String {
    let some: Vec<&str> = list.iter().take(most).map(String::as_str).collect();
    let some = some.join(separator);
    match list.len().saturating_sub(most) {
        0 => some,
        more => format!("{some} + {more} more..."),
    }
}

/// A map of labels.
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

/// A LabelSelector in the form of a query; empty where it selects by nothing.
pub(super) fn selector(value: &Value) -> String {
    let mut terms: Vec<(String, String)> = Vec::new();
    for (key, value) in value["matchLabels"].as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        terms.push((key.clone(), format!("{key}={value}")));
    }
    for expression in items(value, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values: Vec<&str> = items(expression, "/values")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return "<invalid>".to_owned(),
        };
        terms.push((key.to_owned(), term));
    }
    terms.sort_by(|a, b| a.0.cmp(&b.0));
    let terms: Vec<String> = terms.into_iter().map(|(_, term)| term).collect();
    terms.join(",")
}

/// A LabelSelector, with a word where it selects by nothing.
pub(super) fn selector_or_none(value: &Value) -> String {
    match selector(value) {
        empty if empty.is_empty() => NONE.to_owned(),
        selector => selector,
    }
}

/// Whether a condition of a type is True.
pub(super) fn is_true(object: &Value, kind: &str) -> bool {
    items(object, "/status/conditions")
        .iter()
        .find(|condition| text(condition, "/type") == kind)
        .is_some_and(|condition| text(condition, "/status") == "True")
}
