//! The health of custom resources. It comes from the condition Ready, because most custom resources have it.

use serde_json::Value;

use super::{Facts, Verdict, condition, is, said, text};
use crate::api::choreo::rendered::Health;

/// The condition types that report progress. If the resource is not ready and one of these conditions is true, the
/// resource is progressing.
const UNDER_WAY: &[&str] = &["Issuing", "Progressing", "Reconciling"];
/// Reasons of a false Ready condition that report progress, so that the resource is progressing and not degraded.
const ON_ITS_WAY: &[&str] = &[
    "Creating",
    "InProgress",
    "Initializing",
    "Pending",
    "Progressing",
    "Reconciling",
];

pub(super) fn by_ready(facts: &Facts<'_>) -> Verdict {
    let Some(status) = facts.status else {
        // Many kinds never get a status, so the object is healthy. If it gets a status later, its health is computed
        // again.
        return Verdict::healthy();
    };
    let unseen = || {
        Verdict::new(
            Health::Progressing,
            "its controller has not observed it yet",
        )
    };
    let is_older = |map: Option<&Value>| {
        let observed = map.and_then(Value::as_i64);
        observed.is_some() && observed < facts.generation
    };
    if is_older(status.get("observedGeneration")) {
        return unseen();
    }
    if let Some(stalled) = condition(status, "Stalled").filter(|it| is(Some(it), "True")) {
        return Verdict::new(Health::Degraded, said(stalled));
    }
    let Some(ready) = condition(status, "Ready") else {
        return Verdict::healthy();
    };
    if is_older(ready.get("observedGeneration")) {
        return unseen();
    }
    let is_under_way = || {
        ON_ITS_WAY.contains(&text(ready, "reason"))
            || UNDER_WAY
                .iter()
                .any(|type_| is(condition(status, type_), "True"))
    };
    match text(ready, "status") {
        "True" => Verdict::new(Health::Healthy, "is ready"),
        "False" if !is_under_way() => Verdict::new(Health::Degraded, said(ready)),
        _ => Verdict::new(Health::Progressing, said(ready)),
    }
}
