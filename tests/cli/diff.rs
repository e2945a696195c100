//! Tests of the verbs diff and revisions on an embedded store. They compare environments, revisions, live
//! objects and releases.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use bowline::api::Release;
use bowline::engine::controller_status;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use super::run;

/// An embedded store with the objects of deploy/examples. Each test has its own store.
struct Shop {
    home: tempfile::TempDir,
    store: PathBuf,
    /// The lock of the controllers. While the test holds this lock, no controller runs, so the store contains
    /// only the objects of the test.
    _controllers: File,
}

impl Shop {
    fn new() -> Shop {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join("store.db");
        let controllers = File::create(controller_status::lock_file(&store)).unwrap();
        controllers.lock().unwrap();
        let shop = Shop {
            home,
            store,
            _controllers: controllers,
        };
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples");
        shop.done(&format!("apply -R -f {}", examples.display()));
        shop
    }

    fn run(&self, line: &str) -> (i32, String, String) {
        let target = format!("--embedded={}", self.store.display());
        let words: Vec<&str> = line.split_whitespace().chain([target.as_str()]).collect();
        run(self.home.path(), &words)
    }

    /// Runs a command line that must succeed, and returns stdout and stderr.
    fn done(&self, line: &str) -> (String, String) {
        let (code, out, err) = self.run(line);
        assert_eq!(code, 0, "{line}: {err}");
        (out, err)
    }

    fn ends(&self, line: &str, code: i32, why: &str) {
        let (found, _, err) = self.run(line);
        assert_eq!(found, code, "{line}: {err}");
        assert!(err.contains(why), "{line}: {err} has no {why:?}");
    }

    /// Applies YAML documents by `bowline apply`.
    fn apply(&self, text: &str) {
        let file = self.home.path().join("applied.yaml");
        std::fs::write(&file, text).unwrap();
        self.done(&format!("apply -f {}", file.display()));
    }

    /// Creates a release of the component cart. Its image has this version.
    fn release(&self, version: &str) {
        let workload = example("workloads/cart.yaml");
        self.apply(&workload.replace("v0.9.0", version));
        self.done(&format!("release create cart --version {version}"));
    }

    /// Deletes a release as garbage collection does, because a policy refuses other deletions.
    fn collect(&self, name: &str) {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let store = bowline::fixture::store::open(&self.store, "gc").await;
            let releases: Api<Release> = Api::namespaced(store.client("default"), "default");
            let unclaimed = json!({"metadata": {"labels": {"bowline.dev/pinned": null}}});
            let patch = Patch::Merge(&unclaimed);
            let params = PatchParams::default();
            releases.patch(name, &params, &patch).await.unwrap();
            let params = DeleteParams::default();
            releases.delete(name, &params).await.unwrap();
        });
    }
}

fn example(path: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples");
    std::fs::read_to_string(examples.join(path)).unwrap()
}

/// Returns the objects of a JSON diff as texts, each with its kind of change.
fn changes(json: &str) -> Vec<String> {
    let diff: Value = serde_json::from_str(json).unwrap();
    let objects = diff["objects"].as_array().unwrap().iter();
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    objects
        .map(|object| {
            format!(
                "{} {}",
                word(&object["change"]),
                word(&object["identity"]["kind"])
            )
        })
        .collect()
}

