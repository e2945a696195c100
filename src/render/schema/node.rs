//! The form that both notations are parsed into.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::{Number, Value};

use super::format;

/// The schema of one value.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) kind: Kind,
    pub(super) nullable: bool,
    /// The default: written by the author, or made of the defaults of the fields.
    pub(super) default: Option<Filling>,
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

/// The handling of keys of a map that are not fields.
#[derive(Clone, Debug, Default)]
pub(super) enum Others {
    /// They are removed with a warning.
    Drop,
    #[default]
    Keep,
    Each(Box<Node>),
}

/// A default that is valid for its node.
#[derive(Clone, Debug)]
pub(super) struct Filling {
    pub(super) value: Value,
    /// The approximate size in bytes.
    pub(super) weight: usize,
}

/// A rule for values of one type; values of other types fulfil it.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    Enum(Vec<Value>),
    Least(Bound),
    Most(Bound),
    MultipleOf(Number),
    Int32,
    MinLength(usize),
    MaxLength(usize),
    Pattern(Regex),
    Format(&'static str, format::Check),
    MinItems(usize),
    MaxItems(usize),
    UniqueItems,
    MinProperties(usize),
    MaxProperties(usize),
    AllOf(Vec<Node>),
    AnyOf(Vec<Node>),
    OneOf(Vec<Node>),
    Not(Box<Node>),
}

#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub(super) limit: Number,
    pub(super) exclusive: bool,
}

impl Kind {
    /// Returns the name of the expected type.
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

    /// Returns whether a value has this type, after whole numbers became integers.
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

    /// Converts a whole number to an integer if the type is integer.
    pub(super) fn settle(self, value: &mut Value) {
        if matches!(self, Kind::Integer | Kind::IntegerOrText)
            && let Value::Number(number) = value
            && let Some(whole) = whole(number)
        {
            *value = Value::from(whole);
        }
    }
}

/// Returns a number without a fraction as an integer of 64 bits.
pub(super) fn whole(number: &Number) -> Option<i64> {
    if let Some(integer) = number.as_i64() {
        return Some(integer);
    }
    let float = number.as_f64().filter(|_| number.is_f64())?;
    // Both limits are exact as floats; the upper one is the first number that is too large.
    let fits = float.fract() == 0.0 && (-(2f64.powi(63))..2f64.powi(63)).contains(&float);
    fits.then_some(float as i64)
}
