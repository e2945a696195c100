//! The kinds Environment, DataPlane and DeploymentPipeline. The pipeline puts the environments in order.

mod fault;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::NameRef;
use crate::api::interval::Interval;
use crate::api::schema;

pub use fault::{PipelineCycle, PipelineFault};

/// A target of promotions.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "Environment",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "An Environment is a target of promotions. RBAC grants the verb `promote` on it to the users who may change its ReleasePins.",
    shortname = "env",
    category = "bowline",
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name of an Environment must have at most 63 characters, because it is the value of a label"),
    printcolumn(name = "Production", type_ = "boolean", json_path = ".spec.isProduction"),
    printcolumn(name = "Data Plane", type_ = "string", json_path = ".spec.dataPlaneRef.name"),
    printcolumn(name = "Namespace", type_ = "string", json_path = ".spec.namespace", description = "The namespace in the data plane for resources without a namespace"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentSpec {
    /// The DataPlane that the environment runs on.
    #[schemars(schema_with = "schema::data_plane_ref")]
    pub data_plane_ref: NameRef,
    /// Whether this is a production environment: actions need a stronger confirmation.
    #[serde(default)]
    pub is_production: bool,
    /// Whether every action in this environment needs a reason. The default is the value of isProduction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_reason: Option<bool>,
    /// The namespace in the data plane for resources without a namespace.
    #[schemars(
        length(min = 1, max = 63),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub namespace: String,
}

impl EnvironmentSpec {
    /// Returns whether every action in the environment needs a reason.
    pub fn requires_reason(&self) -> bool {
        self.require_reason.unwrap_or(self.is_production)
    }
}

/// A cluster that environments run on.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "DataPlane",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "A DataPlane is a cluster that environments run on. Exactly one of inCluster, context and embedded names the cluster.",
    shortname = "dp",
    category = "bowline",
    printcolumn(
        name = "Context",
        type_ = "string",
        json_path = ".spec.context.name",
        description = "The context of the kubeconfig; empty if the DataPlane has none"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "[has(self.inCluster), has(self.context), has(self.embedded)].exists_one(given, given)",
    "message": "a DataPlane must have exactly one of inCluster, context and embedded"
}]))]
pub struct DataPlaneSpec {
    /// The cluster that contains this object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_cluster: Option<InCluster>,
    /// The context of the kubeconfig that connects to the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::context_ref")]
    pub context: Option<NameRef>,
    /// The embedded store of bowline. It runs no pods; a simulator updates the status of workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedded: Option<Embedded>,
}

/// The data plane is the cluster that contains the object. It has no fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InCluster {}

/// The data plane is an embedded store. It has no fields.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Embedded {}

/// The way in which bowline connects to a data plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach<'a> {
    /// The data plane is the cluster that contains the DataPlane object.
    InCluster,
    /// The data plane is the cluster of this kubeconfig context.
    Context(&'a str),
    /// The data plane is the embedded store of this process.
    Embedded,
}

impl<'a> Reach<'a> {
    /// Parses the text form of a connection. Returns None if the text is invalid.
    pub fn parse(text: &'a str) -> Option<Self> {
        match text {
            "inCluster" => Some(Self::InCluster),
            "embedded" => Some(Self::Embedded),
            text => text.strip_prefix("context/").map(Self::Context),
        }
    }
}

impl fmt::Display for Reach<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCluster => f.write_str("inCluster"),
            Self::Context(name) => write!(f, "context/{name}"),
            Self::Embedded => f.write_str("embedded"),
        }
    }
}

impl DataPlaneSpec {
    /// Returns the connection to the data plane. Returns None if the spec contains no connection, or more
    /// than one.
    pub fn reach(&self) -> Option<Reach<'_>> {
        match (&self.in_cluster, &self.context, &self.embedded) {
            (Some(_), None, None) => Some(Reach::InCluster),
            (None, Some(context), None) => Some(Reach::Context(&context.name)),
            (None, None, Some(_)) => Some(Reach::Embedded),
            _ => None,
        }
    }
}

