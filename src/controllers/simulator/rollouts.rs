//! Simulates Deployments: adds new replicas one by one, and removes an old replica whenever a new one is
//! ready.

use serde_json::Value;

use super::{Scene, condition, put, said};
use crate::api::{Object, digest};

const PROGRESSING: &str = "Progressing";

pub(super) fn step(scene: &Scene<'_>) -> Object {
    let mut status = scene.status.clone();
    let wanted = scene.number("/replicas", 1);
    let set = replica_set(scene);
    let is_new = !said(&status, PROGRESSING).is_some_and(|(_, _, message)| message.contains(&set));
    if scene.spec("/paused").and_then(Value::as_bool) == Some(true) {
        status.insert("observedGeneration".to_owned(), scene.generation().into());
        return status;
    }
    let [mut all, mut updated, mut ready] =
        ["replicas", "updatedReplicas", "readyReplicas"].map(|field| scene.count(field));
    let begins = is_new || scene.count("observedGeneration") < scene.generation();
    if is_new {
        // As in a cluster, the old replicas that are not ready are removed first.
        let recreate = scene.spec("/strategy/type").and_then(Value::as_str) == Some("Recreate");
        ready = if recreate { 0 } else { ready };
        (all, updated) = (ready, 0);
    }
    let old = all - updated;
    let crash = scene.crash(scene.spec("/template/spec"));
    let mut is_crashing = false;
    if begins {
        // The first step only sets observedGeneration.
    } else if ready - old < updated {
        match &crash {
            Some(_) => is_crashing = true,
            None => ready += 1,
        }
    } else if old > 0 && all > wanted {
        (all, ready) = (all - 1, ready - 1);
    } else if updated < wanted {
        let more = if old > 0 { 1 } else { wanted - updated };
        (all, updated) = (all + more, updated + more);
    } else if old > 0 {
        (all, ready) = (all - 1, ready - 1);
    } else if updated > wanted {
        (all, updated, ready) = (wanted, wanted, wanted);
    }
    status.insert("observedGeneration".to_owned(), scene.generation().into());
    put(&mut status, "replicas", all);
    put(&mut status, "updatedReplicas", updated);
    put(&mut status, "readyReplicas", ready);
    put(&mut status, "availableReplicas", ready);
    put(&mut status, "unavailableReplicas", (all - ready).max(0));
    let is_done = !begins && (all, updated, ready) == (wanted, wanted, wanted);
    tell(
        &mut status,
        scene,
        &set,
        is_done,
        crash.filter(|_| is_crashing),
    );
    status
}

fn tell(
    status: &mut Object,
    scene: &Scene<'_>,
    set: &str,
    is_done: bool,
    crash: Option<(String, String)>,
) {
    let wanted = scene.number("/replicas", 1);
    let available = status.get("availableReplicas").and_then(Value::as_i64);
    // As by default in a cluster, a quarter of the replicas may be unavailable.
    let (is, reason, message) = match available.unwrap_or_default() >= wanted - wanted / 4 {
        true => (
            "True",
            "MinimumReplicasAvailable",
            "Deployment has minimum availability.",
        ),
        false => (
            "False",
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
    };
    condition(status, scene.now, "Available", is, reason, message);
    let (is, reason, message) = match (crash, is_done) {
        (Some((container, image)), _) => (
            "False",
            "ProgressDeadlineExceeded",
            format!("CrashLoopBackOff: container {container}, image {image}, of {set}"),
        ),
        (None, true) => (
            "True",
            "NewReplicaSetAvailable",
            format!("{set} has successfully progressed."),
        ),
        (None, false) => (
            "True",
            "ReplicaSetUpdated",
            format!("{set} is progressing."),
        ),
    };
    condition(status, scene.now, PROGRESSING, is, reason, &message);
}

/// Returns the text with which conditions name the ReplicaSet of the current template.
fn replica_set(scene: &Scene<'_>) -> String {
    let hash = digest::of(&scene.spec("/template"));
    let hash: String = hash.chars().take(10).collect();
    format!("ReplicaSet \"{}-{hash}\"", scene.name())
}
