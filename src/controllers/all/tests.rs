//! Tests that a controller starts when the server has its kinds, restarts after an early end, and stops.

use std::sync::atomic::{AtomicUsize, Ordering};

use kube::CustomResourceExt;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::wait::await_condition;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::connect::{Deadlines, guard};
use crate::resolve::git::{Git, Settings};

async fn context(folder: &tempfile::TempDir) -> Arc<Context> {
    let store = crate::fixture::store::open(&folder.path().join("store.db"), "ana").await;
    Arc::new(Context::new(
        guard(store, "default", None, Deadlines::default()),
        None,
        Arc::new(jiff::Timestamp::now),
        Git::new(Settings::new(folder.path().join("git"))),
        Arc::default(),
    ))
}

#[tokio::test]
async fn a_controller_begins_when_the_server_has_its_kinds() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(&folder).await;
    let kinds: Api<CustomResourceDefinition> = Api::all(context.client.clone());
    let now = DeleteParams::default();
    let name = DataPlane::crd_name();
    kinds.delete(name, &now).await.unwrap();
    let gone = await_condition(kinds.clone(), name, |kind: Option<&_>| kind.is_none());
    gone.await.unwrap();
    let absent = missing(&context.client).await;
    let absent: Vec<&str> = absent.iter().map(|kind| kind.kind.as_str()).collect();
    assert_eq!(absent, ["DataPlane"]);

    let (told, mut begun) = mpsc::unbounded_channel();
    let telling = |name: &'static str| {
        let told = told.clone();
        Loop::new(name, move |_, stop: Stop| {
            told.send(name).unwrap();
            stop
        })
    };
    let loops = vec![
        telling("waits").needing::<DataPlane>(),
        telling("has all").needing::<Environment>(),
    ];
    let (stopping, stopped) = oneshot::channel::<()>();
    let stop = stop(async {
        let _ = stopped.await;
    });
    let running = run(loops, &context, stop);
    let watching = async {
        assert_eq!(begun.recv().await, Some("has all"));
        let post = PostParams::default();
        kinds.create(&post, &DataPlane::crd()).await.unwrap();
        assert_eq!(begun.recv().await, Some("waits"));
        drop(stopping);
    };
    tokio::join!(running, watching);
}

#[tokio::test]
async fn a_controller_that_ends_is_started_again_until_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(&folder).await;
    let (told, mut runs) = mpsc::unbounded_channel();
    let times = Arc::new(AtomicUsize::new(0));
    let restless = Loop::new("restless", move |_, stop: Stop| {
        let (told, time) = (told.clone(), times.fetch_add(1, Ordering::SeqCst));
        async move {
            told.send(time).unwrap();
            match time {
                0 => panic!("a fault"),
                1 => {}
                _ => stop.await,
            }
        }
    });
    let (stopping, stopped) = oneshot::channel::<()>();
    let stop = stop(async {
        let _ = stopped.await;
    });
    tokio::time::pause();
    let running = run(vec![restless], &context, stop);
    let watching = async {
        for expected in 0..3 {
            assert_eq!(runs.recv().await, Some(expected));
        }
        drop(stopping);
    };
    tokio::join!(running, watching);
    let text = context.metrics.text();
    let line = r#"bowline_controller_restarts_total{controller="restless"} 2"#;
    assert!(text.contains(line), "{text}");
}
