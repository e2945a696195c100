//! Tests which objects a pass deletes, and which objects it must never delete.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Method;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::stage::*;
use crate::api::{condition, labels};
use crate::engine::diff::Identity;
use crate::rendered::kinds::Kind;
use crate::rendered::live::Whole;
use crate::rendered::prune::{Held, stale};

#[test]
fn what_is_stale_is_told_by_group_kind_namespace_and_name() {
    let identity = |group: &str, kind: &str, namespace: &str, name: &str| Identity {
        group: group.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    };
    let held = |identity: Identity| {
        let seen: Whole =
            serde_json::from_value(json!({"metadata": {"name": identity.name}})).unwrap();
        Held {
            kind: Kind {
                resource: kube::core::ApiResource::erase::<k8s_openapi::api::core::v1::Pod>(&()),
                namespaced: true,
            },
            live: seen.keep(&identity.group, &identity.kind).into(),
            identity,
        }
    };
    let wanted = BTreeSet::from([identity("apps", "Deployment", "shop", "web")]);
    for (there, is_stale) in [
        (identity("apps", "Deployment", "shop", "web"), false),
        (identity("apps", "Deployment", "shop", "cart"), true),
        (identity("apps", "Deployment", "other", "web"), true),
        (identity("apps", "StatefulSet", "shop", "web"), true),
        (identity("shop.example", "Deployment", "shop", "web"), true),
        (identity("", "Namespace", "", "shop"), false),
        (identity("shop.example", "Namespace", "", "shop"), true),
    ] {
        assert_eq!(
            stale(vec![held(there.clone())], &wanted).len(),
            usize::from(is_stale),
            "{there}"
        );
    }
}

#[tokio::test]
async fn what_is_no_longer_wanted_goes() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let admin = stage.own.admin();
    let (kept, gone) = (
        config_map("shop-dev", "kept", "1"),
        secret("shop-dev", "gone"),
    );
    stage
        .release("web-dev", "dev", &[kept.clone(), gone.clone()])
        .await;
    stage.until_ready("web-dev").await;
    stage
        .release("web-dev", "dev", std::slice::from_ref(&kept))
        .await;
    let release = stage
        .until("web-dev", |it| {
            it.status
                .as_ref()
                .is_some_and(|status| status.resources.len() == 1)
        })
        .await;
    assert_eq!(
        said(&release, condition::PRUNED).unwrap().1,
        condition::RECONCILE_SUCCESS
    );
    assert!(get(&admin, &kept).await.is_some());
    assert!(get(&admin, &gone).await.is_none());
}

/// If a resource gets another kind or namespace under the same id, the controller deletes the old object
/// once.
#[tokio::test]
async fn what_moves_leaves_nothing_behind() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let admin = stage.own.admin();
    let with_id = |mut object: Value| {
        object["metadata"]["annotations"] = json!({"id": "thing"});
        object
    };
    let forms = [
        with_id(config_map("shop-dev", "thing", "1")),
        with_id(config_map("shop-other", "thing", "1")),
        with_id(secret("shop-other", "thing")),
        with_id(deployment("shop-dev", "thing", 1, "shop/web:v1")),
    ];
    stage.release("web-dev", "dev", &forms[..1]).await;
    stage.until_ready("web-dev").await;
    for pair in forms.windows(2) {
        stage.own.asked();
        stage.release("web-dev", "dev", &pair[1..]).await;
        let kind = pair[1]["kind"].as_str().unwrap();
        let namespace = pair[1]["metadata"]["namespace"].as_str();
        let release = stage
            .until("web-dev", |it| {
                let entries = it.status.as_ref().map(|status| status.resources.as_slice());
                matches!(entries, Some([only]) if only.kind == kind && only.namespace.as_deref() == namespace)
            })
            .await;
        assert_eq!(entry(&release, kind, "thing").unwrap().id, "thing");
        assert!(get(&admin, &pair[0]).await.is_none(), "{}", pair[0]);
        assert!(get(&admin, &pair[1]).await.is_some(), "{}", pair[1]);
        let deletions: Vec<String> = stage.own.asked();
        let deletions = deletions.iter().filter(|line| line.starts_with("DELETE"));
        assert_eq!(deletions.count(), 1);
    }
    // The controller deletes no namespace.
    for name in ["shop-dev", "shop-other"] {
        let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        assert!(get(&admin, &space).await.is_some());
    }
}

