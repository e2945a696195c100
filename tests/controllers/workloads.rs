//! Tests of the history and the rollback of ordinary workloads, on a real cluster without bowline's kinds.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Event;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::await_condition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::HANG;
use crate::cluster::Cluster;
use crate::place::{Place, Target};
use crate::pty::{ESC, LEAVE, Pty};
use crate::user::User;

/// The functions with which a test reads a kind of workload.
pub trait Tested:
    kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
    + Clone
    + std::fmt::Debug
    + Serialize
    + DeserializeOwned
    + Send
    + 'static
{
}

impl Tested for Deployment {}
impl Tested for StatefulSet {}
impl Tested for DaemonSet {}

fn api<K: Tested>(target: &Target) -> Api<K> {
    Api::default_namespaced(target.client())
}

/// Creates a workload that runs an image, and waits until its pods are ready.
pub async fn create<K: Tested>(target: &Target, name: &str, image: &str) {
    let mut spec = json!({
        "selector": {"matchLabels": {"app": name}},
        "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": image}]},
        },
    });
    match &*K::kind(&()) {
        "StatefulSet" => spec["serviceName"] = json!(name),
        "Deployment" => spec["replicas"] = json!(2),
        _ => {}
    }
    let object = json!({"metadata": {"name": name}, "spec": spec});
    let object: K = serde_json::from_value(object).unwrap();
    api::<K>(target)
        .create(&PostParams::default(), &object)
        .await
        .unwrap();
    ready::<K>(target, name).await;
}

/// Changes the image of a workload as kubectl does, and waits until the rollout ends.
pub async fn ship<K: Tested>(target: &Target, name: &str, image: &str) {
    let containers = json!([{"name": "main", "image": image}]);
    patch::<K>(
        target,
        name,
        json!({"spec": {"template": {"spec": {"containers": containers}}}}),
    )
    .await;
    ready::<K>(target, name).await;
}

async fn patch<K: Tested>(target: &Target, name: &str, patch: Value) {
    let patch = Patch::Strategic(patch);
    api::<K>(target)
        .patch(name, &PatchParams::default(), &patch)
        .await
        .unwrap();
}

/// Waits until the Kubernetes controller has observed a workload and all pods of the workload have the newest
/// template.
async fn ready<K: Tested>(target: &Target, name: &str) {
    let done = |object: Option<&K>| {
        let Some(object) = object else { return false };
        let value = serde_json::to_value(object).unwrap();
        let number = |at: &str| {
            value
                .pointer(at)
                .and_then(Value::as_i64)
                .unwrap_or_default()
        };
        let wanted = match &*K::kind(&()) {
            "DaemonSet" => number("/status/desiredNumberScheduled"),
            _ => number("/spec/replicas"),
        };
        let updated = number("/status/updatedReplicas") + number("/status/updatedNumberScheduled");
        let ready = number("/status/readyReplicas") + number("/status/numberReady");
        number("/status/observedGeneration") == number("/metadata/generation")
            && wanted > 0
            && (updated, ready) == (wanted, wanted)
    };
    let reached = tokio::time::timeout(HANG, await_condition(api::<K>(target), name, done)).await;
    reached.unwrap_or_else(|_| panic!("{name} hangs")).unwrap();
}

