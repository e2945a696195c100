//! ComponentEnvSnapshot: a copy of the resolved definitions that the ReleasePin controller rendered. Only
//! this controller writes snapshots.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::ComponentOwner;
use super::release::Content;
use crate::api::schema::{self, Object};

/// Complete copies of the definitions of one component in one environment.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "ComponentEnvSnapshot",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "A ComponentEnvSnapshot contains complete copies of the definitions that a ReleasePin was rendered from. The controller creates it; its name ends in the hash of its content. It does not contain EnvSettings.",
    shortname = "ces",
    category = "bowline",
    selectable = ".spec.owner.componentName",
    selectable = ".spec.environment",
    printcolumn(
        name = "Component",
        type_ = "string",
        json_path = ".spec.owner.componentName"
    ),
    printcolumn(
        name = "Environment",
        type_ = "string",
        json_path = ".spec.environment"
    ),
    printcolumn(
        name = "Size",
        type_ = "string",
        json_path = ".metadata.annotations['bowline\\.dev/size']",
        description = "The size of the content in bytes"
    ),
    printcolumn(
        name = "Hash",
        type_ = "string",
        json_path = ".metadata.annotations['bowline\\.dev/content-hash']",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ComponentEnvSnapshotSpec {
    /// The component whose definitions are copied.
    pub owner: ComponentOwner,
    /// The environment that the definitions are resolved for.
    #[schemars(length(min = 1, max = 63))]
    pub environment: String,
    /// The ComponentTypeDefinition.
    pub component_type_definition: Content,
    /// The Component.
    pub component: Content,
    /// The Addon of each addon instance.
    // Two instances of one addon may come from two commits, so each copy contains the id of its instance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "instanceId"])
    )]
    pub addons: Vec<AddonCopy>,
    /// The Workload.
    #[schemars(schema_with = "schema::kubernetes_object")]
    pub workload: Object,
}

/// The resolved definition of one addon instance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonCopy {
    /// The name of the Addon.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The id of the addon instance of the component.
    #[schemars(length(min = 1, max = 63))]
    pub instance_id: String,
    /// The Addon.
    pub content: Content,
}