/// The order of the environments. A namespace has one DeploymentPipeline.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "DeploymentPipeline",
    namespaced,
    status = "DeploymentPipelineStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A DeploymentPipeline is the order of the environments of its namespace: a graph without cycles, in which a promotion follows one edge. A namespace has one pipeline.",
    shortname = "deppipe",
    category = "bowline",
    printcolumn(
        name = "First",
        type_ = "string",
        json_path = ".spec.promotionPaths[0].sourceEnvironmentRef.name",
        description = "The source of the first path"
    ),
    printcolumn(
        name = "Retention",
        type_ = "boolean",
        json_path = ".spec.retention.enabled",
        description = "Whether the controller deletes old releases"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.promotionPaths) || self.promotionPaths.all(p, p.targetEnvironmentRefs.all(t, !self.promotionPaths.exists(q, q.sourceEnvironmentRef.name == t.name && q.targetEnvironmentRefs.exists(u, u.name == p.sourceEnvironmentRef.name))))",
    "message": "the promotion paths of a pipeline must not form a cycle, but two environments promote to each other"
}]))]
pub struct DeploymentPipelineSpec {
    /// The promotion paths, one item per source environment. An environment that is no target of a path is a
    /// first environment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub promotion_paths: Vec<PromotionPath>,
    /// The limits of garbage collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// The observations of the controller. A pipeline that never had a fault has no status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentPipelineStatus {
    /// The generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The latest observations. The only type is Valid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The promotion paths from one environment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!self.targetEnvironmentRefs.exists(t, t.name == self.sourceEnvironmentRef.name)",
    "message": "a promotion path must not lead from an environment to itself"
}]))]
pub struct PromotionPath {
    /// The Environment that releases are promoted from.
    pub source_environment_ref: EnvironmentRef,
    /// The Environments that releases are promoted to.
    #[schemars(
        length(min = 1, max = 32),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub target_environment_refs: Vec<EnvironmentRef>,
}

/// A reference to an Environment of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentRef {
    /// The name of the Environment.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}

/// The limits of garbage collection, and whether it runs automatically.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Retention {
    /// Whether the controller deletes old releases and snapshots after each new Release.
    #[serde(default)]
    pub enabled: bool,
    /// How many of the newest releases of a component to keep. The default is the number of environments
    /// plus 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub keep_releases: Option<i32>,
    /// How many of the newest snapshots of a ReleasePin to keep.
    #[serde(default = "three")]
    #[schemars(range(min = 1))]
    pub keep_snapshots: i32,
    /// The minimum age of a release that may be deleted, such as `30d` or `12h`.
    #[serde(default = "thirty_days")]
    pub min_age: Interval,
}

fn three() -> i32 {
    3
}

fn thirty_days() -> Interval {
    Interval::from("30d")
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            enabled: false,
            keep_releases: None,
            keep_snapshots: three(),
            min_age: thirty_days(),
        }
    }
}

impl DeploymentPipelineSpec {
    /// Returns whether a single promotion path leads from `from` to `to`.
    pub fn is_path(&self, from: &str, to: &str) -> bool {
        self.edges()
            .any(|(source, target)| source == from && target == to)
    }

    /// Returns the environments to which releases may be promoted from `from`.
    pub fn targets_of(&self, from: &str) -> Vec<&str> {
        let edges = self.edges().filter(|(source, _)| *source == from);
        edges.map(|(_, target)| target).collect()
    }

    /// Returns the environments from which releases may be promoted to `to`.
    pub fn sources_of(&self, to: &str) -> Vec<&str> {
        let edges = self.edges().filter(|(_, target)| *target == to);
        edges.map(|(source, _)| source).collect()
    }

    /// Returns the environments that are not the target of a promotion path, in the order of the spec.
    pub fn first_environments(&self) -> Vec<&str> {
        let targets: BTreeSet<&str> = self.edges().map(|(_, target)| target).collect();
        self.named()
            .into_iter()
            .filter(|name| !targets.contains(name))
            .collect()
    }

