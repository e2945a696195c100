//! Runs the controllers of an embedded store inside the process of a command, because an embedded store has
//! no controllers of its own.
//!
//! After a command changed the release of a ReleasePin, this module runs the controllers until they have
//! observed the change and have reported the state of the workloads. If another process already runs the
//! controllers, the command only waits; it runs the controllers itself if that process ends first.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::Client;
use kube::api::Api;
use kube::runtime::wait::await_condition;

use tokio::sync::oneshot;

use super::Context;
use super::all::{self, Stop};
use super::lock::Lock;
use crate::api::{ReleasePin, condition, labels};
use crate::connect::{self, Connection, DataPlanes, Environment, Options, Target};
use crate::engine::world::Key;
use crate::resolve::git::Git;

/// The longest wait until the controllers have observed a ReleasePin or finished a cleanup.
const PATIENCE: Duration = Duration::from_secs(30);
/// The longest wait for the first health report of the data planes.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);
/// The longest wait for the controllers while another process runs them.
const MOMENT: Duration = Duration::from_millis(500);
/// How long the running reconciles may take to finish after the stop.
const GRACE: Duration = Duration::from_secs(5);

/// The reasons why controllers cannot run in this process, or did not finish in time.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// Cannot open the store for the controllers.
    #[error(transparent)]
    Connect(#[from] connect::Error),
    /// Cannot use the lock file beside the store.
    #[error(transparent)]
    Lock(#[from] std::io::Error),
    /// Cannot watch the ReleasePins.
    #[error(transparent)]
    Watch(#[from] kube::runtime::wait::Error),
    /// The controllers did not observe the change of a ReleasePin within 30 seconds.
    #[error("no controller has observed the change within {PATIENCE:?}")]
    NotObserved,
}

/// Opens a second connection to an embedded store, for its controllers. It impersonates the controller, so
/// that the audit trail names the controller and not the user of this process.
pub async fn connection(
    options: &Options,
    environment: &Environment,
) -> Result<Connection, BesideError> {
    let own = Options {
        impersonate: Some(labels::MANAGER_CONTROLLER.to_owned()),
        ..options.clone()
    };
    Ok(connect::connect(&own, environment).await?)
}

/// Runs the controllers of an embedded store while a command waits for their work.
pub struct Beside<'a> {
    /// The connection of the command to its target.
    pub connection: &'a Connection,
    pub options: &'a Options,
    pub environment: &'a Environment,
    /// The reader of the definitions that releases name by git reference.
    pub git: &'a Git,
}

impl Beside<'_> {
    /// Waits for `reached` while the controllers of an embedded store run, in this process or in another one.
    /// If the target is not an embedded store or the connection is read-only, only waits for `reached`.
    pub async fn until<T>(&self, reached: impl Future<Output = T>) -> Result<T, BesideError> {
        let file = match &self.connection.target {
            Target::Embedded { file } if self.connection.readonly.is_none() => file,
            _ => return Ok(reached.await),
        };
        let attended = self.attend(file, None, reached).await?;
        Ok(attended.expect("BUG: nobody gives up without a limit"))
    }

    /// Waits until the controllers have observed the given generations of ReleasePins and the data planes
    /// have reported the health. Waits at most half a second if another process runs the controllers. Returns
    /// at once if the target is not an embedded store.
    pub async fn observed(&self, pins: &[(Key, i64)]) -> Result<(), BesideError> {
        let Target::Embedded { file } = &self.connection.target else {
            return Ok(());
        };
        if pins.is_empty() {
            return Ok(());
        }
        let observed = observed(&self.connection.client, pins);
        let attended = self.attend(file, Some(MOMENT), observed).await?;
        attended.unwrap_or(Ok(()))
    }

    /// Waits for `ended`, the end of a cleanup by the controllers; at most half a second if another process
    /// runs the controllers. Returns whether the cleanup has ended. Returns true at once if the target is not
    /// an embedded store.
    pub async fn cleaned(&self, ended: impl Future<Output = ()>) -> Result<bool, BesideError> {
        let Target::Embedded { file } = &self.connection.target else {
            return Ok(true);
        };
        let in_time = tokio::time::timeout(PATIENCE, ended);
        let attended = self.attend(file, Some(MOMENT), in_time).await?;
        Ok(matches!(attended, Some(Ok(()))))
    }

    /// Runs the controllers until `reached` is ready, and returns its value. Returns None if another process
    /// keeps the lock of the store for longer than `patience`. If `patience` is None, waits without a limit.
    async fn attend<T>(
        &self,
        store: &Path,
        patience: Option<Duration>,
        reached: impl Future<Output = T>,
    ) -> Result<Option<T>, BesideError> {
        let (told, stopped) = oneshot::channel::<()>();
        let stop = all::stop(async {
            let _ = stopped.await;
        });
        let (ours, won) = oneshot::channel::<()>();
        let mut running = std::pin::pin!(self.run(store, stop, ours));
        let mut reached = std::pin::pin!(reached);
        let given_up = async {
            match patience {
                None => std::future::pending().await,
                Some(patience) => match tokio::time::timeout(patience, won).await {
                    Err(_elapsed) => {}
                    Ok(_) => std::future::pending().await,
                },
            }
        };
        let reached = tokio::select! {
            reached = &mut reached => Some(reached),
            () = given_up => None,
            ended = &mut running => {
                ended?;
                Some(reached.await)
            }
        };
        drop(told);
        // If this timeout interrupts a reconcile, the next process that runs the controllers repeats the
        // reconcile.
        let _ = tokio::time::timeout(GRACE, running).await;
        Ok(reached)
    }

    /// Waits for the lock of the store, and then runs the controllers until the stop future is ready. Sends a
    /// message through `ours` when this process has the lock.
    async fn run(
        &self,
        store: &Path,
        stop: Stop,
        ours: oneshot::Sender<()>,
    ) -> Result<(), BesideError> {
        let lock = tokio::select! {
            lock = Lock::win(store, || {}) => lock?,
            () = stop.clone() => return Ok(()),
        };
        let _ = ours.send(());
        let own = connection(self.options, self.environment).await?;
        let planes = DataPlanes::of(&own, self.options, self.environment);
        let context = Arc::new(Context::new(
            own.client,
            None,
            Arc::new(Timestamp::now),
            self.git.clone(),
            Arc::default(),
        ));
        all::run(all::all(planes), &context, stop).await;
        drop(lock);
        Ok(())
    }
}

