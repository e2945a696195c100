//! `bowline get`: objects of any kind, as tables of the server or as they are.

use std::io::Write;
use std::pin::pin;
use std::time::Duration;

use clap::Args;
use futures::TryStreamExt;
use http::{HeaderValue, header};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, GetParams, ListParams, WatchEvent, WatchParams};
use kube::core::Request;
use serde_json::{Value, json};

use super::Outcome;
use super::connect::{self, Connection, Environment, Options};
use super::error::{Error, Exit, Failures};
use super::kinds::{self, Kind, Kinds};
use super::output::{self, Format};
use crate::text;

/// How many objects a page of a list has.
const PAGE: u32 = 500;

/// How long after the end of a watch the next one begins.
const AGAIN: Duration = Duration::from_secs(1);

/// What `get` can be told.
#[derive(Args, Debug)]
pub struct Arguments {
    /// A kind, or several as in pins,releases, and names where not all are wanted; or KIND/NAME
    #[arg(required = true, value_name = "KIND [NAME]")]
    words: Vec<String>,
    /// Only objects with these labels (team=payments,tier!=test)
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only objects with these fields (metadata.name=cart)
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    /// Look into all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// The form of the result
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Print who manages which field too, in JSON and YAML
    #[arg(long)]
    show_managed_fields: bool,
    /// Go on printing what changes; what is deleted is said on stderr
    #[arg(short, long)]
    watch: bool,
}

/// What was found of one kind.
struct Found {
    kind: Kind,
    /// Tables, or objects, as the form asks.
    values: Vec<Value>,
}

/// Runs the verb and returns what it prints.
pub async fn run(
    arguments: &Arguments,
    options: &Options,
    environment: &Environment,
    now: Timestamp,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let wanted = kinds::objects_of(&arguments.words)?;
    let named = wanted.iter().any(|(_, names)| !names.is_empty());
    let filtered = arguments.selector.is_some() || arguments.field_selector.is_some();
    if named && (filtered || arguments.all_namespaces) {
        return Err(Error::new(
            Exit::Usage,
            "names do not go with -A, -l or --field-selector",
        ));
    }
    let connection = connect::connect(options, environment).await?;
    kinds::check_name("namespace", &connection.namespace)?;
    let finder = Kinds::new(&connection.client);
    if arguments.watch {
        let (said, name) = match wanted.as_slice() {
            [(said, names)] if names.len() < 2 => (said, names.first().map(String::as_str)),
            _ => {
                return Err(Error::new(
                    Exit::Usage,
                    "-w takes one kind, and one name at most",
                ));
            }
        };
        let kind = finder.named(said).await?;
        return watch(arguments, &connection, &kind, name, now, out, say).await;
    }
    let mut failures = Failures::default();
    let mut found = Vec::new();
    let mut in_namespaces = false;
    for (said, names) in &wanted {
        let kind = match finder.named(said).await {
            Ok(kind) => kind,
            Err(error) => {
                failures.add(error, say);
                continue;
            }
        };
        in_namespaces |= kind.namespaced;
        let namespace = (!arguments.all_namespaces).then_some(connection.namespace.as_str());
        let objects = kind.objects(&connection.client, namespace);
        let mut values = Vec::new();
        if names.is_empty() {
            let fields = arguments.field_selector.as_deref();
            match list(arguments, &connection, &kind, &objects, fields).await {
                Ok((listed, _)) => values = listed,
                Err(error) => failures.add(error, say),
            }
        }
        for name in names {
            match one(arguments, &connection, &kind, &objects, name).await {
                Ok(value) => values.push(value),
                Err(error) => failures.add(error, say),
            }
        }
        found.push(Found { kind, values });
    }
    let several = wanted.len() > 1 || wanted.iter().any(|(_, names)| names.len() != 1);
    let text = match arguments.output {
        Format::Table | Format::Wide => tables(arguments, &mut found, now),
        Format::Name => names(&found),
        Format::Json | Format::Yaml => {
            let single = (!several).then(|| found.iter_mut().find_map(|found| found.values.pop()));
            let value = match single {
                Some(Some(value)) => value,
                // The one that was wanted is missing, which has been said.
                Some(None) => return Ok(Outcome::ending(String::new(), failures.exit())),
                None => {
                    let items: Vec<Value> =
                        found.into_iter().flat_map(|kind| kind.values).collect();
                    json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
                }
            };
            match arguments.output {
                Format::Json => output::json(&value),
                _ => output::yaml(&value),
            }
        }
    };
    if text.is_empty() && failures.is_empty() {
        say(match in_namespaces && !arguments.all_namespaces {
            true => format!("No resources found in {} namespace.", connection.namespace),
            false => "No resources found.".to_owned(),
        });
    }
    Ok(Outcome::ending(text, failures.exit()))
}

