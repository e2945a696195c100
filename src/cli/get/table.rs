//! Converts the tables that the server makes to rows of text. A table that is not valid causes no error.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::text;

/// Returns the tables in the answers of the server. If the server answered with objects instead, makes a table of the
/// objects.
pub fn made(values: Vec<Value>, now: Timestamp) -> Vec<Value> {
    let (mut tables, plain): (Vec<Value>, Vec<Value>) = values
        .into_iter()
        .partition(|value| value.get("columnDefinitions").is_some());
    if !plain.is_empty() {
        tables.push(plain_table(&plain, now));
    }
    tables
}

/// Makes a table with the name and the age of each object. For a server that makes no tables.
fn plain_table(objects: &[Value], now: Timestamp) -> Value {
    let row = |object: &Value| {
        let metadata = object.get("metadata").cloned().unwrap_or(Value::Null);
        let created = metadata.get("creationTimestamp").and_then(Value::as_str);
        let created = created.and_then(|time| time.parse::<Timestamp>().ok());
        let age = created.map(|time| text::age(now.duration_since(time).as_secs()));
        json!({
            "cells": [metadata.get("name").cloned().unwrap_or(Value::Null), age],
            "object": {"metadata": metadata},
        })
    };
    json!({
        "columnDefinitions": [{"name": "Name"}, {"name": "Age"}],
        "rows": objects.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Returns the rows of the tables of one kind as text. The first row is the header. `prefix` is written before each
/// name.
pub fn rows(tables: &[Value], wide: bool, namespaces: bool, prefix: &str) -> Vec<Vec<String>> {
    let array = |value: &Value, key: &str| match value.get(key) {
        Some(Value::Array(items)) => items.clone(),
        _ => Vec::new(),
    };
    let columns = tables
        .first()
        .map(|table| array(table, "columnDefinitions"));
    let columns = columns.unwrap_or_default();
    let shown = |column: &Value| {
        let priority = column.get("priority").and_then(Value::as_i64);
        wide || priority.unwrap_or(0) == 0
    };
    let mut header: Vec<String> = Vec::new();
    if namespaces {
        header.push("NAMESPACE".to_owned());
    }
    for column in columns.iter().filter(|column| shown(column)) {
        let name = column.get("name").and_then(Value::as_str);
        header.push(name.unwrap_or_default().to_uppercase());
    }
    let mut rows = vec![header];
    for row in tables.iter().flat_map(|table| array(table, "rows")) {
        let mut cells = Vec::new();
        if namespaces {
            let namespace = row.pointer("/object/metadata/namespace");
            cells.push(cell(namespace.unwrap_or(&Value::Null)));
        }
        let values = array(&row, "cells");
        for (at, (column, value)) in columns.iter().zip(&values).enumerate() {
            match at {
                0 => cells.push(format!("{prefix}{}", cell(value))),
                _ if shown(column) => cells.push(cell(value)),
                _ => {}
            }
        }
        rows.push(cells);
    }
    rows
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

/// Returns the widest cell of each column. A row of these cells keeps the widths of the columns.
pub fn widest(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.max_by_key(|cell| text::width(cell)).cloned()
    };
    (0..columns)
        .map(|column| cell(column).unwrap_or_default())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_what_fits_the_form() {
        let table = json!({
            "kind": "Table",
            "columnDefinitions": [
                {"name": "Name", "priority": 0},
                {"name": "Ready"},
                {"name": "Image", "priority": 1},
            ],
            "rows": [
                {"cells": ["cart", true, null], "object": {"metadata": {"namespace": "shop"}}},
                {"cells": ["odd"]},
                {"cells": 3},
                null,
            ],
        });
        let tables = [table];
        let plain = rows(&tables, false, false, "");
        assert_eq!(plain[0], ["NAME", "READY"]);
        assert_eq!(plain[1], ["cart", "true"]);
        assert_eq!(plain[2], ["odd"]);
        assert!(plain[3].is_empty() && plain[4].is_empty());
        let wide = rows(&tables, true, true, "pin/");
        assert_eq!(wide[0], ["NAMESPACE", "NAME", "READY", "IMAGE"]);
        assert_eq!(wide[1], ["shop", "pin/cart", "true", ""]);
        for strange in [json!(null), json!([]), json!({"rows": {}}), json!("Table")] {
            assert_eq!(rows(&[strange], true, false, "").len(), 1);
        }
    }

    #[test]
    fn a_server_without_tables_is_shown_by_name_and_age() {
        let now: Timestamp = "2026-01-01T00:10:00Z".parse().unwrap();
        let objects = [
            json!({"metadata": {"name": "a", "creationTimestamp": "2026-01-01T00:00:00Z"}}),
            json!({}),
        ];
        let rows = rows(&[plain_table(&objects, now)], false, false, "");
        assert_eq!(rows[0], ["NAME", "AGE"]);
        assert_eq!(rows[1], ["a", "10m"]);
        assert_eq!(rows[2], ["", ""]);
    }
}
