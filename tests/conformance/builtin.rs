//! Compares kube-embedded's table of built-in kinds with a real server.
//!
//! `compact` generates the table from the real server. `check` compares the generated table with the
//! committed one; if `BOWLINE_BLESS=1`, it writes the table instead. `defaults::check` compares the default
//! values.

pub mod decode;
pub mod defaults;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kube::Client;
use serde_json::{Map, Value, json};

/// The API groups in the table: those that a data plane needs.
const GROUPS: &[(&str, &str)] = &[
    ("", "v1"),
    ("admissionregistration.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("apps", "v1"),
    ("authentication.k8s.io", "v1"),
    ("authorization.k8s.io", "v1"),
    ("autoscaling", "v1"),
    ("autoscaling", "v2"),
    ("batch", "v1"),
    ("coordination.k8s.io", "v1"),
    ("discovery.k8s.io", "v1"),
    ("events.k8s.io", "v1"),
    ("networking.k8s.io", "v1"),
    ("policy", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1"),
    ("storage.k8s.io", "v1"),
];

/// The fields of a schema that the table keeps. The table leaves out descriptions, because they are nine
/// tenths of a schema.
const KEPT: &[&str] = &[
    "$ref",
    "additionalProperties",
    "allOf",
    "default",
    "enum",
    "format",
    "items",
    "oneOf",
    "properties",
    "required",
    "type",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
];

fn table_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/kube-embedded/src/builtin.json")
}

fn wanted(group: &str, version: &str) -> bool {
    GROUPS.contains(&(group, version))
}

pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Generates the table from the discovery documents of `/api` and `/apis`, and from the OpenAPI documents.
pub fn compact(discovery: &[Value], openapi: &[Value]) -> Value {
    let mut resources: Vec<Value> = discovery
        .iter()
        .flat_map(|document| list(document, "items"))
        .flat_map(|group| {
            let name = group
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            list(group, "versions")
                .iter()
                .map(move |version| (name.to_owned(), version))
        })
        .filter(|(group, version)| wanted(group, text(version, "version")))
        .flat_map(|(group, version)| {
            let name = text(version, "version").to_owned();
            list(version, "resources")
                .iter()
                .map(move |resource| compact_resource(&group, &name, resource))
        })
        .collect();
    resources.sort_by_key(|r| {
        (
            text(r, "group").to_owned(),
            text(r, "version").to_owned(),
            text(r, "plural").to_owned(),
        )
    });

    let mut all: BTreeMap<&str, &Value> = BTreeMap::new();
    for document in openapi {
        if let Some(schemas) = document
            .pointer("/components/schemas")
            .and_then(Value::as_object)
        {
            all.extend(schemas.iter().map(|(name, schema)| (name.as_str(), schema)));
        }
    }
    let mut open: Vec<&str> = all
        .iter()
        .filter(|(_, schema)| {
            list(schema, "x-kubernetes-group-version-kind")
                .iter()
                .any(|gvk| {
                    let (group, version, kind) =
                        (text(gvk, "group"), text(gvk, "version"), text(gvk, "kind"));
                    let served = resources.iter().any(|r| {
                        let same = |v: &Value| {
                            text(v, "group") == group
                                && text(v, "version") == version
                                && kind.strip_suffix("List").unwrap_or(kind)
                                    == text(v, "kind").trim_end_matches("List")
                        };
                        same(r) || list(r, "subresources").iter().any(same)
                    });
                    wanted(group, version)
                        && (served
                            || (group.is_empty() && matches!(kind, "Status" | "DeleteOptions")))
                })
        })
        .map(|(name, _)| *name)
        .collect();
    let mut schemas = Map::new();
    while let Some(name) = open.pop() {
        if schemas.contains_key(name) {
            continue;
        }
        let Some(schema) = all.get(name) else {
            continue;
        };
        let compacted = compact_schema(schema);
        open.extend(references(schema));
        schemas.insert(name.to_owned(), compacted);
    }
    json!({"resources": resources, "schemas": schemas})
}

fn compact_resource(group: &str, version: &str, resource: &Value) -> Value {
    let kind = |of: &Value| {
        let kind = of.get("responseKind").cloned().unwrap_or_default();
        let or = |found: &str, own: &str| {
            if found.is_empty() {
                own.to_owned()
            } else {
                found.to_owned()
            }
        };
        // An empty version in discovery means the group and version of the resource.
        if text(&kind, "version").is_empty() {
            (
                group.to_owned(),
                version.to_owned(),
                text(&kind, "kind").to_owned(),
            )
        } else {
            (
                text(&kind, "group").to_owned(),
                or(text(&kind, "version"), version),
                text(&kind, "kind").to_owned(),
            )
        }
    };
    let (_, _, own) = kind(resource);
    let subresources: Vec<Value> = list(resource, "subresources")
        .iter()
        .map(|sub| {
            let (group, version, kind) = kind(sub);
            json!({"name": text(sub, "subresource"), "group": group, "version": version, "kind": kind, "verbs": sub["verbs"]})
        })
        .collect();
    json!({
        "group": group, "version": version, "kind": own,
        "plural": text(resource, "resource"), "singular": text(resource, "singularResource"),
        "shortNames": list(resource, "shortNames"), "categories": list(resource, "categories"),
        "namespaced": text(resource, "scope") == "Namespaced",
        "verbs": list(resource, "verbs"), "subresources": subresources,
    })
}

fn compact_schema(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else {
        return schema.clone();
    };
    let mut out = Map::new();
    for (key, value) in map.iter().filter(|(k, _)| KEPT.contains(&k.as_str())) {
        let value = match key.as_str() {
            "properties" => Value::Object(
                value
                    .as_object()
                    .map(|p| {
                        p.iter()
                            .map(|(k, v)| (k.clone(), compact_schema(v)))
                            .collect()
                    })
                    .unwrap_or_default(),
            ),
            "items" | "additionalProperties" => compact_schema(value),
            "allOf" | "oneOf" => Value::Array(
                value
                    .as_array()
                    .map(|l| l.iter().map(compact_schema).collect())
                    .unwrap_or_default(),
            ),
            "x-kubernetes-group-version-kind" => Value::Array(
                list(schema, key)
                    .iter()
                    .filter(|gvk| wanted(text(gvk, "group"), text(gvk, "version")))
                    .cloned()
                    .collect(),
            ),
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    Value::Object(out)
}

fn references(value: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        found.extend(reference.rsplit('/').next());
                    }
                    other => found.extend(references(other)),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| found.extend(references(v))),
        _ => {}
    }
    found
}

