//! Simulated users, who act from time to time while the demo is open.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_embedded::Clock;
use tokio::time::Instant;

use super::script::{COMPANY, Deed, What};
use super::stage::{NAMESPACE, Stage, When};
use crate::engine::world::{Key, World};

/// How long a simulated user waits until the release to promote is ready.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the time between the start of the demo and an action.
fn due(deed: &Deed) -> Duration {
    Duration::from_secs(deed.at.try_into().unwrap_or_default())
}

/// Runs the actions of the simulated users, each at its time. Returns after the last action.
pub(super) async fn keep(stage: Arc<Stage>) {
    let start = Instant::now();
    let clock: Clock = Arc::new(Timestamp::now);
    for deed in COMPANY {
        tokio::time::sleep_until(start + due(deed)).await;
        let ready = stage.feed.when(|world| is_ready(world, deed, clock()));
        let _ = tokio::time::timeout(PATIENCE, ready).await;
        // Another user may have held or moved the ReleasePin; the simulated user then gives up.
        if let Err(error) = stage.perform(deed, &clock, When::Present).await {
            tracing::info!(who = deed.who, component = deed.component, %error, "skipped an action of the demo");
        }
    }
}

/// Returns whether the release of a promotion is ready; true for other actions.
fn is_ready(world: &World, deed: &Deed, now: Timestamp) -> bool {
    let What::Promote(from, _) = deed.what else {
        return true;
    };
    let component = Key::new(NAMESPACE, deed.component);
    let pin = world.pin_of(&component, from);
    pin.is_none_or(|pin| pin.is_ready(now))
}
