//! Tests that data planes do not delay or change each other.

use std::time::Duration;

use serde_json::json;

use super::stage::*;
use crate::api::choreo::rendered::Health;
use crate::api::condition;

#[tokio::test]
async fn one_controller_serves_every_data_plane() {
    let mut stage = Stage::new().await;
    let far = stage.plane("far").await;
    stage
        .environment("prod", json!({"context": {"name": "far"}}), "shop")
        .await;
    let _running = stage.start();
    let settings = config_map("shop", "settings", "1");
    stage
        .release("web-dev", "dev", std::slice::from_ref(&settings))
        .await;
    stage
        .release("web-prod", "prod", std::slice::from_ref(&settings))
        .await;
    let dev = stage.until_ready("web-dev").await;
    let prod = stage.until_ready("web-prod").await;
    assert_eq!(dev.data_planes().unwrap(), ["embedded"]);
    assert_eq!(prod.data_planes().unwrap(), ["context/far"]);
    // Both data planes have an object of this name. The deletion of one RenderedRelease keeps the object of
    // the other.
    stage.delete("web-dev").await;
    stage.until_gone("web-dev").await;
    assert!(get(&stage.own.admin(), &settings).await.is_none());
    assert!(get(&far.admin(), &settings).await.is_some());
}

/// One data plane hangs while it has more RenderedReleases than its limit. The RenderedReleases of the other
/// data plane stay fast. The first data plane recovers without help.
#[tokio::test]
async fn a_data_plane_that_does_not_answer_holds_up_nobody_else() {
    for silent in [Fate::Hang, Fate::Unreachable] {
        let mut stage = Stage::new().await;
        stage.settings.deadline = Duration::from_millis(500);
        let mut far = stage.plane("far").await;
        far.answer = Duration::from_millis(400);
        stage.others.insert("far".to_owned(), far.clone());
        stage
            .environment("prod", json!({"context": {"name": "far"}}), "shop")
            .await;
        let fate = silent.clone();
        far.rule(move |_, _| fate.clone());
        let running = stage.start();
        for at in 0..40 {
            let object = config_map("shop", &format!("settings-{at}"), "1");
            stage
                .release(&format!("web-{at}-prod"), "prod", &[object])
                .await;
        }
        let reason = condition::DATA_PLANE_UNREACHABLE;
        let release = stage
            .until_reason("web-0-prod", condition::READY, reason)
            .await;
        let (_, _, message) = said(&release, condition::READY).unwrap();
        assert!(
            message.starts_with("data plane context/far does not answer"),
            "{message}"
        );
        for at in 0..10 {
            let object = config_map("shop", &format!("settings-{at}"), "1");
            stage
                .release(&format!("web-{at}-dev"), "dev", &[object])
                .await;
            stage.until_ready(&format!("web-{at}-dev")).await;
        }
        // The backoff grows, and one RenderedRelease tests the connection for all.
        stage.delete("web-39-prod").await;
        stage
            .until_reason(
                "web-39-prod",
                condition::FINALIZING,
                condition::LIVE_STATE_UNKNOWN,
            )
            .await;
        far.pass();
        for at in 0..39 {
            stage.until_ready(&format!("web-{at}-prod")).await;
        }
        stage.until_gone("web-39-prod").await;
        running.stop().await;
    }
}

/// No controller removes the finalizer of an object. This delays only the RenderedRelease of the object.
#[tokio::test]
async fn a_stuck_finalizer_holds_up_nobody_else() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let mut stuck = config_map("shop-dev", "stuck", "1");
    stuck["metadata"]["finalizers"] = json!(["shop.example/never"]);
    for at in 0..20 {
        let mut object = stuck.clone();
        object["metadata"]["name"] = json!(format!("stuck-{at}"));
        stage
            .release(&format!("stuck-{at}"), "dev", &[object])
            .await;
        stage.until_ready(&format!("stuck-{at}")).await;
        stage.delete(&format!("stuck-{at}")).await;
    }
    for at in 0..20 {
        stage
            .until_reason(
                &format!("stuck-{at}"),
                condition::FINALIZING,
                condition::REMOVING,
            )
            .await;
    }
    for at in 0..10 {
        let object = config_map("shop-dev", &format!("settings-{at}"), "1");
        stage.release(&format!("web-{at}"), "dev", &[object]).await;
        stage.until_ready(&format!("web-{at}")).await;
    }
    // A RenderedRelease becomes ready although a stale object cannot be deleted.
    stage
        .release(
            "both",
            "dev",
            &[config_map("shop-dev", "fine", "1"), stuck.clone()],
        )
        .await;
    stage.until_ready("both").await;
    stage
        .release("both", "dev", &[config_map("shop-dev", "fine", "2")])
        .await;
    let both = stage
        .until("both", |it| {
            let left = entry(it, "ConfigMap", "stuck").and_then(|left| left.message.as_deref());
            left == Some("is stale and being deleted")
        })
        .await;
    let left = entry(&both, "ConfigMap", "stuck").unwrap();
    assert_eq!(left.health, Health::Progressing);
    assert_eq!(
        said(&both, condition::PRUNED).unwrap().1,
        condition::REMOVING
    );
    assert_eq!(
        said(&both, condition::READY).unwrap().1,
        condition::RECONCILE_SUCCESS
    );
}

