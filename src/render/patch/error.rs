//! Why an operation was not done, and what was found instead.

use serde_json::Value;

use super::path::Segment;
use super::{MAX_ADDED, MAX_MATCHES};
use crate::api::Object;
use crate::text;

/// Why an operation was not done. `at` is the place that was reached, with indices for filters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The verb needs a value.
    #[error("{0} needs a value")]
    ValueMissing(&'static str),
    /// Only the other verbs take a value.
    #[error("remove takes no value; delete the value, or use replace")]
    ValueUnwanted,
    /// Only maps merge.
    #[error("merge needs a map as its value, not {found}; use replace or add")]
    ValueNoMap {
        /// What the value is.
        found: String,
    },
    /// The resource itself can be merged with and replaced.
    #[error("remove needs a path: the whole resource cannot be removed")]
    WholeResource,
    /// The key or the index is not there.
    #[error("{at} has no {segment}{hint}")]
    Missing {
        /// The place that was reached.
        at: String,
        /// What was looked for there.
        segment: String,
        /// What is there, or what to do.
        hint: String,
    },
    /// A filter or wildcard found nothing.
    #[error("{segment} (segment {place} of the path) matches nothing in {at}{hint}")]
    NoMatch {
        /// The place that was reached.
        at: String,
        /// The filter or wildcard.
        segment: String,
        /// Which segment of the path it is, from 1.
        place: usize,
        /// What is there.
        hint: String,
    },
    /// What was reached is of the wrong type.
    #[error("{at} is {found}; {segment} needs {wanted}")]
    Unfit {
        /// The place that was reached.
        at: String,
        /// What is there.
        found: String,
        /// What was to be done there.
        segment: String,
        /// What has to be there.
        wanted: &'static str,
    },
    /// The last segment does not say where to add.
    #[error(
        "add needs a key, an index or `-` at the end of its path; for what {segment} finds use replace or merge"
    )]
    AddToMatches {
        /// The last segment.
        segment: String,
    },
    /// The operation would change too much.
    #[error("the path finds more than {MAX_MATCHES} places")]
    TooManyMatches,
    /// The operation would add too much.
    #[error("the operation adds more than {MAX_ADDED} bytes")]
    TooMuch,
}

pub(super) fn shown(segment: &Segment) -> String {
    format!("`{}`", text::fit(&segment.to_string(), 120))
}

pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(text) => format!("the text {:?}", text::fit(text, 40)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a map".to_owned(),
    }
}

pub(super) fn keys_hint(map: &Object) -> String {
    if map.is_empty() {
        return ", it is empty".to_owned();
    }
    let keys: Vec<&str> = map.keys().take(8).map(String::as_str).collect();
    format!(", it has {}", text::fit(&keys.join(", "), 80))
}

pub(super) fn items_hint(length: usize) -> String {
    match length {
        0 => ", the list is empty".to_owned(),
        1 => ", the list has 1 item".to_owned(),
        _ => format!(", the list has {length} items"),
    }
}

/// Lists what a filter could have found, by the field that most filters use.
pub(super) fn names_hint(items: &[Value]) -> String {
    let names: Vec<&str> = items
        .iter()
        .filter_map(|item| item.as_object()?.get("name")?.as_str())
        .take(8)
        .collect();
    if names.is_empty() {
        items_hint(items.len())
    } else {
        format!(", its items are {}", text::fit(&names.join(", "), 80))
    }
}
