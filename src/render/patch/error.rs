//! The errors of patch operations.

use serde_json::Value;

use super::path::Segment;
use super::{MAX_ADDED, MAX_MATCHES};
use crate::api::Object;
use crate::text;

/// The reason why a patch operation failed. The field `at` is the path up to the failing segment, with indices in
/// place of filters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The operation needs a value, but the patch has none. Contains the operation.
    #[error("{0} needs a value")]
    ValueMissing(&'static str),
    /// The operation is `remove`, but the patch has a value.
    #[error("remove takes no value; delete the value, or use replace")]
    ValueUnwanted,
    /// The operation is `merge`, but its value is not a map.
    #[error("merge needs a map as its value, not {found}; use replace or add")]
    ValueNoMap {
        /// The type of the patch's value, in words.
        found: String,
    },
    /// The operation would remove the whole resource, because its path is empty.
    #[error("remove needs a path: the whole resource cannot be removed")]
    WholeResource,
    /// The resource does not have a key or an index of the path.
    #[error("{at} has no {segment}{hint}")]
    Missing {
        /// The path up to the missing key or index.
        at: String,
        /// The missing key or index.
        segment: String,
        /// The keys that exist there, or another hint for the user.
        hint: String,
    },
    /// A filter or wildcard of the path matches nothing.
    #[error("{segment} (segment {place} of the path) matches nothing in {at}{hint}")]
    NoMatch {
        /// The path up to the filter or wildcard.
        at: String,
        /// The filter or wildcard that matches nothing.
        segment: String,
        /// The number of this segment in the path, counted from 1.
        place: usize,
        /// The items that exist there, in words.
        hint: String,
    },
    /// The path continues with a segment that does not fit the type of the value, such as a key of a list.
    #[error("{at} is {found}; {segment} needs {wanted}")]
    Unfit {
        /// The path up to this value.
        at: String,
        /// The type of this value, in words.
        found: String,
        /// The segment that does not fit the value.
        segment: String,
        /// The type that the segment needs, in words.
        wanted: &'static str,
    },
    /// The path of an `add` ends with a filter or a wildcard.
    #[error(
        "add needs a key, an index or `-` at the end of its path; use replace or merge for the items that {segment} finds"
    )]
    AddToMatches {
        /// The filter or wildcard at the end of the path.
        segment: String,
    },
    /// The operation would change more than [`MAX_MATCHES`] values.
    #[error("the path finds more than {MAX_MATCHES} places")]
    TooManyMatches,
    /// The operation would add more than [`MAX_ADDED`] bytes.
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

/// Returns a hint that lists the names of the items, because most filters use the field `name`.
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
