//! RenderedRelease: the rendered resources of one component in one environment.
//!
//! The kind has the name `Release` in the group core.choreo.dev. Another kind is called Release too, so the
//! code and the screens always say RenderedRelease.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::annotation::{self, UnreadableAnnotation};
use crate::api::interval::Interval;
use crate::api::labels;
use crate::api::schema::{self, Object};

/// The desired resources of one component in a data plane.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "core.choreo.dev",
    version = "v1",
    kind = "Release",
    root = "RenderedRelease",
    namespaced,
    status = "RenderedReleaseStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Release of core.choreo.dev, the rendered release, contains the desired resources of one component in the data plane of one environment.",
    shortname = "rr",
    shortname = "renderedrelease",
    shortname = "renderedreleases",
    category = "bowline",
    selectable = ".spec.owner.componentName",
    selectable = ".spec.environmentName",
    printcolumn(
        name = "Component",
        type_ = "string",
        json_path = ".spec.owner.componentName"
    ),
    printcolumn(
        name = "Environment",
        type_ = "string",
        json_path = ".spec.environmentName"
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].reason"
    ),
    printcolumn(
        name = "Project",
        type_ = "string",
        json_path = ".spec.owner.projectName",
        priority = 1
    ),
    printcolumn(
        name = "Hash",
        type_ = "string",
        json_path = ".metadata.annotations['bowline\\.dev/rendered-hash']",
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct RenderedReleaseSpec {
    /// The component that the resources belong to.
    pub owner: RenderedOwner,
    /// The environment that the resources are for.
    #[schemars(length(min = 1, max = 63))]
    pub environment_name: String,
    /// The desired resources.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub resources: Vec<RenderedResource>,
    /// How often the controller checks resources that are stable. The default is 5m; 0 means never; at least 1s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// How often the controller checks resources that are progressing. The default is 10s; 0 means never; at least 1s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progressing_interval: Option<Interval>,
}

/// The component that rendered resources are of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedOwner {
    /// The project of the component.
    #[schemars(length(min = 1, max = 63))]
    pub project_name: String,
    /// The name of the component.
    #[schemars(length(min = 1, max = 63))]
    pub component_name: String,
}

/// One resource for a data plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedResource {
    /// The id of the resource, unique in the rendered release.
    #[schemars(length(min = 1, max = 512))]
    pub id: String,
    /// The desired state of the resource: a whole Kubernetes object.
    #[schemars(schema_with = "schema::kubernetes_object")]
    pub object: Object,
}

/// The observations of the controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenderedReleaseStatus {
    /// The generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Every resource that was applied and may still exist.
    // The list is atomic and has no key, because a resource whose kind changed is in the list twice until the
    // old object is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub resources: Vec<ResourceStatus>,
    /// The latest observations, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The observations of the controller about one applied resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceStatus {
    /// The id of the resource in the spec.
    pub id: String,
    /// The API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version of the API, such as `v1`.
    pub version: String,
    /// The kind of the resource.
    pub kind: String,
    /// The name of the resource in the data plane.
    pub name: String,
    /// The namespace of the resource in the data plane; absent for a cluster-scoped resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The status of the resource in the data plane.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub status: Option<Object>,
    /// The time when the controller first read this status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub last_observed_time: Option<Time>,
    /// The health of the resource, never older than the applied generation.
    #[serde(default)]
    pub health: Health,
    /// The reason for the health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A hash of the applied object and of the fields that the controller owned afterwards. While both are
    /// unchanged, the controller does not apply the object again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<String>,
}

/// The health of a resource.
// The variants are ordered from best to worst, so the maximum of several health values is the worst one.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Health {
    /// The resource works.
    Healthy,
    /// A user has paused the resource.
    Suspended,
    /// The resource is progressing.
    Progressing,
    /// The health is not known.
    #[default]
    Unknown,
    /// The resource fails.
    Degraded,
}

impl RenderedRelease {
    /// Returns the data planes that may have resources of this RenderedRelease, each as the text form of its
    /// connection.
    pub fn data_planes(&self) -> Result<Vec<String>, UnreadableAnnotation> {
        let read = annotation::read(self, labels::DATA_PLANES, "RenderedRelease");
        Ok(read?.unwrap_or_default())
    }
}

impl RenderedReleaseStatus {
    /// Returns the worst health of all resources; [`Health::Healthy`] if there are no resources.
    pub fn health(&self) -> Health {
        self.resources
            .iter()
            .map(|resource| resource.health)
            .max()
            .unwrap_or(Health::Healthy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_health_counts() {
        use Health::*;
        for (parts, expected) in [
            (&[][..], Healthy),
            (&[Healthy, Healthy], Healthy),
            (&[Healthy, Suspended], Suspended),
            (&[Suspended, Progressing], Progressing),
            (&[Progressing, Unknown], Unknown),
            (&[Degraded, Unknown, Healthy], Degraded),
        ] {
            let status = RenderedReleaseStatus {
                resources: parts
                    .iter()
                    .map(|&health| ResourceStatus {
                        health,
                        ..Default::default()
                    })
                    .collect(),
                ..Default::default()
            };
            assert_eq!(status.health(), expected, "{parts:?}");
        }
    }
}
