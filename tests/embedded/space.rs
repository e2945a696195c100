//! Tests that the store file stays small despite open readers and many overwrites, and that compaction
//! shrinks the history.

use std::time::Instant;

use bytes::Bytes;
use futures::{FutureExt, TryStreamExt};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;

use super::*;

/// How many bytes the store files may have in addition to the objects. They contain the write-ahead log, a
/// short history, and pages that are not freed yet.
const SLACK: u64 = 28 << 20;

async fn get(api: &Embedded, path: &str) -> http::Response<kube_embedded::Body> {
    let request = http::Request::get(path).body(Bytes::new()).unwrap();
    api.call(request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_left_open_do_not_make_the_file_grow() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let embedded = open(&file).await;
    let api: Api<ConfigMap> = Api::default_namespaced(embedded.client("default"));
    let body = "x".repeat(100_000);
    let mut objects = Vec::new();
    for number in 0..60 {
        let object = config_map(&format!("n{number}"), &body);
        objects.push(api.create(&PostParams::default(), &object).await.unwrap());
    }
    let path = "/api/v1/namespaces/default/configmaps";
    let since = revision(&objects[0].metadata);
    let unread = get(
        &embedded,
        &format!("{path}?watch=true&resourceVersion={since}"),
    )
    .await;
    let mut half_read = get(&embedded, path).await.into_body();
    let piece = half_read
        .frame()
        .await
        .unwrap()
        .unwrap()
        .into_data()
        .unwrap();
    assert!(piece.len() < 60 * 100_000, "a long list comes in pieces");

    let (least, least_bytes) = sized((0, 40 << 20), (60, 0));
    let (begun, mut written, mut largest) = (Instant::now(), 0u64, 0);
    'writing: loop {
        for object in &mut objects {
            let name = object.metadata.name.clone().unwrap();
            object
                .data
                .get_or_insert_default()
                .insert("n".into(), written.to_string());
            *object = api
                .replace(&name, &PostParams::default(), object)
                .await
                .unwrap();
            written += 100_000;
            largest = largest.max(bytes_on_disk(&file));
            if begun.elapsed().as_secs() >= least && written >= least_bytes {
                break 'writing;
            }
        }
    }
    let (live, _) = embedded.store().sizes().await.unwrap();
    println!(
        "readers left open for {:.0} s: {} MB written, {:.1} MB live, file and log at most {:.1} MB",
        begun.elapsed().as_secs_f64(),
        written >> 20,
        live as f64 / 1e6,
        largest as f64 / 1e6,
    );
    assert!(largest <= 2 * live + SLACK, "{largest} for {live}");

    // Both slow readers get an error instead of wrong data: the watch reports 410, and the list ends with an
    // error.
    let mut watch = unread.into_body();
    let mut told = String::new();
    while let Some(frame) = tokio::time::timeout(HANG, watch.frame()).await.unwrap() {
        told.push_str(std::str::from_utf8(frame.unwrap().data_ref().unwrap()).unwrap());
    }
    let last: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["type"], &last["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
    assert!(half_read.collect().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_deleted_goes_back_to_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let embedded = open(&file).await;
    let api: Api<ConfigMap> = Api::default_namespaced(embedded.client("default"));
    let body = "x".repeat(100_000);
    let count = sized(300, 3000);
    for number in 0..count {
        let object = config_map(&format!("n{number}"), &body);
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let full = bytes_on_disk(&file);
    assert!(full >= count * 100_000);
    for number in 0..count {
        api.delete(&format!("n{number}"), &DeleteParams::default())
            .await
            .unwrap();
    }
    let before = bytes_on_disk(&file);
    embedded.store().compact().await.unwrap();
    let after = bytes_on_disk(&file);
    let (live, dead) = embedded.store().sizes().await.unwrap();
    println!(
        "deleted {} MB: files of {:.1} MB, {:.1} MB before and {:.1} MB after the last compaction, {:.1} MB live",
        count / 10,
        full as f64 / 1e6,
        before as f64 / 1e6,
        after as f64 / 1e6,
        live as f64 / 1e6,
    );
    assert_eq!(dead, 0);
    assert!(before <= 2 * live + SLACK, "{before} for {live}");
    assert!(after <= 2 * live + (4 << 20), "{after} for {live}");
}

#[tokio::test]
async fn what_is_compacted_is_gone_with_410() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = open(&folder.path().join("store.db")).await;
    let api: Api<ConfigMap> = Api::default_namespaced(embedded.client("default"));
    for number in 0..6 {
        let object = config_map(&format!("n{number}"), "");
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    let first = api.list(&ListParams::default().limit(2)).await.unwrap();
    let old = first.metadata.resource_version.clone().unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    // A watch that has seen all events continues after a compaction.
    let stream = api.watch(&WatchParams::default(), &old).await.unwrap();
    let mut current = std::pin::pin!(stream);
    assert!(current.try_next().now_or_never().is_none());
    api.delete("n5", &DeleteParams::default()).await.unwrap();
    let event = current.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Deleted(_))));

    let page = api
        .list(&ListParams::default().limit(2).continue_token(&token))
        .await
        .unwrap();
    assert_eq!(page.items.len(), 2);
    embedded.store().compact().await.unwrap();
    let page = api
        .list(&ListParams::default().limit(2).continue_token(&token))
        .await;
    let Err(kube::Error::Api(status)) = page else {
        panic!("{page:?}")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
    let stream = api.watch(&WatchParams::default(), &old).await.unwrap();
    let event = std::pin::pin!(stream).try_next().await.unwrap();
    let Some(WatchEvent::Error(status)) = event else {
        panic!("{event:?}")
    };
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));

    let object = config_map("after", "");
    api.create(&PostParams::default(), &object).await.unwrap();
    let event = current.try_next().await.unwrap();
    assert!(matches!(event, Some(WatchEvent::Added(_))), "{event:?}");
}

#[tokio::test]
async fn a_watch_finds_its_own_behind_many_others() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = open(&folder.path().join("store.db")).await;
    let api: Api<ConfigMap> = Api::default_namespaced(embedded.client("default"));
    let since = api.list(&ListParams::default()).await.unwrap();
    let since = since.metadata.resource_version.unwrap();
    let others = (0..600).map(|number| {
        let (api, object) = (api.clone(), config_map(&format!("n{number}"), ""));
        async move { api.create(&PostParams::default(), &object).await }
    });
    futures::future::try_join_all(others).await.unwrap();
    let own = config_map("own", "");
    api.create(&PostParams::default(), &own).await.unwrap();
    let only = WatchParams::default().fields("metadata.name=own");
    let stream = api.watch(&only, &since).await.unwrap();
    let event = tokio::time::timeout(HANG, std::pin::pin!(stream).try_next()).await;
    let event = event
        .expect("the watch waits for news that are old")
        .unwrap();
    assert!(
        matches!(event, Some(WatchEvent::Added(object)) if object.metadata.name.as_deref() == Some("own"))
    );
}
