//! The controller in one cluster deploys to another cluster. It reads the connections to data planes from a
//! separate kubeconfig.

use std::sync::Arc;

use bowline::api::{DataPlane, ReleasePin, names};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::{Api, PostParams};
use kube::runtime::wait::await_condition;
use serde_json::{Value, json};

use crate::HANG;
use crate::cluster::{Cluster, Options, USERS};
use crate::place::Target;
use crate::process::{Process, system_namespace};
use crate::shop::Shop;

/// Gives a user exactly the permissions of the ClusterRole bowline-data-plane in deploy/.
async fn grant_data_plane(cluster: &Cluster, user: &str) {
    let role = bowline::cli::bundle::objects(None).unwrap();
    let role = role.into_iter().find(|object| {
        object["kind"] == "ClusterRole" && object["metadata"]["name"] == "bowline-data-plane"
    });
    let role: ClusterRole = serde_json::from_value(role.unwrap()).unwrap();
    let roles: Api<ClusterRole> = Api::all(cluster.client());
    let params = PostParams::default();
    roles.create(&params, &role).await.unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": "bowline-data-plane"},
        "roleRef": {"kind": "ClusterRole", "apiGroup": "rbac.authorization.k8s.io", "name": "bowline-data-plane"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
    }))
    .unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(cluster.client());
    bindings.create(&params, &binding).await.unwrap();
}

/// Waits until the condition `kind` of the ReleasePin has this status and a message that contains `said`.
async fn until(shop: &Shop, process: &Process, kind: &str, status: &str, said: &str) {
    let is_so = |pin: Option<&ReleasePin>| {
        let pin = serde_json::to_value(pin).unwrap();
        let conditions = pin.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().any(|condition| {
            let message = condition["message"].as_str().unwrap_or_default();
            condition["type"] == kind && condition["status"] == status && message.contains(said)
        })
    };
    let pin = names::pin("cart", "dev");
    let waited = tokio::time::timeout(HANG, await_condition(shop.pins(), &pin, is_so)).await;
    if waited.is_err() {
        let found = shop.pins().get(&pin).await.unwrap();
        let found = serde_json::to_string_pretty(&found.status).unwrap();
        panic!("{kind} is not {status}: {found}\n{}", process.log());
    }
}

pub async fn a_second_cluster_is_reached_through_the_kubeconfig_of_the_data_planes(
    target: Arc<Target>,
) {
    let Some(second) = Cluster::start(Options::default()).await else {
        return;
    };
    grant_data_plane(&second, USERS[0]).await;
    system_namespace(&target).await;
    let shop = Shop::open(&target, &["cart"]).await;
    // The kubeconfig of the control plane has a context of the same name, which the controller must not use.
    let plane = json!({"context": {"name": "test"}});
    shop.create(&bowline::fixture::object::<DataPlane>("here", plane))
        .await;

    // The directory of the mounted Secret is empty, as it is until a user creates the optional Secret.
    let mounted = target.home.path().join("mounted");
    std::fs::create_dir(&mounted).unwrap();
    let file = mounted.join("config");
    let mut flags = target.flags();
    flags.push(format!("--data-planes={}", file.display()));
    let process = Process::start(&target, "controller", flags).await;
    until(&shop, &process, "Ready", "False", "bowline-kubeconfig").await;

    // The second cluster refuses the first token and accepts the second one. The controller uses the new
    // token without a restart.
    let valid = std::fs::read_to_string(second.kubeconfig_of(USERS[0])).unwrap();
    let expired = valid.replace(&second.token(USERS[0]), "expired");
    assert_ne!(expired, valid);
    std::fs::write(&file, expired).unwrap();
    until(&shop, &process, "Ready", "False", "nauthorized").await;
    std::fs::write(&file, valid).unwrap();
    until(&shop, &process, "Ready", "True", "").await;
    let namespace = shop.namespace_of("dev");
    let deployed: Api<ConfigMap> = Api::namespaced(second.client(), &namespace);
    let deployed = deployed.get("cart").await.unwrap();
    assert_eq!(deployed.data.unwrap()["image"], "shop/cart:2");
    let namespaces: Api<Namespace> = Api::all(target.client());
    let own = namespaces.get_opt(&namespace).await.unwrap();
    assert!(own.is_none(), "nothing is deployed to the control plane");
    assert_eq!(process.stop().await.code(), Some(0));
}
