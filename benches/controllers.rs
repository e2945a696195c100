//! Measures the controllers on many ReleasePins against a real kube-apiserver. Compares them with a bare
//! client that only sends the same writes. `cargo bench --bench controllers` prints the ratio of the two
//! times, because numbers of two runs or two machines cannot be compared.
//!
//! First the controllers reconcile one set of objects, and the benchmark records all writes of the
//! controllers. Then, in each round, the controllers reconcile a new set of objects. The bare client sends
//! the recorded writes for another new set, with the uids and versions of that set. etcd waits for the disk
//! on every write. `BOWLINE_BENCH_PINS` sets the number of ReleasePins.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/cluster/mod.rs"]
mod cluster;
#[path = "controllers/replay.rs"]
mod replay;
#[path = "controllers/world.rs"]
mod world;

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::connect::DataPlanes;
use bowline::controllers::{Context, all};
use bowline::resolve::git::{Git, Settings};
use jiff::Timestamp;
use kube::Client;

use replay::{Recorder, Script};
use world::World;

const ROUNDS: usize = 3;
/// How many ReleasePins the bare client writes at the same time, in each round. The result is its fastest
/// round.
const AT_ONCE: [usize; ROUNDS] = [16, 32, 64];

fn main() {
    // `cargo test --benches` only checks that the benchmark compiles and starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let pins = std::env::var("BOWLINE_BENCH_PINS").ok();
    let pins = pins.map_or(1000, |pins| pins.parse().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(measure(pins));
}

async fn measure(pins: usize) {
    let options = cluster::Options {
        durable: true,
        ..cluster::Options::default()
    };
    let Some(cluster) = cluster::Cluster::start(options).await else {
        return;
    };
    let client = cluster.client();
    cluster::install_bowline(&client).await;
    let world = World::make(&client, "learned", pins).await;
    let recorder = Recorder::default();
    let took = reconcile(&recorder.around(&client), &world).await;
    let script = Script::of(recorder, &world);
    println!(
        "{pins} pins: learned {} writes in {:.2} s, {:.1} for each",
        script.writes(),
        took.as_secs_f64(),
        script.writes() as f64 / pins as f64
    );
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for (round, at_once) in AT_ONCE.into_iter().enumerate() {
        let world = World::make(&client, &format!("reconciled-{round}"), pins).await;
        let took = reconcile(&client, &world).await;
        println!("reconciled in {:.2} s", took.as_secs_f64());
        ours.push(took);
        let world = World::make(&client, &format!("bare-{round}"), pins).await;
        let took = script.replay(&client, &world, at_once).await;
        println!(
            "written by a bare client, {at_once} pins at once, in {:.2} s",
            took.as_secs_f64()
        );
        bare.push(took);
    }
    ours.sort();
    let ours = ours[ours.len() / 2];
    let bare = bare.iter().min().unwrap();
    println!(
        "controllers / bare client = {:.2} (median of {ROUNDS} against the fastest; goal: at most 1.5)",
        ours.as_secs_f64() / bare.as_secs_f64()
    );
}

/// Runs the controllers until every ReleasePin of `world` is ready. Returns how long this took.
async fn reconcile(client: &Client, world: &World) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let context = Arc::new(Context::new(
        client.clone(),
        Some(world.namespace.clone()),
        Arc::new(Timestamp::now),
        Git::new(Settings::new(folder.path())),
        Arc::default(),
    ));
    let planes = DataPlanes::given(client.clone(), false, Default::default());
    let (told, stopped) = tokio::sync::oneshot::channel::<()>();
    let stop = all::stop(async {
        let _ = stopped.await;
    });
    let running = tokio::spawn(async move { all::run(all::all(planes), &context, stop).await });
    world.ready().await;
    let took = begun.elapsed();
    drop(told);
    running.await.unwrap();
    took
}
