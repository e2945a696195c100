//! Table answers: the columns that kubectl prints.

use serde_json::{Value, json};

use super::catalog::Resource;

/// A Table of objects.
pub(super) fn of(resource: &Resource, objects: &[Value], include: &str, now: &str) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| row(resource, object, include, now))
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {},
        "columnDefinitions": columns(resource),
        "rows": rows,
    })
}

/// The columns of a resource.
pub(super) fn columns(_resource: &Resource) -> Value {
    json!([{"name": "Name", "type": "string", "format": "name", "description": "", "priority": 0}])
}

/// One line.
pub(super) fn row(_resource: &Resource, object: &Value, include: &str, _now: &str) -> Value {
    let carried = match include {
        "None" => Value::Null,
        "Object" => object.clone(),
        _ => {
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
        }
    };
    json!({"cells": [object["metadata"]["name"]], "object": carried})
}
