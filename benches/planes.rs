//! Measures whether a fault in one data plane delays the RenderedReleases of a healthy data plane. The
//! faults: the other data plane does not answer, or other resources cannot be deleted. `cargo bench --bench
//! planes` prints the 99th percentiles as ratios to a run without faults.
//!
//! The benchmark uses a real kube-apiserver. The healthy data plane is the cluster itself. The other data
//! plane is the same cluster behind a proxy that can stop answering. The measured time is from the write of a
//! RenderedRelease to its status Ready. The rounds with and without faults alternate, so that other load on
//! the machine affects both.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/cluster/mod.rs"]
mod cluster;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bowline::api::{DataPlane, Environment, RenderedRelease};
use bowline::connect::DataPlanes;
use bowline::controllers::rendered::{self, DataPlaneOptions, Settings};
use bowline::controllers::{Context, all};
use bowline::resolve::git::{self, Git};
use futures::{StreamExt, TryStreamExt};
use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::client::Body;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

const NAMESPACE: &str = "planes";
/// The number of measured RenderedReleases. They are on the healthy data plane.
const MEASURED: usize = 40;
/// How often a round changes each measured RenderedRelease.
const CHANGES: usize = 10;
/// How many RenderedReleases are changed at the same time.
const AT_ONCE: usize = 4;
/// The number of RenderedReleases on the silent data plane. The same number of other RenderedReleases cannot
/// be deleted.
const BAD: usize = 100;
const ROUNDS: usize = 3;
/// The time limit of a request to a data plane. The limit is short, so that many requests fail within a
/// round.
const DEADLINE: Duration = Duration::from_millis(500);

fn main() {
    // `cargo test --benches` only checks that the benchmark compiles and starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let Some(cluster) = cluster::Cluster::start(cluster::Options::default()).await else {
        return;
    };
    let client = cluster.client();
    cluster::install_bowline(&client).await;
    let bench = Bench::open(client).await;
    let running = bench.run();
    for number in 0..MEASURED {
        bench.release(&format!("web-{number}"), "near", 0).await;
    }
    for number in 0..BAD {
        bench.release(&format!("far-{number}"), "far", 0).await;
    }
    bench.settled().await;
    bench.round(0).await;
    let (mut quiet, mut silent, mut stuck) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        quiet.extend(bench.round(3 * round + 1).await);
        bench.silent.store(true, Ordering::SeqCst);
        // Now every RenderedRelease of the silent data plane needs a write, and the controller keeps retrying
        // it.
        bench.stir(round + 1).await;
        silent.extend(bench.round(3 * round + 2).await);
        bench.silent.store(false, Ordering::SeqCst);
        bench.settled().await;
        bench.stick(round).await;
        stuck.extend(bench.round(3 * round + 3).await);
        bench.unstick(round).await;
    }
    drop(running);
    bench.following.abort();
    let quiet = told("nothing is wrong", &mut quiet);
    let silent = told("another data plane is silent", &mut silent);
    let stuck = told("resources cannot be deleted", &mut stuck);
    println!(
        "p99 while a data plane with {BAD} releases is silent / quiet = {:.2}; while {BAD} releases cannot end / quiet = {:.2} (goal: at most 2)",
        silent / quiet,
        stuck / quiet
    );
}

