//! Tests that the deletion of a whole kind or namespace deletes nothing in a data plane.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use serde_json::json;

use super::stage::*;
use crate::api::choreo::rendered::RenderedRelease;
use crate::api::{ReleasePin, condition, labels};
use crate::rendered::deletion_guard;

/// Waits until the controller reports that it does not clean up a RenderedRelease. Returns the reported
/// reason.
async fn stopped(releases: Api<RenderedRelease>) -> String {
    let is_stopped = |release: &RenderedRelease| {
        said(release, condition::FINALIZING)
            .is_some_and(|(_, reason, _)| reason == condition::CLEANUP_STOPPED)
    };
    let release = until(releases, is_stopped).await.unwrap();
    let finalizers = release.metadata.finalizers.clone().unwrap_or_default();
    assert_eq!(finalizers, [labels::DATAPLANE_CLEANUP]);
    said(&release, condition::FINALIZING).unwrap().2
}

/// Requests the cleanup of a RenderedRelease, and waits until its ConfigMap is gone.
async fn cleans_up(releases: Api<RenderedRelease>, name: &str, maps: Api<ConfigMap>) {
    let params = PatchParams::default();
    let release = releases.get(name).await.unwrap();
    let deletion = deletion_guard::deletion(&release.metadata).unwrap();
    let wanted = json!({"metadata": {"annotations": {labels::REMOVE_RUNNING: deletion}}});
    releases
        .patch(name, &params, &Patch::Merge(&wanted))
        .await
        .unwrap();
    let gone = await_condition(maps, "settings", |map: Option<&ConfigMap>| map.is_none());
    let gone = tokio::time::timeout(Duration::from_secs(60), gone).await;
    gone.unwrap().unwrap();
}

async fn delete_kind(stage: &Stage, name: &str) {
    let kinds: Api<CustomResourceDefinition> = Api::all(stage.own.admin());
    kinds.delete(name, &Default::default()).await.unwrap();
}

#[tokio::test]
async fn deleting_the_kind_removes_no_workload() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let settings = config_map("shop-dev", "settings", "1");
    stage
        .release("web-dev", "dev", std::slice::from_ref(&settings))
        .await;
    stage.until_ready("web-dev").await;
    // The annotation value that an interrupted uninstallation left behind.
    let left = json!({"metadata": {"annotations": {labels::REMOVE_RUNNING: "true"}}});
    let params = PatchParams::default();
    let releases = stage.releases();
    let left = Patch::Merge(&left);
    releases.patch("web-dev", &params, &left).await.unwrap();
    delete_kind(&stage, RenderedRelease::crd_name()).await;
    let why = stopped(stage.releases()).await;
    assert!(
        why.contains("the kind releases.core.choreo.dev is being deleted"),
        "{why}"
    );
    assert!(get(&stage.own.admin(), &settings).await.is_some());
    let maps = Api::namespaced(stage.own.admin(), "shop-dev");
    cleans_up(stage.releases(), "web-dev", maps).await;
}

#[tokio::test]
async fn deleting_the_kind_of_the_pins_removes_no_workload() {
    let stage = Stage::new().await;
    let pin = stage
        .put(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin",
            "metadata": {
                "name": "web-dev", "namespace": "default",
                "labels": {labels::COMPONENT: "web", labels::ENVIRONMENT: "dev"},
            },
            "spec": {"component": "web", "environment": "dev", "releaseRef": {"name": "web-1"}},
        }))
        .await;
    let _running = stage.start();
    let settings = config_map("shop-dev", "settings", "1");
    stage
        .release("web-dev", "dev", std::slice::from_ref(&settings))
        .await;
    let owner = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin", "name": "web-dev",
        "uid": pin.metadata.uid, "controller": true, "blockOwnerDeletion": true,
    }]}});
    let params = PatchParams::default();
    stage
        .releases()
        .patch("web-dev", &params, &Patch::Merge(&owner))
        .await
        .unwrap();
    stage.until_ready("web-dev").await;
    delete_kind(&stage, ReleasePin::crd_name()).await;
    let why = stopped(stage.releases()).await;
    assert!(
        why.contains("deleted together with its kind releasepins.openchoreo.dev"),
        "{why}"
    );
    assert!(get(&stage.own.admin(), &settings).await.is_some());
    let maps = Api::namespaced(stage.own.admin(), "shop-dev");
    cleans_up(stage.releases(), "web-dev", maps).await;
    stage.until_gone("web-dev").await;
}

#[tokio::test]
async fn deleting_the_namespace_removes_no_workload() {
    let stage = Stage::new().await;
    let admin = stage.own.admin();
    namespace(&admin, "team").await;
    for object in [
        json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "DataPlane",
            "metadata": {"name": "dev", "namespace": "team"}, "spec": {"embedded": {}},
        }),
        json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Environment",
            "metadata": {"name": "dev", "namespace": "team"},
            "spec": {"dataPlaneRef": {"name": "dev"}, "namespace": "shop-dev"},
        }),
        json!({
            "apiVersion": "core.choreo.dev/v1", "kind": "Release",
            "metadata": {"name": "web-dev", "namespace": "team"},
            "spec": {
                "owner": {"projectName": "shop", "componentName": "web"}, "environmentName": "dev",
                "resources": [{"id": "settings", "object": config_map("shop-dev", "settings", "1")}],
            },
        }),
    ] {
        stage.put(object).await;
    }
    let _running = stage.start();
    let releases: Api<RenderedRelease> = Api::namespaced(admin.clone(), "team");
    let is_ready = |release: &RenderedRelease| {
        said(release, condition::READY)
            .is_some_and(|(_, reason, _)| reason == condition::RECONCILE_SUCCESS)
    };
    until(releases.clone(), is_ready).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(admin.clone());
    namespaces
        .delete("team", &Default::default())
        .await
        .unwrap();
    let why = stopped(releases.clone()).await;
    assert!(why.contains("the namespace team is being deleted"), "{why}");
    let maps: Api<ConfigMap> = Api::namespaced(admin, "shop-dev");
    assert!(maps.get_opt("settings").await.unwrap().is_some());
    cleans_up(releases, "web-dev", maps).await;
}
