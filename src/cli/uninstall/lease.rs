//! Holds the Lease of the controller during `bowline uninstall`, so that no controller can run at that time.

use std::cell::RefCell;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::Client;
use kube::api::{Api, DeleteParams};
use tokio::sync::{oneshot, watch};
use tokio::time::{Duration, Instant};

use crate::api::labels;
use crate::controllers::all;
use crate::controllers::fence::Fence;
use crate::controllers::lease::Election;
use crate::error::{Error, Exit};

/// The duration of the Lease in seconds while `uninstall` holds it.
const SECONDS: u16 = 15;
/// How long `uninstall` waits silently for a controller to end. After that, it prints a message and continues to
/// wait.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause between two reads of the Lease.
const LOOK: Duration = Duration::from_millis(200);

fn leases(client: &Client) -> Api<Lease> {
    Api::namespaced(client.clone(), labels::SYSTEM_NAMESPACE)
}

/// Runs `work` with a client that can write only as long as this process holds the Lease. First waits until the
/// controller has released the Lease; fails if this has not happened at `end`.
pub async fn hold<T>(
    client: &Client,
    end: Instant,
    say: &mut dyn FnMut(String),
    work: impl AsyncFnOnce(Client) -> Result<T, Error>,
) -> Result<T, Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let system = namespaces
        .get_metadata_opt(labels::SYSTEM_NAMESPACE)
        .await?;
    if system.is_none() {
        // If the namespace of the Lease does not exist, no controller runs, so no Lease is needed.
        return work(client.clone()).await;
    }
    let fence = Fence::default();
    let identity = format!("bowline-uninstall_{}", uuid::Uuid::new_v4());
    let clock = Arc::new(Timestamp::now);
    let election = Election::new(client, identity, SECONDS, clock, fence.clone());
    let (told, mut terms) = watch::channel(None);
    let (done, over) = oneshot::channel::<()>();
    let stop = all::stop(async {
        let _ = over.await;
    });
    let holder = RefCell::new(Ok(None));
    let seen = |seen: Result<Option<&str>, &kube::Error>| {
        *holder.borrow_mut() = seen
            .map(|name| name.map(str::to_owned))
            .map_err(|error| unread(Error::from(error)));
    };
    let working = async {
        let won = async {
            let mut is_told = false;
            while terms.borrow_and_update().is_none() {
                let changed = tokio::time::timeout(PATIENCE, terms.changed()).await;
                if changed.is_err() && !std::mem::replace(&mut is_told, true) {
                    say("waiting until the controller releases its Lease".to_owned());
                }
            }
        };
        let result = match tokio::time::timeout_at(end, won).await {
            Ok(()) => work(fence.around(client)).await,
            Err(_elapsed) => match holder.replace(Ok(None)) {
                Ok(name) => Err(not_released(name.as_deref())),
                Err(error) => Err(error),
            },
        };
        drop(done);
        result
    };
    let ((), result) = futures::join!(election.take_part(&told, seen, stop), working);
    result
}

fn unread(error: Error) -> Error {
    let message = format!(
        "cannot acquire the Lease {} in the namespace {}: {}",
        labels::CONTROLLER_LEASE,
        labels::SYSTEM_NAMESPACE,
        error.message
    );
    Error::new(error.exit, message).with_hint("no finalizer was removed; repeat: bowline uninstall")
}

fn not_released(holder: Option<&str>) -> Error {
    let message = format!(
        "{} has not released the Lease {} in the namespace {}: as long as it runs, it would set the finalizers again",
        holder.unwrap_or("an unknown process"),
        labels::CONTROLLER_LEASE,
        labels::SYSTEM_NAMESPACE
    );
    Error::new(Exit::Refused, message)
        .with_hint("no finalizer was removed; stop that process, then repeat: bowline uninstall")
        .and_hint("or, if it is dead, wait until its Lease ends: --timeout 10m")
}

/// Deletes the Lease if no controller holds it. Otherwise prints the name of the controller.
pub async fn delete(client: &Client, say: &mut dyn FnMut(String)) -> Result<(), Error> {
    let leases = leases(client);
    let Some(lease) = leases.get_opt(labels::CONTROLLER_LEASE).await? else {
        return Ok(());
    };
    if let Some(holder) = holder(&lease) {
        say(format!(
            "the controller {holder} holds the Lease {}, so the Lease stays; stop this controller if it does not stop by itself",
            labels::CONTROLLER_LEASE
        ));
        return Ok(());
    }
    let unchanged = DeleteParams {
        preconditions: Some(kube::api::Preconditions {
            uid: lease.metadata.uid,
            resource_version: lease.metadata.resource_version,
        }),
        ..DeleteParams::default()
    };
    match leases.delete(labels::CONTROLLER_LEASE, &unchanged).await {
        Ok(_) => Ok(()),
        // Either the Lease is already deleted, or a controller has taken it since. In both cases there is nothing to
        // delete.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref();
    holder.filter(|holder| !holder.is_empty())
}

/// Whether a controller runs, as far as the Lease shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewal {
    /// A controller renews the Lease, so a controller runs.
    Renewed,
    /// Nobody holds the Lease, or the holder did not renew it in time. So no controller runs.
    Absent,
    /// It is unknown whether a controller runs: the holder has neither renewed nor released the Lease, and the Lease
    /// is still valid. Contains the name of the holder.
    Waiting(String),
}

/// Finds out whether a controller runs. For this, waits until the Lease is renewed or expires, but at most until
/// `end`.
pub async fn renewal(
    client: &Client,
    end: Instant,
    say: &mut dyn FnMut(String),
) -> Result<Renewal, Error> {
    let leases = leases(client);
    let begin = Instant::now();
    let mut is_told = false;
    let mut first: Option<(Option<String>, Instant)> = None;
    loop {
        let Some(lease) = leases.get_opt(labels::CONTROLLER_LEASE).await? else {
            return Ok(Renewal::Absent);
        };
        let Some(holder) = holder(&lease).map(str::to_owned) else {
            return Ok(Renewal::Absent);
        };
        let spec = lease.spec.unwrap_or_default();
        let seconds = spec.lease_duration_seconds.unwrap_or_default().max(1);
        let version = lease.metadata.resource_version;
        let now = Instant::now();
        match &first {
            None => {
                let lasts = Duration::from_secs(seconds.unsigned_abs().into());
                first = Some((version, now + lasts));
            }
            Some((seen, _)) if *seen != version => return Ok(Renewal::Renewed),
            Some((_, over)) if now > *over => return Ok(Renewal::Absent),
            Some(_) if now >= end => return Ok(Renewal::Waiting(holder)),
            Some(_) => {}
        }
        if now >= begin + PATIENCE && !std::mem::replace(&mut is_told, true) {
            say(format!(
                "waiting until the controller {holder} renews its Lease, or the Lease ends after {seconds} s"
            ));
        }
        tokio::time::sleep(LOOK).await;
    }
}

#[cfg(test)]
mod tests;
