//! The types and the reasons of conditions, and functions that set and read conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Type: every reference of the release was resolved.
pub const RESOLVED: &str = "Resolved";
/// Type: the resources were rendered.
pub const RENDERED: &str = "Rendered";
/// Type: the resources were applied.
pub const APPLIED: &str = "Applied";
/// Type: everything is in the desired state.
pub const READY: &str = "Ready";
/// Type: the controller deployed the current definitions to the first environment.
pub const DEPLOYED: &str = "Deployed";
/// Type: the namespace has only one pipeline, and its promotion paths have no cycle.
pub const VALID: &str = "Valid";
/// Type: the resources are being removed from the data plane.
pub const FINALIZING: &str = "Finalizing";

/// Type: the data plane has no stale objects of the RenderedRelease.
pub const PRUNED: &str = "Pruned";
/// Type: a simulator writes the status of the resources, because the data plane runs no pods.
pub const SIMULATED: &str = "Simulated";

/// Reason of Ready: the reconcile succeeded.
pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
/// Reason: the Release that a ReleasePin names does not exist.
pub const RELEASE_MISSING: &str = "ReleaseMissing";
/// Reason: the Release that a ReleasePin names belongs to another component.
pub const RELEASE_OF_ANOTHER_COMPONENT: &str = "ReleaseOfAnotherComponent";
/// Reason: a git reference could not be fetched.
pub const GIT_FETCH_FAILED: &str = "GitFetchFailed";
/// Reason: resources are progressing.
pub const PROGRESSING: &str = "Progressing";
/// Reason: a resource fails.
pub const DEGRADED: &str = "Degraded";
/// Reason: the health of a resource is not known.
pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
/// Reason: the resources could not be applied.
pub const APPLY_FAILED: &str = "ApplyFailed";
/// Reason: the Environment does not exist.
pub const ENVIRONMENT_MISSING: &str = "EnvironmentMissing";
/// Reason: the DataPlane of an Environment does not exist.
pub const DATA_PLANE_MISSING: &str = "DataPlaneMissing";
/// Reason: the DataPlane does not describe a usable connection.
pub const DATA_PLANE_UNUSABLE: &str = "DataPlaneUnusable";
/// Reason: the data plane does not answer.
pub const DATA_PLANE_UNREACHABLE: &str = "DataPlaneUnreachable";
/// Reason of Pruned: the objects of some kinds cannot be read, so the controller deletes nothing.
pub const LIVE_STATE_UNKNOWN: &str = "LiveStateUnknown";
/// Reason of Pruned: an object could not be deleted.
pub const DELETE_FAILED: &str = "DeleteFailed";
/// Reason: stale resources are being deleted.
pub const REMOVING: &str = "Removing";
/// Reason of Finalizing: a whole kind or namespace is being deleted, so the controller deletes no workloads.
pub const CLEANUP_STOPPED: &str = "CleanupStopped";
/// Reason of Simulated: the data plane is an embedded store.
pub const EMBEDDED_DATA_PLANE: &str = "EmbeddedDataPlane";
/// Reason: a reference of the release could not be read.
pub const RESOLVE_FAILED: &str = "ResolveFailed";
/// Reason: two EnvSettings are for the same component and environment.
pub const SETTINGS_AMBIGUOUS: &str = "SettingsAmbiguous";
/// Reason: the settings are unknown, because the kind EnvSettings is missing or is being deleted.
pub const SETTINGS_UNKNOWN: &str = "SettingsUnknown";
/// Reason: the templates could not be rendered with these parameters.
pub const RENDER_FAILED: &str = "RenderFailed";
/// Reason: a needed object could not be read.
pub const READ_FAILED: &str = "ReadFailed";
/// Reason: the data plane has not reported on the last apply.
pub const NOT_OBSERVED: &str = "NotObserved";
/// Reason: an earlier step failed.
pub const NOT_ATTEMPTED: &str = "NotAttempted";

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition is fulfilled.
    True,
    /// The condition is not fulfilled.
    False,
    /// It is not known whether the condition is fulfilled.
    Unknown,
}

impl Status {
    /// Returns the status in the spelling of the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The new state of one condition.
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    /// The type of the condition.
    pub type_: &'a str,
    /// The status of the condition.
    pub status: Status,
    /// The reason: one word, for programs.
    pub reason: &'a str,
    /// The message: a sentence, for people.
    pub message: String,
    /// The generation that the condition was computed from.
    pub generation: Option<i64>,
}

/// Sets a condition. Its transition time changes only if its status changes.
pub fn set(conditions: &mut Vec<Condition>, observation: Observation<'_>, now: Timestamp) {
    let known = conditions
        .iter_mut()
        .find(|condition| condition.type_ == observation.type_);
    let since = known
        .as_ref()
        .filter(|condition| condition.status == observation.status.as_str())
        .map_or(Time(now), |condition| {
            condition.last_transition_time.clone()
        });
    let condition = Condition {
        type_: observation.type_.to_owned(),
        status: observation.status.as_str().to_owned(),
        reason: observation.reason.to_owned(),
        message: observation.message,
        observed_generation: observation.generation,
        last_transition_time: since,
    };
    match known {
        Some(place) => *place = condition,
        None => conditions.push(condition),
    }
}

/// Returns the condition of a type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns whether a condition is True and was computed from `generation` or a later generation. If
/// `generation` is None, every generation is accepted.
pub fn is_true(conditions: &[Condition], type_: &str, generation: Option<i64>) -> bool {
    find(conditions, type_).is_some_and(|condition| {
        condition.status == Status::True.as_str() && condition.observed_generation >= generation
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transition_time_follows_the_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut conditions = Vec::new();
        let mut say = |status, second| {
            let observation = Observation {
                type_: READY,
                status,
                reason: "Because",
                message: format!("at {second}"),
                generation: Some(second),
            };
            set(&mut conditions, observation, at(second));
            let ready = find(&conditions, READY).unwrap();
            assert_eq!(ready.message, format!("at {second}"));
            (conditions.len(), ready.last_transition_time.0)
        };
        assert_eq!(say(Status::False, 1), (1, at(1)));
        assert_eq!(say(Status::False, 2), (1, at(1)));
        assert_eq!(say(Status::True, 3), (1, at(3)));
        assert_eq!(say(Status::True, 4), (1, at(3)));
        for (generation, expected) in [(None, true), (Some(4), true), (Some(5), false)] {
            assert_eq!(is_true(&conditions, READY, generation), expected);
        }
        assert!(!is_true(&conditions, APPLIED, None));
    }
}
