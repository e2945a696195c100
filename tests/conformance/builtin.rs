//! The table of built-in kinds against the server that it was made from.
//!
//! `compact` makes the table, `check` compares it with the committed one (and writes it when
//! `BOWLINE_BLESS=1`), `check_defaults` compares the defaults that live in Go code with what the
//! server fills in.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bowline::embedded::builtin;
use kube::Client;
use serde_json::{Map, Value, json};

/// The groups that a data plane needs.
const GROUPS: &[(&str, &str)] = &[
    ("", "v1"),
    ("admissionregistration.k8s.io", "v1"),
    ("apiextensions.k8s.io", "v1"),
    ("apps", "v1"),
    ("authentication.k8s.io", "v1"),
    ("authorization.k8s.io", "v1"),
    ("autoscaling", "v1"),
    ("autoscaling", "v2"),
    ("batch", "v1"),
    ("coordination.k8s.io", "v1"),
    ("discovery.k8s.io", "v1"),
    ("events.k8s.io", "v1"),
    ("networking.k8s.io", "v1"),
    ("policy", "v1"),
    ("rbac.authorization.k8s.io", "v1"),
    ("scheduling.k8s.io", "v1"),
    ("storage.k8s.io", "v1"),
];

/// What a schema keeps; descriptions are nine tenths of it.
const KEPT: &[&str] = &[
    "$ref",
    "additionalProperties",
    "allOf",
    "default",
    "enum",
    "format",
    "items",
    "oneOf",
    "properties",
    "required",
    "type",
    "x-kubernetes-group-version-kind",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-patch-strategy",
];

fn table_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/embedded/builtin.json")
}

