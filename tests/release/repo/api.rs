//! Tests of the API that serves the files of a work tree as objects. Reads return the current files, writes
//! edit the files, and only changed files are read again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline::api::{AuditEntry, Release, ReleasePin, RenderedRelease};
use bowline::gitops::tree::{self, Layout, Tree, TreeOptions};
use futures::StreamExt;
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::runtime::watcher::{self, watcher};
use kube_embedded::Embedded;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::{Shop, component, pin, release};

pub fn options(shop: &Shop) -> TreeOptions {
    TreeOptions {
        directory: shop.root.clone(),
        cache: Some(shop.place.path().join("cache")),
        namespace: None,
        beside: None,
        user: None,
        account: "ana".to_owned(),
        variables: std::env::vars_os().collect(),
        layout: Layout::default(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_follow_the_files_and_writes_edit_them() {
    let shop = Shop::open(&["cart"]);
    let (served, tree) = tree::open(options(&shop)).await.unwrap();
    assert_eq!(tree.namespace(), "shop");
    let client = served.client("shop");
    let pins: Api<ReleasePin> = Api::default_namespaced(client);
    assert_eq!(
        pins.list(&ListParams::default()).await.unwrap().items.len(),
        3
    );

    // This process and the next one read only changed files again.
    settle(&served, &tree).await;
    let quiet = tree.sync(&served).await.unwrap();
    assert_eq!(quiet.read, 0);
    shop.write("pins/staging/cart.yaml", &pin("cart", "staging", "cart-3"));
    let synced = tree.sync(&served).await.unwrap();
    assert_eq!((synced.read, synced.stored), (1, 1));
    let found = pins.get("cart-staging").await.unwrap();
    assert_eq!(found.spec.release_ref.name, "cart-3");
    assert_eq!(
        found.metadata.generation,
        Some(2),
        "one more than the log knows"
    );

    // A watch reports changed, new and deleted files.
    tree.follow(&served);
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

    // A write edits one line of one file, and the answer contains the new state.
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
    // The validation rules of the API also apply to files.
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
async fn templates_and_patches_are_no_objects_and_what_they_do_to_release_pins_is_reported() {
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
    let (served, tree) = tree::open(options(&shop)).await.unwrap();
    let pins: Api<ReleasePin> = Api::namespaced(served.client("shop"), "shop");
    assert_eq!(
        pins.list(&ListParams::default()).await.unwrap().items.len(),
        3
    );
    assert_eq!(
        pins.get("cart-prod").await.unwrap().spec.release_ref.name,
        "cart-1"
    );
    tree.whole(&served).await.unwrap();
    let problems: Vec<String> = tree
        .problems()
        .into_iter()
        .map(|problem| problem.what)
        .collect();
    let said = problems.join("\n");
    assert_eq!(problems.len(), 6, "{said}");
    for words in [
        "chart/templates/pin.yaml: a template makes a ReleasePin",
        "overlay/patch.yaml:1: a patch changes a ReleasePin",
        "broken.yaml:",
        "twice.yaml:",
        "wrong.yaml:",
        "is in components/cart.yaml:1 already",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // The API does not delete a release whose file a kustomization names, because the kustomization could not
    // be built without the file.
    shop.git("rm -q --cached -r --ignore-unmatch ignored");
    for folder in ["chart", "overlay"] {
        std::fs::remove_dir_all(shop.root.join(folder)).unwrap();
    }
    std::fs::remove_file(shop.root.join("wrong.yaml")).unwrap();
    std::fs::remove_file(shop.root.join("broken.yaml")).unwrap();
    std::fs::remove_file(shop.root.join("twice.yaml")).unwrap();
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

/// If two files contain the same object, the API returns the object of the first file. When the object is
/// removed from the first file, the API returns the object of the second file, which did not change.
#[tokio::test(flavor = "multi_thread")]
async fn what_another_file_held_first_is_served_when_that_one_goes() {
    let shop = Shop::open(&["cart"]);
    shop.write("again/a.yaml", &pin("mail", "dev", "mail-1"));
    shop.write("again/b.yaml", &pin("mail", "dev", "mail-2"));
    let names = |path| format!("patches:\n  - path: {path}\n");
    shop.write("again/kustomization.yaml", &names("c.yaml"));
    shop.write("again/c.yaml", &pin("mail", "prod", "mail-3"));
    let (served, tree) = tree::open(options(&shop)).await.unwrap();
    let pins: Api<ReleasePin> = Api::default_namespaced(served.client("shop"));
    let named = async |pin: &str| {
        let found = pins.get_opt(pin).await.unwrap();
        found.map(|pin| pin.spec.release_ref.name)
    };
    settle(&served, &tree).await;
    assert_eq!(named("mail-dev").await.as_deref(), Some("mail-1"));
    assert_eq!(named("mail-prod").await, None, "a patch is no object");

    std::fs::remove_file(shop.root.join("again/a.yaml")).unwrap();
    let synced = tree.sync(&served).await.unwrap();
    assert_eq!((synced.read, synced.stored), (1, 1));
    assert_eq!(named("mail-dev").await.as_deref(), Some("mail-2"));

    // The first file is created again, first with another object and then with the same object.
    shop.write("again/a.yaml", &pin("mail", "staging", "mail-1"));
    settle(&served, &tree).await;
    assert_eq!(named("mail-dev").await.as_deref(), Some("mail-2"));
    shop.write("again/a.yaml", &pin("mail", "dev", "mail-1"));
    settle(&served, &tree).await;
    assert_eq!(named("mail-dev").await.as_deref(), Some("mail-1"));
    assert_eq!(named("mail-staging").await, None);

    shop.write("again/kustomization.yaml", &names("d.yaml"));
    settle(&served, &tree).await;
    assert_eq!(named("mail-prod").await.as_deref(), Some("mail-3"));
}

/// Lets the API read changed files until no file has to be read again. A file that was read during its write
/// is read twice.
async fn settle(served: &Embedded, tree: &Arc<Tree>) {
    while tree.sync(served).await.unwrap().read > 0 {}
}

/// Returns the names of all objects of a kind that the API returns.
async fn names<K>(served: &Embedded) -> Vec<String>
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let all: Api<K> = Api::all(served.client("shop"));
    let all = all.list_metadata(&ListParams::default()).await.unwrap();
    all.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_and_the_log_are_read_when_somebody_asks() {
    let shop = Shop::open(&["cart", "mail"]);
    // bowline reads releases late, but a file that also contains a ReleasePin must be read at once.
    let both = format!(
        "{}---\n{}",
        release("news", 1),
        pin("news", "dev", "news-1")
    );
    shop.write("news.yaml", &both);
    let (served, tree) = tree::open(options(&shop)).await.unwrap();
    settle(&served, &tree).await;
    drop((served, tree));

    std::fs::remove_dir_all(shop.place.path().join("cache")).unwrap();
    let (served, tree) = tree::open(options(&shop)).await.unwrap();
    assert_eq!(names::<ReleasePin>(&served).await.len(), 7);
    let rest = tree.sync(&served).await.unwrap();
    let entries = 6;
    assert_eq!((rest.read, rest.stored), (6, 6 + entries), "{rest:?}");
    drop((served, tree));

    // The first request for releases or audit entries reads all of them. They are not read again.
    std::fs::remove_dir_all(shop.place.path().join("cache")).unwrap();
    let (served, tree) = tree::open(options(&shop)).await.unwrap();
    assert_eq!(names::<Release>(&served).await.len(), 7);
    assert_eq!(names::<AuditEntry>(&served).await.len(), entries);
    assert_eq!(tree.sync(&served).await.unwrap().read, 0);
    drop((served, tree));

    // If no request needed the releases, the next process reads them, and does not serve deleted files.
    std::fs::remove_dir_all(shop.place.path().join("cache")).unwrap();
    drop(tree::open(options(&shop)).await.unwrap());
    std::fs::remove_file(shop.root.join("releases/mail/mail-3.yaml")).unwrap();
    std::fs::remove_file(shop.root.join("pins/dev/mail.yaml")).unwrap();
    let (served, _tree) = tree::open(options(&shop)).await.unwrap();
    assert_eq!(names::<ReleasePin>(&served).await.len(), 6);
    assert_eq!(names::<Release>(&served).await.len(), 6);
    assert_eq!(names::<AuditEntry>(&served).await.len(), entries);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_stored_and_not_noted_is_not_served_for_ever() {
    let shop = Shop::open(&["cart"]);
    let folder = shop.place.path().join("cache/trees");
    let note = || {
        let mut trees = std::fs::read_dir(&folder).unwrap();
        trees.next().unwrap().unwrap().path().join("index.json")
    };
    let open = async || {
        let (served, tree) = tree::open(options(&shop)).await.unwrap();
        tree.whole(&served).await.unwrap();
        served
    };
    drop(open().await);
    let before = std::fs::read(note()).unwrap();
    for lost in [true, false] {
        shop.write("more.yaml", &pin("mail", "dev", "mail-1"));
        shop.write("releases/cart/cart-4.yaml", &release("cart", 4));
        assert_eq!(names::<Release>(&open().await).await.len(), 4);
        // The test restores the state of a process that was killed after it stored the objects and before it
        // wrote its index.
        match lost {
            true => std::fs::remove_file(note()).unwrap(),
            false => std::fs::write(note(), &before).unwrap(),
        }
        std::fs::remove_file(shop.root.join("more.yaml")).unwrap();
        std::fs::remove_file(shop.root.join("releases/cart/cart-4.yaml")).unwrap();
        let served = open().await;
        assert_eq!(names::<ReleasePin>(&served).await.len(), 3, "lost: {lost}");
        assert_eq!(names::<Release>(&served).await.len(), 3, "lost: {lost}");
        assert_eq!(names::<AuditEntry>(&served).await.len(), 3, "lost: {lost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_namespace_is_that_of_the_releases_where_nothing_else_names_one() {
    let shop = Shop::empty();
    let unnamed = |text: String| text.replace("  namespace: shop\n", "");
    shop.write("pin.yaml", &unnamed(pin("cart", "dev", "cart-1")));
    shop.write("release.yaml", &release("cart", 1));
    shop.commit("begin");
    let (served, tree) = tree::open(options(&shop)).await.unwrap();
    assert_eq!(tree.namespace(), "shop");
    let pins: Api<ReleasePin> = Api::namespaced(served.client("shop"), "shop");
    assert!(pins.get_opt("cart-dev").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_rendered_is_no_release_that_can_wait() {
    let shop = Shop::open(&["cart"]);
    shop.write("rendered.yaml", "apiVersion: core.choreo.dev/v1\nkind: Release\nmetadata:\n  name: cart-dev\n  namespace: shop\nspec:\n  owner: {projectName: default, componentName: cart}\n  environmentName: dev\n  resources: []\n");
    let (served, _tree) = tree::open(options(&shop)).await.unwrap();
    assert_eq!(names::<RenderedRelease>(&served).await, ["cart-dev"]);
}
