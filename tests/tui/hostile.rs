//! Every object field that accepts text contains text that would control a terminal. bowline must write none
//! of these control sequences to the terminal.

use std::sync::Arc;

use bowline::api::{
    AuditEntry, Component, ComponentEnvSnapshot, ComponentTypeDefinition, DeploymentPipeline,
    Environment, RenderedRelease, Workload,
};
use kube::Resource;
use kube::api::{Api, ObjectMeta, Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::escapes;
use crate::place::Target;
use crate::pty::{ENTER, ESC, LEAVE, Pty};
use crate::shop::Shop;

/// Returns a very long hostile text. Its sequences would clear the screen, set the title, use the clipboard
/// and ring the bell. It also contains C1, bidirectional, zero-width and tag characters.
fn hostile(seed: &str) -> String {
    of_length(seed, 10_000)
}

/// Like [`hostile`], but at most `bytes` bytes long, because the field has this limit.
fn of_length(seed: &str, bytes: usize) -> String {
    let long = "x".repeat(bytes);
    let mut text = format!(
        "{seed}\x1b[2J\x1b]0;owned\x07\x1b]52;c;ZXZpbA==\x1b\\\x07\x08\r\x7f\u{9b}31m\u{9d}0;t\u{9c}\u{202e}gnp\u{2066}\u{200b}\u{200d}\u{feff}\u{e0041}\u{2028}e\u{301}\u{301}界\n\t{long}"
    );
    while text.len() > bytes {
        text.pop();
    }
    text
}

async fn patch<K>(target: &Target, name: &str, change: &Value)
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned,
{
    let api: Api<K> = Api::default_namespaced(target.client());
    let params = PatchParams::default();
    api.patch(name, &params, &Patch::Merge(change))
        .await
        .unwrap();
}

/// Writes hostile text to every field of the shop's objects that accepts it.
async fn poison(shop: &Shop, target: &Target) {
    let annotations = json!({"metadata": {"annotations": {
        "bowline.dev/version": hostile("version"),
        "bowline.dev/images": hostile("image"),
        "bowline.dev/size": hostile("1"),
        "bowline.dev/content-hash": hostile("hash"),
        "bowline.dev/mark": hostile("bad"),
        "kubectl.kubernetes.io/last-applied-configuration": hostile("last"),
    }}});
    for release in ["cart-1", "cart-2", "cart-3"] {
        patch::<bowline::api::Release>(target, release, &annotations).await;
    }
    let workload = json!({"spec": {"image": hostile("image")}});
    patch::<Workload>(target, "cart", &workload).await;
    patch::<Component>(target, "cart", &annotations).await;
    patch::<ComponentTypeDefinition>(target, "web", &annotations).await;
    patch::<Environment>(target, "dev", &annotations).await;
    patch::<DeploymentPipeline>(target, "default", &annotations).await;
    snapshot(shop, target, &annotations).await;
    rendered(shop, target, &annotations).await;
    let pin = json!({
        "metadata": {"annotations": {
            "bowline.dev/changed-by": hostile("who"),
            "bowline.dev/note": hostile("note"),
        }},
        "spec": {"holds": [{
            "id": "h1", "owner": of_length("owner", 253), "reason": of_length("reason", 4096),
            "since": "2026-01-05T00:00:00Z",
        }]},
    });
    patch::<bowline::api::openchoreo::pin::ReleasePin>(target, "cart-dev", &pin).await;
    let status = json!({"status": {
        "observedGeneration": 2, "appliedRelease": "cart-2", "snapshot": "cart-dev-1",
        "outcomes": [{"generation": 1, "release": "cart-2", "since": "2026-01-05T00:00:00Z", "healthy": false, "why": hostile("why")}],
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "Degraded", "message": hostile("message"),
            "lastTransitionTime": "2026-01-05T00:00:00Z",
        }],
    }});
    let written = shop
        .pins()
        .patch_status("cart-dev", &PatchParams::default(), &Patch::Merge(&status))
        .await;
    written.unwrap();
    let entries: Api<AuditEntry> = shop.entries();
    let found = entries.list(&kube::api::ListParams::default()).await;
    for entry in found.unwrap() {
        let ObjectMeta { name, .. } = entry.metadata;
        patch::<AuditEntry>(target, &name.unwrap(), &annotations).await;
    }
}

/// Creates a ComponentEnvSnapshot with hostile content.
async fn snapshot(shop: &Shop, target: &Target, annotations: &Value) {
    let object = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": kind,
            "metadata": {"name": "cart", "annotations": {"bowline.dev/note": hostile("note")}},
            "spec": spec,
        })
    };
    let spec = json!({
        "owner": {"componentName": "cart"}, "environment": "dev",
        "componentTypeDefinition": object("ComponentTypeDefinition", json!({"workloadType": "deployment"})),
        "component": object("Component", json!({"componentType": "deployment/web", "parameters": {"motto": hostile("motto")}})),
        "workload": object("Workload", json!({"image": hostile("image")})),
    });
    shop.create(&bowline::fixture::object::<ComponentEnvSnapshot>(
        "cart-dev-1",
        spec,
    ))
    .await;
    patch::<ComponentEnvSnapshot>(target, "cart-dev-1", annotations).await;
    let labels = json!({"metadata": {"labels": {
        "openchoreo.dev/component": "cart", "openchoreo.dev/environment": "dev",
    }}});
    patch::<ComponentEnvSnapshot>(target, "cart-dev-1", &labels).await;
}

