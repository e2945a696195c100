//! The health of a resource, from its own status. The rules are pure functions, tested as a table
//! of objects and verdicts.
//!
//! A status is used only if it was computed from the current generation; until then the resource is
//! progressing. A resource of a Kubernetes kind without a rule in this module is healthy if it
//! exists.

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

/// The health of a resource, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The health of the resource.
    pub health: Health,
    /// The reason, in words that follow the name of the resource.
    pub message: Option<String>,
}

impl Verdict {
    fn healthy() -> Self {
        Self {
            health: Health::Healthy,
            message: None,
        }
    }

    /// Creates a verdict with a reason.
    pub fn new(health: Health, message: impl Into<String>) -> Self {
        Self {
            health,
            message: Some(message.into()),
        }
    }
}

/// The fields of an object that its health depends on.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The API group.
    pub group: &'a str,
    /// The kind of the object.
    pub kind: &'a str,
    /// The generation of the spec; None if the kind has no generations.
    pub generation: Option<i64>,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// The spec, or the fields of it that [`SPEC_FIELDS`] names.
    pub spec: &'a Object,
    /// The status; None if the object has none.
    pub status: Option<&'a Object>,
}

/// The fields of a spec that health rules use.
pub const SPEC_FIELDS: &[&str] = &[
    "completions",
    "paused",
    "replicas",
    "restartPolicy",
    "suspend",
    "type",
    "updateStrategy",
];

/// Returns the health of a resource.
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

/// Returns the first container of a pod with a failure that does not go away by itself, and the reason.
pub fn trouble(status: &Object) -> Option<(&str, &str)> {
    pods::trouble(status)
}

impl<'a> Facts<'a> {
    /// Returns the status if it was computed from the current generation, else the verdict to use
    /// instead.
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

/// Returns the condition with this type; None if the status does not have it.
fn condition<'a>(status: &'a Object, type_: &str) -> Option<&'a Value> {
    let conditions = status.get("conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| text(condition, "type") == type_)
}

fn is(condition: Option<&Value>, status: &str) -> bool {
    condition.is_some_and(|condition| text(condition, "status") == status)
}

/// Returns the message of a condition, else its reason.
fn said(condition: &Value) -> &str {
    match text(condition, "message") {
        "" => text(condition, "reason"),
        message => message,
    }
}