/// Formats the table with one line per resource and per schema, so that a change of the server gives a small
/// git diff.
fn print(table: &Value) -> String {
    let resources: Vec<String> = list(table, "resources")
        .iter()
        .map(ToString::to_string)
        .collect();
    let schemas: Vec<String> = table["schemas"]
        .as_object()
        .map(|s| {
            s.iter()
                .map(|(name, schema)| format!("{}:{schema}", json!(name)))
                .collect()
        })
        .unwrap_or_default();
    format!(
        "{{\"resources\":[\n{}\n],\"schemas\":{{\n{}\n}}}}\n",
        resources.join(",\n"),
        schemas.join(",\n")
    )
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Value, String> {
    let request = http::Request::get(path)
        .header("Accept", accept)
        .body(Vec::new())
        .map_err(|e| e.to_string())?;
    let answer = client
        .request_text(request)
        .await
        .map_err(|e| format!("{path}: {e}"))?;
    serde_json::from_str(&answer).map_err(|e| format!("{path}: {e}"))
}

/// Compares the committed table with the table that this server gives.
pub async fn check(client: &Client) -> Result<(), String> {
    const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let discovery = [
        get(client, "/api", DISCOVERY).await?,
        get(client, "/apis", DISCOVERY).await?,
    ];
    let mut openapi = Vec::new();
    for (group, version) in GROUPS {
        let path = if group.is_empty() {
            format!("/openapi/v3/api/{version}")
        } else {
            format!("/openapi/v3/apis/{group}/{version}")
        };
        openapi.push(get(client, &path, "application/json").await?);
    }
    let found = print(&compact(&discovery, &openapi));
    let committed = std::fs::read_to_string(table_file()).unwrap_or_default();
    if found == committed {
        return Ok(());
    }
    if std::env::var_os("KUBE_EMBEDDED_BLESS").is_some() {
        return std::fs::write(table_file(), found).map_err(|e| e.to_string());
    }
    let before: BTreeSet<&str> = committed.lines().collect();
    let first = found
        .lines()
        .find(|line| !before.contains(line))
        .unwrap_or_default();
    let first: String = first.chars().take(300).collect();
    Err(format!(
        "crates/kube-embedded/src/builtin.json differs from this server, first in {first:?}; run with KUBE_EMBEDDED_BLESS=1 to write it"
    ))
}

/// Adds the differences of two JSON values to `out`, each with its path.
pub fn differences(path: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let path = format!("{path}/{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => differences(&path, a, b, out),
                    (Some(a), None) => out.push(format!("{path}: only here {a}")),
                    (None, Some(b)) => out.push(format!("{path}: only there {b}")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}/{index}"), a, b, out);
            }
        }
        (a, b) if a != b => out.push(format!("{path}: here {a}, there {b}")),
        _ => {}
    }
}
