//! A user uninstalls bowline, installs it again, or deletes its kinds. Running workloads must stay or
//! disappear as the documentation promises.

use std::path::PathBuf;
use std::sync::Arc;

use bowline::api::{
    Component, ComponentTypeDefinition, ReleasePin, RenderedRelease, Workload, labels,
};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams};
use kube::runtime::wait::await_condition;
use kube::{CustomResourceExt, ResourceExt};
use serde_json::json;

use crate::HANG;
use crate::cluster::Cluster;
use crate::install::{bowline, bowline_to, gone};
use crate::pins::is_ready;
use crate::place::{Place, Target};
use crate::process::Process;
use crate::shop::Shop;
use crate::user::Ran;

/// The environments in which the components run.
const RUNS_IN: [&str; 2] = ["dev", "prod"];
/// The components of the scene: cart is a ConfigMap, web is a Deployment.
const COMPONENTS: [&str; 2] = ["cart", "web"];
/// The number of ReleasePins. There are as many RenderedReleases.
const ALL: usize = 4;

/// Returns the names of the ReleasePins. The RenderedReleases have the same names.
fn names() -> impl Iterator<Item = String> {
    let all = |component| RUNS_IN.map(|environment| format!("{component}-{environment}"));
    COMPONENTS.into_iter().flat_map(all)
}

