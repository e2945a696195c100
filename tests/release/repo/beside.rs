//! A cluster beside a repository says what runs and what is ready; the cluster here is a store on a socket.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use bowline::api::{Environment, ReleasePin};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::{Shop, pin};

/// A server that ends with the test.
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

/// A pin as the controller of a cluster leaves it.
async fn runs(pins: &Api<ReleasePin>, release: &str, ready: bool) {
    let text = pin("cart", "dev", release);
    let document = bowline::yaml::documents("pin", &text)
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

#[tokio::test(flavor = "multi_thread")]
async fn readiness_comes_from_the_cluster() {
    let mut shop = Shop::open(&["cart"]);
    let served = serve(&shop);
    let mut config = kube::Config::new(served.url.parse().unwrap());
    config.default_namespace = "shop".to_owned();
    let client = kube::Client::try_from(config).unwrap();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let shop_namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces
        .create(&PostParams::default(), &shop_namespace)
        .await
        .unwrap();
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
    shop.flags = vec![
        "--context".to_owned(),
        "prod-eu".to_owned(),
        "--kubeconfig".to_owned(),
        kubeconfig.display().to_string(),
    ];
    let promote = "promote cart --from dev --to staging";
    let head = shop.head();
    shop.ends(
        &format!("{promote} --wait --branch other"),
        2,
        "--wait cannot follow a commit on branch other",
    );
    assert_eq!(shop.head(), head);
    assert_eq!(shop.git("branch --list other"), "");
    // Git wants 2 and the cluster still runs 1.
    runs(&pins, "cart-1", true).await;
    let ran = shop.ends("status", 0, "cart-2");
    assert!(ran.out.contains("? cart-2 (runs cart-1)"), "{}", ran.out);
    shop.ends(promote, 5, "cart is not ready in dev");
    // It came there and does not do well; then it does.
    runs(&pins, "cart-2", false).await;
    let ran = shop.ends("status", 0, "cart-2");
    assert!(ran.out.contains("✖ cart-2"), "{}", ran.out);
    shop.ends(promote, 5, "0 of 2 ready (Degraded)");
    runs(&pins, "cart-2", true).await;
    let ran = shop.ends("status", 0, "● cart-2");
    assert!(!ran.out.contains("runs"), "{}", ran.out);
    let ran = shop.ends(promote, 0, "cart-1 -> cart-2");
    assert!(!ran.err.contains("is not known"), "{}", ran.err);
    // The cluster is only read.
    assert!(pins.get_opt("cart-staging").await.unwrap().is_none());
    // What it said is not repeated where it is not asked, nor when it has the pin no more.
    let flags = std::mem::take(&mut shop.flags);
    let ran = shop.ends("status", 0, "cart-2");
    assert!(!ran.out.contains("● cart-2"), "{}", ran.out);
    shop.flags = flags;
    shop.ends("status", 0, "● cart-2");
    pins.delete("cart-dev", &Default::default()).await.unwrap();
    let ran = shop.ends("status", 0, "cart-2");
    assert!(!ran.out.contains("● cart-2"), "{}", ran.out);
}
