//! Simulates PersistentVolumeClaims, Services and autoscalers: each object gets what its spec requests.

use serde_json::{Value, json};

use super::{Scene, condition};
use crate::api::{Object, digest};

pub(super) fn volume(scene: &Scene<'_>) -> Object {
    let mut status = scene.status.clone();
    if status.get("phase").and_then(Value::as_str) == Some("Bound") {
        return status;
    }
    status.insert("phase".to_owned(), "Bound".into());
    for (field, from) in [
        ("accessModes", "/accessModes"),
        ("capacity", "/resources/requests"),
    ] {
        if let Some(given) = scene.spec(from) {
            status.insert(field.to_owned(), given.clone());
        }
    }
    status
}

pub(super) fn service(scene: &Scene<'_>) -> Object {
    let mut status = scene.status.clone();
    let balanced = scene.spec("/type").and_then(Value::as_str) == Some("LoadBalancer");
    let has_address = status
        .get("loadBalancer")
        .and_then(|balancer| balancer.get("ingress"))
        .is_some();
    if !balanced || has_address {
        return status;
    }
    // The address is in the range 203.0.113.0/24, which is reserved for documentation.
    let hash = digest::of_bytes(scene.name().as_bytes());
    let last = u8::from_str_radix(hash.get(..2).unwrap_or_default(), 16).unwrap_or_default();
    let address = format!("203.0.113.{last}");
    let balancer = json!({"ingress": [{"ip": address, "ipMode": "VIP"}]});
    status.insert("loadBalancer".to_owned(), balancer);
    status
}

pub(super) fn autoscaler(scene: &Scene<'_>) -> Object {
    let mut status = scene.status.clone();
    if scene.count("observedGeneration") >= scene.generation() && status.contains_key("conditions")
    {
        return status;
    }
    let replicas = scene.number("/minReplicas", 1);
    status.insert("observedGeneration".to_owned(), scene.generation().into());
    status.insert("currentReplicas".to_owned(), replicas.into());
    status.insert("desiredReplicas".to_owned(), replicas.into());
    let now = scene.now;
    for (type_, reason, message) in [
        (
            "AbleToScale",
            "ReadyForNewScale",
            "recommended size matches current size",
        ),
        (
            "ScalingActive",
            "ValidMetricFound",
            "the metrics are simulated",
        ),
    ] {
        condition(&mut status, now, type_, "True", reason, message);
    }
    status
}
