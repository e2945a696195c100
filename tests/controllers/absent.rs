//! Tests of the verbs and the controller on a real cluster that does not have bowline's kinds.

use std::process::Command;
use std::sync::Arc;

use bowline::api::{ReleasePin, labels};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, PostParams};
use kube::runtime::wait::await_condition;

use serde_json::json;

use crate::HANG;
use crate::cluster::Cluster;
use crate::install::{bowline, gone};
use crate::place::{Place, Target};
use crate::process::{Process, system_namespace};
use crate::uninstall::delete_kinds;
use crate::user::Ran;

pub async fn a_verb_names_the_kinds_that_a_cluster_does_not_have(cluster: Arc<Cluster>) {
    let home = tempfile::tempdir().unwrap();
    let run = async |line: &'static str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bowline"));
        command
            .args(line.split_whitespace())
            .env_clear()
            .env("HOME", home.path())
            .env("KUBECONFIG", cluster.kubeconfig());
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
        Ran::from(ran.await.unwrap())
    };
    for line in [
        "status",
        "audit list",
        "promote cart --from dev --to prod --yes",
    ] {
        let ran = run(line).await;
        assert_eq!(ran.code, 5, "{line}: {}", ran.err);
        let said = ran.err.contains("context test does not have the kinds ");
        assert!(said, "{line}: {}", ran.err);
    }
    let ran = run("get releasepins").await;
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert_eq!(run("get deployments").await.code, 0);
    // Without bowline's kinds, `status` shows the workloads of the cluster.
    let workloads = cluster.client();
    let web = json!({
        "metadata": {"name": "web"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "shop/web:v1"}]},
            },
        },
    });
    let deployments: Api<Deployment> = Api::namespaced(workloads, "default");
    let web = serde_json::from_value(web).unwrap();
    deployments
        .create(&PostParams::default(), &web)
        .await
        .unwrap();
    for line in ["status", "status -A", "status deploy/web"] {
        let ran = run(line).await;
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        assert!(ran.out.contains("WORKLOAD"), "{line}: {}", ran.out);
        assert!(ran.out.contains("deploy/web "), "{line}: {}", ran.out);
        assert!(ran.out.contains(" web:v1"), "{line}: {}", ran.out);
    }
    assert_eq!(run("status -o name").await.out, "deployment.apps/web\n");
    deployments
        .delete("web", &DeleteParams::default())
        .await
        .unwrap();
}

pub async fn a_controller_waits_for_the_kinds_that_a_cluster_does_not_have(cluster: Arc<Cluster>) {
    let target = Target::new(&Place::Cluster(cluster.clone()), "controller-waits").await;
    let target = Arc::new(target);
    system_namespace(&target).await;
    let process = Process::start(&target, "early", target.flags()).await;
    process.until_it_leads(&target).await;
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    // When the kinds exist, the waiting controller starts to reconcile by itself.
    let pins: Api<ReleasePin> = Api::namespaced(target.client(), &target.namespace);
    let pin = bowline::fixture::new_pin("cart", "dev", "cart-1");
    pins.create(&PostParams::default(), &pin).await.unwrap();
    let seen = |pin: Option<&ReleasePin>| pin.is_some_and(|pin| pin.status.is_some());
    let seen = await_condition(pins, "cart-dev", seen);
    let seen = tokio::time::timeout(HANG, seen).await;
    seen.unwrap_or_else(|_| panic!("{}", process.log()))
        .unwrap();
    let log = process.log();
    let lines = log.lines();
    let said = lines.filter(|line| line.contains("context test does not have the kinds "));
    let said: Vec<&str> = said.collect();
    assert_eq!(said.len(), 1, "{log}");
    assert!(said[0].contains("bowline install installs them"), "{log}");
    process.kill();
    let leases: Api<Lease> = Api::namespaced(target.client(), labels::SYSTEM_NAMESPACE);
    let now = DeleteParams::default();
    leases.delete(labels::CONTROLLER_LEASE, &now).await.unwrap();
    let ran = bowline(&cluster, "uninstall --yes").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    delete_kinds(&cluster, None).await;
    let namespaces: Api<Namespace> = Api::all(target.client());
    let system = labels::SYSTEM_NAMESPACE;
    namespaces.delete(system, &now).await.unwrap();
    gone(namespaces, system).await;
}
