//! Shortens label values that are too long for Kubernetes.
//!
//! A label and the selectors for it must stay equal, so both are shortened in the same way: labels in any metadata,
//! and all forms of selectors in Kubernetes' own kinds. The spec of custom kinds is not changed.

use serde_json::Value;

use crate::api::{Object, names};

/// Shortens the label values with more than 63 characters. Each gets a hash at its end, so that different values stay
/// different.
pub(super) fn shorten(object: &mut Object) {
    let said = |field: &str| object.get(field).and_then(Value::as_str);
    let selects_by_map = matches!(
        (said("apiVersion"), said("kind")),
        (Some("v1"), Some("Service" | "ReplicationController"))
    );
    if selects_by_map
        && let Some(Value::Object(spec)) = object.get_mut("spec")
        && let Some(Value::Object(selector)) = spec.get_mut("selector")
    {
        selector.values_mut().for_each(cut);
    }
    walk(object);
}

fn walk(object: &mut Object) {
    for (field, value) in object.iter_mut() {
        match (field.as_str(), &mut *value) {
            ("metadata", Value::Object(metadata)) => {
                if let Some(Value::Object(labels)) = metadata.get_mut("labels") {
                    labels.values_mut().for_each(cut);
                }
            }
            ("matchLabels", Value::Object(labels)) => labels.values_mut().for_each(cut),
            ("matchExpressions", Value::Array(terms)) => {
                for term in terms {
                    if let Some(Value::Array(values)) = term.get_mut("values") {
                        values.iter_mut().for_each(cut);
                    }
                }
            }
            (_, Value::Object(inner)) => walk(inner),
            (_, Value::Array(items)) => items.iter_mut().for_each(walk_item),
            _ => {}
        }
    }
}

fn walk_item(item: &mut Value) {
    match item {
        Value::Object(object) => walk(object),
        Value::Array(items) => items.iter_mut().for_each(walk_item),
        _ => {}
    }
}

fn cut(value: &mut Value) {
    if let Value::String(text) = value
        && text.len() > names::DNS_LABEL
    {
        *text = names::label_value(text);
    }
}
