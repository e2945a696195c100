//! The definitions of a component: Component, ComponentTypeDefinition, Addon and Workload.
//!
//! Template bodies and parameters are free-form JSON in these types; the module `render` evaluates them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::schema::{self, Object};

/// A program that a team runs: its type, its parameters and its addons.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "Component",
    namespaced,
    status = "ComponentStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A Component is a program that a team runs: its type, its parameters and its addons.",
    shortname = "comp",
    category = "bowline",
    validation = Rule::new("self.metadata.name.size() <= 63").message("the name of a Component must have at most 63 characters, because it is the value of a label"),
    printcolumn(name = "Type", type_ = "string", json_path = ".spec.componentType", description = "Workload type and name of the ComponentTypeDefinition"),
    printcolumn(name = "Auto Deploy", type_ = "boolean", json_path = ".spec.autoDeploy", description = "Whether the controller deploys each change to the first environment"),
    printcolumn(name = "Latest Release", type_ = "string", json_path = ".status.latestRelease", description = "The newest Release that the controller made"),
    printcolumn(name = "Project", type_ = "string", json_path = ".spec.owner.projectName", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ComponentSpec {
    /// The project that owns the component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ProjectOwner>,
    /// The type of the component as `{workloadType}/{name of the ComponentTypeDefinition}`, for example
    /// `deployment/web-app`.
    #[schemars(
        length(max = 317),
        extend("x-kubernetes-validations" = [{
            "rule": "self.matches('^[^/]+/[^/]+$')",
            "message": "componentType must be {workloadType}/{name}, for example deployment/web-app"
        }])
    )]
    pub component_type: String,
    /// Parameters for the templates of the type. EnvSettings override them per environment.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub parameters: Object,
    /// Addons in the order in which they are applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name", "instanceId"])
    )]
    pub addons: Vec<AddonInstance>,
    /// How the component is built; templates read it as `build`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::open_object")]
    pub build: Option<Object>,
    /// Whether the controller creates a Release after each change of the component, its type, its addons or
    /// its workload, and deploys it to the first environment.
    #[serde(default)]
    pub auto_deploy: bool,
}

/// The observations of the controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentStatus {
    /// The generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The newest Release that the controller created for this component.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latest_release: Option<String>,
    /// The latest observations, one per type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// The project that a component belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectOwner {
    /// The name of the project. The default is `default`.
    #[schemars(length(min = 1, max = 63))]
    pub project_name: String,
}

/// One use of an addon by a component.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonInstance {
    /// The name of the Addon.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The id of this addon instance; it distinguishes several instances of one addon.
    #[schemars(length(min = 1, max = 63))]
    pub instance_id: String,
    /// Parameters of this addon instance. EnvSettings override them per environment.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub config: Object,
}

/// The Kubernetes resources of all components of one type.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "ComponentTypeDefinition",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "A ComponentTypeDefinition defines the Kubernetes resources of all components of one type.",
    shortname = "ctd",
    category = "bowline",
    printcolumn(
        name = "Workload Type",
        type_ = "string",
        json_path = ".spec.workloadType",
        description = "The first part of a component's componentType"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct ComponentTypeDefinitionSpec {
    /// The first part of the componentType of a Component, for example `deployment`.
    #[schemars(length(min = 1, max = 63))]
    pub workload_type: String,
    /// The parameters that components of this type take.
    #[serde(default, skip_serializing_if = "ParameterSchema::is_empty")]
    pub schema: ParameterSchema,
    /// Templates of the resources of a component.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"])
    )]
    pub resources: Vec<ResourceTemplate>,
}

/// The parameters that a definition takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParameterSchema {
    /// Names and types of the parameters, in the shorthand (`replicas: integer | default=1 minimum=0`)
    /// or as an OpenAPI v3 schema.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "schema::atomic_object")]
    pub parameters: Object,
}

impl ParameterSchema {
    /// Returns whether the schema declares no parameters.
    pub fn is_empty(&self) -> bool {
        self.parameters.is_empty()
    }
}

/// A template of one resource, or of one resource per item of a list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The id of the template, unique in its definition.
    #[schemars(length(min = 1, max = 253))]
    pub id: String,
    /// A CEL expression, `${...}`: if it is false, the template makes no resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub include_when: Option<String>,
    /// A CEL expression, `${...}`, that returns a list: the template makes one resource for each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_each: Option<String>,
    /// The name of the variable that contains the item of forEach.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub var: Option<String>,
    /// The resource to create; each `${...}` in it contains a CEL expression.
    #[schemars(schema_with = "schema::atomic_object")]
    pub template: Object,
}

/// Resources that a component gets from this addon, and patches of the resources of its type.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "Addon",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "An Addon creates resources for a component and patches the resources of its type.",
    category = "bowline",
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct AddonSpec {
    /// The parameters that the addon takes.
    #[serde(default, skip_serializing_if = "ParameterSchema::is_empty")]
    pub schema: ParameterSchema,
    /// Templates of the resources that the addon creates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"])
    )]
    pub creates: Vec<ResourceTemplate>,
    /// Patches for the resources of the component and of the addons before this one, in the order of this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub patches: Vec<AddonPatch>,
}

