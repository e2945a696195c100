//! The simulated users of the demo. They act from time to time while the user looks at the demo.

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

/// Returns the time from the start of the demo to an action.
fn due(deed: &Deed) -> Duration {
    Duration::from_secs(deed.at.try_into().unwrap_or_default())
}

/// Runs the actions of the simulated users, each at its time. Returns after the last one.
pub(super) async fn keep(stage: Arc<Stage>) {
    let start = Instant::now();
    let clock: Clock = Arc::new(Timestamp::now);
    for deed in COMPANY {
        tokio::time::sleep_until(start + due(deed)).await;
        let ready = stage.feed.when(|world| is_ready(world, deed, clock()));
        let _ = tokio::time::timeout(PATIENCE, ready).await;
        // If the user of the demo has held or changed the ReleasePin, the simulated user skips the action.
        if let Err(error) = stage.perform(deed, &clock, When::Present).await {
            tracing::info!(who = deed.who, component = deed.component, %error, "skipped an action of the demo");
        }
    }
}

/// Returns whether the release of a promotion is ready in the source environment; true for other actions.
fn is_ready(world: &World, deed: &Deed, now: Timestamp) -> bool {
    let What::Promote(from, _) = deed.what else {
        return true;
    };
    let component = Key::new(NAMESPACE, deed.component);
    let pin = world.pin_of(&component, from);
    pin.is_none_or(|pin| pin.is_ready(now))
}
