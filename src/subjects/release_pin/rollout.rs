//! The progress of a changed ReleasePin: whether the controller has made the new release ready.

use crate::api::condition;
use crate::subjects::release_pin::rows::Pin;

/// The progress of a changed ReleasePin, as the controller reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rollout {
    /// Somebody deleted the ReleasePin.
    Gone,
    /// No controller has observed the change yet.
    Unseen,
    /// The rollout makes progress. Contains the controller's message.
    Moving(String),
    /// The rollout fails, but may succeed later without a change, for example if a pod crashes or a fetch is retried.
    /// Contains the controller's message.
    Failing(String),
    /// The rollout fails until somebody changes the release or its settings. Contains the controller's message.
    Failed(String),
    Ready,
    /// A later revision with another release replaced this one.
    Replaced {
        /// The number of the current revision of the ReleasePin.
        by: i64,
        /// The user who made the newest change of the ReleasePin; None if the server recorded no user.
        who: Option<String>,
        /// Whether the release was healthy when it was replaced; None if this is not recorded.
        healthy: Option<bool>,
    },
}

impl Rollout {
    /// Returns the progress of one revision of a ReleasePin. `release` is the release that this revision made
    /// effective.
    ///
    /// If another release is effective now, the result is the recorded health of this revision. A newer revision with
    /// the same release, for example by a hold, does not count as a replacement.
    pub fn of(pin: Option<&Pin>, revision: i64, release: &str) -> Self {
        let Some(pin) = pin else {
            return Self::Gone;
        };
        let mut moves = pin.moves.iter();
        let own = moves.find(|known| known.generation == revision);
        let healthy = own.and_then(|own| own.healthy);
        let mut later = pin.moves.iter().filter(|known| known.generation > revision);
        let replaced = later.any(|known| *known.release != *release)
            || pin.named_releases().all(|named| named != release);
        if pin.generation > revision && replaced {
            return Self::Replaced {
                by: pin.generation,
                who: pin.changed_by.as_deref().map(str::to_owned),
                healthy,
            };
        }
        if pin.observed.is_none_or(|observed| observed < revision) {
            return Self::Unseen;
        }
        let Some(ready) = &pin.ready else {
            return Self::Moving("no status yet".to_owned());
        };
        if &*ready.status == "True" {
            return Self::Ready;
        }
        let said = format!("{} ({})", ready.message, ready.reason);
        match &*ready.reason {
            condition::PROGRESSING | condition::NOT_OBSERVED => Self::Moving(said),
            condition::RENDER_FAILED
            | condition::SETTINGS_AMBIGUOUS
            | condition::SETTINGS_UNKNOWN
            | condition::RELEASE_OF_ANOTHER_COMPONENT => Self::Failed(said),
            _ => Self::Failing(said),
        }
    }

    /// Returns the progress of the newest revision of a ReleasePin.
    pub fn newest(pin: Option<&Pin>) -> Self {
        // The release is empty, because `of` needs it only for older revisions.
        Self::of(pin, pin.map_or(0, |pin| pin.generation), "")
    }

    /// Returns whether the new release became ready.
    pub fn is_ready(&self) -> bool {
        matches!(
            self,
            Self::Ready
                | Self::Replaced {
                    healthy: Some(true),
                    ..
                }
        )
    }

    /// Returns whether this progress is final, so that waiting longer is useless.
    pub fn is_over(&self) -> bool {
        matches!(self, Self::Ready | Self::Replaced { .. })
    }

    /// Returns whether the release cannot become ready unless somebody changes it.
    pub fn is_final_failure(&self) -> bool {
        match self {
            Self::Gone | Self::Failed(_) => true,
            Self::Replaced { .. } => !self.is_ready(),
            _ => false,
        }
    }

