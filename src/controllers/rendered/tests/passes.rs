//! Tests of passes over RenderedReleases: the requests of a pass, the drift that it repairs, and the objects
//! that it refuses to change.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use super::stage::*;
use crate::api::choreo::rendered::Health;
use crate::api::{condition, labels};

/// Changes a live object as another user, by an update instead of an apply.
async fn tamper(plane: &Plane, object: &Value, patch: Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let api: Api<DynamicObject> = api(&plane.admin(), object);
    let params = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    api.patch(name, &params, &Patch::Merge(&patch))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_second_pass_over_what_has_not_changed_sends_nothing() {
    let stage = Stage::new().await;
    let objects = [
        deployment("shop-dev", "web", 2, "shop/web:v1"),
        config_map("shop-dev", "settings", "1"),
        secret("shop-dev", "key"),
    ];
    let running = stage.start();
    stage.release("web-dev", "dev", &objects).await;
    let ready = stage.until_ready("web-dev").await;
    // A pass over a second RenderedRelease comes later, so its result shows that the first pass is over.
    stage.own.asked();
    nudge(&stage, "web-dev").await;
    stage
        .release("cart-dev", "dev", &[config_map("shop-dev", "cart", "1")])
        .await;
    stage.until_ready("cart-dev").await;
    let about_web =
        |line: &String| line.contains("web") || line.contains("settings") || line.contains("key");
    let asked: Vec<String> = stage.own.asked().into_iter().filter(about_web).collect();
    let now = stage.releases().get("web-dev").await.unwrap();
    assert_eq!(json!(now.status), json!(ready.status));
    assert_eq!(asked, [""; 0]);
    // A restarted controller sends no request either, because everything is unchanged.
    running.stop().await;
    stage.own.asked();
    let _running = stage.start();
    stage
        .release("late-dev", "dev", &[config_map("shop-dev", "late", "1")])
        .await;
    stage.until_ready("late-dev").await;
    let asked: Vec<String> = stage.own.asked().into_iter().filter(about_web).collect();
    assert_eq!(asked, [""; 0]);
    let again = stage.releases().get("web-dev").await.unwrap();
    assert_eq!(again.status, ready.status);
    assert_eq!(again.metadata.generation, ready.metadata.generation);
}

/// Two applies within one second have the same time in the managed fields, because these times are whole
/// seconds. The controller still notices that it applied other content.
#[tokio::test]
async fn what_was_applied_and_not_written_down_is_put_right_within_the_same_second() {
    let mut stage = Stage::new().await;
    let moment: Timestamp = "2026-01-06T12:00:00Z".parse().unwrap();
    stage.own.store = stage.own.store.at(Arc::new(move || moment));
    let admin = stage.own.admin();
    let settings = |value| config_map("shop-dev", "settings", value);
    let running = stage.start();
    stage.release("web-dev", "dev", &[settings("1")]).await;
    stage.until_ready("web-dev").await;
    // The controller applies the next version and is killed before it writes the status.
    stage
        .own
        .rule(|_, path| match path.ends_with("/web-dev/status") {
            true => Fate::Hang,
            false => Fate::Pass,
        });
    stage.release("web-dev", "dev", &[settings("2")]).await;
    let is_second = |it: &DynamicObject| it.data["data"]["value"] == "2";
    until(api(&admin, &settings("2")), is_second).await.unwrap();
    running.kill().await;
    stage.own.pass();
    stage.release("web-dev", "dev", &[settings("1")]).await;
    let _running = stage.start();
    stage.until_ready("web-dev").await;
    let found = get(&admin, &settings("1")).await.unwrap();
    assert_eq!(found["data"]["value"], "1");
}

/// Triggers a pass over a RenderedRelease. Does not change the spec.
async fn nudge(stage: &Stage, name: &str) {
    let patch =
        json!({"metadata": {"finalizers": [labels::DATAPLANE_CLEANUP, "shop.example/other"]}});
    let params = PatchParams::default();
    stage
        .releases()
        .patch(name, &params, &Patch::Merge(&patch))
        .await
        .unwrap();
}

#[tokio::test]
async fn drift_is_repaired_whatever_it_is() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let web = deployment("shop-dev", "web", 2, "shop/web:v1");
    let settings = config_map("shop-dev", "settings", "1");
    stage
        .release("web-dev", "dev", &[web.clone(), settings.clone()])
        .await;
    let release = stage.until_ready("web-dev").await;
    let admin = stage.own.admin();
    // A user scales the workload, edits data, removes one label, removes all labels, and deletes an object.
    tamper(&stage.own, &web, json!({"spec": {"replicas": 7}})).await;
    until(api(&admin, &web), |it| {
        it.name_any() == "web" && it.data["spec"]["replicas"] == 2
    })
    .await
    .unwrap();
    tamper(&stage.own, &settings, json!({"data": {"value": "2"}})).await;
    until(api(&admin, &settings), |it| it.data["data"]["value"] == "1")
        .await
        .unwrap();
    for patch in [
        json!({"metadata": {"labels": {labels::RELEASE_UID: null}}}),
        json!({"metadata": {"labels": {labels::RELEASE_UID: "somebody"}}}),
        json!({"metadata": {"labels": {labels::MANAGED_BY: null}}}),
        json!({"metadata": {"labels": null}}),
    ] {
        tamper(&stage.own, &settings, patch).await;
        until(api(&admin, &settings), |it| {
            it.labels().get(labels::RELEASE_UID) == release.metadata.uid.as_ref()
                && it.labels().contains_key(labels::MANAGED_BY)
        })
        .await
        .unwrap();
    }
    let before = get(&admin, &settings).await.unwrap();
    api(&admin, &settings)
        .delete("settings", &Default::default())
        .await
        .unwrap();
    let again = until(api(&admin, &settings), |it| it.data["data"]["value"] == "1")
        .await
        .unwrap();
    assert_ne!(
        Some(before["metadata"]["uid"].as_str().unwrap()),
        again.uid().as_deref()
    );
    // The controller keeps a field that a user added.
    tamper(&stage.own, &settings, json!({"data": {"more": "x"}})).await;
    tamper(&stage.own, &settings, json!({"data": {"value": "3"}})).await;
    let repaired = until(api(&admin, &settings), |it| {
        it.data["data"]["value"] == "1" && it.data["data"]["more"] == "x"
    });
    repaired.await.unwrap();
    stage.until_ready("web-dev").await;
}

