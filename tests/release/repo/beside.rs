//! A repository is the target, and a cluster provides the live state. The cluster of these tests is an
//! embedded store behind a socket.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use bowline::api::{Environment, ReleasePin};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{Shop, pin};

/// A server process. Dropping the value kills the process.
struct Served {
    process: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn serve(shop: &Shop) -> Served {
    let mut process = Command::new(env!("CARGO_BIN_EXE_bowline"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg(format!(
            "--embedded={}",
            shop.place.path().join("cluster.db").display()
        ))
        .env_clear()
        .env("HOME", shop.place.path())
        .env("USER", "ana")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = line
        .split_whitespace()
        .find(|word| word.starts_with("http://"));
    let url = url.unwrap_or_else(|| panic!("{line}")).to_owned();
    Served { process, url }
}

/// Writes the ReleasePin to the cluster as Argo CD does, and its status as the controller does.
async fn runs(pins: &Api<ReleasePin>, release: &str, ready: bool) {
    let text = pin("cart", "dev", release);
    let document = bounded_yaml::documents("pin", &text)
        .unwrap()
        .remove(0)
        .value;
    let object: ReleasePin = serde_json::from_value(document).unwrap();
    let patch = PatchParams::apply("argocd").force();
    let found = pins
        .patch("cart-dev", &patch, &Patch::Apply(&object))
        .await
        .unwrap();
    let status: Value = json!({"status": {
        "observedGeneration": found.metadata.generation, "appliedRelease": release,
        "conditions": [{
            "type": "Ready", "status": if ready { "True" } else { "False" }, "reason": if ready { "ReconcileSuccess" } else { "Degraded" },
            "message": "0 of 2 ready", "lastTransitionTime": "2026-01-05T00:00:00Z",
        }],
    }});
    let patch = Patch::Merge(status);
    pins.patch_status("cart-dev", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// Starts a cluster with the namespace shop, and writes a kubeconfig with the context prod-eu. Returns the
/// server, a client, and the command line flags that select the context.
async fn cluster(shop: &Shop) -> (Served, kube::Client, Vec<String>) {
    let served = serve(shop);
    let mut config = kube::Config::new(served.url.parse().unwrap());
    config.default_namespace = "shop".to_owned();
    let client = kube::Client::try_from(config).unwrap();
    make_namespace(&client, "shop").await;
    let kubeconfig = shop.place.path().join("kubeconfig");
    std::fs::write(
        &kubeconfig,
        json!({
            "apiVersion": "v1", "kind": "Config", "contexts": [{"name": "prod-eu", "context": {"cluster": "c", "user": "u", "namespace": "shop"}}],
            "clusters": [{"name": "c", "cluster": {"server": served.url}}], "users": [{"name": "u", "user": {}}],
        })
        .to_string(),
    )
    .unwrap();
    let flags = ["--context", "prod-eu", "--kubeconfig"];
    let mut flags: Vec<String> = flags.map(str::to_owned).into();
    flags.push(kubeconfig.display().to_string());
    (served, client, flags)
}

async fn make_namespace(client: &kube::Client, name: &str) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    namespaces
        .create(&PostParams::default(), &namespace)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn live_objects_come_from_the_cluster() {
    let mut shop = Shop::open(&["cart"]);
    let plane = |reach: &str| {
        format!(
            "apiVersion: openchoreo.dev/v1alpha1\nkind: DataPlane\nmetadata: {{name: d, namespace: shop}}\nspec: {{{reach}}}\n"
        )
    };
    let live = "diff cart -e dev --live";
    let no_cluster = "data plane d is the cluster of this repository, and no flag names the cluster: add --context NAME";
    for reach in ["inCluster: {}", "embedded: {}"] {
        shop.write("environments/plane.yaml", &plane(reach));
        let ran = shop.ends(live, 2, no_cluster);
        assert_eq!(ran.out, "", "{ran:?}");
    }
    let (_served, client, flags) = cluster(&shop).await;
    make_namespace(&client, "shop-dev").await;
    let maps: Api<ConfigMap> = Api::namespaced(client, "shop-dev");
    // bowline finds the cluster by the flag --context, or by the context that the DataPlane names.
    let by_plane = [&["--kubeconfig".to_owned()], &flags[3..]].concat();
    for (reach, flags) in [
        ("embedded: {}", &flags),
        ("inCluster: {}", &flags),
        ("context: {name: prod-eu}", &by_plane),
    ] {
        shop.write("environments/plane.yaml", &plane(reach));
        shop.flags = flags.clone();
        if reach.starts_with("embedded") {
            shop.ends(live, 2, "the DataPlane is embedded");
            continue;
        }
        shop.ends(live, 0, "1 removed");
        let rendered = shop.ends("render cart -e dev -o json", 0, "ConfigMap").out;
        let rendered: Value = serde_json::from_str(&rendered).unwrap();
        let map = rendered["items"][0].clone();
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        let name = map.metadata.name.clone().unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        let ran = shop.ends(live, 0, "");
        assert!(!ran.out.contains("removed"), "{ran:?}");
        maps.delete(&name, &Default::default()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_comes_from_the_cluster() {
    let mut shop = Shop::open(&["cart"]);
    let (_served, client, flags) = cluster(&shop).await;
    shop.flags = flags;
    let environments: Api<Environment> = Api::default_namespaced(client.clone());
    assert!(
        environments
            .list(&Default::default())
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let pins: Api<ReleasePin> = Api::default_namespaced(client);
    let promote = "promote cart --from dev --to staging";
    let head = shop.head();
    shop.ends(
        &format!("{promote} --wait --branch other"),
        2,
        "--wait cannot follow a commit on branch other",
    );
    assert_eq!(shop.head(), head);
    assert_eq!(shop.git("branch --list other"), "");
    // git names release 2, but the cluster still runs release 1.
    runs(&pins, "cart-1", true).await;
    let ran = shop.ends("status", 0, "cart-2");
    assert!(ran.out.contains("? cart-2 (runs cart-1)"), "{}", ran.out);
    shop.ends(promote, 5, "cart is not ready in dev");
    // The cluster runs release 2, first not ready and then ready.
    runs(&pins, "cart-2", false).await;
    let ran = shop.ends("status", 0, "cart-2");
    assert!(ran.out.contains("✖ cart-2"), "{}", ran.out);
    shop.ends(promote, 5, "0 of 2 ready (Degraded)");
    runs(&pins, "cart-2", true).await;
    let ran = shop.ends("status", 0, "● cart-2");
    assert!(!ran.out.contains("runs"), "{}", ran.out);
    let ran = shop.ends(promote, 0, "cart-1 -> cart-2");
    assert!(!ran.err.contains("is not known"), "{}", ran.err);
    // bowline only reads the cluster: the promotion does not change its ReleasePins.
    assert!(pins.get_opt("cart-staging").await.unwrap().is_none());
    // bowline does not show an old state without the cluster, or after the ReleasePin in the cluster is
    // deleted.
    let flags = std::mem::take(&mut shop.flags);
    let ran = shop.ends("status", 0, "cart-2");
    assert!(!ran.out.contains("● cart-2"), "{}", ran.out);
    shop.flags = flags;
    shop.ends("status", 0, "● cart-2");
    pins.delete("cart-dev", &Default::default()).await.unwrap();
    let ran = shop.ends("status", 0, "cart-2");
    assert!(!ran.out.contains("● cart-2"), "{}", ran.out);
}
