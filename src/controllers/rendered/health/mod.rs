//! How a resource is, by its own status. Pure: a table of objects and verdicts.
//!
//! A status counts only when it was computed from the generation that it stands beside; until then the
//! resource is on its way. Kinds of Kubernetes without a rule here do what they do by being there.

mod claims;
mod custom;
mod jobs;
mod pods;
#[cfg(test)]
mod tests;
mod workloads;

use serde_json::Value;

use super::kinds::is_builtin;
use crate::api::Object;
use crate::api::rendered::Health;

/// What is said of the health of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How it is.
    pub health: Health,
    /// Why, in words that follow its name.
    pub message: Option<String>,
}

impl Verdict {
    fn healthy() -> Self {
        Self {
            health: Health::Healthy,
            message: None,
        }
    }

    /// Says how a resource is, and why.
    pub fn new(health: Health, message: impl Into<String>) -> Self {
        Self {
            health,
            message: Some(message.into()),
        }
    }
}

/// What a verdict is computed from.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The API group.
    pub group: &'a str,
    /// The kind.
    pub kind: &'a str,
    /// The generation of the spec, where the kind counts them.
    pub generation: Option<i64>,
    /// Whether the object is being deleted.
    pub deleting: bool,
    /// The spec, or those fields of it that [`SPEC_FIELDS`] names.
    pub spec: &'a Object,
    /// The status.
    pub status: Option<&'a Object>,
}

/// The fields of a spec that verdicts are computed from.
pub const SPEC_FIELDS: &[&str] = &[
    "completions",
    "paused",
    "replicas",
    "restartPolicy",
    "suspend",
    "type",
    "updateStrategy",
];

/// Says how a resource is.
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

/// Finds the first container of a pod that does not get better by waiting, and why.
pub fn trouble(status: &Object) -> Option<(&str, &str)> {
    pods::trouble(status)
}

impl<'a> Facts<'a> {
    /// The status, once it is of this generation; until then, what to say.
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

/// Finds a condition of a status by its type.
fn condition<'a>(status: &'a Object, type_: &str) -> Option<&'a Value> {
    let conditions = status.get("conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| text(condition, "type") == type_)
}

fn is(condition: Option<&Value>, status: &str) -> bool {
    condition.is_some_and(|condition| text(condition, "status") == status)
}

/// What a condition says to people: its message, else its reason.
fn said(condition: &Value) -> &str {
    match text(condition, "message") {
        "" => text(condition, "reason"),
        message => message,
    }
}
