//! Annotations of ours whose value is JSON.

use kube::ResourceExt;
use serde::Deserialize;

/// An annotation of ours whose value cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "annotation {annotation} of {kind} {name} cannot be read: {cause}; remove it or write it with bowline"
)]
pub struct UnreadableAnnotation {
    /// The annotation.
    pub annotation: &'static str,
    /// The kind of the object.
    pub kind: &'static str,
    /// The name of the object.
    pub name: String,
    /// What is wrong with the value.
    #[source]
    pub cause: serde_json::Error,
}

/// Reads an annotation whose value is JSON.
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
