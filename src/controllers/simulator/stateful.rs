//! Simulates StatefulSets: adds and replaces one replica at a time, and replaces the last replica first.

use serde_json::Value;

use super::{Scene, put};
use crate::api::{Object, digest};

pub(super) fn step(scene: &Scene<'_>) -> Object {
    let mut status = scene.status.clone();
    let wanted = scene.number("/replicas", 1);
    let hash: String = digest::of(&scene.spec("/template"))
        .chars()
        .take(10)
        .collect();
    let revision = format!("{}-{hash}", scene.name());
    let known = |field: &str| scene.status.get(field).and_then(Value::as_str);
    let current = known("currentRevision").unwrap_or(&revision).to_owned();
    let is_new = known("updateRevision") != Some(&revision);
    let [mut all, mut updated, mut ready] =
        ["replicas", "updatedReplicas", "readyReplicas"].map(|field| scene.count(field));
    if is_new {
        // If the template changes during a rollout, the rollout starts again. If the template changes back,
        // the replicas that still have the old revision are up to date.
        updated = if current == revision { ready } else { 0 };
    }
    let begins = is_new || scene.count("observedGeneration") < scene.generation();
    let first = current == revision;
    let crash = scene.crash(scene.spec("/template/spec"));
    let mut is_crashing = false;
    if begins {
        // The first step only sets observedGeneration.
    } else if ready < all {
        match &crash {
            Some(_) => is_crashing = true,
            None => {
                ready += 1;
                updated = (updated + 1).min(all);
            }
        }
    } else if all < wanted {
        all += 1;
    } else if all > wanted {
        (all, ready, updated) = (wanted, wanted, updated.min(wanted));
    } else if updated < wanted {
        // Replaces one replica at a time.
        match first {
            true => updated = wanted,
            false => ready -= 1,
        }
    }
    let is_done = !begins && (all, updated, ready) == (wanted, wanted, wanted);
    status.insert("observedGeneration".to_owned(), scene.generation().into());
    // Unlike the other counts, these two fields are written even if they are zero.
    status.insert("replicas".to_owned(), all.into());
    status.insert("availableReplicas".to_owned(), ready.into());
    put(&mut status, "readyReplicas", ready);
    put(&mut status, "updatedReplicas", updated);
    let current = if is_done { revision.clone() } else { current };
    let left = if is_done { wanted } else { all - updated };
    put(&mut status, "currentReplicas", left);
    status.insert("currentRevision".to_owned(), current.into());
    status.insert("updateRevision".to_owned(), revision.into());
    super::crashing(&mut status, scene, crash.filter(|_| is_crashing));
    status
}
