//! Defaults of built-in kinds that `defaults.json` cannot express, because its values are constants.
//!
//! A default of this module is computed from another field (`targetPort` from `port`), or it belongs to a nested object
//! but depends on the outer one (`parallelism` has a default in a Job, but not in a job template).
//!
//! Each function changes an object of its type, before the defaults of the object's fields are set.

use base64::Engine;
use serde_json::{Map, Value};

use crate::schema::Hook;

/// The functions of this module, each with the OpenAPI definition of its type.
pub(super) const HOOKS: &[(&str, Hook)] = &[
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
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec",
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

/// Sets the default pull policy of a container: `Always` for the tag `latest` or an image without a tag; otherwise
/// `IfNotPresent`.
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

/// Sets the defaults of a pod spec: copies `serviceAccount` and `serviceAccountName` to each other, because they are
/// two names of one field. With `hostNetwork`, the default of a `hostPort` is the `containerPort`.
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

/// Sets the defaults of a pod. In a pod, the default of a resource request is its limit; a pod template has no such
/// default.
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

/// Sets the defaults of a LimitRange for containers: `default` gets missing values from `max`; `defaultRequest` gets
/// missing values from `default`, or else from `min`.
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

/// Moves the field `stringData` of a Secret, which clients can only write, to the field `data`.
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

/// Sets the defaults of `completions`, `parallelism` and `backoffLimit` in a Job. These are no defaults of a job
/// template.
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

/// Sets the defaults of both scaling directions in the `behavior` of an autoscaler.
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

fn crd_names(spec: &mut Map<String, Value>) {
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else {
        return;
    };
    let kind = text(names, "kind").unwrap_or_default().to_owned();
    set(names, "singular", kind.to_lowercase());
    set(names, "listKind", format!("{kind}List"));
}
