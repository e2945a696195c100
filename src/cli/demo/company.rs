//! Other people, who act now and then while somebody looks at the demo.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::script::{COMPANY, Deed, What};
use super::stage::{NAMESPACE, Stage, When};
use crate::embedded::Clock;
use crate::engine::world::{Key, World};

/// How long somebody waits for what they want to promote.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns how long after the start a deed is due.
fn due(deed: &Deed) -> Duration {
    Duration::from_secs(deed.at.try_into().unwrap_or_default())
}

/// Lets people act, each when it is time, until all have; ends when it is dropped.
pub(super) async fn keep(stage: Arc<Stage>) {
    let start = Instant::now();
    let clock: Clock = Arc::new(Timestamp::now);
    for deed in COMPANY {
        tokio::time::sleep_until(start + due(deed)).await;
        let ready = stage.feed.when(|world| is_ready(world, deed, clock()));
        let _ = tokio::time::timeout(PATIENCE, ready).await;
        // Somebody may have held or moved it meanwhile: then they leave it.
        if let Err(error) = stage.perform(deed, &clock, When::Present).await {
            tracing::info!(who = deed.who, component = deed.component, %error, "left undone");
        }
    }
}

/// Tells whether what a deed promotes is ready; anything else is.
fn is_ready(world: &World, deed: &Deed, now: Timestamp) -> bool {
    let What::Promote(from, _) = deed.what else {
        return true;
    };
    let component = Key::new(NAMESPACE, deed.component);
    let pin = world.pin_of(&component, from);
    pin.is_none_or(|pin| pin.is_ready(now))
}
