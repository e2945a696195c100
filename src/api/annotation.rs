//! Reads those of bowline's annotations whose value is JSON text.

use kube::ResourceExt;
use serde::Deserialize;

/// The error if the value of an annotation is not the expected JSON.
#[derive(Debug, thiserror::Error)]
#[error(
    "annotation {annotation} of {kind} {name} cannot be read: {cause}; remove it or write it with bowline"
)]
pub struct UnreadableAnnotation {
    /// The key of the invalid annotation.
    pub annotation: &'static str,
    /// The kind of the object that has the annotation.
    pub kind: &'static str,
    /// The name of the object that has the annotation.
    pub name: String,
    /// The error of the JSON parser, as the cause.
    #[source]
    pub cause: serde_json::Error,
}

/// Parses the JSON value of an annotation. Returns None if the object does not have the annotation.
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
