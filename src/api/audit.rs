//! AuditEntry: what was done, by whom and why, in chains that cannot be rewritten unseen.
//!
//! A pin has one chain, by generation; marks and garbage collection have one per component. Writing and
//! verifying chains is the engine's work.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pin::Hold;
use super::schema;

/// One action on a ReleasePin or on the releases of a component.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bowline.dev",
    version = "v1alpha1",
    kind = "AuditEntry",
    plural = "auditentries",
    namespaced,
    derive = "PartialEq",
    doc = "An AuditEntry records one action on a ReleasePin, or on the releases of a component: who, what, when and why. It never changes, and it contains the hash of the previous entry.",
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
        "message": "gap is given with the action Gap, and with no other"
    },
    {
        "rule": "(self.action == 'Checkpoint') == has(self.checkpoint)",
        "message": "checkpoint is given with the action Checkpoint, and with no other"
    }
]))]
pub struct AuditEntrySpec {
    /// The subject of the entry.
    pub subject: Subject,
    /// The number in the chain: the generation of the ReleasePin, or the position in the component's chain.
    #[schemars(range(min = 1))]
    pub revision: i64,
    /// The operation; absent for a change without one, such as an edit by kubectl.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub operation: Option<String>,
    /// The user, as the API server stamped it; absent if the server stamped no user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Who wrote this entry; a policy compares it with the writer.
    #[schemars(length(min = 1))]
    pub recorded_by: String,
    /// The action.
    pub action: Action,
    /// The time of the action.
    #[schemars(schema_with = "schema::moment")]
    pub at: Time,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The effective Release before the action, or the deleted Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ReleaseIdentity>,
    /// The effective Release after the action, or the marked Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ReleaseIdentity>,
    /// The releaseRef of the ReleasePin after the action, if a hold names another Release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub release_ref: Option<String>,
    /// The holds of the ReleasePin after the action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub holds: Vec<Hold>,
    /// The revision that a rollback restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// The hash of the change in the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_hash: Option<String>,
    /// The hash of the previous entry; absent in the first entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub previous: Option<String>,
    /// The revisions that no bowline process saw, for the action Gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// The entries that retention removed, for the action Checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// The ReleasePin or the component whose chain contains an entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// A ReleasePin, or a component for actions on its releases.
    pub kind: SubjectKind,
    /// The name of the ReleasePin or the component.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The uid of the ReleasePin; absent for a component, whose chain stays when it is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// What kind of chain an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SubjectKind {
    /// The changes and holds of one ReleasePin.
    ReleasePin,
    /// The marks and deletions of the releases of one component.
    Component,
}

/// The actions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// A person deployed a release.
    Deploy,
    /// The controller deployed a release by itself.
    AutoDeploy,
    /// A release was promoted from another environment.
    Promote,
    /// An earlier release was brought back.
    Rollback,
    /// A hold was placed.
    Pin,
    /// A hold was lifted.
    Unpin,
    /// The last action was reversed.
    Undo,
    /// Another program than bowline changed the ReleasePin.
    Edit,
    /// A release was marked bad.
    MarkBad,
    /// A release was marked good.
    MarkGood,
    /// A release is collected as garbage; written before it is deleted, so that no deletion goes unseen.
    Collect,
    /// A release that was to be collected stays, or was put back.
    Restore,
    /// Revisions that no bowline process saw.
    Gap,
    /// Retention removed the entries before.
    Checkpoint,
}

/// A Release, named so that another one of the same name is told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleaseIdentity {
    /// The name of the Release.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The hash of its content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
}

impl ReleaseIdentity {
    /// Names a release of which nothing else is known.
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
    /// The first of them.
    pub first: i64,
    /// The last of them.
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
