//! A process deletes an owner, and crashes before the dependents are deleted. The next process must delete
//! the dependents.

use std::path::Path;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube_embedded::sqlite::{Expect, Follow, FollowUp, Key, Put, Remove, Store, Write};

use super::child::{Other, say};
use super::*;

fn key(resource: &str, namespace: &str, name: &str) -> Key {
    Key {
        resource: resource.into(),
        namespace: namespace.into(),
        name: name.into(),
    }
}

/// Creates an owner with dependents. Returns the uid of the owner.
async fn family(api: &Api<ConfigMap>, owner: &str, dependents: usize) -> String {
    let stored = api
        .create(&PostParams::default(), &config_map(owner, ""))
        .await
        .unwrap();
    let uid = stored.metadata.uid.unwrap();
    for number in 0..dependents {
        let mut child = config_map(&format!("{owner}-{number}"), "");
        child.metadata.owner_references = Some(vec![OwnerReference {
            api_version: "v1".into(),
            kind: "ConfigMap".into(),
            name: owner.into(),
            uid: uid.clone(),
            ..OwnerReference::default()
        }]);
        api.create(&PostParams::default(), &child).await.unwrap();
    }
    uid
}

/// Waits until no object has a name for which `doomed` is true.
async fn gone<K>(api: &Api<K>, doomed: impl Fn(&str) -> bool)
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let list = api.list_metadata(&ListParams::default()).await.unwrap();
    let since = list.metadata.resource_version.unwrap();
    let name = |meta: &ObjectMeta| meta.name.clone().unwrap();
    let mut left: std::collections::BTreeSet<String> = list
        .items
        .iter()
        .map(|object| name(&object.metadata))
        .filter(|name| doomed(name))
        .collect();
    let stream = api
        .watch_metadata(&WatchParams::default(), &since)
        .await
        .unwrap();
    let mut stream = std::pin::pin!(stream);
    while !left.is_empty() {
        let event = tokio::time::timeout(HANG, stream.try_next()).await;
        match event.unwrap_or_else(|_| panic!("{left:?} stay")).unwrap() {
            Some(WatchEvent::Deleted(object)) => {
                left.remove(&name(&object.metadata));
            }
            Some(_) => {}
            None => panic!("the watch ended, and {left:?} are left"),
        }
    }
}

#[test]
fn deletions_are_finished_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let uid = runtime.block_on(async {
        let client = open(&file).await.client("default");
        create_namespace(&client, "doomed").await;
        for number in 0..20 {
            let api: Api<ConfigMap> = Api::namespaced(client.clone(), "doomed");
            let object = config_map(&format!("n{number}"), "");
            api.create(&PostParams::default(), &object).await.unwrap();
        }
        family(&Api::default_namespaced(client), "owner", 20).await
    });
    // Stops the garbage collector, as a crash does.
    drop(runtime);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Store::open(&file).unwrap();
        let owner = store
            .get(&key("/configmaps", "default", "owner"))
            .await
            .unwrap()
            .unwrap();
        let remove = Remove {
            key: owner.key,
            expect: owner.revision,
            uid,
            meta: owner.meta,
            rest: owner.rest,
            owners: Vec::new(),
        };
        store.write(Write::Remove(remove)).await.unwrap();
        let namespace = store
            .get(&key("/namespaces", "", "doomed"))
            .await
            .unwrap()
            .unwrap();
        let mut meta: Value = serde_json::from_slice(&namespace.meta).unwrap();
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        let put = Put {
            key: namespace.key,
            expect: Expect::Revision(namespace.revision),
            uid: meta["uid"].as_str().unwrap().into(),
            deleting: true,
            meta: serde_json::to_vec(&meta).unwrap(),
            rest: namespace.rest,
            owners_gained: Vec::new(),
            owners_lost: Vec::new(),
            follow_ups: vec![FollowUp {
                what: Follow::Namespace,
                subject: "doomed".into(),
                since: 0,
            }],
        };
        store.write(Write::Put(put)).await.unwrap();
        assert_eq!(store.follow_ups().await.unwrap().len(), 2);
    });
    runtime.block_on(async {
        let embedded = open(&file).await;
        let client = embedded.client("default");
        gone(
            &Api::<ConfigMap>::default_namespaced(client.clone()),
            |_| true,
        )
        .await;
        gone(&Api::<Namespace>::all(client.clone()), |name| {
            name == "doomed"
        })
        .await;
        let inside: Api<ConfigMap> = Api::namespaced(client, "doomed");
        assert!(
            inside
                .list(&ListParams::default())
                .await
                .unwrap()
                .items
                .is_empty()
        );
    });
}

/// Deletes owners and namespaces in an endless loop. Reports each deletion after the store has acknowledged
/// it.
pub async fn delete(file: &Path, arguments: &str) {
    let client = open(file).await.client("default");
    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for number in 0.. {
        let owner = format!("{arguments}-{number}");
        family(&api, &owner, 5).await;
        create_namespace(&client, &owner).await;
        let inside: Api<ConfigMap> = Api::namespaced(client.clone(), &owner);
        family(&inside, "inside", 2).await;
        api.delete(&owner, &DeleteParams::background())
            .await
            .unwrap();
        say(&format!("owner {owner}"));
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces
            .delete(&owner, &DeleteParams::default())
            .await
            .unwrap();
        say(&format!("namespace {owner}"));
    }
}

#[test]
fn deletions_survive_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let mut dice = Dice(0x5eed_0004);
    let kills = sized(3, 20);
    for kill in 0..kills {
        let mut other = Other::start("delete", &file, &format!("r{kill}"));
        let mut said = Vec::new();
        for _ in 0..=dice.roll(12) {
            said.push(other.says().unwrap());
        }
        other.kill();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let client = open(&file).await.client("default");
            for words in &said {
                let [what, name] = words.as_slice() else {
                    panic!("{words:?}")
                };
                if what == "owner" {
                    let api: Api<ConfigMap> = Api::default_namespaced(client.clone());
                    gone(&api, |found| found.starts_with(&format!("{name}-"))).await;
                } else {
                    gone(&Api::<Namespace>::all(client.clone()), |found| {
                        found == name
                    })
                    .await;
                }
            }
        });
    }
    println!("kill -9 during deletions: {kills} times, each finished by the next process");
}