#[tokio::test]
async fn what_is_somebody_elses_is_not_taken() {
    let stage = Stage::new().await;
    let admin = stage.own.admin();
    namespace(&admin, "shop-dev").await;
    let theirs = put(&admin, config_map("shop-dev", "settings", "theirs")).await;
    // No field conflicts here, so the API server would accept the apply without an error.
    let same = put(&admin, config_map("shop-dev", "same", "1")).await;
    let _running = stage.start();
    let wanted = [
        config_map("shop-dev", "settings", "ours"),
        config_map("shop-dev", "same", "1"),
        config_map("shop-dev", "new", "1"),
    ];
    stage.release("web-dev", "dev", &wanted).await;
    let release = stage
        .until_reason("web-dev", condition::READY, condition::APPLY_FAILED)
        .await;
    let (_, _, message) = said(&release, condition::APPLIED).unwrap();
    assert!(
        message.contains("r0: an object that bowline does not own")
            && message.contains("written by somebody"),
        "{message}"
    );
    assert!(
        message.contains("r1: an object that bowline does not own"),
        "{message}"
    );
    // The controller still applies the other resources.
    assert_eq!(
        entry(&release, "ConfigMap", "new").unwrap().health,
        Health::Healthy
    );
    for (before, wanted) in [(theirs, &wanted[0]), (same, &wanted[1])] {
        let now = get(&admin, wanted).await.unwrap();
        assert_eq!(
            now["metadata"]["resourceVersion"].as_str(),
            before.resource_version().as_deref()
        );
    }
    // When the user sets the adopt annotation, the controller takes over the objects.
    for object in &wanted[..2] {
        tamper(
            &stage.own,
            object,
            json!({"metadata": {"annotations": {labels::ADOPT: "true"}}}),
        )
        .await;
    }
    stage.until_ready("web-dev").await;
    assert_eq!(
        get(&admin, &wanted[0]).await.unwrap()["data"]["value"],
        "ours"
    );
}

