//! The health of workloads. A workload is healthy if all desired replicas are updated and available.

use serde_json::Value;

use super::{Facts, Verdict, condition, count, is, said, text};
use crate::api::Object;
use crate::api::choreo::rendered::Health;

pub(super) fn deployment(facts: &Facts<'_>) -> Verdict {
    let status = match facts.current() {
        Ok(status) => status,
        Err(verdict) => return verdict,
    };
    let wanted = facts.number("replicas", 1);
    let ready = count(status, "readyReplicas");
    if facts.flag("paused") {
        return Verdict::new(
            Health::Suspended,
            format!("{ready} of {wanted} ready, its rollout is paused"),
        );
    }
    if let Some(why) = failure(status) {
        return degraded(ready, wanted, why);
    }
    let (all, updated) = (count(status, "replicas"), count(status, "updatedReplicas"));
    let available = count(status, "availableReplicas");
    if updated < wanted {
        progressing(ready, wanted, format!("{updated} of {wanted} updated"))
    } else if all > updated {
        let old = all.saturating_sub(updated);
        progressing(ready, wanted, format!("{old} old still running"))
    } else if all > wanted {
        let surplus = all.saturating_sub(wanted);
        progressing(ready, wanted, format!("{surplus} surplus still running"))
    } else if available < wanted {
        progressing(ready, wanted, format!("{available} available"))
    } else {
        well(ready, wanted)
    }
}

/// Returns the message of a condition that reports a failed rollout; None if the rollout has not failed. Kubernetes
/// writes these conditions only on Deployments; bowline's simulator also writes them on StatefulSets and DaemonSets.
fn failure(status: &Object) -> Option<&str> {
    let progress = condition(status, "Progressing");
    if is(progress, "False")
        && progress.is_some_and(|it| text(it, "reason") == "ProgressDeadlineExceeded")
    {
        return progress.map(said);
    }
    let refused = condition(status, "ReplicaFailure").filter(|it| is(Some(it), "True"));
    refused.map(said)
}

pub(super) fn stateful_set(facts: &Facts<'_>) -> Verdict {
    let status = match facts.current() {
        Ok(status) => status,
        Err(verdict) => return verdict,
    };
    let wanted = facts.number("replicas", 1);
    let ready = count(status, "readyReplicas");
    // API servers before 1.22 do not write availableReplicas, so the ready replicas count as available.
    let available = super::number(Some(status), "availableReplicas").unwrap_or(ready);
    let strategy = facts.spec.get("updateStrategy");
    let on_delete = strategy.is_some_and(|strategy| text(strategy, "type") == "OnDelete");
    let partition = strategy
        .and_then(|strategy| strategy.pointer("/rollingUpdate/partition"))
        .and_then(Value::as_i64)
        .unwrap_or_default();
    if let Some(why) = failure(status) {
        return degraded(ready, wanted, why);
    }
    let updated = count(status, "updatedReplicas");
    let to_update = wanted.saturating_sub(partition).max(0);
    let revision = |field: &str| status.get(field).and_then(Value::as_str);
    if ready < wanted || available < wanted {
        progressing(ready, wanted, format!("{available} available"))
    } else if count(status, "replicas") > wanted {
        let surplus = count(status, "replicas").saturating_sub(wanted);
        progressing(ready, wanted, format!("{surplus} surplus still running"))
    } else if on_delete || revision("updateRevision") == revision("currentRevision") {
        well(ready, wanted)
    } else if updated < to_update {
        progressing(ready, wanted, format!("{updated} of {to_update} updated"))
    } else if partition == 0 {
        progressing(ready, wanted, "the new revision is not complete")
    } else {
        well(ready, wanted)
    }
}

pub(super) fn daemon_set(facts: &Facts<'_>) -> Verdict {
    let status = match facts.current() {
        Ok(status) => status,
        Err(verdict) => return verdict,
    };
    let wanted = count(status, "desiredNumberScheduled");
    let ready = count(status, "numberReady");
    if let Some(why) = failure(status) {
        return degraded(ready, wanted, why);
    }
    let strategy = facts.spec.get("updateStrategy");
    let on_delete = strategy.is_some_and(|strategy| text(strategy, "type") == "OnDelete");
    let updated = count(status, "updatedNumberScheduled");
    let available = count(status, "numberAvailable");
    if !on_delete && updated < wanted {
        progressing(ready, wanted, format!("{updated} of {wanted} updated"))
    } else if available < wanted {
        progressing(ready, wanted, format!("{available} available"))
    } else {
        well(ready, wanted)
    }
}

pub(super) fn replica_set(facts: &Facts<'_>) -> Verdict {
    let status = match facts.current() {
        Ok(status) => status,
        Err(verdict) => return verdict,
    };
    let wanted = facts.number("replicas", 1);
    let ready = count(status, "readyReplicas");
    if let Some(why) = failure(status) {
        return degraded(ready, wanted, why);
    }
    let available = count(status, "availableReplicas");
    if available < wanted || count(status, "replicas") > wanted {
        progressing(ready, wanted, format!("{available} available"))
    } else {
        well(ready, wanted)
    }
}

fn degraded(ready: i64, wanted: i64, why: &str) -> Verdict {
    Verdict::new(
        Health::Degraded,
        format!("{ready} of {wanted} ready, {why}"),
    )
}

fn progressing(ready: i64, wanted: i64, why: impl std::fmt::Display) -> Verdict {
    Verdict::new(
        Health::Progressing,
        format!("{ready} of {wanted} ready, {why}"),
    )
}

fn well(ready: i64, wanted: i64) -> Verdict {
    Verdict::new(Health::Healthy, format!("{ready} of {wanted} ready"))
}