#[tokio::test]
async fn an_environment_that_moves_takes_its_resources_along() {
    let mut stage = Stage::new().await;
    let (one, other) = (stage.plane("one").await, stage.plane("other").await);
    stage
        .environment("prod", json!({"context": {"name": "one"}}), "shop")
        .await;
    let _running = stage.start();
    let settings = config_map("shop", "settings", "1");
    stage
        .release("web-prod", "prod", std::slice::from_ref(&settings))
        .await;
    stage.until_ready("web-prod").await;
    stage
        .environment("prod", json!({"context": {"name": "other"}}), "shop")
        .await;
    let release = stage
        .until("web-prod", |it| {
            it.data_planes().unwrap() == ["context/other"]
        })
        .await;
    assert!(get(&one.admin(), &settings).await.is_none());
    assert!(get(&other.admin(), &settings).await.is_some());
    assert_eq!(
        said(&release, condition::READY).unwrap().1,
        condition::RECONCILE_SUCCESS
    );
}

/// Two connections with different names lead to one cluster. A cleanup through the old name must delete
/// nothing, because the objects belong to the new name too.
#[tokio::test]
async fn a_data_plane_that_is_reached_in_another_way_loses_nothing() {
    let mut stage = Stage::new().await;
    let one = stage.plane("one").await;
    stage.others.insert("alias".to_owned(), one.clone());
    stage
        .environment("prod", json!({"context": {"name": "one"}}), "shop")
        .await;
    let _running = stage.start();
    let settings = config_map("shop", "settings", "1");
    stage
        .release("web-prod", "prod", std::slice::from_ref(&settings))
        .await;
    stage.until_ready("web-prod").await;
    let before = get(&one.admin(), &settings).await.unwrap();
    stage
        .environment("prod", json!({"context": {"name": "alias"}}), "shop")
        .await;
    stage
        .until("web-prod", |it| {
            it.data_planes().unwrap() == ["context/alias"]
        })
        .await;
    let after = get(&one.admin(), &settings).await.unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
}

/// Without the simulator, the controller reads the pods to find why a workload is not ready.
#[tokio::test]
async fn pods_say_why_a_workload_is_not_ready() {
    let mut stage = Stage::new().await;
    let far = stage.plane("far").await;
    stage
        .environment("prod", json!({"context": {"name": "far"}}), "shop")
        .await;
    let _running = stage.start();
    let admin = far.admin();
    namespace(&admin, "shop").await;
    let pod = |name: &'static str, image: &str, reason: &str| {
        let pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "shop", "labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        });
        let status = json!({"status": {"phase": "Running", "containerStatuses": [{
            "name": "main", "image": image, "imageID": "", "ready": false, "restartCount": 3, "state": {"waiting": {"reason": reason}},
        }]}});
        let admin = admin.clone();
        async move {
            put(&admin, pod.clone()).await;
            let patch = kube::api::Patch::Merge(&status);
            api(&admin, &pod)
                .patch_status(name, &Default::default(), &patch)
                .await
                .unwrap();
        }
    };
    // The old pod crashes too, but the controller ignores it.
    pod("web-old", "shop/web:v0", "CrashLoopBackOff").await;
    pod("web-new", "shop/web:v1", "ImagePullBackOff").await;
    stage
        .release(
            "web-prod",
            "prod",
            &[deployment("shop", "web", 5, "shop/web:v1")],
        )
        .await;
    let release = stage
        .until_reason("web-prod", condition::READY, condition::DEGRADED)
        .await;
    let (_, _, message) = said(&release, condition::READY).unwrap();
    assert!(message.ends_with("ImagePullBackOff"), "{message}");
    assert!(condition::find(&release.status.unwrap().conditions, condition::SIMULATED).is_none());
}
