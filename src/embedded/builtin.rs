//! The built-in kinds: which resources there are and what their types look like.
//!
//! `builtin.json` is made from a real server by the conformance suite (`BOWLINE_BLESS=1` writes
//! it). Defaults that live in Go code stand in `defaults.json`, by definition; the few that
//! depend on more than a sibling field are functions below. OpenAPI does not tell a pointer from
//! a value, so `zeros.json` lists the fields that Go leaves out when they are zero and those that
//! it prints as null when they are not set (from the field tags of k8s.io/api 0.36).
//!
//! Known differences, all of them things that the server allocates, admits or computes:
//! - Service: clusterIP, clusterIPs, ipFamilies, ipFamilyPolicy, nodePort, healthCheckNodePort;
//! - Pod: status (phase, qosClass), tolerations, priority and the service account's token volume;
//! - Job: the controller's labels and selector; CronJob: nothing;
//! - autoscaling/v1: annotations that carry v2 fields;
//! - containers: requests are defaulted from limits, not from a LimitRange.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use base64::Engine;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::schema::{DefaultStep, Hook, Schema, Types};

/// A resource that is served without a CRD.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuiltinResource {
    /// The group; empty for core.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The name in paths.
    pub plural: String,
    /// The name for one.
    pub singular: String,
    /// The names for the hurried.
    pub short_names: Vec<String>,
    /// The groups of resources that it belongs to, like `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// What can be done with it.
    pub verbs: Vec<String>,
    /// Its subresources.
    pub subresources: Vec<BuiltinSubresource>,
}

/// A subresource of a built-in resource.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BuiltinSubresource {
    /// The name in paths, like `status`.
    pub name: String,
    /// The group of what it takes and gives.
    pub group: String,
    /// The version of what it takes and gives.
    pub version: String,
    /// The kind of what it takes and gives.
    pub kind: String,
    /// What can be done with it.
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
        types.print_zeros(*node, &fields.omit, &fields.null);
    }
    for (name, hook) in HOOKS {
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
    }
});

/// How Go prints fields that are not set: not at all, or as null.
#[derive(Deserialize)]
struct Zeros {
    #[serde(default)]
    omit: Vec<String>,
    #[serde(default)]
    null: Vec<String>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(default)]
    when: Map<String, Value>,
    set: Map<String, Value>,
}

/// All resources that are served without a CRD.
pub fn resources() -> &'static [BuiltinResource] {
    &TABLE.resources
}

/// The type of a built-in kind.
pub fn schema(group: &str, version: &str, kind: &str) -> Option<Arc<Schema>> {
    let key = (group.to_owned(), version.to_owned(), kind.to_owned());
    let node = KINDS.by_kind.get(&key)?;
    Some(Arc::new(Schema::of(Arc::clone(&KINDS.types), *node)))
}

/// The OpenAPI v3 schemas of all built-in types, by definition.
pub fn definitions() -> &'static Map<String, Value> {
    &TABLE.schemas
}

const HOOKS: &[(&str, Hook)] = &[
    ("io.k8s.api.core.v1.Container", pull_policy),
    ("io.k8s.api.core.v1.EphemeralContainer", pull_policy),
    ("io.k8s.api.core.v1.Volume", empty_volume),
    ("io.k8s.api.core.v1.ServicePort", target_port),
    ("io.k8s.api.core.v1.PodSpec", pod_spec),
    ("io.k8s.api.core.v1.Pod", pod),
    (
        "io.k8s.api.core.v1.ReplicationController",
        template_selector,
    ),
    ("io.k8s.api.core.v1.LimitRangeItem", limit_range),
    ("io.k8s.api.core.v1.Secret", string_data),
    ("io.k8s.api.apps.v1.StatefulSetSpec", claim_templates),
    ("io.k8s.api.batch.v1.Job", job),
    ("io.k8s.api.networking.v1.NetworkPolicySpec", policy_types),
    (
        "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior",
        scaling_behavior,
    ),
    ("io.k8s.api.rbac.v1.Subject", subject_group),
    (
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionNames",
        crd_names,
    ),
];

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

fn absent(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key).is_none_or(Value::is_null)
}

fn set(map: &mut Map<String, Value>, key: &str, value: impl Into<Value>) {
    if absent(map, key) {
        map.insert(key.to_owned(), value.into());
    }
}

/// An image without a tag is `latest`, and that is always pulled.
fn pull_policy(container: &mut Map<String, Value>) {
    let image = text(container, "image").unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or(image);
    let tag = name
        .split_once('@')
        .map_or(name, |(before, _)| before)
        .split_once(':')
        .map(|(_, tag)| tag);
    let latest = tag == Some("latest") || (tag.is_none() && !name.contains('@'));
    set(
        container,
        "imagePullPolicy",
        if latest { "Always" } else { "IfNotPresent" },
    );
}

fn empty_volume(volume: &mut Map<String, Value>) {
    if volume
        .iter()
        .all(|(key, value)| key == "name" || value.is_null())
    {
        volume.insert("emptyDir".to_owned(), Value::Object(Map::new()));
    }
}

fn target_port(port: &mut Map<String, Value>) {
    let unset = port
        .get("targetPort")
        .is_none_or(|t| t.is_null() || t.as_i64() == Some(0) || t.as_str() == Some(""));
    if let Some(number) = port.get("port").filter(|_| unset).cloned() {
        port.insert("targetPort".to_owned(), number);
    }
}