#[test]
fn environments_revisions_and_what_is_there() {
    let shop = Shop::new();
    shop.release("v1");
    shop.release("v2");
    shop.done("deploy cart -e development --release cart-v1");
    shop.ends("diff cart -e development", 1, "no revision before 1");
    shop.done("promote cart --from development --to staging --unready --reason first");
    shop.done("deploy cart -e development --release cart-v2 --reason INC-42");

    // A diff of two environments shows their settings, but not their namespaces.
    let (out, said) = shop.done("diff cart --from staging --to development");
    assert!(out.contains("~ Deployment.apps cart: "), "{out}");
    assert!(
        out.contains("\n-        image: registry.example/shop/cart:v1\n"),
        "{out}"
    );
    assert!(
        out.contains("\n+        image: registry.example/shop/cart:v2\n"),
        "{out}"
    );
    assert!(
        out.contains("\n- PodDisruptionBudget.policy cart: removed\n"),
        "{out}"
    );
    for says in [
        "before: cart in staging, release cart-v1, read 20",
        "after: cart in development, release cart-v2, read 20",
        "the namespaces of the environments, shop-staging and shop-development, are not compared",
    ] {
        assert!(said.contains(says), "{said}");
    }
    let (out, said) = shop.done("diff cart --from staging --to staging --exit-code");
    assert_eq!(out, "no changes\n");
    assert!(!said.contains("left out"), "{said}");

    // A diff of revisions, in all notations of a revision.
    let (by_default, said) = shop.done("diff cart -e development -o unified");
    assert!(
        by_default.starts_with("--- a/core/ConfigMap/"),
        "{by_default}"
    );
    assert!(
        said.contains("before: cart in development, revision 1, release cart-v1")
            && said.contains("rendered with the settings that development has now"),
        "{said}"
    );
    let (named, _) =
        shop.done("revisions diff pin/cart-development --from 1 --to 2 --output unified");
    assert_eq!(named, by_default);
    let (back, _) = shop.done("diff cart -e development --from-revision 2 --to-revision 1 -o json");
    let back: Value = serde_json::from_str(&back).unwrap();
    assert_eq!(
        back["before"]["what"],
        "cart in development, revision 2, release cart-v2"
    );
    assert_eq!((&back["changed"], &back["added"]), (&json!(4), &json!(0)));
    let (none, _) = shop.done("diff cart -e development --from-revision 2 -o unified --exit-code");
    assert_eq!(none, "");
    let (code, out, _) = shop.run("diff cart -e development --context-lines 0 --exit-code");
    assert_eq!(code, 3);
    assert!(!out.lines().any(|line| line.starts_with(' ')), "{out}");

    let (listed, _) = shop.done("revisions list cart/development");
    let rows = table(&listed);
    assert_eq!(rows[0][..3], ["REVISION", "RELEASE", "ACTION"]);
    assert_eq!(rows[1][..4], ["2", "cart-v2", "Deploy", "ana"]);
    assert_eq!(rows[1][5..], ["not", "known", "yet", "INC-42"]);
    assert_eq!(rows[2][..3], ["1", "cart-v1", "Deploy"]);
    assert_eq!(rows.len(), 3, "{listed}");
    // history and revisions list print the same rows, except for the ages, which grow.
    let (history, _) = shop.done("history cart -e development");
    for (same, row) in table(&history).iter().zip(&rows) {
        assert_eq!((&same[..4], &same[5..]), (&row[..4], &row[5..]));
    }
    assert_eq!(
        shop.done("revisions list pin/cart-development -o name").0,
        "2\n1\n"
    );
    let (json, _) = shop.done("revisions list cart/development -o json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["cause"]["reason"], "INC-42");
    assert_eq!(json[1]["content"]["release"]["name"], "cart-v1");

    // A diff with the live objects: first none exists, then all exist, then one of them is changed.
    let live = "diff cart -e development --live -o json";
    let (nothing, said) = shop.done(live);
    assert!(
        changes(&nothing)
            .iter()
            .all(|change| change.starts_with("Removed ")),
        "{nothing}"
    );
    assert!(
        said.contains("live on data plane local (embedded store "),
        "{said}"
    );
    shop.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop-development}}");
    let (rendered, _) = shop.done("render cart -e development");
    shop.apply(&rendered);
    assert_eq!(
        shop.done("diff cart -e development --live").0,
        "no changes\n"
    );
    shop.apply(&rendered.replace("minReadySeconds: 10", "minReadySeconds: 11"));
    assert_eq!(changes(&shop.done(live).0), ["Changed Deployment"]);
    let (noise, _) = shop.done("diff cart -e development --live --noise");
    assert!(noise.contains("managedFields"), "{noise}");

    // A diff with a deleted release fails, and the error names the release.
    shop.collect("cart-v1");
    shop.ends(
        "diff cart -e development",
        1,
        "revision 1 cannot be rendered: Release cart-v1 no longer exists\nhint: choose a revision of an existing release, from: bowline release list",
    );
    shop.release("v1");
    shop.ends(
        "revisions diff cart/development",
        1,
        "Release cart-v1 was deleted and created again",
    );
    shop.ends(
        "diff --release cart-v1 cart-v9",
        1,
        "Release cart-v9 no longer exists",
    );
}

