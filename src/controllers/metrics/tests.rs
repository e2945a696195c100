//! Tests of the text that a scrape returns.

use serde_json::json;

use super::*;
use crate::api::{Release, ReleasePin};
use crate::connect::{Deadlines, guard};
use crate::engine::world::World;
use crate::resolve::git::Settings;

/// Returns the lines of one metric that contain values, without its HELP and TYPE lines.
fn lines(text: &str, name: &str) -> Vec<String> {
    let own = |line: &&str| line.starts_with(name);
    text.lines().filter(own).map(str::to_owned).collect()
}

#[test]
fn what_is_counted_is_told() {
    let metrics = Metrics::default();
    metrics.reconciled("pin", true, Duration::from_millis(3));
    metrics.reconciled("pin", true, Duration::from_secs(2));
    metrics.reconciled("pin", false, Duration::from_secs(90));
    metrics.packed("snapshot", 1000, 250);
    metrics.packed("snapshot", 1000, 150);
    metrics.packed("release", 1000, 500);
    metrics.snapshot_reused();
    metrics.collected("release", 4711);
    metrics.leads(true);
    let text = metrics.text();
    for line in [
        r#"bowline_reconciles_total{controller="pin",result="success"} 2"#,
        r#"bowline_reconciles_total{controller="pin",result="error"} 1"#,
        r#"bowline_reconcile_duration_seconds_count{controller="pin"} 3"#,
        r#"bowline_reconcile_duration_seconds_bucket{le="0.005",controller="pin"} 1"#,
        r#"bowline_reconcile_duration_seconds_bucket{le="60.0",controller="pin"} 2"#,
        r#"bowline_compression_plain_bytes_total{kind="snapshot"} 2000"#,
        r#"bowline_compression_ratio{kind="snapshot"} 0.2"#,
        r#"bowline_compression_ratio{kind="release"} 0.5"#,
        "bowline_snapshots_reused_total 1",
        r#"bowline_gc_deleted_total{kind="release"} 1"#,
        r#"bowline_gc_freed_bytes_total{kind="release"} 4711"#,
        "bowline_leader 1",
        "bowline_leader_terms_total 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
    metrics.leads(false);
    assert_eq!(
        lines(&metrics.text(), "bowline_leader "),
        ["bowline_leader 0"]
    );
}

#[tokio::test]
async fn what_is_stored_is_summed_when_somebody_asks() {
    let folder = tempfile::tempdir().unwrap();
    let store = crate::fixture::store::open(&folder.path().join("store.db"), "ana").await;
    let client = guard(store, "default", None, Deadlines::default());
    let metrics = Metrics::default();
    metrics.reads_git(&Git::new(Settings::new(folder.path().join("git"))));
    assert_eq!(lines(&metrics.text(), "bowline_release"), [""; 0]);
    let releases: kube::Api<Release> = kube::Api::default_namespaced(client.clone());
    for (name, size) in [("cart-1", "4000"), ("cart-2", "700"), ("mail-1", "11")] {
        let component = name.split('-').next().unwrap();
        let release = json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Release",
            "metadata": {"name": name, "labels": {"openchoreo.dev/component": component}, "annotations": {"bowline.dev/size": size}},
            "spec": {
                "component": {"name": component, "content": {"apiVersion": "openchoreo.dev/v1alpha1", "kind": "Component"}},
                "componentTypeDefinition": {"name": "web", "content": {"apiVersion": "openchoreo.dev/v1alpha1", "kind": "ComponentTypeDefinition"}},
                "workload": {"apiVersion": "openchoreo.dev/v1alpha1", "kind": "Workload", "metadata": {"name": component}},
            },
        });
        let release: Release = serde_json::from_value(release).unwrap();
        releases
            .create(&Default::default(), &release)
            .await
            .unwrap();
    }
    let pins: kube::Api<ReleasePin> = kube::Api::default_namespaced(client.clone());
    for (environment, release) in [("dev", "cart-1"), ("prod", "cart-2"), ("test", "cart-9")] {
        let pin = json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin",
            "metadata": {"name": format!("cart-{environment}"), "labels": {"openchoreo.dev/component": "cart", "openchoreo.dev/environment": environment}},
            "spec": {"component": "cart", "environment": environment, "releaseRef": {"name": release}},
        });
        let pin: ReleasePin = serde_json::from_value(pin).unwrap();
        pins.create(&Default::default(), &pin).await.unwrap();
    }
    let git = Git::new(Settings::new(folder.path().join("git")));
    let clock = Arc::new(jiff::Timestamp::now);
    let context = Context::new(client, None, clock, git, Arc::default());
    let context = Arc::new(context);
    metrics.follow(&context);
    context.feed().when(World::is_live).await;
    let text = metrics.text();
    let own = |name: &str| lines(&text, name);
    assert_eq!(
        own("bowline_releases{"),
        [
            r#"bowline_releases{namespace="default",component="cart"} 2"#,
            r#"bowline_releases{namespace="default",component="mail"} 1"#,
        ]
    );
    assert_eq!(
        own("bowline_release_bytes{"),
        [
            r#"bowline_release_bytes{namespace="default",component="cart"} 4700"#,
            r#"bowline_release_bytes{namespace="default",component="mail"} 11"#,
        ]
    );
    // A ReleasePin whose release does not exist adds nothing.
    assert_eq!(
        own("bowline_pinned_release_bytes{"),
        [
            r#"bowline_pinned_release_bytes{namespace="default",component="cart",environment="dev"} 4000"#,
            r#"bowline_pinned_release_bytes{namespace="default",component="cart",environment="prod"} 700"#,
        ]
    );
    assert_eq!(
        own("bowline_git_fetches_total"),
        ["bowline_git_fetches_total 0"]
    );
}