/// A cluster with bowline, on which two components run in two environments.
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
        let labels = json!({"app": "${metadata.name}"});
        let template = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "${metadata.name}"},
            "spec": {
                "replicas": 1, "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {"containers": [{"name": "main", "image": "${workload.image}"}]},
                },
            },
        });
        let spec = json!({"workloadType": "deployment", "resources": [{"id": "server", "template": template}]});
        shop.create(&bowline::fixture::object::<ComponentTypeDefinition>(
            "server", spec,
        ))
        .await;
        let spec = json!({"componentType": "deployment/server"});
        shop.create(&bowline::fixture::object::<Component>("web", spec))
            .await;
        let spec = json!({"image": "shop/web:0"});
        shop.create(&bowline::fixture::object::<Workload>("web", spec))
            .await;
        shop.release("web", "1", "web-1").await;
        for environment in RUNS_IN {
            shop.pin("web", environment, "web-1").await;
        }
        Self {
            cluster: cluster.clone(),
            target,
            shop,
        }
    }

    /// Starts a controller process with exactly the permissions of the installed controller.
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

    /// Runs the program beside a controller process. The process stands in for the pod of the installed
    /// Deployment, so it stops when the Deployment is deleted.
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

    /// Waits until every ReleasePin is ready. Returns the uids of the workloads.
    async fn ready(&self) -> Vec<String> {
        for name in names() {
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

    /// Returns the uids of the workloads that are not being deleted. Adds the generation of a Deployment,
    /// because a rollout would change the generation.
    async fn running(&self) -> Vec<String> {
        let mut found = Vec::new();
        for environment in RUNS_IN {
            let namespace = self.shop.namespace_of(environment);
            let maps: Api<ConfigMap> = Api::namespaced(self.target.client(), &namespace);
            let map = maps.get_opt("cart").await.unwrap();
            let map = map.filter(|map| map.metadata.deletion_timestamp.is_none());
            found.extend(map.and_then(|map| map.uid()));
            let deployments: Api<Deployment> = Api::namespaced(self.target.client(), &namespace);
            let web = deployments.get_opt("web").await.unwrap();
            let web = web.filter(|web| web.metadata.deletion_timestamp.is_none());
            found.extend(web.map(|web| format!("{:?} {:?}", web.uid(), web.metadata.generation)));
        }
        found
    }

    /// Waits until every RenderedRelease has the finalizer of the controller.
    async fn until_claimed(&self) {
        for name in names() {
            let is_claimed = |it: Option<&RenderedRelease>| {
                let mut finalizers = it.iter().flat_map(|it| it.finalizers());
                finalizers.any(|it| it == labels::DATAPLANE_CLEANUP)
            };
            let claimed = await_condition(self.rendered(), &name, is_claimed);
            let claimed = tokio::time::timeout(HANG, claimed).await;
            claimed
                .unwrap_or_else(|_| panic!("{name}: {}", crate::process::logs(&self.target)))
                .unwrap();
        }
    }

    fn rendered(&self) -> Api<RenderedRelease> {
        Api::namespaced(self.target.client(), &self.target.namespace)
    }

    /// Returns how many RenderedReleases have the finalizer of the controller, and how many do not have it.
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

    /// Waits until the controller reports for every RenderedRelease that it does not clean up, for the reason
    /// `why`.
    async fn stopped(&self, why: &str) {
        for name in names() {
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

    /// Creates the ReleasePins again, after a deletion of their kind deleted them.
    async fn pin_again(&self) {
        for (component, environment, release) in [
            ("cart", "dev", "cart-2"),
            ("cart", "prod", "cart-1"),
            ("web", "dev", "web-1"),
            ("web", "prod", "web-1"),
        ] {
            let pin = bowline::fixture::new_pin(component, environment, release);
            let pins = self.shop.pins();
            pins.create(&Default::default(), &pin).await.unwrap();
        }
    }

    /// Uninstalls bowline. Then deletes the kinds and their objects, because an uninstallation keeps them.
    async fn clear(self) {
        let ran = bowline(&self.cluster, "uninstall --yes").await;
        assert_eq!(ran.code, 0, "{}", ran.err);
        delete_kinds(&self.cluster, None).await;
    }
}

/// Deletes the kind `name`, or all of bowline's kinds if `name` is None. Waits until they are gone.
pub async fn delete_kinds(cluster: &Cluster, name: Option<&str>) {
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

/// Checks that the output shows no `kubectl delete`, because a user could copy that command and delete
/// production.
fn offers_no_damage(ran: &Ran) {
    assert!(!ran.err.contains("kubectl delete"), "{}", ran.err);
}

pub async fn running_workloads_match_the_promise_of_each_step(cluster: Arc<Cluster>) {
    let scene = Scene::open(&cluster, "uninstall-promise").await;
    let first = scene.controller("first").await;
    let running = scene.ready().await;
    assert_eq!(running.len(), ALL);
    assert_eq!(scene.claimed().await, (ALL, 0));

    // An uninstallation without a confirmation changes nothing.
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
    assert_eq!(scene.claimed().await, (ALL, 0));

    // An uninstallation keeps the workloads, and leaves no finalizer whose controller could remove them.
    let ran = scene.beside_a_pod(first, "uninstall --yes").await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    offers_no_damage(&ran);
    assert_eq!(scene.claimed().await, (0, ALL));
    assert_eq!(scene.running().await, running);
    let ran = bowline(&cluster, "uninstall --yes").await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    offers_no_damage(&ran);

    // If bowline is installed again while the kinds exist, the RenderedReleases get their finalizer again,
    // and nothing else changes. A full or closed stdout stops neither command.
    let full = std::fs::File::options().write(true).open("/dev/full");
    let ran = bowline_to(&cluster, "install", full.unwrap().into()).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let line = "warning: cannot print the result: ";
    assert!(ran.err.contains(line), "{}", ran.err);
    let again = scene.controller("again").await;
    scene.until_claimed().await;
    assert_eq!(scene.ready().await, running);
    let deployments: Api<Deployment> =
        Api::namespaced(scene.target.client(), labels::SYSTEM_NAMESPACE);
    let kubelet = async {
        gone(deployments, "bowline-controller").await;
        assert_eq!(again.stop().await.code(), Some(0));
    };
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let uninstall = bowline_to(&cluster, "uninstall --yes", writer.into());
    let ((), ran) = futures::join!(kubelet, uninstall);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(scene.claimed().await, (0, ALL));
    assert_eq!(scene.running().await, running);

    // After an uninstallation, a user can delete the kinds, and the garbage collector deletes no running
    // workload.
    delete_kinds(&cluster, Some(ReleasePin::crd_name())).await;
    delete_kinds(&cluster, Some(RenderedRelease::crd_name())).await;
    assert_eq!(scene.running().await, running);

    // After another installation, the controller takes over the same workloads.
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let second = scene.controller("second").await;
    scene.pin_again().await;
    assert_eq!(scene.ready().await, running);

    // An uninstallation with --remove-running needs a running controller.
    second.kill();
    let ran = bowline(&cluster, "uninstall --remove-running --yes").await;
    assert_eq!((ran.code, ran.out.as_str()), (5, ""), "{}", ran.err);
    assert!(ran.err.contains("no controller runs"), "{}", ran.err);
    assert_eq!(scene.running().await, running);
    assert_eq!(scene.claimed().await, (ALL, 0));

    // With a controller, the uninstallation removes all workloads.
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

    // After the deletion of the kind ReleasePin, the garbage collector would delete the RenderedReleases,
    // immediately or when the kind exists again. The test deletes them itself, so that it need not wait.
    delete_kinds(&cluster, Some(ReleasePin::crd_name())).await;
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    for name in names() {
        let now = DeleteParams::default();
        scene.rendered().delete(&name, &now).await.unwrap();
    }
    scene.stopped("was deleted together with its kind").await;
    assert_eq!(scene.running().await, running);
    // A restarted controller deletes no workload either.
    first.kill();
    let second = scene.controller("second").await;
    second.until_it_leads(&scene.target).await;

    // The deletion of the kind RenderedRelease also removes no workload.
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
            "hint: finish the deletion, then install again: bowline uninstall",
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

    // When the ReleasePins exist again, the controller takes over the workloads.
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let third = scene.controller("third").await;
    scene.pin_again().await;
    assert_eq!(scene.ready().await, running);
    third.kill();
    scene.clear().await;
}

pub async fn the_hint_for_a_kind_that_is_being_deleted_works(cluster: Arc<Cluster>) {
    let scene = Scene::open(&cluster, "uninstall-hint").await;
    let first = scene.controller("first").await;
    let running = scene.ready().await;
    first.kill();
    scene.kubectl("delete crd releases.core.choreo.dev --wait=false");
    let ran = bowline(&cluster, "install").await;
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert!(ran.err.contains("--remove-running"), "{}", ran.err);
    let ran = bowline(&cluster, "uninstall --remove-running --yes").await;
    assert_eq!(ran.code, 5, "{}", ran.err);
    assert_eq!(scene.running().await, running);

    // The test runs the command of the hint.
    let mut hints = ran.err.lines();
    let command = hints.find_map(|line| Some(line.split_once(": bowline controller ")?.1));
    let flags = command.unwrap_or_else(|| panic!("{}", ran.err));
    let flags = flags.split_whitespace().map(str::to_owned).collect();
    let here = Process::start_with(&scene.target, "here", flags).await;
    here.until_it_leads(&scene.target).await;
    let ran = bowline(&cluster, "uninstall --remove-running --yes -o json").await;
    assert_eq!(ran.code, 0, "{}{}\n{}", ran.out, ran.err, here.log());
    let said: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let objects = said["objects"].as_array().unwrap();
    let label = format!("ReleasePin {}/cart-prod", scene.target.namespace);
    let pin = objects.iter().find(|it| it["name"] == label.as_str());
    assert_eq!(pin.unwrap()["result"], "deleted", "{said}");
    assert_eq!(scene.running().await, [""; 0]);
    here.kill();
    scene.clear().await;
}

pub async fn a_denial_has_its_exit_code(cluster: Arc<Cluster>) {
    let home = tempfile::tempdir().unwrap();
    for line in ["install", "uninstall --yes"] {
        let run = std::process::Command::new(env!("CARGO_BIN_EXE_bowline"))
            .args(line.split_whitespace())
            .env_clear()
            .env("HOME", home.path())
            .env(
                "KUBECONFIG",
                cluster.kubeconfig_of(crate::cluster::USERS[0]),
            )
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn();
        let ran = crate::user::ended(run.unwrap()).await;
        assert_eq!(ran.code, 6, "{line}: {}", ran.err);
    }
}

pub async fn finalizers_stay_while_a_controller_acts(cluster: Arc<Cluster>) {
    let scene = Scene::open(&cluster, "uninstall-acting").await;
    // This controller process does not stop when the Deployment is deleted.
    let outside = Process::start(&scene.target, "outside", scene.target.flags()).await;
    let running = scene.ready().await;
    let ran = bowline(&cluster, "uninstall --yes --timeout 5s").await;
    assert_eq!(ran.code, 5, "{}{}", ran.out, ran.err);
    assert!(
        ran.err.contains("has not released the Lease"),
        "{}",
        ran.err
    );
    assert_eq!(scene.claimed().await, (ALL, 0));
    // After the process has stopped, a second run completes the uninstallation.
    assert_eq!(outside.stop().await.code(), Some(0));
    let ran = bowline(&cluster, "uninstall --yes").await;
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert_eq!(scene.claimed().await, (0, ALL));
    assert_eq!(scene.running().await, running);
    scene.clear().await;
}
