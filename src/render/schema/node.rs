//! The parsed form of a schema. Both notations, the shorthand and OpenAPI, are parsed to this form.

use std::collections::BTreeMap;

use kube_values::format;
use kube_values::limit::{Bound, Count, whole};
use regex::Regex;
use serde_json::{Number, Value};

/// The schema of one value and of the values inside it.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    /// The default value: as written in the schema, or composed of the defaults of the fields. None if there is
    /// neither.
    pub(super) default: Option<DefaultValue>,
    pub(super) fields: BTreeMap<String, Node>,
    pub(super) required: Vec<String>,
    pub(super) others: Others,
    pub(super) items: Option<Box<Node>>,
    pub(super) rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    Any,
    Text,
    Integer,
    Number,
    Boolean,
    IntegerOrText,
    List,
    Map,
}

/// How a check treats the keys of a map that are not fields of its schema.
#[derive(Clone, Debug, Default)]
pub(super) enum Others {
    /// The unknown keys are removed with a warning.
    Drop,
    #[default]
    Keep,
    Each(Box<Node>),
}

/// A default value that matches its schema.
#[derive(Clone, Debug)]
pub(super) struct DefaultValue {
    pub(super) value: Value,
    /// The approximate size of the default value, in bytes.
    pub(super) weight: usize,
}

/// A rule of a schema for values of one type. The rule does not apply to values of other types.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    Enum(Vec<Value>),
    Least(Bound),
    Most(Bound),
    MultipleOf(Number),
    Int32,
    Length(Count),
    Pattern(Regex),
    Format(&'static str, format::Check),
    Items(Count),
    UniqueItems,
    Properties(Count),
    AllOf(Vec<Node>),
    AnyOf(Vec<Node>),
    OneOf(Vec<Node>),
    Not(Box<Node>),
}

impl Kind {
    /// Returns the name of this type in words, for messages.
    pub(super) fn wanted(self) -> &'static str {
        match self {
            Kind::Any => "anything",
            Kind::Text => "a string",
            Kind::Integer => "an integer",
            Kind::Number => "a number",
            Kind::Boolean => "true or false",
            Kind::IntegerOrText => "an integer or a string",
            Kind::List => "a list",
            Kind::Map => "an object",
        }
    }

    /// Returns whether a value has this type. The caller must have called [`settle`](Self::settle) before, which
    /// converts whole numbers.
    pub(super) fn is(self, value: &Value) -> bool {
        match self {
            Kind::Any => true,
            Kind::Text => value.is_string(),
            Kind::Integer => value.is_i64(),
            Kind::Number => value.is_number(),
            Kind::Boolean => value.is_boolean(),
            Kind::IntegerOrText => value.is_i64() || value.is_string(),
            Kind::List => value.is_array(),
            Kind::Map => value.is_object(),
        }
    }

    /// Converts a whole number such as 1.0 to an integer, if this type is integer.
    pub(super) fn settle(self, value: &mut Value) {
        if matches!(self, Kind::Integer | Kind::IntegerOrText)
            && value.is_f64()
            && let Some(integer) = value.as_f64().and_then(whole)
        {
            *value = Value::from(integer);
        }
    }
}
