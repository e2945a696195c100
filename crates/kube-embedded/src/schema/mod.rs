//! The schemas of objects, and the walk through a schema and an object that all other features use.
//!
//! A [`Schema`] is made from a CRD's OpenAPI v3 schema or from the table of built-in kinds. Defaults,
//! pruning, validation, strategic merge and server-side apply all use [`Type`] to find the type of a value,
//! so they agree on how list items are identified.
//!
//! This module does not evaluate CEL rules (`admission` does) and does not know HTTP.

mod decode;
mod defaults;
mod error;
mod go;
mod parse;
mod pattern;
mod place;
mod prune;
mod resource;
mod validate;

#[cfg(test)]
mod tests;

pub use error::{FieldError, Reason};
pub use parse::SchemaError;

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_values::limit::{Bound, Count};
use regex::Regex;
use serde_json::{Map, Number, Value};

/// The schema of one kind, with all types that it refers to.
#[derive(Debug, Clone)]
pub struct Schema {
    types: Arc<Types>,
    root: Slot,
}

/// The source of a schema. The behaviour for CRDs and for built-in kinds differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// The structural schema of a CRD.
    Custom,
    /// A Go type of Kubernetes: nulls in unknown fields are removed, structs are always printed, and a wrong
    /// type is a decoding error.
    BuiltIn,
}

/// The types of one CRD schema, or of all built-in kinds. They refer to each other by index, so that they can
/// be recursive.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) flavor: Flavor,
    nodes: Vec<Node>,
}

/// One use of a type: for a property, for the items of a list or for the values of a map.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot {
    node: usize,
    /// The default value in the schema. It also replaces a missing key of an item in a list map.
    pub(crate) default: Option<Value>,
    /// The value that the defaults set if the field is missing; None if the field stays missing.
    pub(crate) fill: Option<Value>,
    pub(crate) nullable: bool,
    /// Whether Go omits the field if it is zero or empty.
    omit_zero: bool,
    /// Whether Go prints null if the field is not set.
    pub(crate) print_null: bool,
    /// Whether server-side apply tracks one owner for a map as a whole; None if the type of the map decides.
    atomic: Option<bool>,
    pub(crate) merge: Merge,
}

/// The strategic merge patch settings of a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Merge {
    pub(crate) merge: bool,
    pub(crate) retain_keys: bool,
    pub(crate) key: Option<String>,
}

/// How the items of a list are identified: atomic lists do not identify them, sets use the value, list maps
/// use the values of these keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// The type of map keys that are not in `properties`.
#[derive(Debug, Clone, Default)]
pub(crate) enum Additional {
    #[default]
    None,
    Any,
    Typed(Box<Slot>),
}

/// The JSON type of the values that a node accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    IntOrString,
    Quantity,
    /// Any value; server-side apply tracks one owner for it as a whole (`RawExtension`).
    Opaque,
}

/// One type of a schema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The name of the definition in OpenAPI; None for types of a CRD.
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) format: Option<String>,
    pub(crate) properties: BTreeMap<String, Slot>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Slot>>,
    pub(crate) list: ListKind,
    atomic: bool,
    /// Whether pruning keeps keys that the schema does not declare.
    preserve: bool,
    /// Whether server-side apply deduces the types of unknown keys. A type inherits this from an enclosing
    /// type that keeps unknown keys.
    open: bool,
    embedded: bool,
    /// Whether kube-apiserver decodes the values into a Go type, which omits empty fields.
    go: bool,
    /// The rules of a CRD for the `name` in `metadata`, in addition to the type of `metadata`.
    metadata_rules: Option<Box<Slot>>,
    rules: Rules,
    steps: Vec<DefaultStep>,
    hook: Option<Hook>,
}

impl Node {
    /// Returns the declared fields: the name, the slot with the type, and whether the field is required.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Slot, bool)> {
        self.properties
            .iter()
            .map(|(name, slot)| (name.as_str(), slot, self.rules.required.contains(name)))
    }
}

/// A function that sets defaults of an object. It runs before the defaults of the fields.
pub(crate) type Hook = fn(&mut Map<String, Value>);

/// The defaults of an object that depend on other fields of the object.
#[derive(Debug, Clone)]
pub(crate) struct DefaultStep {
    /// The condition: the fields have these values; null means that a field is missing.
    pub(crate) when: Map<String, Value>,
    pub(crate) set: Map<String, Value>,
}

/// The rules for a value in addition to its type.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    required: Vec<String>,
    one_of_values: Vec<Value>,
    pattern: Option<(String, Regex)>,
    minimum: Option<Bound>,
    maximum: Option<Bound>,
    multiple_of: Option<Number>,
    length: Count,
    items: Count,
    unique_items: bool,
    properties: Count,
    closed: bool,
    all_of: Vec<Slot>,
    any_of: Vec<Slot>,
    one_of: Vec<Slot>,
    not: Option<Box<Slot>>,
}

/// The type of a value, found by walking through the schema and the object together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'a> {
    /// The schema declares the value.
    Known(&'a Types, &'a Slot),
    /// The schema does not declare the value but allows it. Server-side apply tracks owners for each field of
    /// a map, and one owner for a list as a whole.
    Deduced,
    /// The schema does not declare the value. Server-side apply tracks one owner for it as a whole.
    Opaque,
}

