//! Finds out whether a controller runs for the target. Without a controller, the health in the status of objects may
//! be out of date.
//!
//! In a cluster, a running controller renews a Lease. For an embedded store, a running controller locks a file. The
//! operating system unlocks the file when the process ends.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Client;
use kube::api::Api;

use crate::api::labels;
use crate::connect::{Connection, Target};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControllerStatus {
    Runs,
    /// No controller runs for the target. Contains the reason, as text for the user.
    Absent(String),
    /// The server does not let the user read the Lease, so bowline cannot find out whether a controller runs.
    Unknown,
}

/// Returns whether a controller runs for the target of a connection. `now` is the current time by the server's clock.
pub async fn controller(
    connection: &Connection,
    now: Timestamp,
) -> Result<ControllerStatus, kube::Error> {
    match &connection.target {
        Target::Embedded { file } => Ok(beside(file)),
        Target::Repository { .. } => {
            let repository = connection.repository.as_ref();
            match repository.and_then(|repository| repository.beside.as_ref()) {
                Some(cluster) => in_cluster(cluster, now).await,
                None => Ok(ControllerStatus::Absent(
                    "a repository has no controller; add --context NAME to name the cluster of this repository"
                        .to_owned(),
                )),
            }
        }
        _ => in_cluster(&connection.client, now).await,
    }
}

async fn in_cluster(client: &Client, now: Timestamp) -> Result<ControllerStatus, kube::Error> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), labels::SYSTEM_NAMESPACE);
    match leases.get_opt(labels::CONTROLLER_LEASE).await {
        Ok(Some(lease)) => Ok(of_lease(&lease.spec.unwrap_or_default(), now)),
        Ok(None) => Ok(ControllerStatus::Absent(
            "no controller has ever run".to_owned(),
        )),
        Err(kube::Error::Api(status)) if status.code == 403 => Ok(ControllerStatus::Unknown),
        Err(error) => Err(error),
    }
}

fn of_lease(lease: &LeaseSpec, now: Timestamp) -> ControllerStatus {
    let holder = lease.holder_identity.as_deref().unwrap_or_default();
    let Some(renewed) = lease.renew_time.as_ref().filter(|_| !holder.is_empty()) else {
        return ControllerStatus::Absent("the last controller stopped".to_owned());
    };
    let lasts = SignedDuration::from_secs(lease.lease_duration_seconds.unwrap_or_default().into());
    match now.duration_since(renewed.0) > lasts {
        true => ControllerStatus::Absent(format!("{holder} was last seen at {:.0}", renewed.0)),
        false => ControllerStatus::Runs,
    }
}

/// Returns the path of the lock file for the controllers of an embedded store.
pub fn lock_file(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push("-controllers");
    name.into()
}

fn beside(store: &Path) -> ControllerStatus {
    let held = File::open(lock_file(store)).map(|file| file.try_lock_shared());
    match held {
        Ok(Err(TryLockError::WouldBlock)) => ControllerStatus::Runs,
        _ => ControllerStatus::Absent("no process runs the controllers of this store".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_controller_that_does_not_renew_its_lease_does_not_run() {
        let now: Timestamp = "2026-01-06T12:00:00Z".parse().unwrap();
        let renewed = |at: &str| json!({"holderIdentity": "pod-1", "leaseDurationSeconds": 15, "renewTime": at});
        for (lease, expected) in [
            (
                json!({}),
                ControllerStatus::Absent("the last controller stopped".to_owned()),
            ),
            (
                renewed("2026-01-06T11:59:50.000000Z"),
                ControllerStatus::Runs,
            ),
            (
                renewed("2026-01-06T12:00:30.000000Z"),
                ControllerStatus::Runs,
            ),
            (
                renewed("2026-01-06T11:59:40.000000Z"),
                ControllerStatus::Absent("pod-1 was last seen at 2026-01-06T11:59:40Z".to_owned()),
            ),
            (
                json!({"holderIdentity": "", "leaseDurationSeconds": 15, "renewTime": "2026-01-06T12:00:00.000000Z"}),
                ControllerStatus::Absent("the last controller stopped".to_owned()),
            ),
        ] {
            let read: LeaseSpec = serde_json::from_value(lease.clone()).unwrap();
            assert_eq!(of_lease(&read, now), expected, "{lease}");
        }
    }

    #[test]
    fn a_controller_runs_while_a_process_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("store.db");
        // The message suggests no command. `bowline controller` without the store would start controllers for the
        // cluster of the kubeconfig.
        assert_eq!(
            beside(&store),
            ControllerStatus::Absent("no process runs the controllers of this store".to_owned())
        );
        let lock = File::create(lock_file(&store)).unwrap();
        assert_ne!(beside(&store), ControllerStatus::Runs);
        lock.lock().unwrap();
        assert_eq!(beside(&store), ControllerStatus::Runs);
        drop(lock);
        assert_ne!(beside(&store), ControllerStatus::Runs);
    }
}
