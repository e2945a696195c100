//! The values of an evaluation. Values of the input borrow the JSON, and new values are reference-counted.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use base64::Engine as _;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kube_values::limit::whole;
use kube_values::{duration, time};
use serde_json::Value;

use super::functions::Quantity;
use super::meter::Meter;
use super::{AccessQuery, CelError};

#[derive(Debug, Clone)]
pub(super) enum Text<'a> {
    Borrowed(&'a str),
    Shared(Rc<str>),
}

impl std::ops::Deref for Text<'_> {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(other)
    }
}

/// The key of a CEL map. A `uint` that fits into an `int` becomes [`Key::Int`], because `1` and `1u` are the same
/// key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Text(Text<'a>),
}

#[derive(Debug, Clone)]
pub(super) enum Val<'a> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(Text<'a>),
    Bytes(Rc<[u8]>),
    /// A JSON array or object of the input, and its schema; None if the schema is not known. A scalar is never stored
    /// here.
    Json(&'a Value, Option<&'a Value>),
    List(Rc<Vec<Val<'a>>>),
    Map(Rc<BTreeMap<Key<'a>, Val<'a>>>),
    Time(Timestamp),
    /// A duration in nanoseconds.
    Span(i64),
    Type(&'static str),
    Optional(Option<Rc<Val<'a>>>),
    Quantity(Quantity),
    /// The authorizer, as the permission query that the expression has built so far.
    Access(Rc<AccessQuery>),
    Decision(bool),
    /// The namespace `variables`, whose fields are the policy variables.
    Variables,
}

impl<'a> Val<'a> {
    /// Converts JSON to a value. The schema determines the type of a scalar, for example a timestamp.
    pub(super) fn json(value: &'a Value, schema: Option<&'a Value>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(is) => Self::Bool(*is),
            Value::Number(number) => {
                let double = number.as_f64().unwrap_or(f64::NAN);
                match (number.as_i64(), says(schema, "type")) {
                    (Some(_), Some("number")) => Self::Double(double),
                    (Some(int), _) => Self::Int(int),
                    (None, Some("integer")) => {
                        whole(double).map_or(Self::Double(double), Self::Int)
                    }
                    (None, _) => Self::Double(double),
                }
            }
            Value::String(text) => match says(schema, "format") {
                Some(format) => Self::formatted(text, format),
                None => Self::Text(Text::Borrowed(text)),
            },
            Value::Array(_) | Value::Object(_) => Self::Json(value, schema),
        }
    }

    fn formatted(text: &'a str, format: &str) -> Self {
        let typed = match format {
            "date-time" => time::timestamp(text).map(Self::Time),
            "date" => time::date(text)
                .and_then(|day| day.to_zoned(TimeZone::UTC).ok())
                .map(|start| Self::Time(start.timestamp())),
            "duration" => duration::parse(text).map(Self::Span),
            "byte" => base64::engine::general_purpose::STANDARD
                .decode(text)
                .ok()
                .map(|bytes| Self::Bytes(bytes.into())),
            _ => None,
        };
        typed.unwrap_or(Self::Text(Text::Borrowed(text)))
    }

    pub(super) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Shared(text.into()))
    }

    pub(super) fn list(items: Vec<Val<'a>>) -> Self {
        Self::List(Rc::new(items))
    }

    pub(super) fn some(value: Val<'a>) -> Self {
        Self::Optional(Some(Rc::new(value)))
    }

    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::Text(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Json(Value::Array(_), _) | Self::List(_) => "list",
            Self::Json(..) | Self::Map(_) => "map",
            Self::Time(_) => "google.protobuf.Timestamp",
            Self::Span(_) => "google.protobuf.Duration",
            Self::Type(_) => "type",
            Self::Optional(_) => "optional_type",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Access(_) => "kubernetes.authorization.Authorizer",
            Self::Decision(_) => "kubernetes.authorization.Decision",
            Self::Variables => "kubernetes.variables",
        }
    }

    /// Returns the number of items in a list; None if the value is not a list.
    pub(super) fn list_len(&self) -> Option<usize> {
        match self {
            Self::List(items) => Some(items.len()),
            Self::Json(Value::Array(items), _) => Some(items.len()),
            _ => None,
        }
    }

    /// Returns the item at an index of a list; None if the value is not a list or has no item there.
    pub(super) fn item(&self, at: usize) -> Option<Val<'a>> {
        match self {
            Self::List(items) => items.get(at).cloned(),
            Self::Json(Value::Array(items), schema) => items
                .get(at)
                .map(|item| Val::json(item, schema.and_then(|s| s.get("items")))),
            _ => None,
        }
    }

    /// Returns the items of a list; an empty iterator for other values.
    pub(super) fn items(&self) -> impl Iterator<Item = Val<'a>> {
        (0..self.list_len().unwrap_or(0)).filter_map(|at| self.item(at))
    }

    /// Returns the number of entries in a map; None if the value is not a map.
    pub(super) fn map_len(&self) -> Option<usize> {
        match self {
            Self::Map(map) => Some(map.len()),
            Self::Json(Value::Object(map), _) => Some(map.len()),
            _ => None,
        }
    }

    /// Returns the entries of a map, sorted by key.
    pub(super) fn entries(&self) -> Vec<(Key<'a>, Val<'a>)> {
        match self {
            Self::Map(map) => map.iter().map(|(k, v)| (k.clone(), v.clone())).collect(),
            Self::Json(Value::Object(map), schema) => map
                .iter()
                .map(|(k, v)| {
                    let key = Key::Text(Text::Borrowed(k));
                    (key, Val::json(v, property(*schema, k)))
                })
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the value of a key in a map; None if the key does not exist.
    pub(super) fn entry(&self, key: &Key<'_>) -> Option<Val<'a>> {
        match self {
            Self::Map(map) => map.get(key).cloned(),
            Self::Json(..) => match key {
                Key::Text(text) => self.field(text),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the value of a text key in a map; None if the key does not exist.
    pub(super) fn field(&self, name: &str) -> Option<Val<'a>> {
        match self {
            Self::Json(Value::Object(map), schema) => map
                .get(name)
                .map(|value| Val::json(value, property(*schema, name))),
            Self::Map(map) => map.get(&Key::Text(Text::Borrowed(name))).cloned(),
            _ => None,
        }
    }

    /// Returns whether the value has a schema that declares properties.
    pub(super) fn declares_properties(&self) -> bool {
        matches!(self, Self::Json(_, Some(schema)) if schema.get("properties").is_some())
    }

    /// Converts the value to a map key; None if values of this type are not allowed as keys.
    pub(super) fn key(&self) -> Option<Key<'a>> {
        match self {
            Self::Bool(is) => Some(Key::Bool(*is)),
            Self::Int(int) => Some(Key::Int(*int)),
            Self::Uint(uint) => Some(i64::try_from(*uint).map_or(Key::Uint(*uint), Key::Int)),
            Self::Double(double) => whole(*double).map(Key::Int),
            Self::Text(text) => Some(Key::Text(text.clone())),
            _ => None,
        }
    }

    /// Returns whether two values are equal. Values of different types are never equal, but `int`, `uint` and
    /// `double` count as one type.
    pub(super) fn equals(&self, other: &Self, meter: &mut Meter) -> Result<bool, CelError> {
        meter.step(1)?;
        Ok(match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Text(a), Self::Text(b)) => {
                meter.scan(a.len().min(b.len()))?;
                a == b
            }
            (Self::Bytes(a), Self::Bytes(b)) => {
                meter.scan(a.len().min(b.len()))?;
                a == b
            }
            (Self::Time(a), Self::Time(b)) => a == b,
            (Self::Span(a), Self::Span(b)) => a == b,
            (Self::Type(a), Self::Type(b)) => a == b,
            (Self::Quantity(a), Self::Quantity(b)) => a == b,
            (Self::Optional(None), Self::Optional(None)) => true,
            (Self::Optional(Some(a)), Self::Optional(Some(b))) => a.equals(b, meter)?,
            (Self::Decision(a), Self::Decision(b)) => a == b,
            _ => {
                if let Some(order) = self.numeric_order(other) {
                    return Ok(order == Some(Ordering::Equal));
                }
                if let (Some(a), Some(b)) = (self.list_len(), other.list_len()) {
                    return Ok(a == b && self.same_items(other, meter)?);
                }
                if let (Some(a), Some(b)) = (self.map_len(), other.map_len()) {
                    return Ok(a == b && self.same_entries(other, meter)?);
                }
                false
            }
        })
    }

    fn same_items(&self, other: &Self, meter: &mut Meter) -> Result<bool, CelError> {
        if self.ignores_order() && other.ignores_order() {
            for item in self.items() {
                if !item.is_in(other, meter)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        for (a, b) in self.items().zip(other.items()) {
            if !a.equals(&b, meter)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn same_entries(&self, other: &Self, meter: &mut Meter) -> Result<bool, CelError> {
        for (key, value) in self.entries() {
            match other.entry(&key) {
                Some(there) if value.equals(&there, meter)? => {}
                _ => return Ok(false),
            }
        }
        Ok(true)
    }

    fn ignores_order(&self) -> bool {
        let Self::Json(_, Some(schema)) = self else {
            return false;
        };
        let kind = says(Some(schema), "x-kubernetes-list-type");
        matches!(kind, Some("set" | "map"))
    }

    /// Returns whether a list contains this value.
    pub(super) fn is_in(&self, list: &Self, meter: &mut Meter) -> Result<bool, CelError> {
        for item in list.items() {
            if self.equals(&item, meter)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Compares two numbers of any type. The outer None means that a value is not a number; the inner None
    /// means that a number is NaN.
    fn numeric_order(&self, other: &Self) -> Option<Option<Ordering>> {
        Some(match (self, other) {
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Uint(a), Self::Uint(b)) => Some(a.cmp(b)),
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(b),
            (Self::Int(a), Self::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Uint(a), Self::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
            (Self::Int(a), Self::Double(b)) => order_whole(i128::from(*a), *b),
            (Self::Uint(a), Self::Double(b)) => order_whole(i128::from(*a), *b),
            (Self::Double(a), Self::Int(b)) => {
                order_whole(i128::from(*b), *a).map(Ordering::reverse)
            }
            (Self::Double(a), Self::Uint(b)) => {
                order_whole(i128::from(*b), *a).map(Ordering::reverse)
            }
            _ => return None,
        })
    }

    /// Compares two values; None if one of them is NaN. Fails if their types have no order.
    pub(super) fn order(
        &self,
        other: &Self,
        meter: &mut Meter,
    ) -> Result<Option<Ordering>, CelError> {
        if let Some(order) = self.numeric_order(other) {
            return Ok(order);
        }
        Ok(Some(match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            (Self::Text(a), Self::Text(b)) => {
                meter.scan(a.len().min(b.len()))?;
                a.cmp(b)
            }
            (Self::Bytes(a), Self::Bytes(b)) => {
                meter.scan(a.len().min(b.len()))?;
                a.cmp(b)
            }
            (Self::Time(a), Self::Time(b)) => a.cmp(b),
            (Self::Span(a), Self::Span(b)) => a.cmp(b),
            (Self::Quantity(a), Self::Quantity(b)) => a.cmp(b),
            _ => {
                return Err(CelError::failed(format!(
                    "no such overload: <({}, {})",
                    self.type_name(),
                    other.type_name()
                )));
            }
        }))
    }

    /// Converts the result of an evaluation to JSON. An empty optional becomes null.
    pub(super) fn into_json(self, meter: &mut Meter) -> Result<Value, CelError> {
        let value = self.output(&Some(Value::Null), meter)?;
        Ok(value.unwrap_or_default())
    }

    /// Converts the result of a template to JSON; None if it is an empty optional. An empty optional in a map or list
    /// is left out.
    pub(super) fn into_template(self, meter: &mut Meter) -> Result<Option<Value>, CelError> {
        self.output(&None, meter)
    }

    /// Converts the value to JSON. An empty optional becomes `empty`; if `empty` is None, it is left out.
    fn output(&self, empty: &Option<Value>, meter: &mut Meter) -> Result<Option<Value>, CelError> {
        let size = match self {
            Self::Text(text) => text.len() + 2,
            Self::Bytes(bytes) => bytes.len() * 4 / 3 + 4,
            _ => 8,
        };
        meter.output(size)?;
        meter.step(1)?;
        Ok(Some(match self {
            Self::Optional(None) => return Ok(empty.clone()),
            Self::Null => Value::Null,
            Self::Bool(is) | Self::Decision(is) => Value::Bool(*is),
            Self::Int(int) => Value::from(*int),
            Self::Uint(uint) => Value::from(*uint),
            Self::Double(double) => serde_json::Number::from_f64(*double)
                .map(Value::Number)
                .ok_or_else(|| CelError::failed("the result is a number that is not finite"))?,
            Self::Text(text) => Value::String((**text).to_owned()),
            Self::Bytes(bytes) => {
                Value::String(base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Self::Time(time) => Value::String(time.to_string()),
            Self::Span(nanos) => Value::String(super::functions::show_span(*nanos)),
            Self::Type(name) => Value::String((*name).to_owned()),
            Self::Quantity(quantity) => Value::String(quantity.to_string()),
            Self::Optional(Some(value)) => return value.output(empty, meter),
            Self::Access(_) | Self::Variables => {
                return Err(CelError::failed(format!(
                    "a {} cannot be a result",
                    self.type_name()
                )));
            }
            Self::List(_) | Self::Json(Value::Array(_), _) => {
                let mut items = Vec::new();
                for item in self.items() {
                    items.extend(item.output(empty, meter)?);
                }
                Value::Array(items)
            }
            // The schema is ignored here, so that times and durations of the input stay as they were written.
            Self::Json(value, Some(_)) => return Val::Json(value, None).output(empty, meter),
            Self::Map(_) | Self::Json(..) => {
                let mut map = serde_json::Map::new();
                for (key, value) in self.entries() {
                    let key = match key {
                        Key::Text(text) => (*text).to_owned(),
                        Key::Bool(is) => is.to_string(),
                        Key::Int(int) => int.to_string(),
                        Key::Uint(uint) => uint.to_string(),
                    };
                    meter.output(key.len())?;
                    if let Some(value) = value.output(empty, meter)? {
                        map.insert(key, value);
                    }
                }
                Value::Object(map)
            }
        }))
    }
}

impl<'a> From<Key<'a>> for Val<'a> {
    fn from(key: Key<'a>) -> Self {
        match key {
            Key::Bool(is) => Self::Bool(is),
            Key::Int(int) => Self::Int(int),
            Key::Uint(uint) => Self::Uint(uint),
            Key::Text(text) => Self::Text(text),
        }
    }
}

/// Returns the string that a schema has at a key, such as `type`.
fn says<'a>(schema: Option<&'a Value>, key: &str) -> Option<&'a str> {
    schema.and_then(|s| s.get(key)).and_then(Value::as_str)
}

/// Returns the schema of a property: its schema in `properties`, or else `additionalProperties`.
fn property<'a>(schema: Option<&'a Value>, name: &str) -> Option<&'a Value> {
    let schema = schema?;
    schema
        .get("properties")
        .and_then(|properties| properties.get(name))
        .or_else(|| schema.get("additionalProperties"))
        .filter(|schema| schema.is_object())
}

fn order_whole(int: i128, double: f64) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    if double.abs() > 1e30 {
        return Some(if double > 0.0 {
            Ordering::Less
        } else {
            Ordering::Greater
        });
    }
    let below = double.floor();
    Some(int.cmp(&(below as i128)).then(if double > below {
        Ordering::Less
    } else {
        Ordering::Equal
    }))
}
