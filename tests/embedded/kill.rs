//! Kills a process (kill -9) at random times while it writes to a store. The store must keep all acknowledged
//! writes, and watches must continue without a gap.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams, WatchEvent, WatchParams};
use kube_embedded::sqlite::Store;

use super::child::{Other, say};
use super::*;

const WORKERS: u64 = 4;

/// Writes a thousand objects in the namespace `arguments`. Reports each object after the store has
/// acknowledged its write.
pub async fn write(file: &Path, arguments: &str) {
    let client = open(file).await.client("default");
    create_namespace(&client, arguments).await;
    let api: &Api<ConfigMap> = &Api::namespaced(client, arguments);
    let worker = |worker: u64| async move {
        let mut hot: Option<ConfigMap> = None;
        for number in 0..1000 / WORKERS {
            // Every third write replaces an existing object instead of creating one.
            let hot_turn = number % 3 == 0;
            let stored = match hot.take() {
                Some(mut object) if hot_turn => {
                    object
                        .data
                        .get_or_insert_default()
                        .insert("n".into(), number.to_string());
                    let name = object.metadata.name.clone().unwrap();
                    api.replace(&name, &PostParams::default(), &object)
                        .await
                        .unwrap()
                }
                kept => {
                    hot = kept;
                    let object = config_map(&format!("w{worker}-{number}"), "x");
                    api.create(&PostParams::default(), &object).await.unwrap()
                }
            };
            let name = stored.metadata.name.clone().unwrap();
            say(&format!("{name} {}", revision(&stored.metadata)));
            if hot_turn {
                hot = Some(stored);
            }
        }
    };
    stream::iter(0..WORKERS)
        .for_each_concurrent(None, worker)
        .await;
}

/// Creates the object `mark`. Returns all watch events from the revision `since` to the event of that object.
async fn seen_since(client: &kube::Client, since: u64, mark: &str) -> Vec<(u64, String)> {
    let all: Api<ConfigMap> = Api::all(client.clone());
    let here: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let end = here
        .create(&PostParams::default(), &config_map(mark, ""))
        .await
        .unwrap();
    let end = revision(&end.metadata);
    let stream = all
        .watch(&WatchParams::default(), &since.to_string())
        .await
        .unwrap();
    let mut stream = std::pin::pin!(stream);
    let mut seen = Vec::new();
    loop {
        let event = tokio::time::timeout(HANG, stream.try_next()).await;
        let object = match event.expect("the watch hangs").unwrap() {
            Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => object,
            other => panic!("the watch from {since} gave {other:?}"),
        };
        let revision = revision(&object.metadata);
        if revision >= end {
            assert_eq!(revision, end);
            return seen;
        }
        seen.push((revision, object.metadata.name.unwrap()));
    }
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let kills = sized(5, 50);
    let mut dice = Dice(0x5eed_0003);
    let mut runtime = tokio::runtime::Runtime::new().unwrap();
    let mut since = runtime.block_on(async {
        let client = open(&file).await.client("default");
        let api: Api<ConfigMap> = Api::all(client);
        let list = api.list(&ListParams::default()).await.unwrap();
        list.metadata.resource_version.unwrap().parse().unwrap()
    });
    let (mut bare, mut whole) = (Vec::new(), Vec::new());
    let (mut acknowledged, mut unanswered) = (0, 0);
    for kill in 0..kills {
        // Closes the file in this process, so that no other process uses it besides the one that is killed.
        drop(std::mem::replace(
            &mut runtime,
            tokio::runtime::Runtime::new().unwrap(),
        ));
        let namespace = format!("round-{kill}");
        let mut other = Other::start("write", &file, &namespace);
        let wanted = 1 + dice.roll(990) as usize;
        let mut said: Vec<(u64, String)> = Vec::new();
        let mut read = |said: &mut Vec<(u64, String)>| {
            let Some(words) = other.says() else {
                return false;
            };
            said.push((words[1].parse().unwrap(), words[0].clone()));
            true
        };
        while said.len() < wanted && read(&mut said) {}
        assert_eq!(said.len(), wanted, "it ended early");
        other.kill();
        // The writes in the remaining messages were also acknowledged before the kill.
        while let Some(words) = other.says() {
            if let [name, revision] = words.as_slice() {
                said.push((revision.parse().unwrap(), name.clone()));
            }
        }
        said.sort();
        acknowledged += said.len();

        let begun = Instant::now();
        let store = Store::open(&file).unwrap();
        bare.push(begun.elapsed().as_secs_f64() * 1e3);
        runtime.block_on(async {
            let client = open(&file).await.client("default");
            whole.push(begun.elapsed().as_secs_f64() * 1e3);
            let here: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
            let list = here.list(&ListParams::default()).await.unwrap();
            let there: BTreeMap<String, u64> = list
                .items
                .iter()
                .map(|object| {
                    (
                        object.metadata.name.clone().unwrap(),
                        revision(&object.metadata),
                    )
                })
                .collect();
            for (revision, name) in &said {
                assert!(
                    there.get(name).is_some_and(|found| found >= revision),
                    "{name} is lost"
                );
            }
            let seen = seen_since(&client, since, &format!("mark-{kill}")).await;
            assert!(
                seen.windows(2).all(|two| two[0].0 < two[1].0),
                "doubled or out of order"
            );
            for one in &said {
                assert!(seen.contains(one), "the watch missed {one:?}");
            }
            for (name, revision) in &there {
                assert!(
                    seen.contains(&(*revision, name.clone())),
                    "the watch missed {name}"
                );
            }
            unanswered += seen.len() - said.len();
            // A watch from the middle continues as well, as for a client that saw half of the events before
            // the crash.
            let (middle, _) = said[said.len() / 2];
            let rest = seen_since(&client, middle, &format!("middle-{kill}")).await;
            let expected: Vec<_> = seen.iter().filter(|(r, _)| *r > middle).cloned().collect();
            assert_eq!(rest[..expected.len()], expected[..]);
            assert_eq!(
                rest.len(),
                expected.len() + 1,
                "only the first mark comes after"
            );
            let list = here.list(&ListParams::default()).await.unwrap();
            since = list.metadata.resource_version.unwrap().parse().unwrap();
        });
        drop(store);
    }
    println!(
        "kill -9: {kills} times, {acknowledged} acknowledged writes, all there; {unanswered} more were stored and not yet acknowledged"
    );
    println!(
        "open after kill -9: store median {:.1} ms, worst {:.1} ms; whole API median {:.1} ms, worst {:.1} ms",
        percentile(&mut bare, 0.5),
        percentile(&mut bare, 1.0),
        percentile(&mut whole, 0.5),
        percentile(&mut whole, 1.0),
    );
}
