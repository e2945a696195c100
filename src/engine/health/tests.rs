//! Tests of the health rules: a table of objects and their expected health.

use serde_json::{Value, json};

use super::*;
use Health::*;

/// Computes the health of an object in the same way as the controller.
fn verdict(object: &Value) -> (Health, String) {
    let version = object["apiVersion"].as_str().unwrap();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let empty = Object::new();
    let verdict = of(&Facts {
        group,
        kind: object["kind"].as_str().unwrap(),
        generation: object
            .pointer("/metadata/generation")
            .and_then(Value::as_i64),
        deleting: object.pointer("/metadata/deletionTimestamp").is_some(),
        spec: object["spec"].as_object().unwrap_or(&empty),
        status: object["status"].as_object(),
    });
    (verdict.health, verdict.message.unwrap_or_default())
}

fn object(api_version: &str, kind: &str, generation: i64, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"generation": generation},
        "spec": spec, "status": status,
    })
}

fn check(cases: Vec<(Value, Health, &str)>) {
    for (object, health, message) in cases {
        assert_eq!(verdict(&object), (health, message.to_owned()), "{object:#}");
    }
}

#[test]
fn deployments() {
    let of = |spec: Value, status: Value| object("apps/v1", "Deployment", 3, spec, status);
    let conditions = |type_: &str, status: &str, reason: &str, message: &str| json!([{"type": type_, "status": status, "reason": reason, "message": message}]);
    check(vec![
        (
            of(json!({"replicas": 2}), json!(null)),
            Progressing,
            "its controller has not observed it yet",
        ),
        (
            of(
                json!({"replicas": 2}),
                json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
            ),
            Progressing,
            "its controller has not observed it yet",
        ),
        (
            of(
                json!({"replicas": 2}),
                json!({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
            ),
            Healthy,
            "2 of 2 ready",
        ),
        (
            of(
                json!({}),
                json!({"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}),
            ),
            Healthy,
            "1 of 1 ready",
        ),
        (
            of(json!({"replicas": 0}), json!({"observedGeneration": 3})),
            Healthy,
            "0 of 0 ready",
        ),
        (
            of(
                json!({"replicas": 5}),
                json!({"observedGeneration": 3, "replicas": 6, "updatedReplicas": 2, "readyReplicas": 5, "availableReplicas": 5}),
            ),
            Progressing,
            "5 of 5 ready, 2 of 5 updated",
        ),
        (
            of(
                json!({"replicas": 5}),
                json!({"observedGeneration": 3, "replicas": 6, "updatedReplicas": 5, "readyReplicas": 6, "availableReplicas": 6}),
            ),
            Progressing,
            "6 of 5 ready, 1 old still running",
        ),
        (
            of(
                json!({"replicas": 5}),
                json!({"observedGeneration": 3, "replicas": 5, "updatedReplicas": 5, "readyReplicas": 5, "availableReplicas": 4}),
            ),
            Progressing,
            "5 of 5 ready, 4 available",
        ),
        (
            of(
                json!({"replicas": 5}),
                json!({"observedGeneration": 3, "replicas": 6, "updatedReplicas": 1, "readyReplicas": 2, "conditions": conditions("Progressing", "False", "ProgressDeadlineExceeded", "CrashLoopBackOff")}),
            ),
            Degraded,
            "2 of 5 ready, CrashLoopBackOff",
        ),
        (
            of(
                json!({"replicas": 1}),
                json!({"observedGeneration": 3, "conditions": conditions("ReplicaFailure", "True", "FailedCreate", "exceeded quota")}),
            ),
            Degraded,
            "0 of 1 ready, exceeded quota",
        ),
        (
            of(
                json!({"replicas": 2, "paused": true}),
                json!({"observedGeneration": 3, "readyReplicas": 2}),
            ),
            Suspended,
            "2 of 2 ready, its rollout is paused",
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"deletionTimestamp": "2026-01-06T12:00:00Z"}}),
            Progressing,
            "is being deleted",
        ),
    ]);
}

#[test]
fn stateful_sets() {
    let of = |spec: Value, status: Value| object("apps/v1", "StatefulSet", 1, spec, status);
    let done = json!({"observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3, "updatedReplicas": 3, "currentRevision": "b", "updateRevision": "b"});
    let with = |more: Value| {
        let mut status = done.clone();
        status
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        status
    };
    let three = json!({"replicas": 3});
    check(vec![
        (of(three.clone(), done.clone()), Healthy, "3 of 3 ready"),
        (
            of(three.clone(), with(json!({"observedGeneration": 0}))),
            Progressing,
            "its controller has not observed it yet",
        ),
        (
            of(
                three.clone(),
                with(json!({"readyReplicas": 2, "availableReplicas": 2})),
            ),
            Progressing,
            "2 of 3 ready, 2 available",
        ),
        (
            of(three.clone(), with(json!({"replicas": 4}))),
            Progressing,
            "3 of 3 ready, 1 surplus still running",
        ),
        (
            of(
                three.clone(),
                with(json!({"currentRevision": "a", "updatedReplicas": 1})),
            ),
            Progressing,
            "3 of 3 ready, 1 of 3 updated",
        ),
        (
            of(three.clone(), with(json!({"currentRevision": "a"}))),
            Progressing,
            "3 of 3 ready, the new revision is not complete",
        ),
        (
            of(
                json!({"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}),
                with(json!({"currentRevision": "a", "updatedReplicas": 1})),
            ),
            Healthy,
            "3 of 3 ready",
        ),
        (
            of(
                json!({"replicas": 3, "updateStrategy": {"type": "OnDelete"}}),
                with(json!({"currentRevision": "a", "updatedReplicas": 0})),
            ),
            Healthy,
            "3 of 3 ready",
        ),
    ]);
}

#[test]
fn daemon_sets_and_replica_sets() {
    let of = |spec: Value, status: Value| object("apps/v1", "DaemonSet", 2, spec, status);
    let status = |updated: i64, available: i64| json!({"observedGeneration": 2, "desiredNumberScheduled": 3, "numberReady": available, "updatedNumberScheduled": updated, "numberAvailable": available});
    check(vec![
        (of(json!({}), status(3, 3)), Healthy, "3 of 3 ready"),
        (
            of(json!({}), status(1, 3)),
            Progressing,
            "3 of 3 ready, 1 of 3 updated",
        ),
        (
            of(json!({}), status(3, 2)),
            Progressing,
            "2 of 3 ready, 2 available",
        ),
        (
            of(
                json!({"updateStrategy": {"type": "OnDelete"}}),
                status(0, 3),
            ),
            Healthy,
            "3 of 3 ready",
        ),
        (
            of(
                json!({}),
                json!({"observedGeneration": 2, "desiredNumberScheduled": 0}),
            ),
            Healthy,
            "0 of 0 ready",
        ),
        (
            of(json!({}), json!({"observedGeneration": 1})),
            Progressing,
            "its controller has not observed it yet",
        ),
        (
            object(
                "apps/v1",
                "ReplicaSet",
                1,
                json!({"replicas": 2}),
                json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 1, "availableReplicas": 1}),
            ),
            Progressing,
            "1 of 2 ready, 1 available",
        ),
        (
            object(
                "apps/v1",
                "ReplicaSet",
                1,
                json!({"replicas": 2}),
                json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "availableReplicas": 2}),
            ),
            Healthy,
            "2 of 2 ready",
        ),
    ]);
}

#[test]
fn jobs_and_cron_jobs() {
    let of = |spec: Value, status: Value| object("batch/v1", "Job", 1, spec, status);
    let condition = |type_: &str, reason: &str, message: &str| json!({"conditions": [{"type": type_, "status": "True", "reason": reason, "message": message}]});
    check(vec![
        (of(json!({}), json!(null)), Progressing, "has not started"),
        (
            of(json!({"suspend": true}), json!(null)),
            Suspended,
            "is suspended",
        ),
        (
            of(json!({"suspend": true}), json!({"active": 0})),
            Suspended,
            "is suspended",
        ),
        (
            of(
                json!({"completions": 4}),
                json!({"active": 1, "succeeded": 3, "failed": 2}),
            ),
            Progressing,
            "3 of 4 succeeded, 2 failed",
        ),
        (
            of(json!({}), condition("Complete", "CompletionsReached", "")),
            Healthy,
            "is complete",
        ),
        (
            of(json!({}), condition("SuccessCriteriaMet", "", "")),
            Healthy,
            "is complete",
        ),
        (
            of(
                json!({}),
                condition(
                    "Failed",
                    "BackoffLimitExceeded",
                    "Job has reached the specified backoff limit",
                ),
            ),
            Degraded,
            "failed, BackoffLimitExceeded: Job has reached the specified backoff limit",
        ),
        (
            object(
                "batch/v1",
                "CronJob",
                1,
                json!({"schedule": "* * * * *"}),
                json!(null),
            ),
            Healthy,
            "",
        ),
        (
            object(
                "batch/v1",
                "CronJob",
                1,
                json!({"suspend": true}),
                json!(null),
            ),
            Suspended,
            "is suspended",
        ),
    ]);
}

#[test]
fn pods() {
    let of = |spec: Value, status: Value| object("v1", "Pod", 1, spec, status);
    let ready = |status: &str| json!([{"type": "Ready", "status": status, "reason": "ContainersNotReady", "message": ""}]);
    let waiting =
        |reason: &str| json!([{"name": "main", "state": {"waiting": {"reason": reason}}}]);
    check(vec![
        (
            of(json!({}), json!(null)),
            Progressing,
            "has not been scheduled",
        ),
        (
            of(json!({}), json!({"phase": "Pending"})),
            Progressing,
            "is being started",
        ),
        (
            of(
                json!({}),
                json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}]}),
            ),
            Progressing,
            "0/3 nodes are available",
        ),
        (
            of(
                json!({}),
                json!({"phase": "Pending", "containerStatuses": waiting("ImagePullBackOff")}),
            ),
            Degraded,
            "main: ImagePullBackOff",
        ),
        (
            of(
                json!({}),
                json!({"phase": "Pending", "containerStatuses": waiting("ContainerCreating")}),
            ),
            Progressing,
            "is being started",
        ),
        (
            of(
                json!({}),
                json!({"phase": "Pending", "initContainerStatuses": waiting("CrashLoopBackOff")}),
            ),
            Degraded,
            "main: CrashLoopBackOff",
        ),
        (
            of(
                json!({}),
                json!({"phase": "Running", "conditions": ready("True")}),
            ),
            Healthy,
            "is ready",
        ),
        (
            of(
                json!({}),
                json!({"phase": "Running", "conditions": ready("False")}),
            ),
            Progressing,
            "runs and is not ready, ContainersNotReady",
        ),
        (
            of(
                json!({"restartPolicy": "Never"}),
                json!({"phase": "Running", "conditions": ready("False")}),
            ),
            Progressing,
            "runs",
        ),
        (
            of(
                json!({}),
                json!({"phase": "Running", "containerStatuses": waiting("CrashLoopBackOff"), "conditions": ready("False")}),
            ),
            Degraded,
            "main: CrashLoopBackOff",
        ),
        (
            of(json!({}), json!({"phase": "Succeeded"})),
            Healthy,
            "is complete",
        ),
        (
            of(json!({}), json!({"phase": "Failed", "reason": "Evicted"})),
            Degraded,
            "failed, Evicted",
        ),
        (
            of(json!({}), json!({"phase": "Unknown"})),
            Unknown,
            "its node does not answer",
        ),
    ]);
}