async fn image<K: Tested>(target: &Target, name: &str) -> String {
    let object = api::<K>(target).get(name).await.unwrap();
    let value = serde_json::to_value(object).unwrap();
    value["spec"]["template"]["spec"]["containers"][0]["image"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Tests every verb on each kind of workload: revisions, diff, rollback with a hold, history with the author,
/// and undo.
pub async fn a_workload_that_nobody_prepared_is_rolled_back_and_undone(cluster: Arc<Cluster>) {
    let target = Target::new(&Place::Cluster(cluster), "nobody-prepared").await;
    let user = User::of(&target);
    story::<Deployment>(&target, &user, "deploy", "web").await;
    story::<StatefulSet>(&target, &user, "sts", "db").await;
    story::<DaemonSet>(&target, &user, "ds", "agent").await;
}

async fn story<K: Tested>(target: &Target, user: &User, kind: &str, name: &str) {
    let subject = format!("{kind}/{name}");
    create::<K>(target, name, "shop/web:1").await;
    ship::<K>(target, name, "shop/web:2").await;
    ship::<K>(target, name, "shop/web:3").await;

    let (list, _) = user.done(&format!("history {subject}")).await;
    let numbers: Vec<&str> = list
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert_eq!(numbers, ["3", "2", "1"], "{list}");
    let (diff, _) = user.done(&format!("diff {subject} --from 1 --to 3")).await;
    assert!(
        diff.contains("shop/web:1") && diff.contains("shop/web:3"),
        "{diff}"
    );

    // A dry run of the rollback changes nothing.
    let ran = user.run(&format!("rollback {subject} --dry-run")).await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert_eq!(image::<K>(target, name).await, "shop/web:3");
    user.ends(
        &format!("rollback {subject} --to-revision 9"),
        1,
        "has no revision 9",
    )
    .await;

    // Without a flag, the rollback restores the newest revision before the current one. Kubernetes then
    // numbers it as the newest.
    let line = format!("rollback {subject} --reason INC-1 --wait -o json");
    let (out, err) = user.done(&line).await;
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(result["items"][0]["result"], "done", "{out}");
    assert!(err.contains("this cluster has no AuditEntries"), "{err}");
    assert_eq!(image::<K>(target, name).await, "shop/web:2");
    ready::<K>(target, name).await;
    let (list, _) = user.done(&format!("history {subject}")).await;
    let newest = list.lines().nth(1).unwrap();
    assert!(
        newest.starts_with('4') && newest.contains("Rollback"),
        "{list}"
    );
    assert!(
        newest.contains("admin") && newest.contains("INC-1"),
        "{list}"
    );

    // bowline records the operation as one Event.
    let events: Api<Event> = Api::default_namespaced(target.client());
    let mine = ListParams::default().fields(&format!("involvedObject.name={name},reason=Rollback"));
    let found = events.list(&mine).await.unwrap().items;
    assert_eq!(found.len(), 1, "{found:?}");
    let said = found[0].message.clone().unwrap();
    assert!(
        said.contains("Rollback by admin: rev 3 web:3 -> rev 2 web:2 (INC-1)"),
        "{said}"
    );

    // Other replicas, as an autoscaler sets them, do not prevent the undo. The undo removes the hold.
    if kind != "ds" {
        patch::<K>(target, name, json!({"spec": {"replicas": 3}})).await;
        ready::<K>(target, name).await;
    }
    user.done(&format!("undo {subject} --wait")).await;
    assert_eq!(image::<K>(target, name).await, "shop/web:3");
    user.ends(&format!("unpin {subject}"), 5, "has no hold")
        .await;

    // undo refuses to reverse a change by another program.
    user.done(&format!(
        "rollback {subject} --to-revision 1 --no-hold --wait"
    ))
    .await;
    ship::<K>(target, name, "shop/web:4").await;
    user.ends(
        &format!("undo {subject}"),
        5,
        "another program has changed it since",
    )
    .await;
    assert_eq!(image::<K>(target, name).await, "shop/web:4");
}

/// Tests holds, a frozen Deployment, a Deployment that a GitOps tool owns, and a production namespace.
pub async fn holds_and_owners_of_a_workload_are_obeyed(cluster: Arc<Cluster>) {
    let target = Target::new(&Place::Cluster(cluster), "shop-prod").await;
    let user = User::of(&target);
    create::<Deployment>(&target, "web", "shop/web:1").await;
    ship::<Deployment>(&target, "web", "shop/web:2").await;

    // A namespace whose name contains prod is production, so the command needs --yes without a terminal.
    user.ends(
        "rollback deploy/web",
        5,
        "production environment shop-prod needs a confirmation",
    )
    .await;
    user.done("pin deploy/web --freeze --until 4h --reason INC-2 --yes")
        .await;
    let web = api::<Deployment>(&target).get("web").await.unwrap();
    assert_eq!(web.spec.as_ref().unwrap().paused, Some(true));
    assert!(web.annotations()["bowline.dev/holds"].contains("INC-2"));
    // A rollback resumes the frozen Deployment in the same write.
    user.done("rollback deploy/web --reason INC-3 --yes --wait")
        .await;
    let web = api::<Deployment>(&target).get("web").await.unwrap();
    assert_eq!(web.spec.as_ref().unwrap().paused, None);
    assert_eq!(image::<Deployment>(&target, "web").await, "shop/web:1");
    user.ends("unpin deploy/web --yes", 5, "has 2 holds").await;
    user.done("undo deploy/web --yes --wait").await;
    user.done("unpin deploy/web --yes").await;

    // A rollback of a Deployment that Argo CD owns needs --force and a reason.
    let tracked = json!({"metadata": {"annotations": {"argocd.argoproj.io/tracking-id": "shop:apps/Deployment"}}});
    patch::<Deployment>(&target, "web", tracked).await;
    user.ends("rollback deploy/web --yes", 5, "Argo CD owns it")
        .await;
    user.ends("rollback deploy/web --force --yes", 5, "without a reason")
        .await;
    user.done("rollback deploy/web --force --reason INC-4 --yes")
        .await;
    assert_eq!(image::<Deployment>(&target, "web").await, "shop/web:1");
    user.ends(
        "rollback deploy/none --yes",
        1,
        "deploy/none does not exist in namespace shop-prod",
    )
    .await;
}

/// A user with only read permissions can use the reading verbs. bowline refuses all other verbs before it
/// writes anything.
pub async fn a_reader_of_workloads_changes_nothing(cluster: Arc<Cluster>) {
    let target = Target::new(&Place::Cluster(cluster), "readers").await;
    create::<Deployment>(&target, "web", "shop/web:1").await;
    ship::<Deployment>(&target, "web", "shop/web:2").await;
    admit_a_reader(&target).await;
    let user = User::of(&target);
    let (list, _) = user.done("history deploy/web --as rita").await;
    assert!(list.contains("web:1") && list.contains("web:2"), "{list}");
    user.done("diff deploy/web --as rita").await;
    for line in [
        "rollback deploy/web",
        "pin deploy/web",
        "rollback deploy/web --dry-run",
    ] {
        let line = format!("{line} --as rita");
        user.ends(&line, 6, "no role grants you the verb patch on deployments")
            .await;
    }
    assert_eq!(image::<Deployment>(&target, "web").await, "shop/web:2");
    let web = api::<Deployment>(&target).get("web").await.unwrap();
    assert!(!web.annotations().contains_key("bowline.dev/holds"));
}

/// Gives the user rita the permission to read workloads, and no other permission.
async fn admit_a_reader(target: &Target) {
    let role = json!({
        "metadata": {"name": "reads"},
        "rules": [{"apiGroups": ["apps"], "resources": ["*"], "verbs": ["get", "list", "watch"]}],
    });
    let role: Role = serde_json::from_value(role).unwrap();
    let roles: Api<Role> = Api::default_namespaced(target.client());
    roles.create(&PostParams::default(), &role).await.unwrap();
    let binding = json!({
        "metadata": {"name": "reads"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "rita"}],
    });
    let binding: RoleBinding = serde_json::from_value(binding).unwrap();
    let bindings: Api<RoleBinding> = Api::default_namespaced(target.client());
    bindings
        .create(&PostParams::default(), &binding)
        .await
        .unwrap();
}

/// The terminal UI needs only a kubeconfig: the matrix shows a Deployment, and keys roll it back and undo the
/// rollback. A user with only read permissions sees the same screen, and the reason why the keys do nothing.
pub async fn the_terminal_ui_rolls_a_workload_back_and_undoes_it(cluster: Arc<Cluster>) {
    let target = Target::new(&Place::Cluster(cluster), "by-keyboard").await;
    let target = Arc::new(target);
    create::<Deployment>(&target, "web", "shop/web:1").await;
    ship::<Deployment>(&target, "web", "shop/web:2").await;
    let runtime = tokio::runtime::Handle::current();
    let waits = target.clone();
    let runs = move |image: &'static str| {
        let is_so = move |web: Option<&Deployment>| {
            let spec = web.and_then(|web| web.spec.as_ref()?.template.spec.as_ref());
            spec.is_some_and(|spec| spec.containers[0].image.as_deref() == Some(image))
        };
        let changed = await_condition(api::<Deployment>(&waits), "web", is_so);
        let changed = runtime.block_on(async { tokio::time::timeout(HANG, changed).await });
        changed
            .unwrap_or_else(|_| panic!("{image} does not run"))
            .unwrap();
    };
    let (flags, home) = (target.flags(), target.home.path().to_owned());
    let played = tokio::task::spawn_blocking(move || {
        let mut pty = Pty::bowline(&flags, &home, (120, 36));
        pty.shows("bowline is not installed");
        pty.shows("deploy/web");
        pty.shows("● web:2");
        pty.shows("rev 1 web:1");
        pty.keys("R");
        pty.shows("rollback  deploy/web");
        pty.shows("shop/web:2 → shop/web:1");
        pty.shows("this cluster has no AuditEntries");
        pty.shows("y apply");
        pty.keys("y");
        runs("shop/web:1");
        pty.shows("became ready with rev 1 web:1");
        pty.keys(ESC);
        pty.shows("● web:1");
        // The rollback screen does not offer the revision that the last rollback replaced.
        pty.hides("BACK TO in by-keyboard\n   rev 2");
        pty.shows("Held by admin");
        pty.keys("Z");
        pty.shows("undo  deploy/web");
        pty.shows("shop/web:1 → shop/web:2");
        pty.keys("y");
        runs("shop/web:2");
        pty.keys(ESC);
        pty.shows("● web:2");
        pty.hides("Held by admin");
        pty.keys(LEAVE);
        pty.ended();

        let as_reader = [flags.as_slice(), &["--as=rita".to_owned()]].concat();
        let mut pty = Pty::bowline(&as_reader, &home, (120, 36));
        pty.shows("● web:2");
        pty.keys("R");
        pty.shows("no role grants you the verb patch on deployments");
        pty.keys(ESC);
        pty.keys("d");
        pty.shows("shop/web:1");
        pty.keys(LEAVE);
        pty.ended();
    });
    admit_a_reader(&target).await;
    played.await.unwrap();
    assert_eq!(image::<Deployment>(&target, "web").await, "shop/web:2");
}
