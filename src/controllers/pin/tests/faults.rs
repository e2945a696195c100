//! Failures of a reconcile: the status reports the failure, running resources stay unchanged, and a retry
//! succeeds after the cause is fixed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::json;

use super::*;
use crate::api::hold::Hold;
use crate::api::{Release, RenderedRelease};
use crate::testing::{DEFINITIONS, ENVIRONMENTS, NOW, reason};

const SETTINGS: &str = "
apiVersion: openchoreo.dev/v1alpha1
kind: EnvSettings
metadata: {name: NAME}
spec: {owner: {componentName: cart}, environment: dev, overrides: {message: MESSAGE}}
";

fn settings(name: &str, message: &str) -> String {
    SETTINGS.replace("NAME", name).replace("MESSAGE", message)
}

fn message(pin: &ReleasePin, type_: &str) -> String {
    let conditions = &pin.status.as_ref().unwrap().conditions;
    condition::find(conditions, type_).unwrap().message.clone()
}

#[tokio::test]
async fn a_release_that_is_missing_or_of_another_takes_nothing_away() {
    let shop = Shop::open().await;
    shop.release("1").await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    shop.pin("dev", "cart-1").await;
    shop.until_reason("dev", condition::RENDERED, "Rendered")
        .await;
    let rendered = shop.api::<RenderedRelease>();
    let before = rendered.get("cart-dev").await.unwrap();

    shop.pin("dev", "cart-9").await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::RELEASE_MISSING)
        .await;
    assert_eq!(
        message(&pin, condition::READY),
        "release cart-9 does not exist; the resources of cart-1 stay"
    );
    assert_eq!(
        reason(&pin, condition::RESOLVED),
        condition::RELEASE_MISSING
    );
    assert_eq!(reason(&pin, condition::RENDERED), condition::NOT_ATTEMPTED);
    let status = pin.status.unwrap();
    assert_eq!(status.applied_release.as_deref(), Some("cart-1"));
    let last = status.outcomes.last().unwrap();
    assert_eq!(
        (last.release.as_str(), last.healthy),
        ("cart-9", Some(false))
    );

    let mut other = shop.api::<Release>().get("cart-1").await.unwrap();
    other.metadata = kube::api::ObjectMeta::default();
    other.metadata.name = Some("search-1".to_owned());
    other.spec.component.name = "search".to_owned();
    shop.api()
        .create(&PostParams::default(), &other)
        .await
        .unwrap();
    shop.pin("dev", "search-1").await;
    let reason = condition::RELEASE_OF_ANOTHER_COMPONENT;
    let pin = shop.until_reason("dev", condition::READY, reason).await;
    assert_eq!(
        message(&pin, condition::RESOLVED),
        "release search-1 belongs to component search, not to cart"
    );
    let after = rendered.get("cart-dev").await.unwrap();
    assert_eq!(
        (after.spec, after.metadata.generation),
        (before.spec, Some(1))
    );

    // The ReleasePin names a missing release, which the test creates later.
    shop.pin("dev", "cart-9").await;
    shop.until_reason("dev", condition::READY, condition::RELEASE_MISSING)
        .await;
    shop.release("9").await;
    let pin = shop
        .until_reason("dev", condition::RENDERED, "Rendered")
        .await;
    assert_eq!(
        pin.status.unwrap().applied_release.as_deref(),
        Some("cart-9")
    );

    // The release is deleted after its claim label is removed.
    let label = json!({"metadata": {"labels": {labels::PINNED: null}}});
    let releases = shop.api::<Release>();
    running.stop().await;
    let params = PatchParams::default();
    releases
        .patch("cart-9", &params, &Patch::Merge(&label))
        .await
        .unwrap();
    releases
        .delete("cart-9", &DeleteParams::default())
        .await
        .unwrap();
    let (context, _) = shop.context();
    let running = start(&context, run);
    let pin = shop
        .until_reason("dev", condition::READY, condition::RELEASE_MISSING)
        .await;
    assert_eq!(
        pin.status.unwrap().applied_release.as_deref(),
        Some("cart-9")
    );
    let stays = rendered.get("cart-dev").await.unwrap();
    assert_eq!(stays.spec.resources.len(), 1);
    running.stop().await;
}

