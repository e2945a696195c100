//! Validates an object, with the messages of kube-apiserver.
//!
//! For a custom resource, the errors have the order and the messages of kube-apiserver's OpenAPI validator,
//! including the errors without a field (`<nil>`). For built-in kinds, kube-apiserver validates in Go code;
//! this module checks only required fields and enums, with the same messages.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use kube_values::format;
use kube_values::limit::{is_multiple, is_same};
use serde_json::{Map, Number, Value};

use super::error::{FieldError, Reason};
use super::go::{go_float, quoted};
use super::place::Place;
use super::{Additional, Flavor, Kind, ListKind, Node, Rules, Schema, Type, resource};

/// The largest total size of the errors of one object, in bytes. The limit is necessary because every item of a long
/// list can cause an error.
const MOST_BYTES: usize = 256 << 10;

/// The errors of a value, and the number of checks that found them. If all alternatives of an `anyOf` fail, the
/// errors of the one with the most checks are reported, as in kube-apiserver.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    bytes: usize,
    checks: u64,
}

impl Outcome {
    fn add(&mut self, error: FieldError) {
        if self.bytes < MOST_BYTES && !self.errors.contains(&error) {
            self.bytes += error.path.len() + error.message.len();
            self.errors.push(error);
        }
    }

    fn merge(&mut self, other: Outcome) {
        self.checks += other.checks;
        for error in other.errors {
            self.add(error);
        }
    }
}

pub(super) fn validate(schema: &Schema, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    match schema.types.flavor {
        Flavor::Custom => {
            let mut errors = check(schema.root(), object, old, &Place::Root).errors;
            resource::embedded(schema.root(), object, &Place::Root, &mut errors);
            resource::lists(schema.root(), object, &Place::Root, &mut errors);
            errors
        }
        Flavor::BuiltIn => {
            let mut errors = Vec::new();
            resource::built_in(schema.root(), object, &Place::Root, &mut errors);
            errors
        }
    }
}

fn check(ty: Type<'_>, value: &Value, old: Option<&Value>, path: &Place<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(node) = ty.node() else {
        return outcome;
    };
    if old == Some(value) {
        return outcome;
    }
    let types = type_names(node.kind);
    let format = node
        .format
        .as_deref()
        .filter(|f| format_applies(node.kind, f))
        .unwrap_or_default();
    if value.is_null() {
        let nullable = ty.slot().is_some_and(|s| s.nullable);
        if !types.is_empty() && !nullable {
            outcome.add(wrong_type(path, &types.join(","), "null"));
        }
        one_of_values(&node.rules, value, path, &mut outcome);
        return outcome;
    }
    if !types.is_empty() || !format.is_empty() {
        match type_mismatch(types, format, value, path) {
            Some(error) => outcome.add(error),
            None => outcome.checks += 1,
        }
        outcome.checks += 1;
    }
    combined(ty, &node.rules, value, path, &mut outcome);
    outcome.checks += 1;
    match value {
        Value::String(text) => {
            if let Some(error) = string(&node.rules, text, path) {
                outcome.add(error);
            }
            outcome.checks += 1;
            if let Some(has_format) = format::server(format) {
                if !has_format(text) {
                    let detail =
                        format!("{path} in body must be of type {format}: {}", quoted(text));
                    let message = format!("Invalid value: {}: {detail}", quoted(text));
                    outcome.add(FieldError::new(
                        path,
                        Reason::FieldValueTypeInvalid,
                        message,
                    ));
                }
                outcome.checks += 1;
            }
        }
        Value::Number(found) => {
            number(node, format, value, found, path, &mut outcome);
            outcome.checks += 2;
        }
        Value::Array(items) => {
            list(ty, &node.rules, items, old, path, &mut outcome);
            outcome.checks += 2;
        }
        _ => {}
    }
    one_of_values(&node.rules, value, path, &mut outcome);
    outcome.checks += 1;
    if let Value::Object(map) = value {
        object(ty, node, map, old, path, &mut outcome);
        outcome.checks += 1;
    }
    outcome.checks += 1;
    outcome
}

