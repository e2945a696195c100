//! Tests of the deletion of a RenderedRelease, and of the cleanup of its objects.

use http::Method;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::stage::*;
use crate::api::{condition, labels};

async fn finalizers(plane: &Plane, object: &Value, finalizers: Value) {
    let api: Api<DynamicObject> = api(&plane.admin(), object);
    let name = object["metadata"]["name"].as_str().unwrap();
    let patch = json!({"metadata": {"finalizers": finalizers}});
    api.patch(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

#[tokio::test]
async fn everything_goes_and_then_the_release() {
    let stage = Stage::new().await;
    stage.put(queues()).await;
    let _running = stage.start();
    let admin = stage.own.admin();
    let objects = [
        deployment("shop-dev", "web", 1, "shop/web:v1"),
        config_map("shop-other", "settings", "1"),
        queue("shop-dev", "orders"),
    ];
    stage.release("web-dev", "dev", &objects).await;
    stage.until_ready("web-dev").await;
    // A foreign finalizer keeps an object. The cleanup waits, and the condition names the object.
    finalizers(&stage.own, &objects[1], json!(["shop.example/wait"])).await;
    stage.delete("web-dev").await;
    let release = stage
        .until("web-dev", |it| {
            said(it, condition::FINALIZING)
                .is_some_and(|(_, _, message)| message.contains("waits until"))
        })
        .await;
    let (_, _, message) = said(&release, condition::FINALIZING).unwrap();
    assert!(
        message.contains("ConfigMap") && message.contains("settings"),
        "{message}"
    );
    assert!(!message.contains("web"), "{message}");
    assert!(get(&admin, &objects[0]).await.is_none());
    assert!(get(&admin, &objects[2]).await.is_none());
    finalizers(&stage.own, &objects[1], json!(null)).await;
    stage.until_gone("web-dev").await;
    assert!(get(&admin, &objects[1]).await.is_none());
}

/// The Environment and the DataPlane are deleted with their namespace, in any order. The controller still
/// finds the data plane, because the RenderedRelease stores its name.
#[tokio::test]
async fn the_end_does_not_need_the_environment() {
    let stage = Stage::new().await;
    let running = stage.start();
    let settings = config_map("shop-dev", "settings", "1");
    stage
        .release("web-dev", "dev", std::slice::from_ref(&settings))
        .await;
    stage.until_ready("web-dev").await;
    running.stop().await;
    for kind in ["Environment", "DataPlane"] {
        let object = json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": kind, "metadata": {"name": "dev", "namespace": "default"}});
        api(&stage.own.admin(), &object)
            .delete("dev", &Default::default())
            .await
            .unwrap();
    }
    stage.delete("web-dev").await;
    let _running = stage.start();
    stage.until_gone("web-dev").await;
    assert!(get(&stage.own.admin(), &settings).await.is_none());
}

#[tokio::test]
async fn the_end_waits_for_what_cannot_be_seen() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let admin = stage.own.admin();
    let objects = [
        config_map("shop-dev", "settings", "1"),
        secret("shop-dev", "key"),
    ];
    stage.release("web-dev", "dev", &objects).await;
    stage.until_ready("web-dev").await;
    stage.own.rule(
        |method, path| match method == Method::GET && path.ends_with("/secrets") {
            true => Fate::Refuse(403),
            false => Fate::Pass,
        },
    );
    stage.delete("web-dev").await;
    let release = stage
        .until_reason(
            "web-dev",
            condition::FINALIZING,
            condition::LIVE_STATE_UNKNOWN,
        )
        .await;
    let (_, _, message) = said(&release, condition::FINALIZING).unwrap();
    assert!(
        message.contains("Secret cannot be read, access was denied"),
        "{message}"
    );
    // The objects of the readable kinds are deleted, because the cleanup deletes everything.
    assert!(get(&admin, &objects[0]).await.is_none());
    assert_eq!(
        release.metadata.finalizers.unwrap(),
        [labels::DATAPLANE_CLEANUP]
    );
    stage.own.pass();
    stage.until_gone("web-dev").await;
    assert!(get(&admin, &objects[1]).await.is_none());
}

#[tokio::test]
async fn a_release_that_had_nothing_ends_at_once() {
    let stage = Stage::new().await;
    let _running = stage.start();
    stage.release("web-dev", "dev", &[]).await;
    let release = stage.until_ready("web-dev").await;
    assert_eq!(
        said(&release, condition::READY).unwrap().2,
        "no resources to deploy"
    );
    stage.delete("web-dev").await;
    stage.until_gone("web-dev").await;
}

/// A RenderedRelease takes over an object that is still being deleted for a deleted RenderedRelease of the
/// same name.
#[tokio::test]
async fn an_object_that_is_being_deleted_is_not_applied_and_the_end_waits_for_it() {
    let stage = Stage::new().await;
    let running = stage.start();
    let admin = stage.own.admin();
    let web = deployment("shop-dev", "web", 1, "shop/web:v1");
    stage
        .release("web-dev", "dev", std::slice::from_ref(&web))
        .await;
    stage.until_ready("web-dev").await;
    running.stop().await;
    // The RenderedRelease is deleted without its object, as in an uninstallation that keeps the workloads.
    finalizers(&stage.own, &web, json!(["shop.example/wait"])).await;
    let release = json!({"apiVersion": "core.choreo.dev/v1", "kind": "Release", "metadata": {"name": "web-dev", "namespace": "default"}});
    finalizers(&stage.own, &release, json!(null)).await;
    stage.delete("web-dev").await;
    api(&admin, &web)
        .delete("web", &Default::default())
        .await
        .unwrap();
    stage
        .release("web-dev", "dev", std::slice::from_ref(&web))
        .await;
    let running = stage.start();
    let release = stage
        .until("web-dev", |it| {
            said(it, condition::APPLIED)
                .is_some_and(|(_, reason, _)| reason == condition::PROGRESSING)
        })
        .await;
    let (_, _, message) = said(&release, condition::APPLIED).unwrap();
    assert!(
        message.contains("shop-dev") && message.contains("is being deleted"),
        "{message}"
    );
    // The deletion of the new RenderedRelease waits until the object is gone.
    stage.delete("web-dev").await;
    let release = stage
        .until("web-dev", |it| {
            said(it, condition::FINALIZING)
                .is_some_and(|(_, _, message)| message.contains("waits until"))
        })
        .await;
    let (_, _, message) = said(&release, condition::FINALIZING).unwrap();
    assert!(message.contains("web"), "{message}");
    finalizers(&stage.own, &web, json!(null)).await;
    stage.until_gone("web-dev").await;
    assert!(get(&admin, &web).await.is_none());
    running.stop().await;
}
