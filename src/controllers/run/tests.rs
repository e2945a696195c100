//! Tests of the backoff as a table, and of a failing controller on an embedded API.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::watcher;
use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::connect::{Deadlines, guard};
use crate::resolve::git::{Git, Settings};

#[test]
fn pauses_grow_up_to_a_limit_and_differ() {
    for (failures, longest) in [
        (0, 500),
        (1, 1_000),
        (2, 2_000),
        (9, 256_000),
        (10, 300_000),
        (40, 300_000),
    ] {
        let longest = Duration::from_millis(longest);
        assert_eq!(pause(failures), longest);
        assert_eq!(scattered(longest, 0), longest);
        let shortest = scattered(longest, 1023);
        assert!(shortest < longest && shortest >= longest * 4 / 5);
    }
}

#[derive(Debug, thiserror::Error)]
#[error("it is broken")]
struct Broken;

struct Work {
    told: mpsc::UnboundedSender<String>,
    now: AtomicUsize,
    most: AtomicUsize,
    broken: AtomicUsize,
}

async fn work(object: Arc<ConfigMap>, work: Arc<Work>) -> Result<Action, Broken> {
    let now = work.now.fetch_add(1, Ordering::SeqCst) + 1;
    work.most.fetch_max(now, Ordering::SeqCst);
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    work.now.fetch_sub(1, Ordering::SeqCst);
    let name = object.metadata.name.clone().unwrap_or_default();
    let broken = name == "broken" && work.broken.fetch_sub(1, Ordering::SeqCst) > 1;
    let _ = work.told.send(name);
    match broken {
        true => Err(Broken),
        false => Ok(Action::await_change()),
    }
}

#[tokio::test]
async fn what_fails_comes_again_and_holds_up_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::fixture::store::open(&folder.path().join("store.db"), "ana").await;
    let client = guard(store, "default", None, Deadlines::default());
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let names: Vec<String> = (0..30).map(|n| format!("map-{n}")).collect();
    for name in names.iter().map(String::as_str).chain(["broken"]) {
        let map = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    let base = Arc::new(Context::new(
        client,
        None,
        Arc::new(jiff::Timestamp::now),
        Git::new(Settings::new(folder.path().join("git"))),
        Arc::default(),
    ));
    let (told, mut seen) = mpsc::unbounded_channel();
    let own = Arc::new(Work {
        told,
        now: AtomicUsize::new(0),
        most: AtomicUsize::new(0),
        broken: AtomicUsize::new(3),
    });
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let controller = Controller::new(maps.clone(), watcher::Config::default())
        .graceful_shutdown_on(async {
            let _ = stopped.await;
        });
    let running = run("maps", controller, 4, base.clone(), own.clone(), work);
    let watching = async {
        let mut came: Vec<String> = Vec::new();
        while came.len() < names.len() + 3 {
            came.push(seen.recv().await.unwrap());
        }
        let broken = came.iter().filter(|name| *name == "broken").count();
        assert_eq!(broken, 3, "{came:?}");
        assert!(names.iter().all(|name| came.contains(name)), "{came:?}");
        maps.delete("broken", &DeleteParams::default())
            .await
            .unwrap();
        drop(stop);
    };
    tokio::join!(running, watching);
    assert!(own.most.load(Ordering::SeqCst) <= 4);
    let text = base.metrics.text();
    for line in [
        r#"bowline_reconciles_total{controller="maps",result="success"} 31"#,
        r#"bowline_reconciles_total{controller="maps",result="error"} 2"#,
    ] {
        assert!(text.contains(line), "{text}");
    }
}