fn each<'a>(
    spec: &'a mut Map<String, Value>,
    list: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> {
    spec.get_mut(list)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
}

/// On the host's network a container's port is the host's; the service account has two names.
fn pod_spec(spec: &mut Map<String, Value>) {
    for (from, to) in [
        ("serviceAccountName", "serviceAccount"),
        ("serviceAccount", "serviceAccountName"),
    ] {
        if let Some(name) = text(spec, from)
            .filter(|n| !n.is_empty())
            .map(str::to_owned)
        {
            set(spec, to, name);
        }
    }
    if spec.get("hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            for port in each(container, "ports") {
                if let Some(number) = port.get("containerPort").cloned() {
                    set(port, "hostPort", number);
                }
            }
        }
    }
}

/// A pod, unlike a template of one, asks for what it is limited to.
fn pod(pod: &mut Map<String, Value>) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    set(spec, "enableServiceLinks", true);
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            let Some(resources) = container
                .get_mut("resources")
                .and_then(Value::as_object_mut)
            else {
                continue;
            };
            let Some(Value::Object(limits)) = resources.get("limits").cloned() else {
                continue;
            };
            set(resources, "requests", Map::new());
            if let Some(requests) = resources.get_mut("requests").and_then(Value::as_object_mut) {
                for (name, limit) in limits {
                    set(requests, &name, limit);
                }
            }
        }
    }
}

fn template_selector(controller: &mut Map<String, Value>) {
    let labels = controller
        .get("spec")
        .and_then(|s| s.pointer("/template/metadata/labels"))
        .cloned();
    let Some(labels) = labels else { return };
    if let Some(spec) = controller.get_mut("spec").and_then(Value::as_object_mut) {
        set(spec, "selector", labels.clone());
    }
    if let Some(meta) = controller
        .get_mut("metadata")
        .and_then(Value::as_object_mut)
    {
        set(meta, "labels", labels);
    }
}

/// For containers the limit is also the default limit, and that is also the default request.
fn limit_range(item: &mut Map<String, Value>) {
    if text(item, "type") != Some("Container") {
        return;
    }
    for (from, to) in [
        ("max", "default"),
        ("default", "defaultRequest"),
        ("min", "defaultRequest"),
    ] {
        let Some(Value::Object(values)) = item.get(from).cloned() else {
            continue;
        };
        set(item, to, Map::new());
        if let Some(target) = item.get_mut(to).and_then(Value::as_object_mut) {
            for (name, value) in values {
                set(target, &name, value);
            }
        }
    }
}

/// `stringData` is only for writing: it becomes data.
fn string_data(secret: &mut Map<String, Value>) {
    let Some(Value::Object(strings)) = secret.remove("stringData") else {
        return;
    };
    if absent(secret, "data") {
        secret.insert("data".to_owned(), Value::Object(Map::new()));
    }
    if let Some(data) = secret.get_mut("data").and_then(Value::as_object_mut) {
        for (name, value) in strings {
            let bytes = value.as_str().unwrap_or_default();
            data.insert(
                name,
                base64::engine::general_purpose::STANDARD
                    .encode(bytes)
                    .into(),
            );
        }
    }
}

fn claim_templates(spec: &mut Map<String, Value>) {
    for claim in each(spec, "volumeClaimTemplates") {
        set(claim, "apiVersion", "v1");
        set(claim, "kind", "PersistentVolumeClaim");
    }
}

/// A job, unlike a template of one, says how often it runs.
fn job(job: &mut Map<String, Value>) {
    let Some(spec) = job.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    if absent(spec, "completions") && absent(spec, "parallelism") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    set(
        spec,
        "backoffLimit",
        if absent(spec, "backoffLimitPerIndex") {
            6
        } else {
            i32::MAX
        },
    );
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replace = if absent(spec, "podFailurePolicy") {
        "TerminatingOrFailed"
    } else {
        "Failed"
    };
    set(spec, "podReplacementPolicy", replace);
}

fn policy_types(spec: &mut Map<String, Value>) {
    let egress = spec
        .get("egress")
        .and_then(Value::as_array)
        .is_some_and(|e| !e.is_empty());
    let types = if egress {
        serde_json::json!(["Ingress", "Egress"])
    } else {
        serde_json::json!(["Ingress"])
    };
    set(spec, "policyTypes", types);
}

/// Naming one direction of scaling spells out both.
fn scaling_behavior(behavior: &mut Map<String, Value>) {
    let rules = |policies: Value| serde_json::json!({"policies": policies, "selectPolicy": "Max"});
    let up = rules(serde_json::json!([
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15}
    ]));
    let down = rules(serde_json::json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
    for (direction, defaults) in [("scaleUp", up), ("scaleDown", down)] {
        set(behavior, direction, Map::new());
        let Some(found) = behavior.get_mut(direction).and_then(Value::as_object_mut) else {
            continue;
        };
        if direction == "scaleUp" {
            set(found, "stabilizationWindowSeconds", 0);
        }
        for (key, value) in defaults.as_object().into_iter().flatten() {
            set(found, key, value.clone());
        }
    }
}

fn subject_group(subject: &mut Map<String, Value>) {
    if matches!(text(subject, "kind"), Some("User" | "Group")) {
        set(subject, "apiGroup", "rbac.authorization.k8s.io");
    }
}

fn crd_names(names: &mut Map<String, Value>) {
    let kind = text(names, "kind").unwrap_or_default().to_owned();
    set(names, "singular", kind.to_lowercase());
    set(names, "listKind", format!("{kind}List"));
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