    /// Returns whether the rollout has ended, either ready or failed.
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Unseen | Self::Moving(_))
    }

    /// Returns the progress as text for the user.
    pub fn words(&self) -> String {
        match self {
            Self::Gone => "its ReleasePin was deleted".to_owned(),
            Self::Unseen => "no controller has observed the change yet".to_owned(),
            Self::Moving(said) | Self::Failing(said) | Self::Failed(said) => said.clone(),
            Self::Ready => "ready".to_owned(),
            Self::Replaced { by, who, healthy } => {
                let was = match healthy {
                    Some(true) => "ready",
                    Some(false) => "not ready",
                    None => "health not recorded",
                };
                let who = who.as_ref().map(|who| format!(" of {who}"));
                let who = who.unwrap_or_default();
                format!("{was} until revision {by}{who} replaced it")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::api::ReleasePin;
    use crate::engine::world::Key;
    use crate::engine::world::{Event, World};
    use crate::fixture::{key, outcomes, pin, unready, world};

    /// Returns a read model with a ReleasePin whose revision 2 has this outcome.
    fn told(outcome: serde_json::Value) -> World {
        let mut world = world();
        let pin = outcomes(pin("cart", "staging", "v2"), outcome);
        world.pins(Event::Applied(pin));
        world
    }

    #[test]
    fn the_outcome_of_a_revision_is_its_own_whatever_came_later() {
        let since = "2026-11-17T13:00:00Z";
        let moved = |generation: i64, release: &str, healthy: Option<bool>| json!({"generation": generation, "release": release, "since": since, "healthy": healthy});
        for (healthy, ready, words) in [
            (Some(true), true, "ready until revision 3 replaced it"),
            (Some(false), false, "not ready until revision 3 replaced it"),
            (
                None,
                false,
                "health not recorded until revision 3 replaced it",
            ),
        ] {
            // In each test case, revision 3 is ready.
            let mut world = world();
            let moves = json!([
                moved(2, "cart-v2", healthy),
                moved(3, "cart-v3", Some(true)),
            ]);
            let pin = outcomes(pin("cart", "staging", "v3"), moves);
            world.pins(Event::Applied(pin));
            let rollout = Rollout::of(world.pin(&key("cart-staging")), 2, "cart-v2");
            assert_eq!(
                (rollout.is_ready(), rollout.is_over()),
                (ready, true),
                "{words}"
            );
            assert_eq!(rollout.words(), words);
            let later = Rollout::of(world.pin(&key("cart-staging")), 3, "cart-v3");
            assert_eq!(later, Rollout::Ready);
        }
    }

    #[test]
    fn a_later_hold_on_the_same_release_replaces_nothing() {
        let since = "2026-11-17T13:00:00Z";
        let world = told(json!([
            {"generation": 2, "release": "cart-v2", "since": since, "until": since},
            {"generation": 3, "release": "cart-v2", "since": since, "healthy": true},
        ]));
        let rollout = Rollout::of(world.pin(&key("cart-staging")), 2, "cart-v2");
        assert_eq!(rollout, Rollout::Ready);
    }

    #[test]
    fn a_revision_that_rolls_out_follows_the_controller() {
        let moved =
            json!([{"generation": 2, "release": "cart-v2", "since": "2026-11-17T13:00:00Z"}]);
        let mut world = told(moved.clone());
        let rollout = |world: &World, revision| {
            Rollout::of(world.pin(&key("cart-staging")), revision, "cart-v2")
        };
        assert_eq!(rollout(&world, 2), Rollout::Ready);
        assert_eq!(rollout(&world, 3), Rollout::Unseen);
        let failing = unready(
            outcomes(pin("cart", "staging", "v2"), moved),
            "Degraded",
            "1 of 2 ready",
            "13:59:00",
        );
        world.pins(Event::Applied(failing));
        let failing = rollout(&world, 2);
        assert_eq!(failing.words(), "1 of 2 ready (Degraded)");
        assert!(!failing.is_over());
        assert_eq!(Rollout::of(None, 2, "cart-v2"), Rollout::Gone);
    }

    fn ready_pin(observed: i64, ready: Option<(&str, &str)>) -> Pin {
        let conditions: Vec<_> = ready
            .iter()
            .map(|(status, reason)| {
                json!({
                    "type": "Ready", "status": status, "reason": reason, "message": "said",
                    "lastTransitionTime": "2026-01-05T00:00:00Z",
                })
            })
            .collect();
        let pin: ReleasePin = serde_json::from_value(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin",
            "metadata": {"name": "cart-dev", "generation": 3},
            "spec": {"component": "cart", "environment": "dev", "releaseRef": {"name": "cart-1"}},
            "status": {"observedGeneration": observed, "conditions": conditions},
        }))
        .unwrap();
        Pin::of(
            &pin,
            Key::new("shop", "cart-dev"),
            "cart".into(),
            "dev".into(),
        )
    }

    #[test]
    fn a_rollout_ends_when_it_is_ready_or_when_no_time_helps() {
        for (found, words, ready, settled, failed) in [
            (None, "its ReleasePin was deleted", false, true, true),
            (
                Some(ready_pin(2, Some(("True", "ReconcileSuccess")))),
                "no controller has observed the change yet",
                false,
                false,
                false,
            ),
            (
                Some(ready_pin(3, Some(("True", "ReconcileSuccess")))),
                "ready",
                true,
                true,
                false,
            ),
            (
                Some(ready_pin(4, Some(("True", "ReconcileSuccess")))),
                "ready",
                true,
                true,
                false,
            ),
            (
                Some(ready_pin(3, None)),
                "no status yet",
                false,
                false,
                false,
            ),
            (
                Some(ready_pin(3, Some(("False", "Progressing")))),
                "said (Progressing)",
                false,
                false,
                false,
            ),
            (
                Some(ready_pin(3, Some(("Unknown", "NotObserved")))),
                "said (NotObserved)",
                false,
                false,
                false,
            ),
            (
                Some(ready_pin(3, Some(("False", "Degraded")))),
                "said (Degraded)",
                false,
                true,
                false,
            ),
            (
                Some(ready_pin(3, Some(("False", "GitFetchFailed")))),
                "said (GitFetchFailed)",
                false,
                true,
                false,
            ),
            (
                Some(ready_pin(3, Some(("False", "RenderFailed")))),
                "said (RenderFailed)",
                false,
                true,
                true,
            ),
        ] {
            let rollout = Rollout::of(found.as_ref(), 3, "cart-1");
            assert_eq!(
                (
                    rollout.words().as_str(),
                    rollout.is_ready(),
                    rollout.is_settled(),
                    rollout.is_final_failure()
                ),
                (words, ready, settled, failed),
            );
        }
    }
}
