//! Cases about special features of single built-in kinds.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    strategic::deployment,
    target::{Patch, Target, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(a_secret_takes_text),
        case(a_secret_keeps_its_type),
        case(an_immutable_config_map_stays),
        case(a_deployment_has_defaults),
        case(a_service_has_defaults),
        case(a_pod_begins_pending),
        case(a_lease_is_taken_by_one),
        case(an_event_of_the_core_is_an_event_of_its_group),
        case(a_role_binding_keeps_its_role),
        case(a_job_has_defaults),
        case(an_autoscaler_in_two_versions),
        case(quantities_are_kept_as_written),
    ]
}

async fn a_secret_takes_text(t: Target) -> Outcome {
    let made = t
        .post(
            &t.core("secrets"),
            &json!({
                "metadata": {"name": "a"},
                "data": {"k": "dg==", "l": "dg=="},
                "stringData": {"k": "text"},
            }),
        )
        .await
        .created();
    same("data", &made["data"], json!({"k": "dGV4dA==", "l": "dg=="}));
    same("stringData", &made["stringData"], json!(null));
    same("type", &made["type"], json!("Opaque"));
    let patched = t
        .patch(
            &t.core("secrets/a"),
            Patch::Merge,
            &json!({"stringData": {"l": "more"}}),
        )
        .await
        .ok();
    same(
        "data",
        &patched["data"],
        json!({"k": "dGV4dA==", "l": "bW9yZQ=="}),
    );
    Ok(())
}

async fn a_secret_keeps_its_type(t: Target) -> Outcome {
    t.post(&t.core("secrets"), &json!({"metadata": {"name": "a"}}))
        .await
        .created();
    t.patch(
        &t.core("secrets/a"),
        Patch::Merge,
        &json!({"type": "other"}),
    )
    .await
    .refused(
        422,
        "Invalid",
        r#"Secret "a" is invalid: type: Invalid value: "other": field is immutable"#,
    );
    Ok(())
}

async fn an_immutable_config_map_stays(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a"}, "immutable": true, "data": {"k": "v"}}),
    )
    .await
    .created();
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .refused(
        422,
        "Invalid",
        r#"ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set"#,
    );
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"immutable": false}),
    )
    .await
    .refused(422, "Invalid", r#"ConfigMap "a" is invalid: immutable: Forbidden: field is immutable when `immutable` is set"#);
    let labelled = t
        .patch(
            &t.configmaps("/a"),
            Patch::Merge,
            &json!({"metadata": {"labels": {"l": "1"}}}),
        )
        .await
        .ok();
    same("labels", &labelled["metadata"]["labels"], json!({"l": "1"}));
    Ok(())
}

async fn a_deployment_has_defaults(t: Target) -> Outcome {
    let mut body = deployment("a");
    if let Some(spec) = body["spec"].as_object_mut() {
        spec.remove("replicas");
    }
    body["spec"]["template"]["spec"]["containers"] = json!([{"name": "main", "image": "main"}]);
    let made = t
        .post(&t.group("apps/v1", "deployments"), &body)
        .await
        .created();
    same(
        "spec",
        &made["spec"],
        json!({"progressDeadlineSeconds": 600, "replicas": 1, "revisionHistoryLimit": 10, "selector": {"matchLabels": {"app": "a"}}, "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}, "type": "RollingUpdate"}, "template": {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"image": "main", "imagePullPolicy": "Always", "name": "main", "resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}], "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "schedulerName": "default-scheduler", "securityContext": {}, "terminationGracePeriodSeconds": 30}}}),
    );
    Ok(())
}

async fn a_service_has_defaults(t: Target) -> Outcome {
    let made = t
        .post(
            &t.core("services"),
            &json!({"metadata": {"name": "a"}, "spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}),
        )
        .await
        .created();
    let mut spec = made["spec"].clone();
    if let Some(spec) = spec.as_object_mut() {
        // The spec is compared without the addresses, because the network decides the address of a Service.
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            spec.remove(field);
        }
    }
    same(
        "spec",
        &spec,
        json!({"internalTrafficPolicy": "Cluster", "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "selector": {"app": "a"}, "sessionAffinity": "None", "type": "ClusterIP"}),
    );
    Ok(())
}

async fn a_pod_begins_pending(t: Target) -> Outcome {
    let made = t
        .post(
            &t.core("pods"),
            &json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "main:1"}]}}),
        )
        .await
        .created();
    same(
        "status",
        &made["status"],
        json!({"phase": "Pending", "qosClass": "BestEffort"}),
    );
    Ok(())
}