impl<'a> Type<'a> {
    pub(crate) fn node(self) -> Option<&'a Node> {
        match self {
            Type::Known(types, slot) => types.nodes.get(slot.node),
            _ => None,
        }
    }

    pub(crate) fn slot(self) -> Option<&'a Slot> {
        match self {
            Type::Known(_, slot) => Some(slot),
            _ => None,
        }
    }

    fn at(self, slot: &'a Slot) -> Type<'a> {
        match self {
            Type::Known(types, _) => Type::Known(types, slot),
            other => other,
        }
    }

    /// Returns whether `properties` contains a key.
    pub(crate) fn declares(self, key: &str) -> bool {
        self.node().is_some_and(|n| n.properties.contains_key(key))
    }

    /// Returns the type of the value of a key; None if the schema does not allow the key.
    pub(crate) fn field(self, key: &str) -> Option<Type<'a>> {
        let Some(node) = self.node() else {
            return Some(self);
        };
        if let Some(slot) = node.properties.get(key) {
            return Some(self.at(slot));
        }
        match &node.additional {
            Additional::Typed(slot) => Some(self.at(slot)),
            Additional::Any => Some(Type::Deduced),
            Additional::None if node.open => Some(Type::Deduced),
            Additional::None => None,
        }
    }

    /// Returns the type of the items of a list.
    pub(crate) fn items(self) -> Type<'a> {
        match self.node() {
            Some(node) => match &node.items {
                Some(slot) => self.at(slot),
                None => Type::Opaque,
            },
            None => self,
        }
    }

    /// Returns whether server-side apply tracks one owner for a map of this type as a whole.
    pub(crate) fn atomic_map(self) -> bool {
        match self {
            Type::Deduced => false,
            Type::Opaque => true,
            Type::Known(_, slot) => slot.atomic.unwrap_or_else(|| {
                self.node()
                    .is_some_and(|n| n.atomic || n.kind == Kind::Opaque)
            }),
        }
    }

    /// Returns how the items of a list of this type are identified. Only identified items can have different
    /// owners.
    pub(crate) fn list_kind(self) -> &'a ListKind {
        static ATOMIC: ListKind = ListKind::Atomic;
        self.node().map_or(&ATOMIC, |n| &n.list)
    }

    pub(crate) fn merge(self) -> Merge {
        self.slot().map(|s| s.merge.clone()).unwrap_or_default()
    }
}

impl Schema {
    /// Parses the schema of a CRD. The root also gets apiVersion, kind and metadata.
    pub fn from_openapi(v: &Value) -> Result<Schema, SchemaError> {
        parse::custom(v)
    }

    /// Parses a part of a CRD's schema. Values of this part have no apiVersion, kind and metadata.
    pub(crate) fn part(v: &Value) -> Result<Schema, SchemaError> {
        parse::part(v)
    }

    /// Returns a schema without declared fields, which keeps every field and tracks its owners separately.
    pub fn open() -> Schema {
        let open =
            serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        parse::custom(&open).expect("BUG: the open schema is well formed")
    }

    /// Returns the schema whose root is one node of a shared set of types.
    pub(crate) fn of(types: Arc<Types>, node: usize) -> Schema {
        Schema {
            types,
            root: Slot {
                node,
                ..Slot::default()
            },
        }
    }

    pub(crate) fn root(&self) -> Type<'_> {
        Type::Known(&self.types, &self.root)
    }

    /// Returns whether the schema describes a built-in kind, for which a wrong type is a decoding error.
    pub fn is_built_in(&self) -> bool {
        self.types.flavor == Flavor::BuiltIn
    }

    /// Sets the defaults in an object. kube-apiserver does this before it validates and stores an object.
    pub fn fill_defaults(&self, object: &mut Value) {
        defaults::fill(self.types.flavor, self.root(), object);
    }

    /// Removes the fields that the schema does not allow, and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.root(), object)
    }

    /// Returns the validation errors of an object, with the messages of kube-apiserver.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate::validate(self, object, None)
    }

    /// Returns the validation errors of an object that replaces `old`. A value that did not change causes no
    /// error.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        validate::validate(self, object, Some(old))
    }

    /// Returns the first error that Go's JSON decoder would report for an object of a built-in kind; empty if
    /// there is no error.
    pub fn type_errors(&self, object: &Value) -> Vec<FieldError> {
        decode::type_errors(self.root(), object)
    }
}

impl Types {
    /// Parses the OpenAPI definitions of built-in kinds, which refer to each other. The map contains the node
    /// index of each definition.
    pub(crate) fn from_definitions(
        definitions: &Map<String, Value>,
    ) -> Result<(Types, BTreeMap<String, usize>), SchemaError> {
        parse::definitions(definitions)
    }

    pub(crate) fn add_steps(&mut self, node: usize, steps: Vec<DefaultStep>) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.steps = steps;
        }
    }

    /// Sets which fields of a type Go omits when they are zero, and which fields it prints as null or as a
    /// zero value.
    pub(crate) fn print_zeros(
        &mut self,
        node: usize,
        omit: &[String],
        null: &[String],
        zero: &[String],
    ) {
        let kinds: Vec<Kind> = self.nodes.iter().map(|n| n.kind).collect();
        let Some(node) = self.nodes.get_mut(node) else {
            return;
        };
        for (name, slot) in &mut node.properties {
            slot.omit_zero |= omit.contains(name);
            slot.print_null |= null.contains(name);
            if zero.contains(name) {
                slot.fill = match kinds.get(slot.node) {
                    Some(Kind::String) => Some(Value::from("")),
                    Some(Kind::Boolean) => Some(Value::from(false)),
                    _ => Some(Value::from(0)),
                };
            }
        }
    }

    pub(crate) fn set_hook(&mut self, node: usize, hook: Hook) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.hook = Some(hook);
        }
    }
}
