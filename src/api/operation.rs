//! The operation that changed a subject last, as annotations of the subject store it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

use super::annotation::{self, UnreadableAnnotation};
use super::bowline::audit::{Action, ContentRef};
use super::hold::Hold;
use super::labels;

/// The operation that changed the spec of a subject last. It is stored as JSON in the annotation
/// `bowline.dev/operation`, which the engine writes in the same request as the change.
///
/// The operation contains all data of the AuditEntry for the change. So another process can write the entry
/// later if it is missing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The id of the operation. A retry of the operation has the same id.
    pub id: String,
    /// The number of the change: for a ReleasePin, the generation after the change. If the subject has a
    /// higher number now, this operation is out of date.
    #[serde(rename = "generation")]
    pub number: i64,
    /// The action, such as Promote or Rollback.
    pub action: Action,
    /// The time at which the operation changed the subject.
    pub at: Time,
    /// The user, as the API server reported it to the writer. None for kinds whose changes an admission
    /// policy stamps with the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The user's reason for the operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The content of the subject before the change, for example its effective Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ContentRef>,
    /// The content of the subject after the change, for example its effective Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ContentRef>,
    /// The hash of the differences that the operation makes in the rendered manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_hash: Option<String>,
    /// The number of the revision that a rollback restores; None for other actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// The holds of the subject before the change, so that an undo can restore them. Always empty for a
    /// ReleasePin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds_before: Vec<Hold>,
}

impl Operation {
    /// Returns the operation as JSON, for the annotation.
    pub fn to_annotation(&self) -> String {
        serde_json::to_string(self).expect("BUG: an operation is JSON")
    }
}

/// Returns the operation of the change with this number. Returns None if the annotation is missing, or if it
/// belongs to an older change because kubectl made this one.
pub fn of(
    object: &impl ResourceExt,
    kind: &'static str,
    number: Option<i64>,
) -> Result<Option<Operation>, UnreadableAnnotation> {
    let written: Option<Operation> = annotation::read(object, labels::OPERATION, kind)?;
    Ok(written.filter(|operation| Some(operation.number) == number))
}

/// Returns the user who changed the spec last, from the annotation that the API server writes.
pub fn changed_by(object: &impl ResourceExt) -> Option<&str> {
    let user = object.annotations().get(labels::CHANGED_BY);
    user.map(String::as_str)
}

/// Returns the hash of the AuditEntry that was the newest one when the spec changed last.
pub fn audit_head(object: &impl ResourceExt) -> Option<&str> {
    let head = object.annotations().get(labels::AUDIT_HEAD);
    head.map(String::as_str)
}