#[tokio::test]
async fn settings_and_environments_that_do_not_fit_are_told_by_path() {
    let shop = Shop::empty().await;
    shop.apply(DEFINITIONS).await;
    shop.release("1").await;
    shop.pin("dev", "cart-1").await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    let pin = shop
        .until_reason("dev", condition::READY, condition::ENVIRONMENT_MISSING)
        .await;
    assert_eq!(
        message(&pin, condition::RENDERED),
        "environment dev does not exist"
    );
    assert_eq!(reason(&pin, condition::RESOLVED), "Resolved");
    let environments = ENVIRONMENTS.replace("{name: here}\nspec", "{name: there}\nspec");
    shop.apply(&environments).await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::DATA_PLANE_MISSING)
        .await;
    assert_eq!(
        message(&pin, condition::READY),
        "the environment names data plane here, which does not exist"
    );
    shop.apply(ENVIRONMENTS).await;
    shop.until_reason("dev", condition::READY, condition::NOT_OBSERVED)
        .await;

    shop.apply(&settings("one", "a message that is much too long"))
        .await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::RENDER_FAILED)
        .await;
    let told = message(&pin, condition::RENDERED);
    assert!(told.contains("message"), "{told}");
    // The old resources still run, so the failure does not make the outcome unhealthy.
    let outcome = pin.status.unwrap().outcomes.pop().unwrap();
    assert_eq!(outcome.healthy, None);
    shop.apply(&settings("one", "bye")).await;
    shop.until_reason("dev", condition::RENDERED, "Rendered")
        .await;
    let rendered = shop.api::<RenderedRelease>();
    let found = rendered.get("cart-dev").await.unwrap();
    assert_eq!(found.spec.resources[0].object["data"]["message"], "bye");

    shop.apply(&settings("two", "hi")).await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::SETTINGS_AMBIGUOUS)
        .await;
    let told = message(&pin, condition::RENDERED);
    assert!(
        told.starts_with("the EnvSettings one and two are both for cart in dev"),
        "{told}"
    );
    let gone = DeleteParams::default();
    shop.api::<EnvSettings>()
        .delete("one", &gone)
        .await
        .unwrap();
    shop.until_reason("dev", condition::RENDERED, "Rendered")
        .await;
    let found = rendered.get("cart-dev").await.unwrap();
    assert_eq!(found.spec.resources[0].object["data"]["message"], "hi");
    running.stop().await;
}

#[tokio::test]
async fn the_deletion_of_the_kind_of_the_settings_changes_nothing_that_runs() {
    let shop = Shop::open().await;
    shop.release("1").await;
    shop.release("2").await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    shop.apply(&settings("one", "bye")).await;
    shop.pin("dev", "cart-1").await;
    let rendered = shop.api::<RenderedRelease>();
    let said = |found: Option<&RenderedRelease>| {
        let found = found.map(|found| found.spec.resources[0].object["data"]["message"].clone());
        found == Some(json!("bye"))
    };
    shop.until("cart-dev", said).await;
    let before = rendered.get("cart-dev").await.unwrap();

    let kinds: Api<CustomResourceDefinition> = Api::all(shop.client.clone());
    let kind = EnvSettings::crd_name();
    let now = DeleteParams::default();
    kinds.delete(kind, &now).await.unwrap();
    let pin = shop
        .until_reason("dev", condition::RENDERED, condition::SETTINGS_UNKNOWN)
        .await;
    let told = message(&pin, condition::READY);
    assert!(
        told.starts_with("the settings of cart in dev are not known, because the kind envsettings"),
        "{told}"
    );
    // A change of the ReleasePin or a restart of the controller does not hide the failure.
    shop.pin("dev", "cart-2").await;
    shop.until_reason("dev", condition::RENDERED, condition::SETTINGS_UNKNOWN)
        .await;
    running.stop().await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    shop.pin("dev", "cart-1").await;
    shop.until_reason("dev", condition::RENDERED, condition::SETTINGS_UNKNOWN)
        .await;
    let after = rendered.get("cart-dev").await.unwrap();
    assert_eq!(
        (after.spec, after.metadata.generation),
        (before.spec, before.metadata.generation)
    );

    // When the kind and its objects exist again, the controller renders the ReleasePin again.
    let gone = |found: Option<&CustomResourceDefinition>| found.is_none();
    let gone = kube::runtime::wait::await_condition(kinds.clone(), kind, gone);
    gone.await.unwrap();
    let post = PostParams::default();
    kinds.create(&post, &EnvSettings::crd()).await.unwrap();
    shop.apply(&settings("one", "again")).await;
    let said = |found: Option<&RenderedRelease>| {
        let found = found.map(|found| found.spec.resources[0].object["data"]["message"].clone());
        found == Some(json!("again"))
    };
    shop.until("cart-dev", said).await;
    shop.until_reason("dev", condition::RENDERED, "Rendered")
        .await;
    running.stop().await;
}