/// Splits each line of a text into words.
fn table(text: &str) -> Vec<Vec<&str>> {
    let lines = text.lines();
    lines
        .map(|line| line.split_whitespace().collect())
        .collect()
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let shop = Shop::new();
    shop.release("v1");
    shop.done("deploy cart -e development --release cart-v1");
    for (line, code, why) in [
        ("diff", 2, "diff needs two sides to compare"),
        (
            "diff --from development --to staging",
            2,
            "the component is missing",
        ),
        ("diff cart", 2, "hint: two environments: --from A --to B"),
        ("diff cart --from development", 2, "--to"),
        ("diff cart --from-revision 1", 2, "--environment"),
        (
            "diff cart -e development --live --from-revision 1",
            2,
            "--live",
        ),
        ("diff --release cart-v1", 2, "2 values"),
        ("diff cart --release cart-v1 cart-v1", 2, "--release"),
        ("diff cart -e development --deadline soon", 2, "30s"),
        (
            "revisions list cart",
            2,
            "COMPONENT/ENVIRONMENT, as releasepin/NAME",
        ),
        (
            "revisions list cart/staging",
            1,
            "cart is not deployed in staging",
        ),
        ("revisions list pin/none", 1, "there is no ReleasePin none"),
        (
            "diff cart --from development --to staging",
            1,
            "cart is not deployed in staging",
        ),
        (
            "diff cart -e nowhere --live",
            1,
            "cart is not deployed in nowhere",
        ),
        (
            "diff cart -e development --from-revision 9",
            1,
            "has no revision 9; it has 1",
        ),
    ] {
        shop.ends(line, code, why);
    }
    // The DataPlane is missing, and then names a context that the kubeconfig does not have.
    let plane = example("environments/data-plane.yaml");
    shop.done("delete dataplane local");
    shop.ends(
        "diff cart -e development --live",
        1,
        "data plane local of development does not exist",
    );
    shop.apply(&plane.replace("inCluster: {}", "context: {name: prod}"));
    shop.ends("diff cart -e development --live", 2, "no context prod");
}

#[test]
fn releases_are_compared_however_they_are_stored() {
    let shop = Shop::new();
    shop.release("v1");
    shop.release("v2");
    let (shown, _) = shop.done("release show cart-v1 -o json");
    assert!(!shown.contains("\"compressed\""), "{shown}");
    let (stored, _) = shop.done("get releases.openchoreo.dev cart-v1 -o json");
    assert!(stored.contains("\"compressed\""), "{stored}");
    let (out, said) = shop.done("diff --release cart-v1 cart-v2");
    assert!(
        out.starts_with("~ Workload.openchoreo.dev cart: 2 fields changed\n"),
        "{out}"
    );
    assert!(said.contains("before: release cart-v1, read 20"), "{said}");
    assert!(said.contains("after: release cart-v2, read 20"), "{said}");

    // A release with the same definitions by git reference has no difference.
    let tree = shop.home.path().join("platform");
    let remote = shop.home.path().join("platform.git");
    let git = |arguments: &[&str]| {
        let status = Command::new("git")
            .args(["-c", "user.name=ana", "-c", "user.email=ana@example.com"])
            .args(arguments)
            .env("HOME", shop.home.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .status();
        assert!(status.unwrap().success(), "{arguments:?}");
    };
    let (tree_text, remote_text) = (tree.to_str().unwrap(), remote.to_str().unwrap());
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(&examples)
        .arg(&tree)
        .status();
    assert!(copied.unwrap().success());
    let workload = tree.join("workloads/cart.yaml");
    std::fs::write(
        &workload,
        example("workloads/cart.yaml").replace("v0.9.0", "v1"),
    )
    .unwrap();
    git(&["init", "-q", "--bare", "-b", "main", remote_text]);
    git(&["init", "-q", "-b", "main", tree_text]);
    git(&["-C", tree_text, "add", "."]);
    git(&["-C", tree_text, "commit", "-q", "-m", "all"]);
    let address = format!("file://{remote_text}");
    git(&["-C", tree_text, "remote", "add", "origin", &address]);
    git(&["-C", tree_text, "push", "-q", "-u", "origin", "main"]);
    shop.done(&format!(
        "release create cart --version by-git --git -f {tree_text}"
    ));
    let compare = "diff --release cart-v1 cart-by-git --exit-code";
    shop.ends(compare, 1, "file");
    let (out, _) = shop.done(&format!("{compare} --allow-file-repositories"));
    assert_eq!(out, "no changes\n");
}
