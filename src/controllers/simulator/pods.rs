//! Simulates pods without an owner, which a user created. The status of other pods does not change.

use serde_json::{Value, json};

use super::{Scene, condition};
use crate::api::Object;

pub(super) fn step(scene: &Scene<'_>) -> Object {
    let mut status = scene.status.clone();
    let owners = scene.object.pointer("/metadata/ownerReferences");
    let phase = status.get("phase").and_then(Value::as_str);
    let is_over = matches!(phase, Some("Succeeded" | "Failed"));
    if is_over
        || owners
            .and_then(Value::as_array)
            .is_some_and(|it| !it.is_empty())
    {
        return status;
    }
    let is_ready =
        |status: &Object| super::said(status, "Ready").is_some_and(|(is, ..)| is == "True");
    let crash = scene.crash(scene.object.get("spec"));
    let is_scheduled = super::said(&status, "PodScheduled").is_some_and(|(is, ..)| is == "True");
    let restarts = scene.spec("/restartPolicy").and_then(Value::as_str);
    let (phase, state) = if !is_scheduled {
        (
            "Pending",
            json!({"waiting": {"reason": "ContainerCreating"}}),
        )
    } else if crash.is_some() {
        (
            "Running",
            json!({"waiting": {"reason": "CrashLoopBackOff"}}),
        )
    } else if matches!(restarts, Some("Never" | "OnFailure")) && phase == Some("Running") {
        (
            "Succeeded",
            json!({"terminated": {"exitCode": 0, "reason": "Completed"}}),
        )
    } else {
        ("Running", json!({"running": {}}))
    };
    let ready = phase == "Running" && crash.is_none();
    if phase == "Running" && ready && is_ready(&status) {
        return status;
    }
    status.insert("phase".to_owned(), phase.into());
    if !status.contains_key("startTime") {
        status.insert("startTime".to_owned(), scene.now.into());
    }
    let containers = scene.spec("/containers").and_then(Value::as_array);
    let containers = containers.into_iter().flatten().map(|container| {
        let faulty = crash
            .as_ref()
            .is_some_and(|(name, _)| container["name"] == **name);
        let state = match (&crash, faulty) {
            (Some(_), false) if is_scheduled => json!({"running": {}}),
            _ => state.clone(),
        };
        let runs = state.get("running").is_some();
        json!({
            "name": container["name"], "image": container["image"], "imageID": "",
            "ready": runs, "started": runs, "restartCount": i64::from(faulty), "state": state,
        })
    });
    let containers: Vec<Value> = containers.collect();
    status.insert("containerStatuses".to_owned(), containers.into());
    let now = scene.now;
    condition(&mut status, now, "PodScheduled", "True", "", "");
    let (is, reason) = match ready {
        true => ("True", ""),
        false if phase == "Succeeded" => ("False", "PodCompleted"),
        false => ("False", "ContainersNotReady"),
    };
    for type_ in ["ContainersReady", "Ready"] {
        condition(&mut status, now, type_, is, reason, "");
    }
    status
}
