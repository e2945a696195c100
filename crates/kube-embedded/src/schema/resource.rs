//! Validates what OpenAPI does not express: embedded resources, duplicate list items, and in built-in kinds also
//! required texts that are empty and texts that are no value of their enumeration.

use serde_json::Value;

use super::error::FieldError;
use super::place::Place;
use super::{Additional, ListKind, Type};

/// Calls `each` for each field, map value or list item directly inside a value, if the schema declares its type.
fn descend(
    ty: Type<'_>,
    value: &Value,
    path: &Place<'_>,
    mut each: impl FnMut(Type<'_>, &Value, &Place<'_>),
) {
    let Some(node) = ty.node() else { return };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                if let Some(slot) = node.properties.get(key) {
                    each(ty.at(slot), value, &Place::Field(path, key));
                } else if let Additional::Typed(slot) = &node.additional {
                    each(ty.at(slot), value, &Place::Key(path, key));
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each(ty.items(), item, &Place::Element(path, index));
            }
        }
        _ => {}
    }
}

/// Returns the error in the apiVersion or kind of an embedded resource; None if it is valid. `key` is the checked
/// field, and `text` is its value.
fn wrong_type_name(key: &str, text: &str) -> Option<String> {
    if text.is_empty() {
        return Some("must not be empty".to_owned());
    }
    if key == "apiVersion" {
        let parts = text.split('/').count();
        return (parts > 2).then(|| format!("unexpected GroupVersion string: {text}"));
    }
    let is_label = kube_values::name::dns_label(&text.to_lowercase(), true);
    (!is_label).then(|| {
        "may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric \
         characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  \
         or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            .to_owned()
    })
}

/// Checks that embedded resources have a valid apiVersion and kind.
pub(super) fn embedded(
    ty: Type<'_>,
    value: &Value,
    path: &Place<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let (true, Value::Object(map)) = (ty.node().is_some_and(|node| node.embedded), value) {
        for key in ["apiVersion", "kind"] {
            let path = Place::Field(path, key);
            let Some(text) = map.get(key).and_then(Value::as_str) else {
                errors.push(FieldError::required(path, ""));
                continue;
            };
            if let Some(detail) = wrong_type_name(key, text) {
                errors.push(FieldError::invalid(path, &Value::from(text), &detail));
            }
        }
    }
    descend(ty, value, path, |ty, value, path| {
        embedded(ty, value, path, errors)
    });
}

/// Checks that sets and list maps contain no item twice.
pub(super) fn lists(ty: Type<'_>, value: &Value, path: &Place<'_>, errors: &mut Vec<FieldError>) {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    match ty.list_kind() {
        ListKind::Atomic => {}
        ListKind::Set => repeated(items.iter().cloned(), path, errors),
        ListKind::Map(keys) => match items.iter().position(|i| !i.is_object() && !i.is_null()) {
            Some(index) => {
                let detail = "must be an object for an array of list-type map";
                let path = Place::Element(path, index);
                let item = items.get(index);
                errors.extend(item.map(|i| FieldError::invalid(path, i, detail)));
            }
            None => {
                let identities = items.iter().map(|item| {
                    let pick = |key: &String| item.get(key).map(|v| (key.clone(), v.clone()));
                    Value::Object(keys.iter().filter_map(pick).collect())
                });
                repeated(identities, path, errors);
            }
        },
    }
    descend(ty, value, path, |ty, value, path| {
        lists(ty, value, path, errors)
    });
}

/// Adds an error for each value that occurs more than once.
fn repeated(values: impl Iterator<Item = Value>, path: &Place<'_>, errors: &mut Vec<FieldError>) {
    let mut seen: std::collections::HashMap<String, usize> = std::collections::HashMap::new();
    for (index, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(Place::Element(path, index), &value));
        }
    }
}

/// Validates an object of a built-in kind. Its status is not validated, because controllers write it, and its
/// metadata is validated in `names`.
pub(super) fn built_in(
    ty: Type<'_>,
    value: &Value,
    path: &Place<'_>,
    errors: &mut Vec<FieldError>,
) {
    let Some(node) = ty.node() else { return };
    match value {
        Value::Object(map) => {
            // A required text must not be empty, as in Go. Only the `value` of a header may be.
            for key in node.rules.required.iter().filter(|k| *k != "value") {
                let text = node
                    .properties
                    .get(key)
                    .is_some_and(|s| s.default == Some(Value::from("")));
                if text
                    && map
                        .get(key)
                        .is_none_or(|v| v.is_null() || v.as_str() == Some(""))
                {
                    errors.push(FieldError::required(Place::Field(path, key), ""));
                }
            }
        }
        Value::String(text)
            if !text.is_empty()
                && !node.rules.one_of_values.is_empty()
                && !node.rules.one_of_values.contains(value) =>
        {
            errors.push(FieldError::unsupported(
                path,
                value,
                &node.rules.one_of_values,
            ));
        }
        _ => {}
    }
    descend(ty, value, path, |ty, value, place| {
        let is_left_out = matches!(place, Place::Field(Place::Root, "status" | "metadata"));
        if !is_left_out {
            built_in(ty, value, place, errors);
        }
    });
}
