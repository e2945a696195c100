//! The health of pods, and the reasons why containers do not run.

use serde_json::Value;

use super::{Facts, Verdict, condition, is, said, text};
use crate::api::Object;
use crate::api::choreo::rendered::Health;

/// Reasons for which a container waits and never starts without a change of the pod.
const FAILURES: &[&str] = &[
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "ErrImageNeverPull",
    "ErrImagePull",
    "ImageInspectError",
    "ImagePullBackOff",
    "InvalidImageName",
    "RunContainerError",
];

pub(super) fn pod(facts: &Facts<'_>) -> Verdict {
    let Some(status) = facts.status else {
        return Verdict::new(Health::Progressing, "has not been scheduled");
    };
    let phase = status.get("phase").and_then(Value::as_str);
    if let Some("Pending" | "Running") = phase
        && let Some((container, why)) = trouble(status)
    {
        return Verdict::new(Health::Degraded, format!("{container}: {why}"));
    }
    match phase {
        Some("Succeeded") => Verdict::new(Health::Healthy, "is complete"),
        Some("Failed") => {
            let said = |field: &str| status.get(field).and_then(Value::as_str);
            let why = said("message").or(said("reason")).unwrap_or("it ended");
            Verdict::new(Health::Degraded, format!("failed, {why}"))
        }
        Some("Running") => match condition(status, "Ready") {
            ready if is(ready, "True") => Verdict::new(Health::Healthy, "is ready"),
            // A pod that runs to completion never becomes ready, so it is progressing until it ends.
            _ if matches!(facts.word("restartPolicy"), Some("Never" | "OnFailure")) => {
                Verdict::new(Health::Progressing, "runs")
            }
            Some(ready) => Verdict::new(
                Health::Progressing,
                format!("runs and is not ready, {}", said(ready)),
            ),
            None => Verdict::new(Health::Progressing, "runs and is not ready"),
        },
        Some("Unknown") => Verdict::new(Health::Unknown, "its node does not answer"),
        _ => match condition(status, "PodScheduled").filter(|it| is(Some(it), "False")) {
            Some(unscheduled) => Verdict::new(Health::Progressing, said(unscheduled)),
            None => Verdict::new(Health::Progressing, "is being started"),
        },
    }
}

/// Returns the name of the first container in a pod that cannot start without a change, and the reason. None if there
/// is no such container.
pub(super) fn trouble(status: &Object) -> Option<(&str, &str)> {
    let of = |field: &str| status.get(field).and_then(Value::as_array);
    let containers = [of("initContainerStatuses"), of("containerStatuses")];
    containers
        .into_iter()
        .flatten()
        .flatten()
        .find_map(|container| {
            let reason = container
                .pointer("/state/waiting/reason")
                .and_then(Value::as_str)?;
            let known = FAILURES.iter().find(|failure| **failure == reason)?;
            Some((text(container, "name"), *known))
        })
}
