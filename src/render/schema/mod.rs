//! The parameters that a definition takes: the shorthand and OpenAPI v3, with defaults.
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
//! - Patterns are those of the `regex` crate, found anywhere unless anchored.
//!
//! In both, a parameter without a default is optional unless it is required, and stays absent. An
//! object whose fields have defaults appears with them when it was not given, unless it would not
//! fit without what it requires.
//!
//! What an empty schema means, and merging, are the callers' business.

mod fit;
mod format;
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

/// The most levels of a schema.
const MAX_DEPTH: usize = 50;
/// The most types in a schema, nested ones included.
const MAX_NODES: usize = 4_096;
/// The most bytes that the compiled patterns of a schema take.
const MAX_PATTERNS: usize = 16 << 20;
/// The most levels of parameters.
const MAX_VALUE_DEPTH: usize = 128;
/// The most problems that are listed.
const MAX_PROBLEMS: usize = 100;
/// The most values that one fitting looks at, again for each alternative.
const MAX_STEPS: usize = 2_000_000;
/// The most bytes, about, that defaults add to parameters.
const MAX_FILLED: usize = 8 << 20;

/// The parameters that a definition takes, in one form for both notations.
#[derive(Clone, Debug)]
pub struct Schema {
    root: Node,
}

/// What is wrong with a schema or a value, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Problem {
    /// The place, as `autoscaling.maxReplicas`, `ports[2]` or `labels["a.b"]`; empty for the whole.
    /// In an OpenAPI schema it is the place in the schema, as `properties.ports.items.minimum`.
    pub path: String,
    /// What is wrong there; for a text in the shorthand it begins with the column.
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

/// Parameters after a schema has seen them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fitted {
    /// The parameters with defaults, without what the schema does not know.
    pub value: Object,
    /// What was taken away because the schema does not know it: warnings.
    pub dropped: Vec<Problem>,
    /// What does not fit.
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

    /// Fills in defaults, drops what is unknown and finds what does not fit.
    ///
    /// A null where null is not allowed counts as absent, and a whole number as an integer. What
    /// does not fit stays in the value as it was given.
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

/// Tells whether values are nested deeper than some levels, without recursion.
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
