use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use super::*;
use crate::api::bowline::audit::AuditEntry;
use crate::api::{ReleasePin, condition};
use crate::testing::{Shop, start};

async fn patch<K>(shop: &Shop, name: &str, change: serde_json::Value)
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let params = PatchParams::default();
    let api = shop.api::<K>();
    api.patch(name, &params, &Patch::Merge(&change))
        .await
        .unwrap();
}

async fn image(shop: &Shop, image: &str) {
    patch::<Workload>(shop, "cart", json!({"spec": {"image": image}})).await;
}

async fn releases(shop: &Shop) -> usize {
    let all = ListParams::default();
    shop.api::<Release>()
        .list_metadata(&all)
        .await
        .unwrap()
        .items
        .len()
}

/// Waits until the condition Deployed of the component has this reason and its latest release is not
/// `before`. Returns the latest release.
async fn until(shop: &Shop, reason: &str, before: &str) -> String {
    let wanted = |found: Option<&Component>| {
        let status = found
            .and_then(|found| found.status.clone())
            .unwrap_or_default();
        let said = condition::find(&status.conditions, condition::DEPLOYED);
        said.is_some_and(|said| said.reason == reason)
            && status.latest_release.is_some_and(|latest| latest != before)
    };
    let found = shop.until("cart", wanted).await.unwrap();
    found.status.unwrap().latest_release.unwrap()
}

async fn opened() -> Shop {
    let shop = Shop::open().await;
    patch::<Component>(&shop, "cart", json!({"spec": {"autoDeploy": true}})).await;
    shop
}

#[tokio::test]
async fn a_change_becomes_a_release_and_a_move_once() {
    let shop = opened().await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    let first = until(&shop, "AutoDeployed", "").await;
    let pin = shop.get_pin("dev").await;
    assert_eq!(pin.spec.release_ref.name, first);
    let operation = pin.operation().unwrap().unwrap();
    assert_eq!(operation.action, audit::Action::AutoDeploy);
    assert!(operation.rendered_hash.is_some());
    let entries = shop
        .api::<AuditEntry>()
        .list(&ListParams::default())
        .await
        .unwrap()
        .items;
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}");
    };
    assert_eq!(entry.spec.actor.as_deref(), Some("controller"));
    assert_eq!(entry.spec.operation, Some(operation.id));
    assert!(shop.api::<Release>().get(&first).await.unwrap().is_pinned());

    image(&shop, "shop/cart:2").await;
    let second = until(&shop, "AutoDeployed", &first).await;
    assert_eq!(shop.get_pin("dev").await.metadata.generation, Some(2));
    // The definitions are again those of the first release, so the controller creates no second release.
    image(&shop, "shop/cart").await;
    assert_eq!(until(&shop, "AutoDeployed", &second).await, first);
    assert_eq!(shop.get_pin("dev").await.spec.release_ref.name, first);
    assert_eq!(releases(&shop).await, 2);

    // The controller also deploys a change of the component type. It does not undo a later deployment by a
    // user.
    let resources = json!([{"id": "other", "template": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}}]);
    patch::<ComponentTypeDefinition>(&shop, "web", json!({"spec": {"resources": resources}})).await;
    let third = until(&shop, "AutoDeployed", &first).await;
    assert_eq!(shop.get_pin("dev").await.spec.release_ref.name, third);
    patch::<ReleasePin>(
        &shop,
        "cart-dev",
        json!({"spec": {"releaseRef": {"name": second}}}),
    )
    .await;
    running.stop().await;
    let (context, requests) = shop.context();
    let running = start(&context, run);
    image(&shop, "shop/cart:4").await;
    let fourth = until(&shop, "AutoDeployed", &third).await;
    let pin = shop.get_pin("dev").await;
    assert_eq!(pin.spec.release_ref.name, fourth);
    assert_eq!(
        pin.operation().unwrap().unwrap().from.unwrap().name,
        second,
        "it stayed"
    );
    assert_eq!(releases(&shop).await, 4);
    running.stop().await;
    assert!(requests.written() > 0);
}