#[tokio::test]
async fn two_releases_do_not_fight_over_an_object() {
    let stage = Stage::new().await;
    let _running = stage.start();
    stage
        .release("a-dev", "dev", &[config_map("shop-dev", "shared", "a")])
        .await;
    stage.until_ready("a-dev").await;
    stage
        .release("b-dev", "dev", &[config_map("shop-dev", "shared", "b")])
        .await;
    let b = stage
        .until_reason("b-dev", condition::READY, condition::APPLY_FAILED)
        .await;
    let (_, _, message) = said(&b, condition::READY).unwrap();
    assert!(
        message.contains("belongs to the RenderedRelease a-dev in namespace default"),
        "{message}"
    );
    let shared = get(&stage.own.admin(), &config_map("shop-dev", "shared", ""))
        .await
        .unwrap();
    assert_eq!(shared["data"]["value"], "a");
    // The deletion of the second RenderedRelease deletes no object of the first.
    stage.delete("b-dev").await;
    stage.until_gone("b-dev").await;
    assert!(
        get(&stage.own.admin(), &config_map("shop-dev", "shared", ""))
            .await
            .is_some()
    );
}

#[tokio::test]
async fn a_release_that_was_restored_takes_its_resources_over() {
    let stage = Stage::new().await;
    let running = stage.start();
    let objects = [config_map("shop-dev", "settings", "1")];
    stage.release("web-dev", "dev", &objects).await;
    stage.until_ready("web-dev").await;
    running.stop().await;
    // The test simulates a control plane that is lost and created again: the new RenderedRelease has the same
    // name and another uid.
    let patch = json!({"metadata": {"finalizers": null}});
    stage
        .releases()
        .patch("web-dev", &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
    stage.delete("web-dev").await;
    stage.until_gone("web-dev").await;
    let _running = stage.start();
    let release = stage.release("web-dev", "dev", &objects).await;
    stage.until_ready("web-dev").await;
    let settings = get(&stage.own.admin(), &objects[0]).await.unwrap();
    assert_eq!(
        settings["metadata"]["labels"][labels::RELEASE_UID],
        json!(release.metadata.uid)
    );
}

#[tokio::test]
async fn health_follows_the_generation_and_names_the_worst() {
    let mut stage = Stage::new().await;
    stage.simulator.faulty = vec!["shop/web:v2".to_owned()];
    let _running = stage.start();
    let of = |image: &str| {
        [
            deployment("shop-dev", "web", 2, image),
            config_map("shop-dev", "settings", "1"),
        ]
    };
    stage.release("web-dev", "dev", &of("shop/web:v1")).await;
    stage.until_ready("web-dev").await;
    stage.release("web-dev", "dev", &of("shop/web:v2")).await;
    let bad = stage
        .until_reason("web-dev", condition::READY, condition::DEGRADED)
        .await;
    let (_, _, message) = said(&bad, condition::READY).unwrap();
    assert!(
        message.starts_with("web: 2 of 2 ready, CrashLoopBackOff"),
        "{message}"
    );
    assert_eq!(
        entry(&bad, "ConfigMap", "settings").unwrap().health,
        Health::Healthy
    );
    stage.release("web-dev", "dev", &of("shop/web:v1")).await;
    let good = stage.until_ready("web-dev").await;
    assert_eq!(
        good.status.unwrap().observed_generation,
        good.metadata.generation
    );
}

#[tokio::test]
async fn times_of_observation_change_with_the_status_alone() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let web = deployment("shop-dev", "web", 1, "shop/web:v1");
    stage
        .release(
            "web-dev",
            "dev",
            &[web.clone(), config_map("shop-dev", "settings", "1")],
        )
        .await;
    let before = stage.until_ready("web-dev").await;
    stage
        .release(
            "web-dev",
            "dev",
            &[web, config_map("shop-dev", "settings", "2")],
        )
        .await;
    let after = stage.until_ready("web-dev").await;
    let of = |release| {
        entry(release, "Deployment", "web")
            .unwrap()
            .last_observed_time
            .clone()
    };
    assert_eq!(of(&before), of(&after));
    let of = |release| {
        entry(release, "ConfigMap", "settings")
            .unwrap()
            .applied
            .clone()
    };
    assert_ne!(of(&before), of(&after));
}

