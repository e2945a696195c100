//! ReleasePin: names the Release that a component runs in an environment, and contains the holds.
//!
//! The spec contains only values that users and git declare. So the generation increases only if the release
//! or a hold changes. The engine records the operation that made a change in annotations.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reference::NameRef;
use crate::api::annotation::UnreadableAnnotation;
use crate::api::hold::Hold;
use crate::api::operation::{self, Operation};
use crate::api::schema;

/// The maximum number of outcomes in the status of a ReleasePin.
pub const MAX_OUTCOMES: usize = 50;

/// The Release of a component that an environment runs.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "openchoreo.dev",
    version = "v1alpha1",
    kind = "ReleasePin",
    namespaced,
    status = "ReleasePinStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "A ReleasePin names the Release of a component that runs in an environment, and the holds that keep it there. Its name is {component}-{environment}.",
    shortname = "pin",
    category = "bowline",
    selectable = ".spec.component",
    selectable = ".spec.environment",
    selectable = ".spec.releaseRef.name",
    validation = Rule::new("self.metadata.name == self.spec.component + '-' + self.spec.environment").message("the name of a ReleasePin must be {component}-{environment}"),
    printcolumn(name = "Component", type_ = "string", json_path = ".spec.component"),
    printcolumn(name = "Environment", type_ = "string", json_path = ".spec.environment"),
    printcolumn(name = "Release", type_ = "string", json_path = ".spec.releaseRef.name", description = "The desired release"),
    printcolumn(name = "Applied", type_ = "string", json_path = ".status.appliedRelease", description = "The release that was applied last"),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].status"),
    printcolumn(name = "First Hold", type_ = "string", json_path = ".spec.holds[0].owner", description = "The owner of the first hold; a hold that has ended stays in this column, without an effect"),
    printcolumn(name = "Hold Until", type_ = "string", json_path = ".spec.holds[0].until", description = "The end of the first hold; empty if it has no end"),
    printcolumn(name = "Changed By", type_ = "string", json_path = ".metadata.annotations['bowline\\.dev/changed-by']", priority = 1),
    printcolumn(name = "Snapshot", type_ = "string", json_path = ".status.snapshot", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.conditions[?(@.type==\"Ready\")].message", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePinSpec {
    /// The component. It never changes.
    #[schemars(
        length(min = 1, max = 63),
        extend("x-kubernetes-validations" = [{
            "rule": "self == oldSelf",
            "message": "the component of a ReleasePin cannot change; create another ReleasePin"
        }])
    )]
    pub component: String,
    /// The environment. It never changes.
    #[schemars(
        length(min = 1, max = 63),
        extend("x-kubernetes-validations" = [{
            "rule": "self == oldSelf",
            "message": "the environment of a ReleasePin cannot change; create another ReleasePin"
        }])
    )]
    pub environment: String,
    /// The Release that runs in the environment, unless an active hold names another Release.
    #[schemars(schema_with = "schema::release_ref")]
    pub release_ref: NameRef,
    /// The holds: while one is active, no promotion, deployment or automation moves the ReleasePin; a rollback still can. A hold past its end has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 64),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"])
    )]
    pub holds: Vec<Hold>,
}

/// Returns the release that the newest of the given holds names. Ignores holds that name no release; returns
/// None if no hold names one.
pub fn fixed<'h>(holds: impl Iterator<Item = &'h Hold>) -> Option<&'h str> {
    let fixing = holds.filter_map(|hold| Some((hold.since.0, &hold.id, hold.release.as_deref()?)));
    fixing.max().map(|(_, _, release)| release)
}

/// The observations of the controller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasePinStatus {
    /// The Release that was applied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_release: Option<String>,
    /// The ComponentEnvSnapshot that the Release was rendered from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<String>,
    /// The generation that this status was computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The releases that ran here and their health: the newest 50, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 50),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["generation"])
    )]
    pub outcomes: Vec<Outcome>,
    /// The latest observations, one per type: Resolved, Rendered, Applied, Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

/// A release that ran in the environment, and its health.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    /// The generation of the ReleasePin that named the release.
    pub generation: i64,
    /// The Release that ran.
    pub release: String,
    /// The time when the ReleasePin named the release.
    #[schemars(schema_with = "schema::moment")]
    pub since: Time,
    /// The time when another release replaced this one; absent while this one runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub until: Option<Time>,
    /// Whether the release is healthy, or was healthy when it was replaced; absent while that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub healthy: Option<bool>,
    /// The reason for the health.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl ReleasePinStatus {
    /// Stores an outcome in place of an earlier outcome of the same generation. Removes the oldest outcomes
    /// if there are more than [`MAX_OUTCOMES`].
    pub fn record(&mut self, outcome: Outcome) {
        self.outcomes
            .retain(|known| known.generation != outcome.generation);
        self.outcomes.push(outcome);
        self.outcomes.sort_by_key(|known| known.generation);
        let surplus = self.outcomes.len().saturating_sub(MAX_OUTCOMES);
        self.outcomes.drain(..surplus);
    }
}

impl ReleasePinSpec {
    /// Returns the holds that have not ended at `now`.
    pub fn active_holds(&self, now: Timestamp) -> impl Iterator<Item = &Hold> {
        self.holds.iter().filter(move |hold| hold.is_active(now))
    }

    /// Returns the name of the effective Release at `now`: the Release that the newest active hold names, or
    /// else releaseRef.
    pub fn effective_release(&self, now: Timestamp) -> &str {
        self.release_at(now, false)
    }

