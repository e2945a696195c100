//! Simulates DaemonSets: one replica per node, on a few simulated nodes.

use serde_json::json;

use super::{Scene, condition, put, said};
use crate::api::{Object, digest};

/// The number of simulated nodes.
const NODES: i64 = 3;
/// The condition that stores the template revision of the replicas, because the status of a DaemonSet has no
/// field for the revision.
const REVISION: &str = "SimulatedRevision";

pub(super) fn step(scene: &Scene<'_>) -> Object {
    let mut status = scene.status.clone();
    let hash: String = digest::of(&scene.spec("/template"))
        .chars()
        .take(10)
        .collect();
    let is_new = said(&status, REVISION).is_none_or(|(_, _, message)| message != hash);
    let [mut updated, mut ready] =
        ["updatedNumberScheduled", "numberReady"].map(|field| scene.count(field));
    if is_new {
        updated = 0;
    }
    let begins = is_new || scene.count("observedGeneration") < scene.generation();
    let crash = scene.crash(scene.spec("/template/spec"));
    let mut is_crashing = false;
    if begins {
        // The first step only sets observedGeneration.
    } else if ready < scene.count("currentNumberScheduled") {
        match &crash {
            Some(_) => is_crashing = true,
            None => {
                ready += 1;
                updated = (updated + 1).min(NODES);
            }
        }
    } else if scene.count("currentNumberScheduled") == NODES && updated < NODES {
        // Replaces one replica at a time.
        ready -= 1;
    }
    let scheduled = if begins { ready } else { NODES };
    status.insert("observedGeneration".to_owned(), scene.generation().into());
    for (field, count) in [
        ("desiredNumberScheduled", NODES),
        ("currentNumberScheduled", scheduled),
        ("numberMisscheduled", 0),
        ("numberReady", ready),
    ] {
        status.insert(field.to_owned(), json!(count));
    }
    put(&mut status, "updatedNumberScheduled", updated);
    put(&mut status, "numberAvailable", ready);
    put(&mut status, "numberUnavailable", NODES - ready);
    condition(&mut status, scene.now, REVISION, "True", "Simulated", &hash);
    super::crashing(&mut status, scene, crash.filter(|_| is_crashing));
    status
}
