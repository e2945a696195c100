//! Tests of the leader election on an embedded API. The test sets the clock.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use kube::api::{DeleteParams, ListParams};

use super::*;
use crate::connect::{Deadlines, guard};

const SECONDS: u16 = 2;

async fn client(folder: &Path) -> Client {
    let store = crate::fixture::store::open(&folder.join("store.db"), "ana").await;
    let deadlines = Deadlines::default();
    guard(store, labels::SYSTEM_NAMESPACE, None, deadlines)
}

fn candidate(client: &Client, name: &str) -> (Election, Fence) {
    let (fence, clock) = (Fence::default(), Arc::new(Timestamp::now));
    let election = Election::new(client, name.to_owned(), SECONDS, clock, fence.clone());
    (election, fence)
}

async fn lease(client: &Client) -> LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(client.clone(), labels::SYSTEM_NAMESPACE);
    let lease = leases.get(labels::CONTROLLER_LEASE).await.unwrap();
    lease.spec.unwrap()
}

/// Creates the namespace that contains the lease.
async fn namespace(client: &Client) {
    use k8s_openapi::api::core::v1::Namespace;
    let metadata = ObjectMeta {
        name: Some(labels::SYSTEM_NAMESPACE.to_owned()),
        ..ObjectMeta::default()
    };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = Namespace {
        metadata,
        ..Namespace::default()
    };
    let params = PostParams::default();
    namespaces.create(&params, &namespace).await.unwrap();
}

#[tokio::test]
async fn one_holds_it_and_who_lets_go_is_followed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let client = client(folder.path()).await;
    namespace(&client).await;
    let (first, _) = candidate(&client, "first");
    let held = first.win(|_| {}).await;
    let spec = lease(&client).await;
    assert_eq!(spec.holder_identity.as_deref(), Some("first"));
    assert_eq!(spec.lease_duration_seconds, Some(SECONDS.into()));
    let (second, fence) = candidate(&client, "second");
    let (told, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let waiting = async {
        second
            .win(|seen| {
                let holder = seen.unwrap_or(None).map(str::to_owned);
                told.send(holder).unwrap();
            })
            .await
    };
    let letting_go = async {
        assert_eq!(seen.recv().await.unwrap().as_deref(), Some("first"));
        first.release(held).await;
    };
    let (_held, ()) = tokio::join!(waiting, letting_go);
    assert!(fence.is_open());
    let spec = lease(&client).await;
    assert_eq!(spec.holder_identity.as_deref(), Some("second"));
    assert_eq!(spec.lease_transitions, Some(1));
}

#[tokio::test]
async fn who_dies_is_followed_when_the_lease_is_over_and_not_before() {
    let folder = tempfile::tempdir().unwrap();
    let client = client(folder.path()).await;
    namespace(&client).await;
    let (first, fence) = candidate(&client, "first");
    drop(first.win(|_| {}).await);
    let (second, _) = candidate(&client, "second");
    let won = async {
        second.win(|_| {}).await;
        // The former leader had closed its fence before the second process won.
        !fence.is_open()
    };
    assert!(won.await, "both act");
    assert_eq!(
        lease(&client).await.holder_identity.as_deref(),
        Some("second")
    );
}

#[tokio::test]
async fn a_lease_that_is_renewed_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let client = client(folder.path()).await;
    namespace(&client).await;
    let (first, fence) = candidate(&client, "first");
    let mut held = first.win(|_| {}).await;
    let (second, _) = candidate(&client, "second");
    // The rival reads the lease often enough to notice when it expires.
    let (told, mut looks) = tokio::sync::mpsc::unbounded_channel();
    let rival = second.win(|_| told.send(()).unwrap());
    let enough = async {
        for _ in 0..8 {
            looks.recv().await.unwrap();
        }
    };
    tokio::select! {
        _ = rival => panic!("the rival won"),
        () = first.keep(&mut held) => panic!("it was lost"),
        () = enough => {}
    }
    assert!(fence.is_open());
    assert_eq!(lease(&client).await.lease_transitions, Some(0));
}

#[tokio::test]
async fn a_lease_that_somebody_took_is_lost_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let client = client(folder.path()).await;
    namespace(&client).await;
    let (first, fence) = candidate(&client, "first");
    let mut held = first.win(|_| {}).await;
    let behind = fence.around(&client);
    let leases: Api<Lease> = Api::namespaced(client.clone(), labels::SYSTEM_NAMESPACE);
    let name = labels::CONTROLLER_LEASE;
    leases.delete(name, &DeleteParams::default()).await.unwrap();
    let (second, _) = candidate(&client, "second");
    let _held = second.win(|_| {}).await;
    first.keep(&mut held).await;
    assert!(!fence.is_open());
    // A client behind the closed fence can read, but not write.
    let leases: Api<Lease> = Api::namespaced(behind, labels::SYSTEM_NAMESPACE);
    assert_eq!(
        leases
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    let refused = leases.delete(name, &DeleteParams::default()).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Service(why) if why.is::<super::super::fence::Fenced>()),
        "{refused:?}"
    );
    assert_eq!(
        lease(&client).await.holder_identity.as_deref(),
        Some("second")
    );
}

#[tokio::test(start_paused = true)]
async fn a_write_under_way_is_given_up_when_the_time_is_over() {
    let never = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, kube::Error>>()
    });
    let fence = Fence::default();
    let client = fence.around(&Client::new(never, "default"));
    let leases: Api<Lease> = Api::default_namespaced(client);
    fence.open(Instant::now() + Duration::from_secs(1));
    let begun = Instant::now();
    let params = DeleteParams::default();
    let write = leases.delete("a", &params);
    let renewed = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        fence.open(begun + Duration::from_secs(2));
        std::future::pending::<()>().await;
    };
    let refused = tokio::select! {
        refused = write => refused.unwrap_err(),
        () = renewed => unreachable!("it waits for ever"),
    };
    assert_eq!(begun.elapsed().as_secs(), 2, "{refused}");
}
