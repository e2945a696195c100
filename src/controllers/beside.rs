//! The controllers in this process, beside an embedded store that nobody else looks after.
//!
//! A command that moved a pin there runs them until the pin has been observed. Where another process runs
//! them already it only waits, and takes over should that one end before.

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
use crate::api::{ReleasePin, labels};
use crate::connect::{self, Connection, DataPlanes, Environment, Options, Target};
use crate::engine::world::Key;
use crate::resolve::git::Git;

/// How long a pin may take to be observed.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long that is waited for where another process runs the controllers.
const MOMENT: Duration = Duration::from_millis(500);
/// How long what is under way may go on afterwards.
const GRACE: Duration = Duration::from_secs(5);

/// Why controllers do not run here, or have not done what was waited for.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// The store cannot be opened for them.
    #[error(transparent)]
    Connect(#[from] connect::Error),
    /// The lock beside the store cannot be had.
    #[error(transparent)]
    Lock(#[from] std::io::Error),
    /// The pins cannot be watched.
    #[error(transparent)]
    Watch(#[from] kube::runtime::wait::Error),
    /// They take too long.
    #[error("no controller has observed the change within {PATIENCE:?}")]
    NotObserved,
}

/// Returns the connection that controllers beside a store use: to an audit trail they are not its user.
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

/// The controllers of an embedded store, for those who wait for what they do.
pub struct Beside<'a> {
    /// The connection of who waits.
    pub connection: &'a Connection,
    /// What the flags say.
    pub options: &'a Options,
    /// What the surroundings say.
    pub environment: &'a Environment,
    /// Who reads git references.
    pub git: &'a Git,
}

impl Beside<'_> {
    /// Waits for something. Where the target is an embedded store the controllers run meanwhile: in this
    /// process, unless another does it.
    pub async fn until<T>(&self, reached: impl Future<Output = T>) -> Result<T, BesideError> {
        let file = match &self.connection.target {
            Target::Embedded { file } if self.connection.readonly.is_none() => file,
            _ => return Ok(reached.await),
        };
        let attended = self.attend(file, None, reached).await?;
        Ok(attended.expect("BUG: nobody gives up without a limit"))
    }

    /// Waits until controllers have observed pins, where the target is an embedded store; where another
    /// process runs them, for a moment only.
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

    /// Waits until a cleanup of the controllers has ended, if the target is an embedded store; if another
    /// process runs them, for a moment only. Tells whether the cleanup has ended.
    pub async fn cleaned(&self, ended: impl Future<Output = ()>) -> Result<bool, BesideError> {
        let Target::Embedded { file } = &self.connection.target else {
            return Ok(true);
        };
        let in_time = tokio::time::timeout(PATIENCE, ended);
        let attended = self.attend(file, Some(MOMENT), in_time).await?;
        Ok(matches!(attended, Some(Ok(()))))
    }

    /// Runs the controllers until something is reached, or another process has them and the time is up.
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
        // What is cut off here is done by whoever runs them next.
        let _ = tokio::time::timeout(GRACE, running).await;
        Ok(reached)
    }

    /// Runs the controllers until told to stop, once no other process does; says when that is.
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

/// Waits until each of these generations of pins has been observed, or the pin is gone.
async fn observed(client: &Client, pins: &[(Key, i64)]) -> Result<(), BesideError> {
    let all = futures::future::try_join_all(pins.iter().map(|(pin, generation)| {
        let pins: Api<ReleasePin> = Api::namespaced(client.clone(), &pin.namespace);
        await_condition(pins, &pin.name, |pin: Option<&ReleasePin>| {
            pin.is_none_or(|pin| {
                let status = pin.status.as_ref();
                let seen = status.and_then(|status| status.observed_generation);
                seen.is_some_and(|seen| seen >= *generation)
            })
        })
    }));
    match tokio::time::timeout(PATIENCE, all).await {
        Ok(seen) => seen.map(|_| ()).map_err(Into::into),
        Err(_elapsed) => Err(BesideError::NotObserved),
    }
}