#[test]
fn claims_services_and_autoscalers() {
    let claim = |phase: Value| {
        object(
            "v1",
            "PersistentVolumeClaim",
            1,
            json!({}),
            json!({"phase": phase}),
        )
    };
    let service = |spec: Value, status: Value| object("v1", "Service", 1, spec, status);
    let scaler = |status: Value| {
        object(
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            2,
            json!({}),
            status,
        )
    };
    let scaling = |able: &str, active: (&str, &str)| {
        json!({"conditions": [
            {"type": "AbleToScale", "status": able, "reason": "FailedGetScale", "message": "no such target"},
            {"type": "ScalingActive", "status": active.0, "reason": active.1, "message": "as it says"},
        ]})
    };
    check(vec![
        (claim(json!("Bound")), Healthy, "is bound"),
        (claim(json!("Pending")), Progressing, "waits for a volume"),
        (claim(json!(null)), Progressing, "waits for a volume"),
        (claim(json!("Lost")), Degraded, "its volume is lost"),
        (
            service(json!({"type": "ClusterIP"}), json!({"loadBalancer": {}})),
            Healthy,
            "",
        ),
        (
            service(json!({"type": "LoadBalancer"}), json!({"loadBalancer": {}})),
            Progressing,
            "waits for an address",
        ),
        (
            service(
                json!({"type": "LoadBalancer"}),
                json!({"loadBalancer": {"ingress": [{"ip": "203.0.113.1"}]}}),
            ),
            Healthy,
            "has an address",
        ),
        (
            scaler(json!(null)),
            Progressing,
            "its controller has not observed it yet",
        ),
        (
            scaler(json!({"observedGeneration": 1, "conditions": []})),
            Progressing,
            "its controller has not observed it yet",
        ),
        (
            scaler(scaling("True", ("True", "ValidMetricFound"))),
            Healthy,
            "",
        ),
        (
            scaler(scaling("False", ("True", ""))),
            Degraded,
            "no such target",
        ),
        (
            scaler(scaling("True", ("False", "ScalingDisabled"))),
            Healthy,
            "as it says",
        ),
        (
            scaler(scaling("True", ("False", "FailedGetResourceMetric"))),
            Progressing,
            "as it says",
        ),
        (
            scaler(scaling("True", ("False", "InvalidSelector"))),
            Degraded,
            "as it says",
        ),
    ]);
}

