//! The operation that made the last change of a subject. It is stored in annotations of the subject.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde::{Deserialize, Serialize};

use super::annotation::{self, UnreadableAnnotation};
use super::bowline::audit::{Action, ContentRef};
use super::hold::Hold;
use super::labels;

/// The operation that made the last change of a subject's spec. It is the value of the annotation
/// `bowline.dev/operation`, which the engine writes in the same request as the change.
///
/// It contains everything that the AuditEntry of the change needs, so that another process can write a
/// missing entry later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operation {
    /// The id of the operation. A retry has the same id.
    pub id: String,
    /// The number of the change: for a ReleasePin, its generation after the change. If the subject has
    /// another number now, the operation belongs to an older change.
    #[serde(rename = "generation")]
    pub number: i64,
    /// The action, such as Promote or Rollback.
    pub action: Action,
    /// The time of the change.
    pub at: Time,
    /// The user, as the API server reported it to the writer. Set only for kinds whose changes no admission
    /// policy stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The reason that the user gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The content of the subject before the change, for example its effective Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ContentRef>,
    /// The content of the subject after the change, for example its effective Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ContentRef>,
    /// The hash of the changes of the rendered manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_hash: Option<String>,
    /// The revision that a rollback restores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// The holds before the change, for an undo. Always empty for a ReleasePin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holds_before: Vec<Hold>,
}

impl Operation {
    /// Returns the operation as the value of the annotation.
    pub fn to_annotation(&self) -> String {
        serde_json::to_string(self).expect("BUG: an operation is JSON")
    }
}

/// Reads the operation of the change with this number. None: the annotation is missing or belongs to an older
/// change, because an edit by kubectl keeps it.
pub fn of(
    object: &impl ResourceExt,
    kind: &'static str,
    number: Option<i64>,
) -> Result<Option<Operation>, UnreadableAnnotation> {
    let written: Option<Operation> = annotation::read(object, labels::OPERATION, kind)?;
    Ok(written.filter(|operation| Some(operation.number) == number))
}

/// Returns the user of the last change of the spec, from the annotation that the API server stamped.
pub fn changed_by(object: &impl ResourceExt) -> Option<&str> {
    let user = object.annotations().get(labels::CHANGED_BY);
    user.map(String::as_str)
}

/// Returns the hash of the AuditEntry that was the newest one at the last change of the spec.
pub fn audit_head(object: &impl ResourceExt) -> Option<&str> {
    let head = object.annotations().get(labels::AUDIT_HEAD);
    head.map(String::as_str)
}
