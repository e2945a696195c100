//! The schemas of objects, and finding the type of each value in an object.
//!
//! A [`Schema`] comes from the OpenAPI v3 schema in a CRD or from the table of built-in kinds. Defaults, pruning,
//! validation, strategic merge and server-side apply all use [`Type`] to find the type of a value, so that they
//! identify list items in the same way.
//!
//! CEL rules are evaluated in `admission`, not here.

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

/// The schema of one kind, together with all types that it uses.
#[derive(Debug, Clone)]
pub struct Schema {
    types: Arc<Types>,
    root: Slot,
}

/// Where a schema comes from. Schemas of CRDs and of built-in kinds have different rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// The structural schema of a CRD.
    Custom,
    /// A Go type of Kubernetes. Nulls in unknown fields are removed, structs are always printed, and a wrong type is
    /// a decoding error.
    BuiltIn,
}

/// The types of one CRD schema, or of all built-in kinds. A type names another type by its index, so that types can
/// be recursive.
#[derive(Debug)]
pub(crate) struct Types {
    pub(crate) flavor: Flavor,
    nodes: Vec<Node>,
}

/// One use of a type: for a property, for the items of a list, or for the values of a map.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slot {
    node: usize,
    /// The default in the schema; None if there is none. In a list map, it also stands for a missing key of an item.
    pub(crate) default: Option<Value>,
    /// The value that a missing field gets; None if the field stays missing.
    pub(crate) fill: Option<Value>,
    pub(crate) nullable: bool,
    /// Whether Go leaves out the field if its value is zero or empty.
    omit_zero: bool,
    /// Whether Go prints null for the field if it is not set.
    pub(crate) print_null: bool,
    /// Whether a map in this place can have only one owner in server-side apply; None if the type of the map decides.
    atomic: Option<bool>,
    pub(crate) merge: Merge,
}

/// How a strategic merge patch changes a field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Merge {
    pub(crate) merge: bool,
    pub(crate) retain_keys: bool,
    pub(crate) key: Option<String>,
}

/// How server-side apply identifies the items of a list: in an atomic list not at all, in a set by value, in a list
/// map by the values of these keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum ListKind {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// The type of the values whose map keys are not in `properties`.
#[derive(Debug, Clone, Default)]
pub(crate) enum Additional {
    #[default]
    None,
    Any,
    Typed(Box<Slot>),
}

/// The JSON type of values.
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
    /// Any value (`RawExtension`), which can have only one owner in server-side apply.
    Opaque,
}

/// One type in a schema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// The name of the type's definition in OpenAPI; None for the types of a CRD.
    pub(crate) name: Option<String>,
    pub(crate) kind: Kind,
    pub(crate) format: Option<String>,
    pub(crate) properties: BTreeMap<String, Slot>,
    pub(crate) additional: Additional,
    pub(crate) items: Option<Box<Slot>>,
    pub(crate) list: ListKind,
    atomic: bool,
    /// Whether pruning keeps map keys that the schema does not declare.
    preserve: bool,
    /// Whether server-side apply deduces the types of unknown keys from their values. Inner types inherit this from a
    /// type that keeps unknown keys.
    open: bool,
    embedded: bool,
    /// Whether kube-apiserver decodes values of this type into a Go type, which leaves out empty fields.
    go: bool,
    /// The rules that a CRD declares for `metadata.name`, in addition to the type of `metadata`; None if it declares
    /// none.
    metadata_rules: Option<Box<Slot>>,
    rules: Rules,
    steps: Vec<DefaultStep>,
    hook: Option<Hook>,
}

impl Node {
    /// Returns the fields that the type declares: the name, the type, and whether the field is required.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &Slot, bool)> {
        self.properties
            .iter()
            .map(|(name, slot)| (name.as_str(), slot, self.rules.required.contains(name)))
    }
}

/// A function that sets defaults in an object, before the defaults of its fields are set.
pub(crate) type Hook = fn(&mut Map<String, Value>);

/// Defaults of an object that depend on other fields of the same object.
#[derive(Debug, Clone)]
pub(crate) struct DefaultStep {
    /// The condition for these defaults: the fields must have these values. Null stands for a missing field.
    pub(crate) when: Map<String, Value>,
    pub(crate) set: Map<String, Value>,
}

/// The rules for values of a type, in addition to their JSON type.
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

/// The type of one value in an object. It is found by going through the schema and the object at the same time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Type<'a> {
    /// The schema declares the value.
    Known(&'a Types, &'a Slot),
    /// The schema does not declare the value, but allows it. In server-side apply, each field of a map can have its
    /// own owner, but a list has only one owner.
    Deduced,
    /// The schema does not declare the value. In server-side apply, it has only one owner as a whole.
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

    /// Returns whether the type declares a key in `properties`.
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

    /// Returns whether a map of this type has only one owner in server-side apply.
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

    /// Returns how server-side apply identifies the items of a list of this type. Items that are not identified
    /// cannot have different owners.
    pub(crate) fn list_kind(self) -> &'a ListKind {
        static ATOMIC: ListKind = ListKind::Atomic;
        self.node().map_or(&ATOMIC, |n| &n.list)
    }

    pub(crate) fn merge(self) -> Merge {
        self.slot().map(|s| s.merge.clone()).unwrap_or_default()
    }
}

impl Schema {
    /// Parses the schema in a CRD. The result also declares apiVersion, kind and metadata.
    pub fn from_openapi(v: &Value) -> Result<Schema, SchemaError> {
        parse::custom(v)
    }

    /// Parses an inner schema of a CRD, for values that have no apiVersion, kind and metadata.
    pub(crate) fn part(v: &Value) -> Result<Schema, SchemaError> {
        parse::part(v)
    }

    /// Returns a schema that declares no fields and allows every field. In server-side apply, each field can have its
    /// own owner.
    pub fn open() -> Schema {
        let open =
            serde_json::json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        parse::custom(&open).expect("BUG: the open schema is well formed")
    }

    /// Returns the schema whose root is the type at the index `node` of `types`.
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

    /// Returns whether this is the schema of a built-in kind, for which a wrong type is a decoding error.
    pub fn is_built_in(&self) -> bool {
        self.types.flavor == Flavor::BuiltIn
    }

    /// Sets the defaults in an object, as kube-apiserver does before it validates and stores the object.
    pub fn fill_defaults(&self, object: &mut Value) {
        defaults::fill(self.types.flavor, self.root(), object);
    }

    /// Removes the fields from an object that the schema does not allow, and returns their paths.
    pub fn prune(&self, object: &mut Value) -> Vec<String> {
        prune::prune(self.root(), object)
    }

    /// Returns the validation errors of an object, with the messages of kube-apiserver.
    pub fn validate(&self, object: &Value) -> Vec<FieldError> {
        validate::validate(self, object, None)
    }

    /// Returns the validation errors of an object that replaces `old`. Values that are the same in `old` cause no
    /// error.
    pub fn validate_update(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        validate::validate(self, object, Some(old))
    }

    /// Returns the first error that Go's JSON decoder would report for an object of a built-in kind; empty if it
    /// would report none.
    pub fn type_errors(&self, object: &Value) -> Vec<FieldError> {
        decode::type_errors(self.root(), object)
    }
}

impl Types {
    /// Parses the OpenAPI definitions of all built-in kinds together, because they refer to each other. Also returns
    /// the index of each definition's type.
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

    /// Sets how Go prints the fields of a type that are not set: which ones it leaves out, and which ones it prints
    /// as null or as a zero value.
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