#[tokio::test]
async fn what_is_missing_is_waited_for() {
    let stage = Stage::new().await;
    let _running = stage.start();
    stage
        .release("web-qa", "qa", &[config_map("", "settings", "1")])
        .await;
    let release = stage
        .until_reason("web-qa", condition::READY, condition::ENVIRONMENT_MISSING)
        .await;
    assert_eq!(release.metadata.finalizers, None);
    stage
        .put(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Environment",
            "metadata": {"name": "qa", "namespace": "default"},
            "spec": {"dataPlaneRef": {"name": "qa"}, "namespace": "shop-qa"},
        }))
        .await;
    stage
        .until_reason("web-qa", condition::READY, condition::DATA_PLANE_MISSING)
        .await;
    stage
        .put(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "DataPlane",
            "metadata": {"name": "qa", "namespace": "default"}, "spec": {"context": {"name": "nowhere"}},
        }))
        .await;
    let release = stage
        .until_reason("web-qa", condition::READY, condition::DATA_PLANE_UNUSABLE)
        .await;
    let (_, _, message) = said(&release, condition::READY).unwrap();
    assert!(
        message.contains("the kubeconfig has no context nowhere"),
        "{message}"
    );
    stage
        .environment("qa", json!({"context": null, "inCluster": {}}), "shop-qa")
        .await;
    let release = stage.until_ready("web-qa").await;
    // A resource without a namespace gets the namespace of the environment.
    let settings = entry(&release, "ConfigMap", "settings").unwrap();
    assert_eq!(settings.namespace.as_deref(), Some("shop-qa"));
}

#[tokio::test]
async fn what_cannot_be_applied_is_said_beside_what_was() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let twice = config_map("shop-dev", "settings", "2");
    let objects = [
        config_map("shop-dev", "settings", "1"),
        twice,
        json!({"apiVersion": "shop.example/v1", "kind": "Queue", "metadata": {"name": "orders", "namespace": "shop-dev"}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop-dev"}}),
    ];
    stage.release("web-dev", "dev", &objects).await;
    let release = stage
        .until_reason("web-dev", condition::READY, condition::APPLY_FAILED)
        .await;
    let (_, _, message) = said(&release, condition::APPLIED).unwrap();
    for part in [
        "r1: resource r0 is the same object",
        "r2: Queue of shop.example is not served by the data plane",
        "r3: it has no metadata.name",
    ] {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(
        entry(&release, "ConfigMap", "settings").unwrap().health,
        Health::Healthy
    );
    // When the data plane serves the kind, the controller applies the resource by itself.
    stage.release("web-dev", "dev", &objects[2..3]).await;
    stage
        .until_reason("web-dev", condition::READY, condition::APPLY_FAILED)
        .await;
    stage.put(queues()).await;
    let release = stage.until_ready("web-dev").await;
    assert_eq!(
        entry(&release, "Queue", "orders").unwrap().health,
        Health::Healthy
    );
}