/// Waits until the controllers have observed the given generation of each ReleasePin, and then at most 5
/// seconds more for the first report of the data planes. Skips a deleted ReleasePin.
async fn observed(client: &Client, pins: &[(Key, i64)]) -> Result<(), BesideError> {
    match tokio::time::timeout(PATIENCE, reach(client, pins, is_observed)).await {
        Ok(seen) => seen?,
        Err(_elapsed) => return Err(BesideError::NotObserved),
    }
    // A data plane that does not answer must not delay the command for longer.
    let reported = tokio::time::timeout(REPORT_PATIENCE, reach(client, pins, is_reported));
    reported.await.unwrap_or(Ok(()))
}

/// Waits until `is_reached` is true for the given generation of each ReleasePin. Skips a deleted ReleasePin.
async fn reach(
    client: &Client,
    pins: &[(Key, i64)],
    is_reached: fn(&ReleasePin, i64) -> bool,
) -> Result<(), BesideError> {
    let all = futures::future::try_join_all(pins.iter().map(|(pin, generation)| {
        let pins: Api<ReleasePin> = Api::namespaced(client.clone(), &pin.namespace);
        await_condition(pins, &pin.name, |pin: Option<&ReleasePin>| {
            pin.is_none_or(|pin| is_reached(pin, *generation))
        })
    }));
    all.await.map(|_| ()).map_err(Into::into)
}

/// Returns whether the controllers have observed this generation of a ReleasePin.
fn is_observed(pin: &ReleasePin, generation: i64) -> bool {
    let status = pin.status.as_ref();
    let seen = status.and_then(|status| status.observed_generation);
    seen.is_some_and(|seen| seen >= generation)
}

/// Returns whether the status of an observed ReleasePin contains a report of the data plane, or a failure.
fn is_reported(pin: &ReleasePin, generation: i64) -> bool {
    let conditions = pin
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    let ready = condition::find(conditions.unwrap_or_default(), condition::READY);
    is_observed(pin, generation)
        && ready.is_some_and(|ready| ready.reason != condition::NOT_OBSERVED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_reported_once_the_data_plane_has_answered() {
        for (observed, reason, expected) in [
            (None, None, (false, false)),
            (Some(1), Some("ReconcileSuccess"), (false, false)),
            (Some(2), None, (true, false)),
            (Some(2), Some("NotObserved"), (true, false)),
            (Some(2), Some("Progressing"), (true, true)),
            (Some(2), Some("RenderFailed"), (true, true)),
            (Some(3), Some("ReconcileSuccess"), (true, true)),
        ] {
            let conditions: Vec<_> = reason
                .iter()
                .map(|reason| json!({"type": "Ready", "status": "Unknown", "reason": reason, "message": "", "lastTransitionTime": "2026-01-05T00:00:00Z"}))
                .collect();
            let pin = serde_json::from_value(json!({
                "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin", "metadata": {"name": "cart-dev"},
                "spec": {"component": "cart", "environment": "dev", "releaseRef": {"name": "cart-1"}},
                "status": {"observedGeneration": observed, "conditions": conditions},
            }));
            let pin: ReleasePin = pin.unwrap();
            let found = (is_observed(&pin, 2), is_reported(&pin, 2));
            assert_eq!(found, expected, "{observed:?} {reason:?}");
        }
    }
}
