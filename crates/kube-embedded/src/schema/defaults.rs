//! Sets the defaults of a schema in an object, in the way of kube-apiserver.

use kube_values::quantity;
use serde_json::{Map, Value};

use super::{DefaultStep, Flavor, Kind, Type};

pub(super) fn fill(flavor: Flavor, ty: Type<'_>, value: &mut Value) {
    let Some(node) = ty.node() else { return };
    match value {
        Value::Object(map) => {
            if node.go {
                map.retain(|key, value| !is_omitted(ty, key, value));
            }
            if let Some(hook) = node.hook {
                hook(map);
            }
            for step in &node.steps {
                apply_step(step, map);
            }
            for (name, slot) in &node.properties {
                let Some(fill) = &slot.fill else { continue };
                let absent = match map.get(name) {
                    None => true,
                    Some(Value::Null) => !slot.nullable,
                    Some(_) => false,
                };
                if absent {
                    map.insert(name.clone(), fill.clone());
                }
            }
            for (name, _) in node.properties.iter().filter(|(_, s)| s.print_null) {
                map.entry(name.clone()).or_insert(Value::Null);
            }
            map.retain(|key, value| {
                let Some(field) = ty.field(key) else {
                    return true;
                };
                if let Some(slot) = field.slot().filter(|s| value.is_null() && !s.nullable) {
                    match &slot.default {
                        Some(default) if !node.properties.contains_key(key) => {
                            *value = default.clone();
                        }
                        _ => return slot.print_null || keeps_null(flavor, field),
                    }
                }
                fill_in(flavor, field, value);
                true
            });
        }
        Value::Array(items) => {
            let ty = ty.items();
            for item in items {
                if item.is_null()
                    && let Some(slot) = ty.slot().filter(|s| !s.nullable)
                    && let Some(default) = &slot.default
                {
                    *item = default.clone();
                }
                fill_in(flavor, ty, item);
            }
        }
        _ => {}
    }
}

/// Sets the defaults inside a value. If the value is a quantity, converts it to its canonical form.
fn fill_in(flavor: Flavor, ty: Type<'_>, value: &mut Value) {
    if value.is_object() || value.is_array() {
        fill(flavor, ty, value);
    } else if ty.node().is_some_and(|n| n.kind == Kind::Quantity) {
        let written = match value {
            Value::String(text) => quantity::canonical(text),
            Value::Number(number) => quantity::canonical(&number.to_string()),
            _ => None,
        };
        if let Some(written) = written {
            *value = written.into();
        }
    }
}

/// Returns whether a null value of this type stays in the object. It does in a Go type that contains free-form JSON.
fn keeps_null(flavor: Flavor, ty: Type<'_>) -> bool {
    flavor == Flavor::BuiltIn
        && ty
            .node()
            .is_some_and(|n| matches!(n.kind, Kind::Any | Kind::Opaque))
}

/// Returns whether Go leaves out a field when it writes JSON, because the field is an empty optional list or map, or
/// a zero value that is not a pointer.
fn is_omitted(ty: Type<'_>, key: &str, value: &Value) -> bool {
    let Some(node) = ty.node() else { return false };
    let Some(slot) = node.properties.get(key) else {
        return false;
    };
    // An empty managedFields list is kept for `apply`, because a client sends it to remove all owners.
    let owners = key == "managedFields" && node.name.is_some();
    let optional = !owners && !node.rules.required.iter().any(|r| r == key);
    match value {
        Value::Array(items) => optional && items.is_empty(),
        Value::Object(map) => {
            let is_map = ty.at(slot).node().is_some_and(|n| {
                n.name.is_none() && n.properties.is_empty() && n.kind == Kind::Object
            });
            optional && is_map && map.is_empty()
        }
        Value::String(text) => slot.omit_zero && text.is_empty(),
        Value::Bool(flag) => slot.omit_zero && !flag,
        Value::Number(n) => slot.omit_zero && n.as_f64() == Some(0.0),
        Value::Null => false,
    }
}

fn apply_step(step: &DefaultStep, map: &mut Map<String, Value>) {
    let holds = step
        .when
        .iter()
        .all(|(field, wanted)| match map.get(field) {
            None | Some(Value::Null) => wanted.is_null(),
            Some(found) => found == wanted,
        });
    if !holds {
        return;
    }
    for (field, value) in &step.set {
        if map.get(field).is_none_or(Value::is_null) {
            map.insert(field.clone(), value.clone());
        }
    }
}