#[tokio::test]
async fn a_namespace_that_a_release_brought_is_not_taken_away() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "brought"}});
    let inside = config_map("brought", "settings", "1");
    stage
        .release("web-dev", "dev", &[inside.clone(), space.clone()])
        .await;
    stage.until_ready("web-dev").await;
    let made = get(&stage.own.admin(), &space).await.unwrap();
    assert_eq!(
        made["metadata"]["labels"][labels::MANAGED_BY],
        labels::RELEASE_CONTROLLER
    );
    stage
        .release("web-dev", "dev", std::slice::from_ref(&inside))
        .await;
    stage
        .until("web-dev", |it| {
            it.status
                .as_ref()
                .is_some_and(|status| status.resources.len() == 1)
        })
        .await;
    assert!(get(&stage.own.admin(), &space).await.is_some());
    stage.delete("web-dev").await;
    stage.until_gone("web-dev").await;
    assert!(get(&stage.own.admin(), &inside).await.is_none());
    let left = get(&stage.own.admin(), &space).await.unwrap();
    assert_eq!(left["metadata"]["deletionTimestamp"], json!(null));
}

/// One kind is forbidden, does not answer, or is missing in the API or in discovery. Then the controller
/// applies the resources but deletes no object of any kind, and a condition names the reason. Later the
/// controller can read the kind, and deletes the stale objects.
#[tokio::test]
async fn nothing_is_deleted_while_one_kind_cannot_be_seen() {
    let is_list = |method: &Method, path: &str| method == Method::GET && path.ends_with("/secrets");
    type Fault = Box<dyn Fn(&Method, &str) -> Fate + Send + Sync>;
    let faults: [(&str, Fault); 5] = [
        (
            "access was denied",
            Box::new(move |m, p| {
                if is_list(m, p) {
                    Fate::Refuse(403)
                } else {
                    Fate::Pass
                }
            }),
        ),
        (
            "cannot be read",
            Box::new(move |m, p| {
                if is_list(m, p) {
                    Fate::Hang
                } else {
                    Fate::Pass
                }
            }),
        ),
        (
            "cannot be read",
            Box::new(move |m, p| {
                if is_list(m, p) {
                    Fate::Refuse(500)
                } else {
                    Fate::Pass
                }
            }),
        ),
        (
            "is not served",
            Box::new(move |m, p| {
                if p.contains("/secrets") && m == Method::GET {
                    Fate::Refuse(404)
                } else {
                    Fate::Pass
                }
            }),
        ),
        (
            "is not served",
            Box::new(|_, p| {
                if p == "/api/v1" {
                    Fate::Without("Secret")
                } else {
                    Fate::Pass
                }
            }),
        ),
    ];
    for (said_so, fault) in faults {
        let mut stage = Stage::new().await;
        stage.own.answer = Duration::from_millis(700);
        stage.settings.deadline = Duration::from_secs(2);
        let running = stage.start();
        let admin = stage.own.admin();
        let objects = [
            config_map("shop-dev", "kept", "1"),
            config_map("shop-dev", "gone", "1"),
            deployment("shop-dev", "gone", 1, "shop/web:v1"),
            secret("shop-dev", "kept"),
        ];
        stage.release("web-dev", "dev", &objects).await;
        stage.until_ready("web-dev").await;
        stage.own.asked();
        stage.own.rule(fault);
        let new = config_map("shop-dev", "new", "1");
        stage
            .release("web-dev", "dev", &[objects[0].clone(), new.clone()])
            .await;
        let reason = condition::LIVE_STATE_UNKNOWN;
        let release = stage
            .until_reason("web-dev", condition::PRUNED, reason)
            .await;
        let (_, _, message) = said(&release, condition::PRUNED).unwrap();
        assert!(
            message.starts_with("nothing is deleted: Secret") && message.contains(said_so),
            "{message}"
        );
        assert!(get(&admin, &new).await.is_some(), "apply goes on");
        for object in &objects {
            let there = get(&admin, object)
                .await
                .unwrap_or_else(|| panic!("{message}: {object}"));
            assert_eq!(there["metadata"]["deletionTimestamp"], json!(null));
        }
        let asked = stage.own.asked();
        assert!(
            !asked.iter().any(|line| line.starts_with("DELETE")),
            "{asked:#?}"
        );
        // The inventory still lists the object.
        assert!(entry(&release, "Secret", "kept").is_some());
        assert!(entry(&release, "Deployment", "gone").is_some());
        stage.own.pass();
        stage
            .until("web-dev", |it| {
                it.status
                    .as_ref()
                    .is_some_and(|status| status.resources.len() == 2)
            })
            .await;
        for object in &objects[1..] {
            assert!(get(&admin, object).await.is_none(), "{object}");
        }
        running.stop().await;
    }
}

