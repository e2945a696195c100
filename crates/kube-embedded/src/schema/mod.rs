//! The types of objects, and the one schema walker that all other features use.
//!
//! A [`Schema`] comes from a CRD's OpenAPI v3 or from the table of built-in kinds. Defaults, pruning,
//! validation, strategic merge and server-side apply all use [`Type`] to descend, so they agree on which
//! lists are sets.
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

/// The type of one kind, with the types that it refers to.
#[derive(Debug, Clone)]
pub struct Schema {
    types: Arc<Types>,
    root: Slot,
}

/// The rules that a schema follows where the rules of CRDs and of built-in kinds differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// A structural schema of a CRD.
    Custom,
    /// A Go type: unknown nulls are removed, structs are always printed, a wrong type is a decode error.
    BuiltIn,
}

/// The types of one source. They refer to each other by index, so that they can be recursive.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) flavor: Flavor,
    nodes: Vec<Node>,
}

/// One use of a type: a property, the items of a list, the values of a map.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot {
    node: usize,
    /// The default in the schema. It also replaces a missing key of an element in a list map.
    pub(crate) default: Option<Value>,
    /// The value that the server fills in if the field is missing; None if the field stays missing.
    pub(crate) fill: Option<Value>,
    pub(crate) nullable: bool,
    /// Whether Go omits the field if it is zero or empty.
    omit_zero: bool,
    /// Whether Go prints null if the field is not set.
    pub(crate) print_null: bool,
    /// Whether a map has one owner as a whole; None if the type of the map decides.
    atomic: Option<bool>,
    pub(crate) merge: Merge,
}

/// How a strategic merge patch treats a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Merge {
    pub(crate) merge: bool,
    pub(crate) retain_keys: bool,
    pub(crate) key: Option<String>,
}

/// The way in which the elements of a list are identified: not at all, by their value, or by the values of these
/// keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// The type of the keys that `properties` does not name.
#[derive(Debug, Clone, Default)]
pub(crate) enum Additional {
    #[default]
    None,
    Any,
    Typed(Box<Slot>),
}

/// The JSON type that a node accepts.
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
    /// Any value, owned as a whole (`RawExtension`).
    Opaque,
}

/// A type of the schema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The name of the definition; None for types of a CRD.
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) format: Option<String>,
    pub(crate) properties: BTreeMap<String, Slot>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Slot>>,
    pub(crate) list: ListKind,
    atomic: bool,
    /// Whether pruning keeps unknown keys.
    preserve: bool,
    /// Whether server-side apply deduces the types of unknown keys. A type inherits this from an enclosing type
    /// that keeps unknown keys.
    open: bool,
    embedded: bool,
    /// Whether the server decodes values of this type into a Go type, which omits empty fields.
    go: bool,
    /// The rules of a CRD for `metadata` (only names), in addition to the type of `metadata`.
    metadata_rules: Option<Box<Slot>>,
    rules: Rules,
    steps: Vec<DefaultStep>,
    hook: Option<Hook>,
}

impl Node {
    /// Returns the declared fields: the name, the use of a type, and whether the field is required.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Slot, bool)> {
        self.properties
            .iter()
            .map(|(name, slot)| (name.as_str(), slot, self.rules.required.contains(name)))
    }
}

/// A default that code computes; it runs before the defaults of the fields.
pub(crate) type Hook = fn(&mut Map<String, Value>);

/// Defaults of an object that depend on the object's own fields.
#[derive(Debug, Clone)]
pub(crate) struct DefaultStep {
    /// The condition: these fields have these values; null means that the field is missing.
    pub(crate) when: Map<String, Value>,
    pub(crate) set: Map<String, Value>,
}

/// The rules for a value besides its type.
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

/// The type of a value, found by walking the schema and the value together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'a> {
    /// Declared in the schema.
    Known(&'a Types, &'a Slot),
    /// Not declared but allowed: maps are owned by field, lists as a whole.
    Deduced,
    /// Not declared and owned as a whole.
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

    /// Returns whether `properties` names this key.
    pub(crate) fn declares(self, key: &str) -> bool {
        self.node().is_some_and(|n| n.properties.contains_key(key))
    }

    /// Returns the type of a field; None if the schema does not allow the field.
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

    /// Returns the type of the elements of a list.
    pub(crate) fn items(self) -> Type<'a> {
        match self.node() {
            Some(node) => match &node.items {
                Some(slot) => self.at(slot),
                None => Type::Opaque,
            },
            None => self,
        }
    }

    /// Returns whether a map of this type is owned as a whole.
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

    /// Returns how the elements of a list of this type are identified, and so whether they have owners of their
    /// own.
    pub(crate) fn list_kind(self) -> &'a ListKind {
        static ATOMIC: ListKind = ListKind::Atomic;
        self.node().map_or(&ATOMIC, |n| &n.list)
    }

    pub(crate) fn merge(self) -> Merge {
        self.slot().map(|s| s.merge.clone()).unwrap_or_default()
    }
}

impl Schema {
    /// Parses the schema of a CRD; its root gets apiVersion, kind and metadata.
    pub fn from_openapi(v: &Value) -> Result<Schema, SchemaError> {
        parse::custom(v)
    }

    /// Parses a part of a CRD's schema; values of this part have no apiVersion, kind and metadata.
    pub(crate) fn part(v: &Value) -> Result<Schema, SchemaError> {
        parse::part(v)
    }

    /// Returns a schema without declared fields: every field is kept and has its own owner.
    pub fn open() -> Schema {
        let open =
            serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        parse::custom(&open).expect("BUG: the open schema is well formed")
    }

    /// Returns the schema of one node in a shared set of types.
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

    /// Returns whether this is a built-in kind, for which a wrong type is a decode error.
    pub fn is_built_in(&self) -> bool {
        self.types.flavor == Flavor::BuiltIn
    }

    /// Fills in the defaults, as the server does before it validates and stores.
    pub fn fill_defaults(&self, object: &mut Value) {
        defaults::fill(self.types.flavor, self.root(), object);
    }

    /// Removes the fields that are not in the schema, and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.root(), object)
    }

    /// Returns the errors of an object, with the messages of the server.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate::validate(self, object, None)
    }

    /// Returns the errors of an object that replaces `old`; unchanged values cause no error.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        validate::validate(self, object, Some(old))
    }

    /// Returns the error for the first value of a built-in kind that Go's decoder would refuse; empty if there is
    /// none.
    pub fn type_errors(&self, object: &Value) -> Vec<FieldError> {
        decode::type_errors(self.root(), object)
    }
}

impl Types {
    /// Parses definitions that refer to each other. The map gives the index of the node of each definition.
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

    /// Sets which fields Go omits when they are zero, and which it prints as null or as zero.
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
