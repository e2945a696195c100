//! The health of objects that request something from a controller: a volume, an address, a number of replicas.

use serde_json::Value;

use super::{Facts, Verdict, condition, is, said, text};
use crate::api::choreo::rendered::Health;

pub(super) fn volume_claim(facts: &Facts<'_>) -> Verdict {
    let phase = facts.status.and_then(|status| status.get("phase"));
    match phase.and_then(Value::as_str) {
        Some("Bound") => Verdict::new(Health::Healthy, "is bound"),
        Some("Lost") => Verdict::new(Health::Degraded, "its volume is lost"),
        _ => Verdict::new(Health::Progressing, "waits for a volume"),
    }
}

pub(super) fn service(facts: &Facts<'_>) -> Verdict {
    if facts.word("type") != Some("LoadBalancer") {
        return Verdict::healthy();
    }
    let balancer = facts.status.and_then(|status| status.get("loadBalancer"));
    let addresses = balancer
        .and_then(|balancer| balancer.get("ingress"))
        .and_then(Value::as_array);
    match addresses.is_some_and(|addresses| !addresses.is_empty()) {
        true => Verdict::new(Health::Healthy, "has an address"),
        false => Verdict::new(Health::Progressing, "waits for an address"),
    }
}

pub(super) fn autoscaler(facts: &Facts<'_>) -> Verdict {
    let unseen = || {
        Verdict::new(
            Health::Progressing,
            "its controller has not observed it yet",
        )
    };
    let Some(status) = facts.status else {
        return unseen();
    };
    let observed = status.get("observedGeneration").and_then(Value::as_i64);
    if observed.is_some() && observed < facts.generation {
        return unseen();
    }
    let Some(able) = condition(status, "AbleToScale") else {
        return unseen();
    };
    if is(Some(able), "False") {
        return Verdict::new(Health::Degraded, said(able));
    }
    match condition(status, "ScalingActive").filter(|it| is(Some(it), "False")) {
        // A user scaled the workload to zero replicas, which switches the autoscaler off. This is no fault.
        Some(active) if text(active, "reason") == "ScalingDisabled" => {
            Verdict::new(Health::Healthy, said(active))
        }
        // For a short time after their start, pods have no metrics, so the autoscaler cannot compute a number.
        Some(active) if text(active, "reason").starts_with("FailedGet") => {
            Verdict::new(Health::Progressing, said(active))
        }
        Some(active) => Verdict::new(Health::Degraded, said(active)),
        None => Verdict::healthy(),
    }
}
