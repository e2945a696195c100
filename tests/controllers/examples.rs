//! Runs the commands in deploy/examples/README.md on a real cluster.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use bowline::api::{Component, DataPlane, ReleasePin};
use kube::api::{Api, ListParams};
use kube::runtime::wait::await_condition;

use crate::HANG;
use crate::cluster::Cluster;
use crate::install::bowline;
use crate::pins::is_ready;
use crate::place::{Place, Target};
use crate::process::Process;
use crate::uninstall::delete_kinds;

/// Runs the commands of one code block in the README: the block whose first line begins with `begins`.
async fn run_block(target: &Target, begins: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("deploy/examples/README.md")).unwrap();
    let lines = page.lines().skip_while(|line| !line.starts_with(begins));
    let lines: Vec<&str> = lines.take_while(|line| *line != "```").collect();
    assert!(!lines.is_empty(), "no block begins with {begins}");
    for line in lines {
        let mut words = line.split_whitespace();
        let mut command = match words.next() {
            Some("kubectl") => target.kubectl(),
            Some("bowline") => Command::new(env!("CARGO_BIN_EXE_bowline")),
            other => panic!("{other:?} is no command"),
        };
        command.args(words).args(target.flags()).current_dir(root);
        let ran = tokio::task::spawn_blocking(move || command.output().unwrap());
        let ran = ran.await.unwrap();
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{line}: {said}");
    }
}

pub async fn the_readme_deploys_the_example_with_bowline_and_applies_it_with_kubectl(
    cluster: Arc<Cluster>,
) {
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let target = Target::new(&Place::Cluster(cluster.clone()), "examples").await;
    let process = Process::start(&target, "controller", target.flags()).await;
    // The next call of `flags` writes the kubeconfig again, so the controller must have read it before.
    process.until_it_leads(&target).await;
    run_block(&target, "kubectl create priorityclass").await;
    let pins: Api<ReleasePin> = Api::default_namespaced(target.client());
    // A command deploys the first component, and autoDeploy the others.
    let deployed = ["product-catalog", "checkout-service", "frontend"];
    let deployed = deployed.map(|component| format!("{component}-development"));
    for name in &deployed {
        let ready = |pin: Option<&ReleasePin>| pin.is_some_and(is_ready);
        let ready = await_condition(pins.clone(), name, ready);
        if tokio::time::timeout(HANG, ready).await.is_err() {
            let pin = pins.get_opt(name).await.unwrap();
            panic!("{name} is not ready: {pin:?}\n{}", process.log());
        }
    }
    run_block(&target, "kubectl apply --server-side").await;
    let components: Api<Component> = Api::default_namespaced(target.client());
    let components = components.list(&ListParams::default()).await.unwrap();
    assert_eq!(components.items.len(), 6);
    let planes: Api<DataPlane> = Api::default_namespaced(target.client());
    let planes = planes.list(&ListParams::default()).await.unwrap();
    for plane in planes {
        assert!(
            plane.spec.in_cluster.is_some(),
            "it runs on the cluster itself"
        );
    }
    assert_eq!(process.stop().await.code(), Some(0));
    let ran = bowline(&cluster, "uninstall --yes").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    delete_kinds(&cluster, None).await;
}
