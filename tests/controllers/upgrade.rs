//! A cluster with the kinds and the objects of the previous version of bowline. This version acts on them
//! before and after `bowline install` updates the kinds. tests/upgrade/README.md describes the objects.

use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use crate::cluster::{Cluster, until_admitted};
use crate::install::bowline;
use crate::place::{Place, Target};
use crate::user::User;
use crate::workloads::{create, ship};

fn unpacked(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/upgrade");
    let packed = std::fs::File::open(folder.join(name)).unwrap();
    let mut bytes = Vec::new();
    let mut unpacked = flate2::read::GzDecoder::new(packed);
    unpacked.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Installs the previous version as its own `install` does.
async fn install_previous(cluster: &Cluster) {
    let line = "apply --server-side --field-manager=bowline-install -f -";
    let mut kubectl = cluster.kubectl();
    kubectl.args(line.split(' '));
    let run = kubectl.stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut run = run.unwrap();
    let objects = unpacked("install.yaml.gz");
    run.stdin.take().unwrap().write_all(&objects).unwrap();
    assert!(run.wait().unwrap().success());
    until_admitted(&cluster.client()).await;
}

/// Copies the objects of the old store directly into etcd. So the objects keep their uids and generations,
/// which audit entries contain.
async fn copy_objects(cluster: &Cluster, target: &Target) {
    let file = target.home.path().join("store.sqlite");
    std::fs::write(&file, unpacked("store.sqlite.gz")).unwrap();
    let flags = format!("--embedded={} --namespace=shop --readonly", file.display());
    let store = User::with(target, flags.split(' ').map(str::to_owned).collect());
    for crd in bowline::api::crds() {
        let (group, plural) = (&crd.spec.group, &crd.spec.names.plural);
        // No controller runs here that would remove their finalizers.
        if group == "core.choreo.dev" {
            continue;
        }
        let (list, _) = store.done(&format!("get {plural}.{group} -o json")).await;
        let mut list: Value = serde_json::from_str(&list).unwrap();
        for object in list["items"].as_array_mut().unwrap() {
            let metadata = object["metadata"].as_object_mut().unwrap();
            metadata.remove("resourceVersion");
            let name = metadata["name"].as_str().unwrap();
            let key = format!("/registry/{group}/{plural}/shop/{name}");
            cluster.store(&key, &object.to_string()).await;
        }
    }
}

/// Verifies the audit trail. Returns the number of verified entries and the warnings.
async fn verified(user: &User) -> (u64, Vec<String>) {
    let (out, _) = user.done("audit verify -o json").await;
    let verdict: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(verdict["problems"].as_array().unwrap().len(), 0, "{out}");
    let warnings = verdict["warnings"].as_array().unwrap().iter();
    let warnings = warnings.map(|warning| warning["what"].as_str().unwrap().to_owned());
    (verdict["entries"].as_u64().unwrap(), warnings.collect())
}

/// Returns the actions of a chain of audit entries, oldest first, and the newest entry.
async fn chain(user: &User, words: &str) -> (Vec<String>, Value) {
    let (out, _) = user.done(&format!("audit list {words} -o json")).await;
    let mut list: Value = serde_json::from_str(&out).unwrap();
    let entries = list["items"].as_array_mut().unwrap();
    let action = |entry: &Value| entry["spec"]["action"].as_str().unwrap().to_owned();
    let actions = entries.iter().map(action).collect();
    (actions, entries.pop().unwrap_or_default())
}

pub async fn a_cluster_of_the_previous_version_is_changed_before_and_after_its_upgrade(
    cluster: Arc<Cluster>,
) {
    install_previous(&cluster).await;
    let target = Target::new(&Place::Cluster(cluster.clone()), "shop").await;
    copy_objects(&cluster, &target).await;
    let user = User::of(&target);

    // Before the upgrade.
    let crds: Api<CustomResourceDefinition> = Api::all(target.client());
    let lists_subjects = async || {
        let crd = crds.get("auditentries.bowline.dev").await.unwrap();
        let crd = serde_json::to_value(crd).unwrap();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        let subject = &schema["properties"]["spec"]["properties"]["subject"];
        subject["properties"]["kind"]["enum"].is_array()
    };
    assert!(lists_subjects().await);
    assert_eq!(verified(&user).await, (22, vec![]));
    let (status, _) = user.done("status -o json").await;
    let status: Value = serde_json::from_str(&status).unwrap();
    assert_eq!(status["components"][1]["component"], "checkout");
    let staging = &status["components"][1]["environments"][1];
    assert_eq!(
        (&staging["release"], &staging["held"]),
        (&"checkout-v1.4.0".into(), &true.into())
    );
    let (history, _) = user.done("history checkout -e production").await;
    for words in ["INC-42 timeouts", "faster checkout", "first release", "ana"] {
        assert!(history.contains(words), "{history}");
    }
    user.done("unpin checkout -e staging").await;
    user.done("promote checkout --from development --to staging --unready")
        .await;
    user.done("mark good checkout-v1.5.0 --reason false-alarm")
        .await;
    // The server stores the whole entry of a hold that fixes another release than the releaseRef.
    user.done("pin checkout -e staging --release checkout-v1.5.0 --reason compare")
        .await;
    let (actions, newest) = chain(&user, "checkout -e staging").await;
    assert_eq!(
        actions,
        ["Promote", "Promote", "Pin", "Unpin", "Promote", "Pin"]
    );
    assert_eq!(newest["spec"]["subject"]["kind"], "ReleasePin");
    assert_eq!(newest["spec"]["subject"]["name"], "checkout-staging");
    assert_eq!(newest["spec"]["to"]["name"], "checkout-v1.5.0");
    assert_eq!(newest["spec"]["releaseRef"], "checkout-v1.6.0");
    assert_eq!(newest["spec"]["actor"], "admin");
    assert_eq!(verified(&user).await, (26, vec![]));

    // The kind of the previous version has no entries of workloads.
    create::<Deployment>(&target, "web", "shop/web:1").await;
    ship::<Deployment>(&target, "web", "shop/web:2").await;
    let (_, err) = user.done("rollback deploy/web --reason INC-7").await;
    let note = "the kind AuditEntry of this cluster is from an older bowline";
    assert!(err.contains(note), "{err}");
    let events: Api<Event> = Api::default_namespaced(target.client());
    let of_web = ListParams::default().fields("involvedObject.name=web,reason=Rollback");
    let found = events.list(&of_web).await.unwrap().items;
    let said = found[0].message.as_deref().unwrap_or_default();
    assert!(
        said.contains("by admin") && said.contains("INC-7"),
        "{said}"
    );
    let (entries, warnings) = verified(&user).await;
    assert_eq!((entries, warnings.len()), (26, 1), "{warnings:?}");
    assert!(
        warnings[0].contains("before this server had AuditEntries of this kind"),
        "{warnings:?}"
    );

    // The upgrade.
    let ran = bowline(&cluster, "install --image example/bowline:new").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let crd = "customresourcedefinition.apiextensions.k8s.io/auditentries.bowline.dev configured";
    assert!(ran.out.lines().any(|line| line == crd), "{}", ran.out);
    assert!(!lists_subjects().await);

    // After the upgrade.
    let (entries, warnings) = verified(&user).await;
    assert_eq!((entries, warnings.len()), (26, 1), "{warnings:?}");
    user.done("undo checkout -e staging").await;
    user.done("rollback checkout -e staging --to checkout-v1.4.0 --reason INC-43")
        .await;
    let (actions, newest) = chain(&user, "checkout -e staging").await;
    assert_eq!(actions[5..], ["Pin", "Undo", "Rollback"]);
    assert_eq!(newest["spec"]["revision"], 8);
    let (_, err) = user.done("undo deploy/web").await;
    assert!(!err.contains(note), "{err}");
    // bowline first writes the missing entry of the rollback, from the annotation of the workload.
    let (all, _) = user.done("audit list -o json").await;
    let all: Value = serde_json::from_str(&all).unwrap();
    let entries = all["items"].as_array().unwrap().iter();
    let of_web = entries.filter(|entry| entry["spec"]["subject"]["name"] == "web");
    let of_web: Vec<[&str; 4]> = of_web
        .map(|entry| {
            let text = |path: &str| entry["spec"].pointer(path).and_then(Value::as_str);
            ["/subject/kind", "/action", "/actor", "/to/name"]
                .map(|path| text(path).unwrap_or_default())
        })
        .collect();
    assert_eq!(
        of_web,
        [
            ["Deployment", "Rollback", "admin", "rev 1 web:1"],
            ["Deployment", "Undo", "admin", "rev 2 web:2"]
        ]
    );
    assert_eq!(verified(&user).await, (30, vec![]));
}
