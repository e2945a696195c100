//! Running workloads while somebody uninstalls bowline, installs it again, or deletes its kinds.

use std::path::PathBuf;
use std::sync::Arc;

use bowline::api::{ReleasePin, RenderedRelease, labels};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams};
use kube::runtime::wait::await_condition;
use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;

use crate::HANG;
use crate::cluster::Cluster;
use crate::install::{bowline, gone};
use crate::pins::is_ready;
use crate::place::{Place, Target};
use crate::process::Process;
use crate::shop::Shop;
use crate::user::Ran;

/// The environments that the component runs in.
const RUNS_IN: [&str; 2] = ["dev", "prod"];

/// A component that runs in two environments of a cluster where bowline is installed.
struct Scene {
    cluster: Arc<Cluster>,
    target: Arc<Target>,
    shop: Shop,
}

impl Scene {
    async fn open(cluster: &Arc<Cluster>, name: &str) -> Self {
        let ran = bowline(cluster, "install").await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        let target = Target::new(&Place::Cluster(cluster.clone()), name).await;
        let target = Arc::new(target);
        let shop = Shop::open(&target, &["cart"]).await;
        shop.data_plane().await;
        shop.pin("cart", "prod", "cart-1").await;
        Self {
            cluster: cluster.clone(),
            target,
            shop,
        }
    }

    /// Starts a controller that has the rights of the installed one, and no others.
    async fn controller(&self, name: &str) -> Process {
        let token = self.kubectl("create token bowline-controller -n bowline-system --duration 1h");
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": self.cluster.url, "insecure-skip-tls-verify": true}}],
            "users": [{"name": "controller", "user": {"token": token.trim()}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "controller"}}],
        });
        let path: PathBuf = self.target.home.path().join(format!("{name}.kubeconfig"));
        std::fs::write(&path, kubeconfig.to_string()).unwrap();
        let flags = vec![format!("--kubeconfig={}", path.display())];
        Process::start(&self.target, name, flags).await
    }

    /// Runs the program while a controller runs as a pod of the installed Deployment: it ends with it.
    async fn beside_a_pod(&self, pod: Process, line: &str) -> Ran {
        let deployments: Api<Deployment> =
            Api::namespaced(self.target.client(), labels::SYSTEM_NAMESPACE);
        let kubelet = async {
            gone(deployments, "bowline-controller").await;
            assert_eq!(pod.stop().await.code(), Some(0));
        };
        let ((), ran) = futures::join!(kubelet, bowline(&self.cluster, line));
        ran
    }

    fn kubectl(&self, line: &str) -> String {
        let mut command = self.cluster.kubectl();
        let out = command.args(line.split_whitespace()).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(out.status.success(), "kubectl {line}: {said}");
        String::from_utf8(out.stdout).unwrap()
    }

    /// Waits until everything runs, and returns the workloads by their uids.
    async fn ready(&self) -> Vec<String> {
        for environment in RUNS_IN {
            let name = format!("cart-{environment}");
            let ready = |pin: Option<&ReleasePin>| pin.is_some_and(is_ready);
            let ready = await_condition(self.shop.pins(), &name, ready);
            if tokio::time::timeout(HANG, ready).await.is_err() {
                let pin = self.shop.pins().get(&name).await.unwrap();
                let logs = crate::process::logs(&self.target);
                panic!("{name} is not ready: {:?}\n{logs}", pin.status);
            }
        }
        self.running().await
    }

    /// The uids of the workloads that run and are not being deleted.
    async fn running(&self) -> Vec<String> {
        let mut found = Vec::new();
        for environment in RUNS_IN {
            let namespace = self.shop.namespace_of(environment);
            let maps: Api<ConfigMap> = Api::namespaced(self.target.client(), &namespace);
            let map = maps.get_opt("cart").await.unwrap();
            let map = map.filter(|map| map.metadata.deletion_timestamp.is_none());
            found.extend(map.and_then(|map| map.uid()));
        }
        found
    }

    fn rendered(&self) -> Api<RenderedRelease> {
        Api::namespaced(self.target.client(), &self.target.namespace)
    }

    /// How many RenderedReleases have the finalizer of the controller, and how many have not.
    async fn claimed(&self) -> (usize, usize) {
        let found = self.rendered().list(&ListParams::default()).await.unwrap();
        let claimed = |it: &&RenderedRelease| {
            it.finalizers()
                .iter()
                .any(|it| it == labels::DATAPLANE_CLEANUP)
        };
        let count = found.items.iter().filter(claimed).count();
        (count, found.items.len() - count)
    }

    /// Waits until the controller says that it does not clean up.
    async fn stopped(&self, why: &str) {
        for environment in RUNS_IN {
            let name = format!("cart-{environment}");
            let is_stopped = |it: Option<&RenderedRelease>| {
                let status = it.and_then(|it| it.status.as_ref());
                let mut conditions = status.iter().flat_map(|status| &status.conditions);
                conditions.any(|it| it.reason == "CleanupStopped" && it.message.contains(why))
            };
            let stopped = await_condition(self.rendered(), &name, is_stopped);
            if tokio::time::timeout(HANG, stopped).await.is_err() {
                let found = self.rendered().get_opt(&name).await.unwrap();
                let logs = crate::process::logs(&self.target);
                panic!(
                    "{name}: {:?}\n{logs}",
                    found.map(|it| (it.metadata, it.status))
                );
            }
        }
    }

    /// Makes the ReleasePins again that went with their kind.
    async fn pin_again(&self) {
        for (environment, release) in [("dev", "cart-2"), ("prod", "cart-1")] {
            let pin = crate::shop::pin("cart", environment, release);
            let pins = self.shop.pins();
            pins.create(&Default::default(), &pin).await.unwrap();
        }
    }

    /// Deletes what an uninstallation keeps: the kinds with their objects.
    async fn clear(self) {
        let ran = bowline(&self.cluster, "uninstall --yes").await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        delete_kinds(&self.cluster, None).await;
    }
}

