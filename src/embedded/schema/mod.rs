//! What the server knows about types, and the one walker that everything else stands on.
//!
//! A [`Schema`] comes from a CRD's OpenAPI v3 or from the table of built-in kinds. Defaults,
//! pruning, validation, strategic merge and server-side apply all descend through [`Type`], so a
//! list is a set for one of them exactly when it is a set for all.
//!
//! It does not evaluate CEL rules (`admission` does) and does not know HTTP.

mod decode;
mod defaults;
mod error;
mod format;
mod parse;
mod pattern;
mod place;
mod prune;
mod quantity;
mod resource;
mod validate;

#[cfg(test)]
mod tests;

pub use error::{FieldError, Reason};
pub use parse::SchemaError;

use std::collections::BTreeMap;
use std::sync::Arc;

use regex::Regex;
use serde_json::{Map, Value};

/// The type of one kind of object, with the types that it refers to.
#[derive(Debug, Clone)]
pub struct Schema {
    types: Arc<Types>,
    root: Slot,
}

/// Whose rules a schema follows where CRDs and built-in kinds differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// A structural schema of a CRD.
    Custom,
    /// A Go type: unknown nulls vanish, structs are always printed, a wrong type is a decode error.
    BuiltIn,
}

/// The types of one source; they refer to each other by index, so recursion costs nothing.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) flavor: Flavor,
    nodes: Vec<Node>,
}

/// One use of a type: a property, the items of a list, the values of a map.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot {
    node: usize,
    /// What the schema says; also completes the keys of list maps.
    pub(crate) default: Option<Value>,
    /// What an absent field becomes.
    pub(crate) fill: Option<Value>,
    pub(crate) nullable: bool,
    /// Go leaves it out when it is zero or empty.
    omit_zero: bool,
    /// Go prints null when it is not set.
    pub(crate) print_null: bool,
    /// Overrides the map kind of the type it refers to.
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

/// How elements of a list are told apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// What stands for keys that `properties` does not name.
#[derive(Debug, Clone, Default)]
pub(crate) enum Additional {
    #[default]
    None,
    Any,
    Typed(Box<Slot>),
}

/// The JSON types that a node accepts; none means any.
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
    /// Anything, owned as a whole (`RawExtension`).
    Opaque,
}

/// One type.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The name of the definition, for built-in types.
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) format: Option<String>,
    pub(crate) properties: BTreeMap<String, Slot>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Slot>>,
    pub(crate) list: ListKind,
    atomic: bool,
    /// Unknown keys are kept when pruning.
    preserve: bool,
    /// Unknown keys have a deduced type for apply; inherited from a preserving ancestor.
    open: bool,
    embedded: bool,
    /// The server keeps it in a Go type, which leaves out what is empty.
    go: bool,
    /// What a CRD asks of `metadata` (only names), beside its type.
    metadata_rules: Option<Box<Slot>>,
    rules: Rules,
    steps: Vec<DefaultStep>,
    hook: Option<Hook>,
}

impl Node {
    /// The declared fields, and whether each is required.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Slot, bool)> {
        self.properties
            .iter()
            .map(|(name, slot)| (name.as_str(), slot, self.rules.required.contains(name)))
    }
}

/// A default that code decides: sees the object before its fields are filled.
pub(crate) type Hook = fn(&mut Map<String, Value>);

/// Defaults of an object that depend on its own fields.
#[derive(Debug, Clone)]
pub(crate) struct DefaultStep {
    /// Fields that must have these values; null means absent.
    pub(crate) when: Map<String, Value>,
    pub(crate) set: Map<String, Value>,
}

/// What a value must satisfy beyond its type.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    required: Vec<String>,
    one_of_values: Vec<Value>,
    pattern: Option<(String, Regex)>,
    minimum: Option<(f64, bool)>,
    maximum: Option<(f64, bool)>,
    multiple_of: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    unique_items: bool,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
    closed: bool,
    all_of: Vec<Slot>,
    any_of: Vec<Slot>,
    one_of: Vec<Slot>,
    not: Option<Box<Slot>>,
}

/// A place in a schema while walking a value.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'a> {
    /// Declared.
    Known(&'a Types, &'a Slot),
    /// Not declared but allowed: maps are granular, lists atomic.
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

    /// Whether `properties` names this key.
    pub(crate) fn declares(self, key: &str) -> bool {
        self.node().is_some_and(|n| n.properties.contains_key(key))
    }

    /// The type of a field; none when the schema does not allow it.
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

    /// The type of the elements of a list.
    pub(crate) fn items(self) -> Type<'a> {
        match self.node() {
            Some(node) => match &node.items {
                Some(slot) => self.at(slot),
                None => Type::Opaque,
            },
            None => self,
        }
    }

    /// Whether a map at this place is owned as a whole.
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

    /// How a list at this place is owned.
    pub(crate) fn list_kind(self) -> &'a ListKind {
        static ATOMIC: ListKind = ListKind::Atomic;
        self.node().map_or(&ATOMIC, |n| &n.list)
    }

    pub(crate) fn merge(self) -> Merge {
        self.slot().map(|s| s.merge.clone()).unwrap_or_default()
    }
}

impl Schema {
    /// Reads the schema of a CRD; its root gets apiVersion, kind and metadata.
    pub fn from_openapi(v: &Value) -> Result<Schema, SchemaError> {
        parse::custom(v)
    }

    /// Reads a part of a CRD's schema, whose values are no resources.
    pub(crate) fn part(v: &Value) -> Result<Schema, SchemaError> {
        parse::part(v)
    }

    /// A schema that declares nothing: every field is kept and owned by name.
    pub fn open() -> Schema {
        let open =
            serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        parse::custom(&open).expect("BUG: the open schema is well formed")
    }

    /// A kind of a shared set of types.
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

    /// Whether this is a built-in kind, whose wrong types are decode errors.
    pub fn is_built_in(&self) -> bool {
        self.types.flavor == Flavor::BuiltIn
    }

    /// Fills what an object leaves out, as the server does before it validates and stores.
    pub fn fill_defaults(&self, object: &mut Value) {
        defaults::fill(self.types.flavor, self.root(), object);
    }

    /// Drops what the schema does not know and says what it dropped.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.root(), object)
    }

    /// Says what is wrong with an object, in the words of the server.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate::validate(self, object, None)
    }

    /// Says what is wrong with an object that replaces `old`; what did not change is not held against it.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        validate::validate(self, object, Some(old))
    }

    /// Says which value, the first, a built-in kind could not be decoded from, in the words of Go's decoder.
    pub fn type_errors(&self, object: &Value) -> Vec<FieldError> {
        decode::type_errors(self.root(), object)
    }
}

impl Types {
    /// Reads definitions that refer to each other; the map says where each stands.
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

    /// Says which fields Go leaves out when they are zero, and which it prints as null or as zero.
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