/// Says in which form the server shall answer.
fn accept(format: Format, list: bool) -> HeaderValue {
    HeaderValue::from_static(match (format, list) {
        (Format::Table | Format::Wide, _) => {
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
        }
        (Format::Name, true) => {
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
        }
        (Format::Name, false) => {
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
        }
        (Format::Json | Format::Yaml, _) => "application/json",
    })
}

async fn one(
    arguments: &Arguments,
    connection: &Connection,
    kind: &Kind,
    objects: &Api<DynamicObject>,
    name: &str,
) -> Result<Value, Error> {
    let mut request = Request::new(objects.resource_url())
        .get(name, &GetParams::default())
        .map_err(kube::Error::BuildRequest)?;
    let form = accept(arguments.output, false);
    request.headers_mut().insert(header::ACCEPT, form);
    match connection.client.request::<Value>(request).await {
        Ok(mut value) => {
            finish(arguments, kind, &mut value);
            Ok(value)
        }
        Err(kube::Error::Api(status)) if is_missing(&status) => {
            let Connection {
                client, namespace, ..
            } = connection;
            Err(kinds::missing(kind, client, namespace, name).await)
        }
        Err(error) => Err(kinds::about(kind, name, error)),
    }
}

/// Tells an object that is missing from a kind that is.
fn is_missing(status: &kube::core::Status) -> bool {
    let names_it = |details: &kube::core::response::StatusDetails| !details.name.is_empty();
    status.code == 404 && status.details.as_ref().is_some_and(names_it)
}

/// Lists page by page, as tables or as objects. Returns too which version that is.
async fn list(
    arguments: &Arguments,
    connection: &Connection,
    kind: &Kind,
    objects: &Api<DynamicObject>,
    fields: Option<&str>,
) -> Result<(Vec<Value>, String), Error> {
    let mut page = ListParams {
        label_selector: arguments.selector.clone(),
        field_selector: fields.map(str::to_owned),
        limit: Some(PAGE),
        ..ListParams::default()
    };
    let (mut found, mut version) = (Vec::new(), String::new());
    loop {
        let mut request = Request::new(objects.resource_url())
            .list(&page)
            .map_err(kube::Error::BuildRequest)?;
        let form = accept(arguments.output, true);
        request.headers_mut().insert(header::ACCEPT, form);
        let mut answer: Value = connection
            .client
            .request(request)
            .await
            .map_err(|error| kinds::about(kind, "", error))?;
        let next = answer.pointer("/metadata/continue").and_then(Value::as_str);
        let next = next.filter(|token| !token.is_empty()).map(str::to_owned);
        version = version_of(&answer).unwrap_or(version);
        match answer.get_mut("items").map(Value::take) {
            Some(Value::Array(items)) => found.extend(items),
            // An empty list of some servers has `items: null`.
            Some(_) => {}
            None => found.push(answer),
        }
        match next {
            Some(_) => page.continue_token = next,
            None => break,
        }
    }
    for value in &mut found {
        finish(arguments, kind, value);
    }
    Ok((found, version))
}

