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

/// One action on a pin or on the releases of a component.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bowline.dev",
    version = "v1alpha1",
    kind = "AuditEntry",
    plural = "auditentries",
    namespaced,
    derive = "PartialEq",
    doc = "An AuditEntry records one action on a pin, or on the releases of a component: who, what, when and why. It never changes, and it carries the hash of the entry before it.",
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
    /// What the entry is about.
    pub subject: Subject,
    /// The place in the chain: the pin's generation, or the number of the entry in the component's chain.
    #[schemars(range(min = 1))]
    pub revision: i64,
    /// The operation; absent where nobody named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub operation: Option<String>,
    /// Who did it, as the API server stamped it; absent where it stamped nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// Who wrote this entry; a policy compares it with the writer.
    #[schemars(length(min = 1))]
    pub recorded_by: String,
    /// What was done.
    pub action: Action,
    /// When it was done.
    #[schemars(schema_with = "schema::moment")]
    pub at: Time,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The Release that counted before, or that was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<ReleaseIdentity>,
    /// The Release that counts after, or that was marked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ReleaseIdentity>,
    /// What the pin's releaseRef names after the action, where a hold makes another Release count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub release_ref: Option<String>,
    /// The holds of the pin after the action.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub holds: Vec<Hold>,
    /// The revision that a rollback restored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<i64>,
    /// The hash of what changed in the environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rendered_hash: Option<String>,
    /// The hash of the entry before this one; absent in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 64, max = 64))]
    pub previous: Option<String>,
    /// The revisions that nobody saw, where the action is Gap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    /// What stood here before retention removed it, where the action is Checkpoint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// The pin or the component whose chain an entry is in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// A pin, or a component for what is done to its releases.
    pub kind: SubjectKind,
    /// The name of the pin or the component.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The uid of the pin; absent for a component, whose chain outlives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// What kind of chain an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SubjectKind {
    /// The moves and holds of one pin.
    ReleasePin,
    /// The marks and deletions of the releases of one component.
    Component,
}

/// What was done.
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
    /// The pin was changed by something other than bowline.
    Edit,
    /// A release was marked bad.
    MarkBad,
    /// A release was marked good.
    MarkGood,
    /// A release is collected as garbage; written before it is deleted, so that no deletion goes unseen.
    Collect,
    /// A release that was to be collected stays, or was put back.
    Restore,
    /// Revisions went by that nobody saw.
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

/// Revisions that nobody saw.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gap {
    /// The first of them.
    pub first: i64,
    /// The last of them.
    pub last: i64,
}

/// What retention removed.
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