/// Deletes a kind, or all of bowline's, and waits until they are gone.
async fn delete_kinds(cluster: &Cluster, name: Option<&str>) {
    let kinds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let ours = ListParams::default().labels(&format!("{}=bowline", labels::PART_OF));
    let found = kinds.list_metadata(&ours).await.unwrap();
    let names: Vec<String> = found.items.iter().map(|kind| kind.name_any()).collect();
    for kind in names
        .iter()
        .filter(|it| name.is_none_or(|name| name == **it))
    {
        let now = DeleteParams::default();
        kinds.delete(kind, &now).await.unwrap();
        gone(kinds.clone(), kind).await;
    }
}

/// No command that somebody could copy and regret.
fn offers_no_damage(ran: &Ran) {
    assert!(!ran.err.contains("kubectl delete"), "{}", ran.err);
}

pub async fn running_workloads_match_the_promise_of_each_step(cluster: Arc<Cluster>) {
    let scene = Scene::open(&cluster, "uninstall-promise").await;
    let first = scene.controller("first").await;
    let running = scene.ready().await;
    assert_eq!(running.len(), 2);
    assert_eq!(scene.claimed().await, (2, 0));

    // Nobody confirms: nothing changes.
    let ran = bowline(&cluster, "uninstall").await;
    assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{}", ran.err);
    assert!(ran.err.contains("hint: add --yes"), "{}", ran.err);
    let ran = bowline(&cluster, "uninstall --dry-run").await;
    assert_eq!(ran.code, 3, "{}", ran.err);
    let line = format!(
        "RenderedRelease {}/cart-prod loses its finalizer (dry run)\n",
        scene.target.namespace
    );
    assert!(ran.out.contains(&line), "{}", ran.out);
    assert_eq!(scene.claimed().await, (2, 0));

    // Keep: the workloads stay, and nothing is left that could remove them.
    let ran = scene.beside_a_pod(first, "uninstall --yes").await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    offers_no_damage(&ran);
    assert_eq!(scene.claimed().await, (0, 2));
    assert_eq!(scene.running().await, running);
    let ran = bowline(&cluster, "uninstall --yes").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    offers_no_damage(&ran);

    // The kinds can go, and the garbage collector takes nothing along that runs.
    delete_kinds(&cluster, Some(ReleasePin::crd_name())).await;
    delete_kinds(&cluster, Some(RenderedRelease::crd_name())).await;
    assert_eq!(scene.running().await, running);

    // Install again: the same workloads are taken over.
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let second = scene.controller("second").await;
    scene.pin_again().await;
    assert_eq!(scene.ready().await, running);

    // Remove needs a controller.
    second.kill();
    let ran = bowline(&cluster, "uninstall --remove-running --yes").await;
    assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{}", ran.err);
    assert!(ran.err.contains("no controller runs"), "{}", ran.err);
    assert_eq!(scene.running().await, running);
    assert_eq!(scene.claimed().await, (2, 0));

    // Remove: nothing is left.
    let third = scene.controller("third").await;
    third.until_it_leads(&scene.target).await;
    let line = "uninstall --remove-running --yes";
    let ran = scene.beside_a_pod(third, line).await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(scene.running().await, [""; 0]);
    for line in [
        "customresourcedefinition.apiextensions.k8s.io/releases.core.choreo.dev deleted\n",
        "customresourcedefinition.apiextensions.k8s.io/releasepins.openchoreo.dev deleted\n",
        "namespace/bowline-system deleted\n",
    ] {
        assert!(ran.out.contains(line), "{} has no {line}", ran.out);
    }
    scene.clear().await;
}

