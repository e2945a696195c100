//! Compares the speed of the embedded API with a real kube-apiserver: the same calls through the same client,
//! in one run. `cargo bench` prints ratios at the end, because numbers of two runs or two machines cannot be
//! compared.
//!
//! Both servers wait for the disk on every write, SQLite as well as etcd. If the programs of a real cluster
//! are missing, the benchmark measures only the embedded API.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/cluster/mod.rs"]
mod cluster;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use criterion::Criterion;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Client;
use kube::api::{Api, ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use kube_embedded::Embedded;
use tokio::runtime::Runtime;

const LISTED: usize = 10_000;
const WATCHERS: usize = 20;
const LARGE: usize = 10_000;
const LARGE_BYTES: usize = 100_000;
/// The environment variable that makes a child process measure its memory. The value is the path of the store
/// file.
const MEMORY: &str = "BOWLINE_BENCH_MEMORY";

fn main() {
    let runtime = Runtime::new().unwrap();
    if let Some(file) = std::env::var_os(MEMORY) {
        runtime.block_on(remember(file.as_ref()));
        return;
    }
    // A client must be created in the runtime that it uses.
    let _inside = runtime.enter();
    let folder = tempfile::tempdir().unwrap();
    let embedded = runtime
        .block_on(Embedded::open(
            &folder.path().join("store.db"),
            "ana",
            bowline::api::store_setup(),
        ))
        .unwrap();
    let options = cluster::Options {
        controllers: false,
        durable: true,
    };
    let cluster = runtime.block_on(cluster::Cluster::start(options));
    // A client must be created in the runtime that it uses.
    let inside = runtime.enter();
    let mut targets = vec![("embedded", embedded.client("default"))];
    if let Some(cluster) = &cluster {
        targets.push(("cluster", cluster.client()));
    }
    drop(inside);
    for (_, client) in &targets {
        runtime.block_on(fill(client));
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut times = Times::default();
    for (target, client) in &targets {
        measure_all(&mut criterion, &mut times, &runtime, target, client);
    }
    criterion.final_summary();
    drop(cluster);
    times.print();
    print_memory();
}

/// The measured times of each measurement on each of the two servers.
#[derive(Default)]
struct Times(BTreeMap<(&'static str, &'static str), Vec<f64>>);

impl Times {
    fn median(&self, what: &'static str, target: &'static str) -> Option<f64> {
        let mut times = self.0.get(&(what, target))?.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }

    fn print(&self) {
        println!();
        for what in ["get", "create", "list", "fan-out"] {
            let Some(ours) = self.median(what, "embedded") else {
                continue;
            };
            println!("{what} embedded = {:.3} ms", ours * 1e3);
            if let Some(theirs) = self.median(what, "cluster") {
                println!("{what} cluster = {:.3} ms", theirs * 1e3);
                println!("ratio {what} embedded/cluster = {:.3}", ours / theirs);
            }
        }
    }
}

fn measure_all(
    criterion: &mut Criterion,
    times: &mut Times,
    runtime: &Runtime,
    target: &'static str,
    client: &Client,
) {
    let made = &AtomicUsize::new(0);
    let bench: &Api<ConfigMap> = &Api::namespaced(client.clone(), "bench");
    let many: &Api<ConfigMap> = &Api::namespaced(client.clone(), "many");
    let mut measure = |what: &'static str, samples: usize, seconds: u64, run: &dyn Fn()| {
        let mut group = criterion.benchmark_group(what);
        group.sample_size(samples);
        group.warm_up_time(Duration::from_secs(1));
        group.measurement_time(Duration::from_secs(seconds));
        group.bench_function(target, |bencher| {
            bencher.iter_custom(|rounds| {
                let begun = Instant::now();
                (0..rounds).for_each(|_| run());
                let took = begun.elapsed();
                let all = times.0.entry((what, target)).or_default();
                all.push(took.as_secs_f64() / rounds as f64);
                took
            });
        });
        group.finish();
    };
    measure("get", 50, 5, &|| {
        runtime.block_on(bench.get("one")).unwrap();
    });
    measure("create", 50, 8, &|| {
        let name = format!("new-{}", made.fetch_add(1, Ordering::Relaxed));
        let object = config_map(&name, 4000);
        runtime
            .block_on(bench.create(&PostParams::default(), &object))
            .unwrap();
    });
    measure("list", 10, 10, &|| {
        let list = runtime.block_on(many.list(&ListParams::default()));
        assert_eq!(list.unwrap().items.len(), LISTED);
    });
    // All watches are open before the measurement starts. One round lasts from a write until all watches have
    // seen it.
    let watchers = tokio::sync::Mutex::new(runtime.block_on(open_watches(client)));
    measure("fan-out", 30, 6, &|| {
        let name = format!("seen-{}", made.fetch_add(1, Ordering::Relaxed));
        let object = config_map(&name, 200);
        let api: Api<ConfigMap> = Api::namespaced(client.clone(), "watched");
        runtime.block_on(async {
            let parameters = PostParams::default();
            let write = async { drop(api.create(&parameters, &object).await.unwrap()) };
            let mut watchers = watchers.lock().await;
            let see = futures::future::join_all(watchers.iter_mut().map(|watch| async {
                match watch.try_next().await.unwrap() {
                    Some(WatchEvent::Added(_)) => {}
                    other => panic!("{other:?}"),
                }
            }));
            futures::future::join(write, see).await;
        });
    });
}

type Watch = stream::BoxStream<'static, kube::Result<WatchEvent<ConfigMap>>>;

async fn open_watches(client: &Client) -> Vec<Watch> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "watched");
    let list = api.list(&ListParams::default()).await.unwrap();
    let since = list.metadata.resource_version.unwrap();
    let parameters = WatchParams::default().disable_bookmarks();
    let mut watches = Vec::new();
    for _ in 0..WATCHERS {
        let watch = api.watch(&parameters, &since).await.unwrap();
        watches.push(watch.boxed());
    }
    watches
}

