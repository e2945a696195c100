//! Checks the schemas of a CustomResourceDefinition: they must be structural, their defaults must be valid, and their
//! CEL rules must be parseable.
//!
//! kube-apiserver refuses more schemas. This module accepts fields that only `allOf`, `anyOf`, `oneOf` or `not`
//! declare. For a pattern that cannot be parsed, the client gets only a warning (see `catalog`).

use serde_json::{Map, Value};

use super::rules;
use crate::schema::Schema;
use crate::status::Cause;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Where a schema is in the schema of a version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Returns the errors in the schemas of a CustomResourceDefinition. `spec` is the spec of the definition.
pub fn check(spec: &Value) -> Vec<Cause> {
    let none = Vec::new();
    let versions = spec["versions"].as_array().unwrap_or(&none);
    let schema = |version: &Value| version["schema"]["openAPIV3Schema"].clone();
    let mut causes = Vec::new();
    for (at, version) in versions.iter().enumerate() {
        if !version["schema"]["openAPIV3Schema"].is_object() {
            let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
            causes.push(required(path, "schemas are required"));
        }
    }
    if !causes.is_empty() {
        return causes;
    }
    // If all versions have the same schema, the errors have the path `spec.validation`, because kube-apiserver moves
    // the schema there.
    if let Some(first) = versions.first().map(schema)
        && versions.iter().all(|version| schema(version) == first)
    {
        return check_schema(&first, "spec.validation.openAPIV3Schema");
    }
    for (at, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{at}].schema.openAPIV3Schema");
        causes.extend(check_schema(&schema(version), &path));
    }
    causes
}

fn check_schema(schema: &Value, path: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    invariants(schema, Level::Root, path, &mut causes);
    causes.sort_by_key(|cause| format!("{}: {}", cause.field, cause.message));
    if causes.is_empty() {
        defaults(schema, Level::Root, path, &mut causes);
    }
    if causes.is_empty() {
        each(schema, Level::Root, path, &mut |part, level, path| {
            causes.extend(rules::check(part, level == Level::Root, path));
        });
    }
    causes
}

fn cause(reason: &str, message: String, field: String) -> Cause {
    Cause {
        reason: reason.into(),
        message,
        field,
    }
}

fn required(field: String, detail: &str) -> Cause {
    let message = format!("Required value: {detail}");
    cause("FieldValueRequired", message, field)
}

fn forbidden(field: String, detail: &str) -> Cause {
    cause("FieldValueForbidden", format!("Forbidden: {detail}"), field)
}

fn invalid(field: String, value: &Value, detail: &str) -> Cause {
    let message = format!("Invalid value: {value}: {detail}");
    cause("FieldValueInvalid", message, field)
}

fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema[key].as_str().unwrap_or_default()
}

fn is(schema: &Value, key: &str) -> bool {
    schema[key] == true
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

/// Calls `visit` for a schema and for the schemas of its items, fields and map values.
fn each(schema: &Value, level: Level, path: &str, visit: &mut dyn FnMut(&Value, Level, &str)) {
    visit(schema, level, path);
    if schema["items"].is_object() {
        let below = format!("{path}.items");
        each(&schema["items"], Level::Item, &below, visit);
    }
    for (name, property) in properties(schema) {
        let below = format!("{path}.properties[{name}]");
        each(property, Level::Field, &below, visit);
    }
    if schema["additionalProperties"].is_object() {
        let below = format!("{path}.additionalProperties");
        each(&schema["additionalProperties"], Level::Field, &below, visit);
    }
}

fn invariants(schema: &Value, level: Level, path: &str, causes: &mut Vec<Cause>) {
    each(schema, level, path, &mut |part, level, path| {
        typed(part, level, path, causes);
        extensions(part, level, path, causes);
        nested(part, path, causes);
    });
}

fn typed(schema: &Value, level: Level, path: &str, causes: &mut Vec<Cause>) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = text(schema, "type");
    let resource = is(schema, "x-kubernetes-embedded-resource");
    if kind == "array" && !schema["items"].is_object() {
        causes.push(required(at("items"), "must be specified"));
    }
    if resource && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        causes.push(match kind {
            "" => required(at("type"), detail),
            _ => invalid(at("type"), &schema["type"], detail),
        });
    } else if kind.is_empty()
        && !is(schema, "x-kubernetes-int-or-string")
        && !is(schema, "x-kubernetes-preserve-unknown-fields")
    {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        causes.push(required(at("type"), detail));
    } else if !kind.is_empty() && !TYPES.contains(&kind) {
        let supported: Vec<String> = TYPES.iter().map(|name| format!("{name:?}")).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            schema["type"],
            supported.join(", ")
        );
        causes.push(cause("FieldValueNotSupported", message, at("type")));
    } else if level == Level::Root && !kind.is_empty() && kind != "object" {
        let detail = "must be object at the root";
        causes.push(invalid(at("type"), &schema["type"], detail));
    }
    if level != Level::Root && !resource {
        return;
    }
    for (name, wanted) in [
        ("kind", "string"),
        ("apiVersion", "string"),
        ("metadata", "object"),
    ] {
        let found = &schema["properties"][name];
        if found.is_object() && found["type"] != wanted {
            let shown = Value::from(text(found, "type"));
            let field = format!("{path}.properties[{name}].type");
            causes.push(invalid(field, &shown, &format!("must be {wanted}")));
        }
    }
}

