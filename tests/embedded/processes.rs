//! Two processes use one store file. No write is lost, and each process sees the changes by the other one.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Instant, SystemTime};

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};

use super::child::{Other, get_ready, say};
use super::*;

/// Returns the time in microseconds, from a clock that is the same for all processes of the machine.
fn clock() -> u128 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_micros()
}

/// Writes objects, and watches until the objects of all processes have appeared. `arguments` contains the
/// name of this process, the number of its objects, and the number of all objects.
pub async fn share(file: &Path, arguments: &str) {
    let words: Vec<&str> = arguments.split(' ').collect();
    let [who, own, all] = words.as_slice() else {
        panic!("{arguments}")
    };
    let (own, all): (usize, usize) = (own.parse().unwrap(), all.parse().unwrap());
    let client = open(file).await.client("default");
    create_namespace(&client, "shared").await;
    let api: &Api<ConfigMap> = &Api::namespaced(client, "shared");
    let write = async {
        let create = |number: usize| async move {
            let object = config_map(&format!("{who}-{number}"), "x");
            let stored = api.create(&PostParams::default(), &object).await.unwrap();
            say(&format!(
                "wrote {} {}",
                stored.metadata.name.unwrap(),
                clock()
            ));
        };
        stream::iter(0..own).for_each_concurrent(8, create).await;
    };
    let watch = async move {
        let stream = api.watch(&WatchParams::default(), "1").await.unwrap();
        let mut stream = std::pin::pin!(stream);
        for _ in 0..all {
            let event = tokio::time::timeout(HANG, stream.try_next()).await;
            let Some(WatchEvent::Added(object)) = event.expect("the watch hangs").unwrap() else {
                panic!("something else than a new object");
            };
            say(&format!(
                "saw {} {}",
                object.metadata.name.unwrap(),
                clock()
            ));
        }
    };
    tokio::task::spawn_blocking(get_ready).await.unwrap();
    futures::future::join(write, watch).await;
}

#[test]
fn two_processes_lose_nothing_and_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let each = sized(500, 10_000);
    // Both processes create the file at the same time. They begin to write when both are ready.
    let mut others = ["ana", "bob"].map(|who| {
        let arguments = format!("{who} {each} {}", 2 * each);
        (who, Other::start("share", &file, &arguments))
    });
    for (_, other) in &mut others {
        assert_eq!(other.says().unwrap(), ["ready"]);
    }
    let begun = Instant::now();
    others.iter_mut().for_each(|(_, other)| other.go());
    let threads = others.map(|(who, mut other)| {
        std::thread::spawn(move || {
            let (mut wrote, mut saw) = (HashMap::new(), HashMap::new());
            while let Some(words) = other.says() {
                let [what, name, at] = words.as_slice() else {
                    panic!("{words:?}")
                };
                let told = if what == "wrote" {
                    &mut wrote
                } else {
                    &mut saw
                };
                let before = told.insert(name.clone(), at.parse::<i128>().unwrap());
                assert_eq!(before, None, "{who} {what} {name} twice");
            }
            other.ends_well();
            (wrote, saw)
        })
    });
    let [ana, bob] = threads.map(|thread| thread.join().unwrap());
    let seconds = begun.elapsed().as_secs_f64();
    let mut delays = Vec::new();
    for ((wrote, _), (_, saw)) in [(&ana, &bob), (&bob, &ana)] {
        assert_eq!(wrote.len(), each);
        assert_eq!(saw.len(), 2 * each);
        delays.extend(wrote.iter().map(|(name, at)| (saw[name] - at) as f64 / 1e3));
    }
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let client = open(&file).await.client("shared");
        let api: Api<ConfigMap> = Api::default_namespaced(client);
        let list = api.list_metadata(&ListParams::default()).await.unwrap();
        assert_eq!(list.items.len(), 2 * each);
    });
    println!(
        "two processes: {each} objects each in {seconds:.1} s, all there; the other's change is seen after its acknowledgement: median {:.1} ms, 99% {:.1} ms, worst {:.1} ms (both writing as fast as they can)",
        percentile(&mut delays, 0.5),
        percentile(&mut delays, 0.99),
        percentile(&mut delays, 1.0),
    );
}

/// Waits for each object `ping-N` of the other process, and creates `pong-N` as the answer.
pub async fn answer(file: &Path, arguments: &str) {
    let rounds: usize = arguments.parse().unwrap();
    let client = open(file).await.client("default");
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    for round in 0..rounds {
        see(&api, &format!("ping-{round}")).await;
        let pong = config_map(&format!("pong-{round}"), "");
        api.create(&PostParams::default(), &pong).await.unwrap();
    }
}

/// Waits until the object with this name exists.
async fn see(api: &Api<ConfigMap>, name: &str) {
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    let stream = api.watch(&only, "0").await.unwrap();
    let event = tokio::time::timeout(HANG, std::pin::pin!(stream).try_next()).await;
    assert!(matches!(
        event.expect("the watch hangs").unwrap(),
        Some(WatchEvent::Added(_))
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_crosses_to_a_quiet_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let client = open(&file).await.client("default");
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let rounds = sized(10, 100);
    let other = Other::start("answer", &file, &rounds.to_string());
    let mut delays = Vec::new();
    for round in 0..rounds {
        let begun = Instant::now();
        let ping = config_map(&format!("ping-{round}"), "");
        api.create(&PostParams::default(), &ping).await.unwrap();
        see(&api, &format!("pong-{round}")).await;
        // The first round is not measured, because it includes the start of the other process.
        if round > 0 {
            delays.push(begun.elapsed().as_secs_f64() * 1e3 / 2.0);
        }
    }
    tokio::task::spawn_blocking(|| other.ends_well())
        .await
        .unwrap();
    assert_eq!(delays.len(), rounds - 1);
    println!(
        "a change and its sight by another process, write included: median {:.1} ms, worst {:.1} ms",
        percentile(&mut delays, 0.5),
        percentile(&mut delays, 1.0),
    );
}