fn config_map(name: &str, bytes: usize) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("data".into(), "x".repeat(bytes))])),
        ..ConfigMap::default()
    }
}

async fn fill(client: &Client) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in ["bench", "many", "watched"] {
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(name.into()),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        namespaces
            .create(&PostParams::default(), &namespace)
            .await
            .unwrap();
    }
    let bench: Api<ConfigMap> = Api::namespaced(client.clone(), "bench");
    bench
        .create(&PostParams::default(), &config_map("one", 4000))
        .await
        .unwrap();
    let many: &Api<ConfigMap> = &Api::namespaced(client.clone(), "many");
    stream::iter(0..LISTED)
        .for_each_concurrent(32, |number| async move {
            let object = config_map(&format!("n{number}"), 200);
            many.create(&PostParams::default(), &object).await.unwrap();
        })
        .await;
}

/// Stores and lists large objects in this process, and prints the memory of this process.
async fn remember(file: &std::path::Path) {
    let embedded = Embedded::open(file, "ana", bowline::api::store_setup())
        .await
        .unwrap();
    let api: &Api<ConfigMap> = &Api::default_namespaced(embedded.client("default"));
    println!("resident after opening = {}", resident());
    stream::iter(0..LARGE)
        .for_each_concurrent(4, |number| async move {
            let object = config_map(&format!("n{number}"), LARGE_BYTES);
            api.create(&PostParams::default(), &object).await.unwrap();
        })
        .await;
    println!("resident with {LARGE} x 100 KB written = {}", resident());
    let mut pages = ListParams::default().limit(500);
    loop {
        let page = api.list_metadata(&pages).await.unwrap();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => pages = pages.continue_token(&token),
            None => break,
        }
    }
    println!("resident after listing their metadata = {}", resident());
}

/// Returns the current and the peak resident memory of this process, as text.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<f64>().ok());
        kilobytes.unwrap_or(f64::NAN) / 1024.0
    };
    format!("{:.1} MiB, at most {:.1} MiB", of("VmRSS:"), of("VmHWM:"))
}

fn print_memory() {
    let folder = tempfile::tempdir().unwrap();
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .env(MEMORY, folder.path().join("store.db"))
        .status();
    assert!(status.unwrap().success());
}
