//! Parses OpenAPI v3 schemas to the types of this module.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_values::limit::{Bound, Count};
use serde_json::{Map, Value, json};

use super::{Additional, Flavor, Kind, ListKind, Merge, Node, Rules, Schema, Slot, Types, pattern};

/// The reason why an OpenAPI schema cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema contains a value that is not an object where another schema is expected.
    #[error("{path}: a schema must be an object; write `type: object` or remove it")]
    NotAnObject {
        /// The path of this value in the schema.
        path: String,
    },
    /// The schema contains a type that does not exist in OpenAPI.
    #[error(
        "{path}: type {found:?} is unknown; use object, array, string, integer, number or boolean"
    )]
    UnknownType {
        /// The path of the type in the schema.
        path: String,
        /// The name of the unknown type.
        found: String,
    },
    /// A pattern is not a valid regular expression.
    #[error("{path}: pattern {pattern:?} does not compile: {why}")]
    Pattern {
        /// The path of the pattern in the schema.
        path: String,
        /// The text of the pattern.
        pattern: String,
        /// The error of the regular expression compiler about the pattern.
        why: String,
    },
    /// The schema refers to a definition that does not exist.
    #[error("{path}: {reference:?} refers to no definition")]
    Reference {
        /// The path of the reference in the schema.
        path: String,
        /// The text of the reference, such as `#/components/schemas/...`.
        reference: String,
    },
}

struct Parser {
    flavor: Flavor,
    nodes: Vec<Node>,
    names: BTreeMap<String, usize>,
    object_meta: Option<usize>,
}

/// Returns the schema of `metadata` for custom resources. A test compares it with the table of built-in kinds.
pub(super) fn object_meta() -> Value {
    let text = json!({"type": "string"});
    let texts =
        json!({"type": "object", "additionalProperties": {"type": "string", "default": ""}});
    let time = json!({"type": "string", "format": "date-time"});
    let count = json!({"type": "integer", "format": "int64"});
    json!({"type": "object", "properties": {
        "annotations": texts, "labels": texts,
        "creationTimestamp": time, "deletionTimestamp": time,
        "deletionGracePeriodSeconds": count, "generation": count,
        "generateName": text, "name": text, "namespace": text, "resourceVersion": text,
        "selfLink": text, "uid": text,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
        "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic", "items": {"type": "object", "properties": {
            "apiVersion": text, "fieldsType": text, "manager": text, "operation": text, "subresource": text, "time": time,
            "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}},
        "ownerReferences": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
            "x-kubernetes-patch-merge-key": "uid", "x-kubernetes-patch-strategy": "merge",
            "items": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "apiVersion": text, "kind": text, "name": text, "uid": text,
                "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"}}}}}})
}

impl Default for Parser {
    fn default() -> Parser {
        Parser {
            flavor: Flavor::Custom,
            nodes: Vec::new(),
            names: BTreeMap::new(),
            object_meta: None,
        }
    }
}

pub(super) fn part(v: &Value) -> Result<Schema, SchemaError> {
    let mut parser = Parser::default();
    let root = parser.slot(v, "", false)?;
    Ok(parser.schema(root))
}

pub(super) fn custom(v: &Value) -> Result<Schema, SchemaError> {
    let mut parser = Parser::default();
    let mut root = v.clone();
    if let Some(map) = root.as_object_mut() {
        map.entry("type").or_insert_with(|| json!("object"));
        map.insert("x-kubernetes-embedded-resource".into(), json!(true));
    }
    let mut root = parser.slot(&root, "", false)?;
    // The root is not checked like an embedded resource, because the caller checks its apiVersion and kind.
    if let Some(node) = parser.nodes.get_mut(root.node) {
        node.embedded = false;
    }
    root.fill = None;
    Ok(parser.schema(root))
}