fn type_names(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Any | Kind::Opaque | Kind::Quantity => &[],
        Kind::Object => &["object"],
        Kind::Array => &["array"],
        Kind::String => &["string"],
        Kind::Integer => &["integer"],
        Kind::Number => &["number"],
        Kind::Boolean => &["boolean"],
        Kind::IntOrString => &["integer", "string"],
    }
}

fn format_applies(kind: Kind, format: &str) -> bool {
    match kind {
        Kind::String | Kind::Any => format::server(format).is_some(),
        Kind::Integer => matches!(format, "int32" | "int64"),
        Kind::Number => matches!(format, "float" | "double"),
        _ => false,
    }
}

fn wrong_type(path: &Place<'_>, wanted: &str, found: &str) -> FieldError {
    let message = format!(
        "Invalid value: {}: {path} in body must be of type {wanted}: {}",
        quoted(found),
        quoted(found)
    );
    FieldError::new(path, Reason::FieldValueTypeInvalid, message)
}

fn type_mismatch(
    types: &[&str],
    format: &str,
    value: &Value,
    path: &Place<'_>,
) -> Option<FieldError> {
    let (found, found_format) = match value {
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(n) if n.is_f64() => ("number", "float64"),
        Value::Number(_) => ("integer", "int64"),
        Value::Null => return None,
    };
    let whole = value
        .as_f64()
        .is_some_and(|f| f.fract() == 0.0 && f.abs() < 9.1e18);
    let fits = types.contains(&found)
        || (found == "number" && whole && types.contains(&"integer"))
        || (found == "integer" && types.contains(&"number"));
    let textual = matches!(value, Value::String(_) | Value::Array(_));
    if !textual && !format.is_empty() && !fits && found_format != format {
        return Some(wrong_type(path, format, found_format));
    }
    let numeric = types.contains(&"number") || types.contains(&"integer");
    if !numeric && !format.is_empty() && textual {
        return None;
    }
    (!fits).then(|| wrong_type(path, &types.join(","), found))
}

fn one_of_values(rules: &Rules, value: &Value, path: &Place<'_>, outcome: &mut Outcome) {
    if rules.one_of_values.is_empty() {
        return;
    }
    let is_allowed = |allowed: &Value| !value.is_null() && is_same(allowed, value);
    if !rules.one_of_values.iter().any(is_allowed) {
        outcome.add(FieldError::unsupported(path, value, &rules.one_of_values));
    }
}

fn string(rules: &Rules, text: &str, path: &Place<'_>) -> Option<FieldError> {
    let length = text.chars().count();
    if let Some(most) = rules.length.too_many(length) {
        let bytes = if most == 1 { "byte" } else { "bytes" };
        let message = format!("Too long: may not be more than {most} {bytes}");
        return Some(FieldError::new(path, Reason::FieldValueTooLong, message));
    }
    let value = || Value::from(text);
    if let Some(least) = rules.length.too_few(length) {
        let detail = format!("{path} in body should be at least {least} chars long");
        return Some(FieldError::invalid(path, &value(), &detail));
    }
    match &rules.pattern {
        Some((source, regex)) if !regex.is_match(text) => {
            let detail = format!("{path} in body should match '{source}'");
            Some(FieldError::invalid(path, &value(), &detail))
        }
        _ => None,
    }
}

