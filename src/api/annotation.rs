//! Reads bowline's annotations whose value is JSON.

use kube::ResourceExt;
use serde::Deserialize;

/// The error of an annotation with an invalid value.
#[derive(Debug, thiserror::Error)]
#[error(
    "annotation {annotation} of {kind} {name} cannot be read: {cause}; remove it or write it with bowline"
)]
pub struct UnreadableAnnotation {
    /// The key of the annotation.
    pub annotation: &'static str,
    /// The kind of the object.
    pub kind: &'static str,
    /// The name of the object.
    pub name: String,
    /// The error of the JSON parser.
    #[source]
    pub cause: serde_json::Error,
}

/// Parses an annotation with a JSON value. None: the object does not have the annotation.
pub(super) fn read<T: for<'de> Deserialize<'de>>(
    object: &impl ResourceExt,
    annotation: &'static str,
    kind: &'static str,
) -> Result<Option<T>, UnreadableAnnotation> {
    object
        .annotations()
        .get(annotation)
        .map(|text| serde_json::from_str(text))
        .transpose()
        .map_err(|cause| UnreadableAnnotation {
            annotation,
            kind,
            name: object.name_any(),
            cause,
        })
}
