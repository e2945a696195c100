//! The schema of the parameters of a definition: the shorthand or OpenAPI v3, with defaults.
//!
//! Both notations are read into one form. The **shorthand** is a map of names to texts:
//!
//! ```yaml
//! replicas: "integer | default=1 minimum=0"
//! tier: 'string | enum=web,batch default=web description="where it runs"'
//! ports: "[]integer | minItems=1"
//! labels: "map<string>"
//! autoscaling: {enabled: "boolean | default=false", maxReplicas: "integer | maximum=50"}
//! ```
//!
//! - Types are `string`, `integer`, `number`, `boolean`, `object` (free form), `any`, `[]T` and
//!   `map<T>`; a map of names is a nested object. Attributes come after `|`, separated by blanks;
//!   a value with blanks stands in `"..."` (escapes as in JSON) or `'...'` (verbatim); the default
//!   of a list, a map or an object is JSON. What a value means depends on the type:
//!   `default=5` is a text for a string and a number for an integer.
//! - **OpenAPI v3** is recognised by `type: object` beside `properties` (or
//!   `additionalProperties`), or by an `openAPIV3Schema` around it. Objects without `properties`
//!   and `additionalProperties` are free-form. `allOf`, `anyOf`, `oneOf` and `not` check but give
//!   no defaults. `$ref` and unknown keywords are refused; `x-` ones are ignored, except
//!   `x-kubernetes-preserve-unknown-fields` and `x-kubernetes-int-or-string`.
//! - The formats `byte`, `cidr`, `date`, `date-time`, `duration` (`1h30m`), `email`, `hostname`,
//!   `int32`, `ipv4`, `ipv6`, `uri` and `uuid` are checked; `double`, `float`, `int64` and
//!   `password` only document; others are refused.
//! - Patterns are those of the `regex` crate. A pattern that is not anchored may match anywhere in the text.
//!
//! In both notations, a parameter without a default stays absent if it is not given; it is optional unless the
//! schema requires it. An object that is not given but whose fields have defaults is added with these defaults,
//! unless it would be invalid because a required field has no default.
//!
//! The callers merge the parameters before they call this module, and they handle an empty schema.
//!
//! `kube_embedded::schema` walks schemas too. It repeats the validator of the API server: the order of its errors,
//! its choice among the alternatives of `anyOf`, its nulls, and a comparison with the old object. This module
//! stops at a wrong type, limits the steps, and makes the default of an object from the defaults of its fields.
//! The code that both modules share is in `kube_values`: limits, equality, and formats.

mod fit;
mod keywords;
mod node;
mod openapi;
mod scan;
mod shorthand;
#[cfg(test)]
mod tests;
mod words;

use std::fmt;

use serde_json::Value;

use self::fit::Fit;
use self::node::Node;
use crate::api::Object;

/// The deepest nesting of a schema.
const MAX_DEPTH: usize = 50;
/// The largest number of types in a schema, including nested ones.
const MAX_NODES: usize = 4_096;
/// The largest memory of the compiled patterns of a schema, in bytes.
const MAX_PATTERNS: usize = 16 << 20;
/// The deepest nesting of parameters.
const MAX_VALUE_DEPTH: usize = 128;
/// The largest number of listed problems.
const MAX_PROBLEMS: usize = 100;
/// The largest number of values in one check; a value counts again for each alternative.
const MAX_STEPS: usize = 2_000_000;
/// The approximate number of bytes that defaults can add to parameters.
const MAX_FILLED: usize = 8 << 20;

/// The schema of parameters, in one form for both notations.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Node,
}

/// An error in a schema or a value, with its path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// The path, such as `autoscaling.maxReplicas`, `ports[2]` or `labels["a.b"]`; empty for the whole value.
    /// In an OpenAPI schema it is the path in the schema, such as `properties.ports.items.minimum`.
    pub path: String,
    /// The message; for a text in the shorthand it begins with the column.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

/// The result of checking parameters with a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitted {
    /// The parameters with defaults and without unknown keys.
    pub value: Object,
    /// Warnings about the unknown keys that were removed.
    pub dropped: Vec<Problem>,
    /// The values that do not fit the schema.
    pub errors: Vec<Problem>,
}

impl Schema {
    /// Reads the parameters of a definition, in the shorthand or as an OpenAPI v3 schema.
    pub fn parse(parameters: &Object) -> Result<Schema, Vec<Problem>> {
        let mut reader = openapi::Reader::default();
        let root = match openapi::recognise(parameters) {
            Some((path, keywords)) => reader.root(path, keywords),
            None => shorthand::object(&mut reader, parameters),
        };
        if reader.problems.is_empty() {
            Ok(Schema { root })
        } else {
            Err(reader.problems)
        }
    }

    /// Sets defaults, removes unknown keys and finds the values that do not fit.
    ///
    /// A null is handled as an absent value if the schema does not allow null, and a whole number as an
    /// integer. An invalid value stays in the result unchanged.
    pub fn fit(&self, value: Object) -> Fitted {
        let mut value = Value::Object(value);
        let mut fit = Fit::default();
        if is_deeper(&value, MAX_VALUE_DEPTH) {
            fit.errors.push(Problem {
                path: String::new(),
                message: format!(
                    "the parameters are nested more than {MAX_VALUE_DEPTH} levels deep"
                ),
            });
        } else {
            fit.fit(&self.root, &mut value);
        }
        Fitted {
            value: match value {
                Value::Object(value) => value,
                _ => Object::new(),
            },
            dropped: fit.dropped,
            errors: fit.errors,
        }
    }
}

/// Returns whether a value is nested deeper than the given number of levels, without recursion.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        if level > levels + 1 {
            return true;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, level + 1))),
            _ => {}
        }
    }
    false
}
