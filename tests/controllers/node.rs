//! Tests that the fake node behaves as the other tests assume.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::HANG;
use crate::place::Target;

/// Creates an object, and waits until `wanted` is true for its status.
async fn becomes<K>(target: &Target, object: Value, wanted: impl Fn(&Value) -> bool)
where
    K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + 'static,
{
    let objects: Api<K> = Api::default_namespaced(target.client());
    let object: K = serde_json::from_value(object).unwrap();
    let name = object.meta().name.clone().unwrap();
    objects
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    let state = |object: Option<&K>| {
        object.is_some_and(|object| wanted(&serde_json::to_value(object).unwrap()["status"]))
    };
    let reached = tokio::time::timeout(HANG, await_condition(objects, &name, state)).await;
    reached
        .unwrap_or_else(|_| panic!("{} {name} hangs", K::kind(&())))
        .unwrap();
}

pub async fn pods_become_ready(target: Arc<Target>) {
    let selector = json!({"matchLabels": {"app": "a"}});
    let template = |image: &str, more: Value| {
        let mut spec = json!({"containers": [{"name": "main", "image": image}]});
        spec.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"metadata": {"labels": {"app": "a"}}, "spec": spec})
    };
    let always = || template("shop/a:1", json!({}));
    becomes::<Deployment>(
        &target,
        json!({"metadata": {"name": "a"}, "spec": {"replicas": 3, "selector": selector, "template": always()}}),
        |status| status["readyReplicas"] == 3 && status["availableReplicas"] == 3,
    )
    .await;
    becomes::<StatefulSet>(
        &target,
        json!({"metadata": {"name": "b"}, "spec": {"replicas": 2, "selector": selector, "serviceName": "b", "template": always()}}),
        |status| status["readyReplicas"] == 2,
    )
    .await;
    becomes::<DaemonSet>(
        &target,
        json!({"metadata": {"name": "c"}, "spec": {"selector": selector, "template": always()}}),
        |status| status["numberReady"] == 1,
    )
    .await;
    becomes::<Job>(
        &target,
        json!({"metadata": {"name": "d"}, "spec": {"template": template("shop/a:1", json!({"restartPolicy": "Never"}))}}),
        |status| status["succeeded"] == 1,
    )
    .await;
    becomes::<PersistentVolumeClaim>(
        &target,
        json!({"metadata": {"name": "e"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        |status| status["phase"] == "Bound",
    )
    .await;
    // The pod of a broken image starts, and does not become ready.
    becomes::<Deployment>(
        &target,
        json!({"metadata": {"name": "f"}, "spec": {"replicas": 1, "selector": selector, "template": template("shop/broken:1", json!({}))}}),
        |status| status["replicas"] == 1 && status["unavailableReplicas"] == 1,
    )
    .await;
}