/// A misspelt kind was never applied, so the data plane has no stale objects of it.
#[tokio::test]
async fn a_kind_that_was_never_served_does_not_stay_in_the_inventory() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let map = config_map("shop-dev", "settings", "1");
    let mut wrong = deployment("shop-dev", "web", 1, "shop/web:v1");
    wrong["kind"] = json!("Deploymnet");
    let both = [map.clone(), wrong];
    stage.release("web-dev", "dev", &both).await;
    let release = stage
        .until_reason("web-dev", condition::APPLIED, condition::APPLY_FAILED)
        .await;
    assert!(entry(&release, "Deploymnet", "web").is_some());
    stage
        .release("web-dev", "dev", std::slice::from_ref(&map))
        .await;
    let release = stage
        .until_reason("web-dev", condition::PRUNED, condition::RECONCILE_SUCCESS)
        .await;
    let resources = release.status.unwrap().resources;
    assert_eq!(resources.len(), 1, "{resources:?}");
    // The misspelt kind does not delay the deletion of the RenderedRelease either, even if the spec still
    // names it.
    stage.release("web-dev", "dev", &both).await;
    stage
        .until_reason("web-dev", condition::APPLIED, condition::APPLY_FAILED)
        .await;
    stage.delete("web-dev").await;
    stage.until_gone("web-dev").await;
    assert!(get(&stage.own.admin(), &map).await.is_none());
}

/// The data plane stops serving a kind. An applied object of the kind may still exist, so the inventory keeps
/// its entry.
#[tokio::test]
async fn a_kind_that_is_served_no_more_stays_in_the_inventory() {
    let stage = Stage::new().await;
    let running = stage.start();
    let admin = stage.own.admin();
    let key = secret("shop-dev", "key");
    let map = config_map("shop-dev", "settings", "1");
    stage
        .release("web-dev", "dev", &[map.clone(), key.clone()])
        .await;
    stage.until_ready("web-dev").await;
    // A restarted controller has no discovery yet.
    running.stop().await;
    stage.own.rule(|_, path| match path == "/api/v1" {
        true => Fate::Without("Secret"),
        false => Fate::Pass,
    });
    let _running = stage.start();
    let other = secret("shop-dev", "other");
    stage
        .release("web-dev", "dev", &[map.clone(), key.clone(), other])
        .await;
    stage
        .until_reason("web-dev", condition::APPLIED, condition::APPLY_FAILED)
        .await;
    stage
        .release("web-dev", "dev", std::slice::from_ref(&map))
        .await;
    let release = stage
        .until_reason("web-dev", condition::PRUNED, condition::LIVE_STATE_UNKNOWN)
        .await;
    assert!(entry(&release, "Secret", "key").is_some());
    stage.delete("web-dev").await;
    let reason = condition::LIVE_STATE_UNKNOWN;
    stage
        .until_reason("web-dev", condition::FINALIZING, reason)
        .await;
    stage.own.pass();
    stage.until_gone("web-dev").await;
    assert!(get(&admin, &key).await.is_none());
}

#[tokio::test]
async fn nothing_is_deleted_before_everything_is_applied() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let admin = stage.own.admin();
    let old = config_map("shop-dev", "old", "1");
    stage
        .release("web-dev", "dev", std::slice::from_ref(&old))
        .await;
    stage.until_ready("web-dev").await;
    // The data plane refuses the new manifest.
    let bad = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "new", "namespace": "shop-dev"}, "data": {"a": {"b": 1}}});
    stage.release("web-dev", "dev", &[bad]).await;
    let release = stage
        .until_reason("web-dev", condition::PRUNED, condition::APPLY_FAILED)
        .await;
    assert!(get(&admin, &old).await.is_some());
    assert!(entry(&release, "ConfigMap", "old").is_some());
    stage
        .release("web-dev", "dev", &[config_map("shop-dev", "new", "1")])
        .await;
    stage
        .until_reason("web-dev", condition::PRUNED, condition::RECONCILE_SUCCESS)
        .await;
    assert!(get(&admin, &old).await.is_none());
}