#[test]
fn custom_resources_and_those_of_kubernetes_without_a_rule() {
    let of = |status: Value| object("shop.example/v1", "Queue", 4, json!("any"), status);
    let ready = |status: &str, reason: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": "it says so"}]});
    let with = |mut status: Value, more: Value| {
        status["conditions"].as_array_mut().unwrap().push(more);
        status
    };
    check(vec![
        (of(json!(null)), Healthy, ""),
        (of(json!({"phase": "Whatever"})), Healthy, ""),
        (
            of(json!({"observedGeneration": 3})),
            Progressing,
            "its controller has not observed it yet",
        ),
        (of(ready("True", "Ok")), Healthy, "is ready"),
        (of(ready("False", "Broken")), Degraded, "it says so"),
        (of(ready("False", "Creating")), Progressing, "it says so"),
        (of(ready("Unknown", "")), Progressing, "it says so"),
        (
            of(with(
                ready("False", "DoesNotExist"),
                json!({"type": "Issuing", "status": "True"}),
            )),
            Progressing,
            "it says so",
        ),
        (
            of(with(
                ready("True", "Ok"),
                json!({"type": "Stalled", "status": "True", "message": "stuck"}),
            )),
            Degraded,
            "stuck",
        ),
        (
            of(
                json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 3}]}),
            ),
            Progressing,
            "its controller has not observed it yet",
        ),
        (
            of(
                json!({"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 4}]}),
            ),
            Healthy,
            "is ready",
        ),
        (
            object("v1", "ConfigMap", 1, json!(null), json!(null)),
            Healthy,
            "",
        ),
        (
            object(
                "policy/v1",
                "PodDisruptionBudget",
                1,
                json!({}),
                json!({"conditions": [{"type": "Ready", "status": "False"}]}),
            ),
            Healthy,
            "",
        ),
        (
            object(
                "gateway.networking.k8s.io/v1",
                "HTTPRoute",
                1,
                json!({}),
                json!({"parents": []}),
            ),
            Healthy,
            "",
        ),
    ]);
}

proptest::proptest! {
    /// No rule panics, whatever another controller writes into a status.
    #[test]
    fn no_status_panics(
        kind in proptest::sample::select(vec![
            ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "DaemonSet"), ("batch/v1", "Job"),
            ("v1", "Pod"), ("v1", "Service"), ("autoscaling/v2", "HorizontalPodAutoscaler"), ("a.b/v1", "C"),
        ]),
        field in proptest::sample::select(vec![
            "conditions", "observedGeneration", "replicas", "phase", "containerStatuses", "loadBalancer",
        ]),
        value in proptest::sample::select(vec![
            json!(null), json!(1), json!(-9_223_372_036_854_775_808_i64), json!("x"), json!([]), json!({}), json!([1]), json!([{"type": 1}]),
        ]),
    ) {
        let made = object(kind.0, kind.1, 1, json!({"replicas": value}), json!({field: value, "observedGeneration": 1}));
        verdict(&made);
    }
}