    /// Returns the environments in the order of promotion. If the paths allow several orders, follows the
    /// order of the spec. Fails if the paths have a cycle.
    pub fn order(&self) -> Result<Vec<&str>, PipelineCycle> {
        let mut waiting_for: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (source, target) in self.edges() {
            waiting_for.entry(target).or_default().insert(source);
        }
        let mut rest: VecDeque<&str> = self.named().into();
        let mut order: Vec<&str> = Vec::with_capacity(rest.len());
        while !rest.is_empty() {
            let next = rest.iter().position(|name| {
                waiting_for
                    .get(name)
                    .is_none_or(|sources| sources.iter().all(|source| order.contains(source)))
            });
            match next.and_then(|index| rest.remove(index)) {
                Some(name) => order.push(name),
                None => {
                    return Err(PipelineCycle {
                        environments: rest.into_iter().map(str::to_owned).collect(),
                    });
                }
            }
        }
        Ok(order)
    }

    fn edges(&self) -> impl Iterator<Item = (&str, &str)> {
        self.promotion_paths.iter().flat_map(|path| {
            path.target_environment_refs.iter().map(|target| {
                (
                    path.source_environment_ref.name.as_str(),
                    target.name.as_str(),
                )
            })
        })
    }

    fn named(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (source, target) in self.edges() {
            for name in [source, target] {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipeline(edges: &[(&str, &[&str])]) -> DeploymentPipelineSpec {
        let reference = |name: &&str| EnvironmentRef {
            name: (*name).into(),
        };
        DeploymentPipelineSpec {
            promotion_paths: edges
                .iter()
                .map(|(source, targets)| PromotionPath {
                    source_environment_ref: reference(source),
                    target_environment_refs: targets.iter().map(reference).collect(),
                })
                .collect(),
            retention: None,
        }
    }

    #[test]
    fn environments_stand_after_what_promotes_to_them() {
        for (edges, first, order) in [
            (&[][..], &[][..], &[][..]),
            (
                &[("dev", &["staging"][..]), ("staging", &["prod"][..])],
                &["dev"],
                &["dev", "staging", "prod"],
            ),
            (
                &[("staging", &["prod"][..]), ("dev", &["staging"][..])],
                &["dev"],
                &["dev", "staging", "prod"],
            ),
            (
                &[
                    ("dev", &["eu", "us"][..]),
                    ("eu", &["prod"]),
                    ("us", &["prod"]),
                    ("qa", &["us"]),
                ],
                &["dev", "qa"],
                &["dev", "eu", "qa", "us", "prod"],
            ),
        ] {
            let spec = pipeline(edges);
            assert_eq!(spec.first_environments(), first);
            assert_eq!(spec.order().unwrap(), order);
        }
    }

    #[test]
    fn a_circle_is_named() {
        let spec = pipeline(&[("dev", &["a"]), ("a", &["b"]), ("b", &["c"]), ("c", &["a"])]);
        let error = spec.order().unwrap_err();
        assert_eq!(error.environments, ["a", "b", "c"]);
        assert!(error.to_string().contains("a, b, c"));
    }

    #[test]
    fn a_path_is_one_edge() {
        let spec = pipeline(&[("dev", &["staging"]), ("staging", &["prod"])]);
        for (from, to, expected) in [
            ("dev", "staging", true),
            ("staging", "prod", true),
            ("dev", "prod", false),
            ("staging", "dev", false),
            ("dev", "dev", false),
        ] {
            assert_eq!(spec.is_path(from, to), expected, "{from} -> {to}");
        }
    }

    #[test]
    fn a_reason_is_required_where_production_says_so() {
        for (is_production, require_reason, expected) in [
            (false, None, false),
            (true, None, true),
            (true, Some(false), false),
            (false, Some(true), true),
        ] {
            let spec = EnvironmentSpec {
                is_production,
                require_reason,
                ..Default::default()
            };
            assert_eq!(spec.requires_reason(), expected);
        }
    }

    #[test]
    fn exactly_one_way_reaches_a_data_plane() {
        let context = DataPlaneSpec {
            context: Some(NameRef::new("eu")),
            ..Default::default()
        };
        let both = DataPlaneSpec {
            embedded: Some(Embedded {}),
            ..context.clone()
        };
        let embedded: DataPlaneSpec =
            serde_json::from_value(serde_json::json!({"embedded": {}})).unwrap();
        assert_eq!(context.reach(), Some(Reach::Context("eu")));
        assert_eq!(embedded.reach(), Some(Reach::Embedded));
        assert_eq!(both.reach(), None);
        assert_eq!(DataPlaneSpec::default().reach(), None);
    }
}