/// A hundred objects of other owners carry forged labels of this RenderedRelease, in many variants. The
/// controller deletes none of them.
#[tokio::test]
async fn forged_labels_make_nothing_ours() {
    let stage = Stage::new().await;
    let running = stage.start();
    let admin = stage.own.admin();
    let kept = config_map("shop-dev", "kept", "1");
    let release = stage
        .release("web-dev", "dev", std::slice::from_ref(&kept))
        .await;
    stage.until_ready("web-dev").await;
    let ours = get(&admin, &kept).await.unwrap()["metadata"]["labels"].clone();
    let mut forged = Vec::new();
    for at in 0..100 {
        let name = format!("foreign-{at}");
        let mut object = match at % 4 {
            0 => config_map("shop-dev", &name, "theirs"),
            1 => secret("shop-dev", &name),
            2 => deployment("shop-dev", &name, 0, "theirs"),
            _ => json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop-dev"},
                "spec": {"ports": [{"port": 80}]},
            }),
        };
        object["metadata"]["labels"] = ours.clone();
        let made = match at % 2 {
            // Another manager applied the object, or a client wrote it without an apply.
            0 => put(&admin, object.clone()).await,
            _ => {
                let made: DynamicObject = serde_json::from_value(object.clone()).unwrap();
                api(&admin, &object)
                    .create(&Default::default(), &made)
                    .await
                    .unwrap()
            }
        };
        forged.push((object, made.resource_version()));
    }
    // The test runs a pass with a deletion, a pass of a restarted controller, and the deletion of the
    // RenderedRelease.
    stage
        .release(
            "web-dev",
            "dev",
            &[kept.clone(), secret("shop-dev", "brief")],
        )
        .await;
    stage.until_ready("web-dev").await;
    stage
        .release("web-dev", "dev", std::slice::from_ref(&kept))
        .await;
    stage
        .until_reason("web-dev", condition::PRUNED, condition::RECONCILE_SUCCESS)
        .await;
    stage
        .until("web-dev", |it| {
            it.status
                .as_ref()
                .is_some_and(|status| status.resources.len() == 1)
        })
        .await;
    running.stop().await;
    let _running = stage.start();
    stage.delete("web-dev").await;
    stage.until_gone("web-dev").await;
    assert!(get(&admin, &kept).await.is_none());
    assert!(release.uid().is_some());
    for (object, version) in &forged {
        let now = get(&admin, object)
            .await
            .unwrap_or_else(|| panic!("{object} is gone"));
        // The simulator changes the status, and so the resourceVersion, of every Deployment.
        if object["kind"] != "Deployment" {
            assert_eq!(
                now["metadata"]["resourceVersion"].as_str(),
                version.as_deref(),
                "{object}"
            );
        }
        assert_eq!(now["metadata"]["labels"], ours);
    }
    // The field manager of the controller owns no field of these objects.
    let api: Api<DynamicObject> = api(&admin, &forged[2].0);
    for object in api.list(&ListParams::default()).await.unwrap() {
        let managers = object.metadata.managed_fields.unwrap_or_default();
        let ours = |it: &Option<String>| it.as_deref() == Some(labels::MANAGER_DATAPLANE);
        assert!(
            !managers.iter().any(|it| ours(&it.manager)),
            "{:?}",
            object.metadata.name
        );
    }
}