fn wanted(group: &str, version: &str) -> bool {
    GROUPS.contains(&(group, version))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value
        .get(key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Makes the table from aggregated discovery (of `/api` and `/apis`) and the OpenAPI documents.
pub fn compact(discovery: &[Value], openapi: &[Value]) -> Value {
    let mut resources: Vec<Value> = discovery
        .iter()
        .flat_map(|document| list(document, "items"))
        .flat_map(|group| {
            let name = group
                .pointer("/metadata/name")
                .and_then(Value::as_str)
                .unwrap_or_default();
            list(group, "versions")
                .iter()
                .map(move |version| (name.to_owned(), version))
        })
        .filter(|(group, version)| wanted(group, text(version, "version")))
        .flat_map(|(group, version)| {
            let name = text(version, "version").to_owned();
            list(version, "resources")
                .iter()
                .map(move |resource| compact_resource(&group, &name, resource))
        })
        .collect();
    resources.sort_by_key(|r| {
        (
            text(r, "group").to_owned(),
            text(r, "version").to_owned(),
            text(r, "plural").to_owned(),
        )
    });

    let mut all: BTreeMap<&str, &Value> = BTreeMap::new();
    for document in openapi {
        if let Some(schemas) = document
            .pointer("/components/schemas")
            .and_then(Value::as_object)
        {
            all.extend(schemas.iter().map(|(name, schema)| (name.as_str(), schema)));
        }
    }
    let mut open: Vec<&str> = all
        .iter()
        .filter(|(_, schema)| {
            list(schema, "x-kubernetes-group-version-kind")
                .iter()
                .any(|gvk| {
                    let (group, version, kind) =
                        (text(gvk, "group"), text(gvk, "version"), text(gvk, "kind"));
                    let served = resources.iter().any(|r| {
                        let same = |v: &Value| {
                            text(v, "group") == group
                                && text(v, "version") == version
                                && kind.strip_suffix("List").unwrap_or(kind)
                                    == text(v, "kind").trim_end_matches("List")
                        };
                        same(r) || list(r, "subresources").iter().any(same)
                    });
                    wanted(group, version)
                        && (served
                            || (group.is_empty() && matches!(kind, "Status" | "DeleteOptions")))
                })
        })
        .map(|(name, _)| *name)
        .collect();
    let mut schemas = Map::new();
    while let Some(name) = open.pop() {
        if schemas.contains_key(name) {
            continue;
        }
        let Some(schema) = all.get(name) else {
            continue;
        };
        let compacted = compact_schema(schema);
        open.extend(references(schema));
        schemas.insert(name.to_owned(), compacted);
    }
    json!({"resources": resources, "schemas": schemas})
}

fn compact_resource(group: &str, version: &str, resource: &Value) -> Value {
    let kind = |of: &Value| {
        let kind = of.get("responseKind").cloned().unwrap_or_default();
        let or = |found: &str, own: &str| {
            if found.is_empty() {
                own.to_owned()
            } else {
                found.to_owned()
            }
        };
        // An empty version means: the same group and version as the resource.
        if text(&kind, "version").is_empty() {
            (
                group.to_owned(),
                version.to_owned(),
                text(&kind, "kind").to_owned(),
            )
        } else {
            (
                text(&kind, "group").to_owned(),
                or(text(&kind, "version"), version),
                text(&kind, "kind").to_owned(),
            )
        }
    };
    let (_, _, own) = kind(resource);
    let subresources: Vec<Value> = list(resource, "subresources")
        .iter()
        .map(|sub| {
            let (group, version, kind) = kind(sub);
            json!({"name": text(sub, "subresource"), "group": group, "version": version, "kind": kind, "verbs": sub["verbs"]})
        })
        .collect();
    json!({
        "group": group, "version": version, "kind": own,
        "plural": text(resource, "resource"), "singular": text(resource, "singularResource"),
        "shortNames": list(resource, "shortNames"), "categories": list(resource, "categories"),
        "namespaced": text(resource, "scope") == "Namespaced",
        "verbs": list(resource, "verbs"), "subresources": subresources,
    })
}

fn compact_schema(schema: &Value) -> Value {
    let Some(map) = schema.as_object() else {
        return schema.clone();
    };
    let mut out = Map::new();
    for (key, value) in map.iter().filter(|(k, _)| KEPT.contains(&k.as_str())) {
        let value = match key.as_str() {
            "properties" => Value::Object(
                value
                    .as_object()
                    .map(|p| {
                        p.iter()
                            .map(|(k, v)| (k.clone(), compact_schema(v)))
                            .collect()
                    })
                    .unwrap_or_default(),
            ),
            "items" | "additionalProperties" => compact_schema(value),
            "allOf" | "oneOf" => Value::Array(
                value
                    .as_array()
                    .map(|l| l.iter().map(compact_schema).collect())
                    .unwrap_or_default(),
            ),
            "x-kubernetes-group-version-kind" => Value::Array(
                list(schema, key)
                    .iter()
                    .filter(|gvk| wanted(text(gvk, "group"), text(gvk, "version")))
                    .cloned()
                    .collect(),
            ),
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    Value::Object(out)
}

fn references(value: &Value) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                match value {
                    Value::String(reference) if key == "$ref" => {
                        found.extend(reference.rsplit('/').next());
                    }
                    other => found.extend(references(other)),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|v| found.extend(references(v))),
        _ => {}
    }
    found
}

/// One line for each resource and each schema: a change of the server reads as a small diff.
fn print(table: &Value) -> String {
    let resources: Vec<String> = list(table, "resources")
        .iter()
        .map(ToString::to_string)
        .collect();
    let schemas: Vec<String> = table["schemas"]
        .as_object()
        .map(|s| {
            s.iter()
                .map(|(name, schema)| format!("{}:{schema}", json!(name)))
                .collect()
        })
        .unwrap_or_default();
    format!(
        "{{\"resources\":[\n{}\n],\"schemas\":{{\n{}\n}}}}\n",
        resources.join(",\n"),
        schemas.join(",\n")
    )
}

async fn get(client: &Client, path: &str, accept: &str) -> Result<Value, String> {
    let request = http::Request::get(path)
        .header("Accept", accept)
        .body(Vec::new())
        .map_err(|e| e.to_string())?;
    let answer = client
        .request_text(request)
        .await
        .map_err(|e| format!("{path}: {e}"))?;
    serde_json::from_str(&answer).map_err(|e| format!("{path}: {e}"))
}

/// Compares the committed table with what this server would give.
pub async fn check(client: &Client) -> Result<(), String> {
    const DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let discovery = [
        get(client, "/api", DISCOVERY).await?,
        get(client, "/apis", DISCOVERY).await?,
    ];
    let mut openapi = Vec::new();
    for (group, version) in GROUPS {
        let path = if group.is_empty() {
            format!("/openapi/v3/api/{version}")
        } else {
            format!("/openapi/v3/apis/{group}/{version}")
        };
        openapi.push(get(client, &path, "application/json").await?);
    }
    let found = print(&compact(&discovery, &openapi));
    let committed = std::fs::read_to_string(table_file()).unwrap_or_default();
    if found == committed {
        return Ok(());
    }
    if std::env::var_os("BOWLINE_BLESS").is_some() {
        return std::fs::write(table_file(), found).map_err(|e| e.to_string());
    }
    let before: BTreeSet<&str> = committed.lines().collect();
    let first = found
        .lines()
        .find(|line| !before.contains(line))
        .unwrap_or_default();
    let first: String = first.chars().take(300).collect();
    Err(format!(
        "src/embedded/builtin.json differs from this server, first in {first:?}; run with BOWLINE_BLESS=1 to write it"
    ))
}

/// Objects of every kind that has defaults in Go code.
fn samples() -> Vec<(&'static str, Value)> {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
        {"name": "main", "image": "nginx:1.27", "ports": [{"containerPort": 80}],
         "readinessProbe": {"httpGet": {"port": 80}}, "livenessProbe": {"tcpSocket": {"port": 80}},
         "startupProbe": {"grpc": {"port": 9000}},
         "lifecycle": {"preStop": {"httpGet": {"port": "x"}}},
         "resources": {"limits": {"cpu": "1"}},
         "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
         "volumeMounts": [{"name": "s", "mountPath": "/s"}]},
        {"name": "latest", "image": "nginx"}],
        "volumes": [{"name": "s", "secret": {"secretName": "x"}}, {"name": "c", "configMap": {"name": "x"}},
            {"name": "e", "emptyDir": {}}, {"name": "n"}, {"name": "h", "hostPath": {"path": "/x"}},
            {"name": "d", "downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}]}},
            {"name": "p", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}}}}}}],
        "serviceAccountName": "robot", "initContainers": [{"name": "i", "image": "busybox@sha256:0123456789012345678901234567890123456789012345678901234567890123"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}]}});
    let once = |policy: &str| {
        let mut template = template.clone();
        template["spec"]["restartPolicy"] = json!(policy);
        template
    };
    let selector = json!({"matchLabels": {"a": "b"}});
    let mut samples = vec![
        (
            "apis/apps/v1/namespaces/default/deployments",
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "x"}, "spec": {"selector": selector, "template": template}}),
        ),
        (
            "apis/apps/v1/namespaces/default/deployments",
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "x2"}, "spec": {"replicas": 0, "strategy": {"type": "Recreate"}, "selector": selector, "template": template}}),
        ),
        (
            "apis/apps/v1/namespaces/default/deployments",
            json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "x3"}, "spec": {"strategy": {"rollingUpdate": {"maxSurge": 1}}, "selector": selector, "template": template}}),
        ),
        (
            "apis/apps/v1/namespaces/default/statefulsets",
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "x"}, "spec": {"serviceName": "s", "selector": selector, "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]}}),
        ),
        (
            "apis/apps/v1/namespaces/default/daemonsets",
            json!({"apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "x"}, "spec": {"selector": selector, "template": template}}),
        ),
        (
            "apis/apps/v1/namespaces/default/replicasets",
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "x"}, "spec": {"selector": selector, "template": template}}),
        ),
        (
            "api/v1/namespaces/default/replicationcontrollers",
            json!({"apiVersion": "v1", "kind": "ReplicationController",
            "metadata": {"name": "x"}, "spec": {"template": template}}),
        ),
        (
            "api/v1/namespaces/default/podtemplates",
            json!({"apiVersion": "v1", "kind": "PodTemplate",
            "metadata": {"name": "x"}, "template": template}),
        ),
        (
            "apis/batch/v1/namespaces/default/jobs",
            json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "x"}, "spec": {"template": once("Never")}}),
        ),
        (
            "apis/batch/v1/namespaces/default/jobs",
            json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"name": "x2"}, "spec": {"parallelism": 3, "template": once("OnFailure")}}),
        ),
        (
            "apis/batch/v1/namespaces/default/cronjobs",
            json!({"apiVersion": "batch/v1", "kind": "CronJob",
            "metadata": {"name": "x"}, "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": once("Never")}}}}),
        ),
        (
            "apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "x"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}),
        ),
        (
            "apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "x3"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": 5}}}}),
        ),
        (
            "apis/policy/v1/namespaces/default/poddisruptionbudgets",
            json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": "x"}, "spec": {"minAvailable": 1, "selector": selector}}),
        ),
        (
            "apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "x"}, "spec": {"podSelector": {}, "ingress": [{"ports": [{"port": 80}]}]}}),
        ),
        (
            "apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "x2"}, "spec": {"podSelector": {}, "egress": [{}]}}),
        ),
        (
            "apis/networking.k8s.io/v1/namespaces/default/ingresses",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
            "metadata": {"name": "x"}, "spec": {"rules": [{"host": "a.b", "http": {"paths": [{"path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "s", "port": {"number": 80}}}}]}}]}}),
        ),
        (
            "apis/networking.k8s.io/v1/ingressclasses",
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "IngressClass",
            "metadata": {"name": "x"}, "spec": {"controller": "a.b/c"}}),
        ),
        (
            "apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "x"}, "roleRef": {"kind": "Role", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [{"kind": "User", "name": "u"}, {"kind": "ServiceAccount", "name": "s", "namespace": "default"}]}),
        ),
        (
            "apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "x"}, "roleRef": {"kind": "ClusterRole", "name": "r", "apiGroup": "rbac.authorization.k8s.io"},
            "subjects": [{"kind": "Group", "name": "u"}]}),
        ),
        (
            "apis/coordination.k8s.io/v1/namespaces/default/leases",
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "x"}, "spec": {"holderIdentity": "me"}}),
        ),
        (
            "api/v1/namespaces/default/secrets",
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": {"a": "Yg=="}}),
        ),
        (
            "api/v1/namespaces/default/configmaps",
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "data": {"a": "b"}}),
        ),
        (
            "api/v1/namespaces/default/serviceaccounts",
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}}),
        ),
        (
            "api/v1/namespaces/default/persistentvolumeclaims",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": "x"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        (
            "api/v1/persistentvolumes",
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "x"},
            "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}}),
        ),
        (
            "api/v1/namespaces/default/endpoints",
            json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "x"},
            "subsets": [{"addresses": [{"ip": "10.1.2.3"}], "ports": [{"port": 80}]}]}),
        ),
        (
            "api/v1/namespaces/default/limitranges",
            json!({"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "x"},
            "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
        ),
        (
            "apis/storage.k8s.io/v1/storageclasses",
            json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "x"}, "provisioner": "a.b/c"}),
        ),
        (
            "apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": {"name": "x"}, "addressType": "IPv4", "endpoints": [{"addresses": ["10.1.2.3"]}], "ports": [{"port": 80}]}),
        ),
        (
            "apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": "x"}, "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]},
            "validations": [{"expression": "true"}]}}),
        ),
        (
            "apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": "x"}, "spec": {"policyName": "x", "validationActions": ["Deny"], "matchResources": {"namespaceSelector": {"matchLabels": {"never": "1"}}}}}),
        ),
        (
            "apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "x"}, "webhooks": [{"name": "a.b.c", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"name": "s", "namespace": "default"}}, "objectSelector": {"matchLabels": {"never": "1"}},
            "rules": [{"apiGroups": ["never"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}]}]}),
        ),
        (
            "apis/scheduling.k8s.io/v1/priorityclasses",
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": "x"}, "value": 5}),
        ),
        (
            "apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "tables.defaults.bowline.dev"}, "spec": {"group": "defaults.bowline.dev", "scope": "Namespaced",
            "names": {"plural": "tables", "kind": "Table"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}}),
        ),
    ];
    for (name, spec) in [
        (
            "x",
            json!({"selector": {"a": "b"}, "ports": [{"port": 80}]}),
        ),
        (
            "x2",
            json!({"type": "NodePort", "ports": [{"port": 80, "targetPort": "http", "name": "h", "protocol": "UDP"}]}),
        ),
        (
            "x3",
            json!({"type": "LoadBalancer", "ports": [{"port": 80}]}),
        ),
        ("x4", json!({"type": "ExternalName", "externalName": "a.b"})),
        (
            "x5",
            json!({"clusterIP": "None", "sessionAffinity": "ClientIP", "ports": [{"port": 80}]}),
        ),
    ] {
        samples.push(("api/v1/namespaces/default/services", json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})));
    }
    samples.push(("api/v1/namespaces/default/pods", json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": template["spec"]})));
    samples
}

/// What the server sets that is not a default: it allocates or admits.
const NOT_DEFAULTS: &[&str] = &[
    "/metadata/creationTimestamp",
    "/metadata/generation",
    "/metadata/managedFields",
    "/metadata/namespace",
    "/metadata/resourceVersion",
    "/metadata/uid",
    "/metadata/annotations",
    "/metadata/labels",
    "/spec/clusterIP",
    "/spec/clusterIPs",
    "/spec/ipFamilies",
    "/spec/ipFamilyPolicy",
    "/spec/healthCheckNodePort",
    "/spec/tolerations",
    "/spec/priority",
    "/spec/preemptionPolicy",
    "/spec/finalizers",
    "/metadata/finalizers",
    "/status",
];

fn without(value: &Value, pointers: &[&str]) -> Value {
    let mut out = value.clone();
    if text(value, "kind") == "Job" {
        // The controller's uid is in both.
        out["spec"]["selector"] = Value::Null;
        out["spec"]["template"]["metadata"] = Value::Null;
    }
    for pointer in pointers {
        if let Some((parent, key)) = pointer.rsplit_once('/')
            && let Some(map) = out.pointer_mut(parent).and_then(Value::as_object_mut)
        {
            map.remove(key);
        }
    }
    if let Some(ports) = out.pointer_mut("/spec/ports").and_then(Value::as_array_mut) {
        for port in ports {
            if let Some(port) = port.as_object_mut() {
                port.remove("nodePort");
            }
        }
    }
    out
}

pub fn differences(path: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let path = format!("{path}/{key}");
                match (a.get(key), b.get(key)) {
                    (Some(a), Some(b)) => differences(&path, a, b, out),
                    (Some(a), None) => out.push(format!("{path}: only here {a}")),
                    (None, Some(b)) => out.push(format!("{path}: only there {b}")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}/{index}"), a, b, out);
            }
        }
        (a, b) if a != b => out.push(format!("{path}: here {a}, there {b}")),
        _ => {}
    }
}

