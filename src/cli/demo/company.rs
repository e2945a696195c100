//! The simulated users of the demo. They act from time to time while a real user looks at the demo.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube_embedded::Clock;
use tokio::time::Instant;

use super::script::{COMPANY, Deed, What};
use super::stage::{NAMESPACE, Stage, When};
use crate::engine::world::{Key, World};

/// How long a simulated user waits for a release to become ready before promoting it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns how long after the start of the demo an action happens.
fn due(deed: &Deed) -> Duration {
    Duration::from_secs(deed.at.try_into().unwrap_or_default())
}

/// Runs each action of the simulated users at its time. Returns after the last action.
pub(super) async fn keep(stage: Arc<Stage>) {
    let start = Instant::now();
    let clock: Clock = Arc::new(Timestamp::now);
    for deed in COMPANY {
        tokio::time::sleep_until(start + due(deed)).await;
        let ready = stage.feed.when(|world| is_ready(world, deed, clock()));
        let _ = tokio::time::timeout(PATIENCE, ready).await;
        // The real user may have held or changed the ReleasePin. Then the action fails, and the simulated user skips
        // it.
        if let Err(error) = stage.perform(deed, &clock, When::Present).await {
            tracing::info!(who = deed.who, component = deed.component, %error, "skipped an action of the demo");
        }
    }
}

/// Returns whether an action can start. A promotion can start when its release is ready in the source environment;
/// any other action always can.
fn is_ready(world: &World, deed: &Deed, now: Timestamp) -> bool {
    let What::Promote(from, _) = deed.what else {
        return true;
    };
    let component = Key::new(NAMESPACE, deed.component);
    let pin = world.pin_of(&component, from);
    pin.is_none_or(|pin| pin.is_ready(now))
}
