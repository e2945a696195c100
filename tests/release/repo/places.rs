//! Tests of the paths at which bowline creates files. bowline must read such a path again later, so it never
//! writes to an ignored path or outside of the repository.

use bowline::api::ReleasePin;
use bowline::gitops::tree;
use kube::api::{Api, PostParams};

use super::api::options;
use super::{Shop, pin};

const PROMOTE: &str = "promote cart --from dev --to staging";

/// Runs a command that would create an object, twice. Both times bowline must refuse the command and create
/// no file.
fn refused(shop: &Shop, line: &str, code: i32, words: &str) {
    let (head, status) = (shop.head(), shop.status());
    for _ in 0..2 {
        shop.ends(line, code, words);
        assert_eq!((shop.head(), shop.status()), (head.clone(), status.clone()));
    }
}

#[test]
fn a_pin_is_not_written_where_it_is_not_seen() {
    // The target file contains another document, which cannot be read.
    let shop = Shop::open(&["cart"]);
    let broken = pin("cart", "staging", "cart-1") + "---\nkind: ConfigMap\nmode: 0644\n";
    shop.write("pins/staging/cart.yaml", &broken);
    shop.commit("something beside it");
    let words = "cannot add ReleasePin cart-staging: pins/staging/cart.yaml may contain it";
    refused(&shop, PROMOTE, 5, words);
    refused(
        &shop,
        "deploy cart -e staging --release cart-3 --skip-path --reason x",
        5,
        "hint: list the problems of the file: bowline check",
    );
    // The target file is a patch of a kustomization.
    shop.git("rm -q pins/staging/cart.yaml");
    shop.write("pins/staging/cart.yaml", "kind: ConfigMap\n");
    shop.write(
        "pins/staging/kustomization.yaml",
        "patches:\n- path: cart.yaml\n",
    );
    shop.commit("a patch");
    refused(&shop, PROMOTE, 5, "pins/staging");
    // The target file is a link that leaves the repository.
    shop.git("rm -q -r pins/staging");
    let outside = shop.place.path().join("outside.yaml");
    std::fs::create_dir_all(shop.root.join("pins/staging")).unwrap();
    std::fs::write(&outside, "mine: 1\n").unwrap();
    let link = shop.root.join("pins/staging/cart.yaml");
    std::os::unix::fs::symlink(&outside, link).unwrap();
    shop.commit("a link");
    refused(&shop, PROMOTE, 5, "pins/staging");
    // The target directory is a link that leaves the repository.
    shop.git("rm -q -r pins/staging");
    std::os::unix::fs::symlink(shop.place.path(), shop.root.join("pins/staging")).unwrap();
    shop.commit("a linked directory");
    refused(&shop, PROMOTE, 5, "pins/staging");
    assert!(!shop.place.path().join("cart.yaml").exists());
    shop.git("rm -q pins/staging");
    // The configured layout leads into a chart, or to a path that git ignores.
    for (path, more, words) in [
        (
            "chart/templates/{name}.yaml",
            "chart/Chart.yaml",
            "which is a template of a chart",
        ),
        ("ignored/{name}.yaml", ".gitignore", "which git ignores"),
    ] {
        shop.write(
            ".bowline.toml",
            &format!("[layout]\nReleasePin = {path:?}\n"),
        );
        shop.write(more, "ignored/\n");
        shop.commit("a layout");
        refused(&shop, PROMOTE, 5, words);
    }
    shop.write(
        ".bowline.toml",
        "[layout]\nReleasePin = \"seen/{name}.yaml\"\n",
    );
    shop.commit("a better layout");
    shop.ends(PROMOTE, 0, "cart in staging: nothing -> cart-2");
    shop.ends(PROMOTE, 0, "(no change)");
}

fn settings(name: &str, environment: &str, more: &str) -> String {
    format!(
        "apiVersion: openchoreo.dev/v1alpha1\nkind: EnvSettings\nmetadata: {{name: {name}, namespace: shop}}\nspec: {{owner: {{componentName: cart}}, environment: {environment:?}{more}}}\n"
    )
}

#[test]
fn what_is_applied_is_seen_or_leaves_nothing() {
    let shop = Shop::open(&["cart"]);
    let wanted = shop.place.path().join("wanted.yaml");
    let apply = format!("apply -f {}", wanted.display());
    std::fs::write(&wanted, settings("cart-dev", "dev", "")).unwrap();
    shop.write(".gitignore", "ignored/\n");
    shop.write(
        ".bowline.toml",
        "[layout]\nEnvSettings = \"ignored/{environment}/{component}.yaml\"\n",
    );
    shop.commit("a layout");
    refused(&shop, &apply, 1, "which git ignores");
    assert!(!shop.root.join("ignored").exists());

    let broken = settings("cart-prod", "prod", ", overrides: {mode: 0644}");
    shop.write("s.yaml", &broken);
    shop.write(".bowline.toml", "[layout]\nEnvSettings = \"s.yaml\"\n");
    shop.commit("another layout");
    refused(&shop, &apply, 1, "s.yaml, which has something wrong in it");
    assert_eq!(shop.read("s.yaml"), broken);
}

#[test]
fn no_word_of_an_object_leads_out_of_the_work_tree() {
    let shop = Shop::open(&["cart"]);
    let victim = shop.place.path().join("victim/cart.yaml");
    std::fs::create_dir_all(victim.parent().unwrap()).unwrap();
    std::fs::write(&victim, "keep: me\n").unwrap();
    let wanted = shop.place.path().join("wanted.yaml");
    std::fs::write(&wanted, settings("evil", "../../victim", "")).unwrap();
    let apply = format!("apply -f {}", wanted.display());
    refused(
        &shop,
        &apply,
        1,
        "its environment is \"../../victim\", which cannot be part of a file's path",
    );
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "keep: me\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_to_the_files_a_moment_ago_is_not_made_once_more() {
    let shop = Shop::open(&["cart"]);
    let (served, _tree) = tree::open(options(&shop)).await.unwrap();
    let pins: Api<ReleasePin> = Api::default_namespaced(served.client("shop"));
    shop.write("mine.yaml", &pin("mail", "dev", "mail-1"));
    let wanted = serde_json::json!({
        "metadata": {
            "name": "mail-dev",
            "labels": {"openchoreo.dev/component": "mail", "openchoreo.dev/environment": "dev"},
        },
        "spec": {"component": "mail", "environment": "dev", "releaseRef": {"name": "mail-2"}},
    });
    let mut wanted: ReleasePin = serde_json::from_value(wanted).unwrap();
    wanted.metadata.namespace = Some("shop".to_owned());
    let refused = pins.create(&PostParams::default(), &wanted).await;
    let said = refused.unwrap_err().to_string();
    assert!(said.contains("already exists"), "{said}");
    assert_eq!(shop.status(), "?? mine.yaml");
}
