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
/// The resources are being removed from the data plane.
pub const FINALIZING: &str = "Finalizing";

/// Reason of Ready: everything went well.
pub const RECONCILE_SUCCESS: &str = "ReconcileSuccess";
/// Reason: the Release that a pin names is not there.
pub const RELEASE_MISSING: &str = "ReleaseMissing";
/// Reason: the Release that a pin names is of another component.
pub const RELEASE_OF_ANOTHER_COMPONENT: &str = "ReleaseOfAnotherComponent";
/// Reason: a git reference could not be fetched.
pub const GIT_FETCH_FAILED: &str = "GitFetchFailed";

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
