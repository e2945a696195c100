//! Table answers: the columns that kubectl prints, and the cells of objects.
//!
//! A CustomResourceDefinition declares its own columns. The columns of built-in kinds are in the module `builtin`,
//! without descriptions.

mod age;
mod builtin;
mod cells;
mod jsonpath;
mod pod;
mod words;

use serde_json::{Value, json};

use super::catalog::{Custom, Resource};
pub use age::human_duration;

/// A table column of a built-in kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Column {
    name: &'static str,
    kind: &'static str,
    /// The priority of the column. A column with a priority above 0 is shown only with `-o wide`.
    priority: u8,
}

/// Returns a Table with one row per object. `include` says which part of its object a row contains.
pub(super) fn of(resource: &Resource, objects: &[Value], include: &str, now: &str) -> Value {
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| row(resource, object, include, now))
        .collect();
    let metadata = match objects {
        [object] => json!({"resourceVersion": object["metadata"]["resourceVersion"]}),
        _ => json!({}),
    };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns(resource),
        "rows": rows,
    })
}

/// Returns the table columns of a resource.
pub(super) fn columns(resource: &Resource) -> Value {
    match &resource.custom {
        Some(custom) => custom_columns(custom),
        None => builtin::columns(&resource.subject)
            .iter()
            .map(|column| {
                let format = if column.name == "Name" { "name" } else { "" };
                definition(column.name, column.kind, format, "", column.priority.into())
            })
            .collect(),
    }
}

/// Returns the table row of an object.
pub(super) fn row(resource: &Resource, object: &Value, include: &str, now: &str) -> Value {
    let cells = match &resource.custom {
        Some(custom) => custom_cells(custom, object, now),
        None => builtin::cells(&resource.subject, object, now),
    };
    let carried = match include {
        "None" => Value::Null,
        "Object" => object.clone(),
        _ => {
            json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
        }
    };
    let mut row = json!({"cells": cells, "object": carried});
    let conditions = builtin::row_conditions(&resource.subject, object);
    if !conditions.is_null() {
        row["conditions"] = conditions;
    }
    row
}

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({
        "name": name,
        "type": kind,
        "format": format,
        "description": description,
        "priority": priority,
    })
}

fn custom_columns(custom: &Custom) -> Value {
    let mut columns = vec![definition("Name", "string", "name", "", 0)];
    if custom.columns.is_empty() {
        columns.push(definition("Age", "date", "", "", 0));
    }
    for column in &custom.columns {
        let text = |field: &str| column[field].as_str().unwrap_or_default();
        let described = match text("description") {
            "" => format!(
                "Custom resource definition column (in JSONPath format): {}",
                text("jsonPath")
            ),
            words => words.to_owned(),
        };
        columns.push(definition(
            text("name"),
            text("type"),
            text("format"),
            &described,
            column["priority"].as_i64().unwrap_or_default(),
        ));
    }
    columns.into()
}

fn custom_cells(custom: &Custom, object: &Value, now: &str) -> Vec<Value> {
    let mut cells = vec![object["metadata"]["name"].clone()];
    if custom.columns.is_empty() {
        cells.push(age::since(&object["metadata"]["creationTimestamp"], now).into());
    }
    for column in &custom.columns {
        let path = column["jsonPath"].as_str().unwrap_or_default();
        let found = jsonpath::Path::parse(path).and_then(|path| path.first(object).cloned());
        cells.push(match found {
            None => Value::Null,
            Some(value) => custom_cell(column["type"].as_str().unwrap_or_default(), value, now),
        });
    }
    cells
}

/// Converts a value to a cell of a column with the type `kind`; null if the value has another type.
fn custom_cell(kind: &str, value: Value, now: &str) -> Value {
    match (kind, value) {
        ("string", value) => cells::shown(&value).into(),
        ("boolean", Value::Bool(value)) => value.into(),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            // A number with a fraction is truncated, as in kube-apiserver.
            (None, Some(number)) => (number as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(number)) => number.as_f64().map_or(Value::Null, Value::from),
        ("date", Value::String(text)) => age::since(&text.into(), now).into(),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests;
