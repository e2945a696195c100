//! Tests of `bowline uninstall` with the Lease of a controller, on an embedded API.

use kube::api::{ObjectMeta, PostParams};

use super::*;
use crate::connect::{Deadlines, guard};

/// Returns a client of a test store in which a controller holds the Lease. `seconds` is the duration of the Lease.
async fn held(folder: &std::path::Path, seconds: i32) -> Client {
    let store = crate::fixture::store::open(&folder.join("store.db"), "ana").await;
    let client = guard(store, labels::SYSTEM_NAMESPACE, None, Deadlines::default());
    let metadata = |name: &str| ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    };
    let namespace = Namespace {
        metadata: metadata(labels::SYSTEM_NAMESPACE),
        ..Namespace::default()
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let params = PostParams::default();
    namespaces.create(&params, &namespace).await.unwrap();
    let mut lease = Lease {
        metadata: metadata(labels::CONTROLLER_LEASE),
        ..Lease::default()
    };
    let spec = lease.spec.get_or_insert_default();
    spec.holder_identity = Some("pod-1".to_owned());
    spec.lease_duration_seconds = Some(seconds);
    leases(&client).create(&params, &lease).await.unwrap();
    client
}

#[tokio::test]
async fn the_lease_of_a_dead_controller_is_awaited_until_the_timeout_and_announced() {
    let folder = tempfile::tempdir().unwrap();
    let client = held(folder.path(), 3600).await;
    let mut said = Vec::new();
    let begin = Instant::now();
    let end = begin + Duration::from_secs(3);
    let found = renewal(&client, end, &mut |line| said.push(line)).await;
    assert_eq!(found.unwrap(), Renewal::Waiting("pod-1".to_owned()));
    assert!(begin.elapsed() < Duration::from_secs(30));
    assert_eq!(
        said,
        ["waiting until the controller pod-1 renews its Lease, or the Lease ends after 3600 s"]
    );
}

#[tokio::test]
async fn a_lease_that_is_not_renewed_within_its_duration_has_no_controller() {
    let folder = tempfile::tempdir().unwrap();
    let client = held(folder.path(), 1).await;
    let end = Instant::now() + Duration::from_secs(60);
    let found = renewal(&client, end, &mut |_| {}).await;
    assert_eq!(found.unwrap(), Renewal::Absent);
}
