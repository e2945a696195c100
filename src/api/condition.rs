//! Conditions: their types and reasons, and how they are set.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

/// Every reference of the release was resolved.
pub const RESOLVED: &str = "Resolved";
/// The resources were rendered.
pub const RENDERED: &str = "Rendered";
/// The resources were applied.
pub const APPLIED: &str = "Applied";
/// Everything is as it should be.
pub const READY: &str = "Ready";
/// What a component is made of was deployed to the first environment by itself.
pub const DEPLOYED: &str = "Deployed";
/// A pipeline is the only one of its namespace, and leads in no circle.
pub const VALID: &str = "Valid";
/// The resources are being removed from the data plane.
pub const FINALIZING: &str = "Finalizing";

/// Nothing is left in the data plane that is no longer wanted there.
pub const PRUNED: &str = "Pruned";
/// The health is the simulator's: nothing runs.
pub const SIMULATED: &str = "Simulated";

/// Reason of Ready: everything went well.
pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
/// Reason: the Release that a pin names is not there.
pub const RELEASE_MISSING: &str = "ReleaseMissing";
/// Reason: the Release that a pin names is of another component.
pub const RELEASE_OF_ANOTHER_COMPONENT: &str = "ReleaseOfAnotherComponent";
/// Reason: a git reference could not be fetched.
pub const GIT_FETCH_FAILED: &str = "GitFetchFailed";
/// Reason: resources are on their way.
pub const PROGRESSING: &str = "Progressing";
/// Reason: a resource fails.
pub const DEGRADED: &str = "Degraded";
/// Reason: nothing is known of the health of a resource.
pub const HEALTH_UNKNOWN: &str = "HealthUnknown";
/// Reason: what was rendered could not be applied.
pub const APPLY_FAILED: &str = "ApplyFailed";
/// Reason: the Environment that is named is not there.
pub const ENVIRONMENT_MISSING: &str = "EnvironmentMissing";
/// Reason: the DataPlane of an Environment is not there.
pub const DATA_PLANE_MISSING: &str = "DataPlaneMissing";
/// Reason: there is no way to the data plane as its DataPlane describes it.
pub const DATA_PLANE_UNUSABLE: &str = "DataPlaneUnusable";
/// Reason: the data plane does not answer.
pub const DATA_PLANE_UNREACHABLE: &str = "DataPlaneUnreachable";
/// Reason of Pruned: what the data plane holds is not known for every kind, so nothing is deleted.
pub const LIVE_STATE_UNKNOWN: &str = "LiveStateUnknown";
/// Reason of Pruned: something could not be deleted.
pub const DELETE_FAILED: &str = "DeleteFailed";
/// Reason: resources that are no longer wanted are being deleted.
pub const REMOVING: &str = "Removing";
/// Reason of Finalizing: a whole kind or namespace is being deleted, so the controller removes nothing.
pub const CLEANUP_STOPPED: &str = "CleanupStopped";
/// Reason of Simulated: the data plane is a store in bowline itself.
pub const EMBEDDED_DATA_PLANE: &str = "EmbeddedDataPlane";
/// Reason: a reference of the release could not be read.
pub const RESOLVE_FAILED: &str = "ResolveFailed";
/// Reason: two EnvSettings are for the same place.
pub const SETTINGS_AMBIGUOUS: &str = "SettingsAmbiguous";
/// Reason: the kind EnvSettings is missing or being deleted, so that nobody knows the settings.
pub const SETTINGS_UNKNOWN: &str = "SettingsUnknown";
/// Reason: the templates could not be rendered with what they were given.
pub const RENDER_FAILED: &str = "RenderFailed";
/// Reason: something that is needed could not be read.
pub const READ_FAILED: &str = "ReadFailed";
/// Reason: the data plane has not said anything of what was applied last.
pub const NOT_OBSERVED: &str = "NotObserved";
/// Reason: an earlier step did not succeed.
pub const NOT_ATTEMPTED: &str = "NotAttempted";

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// It is not known.
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

/// What is said of one type of condition.
#[derive(Clone, Debug)]
pub struct Observation<'a> {
    /// The type of the condition.
    pub type_: &'a str,
    /// Whether it holds.
    pub status: Status,
    /// One word for programs that says why.
    pub reason: &'a str,
    /// A sentence for people that says why.
    pub message: String,
    /// The generation that it was computed from.
    pub generation: Option<i64>,
}

/// Puts an observation among the conditions; the transition time changes only when the status does.
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

/// Tells whether a condition holds for `generation`; one of an older generation does not count.
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