/// Operations on the resources that a target selects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddonPatch {
    /// The resources to patch. If the target selects no resource, rendering fails.
    pub target: PatchTarget,
    /// The operations on each selected resource, in order.
    #[schemars(length(min = 1, max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub operations: Vec<PatchOperation>,
}

/// Selects the resources of a patch among those rendered so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchTarget {
    /// The kind of the resources.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// A CEL expression, `${...}`, that is true for the resources to patch; it reads each resource of the kind
    /// as `resource`. The default is all resources of the kind.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

/// One operation of a patch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PatchOperation {
    /// The name of the operation, such as `add`.
    pub op: PatchVerb,
    /// The changed field, as a JSON pointer. `[?(@.name=='x')]` selects the list items with this name, `[*]`
    /// selects all items. The operation `add` creates missing parents.
    pub path: String,
    /// The value that the operation adds, merges, or puts in place of the old value; null is a value too.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "schema::any_value")]
    pub value: Option<Value>,
}

/// Deserializes a field that may be null. Keeps null as a value, because a plain Option would treat null as a
/// missing field.
fn present<'de, D: serde::Deserializer<'de>>(field: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(field).map(Some)
}

/// The operations of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PatchVerb {
    /// Sets a field or inserts into a list.
    Add,
    /// Replaces an existing field.
    Replace,
    /// Removes a field or an item.
    Remove,
    /// Merges maps deeply.
    Merge,
}

/// The result of a build: the image, its endpoints and its connections.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "Workload",
    namespaced,
    derive = "PartialEq",
    derive = "Default",
    doc = "A Workload is the result of a build of the component of the same name: the image, its endpoints and its connections.",
    shortname = "wl",
    category = "bowline",
    printcolumn(name = "Image", type_ = "string", json_path = ".spec.image"),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSpec {
    /// The image that was built.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The ports that the workload listens on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub endpoints: Vec<Endpoint>,
    /// The services that the workload calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 256),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"])
    )]
    pub connections: Vec<Connection>,
    /// Further fields that templates may read as `workload`.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A port that a workload listens on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Endpoint {
    /// The name of the endpoint.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The protocol, for example `http` or `grpc`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The port number.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// The path of the API description in the source repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema_path: Option<String>,
    /// Further fields that templates may read.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

/// A service that a workload calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Connection {
    /// The name of the connection.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// The type of the service, for example `api`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The parameters of the connection.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub params: Object,
    /// The way in which the workload receives the parameters, for example as environment variables.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    #[schemars(schema_with = "schema::open_object")]
    pub inject: Object,
}

impl Component {
    /// Returns the name of the project that owns the component. The default is `default`.
    pub fn project_name(&self) -> &str {
        self.spec
            .owner
            .as_ref()
            .map_or("default", |owner| owner.project_name.as_str())
    }
}

impl ComponentSpec {
    /// Splits `componentType` into the workload type and the name of the ComponentTypeDefinition. Returns
    /// None if `componentType` does not have exactly these two parts.
    pub fn type_parts(&self) -> Option<(&str, &str)> {
        self.component_type
            .split_once('/')
            .filter(|(workload_type, name)| {
                !workload_type.is_empty() && !name.is_empty() && !name.contains('/')
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_component_type_has_two_parts() {
        for (text, expected) in [
            ("deployment/web-app", Some(("deployment", "web-app"))),
            ("web-app", None),
            ("/web-app", None),
            ("deployment/", None),
            ("a/b/c", None),
            ("", None),
        ] {
            let spec = ComponentSpec {
                component_type: text.into(),
                ..Default::default()
            };
            assert_eq!(spec.type_parts(), expected, "{text:?}");
        }
    }

    #[test]
    fn a_component_without_an_owner_is_of_the_default_project() {
        let mut component = Component::default();
        assert_eq!(component.project_name(), "default");
        component.spec.owner = Some(ProjectOwner {
            project_name: "shop".into(),
        });
        assert_eq!(component.project_name(), "shop");
    }

    #[test]
    fn what_a_workload_has_beyond_the_known_fields_is_kept() {
        let spec = json!({
            "image": "registry.example/checkout:1",
            "endpoints": [{"name": "api", "type": "http", "port": 8080, "visibility": "public"}],
            "connections": [{
                "name": "catalog", "type": "api",
                "params": {"componentName": "catalog"},
                "inject": {"env": [{"name": "CATALOG", "value": "{{ .host }}:{{ .port }}"}]}
            }],
            "env": [{"name": "A", "value": "1"}]
        });
        let typed: WorkloadSpec = serde_json::from_value(spec.clone()).unwrap();
        assert_eq!(serde_json::to_value(typed).unwrap(), spec);
    }
}