fn extensions(schema: &Value, level: Level, path: &str, causes: &mut Vec<Cause>) {
    let at = |key: &str| format!("{path}.{key}");
    let additional = &schema["additionalProperties"];
    let given = additional.is_object() || additional.is_boolean();
    if given && level == Level::Root {
        let detail = "must not be used at the root";
        causes.push(forbidden(at("additionalProperties"), detail));
    }
    if given && is(schema, "x-kubernetes-embedded-resource") {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        causes.push(forbidden(at("additionalProperties"), detail));
    }
    if given && properties(schema).next().is_some() {
        let detail = "additionalProperties and properties are mutual exclusive";
        causes.push(forbidden(at("additionalProperties"), detail));
    }
    if is(schema, "x-kubernetes-int-or-string") {
        for key in [
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
        ] {
            if is(schema, key) {
                let detail = "must be false if x-kubernetes-int-or-string is true";
                causes.push(invalid(at(key), &schema[key], detail));
            }
        }
    }
    if is(schema, "x-kubernetes-embedded-resource")
        && !is(schema, "x-kubernetes-preserve-unknown-fields")
        && properties(schema).next().is_none()
    {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        causes.push(required(at("properties"), detail));
    }
}

/// Adds an error for each schema inside allOf, anyOf, oneOf or not that declares a field or sets a type, because such
/// schemas may only restrict values.
fn nested(schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let is_int_or_string = is(schema, "x-kubernetes-int-or-string");
    for key in ["allOf", "anyOf", "oneOf"] {
        for (at, part) in schema[key].as_array().into_iter().flatten().enumerate() {
            let path = format!("{path}.{key}[{at}]");
            declares_nothing(part, is_int_or_string, &path, causes);
        }
    }
    if schema["not"].is_object() {
        declares_nothing(&schema["not"], false, &format!("{path}.not"), causes);
    }
}

fn declares_nothing(schema: &Value, may_type: bool, path: &str, causes: &mut Vec<Cause>) {
    let empty = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    };
    for (key, wanted) in [
        ("type", "empty"),
        ("additionalProperties", "undefined"),
        ("default", "undefined"),
        ("title", "empty"),
        ("description", "empty"),
        ("nullable", "false"),
        ("x-kubernetes-preserve-unknown-fields", "false"),
        ("x-kubernetes-embedded-resource", "false"),
        ("x-kubernetes-int-or-string", "false"),
        ("x-kubernetes-list-map-keys", "empty"),
        ("x-kubernetes-list-type", "undefined"),
        ("x-kubernetes-map-type", "undefined"),
        ("x-kubernetes-validations", "empty"),
    ] {
        let allowed = key == "type" && may_type;
        if !allowed && !empty(&schema[key]) {
            let detail = format!("must be {wanted} to be structural");
            causes.push(forbidden(format!("{path}.{key}"), &detail));
        }
    }
    nested_with(schema, may_type, path, causes);
    for (name, property) in properties(schema) {
        let below = format!("{path}.properties[{name}]");
        if name == "metadata" {
            let detail = "must not be specified in a nested context";
            causes.push(forbidden(below.clone(), detail));
        }
        declares_nothing(property, false, &below, causes);
    }
    if schema["items"].is_object() {
        declares_nothing(&schema["items"], false, &format!("{path}.items"), causes);
    }
}

fn nested_with(schema: &Value, may_type: bool, path: &str, causes: &mut Vec<Cause>) {
    let mut below = schema.clone();
    if let Some(below) = below.as_object_mut() {
        below.insert("x-kubernetes-int-or-string".into(), may_type.into());
    }
    nested(&below, path, causes);
}

/// Adds an error for each default that does not match its own schema or contains unknown fields.
fn defaults(schema: &Value, level: Level, path: &str, causes: &mut Vec<Cause>) {
    let default = &schema["default"];
    if !default.is_null()
        && let Ok(part) = Schema::part(schema)
    {
        let field = format!("{path}.default");
        let mut pruned = default.clone();
        part.prune(&mut pruned);
        if pruned != *default {
            causes.push(invalid(
                field.clone(),
                default,
                "must not have unknown fields",
            ));
        }
        causes.extend(part.validate(default).into_iter().map(|error| {
            let field = match error.path.as_str() {
                "<nil>" => field.clone(),
                below => format!("{field}.{below}"),
            };
            cause(error.reason.as_str(), error.message, field)
        }));
    }
    if schema["items"].is_object() {
        let below = format!("{path}.items");
        defaults(&schema["items"], Level::Item, &below, causes);
    }
    let resource = level == Level::Root || is(schema, "x-kubernetes-embedded-resource");
    let none = Map::new();
    for (name, property) in schema["properties"].as_object().unwrap_or(&none) {
        // The fields apiVersion, kind and metadata of a resource are left out, because the CRD's schema does not
        // determine them.
        if !resource || !matches!(name.as_str(), "metadata" | "apiVersion" | "kind") {
            let below = format!("{path}.properties[{name}]");
            defaults(property, Level::Field, &below, causes);
        }
    }
}
