//! Creates the OpenAPI documents with the parts that `kubectl explain`, validation and apply need.
//!
//! The fields of built-in kinds have no descriptions, because the generated table does not contain them.

use std::collections::BTreeSet;

use http::{HeaderMap, header};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::builtin;
use super::catalog::{Catalog, Resource, api_version};
use super::encode;
use super::service::{Answer, Content};
use super::status::Failure;

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const SCHEMAS: &str = "#/components/schemas/";

/// Answers a request for `/openapi/v3`: the list of the documents, each with its hash.
pub(super) fn index(catalog: &Catalog) -> Answer {
    let mut paths = Map::new();
    for (group, versions) in catalog.groups() {
        for version in versions {
            let path = path(group, version);
            let digest = Sha256::digest(encode::to_bytes(&spec(catalog, group, version)));
            let hash: String = digest
                .iter()
                .take(16)
                .map(|byte| format!("{byte:02X}"))
                .collect();
            let address = format!("/openapi/v3/{path}?hash={hash}");
            paths.insert(path, json!({"serverRelativeURL": address}));
        }
    }
    Answer::json(200, json!({"paths": paths}))
}

/// Answers a request for `/openapi/v3/{path}`.
pub(super) fn document(catalog: &Catalog, group: &str, version: &str) -> Result<Answer, Failure> {
    match catalog.of_version(group, version).next() {
        Some(_) => Ok(Answer::json(200, spec(catalog, group, version))),
        None => Err(Failure::no_such_resource()),
    }
}

/// Answers a request for `/openapi/v2`. The document contains types but no operations.
///
/// If the client accepts protobuf, the document is empty. kubectl requests it before it sends a `kind: List`, and an
/// empty document makes it leave the validation to the API.
pub(super) fn v2(catalog: &Catalog, headers: &HeaderMap) -> Answer {
    const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let accept = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("proto-openapi")) {
        return Answer {
            code: 200,
            // An empty body is a valid protobuf message without fields.
            content: Content::Other(PROTOBUF, Vec::new()),
            warnings: Vec::new(),
        };
    }
    let mut definitions = Map::new();
    for (group, versions) in catalog.groups() {
        for version in versions {
            let mut document = spec(catalog, group, version);
            if let Value::Object(schemas) = document["components"]["schemas"].take() {
                definitions.extend(schemas);
            }
        }
    }
    let mut definitions = Value::Object(definitions);
    point_to_definitions(&mut definitions);
    Answer::json(
        200,
        json!({
            "swagger": "2.0",
            "info": {"title": "kube-embedded", "version": env!("CARGO_PKG_VERSION")},
            "paths": {},
            "definitions": definitions,
        }),
    )
}

fn point_to_definitions(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get_mut("$ref") {
                *reference = reference.replace(SCHEMAS, "#/definitions/");
            }
            map.values_mut().for_each(point_to_definitions);
        }
        Value::Array(items) => items.iter_mut().for_each(point_to_definitions),
        _ => {}
    }
}

fn path(group: &str, version: &str) -> String {
    match group {
        "" => format!("api/{version}"),
        group => format!("apis/{group}/{version}"),
    }
}

fn spec(catalog: &Catalog, group: &str, version: &str) -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    let mut wanted = Vec::new();
    for resource in catalog.of_version(group, version) {
        match &resource.custom {
            Some(custom) => {
                wanted.push(OBJECT_META.to_owned());
                schemas.insert(
                    schema_name(resource),
                    custom_schema(resource, &custom.openapi),
                );
            }
            None => wanted.extend(definition_of(resource)),
        }
        add_paths(resource, &mut paths);
    }
    close_over(wanted, &mut schemas);
    json!({
        "openapi": "3.0.0",
        "info": {"title": "kube-embedded", "version": env!("CARGO_PKG_VERSION")},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

/// Adds the wanted definitions to `schemas`, and all definitions to which they refer.
fn close_over(mut wanted: Vec<String>, schemas: &mut Map<String, Value>) {
    let mut seen = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        let Some(schema) = builtin::definitions()
            .get(&name)
            .filter(|_| seen.insert(name.clone()))
        else {
            continue;
        };
        references(schema, &mut wanted);
        schemas.insert(name, schema.clone());
    }
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                found.push(name.trim_start_matches(SCHEMAS).to_owned());
            }
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn definition_of(resource: &Resource) -> Option<String> {
    let gvk = gvk(resource);
    builtin::definitions()
        .iter()
        .find(|(_, schema)| {
            schema["x-kubernetes-group-version-kind"]
                .as_array()
                .is_some_and(|kinds| kinds.contains(&gvk))
        })
        .map(|(name, _)| name.clone())
}

fn gvk(resource: &Resource) -> Value {
    json!({
        "group": resource.subject.group,
        "version": resource.version,
        "kind": resource.subject.kind,
    })
}

fn schema_name(resource: &Resource) -> String {
    let reversed: Vec<&str> = resource.subject.group.rsplit('.').collect();
    format!(
        "{}.{}.{}",
        reversed.join("."),
        resource.version,
        resource.subject.kind
    )
}

fn custom_schema(resource: &Resource, openapi: &Value) -> Value {
    let mut schema = openapi.clone();
    if !schema.is_object() {
        schema = json!({"type": "object"});
    }
    if schema["properties"].is_object() {
        let text = |description: &str| json!({"type": "string", "description": description});
        schema["properties"]["apiVersion"] = text(
            "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources",
        );
        schema["properties"]["kind"] = text(
            "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds",
        );
        schema["properties"]["metadata"] = json!({
            "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
            "allOf": [{"$ref": format!("{SCHEMAS}{OBJECT_META}")}],
        });
    }
    schema["x-kubernetes-group-version-kind"] = json!([gvk(resource)]);
    schema
}

/// Adds the operations of a resource, because clients look there for the parameters of requests.
fn add_paths(resource: &Resource, paths: &mut Map<String, Value>) {
    let version = api_version(&resource.subject.group, &resource.version);
    let root = match resource.subject.group.as_str() {
        "" => format!("/api/{version}"),
        _ => format!("/apis/{version}"),
    };
    let place = match resource.namespaced {
        true => format!(
            "{root}/namespaces/{{namespace}}/{}",
            resource.subject.plural
        ),
        false => format!("{root}/{}", resource.subject.plural),
    };
    let operation = |action: &str| {
        let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"]
            .into_iter()
            .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
            .collect();
        json!({
            "parameters": parameters,
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": gvk(resource),
        })
    };
    paths.insert(
        place.clone(),
        json!({"get": operation("list"), "post": operation("post")}),
    );
    paths.insert(
        format!("{place}/{{name}}"),
        json!({
            "get": operation("get"),
            "put": operation("put"),
            "patch": operation("patch"),
            "delete": operation("delete"),
        }),
    );
}