pub async fn workloads_survive_the_deletion_of_a_kind(cluster: Arc<Cluster>) {
    let scene = Scene::open(&cluster, "uninstall-kinds").await;
    let first = scene.controller("first").await;
    let running = scene.ready().await;

    // Without the kind of the ReleasePins, the garbage collector deletes the RenderedReleases: at once, or
    // when the kind is there again. The test does not wait for it.
    delete_kinds(&cluster, Some(ReleasePin::crd_name())).await;
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    for environment in RUNS_IN {
        let name = format!("cart-{environment}");
        let now = DeleteParams::default();
        scene.rendered().delete(&name, &now).await.unwrap();
    }
    scene.stopped("was deleted together with its kind").await;
    assert_eq!(scene.running().await, running);
    // Another controller changes nothing.
    first.kill();
    let second = scene.controller("second").await;
    second.until_it_leads(&scene.target).await;

    // The kind itself.
    scene.kubectl("delete crd releases.core.choreo.dev --wait=false");
    scene
        .stopped("the kind releases.core.choreo.dev is being deleted")
        .await;
    assert_eq!(scene.running().await, running);
    for line in ["install --dry-run", "install"] {
        let ran = bowline(&cluster, line).await;
        assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{line}: {}", ran.err);
        for words in [
            "nothing was changed: the cluster is deleting these objects",
            "customresourcedefinition.apiextensions.k8s.io/releases.core.choreo.dev",
            "hint: bowline uninstall finishes the deletion",
        ] {
            assert!(ran.err.contains(words), "{} has no {words}", ran.err);
        }
    }
    let ran = scene.beside_a_pod(second, "uninstall --yes").await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let kinds: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let left = kinds.get_opt(RenderedRelease::crd_name()).await.unwrap();
    assert!(left.is_none(), "it is not deleted");
    assert_eq!(scene.running().await, running);

    // New ReleasePins take the workloads over.
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let third = scene.controller("third").await;
    scene.pin_again().await;
    assert_eq!(scene.ready().await, running);
    third.kill();
    scene.clear().await;
}

pub async fn finalizers_stay_while_a_controller_acts(cluster: Arc<Cluster>) {
    let scene = Scene::open(&cluster, "uninstall-acting").await;
    // Nothing ends this one with the Deployment.
    let outside = Process::start(&scene.target, "outside", scene.target.flags()).await;
    let running = scene.ready().await;
    let ran = bowline(&cluster, "uninstall --yes --timeout 5s").await;
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    assert!(ran.err.contains("a controller still acts"), "{}", ran.err);
    assert_eq!(scene.claimed().await, (2, 0));
    // It goes on where it ended.
    assert_eq!(outside.stop().await.code(), Some(0));
    let ran = bowline(&cluster, "uninstall --yes").await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(scene.claimed().await, (0, 2));
    assert_eq!(scene.running().await, running);
    scene.clear().await;
}
