//! Computes the health of an object from its own status, by pure functions.
//!
//! If the controller of the object has not observed the current generation yet, the object is progressing. An object
//! of a built-in Kubernetes kind without a rule in this module is healthy as soon as it exists.

mod claims;
mod custom;
mod jobs;
mod pods;
#[cfg(test)]
mod tests;
pub mod wait;
mod workloads;

use serde_json::Value;

use crate::api::Object;
use crate::api::builtin::is_builtin;
use crate::api::choreo::rendered::Health;

/// The health of an object, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub health: Health,
    /// The reason for the health, as words that follow the name of the object in a message. None if the health needs
    /// no explanation.
    pub message: Option<String>,
}

impl Verdict {
    fn healthy() -> Self {
        Self {
            health: Health::Healthy,
            message: None,
        }
    }

    pub fn new(health: Health, message: impl Into<String>) -> Self {
        Self {
            health,
            message: Some(message.into()),
        }
    }
}

/// The fields of an object that the health rules read.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The API group of the object; empty for the core group.
    pub group: &'a str,
    pub kind: &'a str,
    /// The generation of the object; None if objects of its kind have no generation.
    pub generation: Option<i64>,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// The spec of the object. The rules read only the fields in [`SPEC_FIELDS`], so the caller may leave out the
    /// others.
    pub spec: &'a Object,
    /// The status of the object; None if the object has none.
    pub status: Option<&'a Object>,
}

/// The fields of a spec that the health rules read.
pub const SPEC_FIELDS: &[&str] = &[
    "completions",
    "paused",
    "replicas",
    "restartPolicy",
    "suspend",
    "type",
    "updateStrategy",
];

pub fn of(facts: &Facts<'_>) -> Verdict {
    if facts.deleting {
        return Verdict::new(Health::Progressing, "is being deleted");
    }
    match (facts.group, facts.kind) {
        ("apps", "Deployment") => workloads::deployment(facts),
        ("apps", "StatefulSet") => workloads::stateful_set(facts),
        ("apps", "DaemonSet") => workloads::daemon_set(facts),
        ("apps", "ReplicaSet") => workloads::replica_set(facts),
        ("batch", "Job") => jobs::job(facts),
        ("batch", "CronJob") => jobs::cron_job(facts),
        ("", "Pod") => pods::pod(facts),
        ("", "PersistentVolumeClaim") => claims::volume_claim(facts),
        ("", "Service") => claims::service(facts),
        ("autoscaling", "HorizontalPodAutoscaler") => claims::autoscaler(facts),
        (group, _) if is_builtin(group) => Verdict::healthy(),
        _ => custom::by_ready(facts),
    }
}

/// Returns the name of the first container in a pod that cannot start without a change, and the reason. None if there
/// is no such container.
pub fn trouble(status: &Object) -> Option<(&str, &str)> {
    pods::trouble(status)
}

impl<'a> Facts<'a> {
    /// Returns the status if the controller computed it from the current generation. Otherwise returns the verdict
    /// that the object is progressing.
    fn current(&self) -> Result<&'a Object, Verdict> {
        let unseen = || {
            Verdict::new(
                Health::Progressing,
                "its controller has not observed it yet",
            )
        };
        let status = self.status.ok_or_else(unseen)?;
        let observed = status.get("observedGeneration").and_then(Value::as_i64);
        match observed >= self.generation {
            true => Ok(status),
            false => Err(unseen()),
        }
    }

    fn number(&self, field: &str, absent: i64) -> i64 {
        number(Some(self.spec), field).unwrap_or(absent)
    }

    fn flag(&self, field: &str) -> bool {
        self.spec.get(field).and_then(Value::as_bool) == Some(true)
    }

    fn word(&self, field: &str) -> Option<&'a str> {
        self.spec.get(field).and_then(Value::as_str)
    }
}

fn number(map: Option<&Object>, field: &str) -> Option<i64> {
    map?.get(field)?.as_i64()
}

fn count(status: &Object, field: &str) -> i64 {
    number(Some(status), field).unwrap_or_default()
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns the condition of type `type_`; None if the status does not have it.
fn condition<'a>(status: &'a Object, type_: &str) -> Option<&'a Value> {
    let conditions = status.get("conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| text(condition, "type") == type_)
}

fn is(condition: Option<&Value>, status: &str) -> bool {
    condition.is_some_and(|condition| text(condition, "status") == status)
}

/// Returns the message of a condition. If the message is empty, returns the reason of the condition.
fn said(condition: &Value) -> &str {
    match text(condition, "message") {
        "" => text(condition, "reason"),
        message => message,
    }
}
