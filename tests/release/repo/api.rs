//! The API over files: reads follow them, writes edit them, and only what changed is read again.

use std::collections::BTreeMap;

use bowline::api::ReleasePin;
use bowline::embedded::Embedded;
use bowline::embedded::tree::{Layout, TreeOptions};
use futures::StreamExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::watcher::{self, watcher};
use serde_json::json;

use super::{Shop, component, pin, release};

fn options(shop: &Shop) -> TreeOptions {
    TreeOptions {
        directory: shop.root.clone(),
        cache: Some(shop.place.path().join("cache")),
        namespace: None,
        user: "ana".to_owned(),
        variables: std::env::vars_os().collect(),
        layout: Layout::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_follow_the_files_and_writes_edit_them() {
    let shop = Shop::open(&["cart"]);
    let (served, tree) = Embedded::over(options(&shop)).await.unwrap();
    assert_eq!(tree.namespace(), "shop");
    let client = served.client("shop");
    let pins: Api<ReleasePin> = Api::default_namespaced(client);
    assert_eq!(
        pins.list(&ListParams::default()).await.unwrap().items.len(),
        3
    );

    // Only what changed is read again, by this process and by the next.
    let quiet = served.sync(&tree).await.unwrap();
    assert_eq!(quiet.read, 0);
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-3"));
    let synced = served.sync(&tree).await.unwrap();
    assert_eq!((synced.read, synced.stored), (1, 1));
    let found = pins.get("cart-staging").await.unwrap();
    assert_eq!(found.spec.release_ref.name, "cart-3");
    assert_eq!(
        found.metadata.generation,
        Some(2),
        "one more than the log knows"
    );

    // A watch sees what an editor saves, what is new and what goes.
    served.follow(&tree);
    let mut events = std::pin::pin!(watcher(pins.clone(), watcher::Config::default()));
    let mut seen = BTreeMap::new();
    let mut until = async |wanted: &dyn Fn(&BTreeMap<String, String>) -> bool| {
        while !wanted(&seen) {
            match events.next().await.unwrap().unwrap() {
                watcher::Event::InitApply(pin) | watcher::Event::Apply(pin) => {
                    seen.insert(pin.metadata.name.unwrap(), pin.spec.release_ref.name);
                }
                watcher::Event::Delete(pin) => {
                    seen.remove(&pin.metadata.name.unwrap());
                }
                _ => {}
            }
        }
    };
    until(&|seen| seen.len() == 3).await;
    shop.write("pins/dev/cart.yaml", &pin("cart", "dev", "cart-1"));
    shop.write("more.yaml", &pin("mail", "dev", "mail-1"));
    until(&|seen| seen.get("cart-dev").is_some_and(|name| name == "cart-1") && seen.len() == 4)
        .await;
    std::fs::remove_file(shop.root.join("more.yaml")).unwrap();
    until(&|seen| !seen.contains_key("mail-dev")).await;

    // A write edits one line of one file, and is served.
    let patch = Patch::Merge(json!({"spec": {"releaseRef": {"name": "cart-2"}}}));
    let patched = pins
        .patch("cart-prod", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(patched.spec.release_ref.name, "cart-2");
    assert_eq!(
        shop.read("pins/prod/cart.yaml"),
        pin("cart", "prod", "cart-2")
    );
    assert!(
        shop.status().contains(" M pins/prod/cart.yaml"),
        "no commit: {}",
        shop.status()
    );
    // The rules hold as everywhere.
    let wrong = Patch::Merge(json!({"spec": {"component": "mail"}}));
    assert!(
        pins.patch("cart-prod", &PatchParams::default(), &wrong)
            .await
            .is_err()
    );
    pins.delete("cart-prod", &Default::default()).await.unwrap();
    assert!(!shop.root.join("pins/prod/cart.yaml").exists());
    let status = Patch::Merge(json!({"status": {"appliedRelease": "x"}}));
    let refused = pins
        .patch_status("cart-dev", &PatchParams::default(), &status)
        .await;
    assert!(refused.unwrap_err().to_string().contains("no status"));
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_and_kustomize_are_left_alone_and_what_is_broken_is_told() {
    let shop = Shop::open(&["cart"]);
    shop.write("chart/Chart.yaml", "name: x\n");
    shop.write(
        "chart/templates/pin.yaml",
        "{{ if .Values.pin }}\nkind: ReleasePin\napiVersion: openchoreo.dev/v1alpha1\n{{ end }}\n",
    );
    shop.write(
        "overlay/kustomization.yaml",
        "resources: [../pins/prod/cart.yaml]\npatches:\n  - path: patch.yaml\n",
    );
    shop.write("overlay/patch.yaml", "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePin\nmetadata: {name: cart-prod, namespace: shop}\nspec: {releaseRef: {name: cart-3}}\n");
    shop.write(
        "broken.yaml",
        "apiVersion: openchoreo.dev/v1alpha1\nkind: [Release\n",
    );
    shop.write("twice.yaml", &component("cart"));
    shop.write(
        "wrong.yaml",
        &release("cart", 7).replace("workload:", "werkload:"),
    );
    shop.write(
        "ignored/pin.yaml",
        "kind: ReleasePin\napiVersion: openchoreo.dev/v1alpha1\n",
    );
    shop.write(".gitignore", "ignored/\n");
    let (served, tree) = Embedded::over(options(&shop)).await.unwrap();
    let pins: Api<ReleasePin> = Api::namespaced(served.client("shop"), "shop");
    assert_eq!(
        pins.list(&ListParams::default()).await.unwrap().items.len(),
        3
    );
    assert_eq!(
        pins.get("cart-prod").await.unwrap().spec.release_ref.name,
        "cart-1"
    );
    let problems: Vec<String> = tree
        .problems()
        .into_iter()
        .map(|problem| problem.what)
        .collect();
    let said = problems.join("\n");
    assert_eq!(problems.len(), 4, "{said}");
    for words in [
        "broken.yaml:",
        "twice.yaml:",
        "wrong.yaml:",
        "is in components/cart.yaml already",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // A release whose file a kustomization names is not collected: nothing could be built without it.
    shop.git("rm -q --cached -r --ignore-unmatch ignored");
    std::fs::remove_file(shop.root.join("wrong.yaml")).unwrap();
    std::fs::remove_file(shop.root.join("broken.yaml")).unwrap();
    shop.write(
        "releases/cart/kustomization.yaml",
        "resources: [cart-3.yaml]\n",
    );
    shop.commit("all of it");
    shop.ends(
        "gc --keep 0 --min-age 0s --confirm",
        0,
        "a kustomization names releases/cart/cart-3.yaml",
    );
}