pub(super) fn definitions(
    definitions: &Map<String, Value>,
) -> Result<(Types, BTreeMap<String, usize>), SchemaError> {
    let mut parser = Parser {
        flavor: Flavor::BuiltIn,
        nodes: Vec::new(),
        names: BTreeMap::new(),
        object_meta: None,
    };
    for name in definitions.keys() {
        parser.names.insert(name.clone(), parser.nodes.len());
        parser.nodes.push(Node {
            name: Some(name.clone()),
            ..Node::default()
        });
    }
    for (name, definition) in definitions {
        let mut node = parser.node(definition, name, false)?;
        node.name = Some(name.clone());
        match name.as_str() {
            "io.k8s.apimachinery.pkg.api.resource.Quantity" => node.kind = Kind::Quantity,
            "io.k8s.apimachinery.pkg.runtime.RawExtension" => node.kind = Kind::Opaque,
            _ => {}
        }
        if let Some(place) = parser
            .names
            .get(name)
            .and_then(|&i| parser.nodes.get_mut(i))
        {
            *place = node;
        }
    }
    Ok((
        Types {
            flavor: Flavor::BuiltIn,
            nodes: parser.nodes,
        },
        parser.names,
    ))
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

fn flag(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).and_then(Value::as_bool).unwrap_or(false)
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn reference(map: &Map<String, Value>) -> Option<&str> {
    if let Some(found) = text(map, "$ref") {
        return Some(found);
    }
    match map
        .get("allOf")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
    {
        Some([Value::Object(only)]) => text(only, "$ref"),
        _ => None,
    }
}

fn is_zero(v: &Value) -> bool {
    match v {
        Value::String(s) => s.is_empty(),
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::Bool(b) => !b,
        _ => false,
    }
}

impl Parser {
    fn schema(self, root: Slot) -> Schema {
        Schema {
            types: Arc::new(Types {
                flavor: self.flavor,
                nodes: self.nodes,
            }),
            root,
        }
    }

    /// Parses a schema where a type is used: a reference with additional attributes, or an inline type.
    fn slot(&mut self, v: &Value, path: &str, open: bool) -> Result<Slot, SchemaError> {
        let map = v.as_object().ok_or_else(|| SchemaError::NotAnObject {
            path: path.to_owned(),
        })?;
        let node = match reference(map) {
            Some(found) if self.flavor == Flavor::BuiltIn => {
                let name = found.rsplit('/').next().unwrap_or(found);
                *self.names.get(name).ok_or_else(|| SchemaError::Reference {
                    path: path.to_owned(),
                    reference: found.to_owned(),
                })?
            }
            _ => {
                let node = self.node(v, path, open)?;
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        };
        let strategy = text(map, "x-kubernetes-patch-strategy").unwrap_or_default();
        let default = map.get("default").filter(|d| !d.is_null()).cloned();
        Ok(Slot {
            node,
            fill: default.clone(),
            default,
            nullable: flag(map, "nullable"),
            omit_zero: false,
            print_null: false,
            atomic: text(map, "x-kubernetes-map-type").map(|t| t == "atomic"),
            merge: Merge {
                merge: strategy.split(',').any(|s| s == "merge"),
                retain_keys: strategy.split(',').any(|s| s == "retainKeys"),
                key: text(map, "x-kubernetes-patch-merge-key").map(str::to_owned),
            },
        })
    }

    fn slots(
        &mut self,
        map: &Map<String, Value>,
        key: &str,
        path: &str,
    ) -> Result<Vec<Slot>, SchemaError> {
        let Some(list) = map.get(key).and_then(Value::as_array) else {
            return Ok(Vec::new());
        };
        list.iter().map(|v| self.slot(v, path, false)).collect()
    }

    fn node(&mut self, v: &Value, path: &str, open: bool) -> Result<Node, SchemaError> {
        let map = v.as_object().ok_or_else(|| SchemaError::NotAnObject {
            path: path.to_owned(),
        })?;
        let kind = kind_of(map, path)?;
        let preserve = flag(map, "x-kubernetes-preserve-unknown-fields");
        let embedded = flag(map, "x-kubernetes-embedded-resource");
        let open = open || preserve;
        let mut node = Node {
            kind,
            format: text(map, "format")
                .filter(|f| !f.is_empty())
                .map(str::to_owned),
            atomic: text(map, "x-kubernetes-map-type") == Some("atomic"),
            list: list_kind(map),
            preserve,
            open,
            embedded,
            go: self.flavor == Flavor::BuiltIn,
            rules: self.rules(map, path)?,
            ..Node::default()
        };
        if let Some(properties) = map.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let mut slot = self.slot(property, &join(path, name), open)?;
                if self.flavor == Flavor::BuiltIn {
                    slot.fill = self.go_fill(&slot, node.rules.required.contains(name));
                }
                node.properties.insert(name.clone(), slot);
            }
        }
        node.additional = match map.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Any,
            Some(Value::Bool(false)) => {
                node.rules.closed = true;
                Additional::None
            }
            Some(typed @ Value::Object(_)) => {
                Additional::Typed(Box::new(self.slot(typed, &join(path, "*"), open)?))
            }
            // A Go map whose values may have any type has a schema without fields.
            _ if self.flavor == Flavor::BuiltIn
                && node.properties.is_empty()
                && matches!(kind, Kind::Object | Kind::Any) =>
            {
                Additional::Any
            }
            _ => Additional::None,
        };
        if let Some(items) = map.get("items").filter(|i| i.is_object()) {
            node.items = Some(Box::new(self.slot(items, &format!("{path}[]"), open)?));
        }
        if embedded {
            self.resource(&mut node)?;
        }
        // An object without declared properties may contain any field, so server-side apply deduces the types of its
        // fields.
        if node.properties.is_empty()
            && matches!(node.additional, Additional::None)
            && !node.rules.closed
        {
            node.open = true;
        }
        Ok(node)
    }

    /// Adds apiVersion, kind and metadata to the type of a resource, because every resource has them.
    fn resource(&mut self, node: &mut Node) -> Result<(), SchemaError> {
        let meta = match self.object_meta {
            Some(meta) => meta,
            None => {
                let first = self.nodes.len();
                let slot = self.slot(&object_meta(), "metadata", false)?;
                self.object_meta = Some(slot.node);
                // kube-apiserver decodes the metadata of custom resources into Go types too, so the types of metadata
                // follow Go's rules.
                self.nodes.iter_mut().skip(first).for_each(|n| n.go = true);
                if let Some(meta) = self.nodes.get_mut(slot.node) {
                    meta.properties
                        .values_mut()
                        .for_each(|p| p.omit_zero = true);
                }
                slot.node
            }
        };
        for name in ["apiVersion", "kind"] {
            if !node.properties.contains_key(name) {
                let slot = self.slot(&json!({"type": "string"}), name, false)?;
                node.properties.insert(name.to_owned(), slot);
            }
        }
        let slot = Slot {
            node: meta,
            ..Slot::default()
        };
        node.metadata_rules = node
            .properties
            .insert("metadata".to_owned(), slot)
            .map(Box::new);
        Ok(())
    }

    /// Returns what Go prints for a field that is not set; None if Go leaves the field out. Structs, and zero values
    /// of required fields, are always printed.
    fn go_fill(&self, slot: &Slot, required: bool) -> Option<Value> {
        let default = slot.default.as_ref()?;
        match default {
            Value::Object(_) => {
                // The default `{}` means a struct, which Go prints. But it also stands for a Time, which Go leaves
                // out or prints as null.
                let is_time = self
                    .nodes
                    .get(slot.node)
                    .and_then(|n| n.name.as_deref())
                    .is_some_and(|name| name.ends_with(".Time") || name.ends_with(".MicroTime"));
                (!is_time).then(|| default.clone())
            }
            zero if is_zero(zero) => required.then(|| default.clone()),
            other => Some(other.clone()),
        }
    }

    fn rules(&mut self, map: &Map<String, Value>, path: &str) -> Result<Rules, SchemaError> {
        let number = |key: &str| map.get(key).and_then(Value::as_number).cloned();
        let bound = |key: &str, exclusive: &str| {
            let exclusive = flag(map, exclusive);
            number(key).map(|limit| Bound { limit, exclusive })
        };
        let count = |least: &str, most: &str| Count {
            least: map.get(least).and_then(Value::as_u64),
            most: map.get(most).and_then(Value::as_u64),
        };
        let pattern = match text(map, "pattern").filter(|p| !p.is_empty()) {
            None => None,
            Some(source) => Some((
                source.to_owned(),
                pattern::compile(source).map_err(|why| SchemaError::Pattern {
                    path: path.to_owned(),
                    pattern: source.to_owned(),
                    why,
                })?,
            )),
        };
        let built_in = self.flavor == Flavor::BuiltIn;
        Ok(Rules {
            required: map
                .get("required")
                .and_then(Value::as_array)
                .map(|r| {
                    r.iter()
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default(),
            one_of_values: map
                .get("enum")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default(),
            pattern,
            minimum: bound("minimum", "exclusiveMinimum"),
            maximum: bound("maximum", "exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            length: count("minLength", "maxLength"),
            items: count("minItems", "maxItems"),
            unique_items: flag(map, "uniqueItems"),
            properties: count("minProperties", "maxProperties"),
            closed: false,
            all_of: if built_in {
                Vec::new()
            } else {
                self.slots(map, "allOf", path)?
            },
            any_of: if built_in {
                Vec::new()
            } else {
                self.slots(map, "anyOf", path)?
            },
            one_of: if built_in {
                Vec::new()
            } else {
                self.slots(map, "oneOf", path)?
            },
            not: match map.get("not").filter(|n| n.is_object() && !built_in) {
                Some(not) => Some(Box::new(self.slot(not, path, false)?)),
                None => None,
            },
        })
    }
}

fn kind_of(map: &Map<String, Value>, path: &str) -> Result<Kind, SchemaError> {
    if flag(map, "x-kubernetes-int-or-string") || text(map, "format") == Some("int-or-string") {
        return Ok(Kind::IntOrString);
    }
    match text(map, "type") {
        None | Some("") => Ok(Kind::Any),
        Some("object") => Ok(Kind::Object),
        Some("array") => Ok(Kind::Array),
        Some("string") => Ok(Kind::String),
        Some("integer") => Ok(Kind::Integer),
        Some("number") => Ok(Kind::Number),
        Some("boolean") => Ok(Kind::Boolean),
        Some(other) => Err(SchemaError::UnknownType {
            path: path.to_owned(),
            found: other.to_owned(),
        }),
    }
}

fn list_kind(map: &Map<String, Value>) -> ListKind {
    match text(map, "x-kubernetes-list-type") {
        Some("set") => ListKind::Set,
        Some("map") => ListKind::Map(
            map.get("x-kubernetes-list-map-keys")
                .and_then(Value::as_array)
                .map(|k| {
                    k.iter()
                        .filter_map(Value::as_str)
                        .map(str::to_owned)
                        .collect()
                })
                .unwrap_or_default(),
        ),
        Some(_) => ListKind::Atomic,
        // Older types declare the merge key only for strategic merge patches, so the list kind is taken from there.
        None => match text(map, "x-kubernetes-patch-strategy") {
            Some("merge" | "merge,retainKeys") => match text(map, "x-kubernetes-patch-merge-key") {
                Some(key) => ListKind::Map(vec![key.to_owned()]),
                None => ListKind::Set,
            },
            _ => ListKind::Atomic,
        },
    }
}