/// After the controller read a stale object, another user deletes the object and creates one with the same
/// name. The controller keeps the new object.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_became_another_is_left_alone() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let admin = stage.own.admin();
    let kept = config_map("shop-dev", "kept", "1");
    let gone = config_map("shop-dev", "gone", "1");
    stage
        .release("web-dev", "dev", &[kept.clone(), gone.clone()])
        .await;
    stage.until_ready("web-dev").await;
    // Just before the deletion arrives, a foreign object replaces the stale object.
    let store = stage.own.store.clone();
    let swapped = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let theirs = swapped.clone();
    stage.own.rule(move |method, path| {
        let is_it = method == Method::DELETE && path.ends_with("/configmaps/gone");
        if is_it && !theirs.swap(true, std::sync::atomic::Ordering::SeqCst) {
            let admin = store.client("default");
            let swap = async move {
                let gone = config_map("shop-dev", "gone", "1");
                api(&admin, &gone)
                    .delete("gone", &Default::default())
                    .await
                    .unwrap();
                put(&admin, config_map("shop-dev", "gone", "theirs")).await;
            };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(swap));
        }
        Fate::Pass
    });
    stage.release("web-dev", "dev", &[kept]).await;
    stage
        .until("web-dev", |it| {
            it.status
                .as_ref()
                .is_some_and(|status| status.resources.len() == 1)
        })
        .await;
    assert!(swapped.load(std::sync::atomic::Ordering::SeqCst));
    assert_eq!(get(&admin, &gone).await.unwrap()["data"]["value"], "theirs");
}

/// The status of a stale Deployment changes during its deletion. The Deployment still belongs to the
/// RenderedRelease, so the controller deletes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_that_changes_all_the_time_can_be_deleted() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let admin = stage.own.admin();
    let kept = config_map("shop-dev", "kept", "1");
    let gone = config_map("shop-dev", "gone", "1");
    stage
        .release("web-dev", "dev", &[kept.clone(), gone.clone()])
        .await;
    stage.until_ready("web-dev").await;
    let store = stage.own.store.clone();
    let left = std::sync::atomic::AtomicUsize::new(2);
    stage.own.rule(move |method, path| {
        use std::sync::atomic::Ordering::SeqCst;
        let is_it = method == Method::DELETE && path.ends_with("/configmaps/gone");
        if is_it && left.fetch_update(SeqCst, SeqCst, |it| it.checked_sub(1)).is_ok() {
            let admin = store.client("default");
            let flap = async move {
                let patch = json!({"metadata": {"annotations": {"flap": format!("{:?}", std::time::Instant::now())}}});
                let gone = config_map("shop-dev", "gone", "1");
                api(&admin, &gone).patch("gone", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
            };
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(flap));
        }
        Fate::Pass
    });
    stage.release("web-dev", "dev", &[kept]).await;
    stage
        .until("web-dev", |it| {
            it.status
                .as_ref()
                .is_some_and(|status| status.resources.len() == 1)
        })
        .await;
    assert!(get(&admin, &gone).await.is_none());
}

/// The list of well-known kinds does not contain a custom kind. Still, the controller finds an applied object
/// of such a kind, even after a crash before it wrote the status.
#[tokio::test]
async fn a_custom_kind_is_written_down_before_it_is_applied() {
    let stage = Stage::new().await;
    stage.put(queues()).await;
    let admin = stage.own.admin();
    // The controller writes the status once before the apply. After the apply, no write gets an answer, as if
    // the controller died.
    let cut = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_cut = cut.clone();
    stage.own.rule(move |method, path| {
        use std::sync::atomic::Ordering::SeqCst;
        if method == Method::PATCH && path.ends_with("/queues/orders") {
            is_cut.store(true, SeqCst);
            return Fate::Pass;
        }
        match is_cut.load(SeqCst) && method != Method::GET {
            true => Fate::Hang,
            false => Fate::Pass,
        }
    });
    let running = stage.start();
    let orders = queue("shop-dev", "orders");
    stage
        .release("web-dev", "dev", std::slice::from_ref(&orders))
        .await;
    until(api(&admin, &orders), |it| it.name_any() == "orders")
        .await
        .unwrap();
    running.kill().await;
    stage.own.pass();
    // The RenderedRelease changes while the controller is down.
    stage
        .release("web-dev", "dev", &[config_map("shop-dev", "settings", "1")])
        .await;
    let _running = stage.start();
    stage
        .until("web-dev", |it| {
            let entries = it.status.as_ref().map(|status| status.resources.as_slice());
            matches!(entries, Some([only]) if only.kind == "ConfigMap")
        })
        .await;
    assert!(get(&admin, &orders).await.is_none());
}