fn version_of(value: &Value) -> Option<String> {
    let version = value.pointer("/metadata/resourceVersion")?.as_str()?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// Prints what there is, then every change of it, until nobody reads it any more.
#[allow(
    clippy::too_many_arguments,
    reason = "what is watched, and where it goes"
)]
async fn watch(
    arguments: &Arguments,
    connection: &Connection,
    kind: &Kind,
    name: Option<&str>,
    now: Timestamp,
    out: &mut dyn Write,
    say: &mut dyn FnMut(String),
) -> Result<Outcome, Error> {
    let namespace = (!arguments.all_namespaces).then_some(connection.namespace.as_str());
    let objects = kind.objects(&connection.client, namespace);
    let name = name.map(|name| format!("metadata.name={name}"));
    let fields = name.or_else(|| arguments.field_selector.clone());
    let (values, mut version) =
        list(arguments, connection, kind, &objects, fields.as_deref()).await?;
    let columns = values
        .first()
        .and_then(|value| value.get("columnDefinitions"));
    let columns = columns.cloned();
    let namespaces = arguments.all_namespaces && kind.namespaced;
    let wide = arguments.output == Format::Wide;
    // The widest cells so far, so that later rows stand below the earlier ones.
    let mut widest: Vec<String> = Vec::new();
    let mut print = |values: Vec<Value>, first: bool| -> Result<(), Error> {
        let text = match arguments.output {
            Format::Table | Format::Wide => {
                let rows = rows(&as_tables(values, now), wide, namespaces, "");
                let rows = rows.into_iter().skip(usize::from(!first));
                let rows: Vec<_> = std::iter::once(widest.clone()).chain(rows).collect();
                widest = widest_of(&rows);
                let text =
                    output::table(&[&[widest.clone()], rows.get(1..).unwrap_or_default()].concat());
                text.split_once('\n')
                    .map(|(_, rest)| rest.to_owned())
                    .unwrap_or_default()
            }
            Format::Name => values.iter().map(|value| name_line(kind, value)).collect(),
            Format::Json => values.iter().map(output::json).collect(),
            Format::Yaml => values
                .iter()
                .map(|value| format!("---\n{}", output::yaml(value)))
                .collect(),
        };
        out.write_all(text.as_bytes())?;
        Ok(out.flush()?)
    };
    print(values, true)?;
    loop {
        let parameters = WatchParams {
            label_selector: arguments.selector.clone(),
            field_selector: fields.clone(),
            ..WatchParams::default()
        };
        let mut request = Request::new(objects.resource_url())
            .watch(&parameters, &version)
            .map_err(kube::Error::BuildRequest)?;
        let form = accept(arguments.output, false);
        request.headers_mut().insert(header::ACCEPT, form);
        let events = connection.client.request_events::<Value>(request).await;
        let mut events = pin!(events.map_err(|error| kinds::about(kind, "", error))?);
        while let Some(event) = events.try_next().await? {
            let (mut value, deleted) = match event {
                WatchEvent::Added(value) | WatchEvent::Modified(value) => (value, false),
                WatchEvent::Deleted(value) => (value, true),
                WatchEvent::Bookmark(bookmark) => {
                    version = bookmark.metadata.resource_version;
                    continue;
                }
                WatchEvent::Error(status) => return Err(kube::Error::Api(status).into()),
            };
            version = version_of(&value).unwrap_or(version);
            if deleted {
                let metadata = value.pointer("/rows/0/object").unwrap_or(&value);
                say(format!("{} deleted", name_line(kind, metadata).trim_end()));
                continue;
            }
            // Only the first event of a watch says what the columns are.
            if let (Value::Object(table), Some(columns)) = (&mut value, &columns)
                && table.contains_key("rows")
            {
                table.insert("columnDefinitions".to_owned(), columns.clone());
            }
            finish(arguments, kind, &mut value);
            print(vec![value], false)?;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Chooses for each column the widest cell.
fn widest_of(rows: &[Vec<String>]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.max_by_key(|cell| text::width(cell)).cloned()
    };
    (0..columns)
        .map(|column| widest(column).unwrap_or_default())
        .collect()
}

/// Adds what items of lists lack and takes away what nobody asked for.
fn finish(arguments: &Arguments, kind: &Kind, value: &mut Value) {
    let Value::Object(object) = value else {
        return;
    };
    if object.get("kind").and_then(Value::as_str) == Some("Table") {
        return;
    }
    for (key, said) in [
        ("apiVersion", &kind.resource.api_version),
        ("kind", &kind.resource.kind),
    ] {
        object.entry(key).or_insert_with(|| said.as_str().into());
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata")
        && !arguments.show_managed_fields
    {
        metadata.remove("managedFields");
    }
}

fn names(found: &[Found]) -> String {
    let lines = found
        .iter()
        .flat_map(|Found { kind, values }| values.iter().map(|value| name_line(kind, value)));
    lines.collect()
}

fn name_line(kind: &Kind, value: &Value) -> String {
    let name = value.pointer("/metadata/name").and_then(Value::as_str);
    format!(
        "{}/{}\n",
        kind.label(),
        text::line(name.unwrap_or_default())
    )
}

/// Lays the tables of all kinds out, one below the other; with several kinds each name has its kind.
fn tables(arguments: &Arguments, found: &mut [Found], now: Timestamp) -> String {
    let wide = arguments.output == Format::Wide;
    let several = found.len() > 1;
    let mut parts = Vec::new();
    for Found { kind, values } in found {
        let tables = as_tables(std::mem::take(values), now);
        let prefix = several.then(|| format!("{}/", kind.label()));
        let namespaces = arguments.all_namespaces && kind.namespaced;
        let rows = rows(&tables, wide, namespaces, &prefix.unwrap_or_default());
        if rows.len() > 1 {
            parts.push(output::table(&rows));
        }
    }
    parts.join("\n")
}

/// Makes tables of the objects of a server that made none.
fn as_tables(values: Vec<Value>, now: Timestamp) -> Vec<Value> {
    let (mut tables, plain): (Vec<Value>, Vec<Value>) = values
        .into_iter()
        .partition(|value| value.get("columnDefinitions").is_some());
    if !plain.is_empty() {
        tables.push(plain_table(&plain, now));
    }
    tables
}

/// Makes the table of a server that makes none.
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

/// Reads the rows out of the tables of one kind, the header first.
fn rows(tables: &[Value], wide: bool, namespaces: bool, prefix: &str) -> Vec<Vec<String>> {
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