/// Prints the measured times, and returns the 99th percentile.
fn told(what: &str, times: &mut [Duration]) -> f64 {
    times.sort();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1000.0;
    println!(
        "{what}: {} reconciles, median {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
    at(0.99)
}

struct Bench {
    client: Client,
    silent: Arc<AtomicBool>,
    /// The generation in which each RenderedRelease is ready, by the name of the RenderedRelease. Contains
    /// only those that are ready.
    ready: watch::Receiver<HashMap<String, i64>>,
    following: tokio::task::JoinHandle<()>,
}

impl Bench {
    async fn open(client: Client) -> Self {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        put(&namespaces, NAMESPACE, Value::Null).await;
        let planes: Api<DataPlane> = Api::namespaced(client.clone(), NAMESPACE);
        put(&planes, "near", json!({"inCluster": {}})).await;
        put(&planes, "far", json!({"context": {"name": "far"}})).await;
        let environments: Api<Environment> = Api::namespaced(client.clone(), NAMESPACE);
        for name in ["near", "far"] {
            let spec =
                json!({"dataPlaneRef": {"name": name}, "namespace": format!("planes-{name}")});
            put(&environments, name, spec).await;
        }
        let (sender, ready) = watch::channel(HashMap::new());
        let releases: Api<RenderedRelease> = Api::namespaced(client.clone(), NAMESPACE);
        let following = tokio::spawn(async move {
            let found = watcher(releases, watcher::Config::default()).default_backoff();
            let mut found = std::pin::pin!(found.touched_objects());
            while let Some(release) = found.try_next().await.unwrap() {
                sender.send_modify(|ready| note(ready, &release));
            }
        });
        Self {
            client,
            silent: Arc::default(),
            ready,
            following,
        }
    }

    /// Starts the controller. It runs until the returned sender is dropped.
    fn run(&self) -> tokio::sync::oneshot::Sender<()> {
        let (inner, silent) = (self.client.clone(), self.silent.clone());
        let gate = tower::service_fn(move |request: Request<Body>| {
            let (inner, silent) = (inner.clone(), silent.clone());
            async move {
                if silent.load(Ordering::SeqCst) {
                    std::future::pending::<()>().await;
                }
                inner.send(request).await
            }
        });
        let far = Client::new(gate, "default");
        let contexts = BTreeMap::from([("far".to_owned(), far)]);
        let ways = DataPlaneOptions {
            settings: Settings {
                deadline: DEADLINE,
                ..Settings::default()
            },
            ..DataPlaneOptions::new(DataPlanes::given(self.client.clone(), false, contexts))
        };
        let context = Arc::new(Context::new(
            self.client.clone(),
            Some(NAMESPACE.to_owned()),
            Arc::new(Timestamp::now),
            Git::new(git::Settings::new(std::env::temp_dir())),
            Arc::default(),
        ));
        let (told, stopped) = tokio::sync::oneshot::channel::<()>();
        let stop = all::stop(async {
            let _ = stopped.await;
        });
        tokio::spawn(rendered::run(context, ways, stop));
        told
    }

    /// Writes a RenderedRelease with three resources, and returns its generation.
    async fn release(&self, name: &str, environment: &str, value: usize) -> i64 {
        let map = |id: &str| {
            let name = format!("{name}-{id}");
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": format!("planes-{environment}")}, "data": {"value": value.to_string()}});
            json!({"id": id, "object": object})
        };
        let spec = json!({"owner": {"projectName": "shop", "componentName": name}, "environmentName": environment, "resources": [map("a"), map("b"), map("c")]});
        let releases: Api<RenderedRelease> = Api::namespaced(self.client.clone(), NAMESPACE);
        put(&releases, name, spec)
            .await
            .metadata
            .generation
            .unwrap()
    }

    async fn until_ready(&self, name: &str, generation: i64) {
        let mut ready = self.ready.clone();
        let is_ready = |ready: &HashMap<String, i64>| ready.get(name) >= Some(&generation);
        ready.wait_for(is_ready).await.unwrap();
    }

    /// Changes every measured RenderedRelease several times. Returns how long each change took until Ready.
    async fn round(&self, round: usize) -> Vec<Duration> {
        let changes = futures::stream::iter(0..MEASURED * CHANGES).map(|number| async move {
            let name = format!("web-{}", number % MEASURED);
            let begun = Instant::now();
            let value = 1 + round * CHANGES + number / MEASURED;
            let generation = self.release(&name, "near", value).await;
            self.until_ready(&name, generation).await;
            begun.elapsed()
        });
        changes.buffer_unordered(AT_ONCE).collect().await
    }

    /// Changes all RenderedReleases on the silent data plane.
    async fn stir(&self, value: usize) {
        let changes = futures::stream::iter(0..BAD);
        let changed = changes.for_each_concurrent(AT_ONCE, |number| async move {
            self.release(&format!("far-{number}"), "far", value).await;
        });
        changed.await;
    }

    /// Waits until all RenderedReleases are ready in their newest generation.
    async fn settled(&self) {
        let releases: Api<RenderedRelease> = Api::namespaced(self.client.clone(), NAMESPACE);
        for release in releases.list(&Default::default()).await.unwrap() {
            let generation = release.metadata.generation.unwrap();
            self.until_ready(&release.name_any(), generation).await;
        }
    }

    /// Creates RenderedReleases and deletes them. Their cleanup cannot end, because a finalizer keeps their
    /// resources.
    async fn stick(&self, round: usize) {
        let releases: Api<RenderedRelease> = Api::namespaced(self.client.clone(), NAMESPACE);
        for number in 0..BAD {
            let name = format!("stuck-{round}-{number}");
            let generation = self.release(&name, "near", 0).await;
            self.until_ready(&name, generation).await;
            self.keep(&name, json!(["shop.example/never"])).await;
            let now = DeleteParams::default();
            releases.delete(&name, &now).await.unwrap();
        }
        // Waits until the controller has begun to clean up all of them.
        let mut ready = self.ready.clone();
        let none = |ready: &HashMap<String, i64>| !ready.keys().any(|it| it.starts_with("stuck-"));
        ready.wait_for(none).await.unwrap();
    }

    async fn unstick(&self, round: usize) {
        for number in 0..BAD {
            self.keep(&format!("stuck-{round}-{number}"), json!(null))
                .await;
        }
        let releases: Api<RenderedRelease> = Api::namespaced(self.client.clone(), NAMESPACE);
        for number in 0..BAD {
            let name = format!("stuck-{round}-{number}");
            let gone = |it: Option<&RenderedRelease>| it.is_none();
            kube::runtime::wait::await_condition(releases.clone(), &name, gone)
                .await
                .unwrap();
        }
    }

    /// Sets the finalizers of the first resource of a RenderedRelease, so that the resource cannot be
    /// deleted.
    async fn keep(&self, name: &str, finalizers: Value) {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "planes-near");
        let patch = Patch::Merge(json!({"metadata": {"finalizers": finalizers}}));
        let name = format!("{name}-a");
        maps.patch(&name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

/// Stores the generation in which a RenderedRelease is ready. Removes the RenderedRelease if it is not ready.
fn note(ready: &mut HashMap<String, i64>, release: &RenderedRelease) {
    let status = release.status.clone().unwrap_or_default();
    let mut conditions = status.conditions.iter();
    let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
    match (is_ready, status.observed_generation) {
        (true, Some(generation)) => ready.insert(release.name_any(), generation),
        _ => ready.remove(&release.name_any()),
    };
}

async fn put<K, S>(objects: &Api<K>, name: &str, spec: Value) -> K
where
    K: Resource<DynamicType = (), Scope = S>
        + Clone
        + std::fmt::Debug
        + Serialize
        + DeserializeOwned,
{
    let mut object = json!({"apiVersion": K::api_version(&()), "kind": K::kind(&()), "metadata": {"name": name}});
    if !spec.is_null() {
        object["spec"] = spec;
    }
    let params = PatchParams::apply("somebody").force();
    objects
        .patch(name, &params, &Patch::Apply(&object))
        .await
        .unwrap()
}