/// Creates a RenderedRelease with hostile resources and a hostile status, as a cluster could contain.
async fn rendered(shop: &Shop, target: &Target, annotations: &Value) {
    let resource = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cart", "annotations": {"bowline.dev/note": hostile("note")}},
        "data": {"image": hostile("image")},
    });
    let spec = json!({
        "owner": {"projectName": "shop", "componentName": "cart"}, "environmentName": "dev",
        "resources": [{"id": of_length("config", 500), "object": resource}],
    });
    shop.create(&bowline::fixture::object::<RenderedRelease>(
        "cart-dev", spec,
    ))
    .await;
    patch::<RenderedRelease>(target, "cart-dev", annotations).await;
    let status = json!({"status": {
        "resources": [{
            "id": of_length("config", 500), "version": "v1", "kind": hostile("ConfigMap"),
            "name": hostile("cart"), "namespace": hostile("dev"), "status": {"said": hostile("status")},
        }],
        "conditions": [{
            "type": "Ready", "status": "False", "reason": "Degraded", "message": hostile("message"),
            "lastTransitionTime": "2026-01-05T00:00:00Z",
        }],
    }});
    let releases: Api<RenderedRelease> = Api::default_namespaced(target.client());
    let params = PatchParams::default();
    let status = Patch::Merge(status);
    let written = releases.patch_status("cart-dev", &params, &status);
    written.await.unwrap();
}

/// Opens every screen, runs every verb that prints, and checks what bowline writes to the terminal.
pub async fn nothing_foreign_steers_the_terminal(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    // The test holds the lock of the controllers, so that no controller replaces the hostile content.
    let _lock = bowline::controllers::lock::Lock::take(&target.home.path().join("store.db"));
    poison(&shop, &target).await;

    let mut pty = Pty::bowline(&target.flags(), target.home.path(), (160, 50));
    pty.shows("cart");
    pty.shows("1 held");
    pty.keys("gghhh");
    for keys in [
        "go", "gr", "gp", "gs", "gv", "gc", "ga", "gt", "gl", "gx", "?", "d", "P", "R", "H", "U",
        "B", "X", "D", ":", "/x",
    ] {
        pty.draws(keys);
        let screen = pty.screen();
        let is_elsewhere = |screen: &vt100::Screen| {
            let crumbs = screen.rows(0, 160).nth(1);
            crumbs.is_some_and(|crumbs| crumbs.contains('>'))
        };
        pty.keys(ESC);
        if is_elsewhere(&screen) {
            pty.wait_for("the matrix", |screen| !is_elsewhere(screen));
        }
        pty.settles();
    }
    pty.shows("cart");
    pty.draws("gs");
    pty.keys(ENTER);
    pty.shows("kind: ComponentEnvSnapshot");
    pty.keys(ESC);
    pty.hides("kind: ComponentEnvSnapshot");
    pty.keys(ESC);
    pty.keys(LEAVE);
    // `ended` checks that the program wrote no foreign sequence.
    pty.ended();

    // The commands, each with its exit code. A command that failed early would print too little to test.
    let mut others = Vec::new();
    for (code, line) in [
        (0, "status"),
        (0, "status cart -o wide"),
        (0, "history cart -e dev"),
        (0, "history cart -e dev -o yaml"),
        (0, "release list"),
        (0, "release show cart-2"),
        (0, "get pins"),
        (0, "get pins -o yaml"),
        (0, "get pins -o json"),
        (0, "get pins -o wide"),
        (0, "get releases cart-2 -o yaml"),
        (0, "get workloads -o yaml"),
        (0, "get components -o json"),
        (0, "get componentenvsnapshots"),
        (0, "get componentenvsnapshots -o yaml"),
        (0, "get renderedreleases -o wide"),
        (0, "get renderedreleases -o yaml"),
        (0, "get environments -o wide"),
        (0, "get environments dev -o yaml"),
        (0, "get deploymentpipelines -o json"),
        (0, "audit list"),
        (0, "audit list -o yaml"),
        (1, "audit verify"),
        (0, "audit export --format md"),
        (0, "render cart -e dev"),
        (0, "diff --release cart-1 cart-2"),
        (0, "revisions list cart/dev"),
        (3, "unpin cart -e dev --dry-run"),
        (5, "rollback cart -e dev --to cart-1 --dry-run"),
        (3, "mark good cart-2 --reason x --dry-run"),
        (0, "gc --dry-run"),
        (2, "delete pin nothing\u{1b}[2J"),
        (1, "get nothing\u{202e}"),
    ] {
        let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        arguments.extend(target.flags());
        let pty = Pty::bowline(&arguments, target.home.path(), (120, 40));
        let (ended, bytes) = pty.printed();
        let tabless: Vec<u8> = bytes
            .iter()
            .map(|b| if *b == b'\t' { b' ' } else { *b })
            .collect();
        if let Err(why) = escapes::check(&tabless) {
            panic!("bowline {line}: {why}");
        }
        if ended != code {
            let said = String::from_utf8_lossy(&bytes);
            others.push(format!("bowline {line}: {ended}, not {code}: {said:.1000}"));
        }
        println!("bowline {line}: {} bytes, clean", bytes.len());
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}
