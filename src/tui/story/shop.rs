//! The data of most stories: a shop with two components in three environments. No controller writes to it.

use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::api::{DeploymentPipeline, ReleasePin, names};
use crate::connect::Connection;
use crate::fixture;

/// Returns the objects of the shop at the start of a story.
pub fn shop() -> String {
    fixture::shop(&["cart", "ledger"])
}

/// Writes the objects of the shop into a store.
pub async fn fill(connection: &Connection) {
    let client = &connection.client;
    fixture::create_all(client, &shop()).await;
    for (component, versions) in [("cart", &["v1", "v2", "v3"][..]), ("ledger", &["v1"])] {
        for version in versions {
            released(client, component, version).await;
        }
    }
    for (component, environment, history) in [
        ("cart", "dev", &["v3"][..]),
        ("cart", "staging", &["v2"]),
        ("cart", "prod", &["v1", "v2"]),
        ("ledger", "dev", &["v1"]),
        ("ledger", "staging", &["v1"]),
        ("ledger", "prod", &["v1"]),
    ] {
        pinned(client, component, environment, history).await;
    }
}

/// Creates a release of a component.
pub async fn released(client: &Client, component: &str, version: &str) {
    let made = fixture::new_release(component, version);
    fixture::create(client, &made).await.unwrap();
}

/// Sets the retention of the DeploymentPipeline.
pub async fn retains(client: &Client, retention: serde_json::Value) {
    let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(client.clone());
    let patch = Patch::Merge(json!({"spec": {"retention": retention}}));
    pipelines
        .patch("default", &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// Creates a ReleasePin that had these releases one after another. Every release was healthy.
pub async fn pinned(client: &Client, component: &str, environment: &str, history: &[&str]) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
    let name = names::pin(component, environment);
    let mut outcomes = Vec::new();
    for (minute, version) in history.iter().enumerate() {
        let release = format!("{component}-{version}");
        let generation = match minute {
            0 => {
                let pin = fixture::new_pin(component, environment, &release);
                pins.create(&PostParams::default(), &pin)
                    .await
                    .unwrap()
                    .metadata
                    .generation
            }
            _ => {
                let patch = json!({"spec": {"releaseRef": {"name": release}}});
                let moved = pins
                    .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                    .await;
                moved.unwrap().metadata.generation
            }
        };
        let since = format!("2026-01-06T12:{minute:02}:00Z");
        if let Some(last) = outcomes.last_mut() {
            let last: &mut serde_json::Value = last;
            last["until"] = json!(since);
        }
        let generation = generation.unwrap_or_default();
        outcomes.push(fixture::outcome(generation, &release, &since));
    }
    settled(client, component, environment, json!(outcomes)).await;
}

/// Writes the status of a ReleasePin as a controller does: the current generation is observed and ready. If
/// `outcomes` is an array, it becomes the list of outcomes in the status.
pub async fn settled(
    client: &Client,
    component: &str,
    environment: &str,
    outcomes: serde_json::Value,
) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
    let name = names::pin(component, environment);
    let pin = pins.get(&name).await.unwrap();
    let generation = pin.metadata.generation;
    let release = &pin.spec.release_ref.name;
    let generation = generation.unwrap_or_default();
    let mut status = fixture::ready(release, generation, "2026-01-06T12:30:00Z");
    if outcomes.is_array() {
        status["outcomes"] = outcomes;
    }
    let patch = Patch::Merge(json!({"status": status}));
    pins.patch_status(&pin.name_any(), &PatchParams::default(), &patch)
        .await
        .unwrap();
}
