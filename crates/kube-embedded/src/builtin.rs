//! The built-in kinds: their resources and schemas.
//!
//! The table `builtin.json` is generated from a kube-apiserver by the conformance suite. `defaults.json` contains,
//! for each type, the defaults that Kubernetes sets in Go code. The few defaults that depend on more than the
//! neighbouring fields are functions in `computed`. `zeros.json` contains how Go prints fields that are not set (from
//! the tags of k8s.io/api 0.36), because OpenAPI does not distinguish pointers from values.
//!
//! Known differences: kube-apiserver sets these fields, and this crate does not:
//! - Service: clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy, nodePort, healthCheckNodePort;
//! - Pod: tolerations, priority and the service account's token volume; qosClass is always BestEffort;
//! - CustomResourceDefinition: storedVersions, acceptedNames; PersistentVolume: lastPhaseTransitionTime;
//! - autoscaling/v1: annotations that contain v2 fields;
//! - containers: requests get their defaults from limits, not from a LimitRange.

mod computed;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::schema::{DefaultStep, FieldError, Schema, Types};

/// A built-in resource, which the API has without a CustomResourceDefinition.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuiltinResource {
    /// The API group of the resource; empty for the core group.
    pub group: String,
    /// The API version of the resource.
    pub version: String,
    /// The kind of the objects.
    pub kind: String,
    /// The plural name of the resource, which is in request paths.
    pub plural: String,
    /// The singular name of the resource.
    pub singular: String,
    /// The short names of the resource, such as `po`.
    pub short_names: Vec<String>,
    /// The categories of the resource, such as `all`.
    pub categories: Vec<String>,
    /// Whether the objects of the resource have a namespace.
    pub namespaced: bool,
    /// The verbs that the API allows for the resource.
    pub verbs: Vec<String>,
    /// The subresources of the resource.
    pub subresources: Vec<BuiltinSubresource>,
}

/// A subresource of a built-in resource.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuiltinSubresource {
    /// The name of the subresource in paths, such as `status`.
    pub name: String,
    /// The API group of the subresource's request and response bodies.
    pub group: String,
    /// The API version of the subresource's request and response bodies.
    pub version: String,
    /// The kind of the subresource's request and response bodies.
    pub kind: String,
    /// The verbs that the API allows for the subresource.
    pub verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Table {
    resources: Vec<BuiltinResource>,
    schemas: Map<String, Value>,
}

struct Kinds {
    types: Arc<Types>,
    by_kind: BTreeMap<(String, String, String), usize>,
    metadata: Option<usize>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    serde_json::from_str(include_str!("builtin.json"))
        .expect("BUG: the committed table of built-in kinds is well formed")
});

static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
    let (mut types, names) = Types::from_definitions(&TABLE.schemas)
        .expect("BUG: the committed schemas of built-in kinds are well formed");
    let defaults: BTreeMap<String, Vec<Step>> = serde_json::from_str(include_str!("defaults.json"))
        .expect("BUG: the committed defaults are well formed");
    for (name, steps) in defaults {
        let node = names
            .get(&name)
            .expect("BUG: the committed defaults name definitions");
        let steps = steps.into_iter().map(|s| DefaultStep {
            when: s.when,
            set: s.set,
        });
        types.add_steps(*node, steps.collect());
    }
    let zeros: BTreeMap<String, Zeros> = serde_json::from_str(include_str!("zeros.json"))
        .expect("BUG: the committed list of omitted zeros is well formed");
    for (name, fields) in zeros {
        let node = names
            .get(&name)
            .expect("BUG: the omitted zeros name definitions");
        types.print_zeros(*node, &fields.omit, &fields.null, &fields.print);
    }
    for (name, hook) in computed::HOOKS {
        let node = names.get(*name).expect("BUG: hooks name definitions");
        types.set_hook(*node, *hook);
    }
    let mut by_kind = BTreeMap::new();
    for (name, schema) in &TABLE.schemas {
        let kinds = schema
            .get("x-kubernetes-group-version-kind")
            .and_then(Value::as_array);
        for gvk in kinds.into_iter().flatten() {
            let part = |key: &str| {
                gvk.get(key)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned()
            };
            if let Some(node) = names.get(name) {
                by_kind.insert((part("group"), part("version"), part("kind")), *node);
            }
        }
    }
    Kinds {
        types: Arc::new(types),
        by_kind,
        metadata: names
            .get("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
            .copied(),
    }
});

/// The fields of a type that are printed differently than OpenAPI says when they are not set: Go omits them, prints
/// null, or prints a zero value.
#[derive(Deserialize)]
struct Zeros {
    #[serde(default)]
    omit: Vec<String>,
    #[serde(default)]
    null: Vec<String>,
    #[serde(default)]
    print: Vec<String>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    when: Map<String, Value>,
    set: Map<String, Value>,
}

