//! Compares the default values that a real server sets in Go code with the default values of the embedded
//! API.

use kube::Client;
use kube_embedded::builtin;
use serde_json::{Value, json};

use super::{differences, text};

/// Returns objects of every kind that has default values in Go code, each with the path of its collection.
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
            "metadata": {"name": "x"}, "roleRef": {"kind": "Role", "name": "r"},
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
    for (path, object) in [
        (
            "api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}),
        ),
        (
            "api/v1/namespaces/default/resourcequotas",
            json!({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "x"}, "spec": {"hard": {"pods": "1"}}}),
        ),
        (
            "apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "x"}}),
        ),
        (
            "apis/rbac.authorization.k8s.io/v1/clusterroles",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "x"}, "rules": []}),
        ),
        (
            "api/v1/namespaces/default/events",
            json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "x", "namespace": "default"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "R"}),
        ),
        (
            "apis/events.k8s.io/v1/namespaces/default/events",
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "x", "namespace": "default"}, "eventTime": "2026-01-01T00:00:00.000000Z", "action": "A", "reason": "R", "type": "Normal", "reportingController": "a.b/c", "reportingInstance": "i", "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}}),
        ),
        (
            "apis/apps/v1/namespaces/default/controllerrevisions",
            json!({"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "x"}, "revision": 1, "data": {"a": {"b": null}}}),
        ),
        (
            "apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}}),
        ),
        (
            "apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": "x"}}),
        ),
        (
            "apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
            json!({"apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "x9"}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}}),
        ),
    ] {
        samples.push((path, object));
    }
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

/// The fields that the server sets, but not as default values: the server or an admission plugin computes
/// them.
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
    "/status/lastPhaseTransitionTime",
    "/status/storedVersions",
    "/status/allowed",
    "/status/qosClass",
];

fn without(value: &Value, pointers: &[&str]) -> Value {
    let mut out = value.clone();
    if text(value, "kind") == "Job" {
        // The selector and the labels contain the uid of the job, so they always differ.
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

/// Creates each sample on the real server as a dry run. Compares the default values in the answer with those
/// of the embedded API.
pub async fn check(client: &Client) -> Result<(), String> {
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