/// Writes the definitions of cart to a repository, and creates a release that refers to them.
async fn by_reference(shop: &Shop, name: &str) -> std::path::PathBuf {
    let path = shop.folder.path().join("definitions.git");
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git")
            .args(["-c", "user.name=Ana", "-c", "user.email=ana@example.com"])
            .args(arguments)
            .current_dir(&path)
            .output()
            .unwrap();
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    if !path.exists() {
        std::fs::create_dir(&path).unwrap();
        git(&["init", "-q", "-b", "main"]);
        std::fs::write(path.join("all.yaml"), DEFINITIONS).unwrap();
        git(&["add", "."]);
        git(&["commit", "-q", "-m", "definitions"]);
    }
    let reference = json!({"repository": format!("file://{}", path.display()), "revision": git(&["rev-parse", "HEAD"]), "path": "all.yaml"});
    let release = json!({
        "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Release", "metadata": {"name": name},
        "spec": {
            "component": {"name": "cart", "gitRef": reference},
            "componentTypeDefinition": {"name": "web", "gitRef": reference},
            "workload": {"apiVersion": "openchoreo.dev/v1alpha1", "kind": "Workload", "metadata": {"name": "cart"}, "spec": {"image": "shop/cart:git"}},
        },
    });
    let release: Release = serde_json::from_value(release).unwrap();
    shop.api()
        .create(&PostParams::default(), &release)
        .await
        .unwrap();
    path
}

#[tokio::test]
async fn a_repository_that_is_gone_is_told_and_a_snapshot_needs_none() {
    let shop = Shop::open().await;
    let repository = by_reference(&shop, "cart-git").await;
    let away = shop.folder.path().join("away");
    std::fs::rename(&repository, &away).unwrap();
    shop.pin("dev", "cart-git").await;
    let planner = Planner::open(&shop).await;
    let (done, _) = planner.reconcile(&shop, "dev").await;
    assert!(
        matches!(done, Err(PinError::Step { .. })),
        "it is tried again"
    );
    let pin = shop.get_pin("dev").await;
    assert_eq!(reason(&pin, condition::READY), condition::GIT_FETCH_FAILED);
    let told = message(&pin, condition::RESOLVED);
    for part in [
        "component cart",
        "all.yaml",
        "definitions.git",
        "cannot read",
    ] {
        assert!(told.contains(part), "{told} has no {part}");
    }
    std::fs::rename(&away, &repository).unwrap();
    let (done, _) = planner.reconcile(&shop, "dev").await;
    done.unwrap();
    let pin = shop.get_pin("dev").await;
    assert_eq!(reason(&pin, condition::RENDERED), "Rendered");
    planner.close();

    // The snapshot has the definitions, so the controller needs neither the repository nor the git cache.
    std::fs::remove_dir_all(&repository).unwrap();
    std::fs::remove_dir_all(shop.folder.path().join("git-cache")).unwrap();
    let planner = Planner::open(&shop).await;
    let (done, asked) = planner.reconcile(&shop, "dev").await;
    done.unwrap();
    let snapshot = pin.status.unwrap().snapshot.unwrap();
    let expected = [
        "GET releases/cart-git".to_owned(),
        format!("GET componentenvsnapshots/{snapshot}"),
    ];
    assert_eq!(asked, expected);
    planner.close();
}

fn hold(release: &str, until: &str) -> Hold {
    serde_json::from_value(json!({
        "id": "one", "owner": "ana", "since": "2026-01-06T11:00:00Z", "until": until, "release": release,
    }))
    .unwrap()
}

#[tokio::test]
async fn a_hold_counts_until_it_ends_and_stays_listed() {
    let shop = Shop::open().await;
    for version in ["1", "2"] {
        shop.release(version).await;
    }
    shop.hold(
        "dev",
        "cart-2",
        vec![hold("cart-1", "2026-01-06T12:00:30Z")],
    )
    .await;
    let planner = Planner::open(&shop).await;
    let (done, _) = planner.reconcile(&shop, "dev").await;
    assert_eq!(done.unwrap(), Action::requeue(Duration::from_secs(30)));
    let applied = async || shop.get_pin("dev").await.status.unwrap().applied_release;
    assert_eq!(applied().await.as_deref(), Some("cart-1"));
    for release in ["cart-1", "cart-2"] {
        planner.claimed(release).await;
    }
    shop.at("2026-01-06T12:00:30Z");
    let (done, _) = planner.reconcile(&shop, "dev").await;
    assert_eq!(done.unwrap(), Action::await_change());
    assert_eq!(applied().await.as_deref(), Some("cart-2"));
    let pin = shop.get_pin("dev").await;
    assert_eq!(pin.spec.holds.len(), 1);
    assert_eq!(pin.status.unwrap().outcomes.len(), 1, "one per generation");

    // A hold without an end, on a ReleasePin that a GitOps tool owns.
    let owned = json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "shop"}}});
    let pins = shop.api::<ReleasePin>();
    let params = PatchParams::default();
    pins.patch("cart-dev", &params, &Patch::Merge(&owned))
        .await
        .unwrap();
    let (done, _) = planner.reconcile(&shop, "dev").await;
    assert_eq!(done.unwrap(), Action::await_change());
    assert_eq!(applied().await.as_deref(), Some("cart-1"));
    planner.close();
    assert_eq!(NOW, "2026-01-06T12:00:00Z");
}
