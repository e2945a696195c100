//! The type names and the reasons of status conditions, and functions that set and read conditions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Condition type: every git reference of the release was resolved to definitions.
pub const RESOLVED: &str = "Resolved";
/// Condition type: the manifests of the release were rendered.
pub const RENDERED: &str = "Rendered";
/// Condition type: the resources of the release were applied to the data plane.
pub const APPLIED: &str = "Applied";
/// Condition type: all resources are applied and healthy.
pub const READY: &str = "Ready";
/// Condition type: the controller deployed the current definitions to the first environment.
pub const DEPLOYED: &str = "Deployed";
/// Condition type: the namespace has only one pipeline, and the promotion paths of the pipeline have no
/// cycle.
pub const VALID: &str = "Valid";
/// Condition type: the resources of a RenderedRelease are being removed from the data plane.
pub const FINALIZING: &str = "Finalizing";

/// Condition type: the data plane has no stale objects of the RenderedRelease.
pub const PRUNED: &str = "Pruned";
/// Condition type: the simulator writes the status of the resources, because the data plane runs no pods.
pub const SIMULATED: &str = "Simulated";

/// Reason of Ready: the reconcile succeeded.
pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
/// Reason: the Release that a ReleasePin names does not exist.
pub const RELEASE_MISSING: &str = "ReleaseMissing";
/// Reason: the Release that a ReleasePin names belongs to another component.
pub const RELEASE_OF_ANOTHER_COMPONENT: &str = "ReleaseOfAnotherComponent";
/// Reason: git could not fetch a reference of the release.
pub const GIT_FETCH_FAILED: &str = "GitFetchFailed";
/// Reason: at least one resource is progressing.
pub const PROGRESSING: &str = "Progressing";
/// Reason: at least one resource fails.
pub const DEGRADED: &str = "Degraded";
/// Reason: the health of at least one resource is not known.
pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
/// Reason: at least one resource could not be applied.
pub const APPLY_FAILED: &str = "ApplyFailed";
/// Reason: the Environment of the ReleasePin or RenderedRelease does not exist.
pub const ENVIRONMENT_MISSING: &str = "EnvironmentMissing";
/// Reason: the Environment names a DataPlane that does not exist.
pub const DATA_PLANE_MISSING: &str = "DataPlaneMissing";
/// Reason: bowline cannot connect with the data that the DataPlane contains.
pub const DATA_PLANE_UNUSABLE: &str = "DataPlaneUnusable";
/// Reason: the data plane does not answer.
pub const DATA_PLANE_UNREACHABLE: &str = "DataPlaneUnreachable";
/// Reason of Pruned: at least one kind cannot be read, so the controller deletes no stale objects.
pub const LIVE_STATE_UNKNOWN: &str = "LiveStateUnknown";
/// Reason of Pruned: a stale object could not be deleted.
pub const DELETE_FAILED: &str = "DeleteFailed";
/// Reason: objects of the RenderedRelease are being deleted.
pub const REMOVING: &str = "Removing";
/// Reason of Finalizing: a whole kind or namespace is being deleted, so the controller deletes no workloads.
pub const CLEANUP_STOPPED: &str = "CleanupStopped";
/// Reason of Simulated: the data plane is an embedded store.
pub const EMBEDDED_DATA_PLANE: &str = "EmbeddedDataPlane";
/// Reason: a definition that the release names could not be read.
pub const RESOLVE_FAILED: &str = "ResolveFailed";
/// Reason: two EnvSettings are for the same component and environment.
pub const SETTINGS_AMBIGUOUS: &str = "SettingsAmbiguous";
/// Reason: the settings are unknown, because the kind EnvSettings is missing or is being deleted.
pub const SETTINGS_UNKNOWN: &str = "SettingsUnknown";
/// Reason: the templates could not be rendered with the parameters of the component.
pub const RENDER_FAILED: &str = "RenderFailed";
/// Reason: an object that the step needs could not be read.
pub const READ_FAILED: &str = "ReadFailed";
/// Reason: the data plane has not reported the health since the last apply.
pub const NOT_OBSERVED: &str = "NotObserved";
/// Reason: the controller did not try this step, because an earlier step failed.
pub const NOT_ATTEMPTED: &str = "NotAttempted";

/// The value of a condition, as in Kubernetes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The statement of the condition is true.
    True,
    /// The statement of the condition is false.
    False,
    /// The controller does not know whether the statement of the condition is true.
    Unknown,
}

impl Status {
    /// Returns the status as the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

/// The new value of one condition, for [`set`].
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    /// The type name of the condition.
    pub type_: &'a str,
    /// The new status of the condition.
    pub status: Status,
    /// The reason for the status as one word, for programs.
    pub reason: &'a str,
    /// The explanation of the status as a sentence, for people.
    pub message: String,
    /// The generation of the object from which the condition was computed.
    pub generation: Option<i64>,
}

/// Replaces or adds a condition. Its transition time changes only if its status changes.
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

/// Returns the condition with this type name; None if there is no such condition.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns whether a condition is True and was computed from `generation` or a later one. If `generation` is
/// None, any generation is sufficient.
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
