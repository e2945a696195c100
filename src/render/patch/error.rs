//! The errors of patch operations.

use serde_json::Value;

use super::path::Segment;
use super::{MAX_ADDED, MAX_MATCHES};
use crate::api::Object;
use crate::text;

/// The reason why a patch operation failed. `at` is the path up to the failure, with indices instead of
/// filters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The operation needs a value, but the patch has none.
    #[error("{0} needs a value")]
    ValueMissing(&'static str),
    /// The operation is `remove`, but the patch has a value.
    #[error("remove takes no value; delete the value, or use replace")]
    ValueUnwanted,
    /// The value of a merge is not a map.
    #[error("merge needs a map as its value, not {found}; use replace or add")]
    ValueNoMap {
        /// The type of the value, in words.
        found: String,
    },
    /// The operation would remove the whole resource.
    #[error("remove needs a path: the whole resource cannot be removed")]
    WholeResource,
    /// The resource does not have the key or the index.
    #[error("{at} has no {segment}{hint}")]
    Missing {
        /// The path up to the failure.
        at: String,
        /// The missing key or index.
        segment: String,
        /// The existing keys, or a hint for the user.
        hint: String,
    },
    /// A filter or wildcard matches nothing.
    #[error("{segment} (segment {place} of the path) matches nothing in {at}{hint}")]
    NoMatch {
        /// The path up to the failure.
        at: String,
        /// The filter or the wildcard.
        segment: String,
        /// The number of the segment in the path, counted from 1.
        place: usize,
        /// The existing items, in words.
        hint: String,
    },
    /// A value on the path has a type that the next segment cannot be applied to.
    #[error("{at} is {found}; {segment} needs {wanted}")]
    Unfit {
        /// The path of the value.
        at: String,
        /// The type of the value, in words.
        found: String,
        /// The next segment of the path.
        segment: String,
        /// The type that the segment needs, in words.
        wanted: &'static str,
    },
    /// The last segment of the path of an `add` is a filter or a wildcard.
    #[error(
        "add needs a key, an index or `-` at the end of its path; use replace or merge for the items that {segment} finds"
    )]
    AddToMatches {
        /// The last segment of the path.
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