/// Returns all built-in resources.
pub fn resources() -> &'static [BuiltinResource] {
    &TABLE.resources
}

/// Returns the schema of a built-in kind; None if the kind is not built in.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    let key = (group.to_owned(), version.to_owned(), kind.to_owned());
    let node = KINDS.by_kind.get(&key)?;
    Some(Arc::new(Schema::of(Arc::clone(&KINDS.types), *node)))
}

/// Returns the first error that Go's JSON decoder would report for the metadata of an object; empty if the metadata
/// has no error.
pub fn metadata_errors(metadata: &Value) -> Vec<FieldError> {
    static NODE: LazyLock<Option<Schema>> = LazyLock::new(|| {
        let node = KINDS.metadata?;
        Some(Schema::of(Arc::clone(&KINDS.types), node))
    });
    NODE.as_ref()
        .map(|schema| schema.type_errors(metadata))
        .unwrap_or_default()
}

/// Returns the OpenAPI v3 schemas of all built-in types, by the names of their definitions.
pub fn definitions() -> &'static Map<String, Value> {
    &TABLE.schemas
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{definitions, resources, schema};

    #[test]
    fn every_resource_has_a_type() {
        assert!(resources().len() > 50);
        for resource in resources() {
            let found = schema(&resource.group, &resource.version, &resource.kind);
            assert!(
                found.is_some(),
                "{}/{} {}",
                resource.group,
                resource.version,
                resource.kind
            );
        }
        assert!(schema("apps", "v1", "Nonsense").is_none());
        assert!(definitions().contains_key("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
    }

    #[test]
    fn a_deployment_is_completed() {
        let mut found = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "replicas": null,
                     "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        schema("apps", "v1", "Deployment")
            .unwrap()
            .fill_defaults(&mut found);
        assert_eq!(
            found,
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}, "status": {},
                "spec": {"progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10,
                    "selector": {"matchLabels": {"a": "b"}},
                    "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                    "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                        "containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always", "resources": {},
                            "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}],
                        "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler",
                        "securityContext": {}, "terminationGracePeriodSeconds": 30}}}})
        );
    }

    #[test]
    fn filling_twice_is_filling_once() {
        for (group, version, kind) in [
            ("", "v1", "Pod"),
            ("batch", "v1", "Job"),
            ("", "v1", "Service"),
            ("apps", "v1", "StatefulSet"),
        ] {
            let schema = schema(group, version, kind).unwrap();
            let mut once = json!({"spec": {"ports": [{"port": 1}], "containers": [{"name": "a", "resources": {"limits": {"cpu": "1"}}}]}});
            schema.fill_defaults(&mut once);
            let mut twice = once.clone();
            schema.fill_defaults(&mut twice);
            assert_eq!(once, twice, "{kind}");
        }
    }

    #[test]
    fn wrong_types_are_worded_as_go_words_them() {
        let deployment = schema("apps", "v1", "Deployment").unwrap();
        for (spec, wanted) in [
            (
                json!({"replicas": "x"}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"replicas": 5_000_000_000_i64}),
                "json: cannot unmarshal number 5000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
            ),
            (
                json!({"template": {"spec": {"containers": [{"image": 3}]}}}),
                "json: cannot unmarshal number into Go struct field Container.spec.template.spec.containers.image of type string",
            ),
            (
                json!({"template": {"spec": {"containers": {}}}}),
                "json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
            ),
            (
                json!({"strategy": {"rollingUpdate": {"maxSurge": true}}}),
                "json: cannot unmarshal bool into Go struct field RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge of type int32",
            ),
            (
                json!({"template": "x"}),
                "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.template of type v1.PodTemplateSpec",
            ),
        ] {
            let errors = deployment.type_errors(&json!({"spec": spec}));
            assert_eq!(
                errors
                    .iter()
                    .map(|e| e.message.as_str())
                    .collect::<Vec<_>>(),
                [wanted]
            );
        }
        assert_eq!(
            deployment.type_errors(&json!({"spec": {"replicas": null}})),
            []
        );
    }

    #[test]
    fn unknown_fields_are_pruned_and_free_form_kept() {
        let mut found = json!({"spec": {"foo": 1, "template": {"spec": {"containers": [{"name": "a", "bar": 1}]}}},
            "metadata": {"managedFields": [{"fieldsV1": {"f:x": {}}}]}});
        let dropped = schema("apps", "v1", "Deployment")
            .unwrap()
            .prune(&mut found);
        assert_eq!(
            dropped,
            ["spec.foo", "spec.template.spec.containers[0].bar"]
        );
        assert_eq!(
            found["metadata"]["managedFields"][0]["fieldsV1"],
            json!({"f:x": {}})
        );
    }
}
