//! AuditEntry: the record of one action, with its user and its reason. Each entry contains the hash of the
//! entry before it, so a later change of an entry is detected.
//!
//! A ReleasePin has one chain of entries, numbered by generation. The marks and garbage collections of a
//! component have another chain. The engine writes and verifies the chains.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::hold::Hold;
use crate::api::schema;

/// The reason in an entry whose change is unknown, because the git clone is shallow.
pub const CLONE_ENDS: &str = "not known: the clone ends here";

/// One action on a subject, or on the releases of a component.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bowline.dev",
    version = "v1alpha1",
    kind = "AuditEntry",
    plural = "auditentries",
    namespaced,
    derive = "PartialEq",
    doc = "An AuditEntry records one action on a subject, such as a ReleasePin, or on the releases of a component: who, what, when and why. It never changes, and it contains the hash of the previous entry.",
    shortname = "audit",
    category = "bowline",
    selectable = ".spec.subject.name",
    selectable = ".spec.operation",
    printcolumn(name = "When", type_ = "string", json_path = ".spec.at"),
    printcolumn(name = "Actor", type_ = "string", json_path = ".spec.actor"),
    printcolumn(name = "Action", type_ = "string", json_path = ".spec.action"),
    printcolumn(name = "Subject", type_ = "string", json_path = ".spec.subject.name"),
    printcolumn(name = "From", type_ = "string", json_path = ".spec.from.name"),
    printcolumn(name = "To", type_ = "string", json_path = ".spec.to.name"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".spec.reason",
        priority = 1
    ),
    printcolumn(
        name = "Recorded By",
        type_ = "string",
        json_path = ".spec.recordedBy",
        priority = 1
    ),
    printcolumn(
        name = "Operation",
        type_ = "string",
        json_path = ".spec.operation",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "(self.action == 'Gap') == has(self.gap)",
        "message": "gap must be present if the action is Gap, and absent otherwise"
    },
    {
        "rule": "(self.action == 'Checkpoint') == has(self.checkpoint)",
        "message": "checkpoint must be present if the action is Checkpoint, and absent otherwise"
    }
]))]
pub struct AuditEntrySpec {
    /// The subject of the entry.
    pub subject: Subject,
    /// The place of the entry in the chain of its subject: the generation of the subject; for a component, the
    /// number of the entry.
    #[schemars(range(min = 1))]
    pub revision: i64,
    /// The id of the operation, which all entries of one command share; absent if another program made the
    /// change, such as kubectl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub operation: Option<String>,
    /// The user who made the change, as the API server recorded it; absent if the server recorded no user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The user who created this AuditEntry, such as a controller; it can be another user than the actor. A
    /// policy refuses an entry whose recordedBy is not the user who creates it.
    #[schemars(length(min = 1))]
    pub recorded_by: String,
    /// The action, such as Promote or Rollback.
    pub action: Action,
    /// The time of the action.
    #[schemars(schema_with = "schema::moment")]
    pub at: Time,
    /// The reason for the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The content of the subject before the action, such as the effective Release; or the deleted Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ContentRef>,
    /// The content of the subject after the action, such as the effective Release; or the marked Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ContentRef>,
    /// The releaseRef of the ReleasePin after the action, if a hold names another Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub release_ref: Option<String>,
    /// The holds of the subject after the action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub holds: Vec<Hold>,
    /// The revision that a rollback restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// The hash of the differences that the action makes in the rendered manifests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_hash: Option<String>,
    /// The hash of the previous entry; absent in the first entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub previous: Option<String>,
    /// The revisions that no bowline process observed; present only if the action is Gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// The entries that retention removed; present only if the action is Checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// The subject whose chain contains an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// The kind of the subject, such as ReleasePin; Component for the actions on the releases of a component.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// The namespace of the subject, if it is not the namespace of the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// The name of the subject.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The uid of the subject; absent for a component, whose chain stays when it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// The subject kind of the chain that records the changes and holds of one ReleasePin.
pub const RELEASE_PIN: &str = "ReleasePin";
/// The subject kind of the chain that records the marks and deletions of the releases of one component.
pub const COMPONENT: &str = "Component";

/// The subject kinds that an entry can have.
pub const SUBJECT_KINDS: &[&str] = &[
    RELEASE_PIN,
    COMPONENT,
    "Deployment",
    "StatefulSet",
    "DaemonSet",
];

/// The actions that audit entries record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// A user deployed a release.
    Deploy,
    /// The controller deployed a release (autoDeploy).
    AutoDeploy,
    /// A release was promoted from another environment.
    Promote,
    /// An earlier release was restored.
    Rollback,
    /// A hold was placed.
    Pin,
    /// A hold was lifted.
    Unpin,
    /// The last action was reversed.
    Undo,
    /// Another program than bowline changed the subject.
    Edit,
    /// A release was marked bad.
    MarkBad,
    /// A release was marked good.
    MarkGood,
    /// A release is deleted as garbage. The entry is written before the deletion, so that no deletion is
    /// lost.
    Collect,
    /// A release that was chosen for deletion stays, or was restored.
    Restore,
    /// Revisions that no bowline process saw.
    Gap,
    /// Retention removed the earlier entries.
    Checkpoint,
}

/// The content of a subject, such as a Release: its name, and the uid and hash that distinguish it from other
/// content of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContentRef {
    /// The name of the release or revision, such as the name of the Release.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The uid of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The hash of the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

impl ContentRef {
    /// Returns a reference to content of which only the name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Default::default()
        }
    }
}

/// Revisions that no bowline process saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The first revision of the gap.
    pub first: i64,
    /// The last revision of the gap.
    pub last: i64,
}

/// The entries that retention removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// The last revision that was removed.
    pub through: i64,
    /// How many entries were removed.
    pub entries: i64,
    /// The hash of the last entry that was removed.
    #[schemars(length(min = 64, max = 64))]
    pub hash: String,
}
