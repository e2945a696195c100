//! Other people, who act now and then while somebody looks at the demo.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::script::{COMPANY, Deed};
use super::stage::{Stage, When};
use crate::embedded::Clock;

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
        // Somebody may have held or moved it meanwhile: then they leave it.
        if let Err(error) = stage.perform(deed, &clock, When::Present).await {
            tracing::info!(who = deed.who, component = deed.component, %error, "left undone");
        }
    }
}
