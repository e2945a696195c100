//! Builders for tests: a read model with workloads.

#![allow(clippy::unwrap_used)]

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use serde_json::{Value, json};

use super::kind::DEPLOYMENT;
use super::rows;
use crate::engine::world::{Event, Source, World};

fn template(image: &str) -> Value {
    json!({
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "main", "image": image}]},
    })
}

/// Adds a Deployment with one ReplicaSet per image. The last image is the current one.
pub fn deployment(world: &mut World, name: &str, images: &[&str], ready: u64) {
    let uid = format!("uid-{name}");
    let current = images.last().copied().unwrap_or_default();
    let object = json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": uid, "generation": 7,
            "creationTimestamp": "2026-01-06T08:00:00Z",
        },
        "spec": {"replicas": 2, "template": template(current)},
        "status": {
            "observedGeneration": 7, "replicas": 2, "updatedReplicas": 2,
            "readyReplicas": ready, "availableReplicas": ready,
        },
    });
    let object = serde_json::from_value(object).unwrap();
    rows::apply::<Deployment>(
        world,
        Event::Applied(object),
        &DEPLOYMENT,
        Source::DEPLOYMENTS,
    );
    for (number, image) in (1..).zip(images) {
        replica_set(world, &format!("{name}-{number}"), &uid, number, image);
    }
}

/// Adds a ReplicaSet, or sets the revision number of an existing one.
pub fn replica_set(world: &mut World, name: &str, owner: &str, number: i64, image: &str) {
    let mut template = template(image);
    template["metadata"]["labels"]["pod-template-hash"] = json!(name);
    let object = json!({
        "metadata": {
            "name": name, "namespace": "shop", "uid": format!("uid-{name}"),
            "creationTimestamp": format!("2026-01-06T08:0{number}:00Z"),
            "annotations": {"deployment.kubernetes.io/revision": number.to_string()},
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner, "controller": true,
            }],
        },
        "spec": {"template": template},
    });
    let event = Event::Applied(serde_json::from_value(object).unwrap());
    rows::apply_revision::<ReplicaSet>(world, event, Source::REPLICA_SETS, &["template"]);
}
