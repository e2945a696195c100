//! Tests that `bowline install` keeps the settings that other users changed, and can print the objects that
//! it installs.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bowline::api::labels;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::install::{all, api, bowline, bundle, sorted, words};
use crate::user::ended;

/// Runs a kubectl command that changes the installed controller. `patch` is the patch for the command, if it
/// needs one.
fn change(cluster: &Cluster, line: &str, patch: Option<Value>) {
    let mut command = cluster.kubectl();
    command.args(["-n", labels::SYSTEM_NAMESPACE]);
    command.args(line.split_whitespace());
    if let Some(patch) = patch {
        command.args(["-p", &patch.to_string()]);
    }
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "kubectl {line}: {said}");
}

pub async fn values_that_others_set_stay(cluster: Arc<Cluster>) {
    let ran = bowline(&cluster, "install --image example/bowline:7").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let bundled = bundle();
    let of = |kind: &str, name: &str| {
        let mut all = bundled.iter();
        let found = all.find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
        found.unwrap().clone()
    };
    let read = async |kind: &str, name: &str| {
        let found = api(&cluster, &of(kind, name)).get(name).await.unwrap();
        serde_json::to_value(found).unwrap()
    };
    let changes = "deployment/bowline-controller";
    change(&cluster, &format!("scale {changes} --replicas=1"), None);
    change(
        &cluster,
        &format!("set env {changes} HOME=/home EXTRA=1"),
        None,
    );
    change(&cluster, &format!("annotate {changes} team=platform"), None);
    let container = |more: Value| {
        let mut container = json!({"name": "controller"});
        let fields = container.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        json!({"spec": {"template": {"spec": {"containers": [container]}}}})
    };
    for patch in [
        container(json!({"args": ["controller", "--listen=0.0.0.0:8080", "--log-format=text"]})),
        container(json!({"resources": {"requests": {"cpu": "2"}, "limits": {"memory": null}}})),
        json!({"spec": {"template": {"spec": {"nodeSelector": {"disk": "fast"}, "topologySpreadConstraints": null}}}}),
    ] {
        change(&cluster, &format!("patch {changes}"), Some(patch));
    }
    change(
        &cluster,
        "annotate service/bowline-controller prometheus.io/scrape-",
        None,
    );
    change(
        &cluster,
        "patch clusterrole/bowline-data-plane --type=merge",
        Some(
            json!({"rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]}),
        ),
    );
    change(
        &cluster,
        "label clusterrole/bowline-reader rbac.authorization.k8s.io/aggregate-to-view-",
        None,
    );
    let places = [
        ("Deployment", "bowline-controller"),
        ("Service", "bowline-controller"),
        ("ClusterRole", "bowline-data-plane"),
        ("ClusterRole", "bowline-reader"),
    ];
    let state = async || {
        let mut state = Vec::new();
        for (kind, name) in places {
            let found = read(kind, name).await;
            let metadata = &found["metadata"];
            let mut annotations = metadata["annotations"].clone();
            if let Some(annotations) = annotations.as_object_mut() {
                annotations.remove(labels::LAST_INSTALLED);
                // The Deployment controller of Kubernetes changes this annotation.
                annotations.remove("deployment.kubernetes.io/revision");
            }
            state.push(json!([
                found["spec"],
                found["rules"],
                metadata["labels"],
                annotations
            ]));
        }
        state
    };
    let changed = state().await;
    for line in ["install", "install --image example/bowline:7"] {
        let ran = bowline(&cluster, line).await;
        assert_eq!(ran.code, 0, "{line}: {}", ran.err);
        assert_eq!(state().await, changed, "{line}");
    }
    let ran = bowline(&cluster, "install").await;
    for words in [
        "deployment.apps/bowline-controller keeps the image example/bowline:7; --image names another",
        ".spec.replicas (set by kubectl)",
        r#".spec.template.spec.containers[name="controller"].args (set by kubectl-patch)"#,
        ".spec.template.spec.topologySpreadConstraints (removed)",
        "service/bowline-controller keeps .metadata.annotations.prometheus.io/scrape (removed)",
        "clusterrole.rbac.authorization.k8s.io/bowline-data-plane keeps .rules (set by kubectl-patch)",
        "--reset-values sets the values of this version",
    ] {
        assert!(ran.err.contains(words), "{} has no {words}", ran.err);
    }
    assert_eq!(
        words(&ran.out),
        all("unchanged", bundled.len()),
        "{}",
        ran.err
    );
    // --image changes only the image, even if another user set it before.
    change(
        &cluster,
        &format!("set image {changes} controller=example/bowline:8"),
        None,
    );
    let ran = bowline(&cluster, "install --image example/bowline:9").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let mut named = changed.clone();
    named[0][0]["template"]["spec"]["containers"][0]["image"] = json!("example/bowline:9");
    assert_eq!(state().await, named);
    // --reset-values resets all values except the image.
    let ran = bowline(&cluster, "install --reset-values").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let found = read("Deployment", "bowline-controller").await;
    let container = &found["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "example/bowline:9");
    assert_eq!(container["resources"]["limits"]["memory"], "1Gi");
    assert_eq!(container["args"].as_array().unwrap().len(), 4);
    assert_eq!(found["spec"]["replicas"], 2);
    assert_eq!(found["metadata"]["annotations"]["team"], "platform");
    let role = read("ClusterRole", "bowline-data-plane").await;
    assert_eq!(
        role["rules"],
        of("ClusterRole", "bowline-data-plane")["rules"]
    );
    let ran = bowline(&cluster, "uninstall").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
}

pub async fn an_installation_by_kubectl_keeps_its_values(cluster: Arc<Cluster>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy");
    change(&cluster, &format!("apply -k {}", folder.display()), None);
    let changes = "deployment/bowline-controller";
    change(
        &cluster,
        &format!("set image {changes} controller=example/bowline:8"),
        None,
    );
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    // The message does not list the defaults of the server, because no user set them.
    assert_eq!(
        ran.err,
        "deployment.apps/bowline-controller keeps the image example/bowline:8; --image names another\n"
    );
    let ran = bowline(&cluster, "install --dry-run").await;
    assert_eq!(
        (ran.code, words(&ran.out)),
        (0, all("unchanged (dry run)", bundle().len())),
        "{}",
        ran.err
    );
    let ran = bowline(&cluster, "uninstall").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
}

pub async fn print_needs_no_cluster(cluster: Arc<Cluster>) {
    let home = tempfile::tempdir().unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_bowline"))
        .args(["install", "--print", "--image", "example/bowline:7"])
        .env_clear()
        .env("HOME", home.path())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let ran = ended(run.unwrap()).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let (head, _) = ran.out.split_once("---\n").unwrap();
    assert!(head.lines().all(|line| line.starts_with('#')), "{head}");
    assert!(head.contains("Kubernetes 1.36"), "{head}");
    let documents = ran.out.split("---\n").skip(1);
    let printed: Vec<Value> = documents
        .map(|document| serde_yaml::from_str(document).unwrap())
        .collect();
    let wanted = bowline::cli::bundle::objects(Some("example/bowline:7")).unwrap();
    assert_eq!(sorted(printed), sorted(wanted));
    assert_eq!(ran.out.matches("image: example/bowline:7\n").count(), 1);
    // kubectl accepts the printed objects.
    let file = home.path().join("bowline.yaml");
    std::fs::write(&file, &ran.out).unwrap();
    let mut command = cluster.kubectl();
    command
        .args(["create", "--dry-run=client", "-f"])
        .arg(&file);
    let out = command.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
}
