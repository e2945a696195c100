//! Writes the history of the demo: plays its past actions, and writes the status that controllers would have written.
//! The real controllers continue with this status later. The histories of different components are played at the same
//! time.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube_embedded::Clock;
use serde_json::json;
use tokio::task::JoinSet;

use super::script::{self, FARES, PAST, StartHealth};
use super::stage::{Moved, NAMESPACE, Stage, StageError, When};
use crate::api::condition::{self, Observation, Status};
use crate::api::openchoreo::pin::{Outcome, ReleasePinStatus};
use crate::api::{ReleasePin, labels, names};
use crate::engine::world::Key;

/// The duration of each past rollout in the written status.
const ROLLOUT: SignedDuration = SignedDuration::from_secs(40);

/// Converts a time of the script to a timestamp. `at` is in seconds relative to `start`.
pub(super) fn moment(start: Timestamp, at: i64) -> Timestamp {
    let moment = start.checked_add(SignedDuration::from_secs(at));
    moment.unwrap_or(start)
}

/// Plays all actions of the script that happen before `start`.
pub(super) async fn play(stage: &Arc<Stage>, start: Timestamp) -> Result<(), StageError> {
    let mut players = JoinSet::new();
    for component in script::components() {
        players.spawn(play_one(stage.clone(), component, start));
    }
    while let Some(played) = players.join_next().await {
        played.map_err(|_| StageError::Interrupted("the past"))??;
    }
    Ok(())
}

async fn play_one(
    stage: Arc<Stage>,
    component: &'static str,
    start: Timestamp,
) -> Result<(), StageError> {
    let mut moves: Vec<(Moved, Timestamp)> = Vec::new();
    for deed in PAST.iter().filter(|deed| deed.component == component) {
        let at = moment(start, deed.at);
        let clock: Clock = Arc::new(move || at);
        if let Some(moved) = stage.perform(deed, &clock, When::Past).await? {
            moves.push((moved, at));
        }
    }
    let clock: Clock = Arc::new(move || start);
    let controller = stage.connection(labels::MANAGER_CONTROLLER, &clock);
    let pins: Api<ReleasePin> = Api::namespaced(controller.client, NAMESPACE);
    let mut environments: Vec<&str> = Vec::new();
    for (moved, _) in &moves {
        if !environments.contains(&moved.environment.as_str()) {
            environments.push(&moved.environment);
        }
    }
    for environment in environments {
        let own: Vec<&(Moved, Timestamp)> = moves
            .iter()
            .filter(|(moved, _)| moved.environment == environment)
            .collect();
        let name = names::pin(component, environment);
        let patch = Patch::Merge(json!({"status": status(&own, fares(component, environment))}));
        pins.patch_status(&name, &PatchParams::default(), &patch)
            .await?;
        let key = Key::new(NAMESPACE, &name);
        let seen = |world: &crate::engine::world::World| {
            world.pin(&key).is_some_and(|pin| pin.observed.is_some())
        };
        stage.feed.when(seen).await;
    }
    Ok(())
}

fn fares(component: &str, environment: &str) -> StartHealth {
    let here = FARES.iter();
    let mut here = here.filter(|(of, place, _)| (*of, *place) == (component, environment));
    here.next().map_or(StartHealth::Well, |(.., fares)| *fares)
}

/// Builds the status of a ReleasePin from its past changes. All past rollouts succeeded; `fares` is the result of the
/// last one.
fn status(moves: &[&(Moved, Timestamp)], fares: StartHealth) -> ReleasePinStatus {
    let mut status = ReleasePinStatus::default();
    let ends = moves.iter().skip(1).map(|(_, at)| Some(*at));
    for ((moved, since), until) in moves.iter().zip(ends.chain([None])) {
        let is_last = until.is_none();
        let (healthy, why) = match fares {
            StartHealth::Rolling(why) if is_last => (None, Some(why)),
            StartHealth::Badly(why) if is_last => (Some(false), Some(why)),
            _ => (Some(true), None),
        };
        status.record(Outcome {
            generation: moved.generation,
            release: moved.release.clone(),
            since: Time(*since),
            until: until.map(Time),
            healthy,
            why: why.map(str::to_owned),
        });
        if !is_last {
            continue;
        }
        status.applied_release = Some(moved.release.clone());
        status.observed_generation = Some(moved.generation);
        let (ready, reason, message) = match fares {
            StartHealth::Well => (
                Status::True,
                condition::RECONCILE_SUCCESS,
                format!("Release {} successfully applied", moved.release),
            ),
            StartHealth::Rolling(why) => (Status::False, condition::PROGRESSING, why.to_owned()),
            StartHealth::Badly(why) => (Status::False, condition::DEGRADED, why.to_owned()),
        };
        let told = Observation {
            type_: condition::READY,
            status: ready,
            reason,
            message,
            generation: Some(moved.generation),
        };
        let turned = since.checked_add(ROLLOUT).unwrap_or(*since);
        condition::set(&mut status.conditions, told, turned);
    }
    status
}
