//! Simulates Jobs: their pods succeed after some steps, or the Job fails.

use serde_json::{Value, json};

use super::{Scene, condition, put, said};
use crate::api::Object;

pub(super) fn step(scene: &Scene<'_>) -> Object {
    let mut status = scene.status.clone();
    let is_over = |type_: &str| said(&scene.status, type_).is_some_and(|(is, ..)| is == "True");
    if is_over("Complete") || is_over("Failed") {
        return status;
    }
    if scene.spec("/suspend").and_then(Value::as_bool) == Some(true) {
        put(&mut status, "active", 0);
        let (now, reason) = (scene.now, "JobSuspended");
        condition(
            &mut status,
            now,
            "Suspended",
            "True",
            reason,
            "Job suspended",
        );
        return status;
    }
    let wanted = scene.number("/completions", 1).max(1);
    let at_once = scene.number("/parallelism", 1).max(1);
    if !status.contains_key("startTime") {
        status.insert("startTime".to_owned(), scene.now.into());
        put(&mut status, "active", at_once.min(wanted));
        return status;
    }
    if scene.crash(scene.spec("/template/spec")).is_some() {
        put(&mut status, "active", 0);
        put(&mut status, "failed", scene.number("/backoffLimit", 6) + 1);
        let message = "Job has reached the specified backoff limit";
        let reason = "BackoffLimitExceeded";
        for type_ in ["FailureTarget", "Failed"] {
            condition(&mut status, scene.now, type_, "True", reason, message);
        }
        return status;
    }
    let succeeded = (scene.count("succeeded") + at_once).min(wanted);
    put(&mut status, "succeeded", succeeded);
    put(&mut status, "active", at_once.min(wanted - succeeded));
    if succeeded == wanted {
        status.insert("completionTime".to_owned(), json!(scene.now));
        let message = "Reached expected number of succeeded pods";
        let reason = "CompletionsReached";
        for type_ in ["SuccessCriteriaMet", "Complete"] {
            condition(&mut status, scene.now, type_, "True", reason, message);
        }
    }
    status
}