#[tokio::test]
async fn what_is_held_or_owned_by_git_is_left_alone() {
    let shop = opened().await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    let first = until(&shop, "AutoDeployed", "").await;
    let hold = json!([{"id": "one", "owner": "ana", "since": "2026-01-06T11:00:00Z"}]);
    patch::<ReleasePin>(&shop, "cart-dev", json!({"spec": {"holds": hold}})).await;
    image(&shop, "shop/cart:2").await;
    let second = until(&shop, "Held", &first).await;
    assert_eq!(shop.get_pin("dev").await.spec.release_ref.name, first);
    assert_eq!(releases(&shop).await, 2, "the release is made");
    patch::<ReleasePin>(&shop, "cart-dev", json!({"spec": {"holds": null}})).await;
    assert_eq!(until(&shop, "AutoDeployed", &first).await, second);
    assert_eq!(shop.get_pin("dev").await.spec.release_ref.name, second);

    let owned = json!({"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "shop"}}});
    patch::<ReleasePin>(&shop, "cart-dev", owned).await;
    image(&shop, "shop/cart:3").await;
    until(&shop, "OwnedByGit", &second).await;
    assert_eq!(shop.get_pin("dev").await.spec.release_ref.name, second);
    running.stop().await;
}

#[tokio::test]
async fn a_release_of_the_same_content_is_used_whatever_it_is_called() {
    let shop = opened().await;
    let catalog = Catalog::fetch(&shop.client, "default", "cart")
        .await
        .unwrap();
    let definitions = catalog.definitions("cart").unwrap();
    let source = release_action::Source::Embedded;
    let made = release_action::release(&definitions, Some("1.0"), &source);
    shop.create(&made).await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    assert_eq!(until(&shop, "AutoDeployed", "").await, "cart-1.0");
    assert_eq!(releases(&shop).await, 1);
    running.stop().await;
}

#[tokio::test]
async fn what_is_missing_is_waited_for() {
    let shop = Shop::empty().await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    let component = crate::testing::DEFINITIONS.split("---").next().unwrap();
    shop.apply(component).await;
    patch::<Component>(&shop, "cart", json!({"spec": {"autoDeploy": true}})).await;
    let said = |found: Option<&Component>| {
        let status = found
            .and_then(|found| found.status.clone())
            .unwrap_or_default();
        let said = condition::find(&status.conditions, condition::DEPLOYED).cloned();
        said.is_some_and(|said| {
            said.reason == "NotComplete"
                && said
                    .message
                    .contains("ComponentTypeDefinition web does not exist")
        })
    };
    shop.until("cart", said).await;
    for document in crate::testing::DEFINITIONS.split("---").skip(1) {
        shop.apply(document).await;
    }
    until(&shop, "NoPipeline", "").await;
    shop.apply(crate::testing::ENVIRONMENTS).await;
    let release = until(&shop, "AutoDeployed", "").await;
    assert_eq!(shop.get_pin("dev").await.spec.release_ref.name, release);
    running.stop().await;
}

#[tokio::test]
async fn a_fault_of_the_pipelines_is_a_condition_and_passes_with_it() {
    let shop = opened().await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    let first = until(&shop, "AutoDeployed", "").await;
    let other = "apiVersion: openchoreo.dev/v1alpha1\nkind: DeploymentPipeline\nmetadata: {name: other}\nspec: {}";
    shop.apply(other).await;
    image(&shop, "shop/cart:2").await;
    let second = until(&shop, "SeveralPipelines", &first).await;
    let said = |found: Option<&Component>| {
        let status = found.and_then(|found| found.status.clone());
        let conditions = status.unwrap_or_default().conditions;
        let said = condition::find(&conditions, condition::DEPLOYED);
        said.is_some_and(|said| said.message.contains("(default, other)"))
    };
    shop.until("cart", said).await;
    assert_eq!(shop.get_pin("dev").await.spec.release_ref.name, first);
    let pipelines = shop.api::<crate::api::DeploymentPipeline>();
    let now = kube::api::DeleteParams::default();
    pipelines.delete("other", &now).await.unwrap();
    assert_eq!(until(&shop, "AutoDeployed", &first).await, second);
    let path = |from: &str, to: &str| json!({"sourceEnvironmentRef": {"name": from}, "targetEnvironmentRefs": [{"name": to}]});
    let paths = json!([
        path("dev", "a"),
        path("a", "b"),
        path("b", "c"),
        path("c", "a")
    ]);
    let circle = json!({"spec": {"promotionPaths": paths}});
    patch::<crate::api::DeploymentPipeline>(&shop, "default", circle).await;
    image(&shop, "shop/cart:3").await;
    until(&shop, "PipelineCycle", &second).await;
    assert_eq!(shop.get_pin("dev").await.spec.release_ref.name, second);
    running.stop().await;
}
