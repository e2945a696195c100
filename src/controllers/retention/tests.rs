use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::*;
use crate::api::{ComponentEnvSnapshot, Release, labels};
use crate::testing::{Shop, release_of, start};

async fn retention(shop: &Shop, retention: Value) {
    let patch = Patch::Merge(json!({"spec": {"retention": retention}}));
    let pipelines = shop.api::<DeploymentPipeline>();
    let params = PatchParams::default();
    pipelines.patch("default", &params, &patch).await.unwrap();
}

async fn names<K>(shop: &Shop) -> Vec<String>
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let found = shop.api::<K>().list_metadata(&ListParams::default()).await;
    let mut names: Vec<String> = found
        .unwrap()
        .items
        .iter()
        .map(|one| one.name_any())
        .collect();
    names.sort();
    names
}

async fn gone<K>(shop: &Shop, name: &str)
where
    K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned
        + Send
        + 'static,
{
    shop.until(name, |found: Option<&K>| found.is_none()).await;
}

#[tokio::test]
async fn a_new_release_lets_old_ones_go_that_nobody_needs() {
    let shop = Shop::open().await;
    for version in ["1", "2", "3"] {
        shop.create(&release_of(version)).await;
    }
    let mut owned = release_of("0");
    owned.labels_mut().insert(
        "kustomize.toolkit.fluxcd.io/name".to_owned(),
        "shop".to_owned(),
    );
    shop.create(&owned).await;
    shop.pin("dev", "cart-1").await;
    let (context, requests) = shop.context();
    let running = start(&context, run);
    // Retention is not enabled yet.
    shop.create(&release_of("4")).await;
    let key = Key::new("default", "cart-4");
    context
        .feed()
        .when(|world| world.release(&key).is_some())
        .await;
    assert_eq!(requests.written(), 0);

    // The controller keeps releases that are pinned, that git owns, or that are the newest two. It deletes
    // the others as soon as retention is enabled.
    retention(
        &shop,
        json!({"enabled": true, "keepReleases": 2, "minAge": "0s"}),
    )
    .await;
    gone::<Release>(&shop, "cart-2").await;
    assert_eq!(
        names::<Release>(&shop).await,
        ["cart-0", "cart-1", "cart-3", "cart-4"]
    );
    shop.create(&release_of("5")).await;
    gone::<Release>(&shop, "cart-3").await;
    assert_eq!(
        names::<Release>(&shop).await,
        ["cart-0", "cart-1", "cart-4", "cart-5"]
    );
    running.stop().await;
}

#[tokio::test]
async fn snapshots_go_too_but_never_the_current_one() {
    let shop = Shop::open().await;
    let pin = shop.pin("dev", "cart-1").await;
    let snapshots = shop.api::<ComponentEnvSnapshot>();
    let definition = |kind: &str| json!({"apiVersion": "openchoreo.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, "spec": {}});
    for name in ["a", "b", "c", "d"] {
        let snapshot = json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ComponentEnvSnapshot",
            "metadata": {"name": name, "labels": {labels::COMPONENT: "cart", labels::ENVIRONMENT: "dev"}},
            "spec": {
                "owner": {"componentName": "cart"}, "environment": "dev",
                "component": definition("Component"), "componentTypeDefinition": definition("ComponentTypeDefinition"),
                "workload": definition("Workload"),
            },
        });
        let snapshot: ComponentEnvSnapshot = serde_json::from_value(snapshot).unwrap();
        snapshots
            .create(&PostParams::default(), &snapshot)
            .await
            .unwrap();
    }
    let current = Patch::Merge(json!({"status": {"snapshot": "a"}}));
    let pins = shop.api::<crate::api::ReleasePin>();
    let params = PatchParams::default();
    pins.patch_status(&pin.name_any(), &params, &current)
        .await
        .unwrap();
    shop.create(&release_of("1")).await;
    retention(&shop, json!({"enabled": true, "keepSnapshots": 1})).await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    gone::<ComponentEnvSnapshot>(&shop, "b").await;
    gone::<ComponentEnvSnapshot>(&shop, "c").await;
    running.stop().await;
    assert_eq!(names::<ComponentEnvSnapshot>(&shop).await, ["a", "d"]);
    assert_eq!(names::<Release>(&shop).await, ["cart-1"]);
}

#[tokio::test]
async fn every_release_stays_while_a_rendered_release_has_lost_its_pin() {
    let shop = Shop::open().await;
    for version in ["1", "2", "3"] {
        shop.create(&release_of(version)).await;
    }
    retention(
        &shop,
        json!({"enabled": true, "keepReleases": 1, "minAge": "0s"}),
    )
    .await;
    // The kind ReleasePin was deleted and installed again. The RenderedRelease still exists, and the
    // controller keeps its release.
    let rendered = json!({
        "apiVersion": "core.choreo.dev/v1", "kind": "Release",
        "metadata": {
            "name": "cart-dev", "finalizers": [labels::DATAPLANE_CLEANUP],
            "ownerReferences": [{
                "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin", "name": "cart-dev", "uid": "gone",
            }],
        },
        "spec": {"owner": {"projectName": "shop", "componentName": "cart"}, "environmentName": "dev", "resources": []},
    });
    let rendered: crate::api::RenderedRelease = serde_json::from_value(rendered).unwrap();
    let stored = shop.api().create(&PostParams::default(), &rendered).await;
    stored.unwrap();
    let (context, requests) = shop.context();
    let shared = Shared {
        base: context.clone(),
        due: Mutex::default(),
        stopping: AtomicBool::new(false),
    };
    context.feed().when(World::is_live).await;
    let due = BTreeSet::from(["cart".to_owned()]);
    let refused = sweep(&shared, "default", &due).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "gc deletes nothing, because RenderedRelease cart-dev runs workloads and its ReleasePin does not exist"
    );
    assert_eq!(requests.written(), 0);
    assert_eq!(names::<Release>(&shop).await.len(), 3);
    // When the ReleasePin exists again, the controller deletes the other releases.
    shop.pin("dev", "cart-1").await;
    let key = Key::new("default", "cart-dev");
    context.feed().when(|world| world.pin(&key).is_some()).await;
    sweep(&shared, "default", &due).await.unwrap();
    assert_eq!(names::<Release>(&shop).await, ["cart-1", "cart-3"]);
}
