//! The data of most stories: a shop with two components in three environments. No controller fills
//! it.

use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::api::{self, DeploymentPipeline, Release, ReleasePin, names};
use crate::connect::Connection;
use crate::subjects::release_pin::actions::release::{self, Source};
use crate::subjects::release_pin::catalog::Catalog;

/// The YAML objects that the shop contains at the start of a story.
pub const SHOP: &str = "
apiVersion: openchoreo.dev/v1alpha1
kind: Component
metadata: {name: cart}
spec: {componentType: deployment/web, owner: {projectName: shop}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Component
metadata: {name: ledger}
spec: {componentType: deployment/web, owner: {projectName: shop}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: web}
spec:
  workloadType: deployment
  resources:
    - id: config
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: \"${metadata.name}\"}
        data: {image: \"${workload.image}\"}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Workload
metadata: {name: cart}
spec: {image: shop/cart:v1}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Workload
metadata: {name: ledger}
spec: {image: shop/ledger:v1}
---
apiVersion: openchoreo.dev/v1alpha1
kind: DataPlane
metadata: {name: here}
spec: {embedded: {}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Environment
metadata: {name: dev}
spec: {dataPlaneRef: {name: here}, namespace: shop-dev}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Environment
metadata: {name: staging}
spec: {dataPlaneRef: {name: here}, namespace: shop-staging}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {dataPlaneRef: {name: here}, namespace: shop-prod, isProduction: true}
---
apiVersion: openchoreo.dev/v1alpha1
kind: DeploymentPipeline
metadata: {name: default}
spec:
  promotionPaths:
    - sourceEnvironmentRef: {name: dev}
      targetEnvironmentRefs: [{name: staging}]
    - sourceEnvironmentRef: {name: staging}
      targetEnvironmentRefs: [{name: prod}]
";

/// Writes the objects of the shop into a store.
pub async fn fill(connection: &Connection) {
    let client = &connection.client;
    let kinds: Vec<ApiResource> = api::crds()
        .iter()
        .flat_map(|crd| {
            let names = &crd.spec.names;
            crd.spec.versions.iter().map(|version| {
                let kind = GroupVersionKind::gvk(&crd.spec.group, &version.name, &names.kind);
                ApiResource::from_gvk_with_plural(&kind, &names.plural)
            })
        })
        .collect();
    for document in bounded_yaml::documents("shop", SHOP).unwrap() {
        let object: DynamicObject = serde_json::from_value(document.value).unwrap();
        let types = object.types.clone().unwrap();
        let kind = kinds
            .iter()
            .find(|kind| kind.kind == types.kind && kind.api_version == types.api_version);
        let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), kind.unwrap());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    for (component, versions) in [("cart", &["v1", "v2", "v3"][..]), ("ledger", &["v1"])] {
        for version in versions {
            released(client, &connection.namespace, component, version).await;
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

/// Creates a release of a component with an image of this version.
pub async fn released(client: &Client, namespace: &str, component: &str, version: &str) {
    let catalog = Catalog::fetch(client, namespace, component).await.unwrap();
    let mut definitions = catalog.definitions(component).unwrap();
    definitions.workload.spec.image = Some(format!("shop/{component}:{version}"));
    let made = release::release(&definitions, Some(version), &Source::Embedded);
    let releases: Api<Release> = Api::default_namespaced(client.clone());
    releases
        .create(&PostParams::default(), &made)
        .await
        .unwrap();
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

/// Creates a ReleasePin that had these releases one after another, each of them healthy.
pub async fn pinned(client: &Client, component: &str, environment: &str, history: &[&str]) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
    let name = names::pin(component, environment);
    let mut outcomes = Vec::new();
    for (minute, version) in history.iter().enumerate() {
        let release = format!("{component}-{version}");
        let generation = match minute {
            0 => {
                let pin: ReleasePin = serde_json::from_value(json!({
                    "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin",
                    "metadata": {"name": name, "labels": {
                        "openchoreo.dev/component": component, "openchoreo.dev/environment": environment,
                    }},
                    "spec": {"component": component, "environment": environment, "releaseRef": {"name": release}},
                }))
                .unwrap();
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
        outcomes.push(json!({
            "generation": generation, "release": release, "since": since, "healthy": true,
        }));
    }
    settled(client, component, environment, json!(outcomes)).await;
}

/// Writes the status that a controller writes: the current generation is observed and ready.
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
    let mut status = json!({
        "appliedRelease": pin.spec.release_ref.name, "observedGeneration": generation,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "ReconcileSuccess", "message": "everything is healthy",
            "lastTransitionTime": "2026-01-06T12:30:00Z", "observedGeneration": generation,
        }],
    });
    if outcomes.is_array() {
        status["outcomes"] = outcomes;
    }
    let patch = Patch::Merge(json!({"status": status}));
    pins.patch_status(&pin.name_any(), &PatchParams::default(), &patch)
        .await
        .unwrap();
}