    /// Returns the name of the effective Release at `now`. `owned` tells whether a GitOps tool owns the
    /// ReleasePin, because that changes when a hold ends.
    pub fn release_at(&self, now: Timestamp, owned: bool) -> &str {
        let holds = self
            .holds
            .iter()
            .filter(|hold| hold.is_effective(now, owned));
        fixed(holds).unwrap_or(&self.release_ref.name)
    }

    /// Returns every Release that the ReleasePin names, in the releaseRef and in its holds. Includes holds
    /// that have ended.
    pub fn named_releases(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.release_ref.name.as_str())
            .chain(self.holds.iter().filter_map(|hold| hold.release.as_deref()))
    }
}

impl ReleasePin {
    /// Returns the operation that made the current generation. Returns None if the annotation is missing, or
    /// if it belongs to an older generation because kubectl made the current one.
    pub fn operation(&self) -> Result<Option<Operation>, UnreadableAnnotation> {
        operation::of(self, "ReleasePin", self.metadata.generation)
    }

    /// Returns the user who changed the spec last, from the annotation that the API server writes.
    pub fn changed_by(&self) -> Option<&str> {
        operation::changed_by(self)
    }

    /// Returns the hash of the AuditEntry that was the newest one when the spec changed last.
    pub fn audit_head(&self) -> Option<&str> {
        operation::audit_head(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::bowline::audit::{Action, ContentRef};
    use crate::api::labels;
    use kube::ResourceExt;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn hold(id: &str, since: i64, until: Option<i64>, release: Option<&str>) -> Hold {
        Hold {
            id: id.into(),
            owner: "ana".into(),
            reason: None,
            since: Time(at(since)),
            until: until.map(|end| Time(at(end))),
            release: release.map(Into::into),
        }
    }

    #[test]
    fn the_newest_active_hold_that_fixes_a_release_wins() {
        for (holds, expected) in [
            (vec![], "wanted"),
            (vec![hold("a", 1, None, None)], "wanted"),
            (vec![hold("a", 1, None, Some("old"))], "old"),
            (vec![hold("a", 1, Some(100), Some("old"))], "wanted"),
            (vec![hold("a", 1, Some(101), Some("old"))], "old"),
            (
                vec![
                    hold("a", 5, None, Some("newer")),
                    hold("b", 1, None, Some("old")),
                ],
                "newer",
            ),
            (
                vec![
                    hold("a", 5, None, None),
                    hold("b", 1, None, Some("old")),
                    hold("c", 9, Some(10), Some("past")),
                ],
                "old",
            ),
            (
                vec![
                    hold("b", 5, None, Some("of-b")),
                    hold("a", 5, None, Some("of-a")),
                ],
                "of-b",
            ),
        ] {
            let spec = ReleasePinSpec {
                release_ref: NameRef::new("wanted"),
                holds,
                ..Default::default()
            };
            assert_eq!(spec.effective_release(at(100)), expected, "{spec:?}");
        }
    }

    #[test]
    fn what_a_hold_fixes_over_git_has_no_end() {
        let spec = |release| ReleasePinSpec {
            release_ref: NameRef::new("wanted"),
            holds: vec![hold("a", 1, Some(2), release)],
            ..Default::default()
        };
        for (release, owned, expected) in [
            (Some("good"), false, "wanted"),
            (Some("good"), true, "good"),
            (None, true, "wanted"),
        ] {
            let spec = spec(release);
            assert_eq!(spec.release_at(at(100), owned), expected);
            assert_eq!(
                spec.holds[0].is_effective(at(100), owned),
                owned && release.is_some()
            );
        }
    }

    #[test]
    fn a_pin_names_the_releases_of_expired_holds_too() {
        let spec = ReleasePinSpec {
            release_ref: NameRef::new("wanted"),
            holds: vec![
                hold("a", 1, Some(2), Some("past")),
                hold("b", 1, None, None),
            ],
            ..Default::default()
        };
        assert_eq!(
            spec.named_releases().collect::<Vec<_>>(),
            ["wanted", "past"]
        );
    }

    #[test]
    fn outcomes_are_bounded_and_one_per_generation() {
        let mut status = ReleasePinStatus::default();
        let outcome = |generation, healthy| Outcome {
            generation,
            release: "r".into(),
            since: Time(at(generation)),
            until: None,
            healthy,
            why: None,
        };
        for generation in 1..=60 {
            status.record(outcome(generation, None));
        }
        status.record(outcome(60, Some(true)));
        assert_eq!(status.outcomes.len(), MAX_OUTCOMES);
        assert_eq!(status.outcomes.first().unwrap().generation, 11);
        let last = status.outcomes.last().unwrap();
        assert_eq!((last.generation, last.healthy), (60, Some(true)));
    }

    #[test]
    fn an_operation_of_another_generation_is_none() {
        let operation = Operation {
            id: "op-1".into(),
            number: 7,
            action: Action::Promote,
            at: Time(at(1)),
            reason: Some("ship".into()),
            from: None,
            to: Some(ContentRef::named("checkout-2")),
            actor: None,
            holds_before: Vec::new(),
            rendered_hash: None,
            restored_from: None,
        };
        let mut pin = ReleasePin::default();
        assert_eq!(pin.operation().unwrap(), None);
        pin.annotations_mut()
            .insert(labels::OPERATION.into(), operation.to_annotation());
        for (generation, expected) in [
            (Some(7), Some(operation.clone())),
            (Some(8), None),
            (None, None),
        ] {
            pin.metadata.generation = generation;
            assert_eq!(pin.operation().unwrap(), expected);
        }
        pin.annotations_mut()
            .insert(labels::OPERATION.into(), "{".into());
        assert!(pin.operation().is_err());
    }
}
