//! EnvSettings: the parameters that differ between environments. A release never contains them; `render`
//! applies them to the release.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::ComponentOwner;
use crate::api::schema::{self, Object};

/// The settings of one component in one environment.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "EnvSettings",
    plural = "envsettings",
    singular = "envsettings",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "EnvSettings override the parameters of one component in one environment. bowline applies them when it renders a release; they are never part of the release.",
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
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct EnvSettingsSpec {
    /// The component that the settings are for.
    pub owner: ComponentOwner,
    /// The environment that the settings are for.
    #[schemars(length(min = 1, max = 63))]
    pub environment: String,
    /// Overrides the parameters of the component: maps merge deeply, lists are replaced, null removes a key.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub overrides: Object,
    /// Overrides the configuration of addon instances; the keys are the name of the addon and the id of the
    /// instance.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub addon_overrides: BTreeMap<String, BTreeMap<String, Object>>,
}