async fn a_lease_is_taken_by_one(t: Target) -> Outcome {
    let path = t.group("coordination.k8s.io/v1", "leases");
    let made = t
        .post(
            &path,
            &json!({"metadata": {"name": "a"}, "spec": {
                "holderIdentity": "one",
                "leaseDurationSeconds": 15,
                "acquireTime": "2026-01-02T03:04:05.000006Z",
                "renewTime": "2026-01-02T03:04:05.000006Z",
                "leaseTransitions": 0,
            }}),
        )
        .await
        .created();
    same(
        "acquireTime",
        &made["spec"]["acquireTime"],
        json!("2026-01-02T03:04:05.000006Z"),
    );
    let mut first = made.clone();
    first["spec"]["holderIdentity"] = json!("two");
    let mut second = made;
    second["spec"]["holderIdentity"] = json!("three");
    let path = format!("{path}/a");
    let taken = t.put(&path, &first).await.ok();
    same("holder", &taken["spec"]["holderIdentity"], json!("two"));
    let answer = t.put(&path, &second).await;
    same("code", &json!(answer.code), json!(409));
    Ok(())
}

async fn an_event_of_the_core_is_an_event_of_its_group(t: Target) -> Outcome {
    t.post(
        &t.core("events"),
        &json!({
            "metadata": {"name": "a"},
            "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "namespace": t.namespace},
            "reason": "Because",
            "message": "It happened.",
            "type": "Warning",
            "source": {"component": "test"},
            "count": 3,
            "firstTimestamp": "2026-01-02T03:04:05Z",
            "lastTimestamp": "2026-01-02T03:04:06Z",
        }),
    )
    .await
    .created();
    let event = t.get(&t.group("events.k8s.io/v1", "events/a")).await.ok();
    same(
        "apiVersion",
        &event["apiVersion"],
        json!("events.k8s.io/v1"),
    );
    same("note", &event["note"], json!("It happened."));
    same("regarding", &event["regarding"]["name"], json!("c"));
    same("deprecatedCount", &event["deprecatedCount"], json!(3));
    same(
        "deprecatedSource",
        &event["deprecatedSource"],
        json!({"component": "test"}),
    );
    same(
        "deprecatedLastTimestamp",
        &event["deprecatedLastTimestamp"],
        json!("2026-01-02T03:04:06Z"),
    );
    same("involvedObject", &event["involvedObject"], json!(null));
    Ok(())
}

async fn a_role_binding_keeps_its_role(t: Target) -> Outcome {
    let path = t.group("rbac.authorization.k8s.io/v1", "rolebindings");
    let binding = |role: &str| {
        json!({
            "metadata": {"name": "a"},
            "subjects": [{"kind": "User", "name": "ana"}],
            "roleRef": {"kind": "Role", "name": role},
        })
    };
    let made = t.post(&path, &binding("one")).await.created();
    same(
        "subjects",
        &made["subjects"],
        json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ana"}]),
    );
    same(
        "roleRef",
        &made["roleRef"],
        json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "one"}),
    );
    t.put(&format!("{path}/a"), &binding("two"))
        .await
        .refused(422, "Invalid", r#"RoleBinding.rbac.authorization.k8s.io "a" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"two"}: cannot change roleRef"#);
    Ok(())
}

async fn a_job_has_defaults(t: Target) -> Outcome {
    let made = t
        .post(
            &t.group("batch/v1", "jobs"),
            &json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "main:1"}],
            }}}}),
        )
        .await
        .created();
    for (field, expected) in [
        ("parallelism", json!(1)),
        ("completions", json!(1)),
        ("backoffLimit", json!(6)),
        ("completionMode", json!("NonIndexed")),
        ("suspend", json!(false)),
    ] {
        same(field, &made["spec"][field], expected);
    }
    let uid = text(&made, "/metadata/uid");
    same(
        "selector",
        &made["spec"]["selector"]["matchLabels"]["batch.kubernetes.io/controller-uid"],
        json!(uid),
    );
    Ok(())
}

async fn an_autoscaler_in_two_versions(t: Target) -> Outcome {
    t.post(
        &t.group("autoscaling/v2", "horizontalpodautoscalers"),
        &json!({"metadata": {"name": "a"}, "spec": {
            "maxReplicas": 5,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"},
            "metrics": [{"type": "Resource", "resource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 60},
            }}],
        }}),
    )
    .await
    .created();
    let older = t
        .get(&t.group("autoscaling/v1", "horizontalpodautoscalers/a"))
        .await
        .ok();
    same("apiVersion", &older["apiVersion"], json!("autoscaling/v1"));
    same(
        "target",
        &older["spec"]["targetCPUUtilizationPercentage"],
        json!(60),
    );
    Ok(())
}

async fn quantities_are_kept_as_written(t: Target) -> Outcome {
    let made = t
        .post(
            &t.core("pods"),
            &json!({"metadata": {"name": "a"}, "spec": {"containers": [{
                "name": "main",
                "image": "main:1",
                "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {"cpu": "500m"}},
            }]}}),
        )
        .await
        .created();
    same(
        "resources",
        &made["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}),
    );
    Ok(())
}