fn number(
    node: &Node,
    format: &str,
    value: &Value,
    number: &Number,
    path: &Place<'_>,
    outcome: &mut Outcome,
) {
    let Some(float) = value.as_f64() else { return };
    let integer = value.as_i64();
    let in_range = match (node.kind, format) {
        (Kind::Integer, "int32") => {
            i32::try_from(integer.unwrap_or(float as i64)).is_ok() && float.fract() == 0.0
        }
        (Kind::Integer, _) => integer.is_some() || (float.fract() == 0.0 && float.abs() < 9.2e18),
        (Kind::Number, "float") => float.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    if !in_range {
        let name = if node.kind == Kind::Integer {
            "integer"
        } else {
            "number"
        };
        let detail = if format.is_empty() {
            format!("Checked value must be of type {name} (default format) in {path}")
        } else {
            format!("Checked value must be of type {name} with format {format} in {path}")
        };
        outcome.add(FieldError::invalid("", &Value::from(""), &detail));
    }
    let shown = |bound: &Number| {
        let bound = bound.as_f64().unwrap_or_default();
        match integer {
            Some(_) => (bound as i64).to_string(),
            None => go_float(bound),
        }
    };
    let rules = &node.rules;
    if let Some(factor) = &rules.multiple_of {
        // For an integer, the factor is cut to its integer part, as in kube-apiserver.
        let truncated = match factor.as_f64() {
            Some(float) if float >= 1.0 && integer.is_some() => Number::from(float as i64),
            _ => factor.clone(),
        };
        if !is_multiple(number, &truncated) {
            let detail = format!("{path} in body should be a multiple of {}", shown(factor));
            outcome.add(FieldError::invalid(path, value, &detail));
        }
    }
    if let Some(least) = &rules.minimum
        && !least.admits_above(number)
    {
        let words = if least.exclusive {
            "greater than"
        } else {
            "greater than or equal to"
        };
        let detail = format!("{path} in body should be {words} {}", shown(&least.limit));
        outcome.add(FieldError::invalid(path, value, &detail));
    }
    if let Some(most) = &rules.maximum
        && !most.admits_below(number)
    {
        let words = if most.exclusive {
            "less than"
        } else {
            "less than or equal to"
        };
        let detail = format!("{path} in body should be {words} {}", shown(&most.limit));
        outcome.add(FieldError::invalid(path, value, &detail));
    }
}

fn list(
    ty: Type<'_>,
    rules: &Rules,
    items: &[Value],
    old: Option<&Value>,
    path: &Place<'_>,
    outcome: &mut Outcome,
) {
    let before = by_keys(ty, old.and_then(Value::as_array));
    for (index, item) in items.iter().enumerate() {
        let before = keys_of(ty, item).and_then(|keys| before.get(&keys).copied());
        let place = Place::Element(path, index);
        outcome.merge(check(ty.items(), item, before, &place));
    }
    let size = items.len();
    if let Some(least) = rules.items.too_few(size) {
        let detail = format!("{path} in body should have at least {least} items");
        outcome.add(FieldError::invalid(path, &Value::from(size), &detail));
    }
    if let Some(most) = rules.items.too_many(size) {
        outcome.add(FieldError::too_many(path, size, most));
    }
    let mut seen = HashSet::new();
    if rules.unique_items && !items.iter().all(|item| seen.insert(item.to_string())) {
        let detail = format!("{path} in body shouldn't contain duplicates");
        outcome.add(FieldError::invalid(path, &Value::from(""), &detail));
    }
}

/// Returns the values of the keys that identify an item of a list map, as JSON text; None for another list.
fn keys_of(ty: Type<'_>, item: &Value) -> Option<String> {
    let ListKind::Map(keys) = ty.list_kind() else {
        return None;
    };
    let found = keys.iter().map(|key| item.get(key).cloned());
    Some(serde_json::json!(found.collect::<Vec<_>>()).to_string())
}

fn by_keys<'a>(ty: Type<'_>, old: Option<&'a Vec<Value>>) -> HashMap<String, &'a Value> {
    let items = old.into_iter().flatten().rev();
    items
        .filter_map(|item| Some((keys_of(ty, item)?, item)))
        .collect()
}

fn object(
    ty: Type<'_>,
    node: &Node,
    map: &Map<String, Value>,
    old: Option<&Value>,
    path: &Place<'_>,
    outcome: &mut Outcome,
) {
    let rules = &node.rules;
    let size = map.len();
    if let Some(least) = rules.properties.too_few(size) {
        let detail = format!("{path} in body should have at least {least} properties");
        outcome.add(FieldError::invalid(path, &Value::from(size), &detail));
    }
    if let Some(most) = rules.properties.too_many(size) {
        outcome.add(FieldError::too_many(path, size, most));
    }
    let before = |key: &str| old.and_then(|old| old.get(key));
    for (key, value) in map {
        if node.properties.contains_key(key) {
            continue;
        }
        if rules.closed {
            let detail = format!("{path}.{key} in body is a forbidden property");
            outcome.add(FieldError::invalid(
                path,
                &Value::from(key.as_str()),
                &detail,
            ));
        } else if let Additional::Typed(slot) = &node.additional {
            let place = Place::Member(path, key);
            outcome.merge(check(ty.at(slot), value, before(key), &place));
        }
    }
    for (key, slot) in &node.properties {
        let slot = match &node.metadata_rules {
            Some(rules) if key == "metadata" => rules,
            // If the schema declares no rules for metadata, metadata is not validated here.
            None if key == "metadata" && node.properties.contains_key("apiVersion") => continue,
            _ => slot,
        };
        if let Some(value) = map.get(key) {
            let place = Place::Field(path, key);
            outcome.merge(check(ty.at(slot), value, before(key), &place));
        }
    }
    for key in &rules.required {
        if !map.contains_key(key) {
            outcome.add(FieldError::required(Place::Member(path, key), ""));
        }
    }
}

fn combined(ty: Type<'_>, rules: &Rules, value: &Value, path: &Place<'_>, outcome: &mut Outcome) {
    let name = || quoted(&path.to_string());
    let nowhere = |detail: String| FieldError::invalid("", &Value::from(""), &detail);
    if !rules.any_of.is_empty() {
        let mut best: Option<Outcome> = None;
        let mut valid = false;
        for slot in &rules.any_of {
            let found = check(ty.at(slot), value, None, path);
            if found.errors.is_empty() {
                outcome.checks += found.checks;
                valid = true;
                break;
            }
            if best.as_ref().is_none_or(|b| found.checks > b.checks) {
                best = Some(found);
            }
        }
        if !valid {
            outcome.add(nowhere(format!(
                "{} must validate at least one schema (anyOf)",
                name()
            )));
            outcome.merge(best.unwrap_or_default());
        }
    }
    if !rules.one_of.is_empty() {
        let mut best: Option<Outcome> = None;
        let mut valid = 0;
        for slot in &rules.one_of {
            let found = check(ty.at(slot), value, None, path);
            if found.errors.is_empty() {
                valid += 1;
                best = None;
            } else if valid == 0 && best.as_ref().is_none_or(|b| found.checks > b.checks) {
                best = Some(found);
            }
        }
        if valid != 1 {
            let found: Cow<'_, str> = match valid {
                0 => "Found none valid".into(),
                n => format!("Found {n} valid alternatives").into(),
            };
            outcome.add(nowhere(format!(
                "{} must validate one and only one schema (oneOf). {found}",
                name()
            )));
            outcome.merge(best.unwrap_or_default());
        }
    }
    if !rules.all_of.is_empty() {
        let mut valid = 0;
        for slot in &rules.all_of {
            let found = check(ty.at(slot), value, None, path);
            valid += usize::from(found.errors.is_empty());
            outcome.merge(found);
        }
        if valid != rules.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            outcome.add(nowhere(format!(
                "{} must validate all the schemas (allOf){none}",
                name()
            )));
        }
    }
    if let Some(slot) = &rules.not
        && check(ty.at(slot), value, None, path).errors.is_empty()
    {
        outcome.add(nowhere(format!(
            "{} must not validate the schema (not)",
            name()
        )));
    }
    outcome.checks += 1;
}