/// Creates an object of every kind on the server (as a dry run) and compares what both fill in.
pub async fn check_defaults(client: &Client) -> Result<(), String> {
    let mut wrong = Vec::new();
    for (path, sample) in samples() {
        let api_version = text(&sample, "apiVersion");
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = text(&sample, "kind");
        let Some(schema) = builtin::schema(group, version, kind) else {
            wrong.push(format!("{kind}: not in the table"));
            continue;
        };
        let request = http::Request::post(format!("/{path}?dryRun=All"))
            .header("Content-Type", "application/json")
            .body(sample.to_string().into_bytes())
            .map_err(|e| e.to_string())?;
        let theirs: Value = match client.request_text(request).await {
            Ok(answer) => serde_json::from_str(&answer).map_err(|e| e.to_string())?,
            Err(e) => {
                wrong.push(format!("{kind}: refused: {e}"));
                continue;
            }
        };
        let mut ours = sample.clone();
        let dropped = schema.prune(&mut ours);
        wrong.extend(dropped.iter().map(|d| format!("{kind}: pruned {d}")));
        wrong.extend(
            schema
                .type_errors(&ours)
                .iter()
                .map(|e| format!("{kind}: {}", e.message)),
        );
        schema.fill_defaults(&mut ours);
        wrong.extend(
            schema
                .validate(&ours)
                .iter()
                .map(|e| format!("{kind}: {e}")),
        );
        let mut found = Vec::new();
        let (ours, theirs) = (without(&ours, NOT_DEFAULTS), without(&theirs, NOT_DEFAULTS));
        differences("", &ours, &theirs, &mut found);
        wrong.extend(
            found
                .iter()
                .map(|d| format!("{kind} {}: {d}", sample["metadata"]["name"])),
        );
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}
