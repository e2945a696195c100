//! The schema of the parameters of a definition, in the shorthand or in OpenAPI v3.
//!
//! Both notations are parsed into one form. The **shorthand** is a map of names to texts:
//!
//! ```yaml
//! replicas: "integer | default=1 minimum=0"
//! tier: 'string | enum=web,batch default=web description="where it runs"'
//! ports: "[]integer | minItems=1"
//! labels: "map<string>"
//! autoscaling: {enabled: "boolean | default=false", maxReplicas: "integer | maximum=50"}
//! ```
//!
//! - Types are `string`, `integer`, `number`, `boolean`, `object` (free-form), `any`, `[]T` and `map<T>`. A
//!   map of names is a nested object. Attributes follow after `|`, separated by blanks. A value with blanks
//!   is written as `"..."` (with the escapes of JSON) or `'...'` (verbatim). The default of a list, a map or
//!   an object is JSON. The type determines how a value is read: `default=5` is a text for a string and a
//!   number for an integer.
//! - **OpenAPI v3** is recognised by `type: object` together with `properties` (or `additionalProperties`),
//!   or by an enclosing `openAPIV3Schema`. Objects without `properties` and `additionalProperties` are
//!   free-form. `allOf`, `anyOf`, `oneOf` and `not` only restrict values and cannot contain defaults. `$ref`
//!   and unknown keywords are refused. Keywords that begin with `x-` are ignored, except
//!   `x-kubernetes-preserve-unknown-fields` and `x-kubernetes-int-or-string`.
//! - The formats `byte`, `cidr`, `date`, `date-time`, `duration` (`1h30m`), `email`, `hostname`, `int32`,
//!   `ipv4`, `ipv6`, `uri` and `uuid` are checked. `double`, `float`, `int64` and `password` are accepted
//!   without a check. Other formats are refused.
//! - Patterns have the syntax of the `regex` crate. A pattern without anchors may match anywhere in the text.
//!
//! In both notations, a parameter that is not given and has no default stays absent; it is optional unless
//! the schema requires it. If an object is not given but its fields have defaults, the object is added with
//! these defaults, unless it would be invalid because a required field has no default.
//!
//! Before callers use this module, they merge the parameters and handle an empty schema.
//!
//! `kube_embedded::schema` also validates with schemas. It behaves like the validator of the API server: the
//! order of the errors, the choice among the alternatives of `anyOf`, nulls, and the comparison with the old
//! object. This module stops at a wrong type, limits the steps, and composes the default of an object from
//! the defaults of its fields. The code that the two validators share is in `kube_values`: limits, equality
//! and formats.

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

/// The largest nesting depth of a schema.
const MAX_DEPTH: usize = 50;
/// The largest number of types in a schema, including nested types.
const MAX_NODES: usize = 4_096;
/// The largest total size of the compiled patterns of a schema, in bytes.
const MAX_PATTERNS: usize = 16 << 20;
/// The largest nesting depth of parameters.
const MAX_VALUE_DEPTH: usize = 128;
/// The largest number of problems that one check of a schema or of parameters reports.
const MAX_PROBLEMS: usize = 100;
/// The largest number of values that one check of parameters visits. A value that is tried with several alternatives
/// counts several times.
const MAX_STEPS: usize = 2_000_000;
/// The largest size of the defaults that are added to the parameters, in bytes. The size is approximate.
const MAX_FILLED: usize = 8 << 20;

/// The parsed schema of the parameters of a definition.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Node,
}

/// An error in a schema or in parameters, with its path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// The path of the wrong value in the parameters, such as `autoscaling.maxReplicas`, `ports[2]` or
    /// `labels["a.b"]`; empty for all parameters. For an error in an OpenAPI schema, the path in the schema, such as
    /// `properties.ports.items.minimum`.
    pub path: String,
    /// The message about the error. For an error in the shorthand, it begins with the column in the text.
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
pub struct Validated {
    /// The parameters with their defaults and without unknown keys.
    pub value: Object,
    /// Warnings about the unknown keys that were removed from the parameters.
    pub dropped: Vec<Problem>,
    /// The parameters that do not match the schema.
    pub errors: Vec<Problem>,
}

impl Schema {
    /// Parses the schema of a definition's parameters, in the shorthand or in OpenAPI v3.
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

    /// Sets the defaults in parameters, removes unknown keys, and reports invalid values as errors.
    ///
    /// If the schema does not allow null, a null counts as an absent value. If it requires an integer, a whole number
    /// such as 1.0 becomes an integer. Invalid values stay in the result unchanged.
    pub fn fit(&self, value: Object) -> Validated {
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
        Validated {
            value: match value {
                Value::Object(value) => value,
                _ => Object::new(),
            },
            dropped: fit.dropped,
            errors: fit.errors,
        }
    }
}

/// Returns whether a value is nested deeper than `levels`. The function does not recurse, because the value may be
/// nested very deeply.
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
