//! Installs bowline's kinds and policies on a real cluster.

use std::time::{Duration, Instant};

use bowline::api::{ReleasePin, labels};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, GroupVersionKind, PostParams},
    runtime::wait::{await_condition, conditions},
};
use serde_json::{Value, json};

/// Installs bowline's kinds and policies on a cluster. An embedded store does not need this call, because it
/// always has them.
pub async fn install_bowline(client: &Client) {
    for definition in bowline::api::crds() {
        let definition = serde_json::to_value(definition).expect("a definition is JSON");
        install_one(client, definition).await;
    }
    for document in bowline::api::policies().split("\n---\n") {
        // Skips the comment before the first document.
        if !document.contains("\nkind:") {
            continue;
        }
        let policy: DynamicObject = serde_yaml::from_str(document)
            .unwrap_or_else(|error| panic!("cannot read a policy: {error}\n{document}"));
        let types = policy.types.clone().expect("a policy has a kind");
        let kind = GroupVersionKind::try_from(&types).expect("a policy has a version");
        let resource = ApiResource::from_gvk(&kind);
        Api::<DynamicObject>::all_with(client.clone(), &resource)
            .create(&PostParams::default(), &policy)
            .await
            .unwrap_or_else(|error| panic!("cannot install a policy: {error}\n{document}"));
    }
    until_admitted(client).await;
}

/// Waits until the server enforces the policies on bowline's kinds. For a moment after a kind is new, the
/// server answers 503 instead.
pub async fn until_admitted(client: &Client) {
    let pin = json!({
        "metadata": {"name": "a-b", "labels": {labels::COMPONENT: "a", labels::ENVIRONMENT: "b"}},
        "spec": {"component": "a", "environment": "b", "releaseRef": {"name": "a-1"}},
    });
    let pin: ReleasePin = serde_json::from_value(pin).expect("a pin");
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), "default");
    let dry = PostParams {
        dry_run: true,
        ..PostParams::default()
    };
    let begun = Instant::now();
    while let Err(error) = pins.create(&dry, &pin).await {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "pins are not admitted: {error}"
        );
    }
}

/// Installs one CRD, and waits until the server serves its kind.
pub async fn install_one(client: &Client, definition: Value) {
    let definition: CustomResourceDefinition =
        serde_json::from_value(definition).expect("a definition that is well formed");
    let name = definition.metadata.name.clone().unwrap_or_default();
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    api.create(&PostParams::default(), &definition)
        .await
        .unwrap_or_else(|error| panic!("cannot install {name}: {error}"));
    let established = await_condition(api, &name, conditions::is_crd_established());
    tokio::time::timeout(Duration::from_secs(30), established)
        .await
        .unwrap_or_else(|_| panic!("{name} is not established"))
        .unwrap_or_else(|error| panic!("cannot wait for {name}: {error}"));
}
