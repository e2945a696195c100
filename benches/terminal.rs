//! Measures the terminal UI in a pseudo-terminal, against a real kube-apiserver with many ReleasePins and
//! large releases.
//!
//! `cargo bench --bench terminal` prints the time until the first row and until the whole matrix, next to the
//! time of `kubectl get` for the same objects. It also prints the memory then, the CPU time while nothing
//! happens, and the time from a key press to the new screen. During the key presses, other clients write a
//! thousand times per second.
//!
//! `BOWLINE_BENCH_PINS`, `BOWLINE_BENCH_RELEASES` and `BOWLINE_BENCH_REST` (seconds) make the benchmark
//! smaller. With `BOWLINE_BENCH_FORM=tree`, releases are stored uncompressed; a server can hold only a few of
//! them.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

#[path = "../tests/cluster/mod.rs"]
mod cluster;
#[path = "../tests/tui/escapes.rs"]
#[allow(dead_code)] // other tests use the rest
mod escapes;
#[path = "../tests/tui/pty.rs"]
#[allow(dead_code)] // as above
mod pty;
#[path = "terminal/world.rs"]
mod world;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bowline::api::names;
use bowline::api::openchoreo::pin::ReleasePin;
use futures::StreamExt;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use pty::{LEAVE, Pty};
use vt100::Screen;
use world::{Amount, ENVIRONMENTS, NAMESPACE};

/// The longest wait; after it, the benchmark concludes that the program hangs.
const HANG: Duration = Duration::from_secs(300);
const SIZE: (u16, u16) = (200, 60);
const ROUNDS: usize = 3;
const KEYS: usize = 1_000;
/// How many writes per second the other clients send.
const RATE: u32 = 1_000;
const WRITERS: usize = 16;

fn main() {
    // `cargo test --benches` only checks that the benchmark compiles and starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(measure());
}

fn amount(name: &str, usual: usize) -> usize {
    let given = std::env::var(format!("BOWLINE_BENCH_{name}")).ok();
    given.map_or(usual, |given| given.parse().unwrap())
}

async fn measure() {
    let Some(cluster) = cluster::Cluster::start(cluster::Options::default()).await else {
        return;
    };
    let client = cluster.client();
    cluster::install_bowline(&client).await;
    let there = Amount {
        pins: amount("PINS", 10_000),
        releases: amount("RELEASES", 3_000),
        content: 100_000,
        tree: std::env::var("BOWLINE_BENCH_FORM").is_ok_and(|form| form == "tree"),
    };
    let stored = world::fill(&client, there).await;
    println!(
        "{} pins in {} environments; {} releases of {} KB of definitions, {} KB each as stored",
        there.pins,
        ENVIRONMENTS.len(),
        there.releases,
        there.content / 1000,
        stored / there.releases / 1000
    );
    let home = tempfile::tempdir().unwrap();
    let flags = [
        "--kubeconfig".to_owned(),
        cluster.kubeconfig().display().to_string(),
        "--namespace".to_owned(),
        NAMESPACE.to_owned(),
    ];
    let mut times = Times::default();
    let mut open = None;
    for _ in 0..ROUNDS {
        times.kubectl.push(kubectl(&cluster));
        let mut pty = Pty::bowline(&flags, home.path(), SIZE);
        let (first, whole) = starts(&mut pty, there.components());
        times.first.push(first);
        times.whole.push(whole);
        open = Some(pty);
    }
    let (kubectl, first, whole) = (
        middle(times.kubectl),
        middle(times.first),
        middle(times.whole),
    );
    println!(
        "start: first row after {:.0} ms (goal 100), the whole matrix after {:.0} ms; kubectl get of the same took {:.0} ms; matrix / kubectl = {:.2} (goal 0.20)",
        ms(first),
        ms(whole),
        ms(kubectl),
        whole.as_secs_f64() / kubectl.as_secs_f64()
    );
    let mut pty = open.unwrap();
    rests(&mut pty, amount("REST", 60)).await;
    under_load("kube-apiserver", &mut pty, &client, there).await;
    leaves(pty);
    served(home.path()).await;
}

#[derive(Default)]
struct Times {
    kubectl: Vec<Duration>,
    first: Vec<Duration>,
    whole: Vec<Duration>,
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Lists all objects of the matrix with kubectl. Returns how long this took.
fn kubectl(cluster: &cluster::Cluster) -> Duration {
    let began = Instant::now();
    let kinds = "releases.openchoreo.dev,releasepins.openchoreo.dev";
    let got = cluster
        .kubectl()
        .args(["get", kinds, "-n", NAMESPACE])
        .stdout(Stdio::null())
        .status();
    assert!(got.unwrap().success());
    began.elapsed()
}

/// Returns the name of the component under the cursor.
fn selected(screen: &Screen) -> Option<String> {
    let (_, columns) = screen.size();
    let mut rows = screen.rows(0, columns.into());
    let row = rows.find_map(|row| row.trim_start().strip_prefix('▸').map(str::to_owned))?;
    row.split_whitespace().next().map(str::to_owned)
}

/// Returns the times from the start until the screen shows the first row, and until it shows the complete
/// matrix.
fn starts(pty: &mut Pty, components: usize) -> (Duration, Duration) {
    let began = Instant::now();
    pty.wait_for("a row", |screen| screen.contents().contains("service-"));
    let first = began.elapsed();
    pty.wait_for("everything", |screen| {
        let contents = screen.contents();
        let mut lines = contents.lines();
        let is_live = lines.next().is_some_and(|line| line.contains("live"));
        let count: String = lines.next().unwrap_or_default().replace(',', "");
        is_live && count.contains(&format!("{components} components"))
    });
    (first, began.elapsed())
}

/// Returns the current and the peak resident memory of a process, in MB.
fn memory(id: u32) -> (f64, f64) {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes / 1024.0
    };
    (of("VmRSS:"), of("VmHWM:"))
}

/// Returns the CPU time that a process has used so far.
fn spent(id: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap()
        .split_whitespace()
        .collect();
    let ticks: u64 = [fields[11], fields[12]]
        .iter()
        .map(|it| it.parse::<u64>().unwrap())
        .sum();
    Duration::from_millis(ticks * 10)
}

async fn rests(pty: &mut Pty, seconds: usize) {
    let id = pty.id();
    let seconds = Duration::from_secs(seconds as u64);
    // Waits until the work of the start has finished.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let (before, drawn) = (spent(id), pty.bytes());
    tokio::time::sleep(seconds).await;
    let busy = spent(id) - before;
    let (now, most) = memory(id);
    println!(
        "memory: {now:.1} MB resident, {most:.1} MB at the most (goal: under 80)\nat rest: {:.0} ms of a core in {:.0} s = {:.3} % (goal: under 0.1), {} bytes drawn",
        ms(busy),
        seconds.as_secs_f64(),
        100.0 * busy.as_secs_f64() / seconds.as_secs_f64(),
        pty.bytes() - drawn
    );
}

/// Moves the cursor while other clients write. Prints the times from a key press to the new screen.
async fn under_load(what: &str, pty: &mut Pty, client: &Client, there: Amount) {
    let (written, stop) = (
        Arc::new(AtomicUsize::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let writing = tokio::spawn(write(client.clone(), there, written.clone(), stop.clone()));
    while written.load(Ordering::Relaxed) < RATE as usize {
        tokio::task::yield_now().await;
    }
    let (began, before, busy) = (
        Instant::now(),
        written.load(Ordering::Relaxed),
        spent(pty.id()),
    );
    let mut times = tokio::task::block_in_place(|| {
        let mut times = Vec::with_capacity(KEYS);
        for turn in 0..KEYS {
            let was = selected(&pty.screen());
            let key = if turn / 40 % 2 == 0 { "j" } else { "k" };
            let pressed = Instant::now();
            pty.keys(key);
            pty.wait_for("the cursor on another row", |screen| {
                let is = selected(screen);
                is.is_some() && is != was
            });
            times.push(pressed.elapsed());
            // One key press per 20 ms, as fast as a held key repeats.
            std::thread::sleep(Duration::from_millis(20).saturating_sub(pressed.elapsed()));
        }
        times
    });
    let elapsed = began.elapsed().as_secs_f64();
    let rate = (written.load(Ordering::Relaxed) - before) as f64 / elapsed;
    let busy = (spent(pty.id()) - busy).as_secs_f64() / elapsed;
    stop.store(true, Ordering::Relaxed);
    writing.await.unwrap();
    times.sort();
    let at = |part: f64| ms(times[((times.len() - 1) as f64 * part) as usize]);
    println!(
        "a key while {rate:.0} events a second come from {what}: median {:.1} ms, p99 {:.1} ms (goal: 16), longest {:.1} ms; {:.0} % of a core",
        at(0.5),
        at(0.99),
        at(1.0),
        100.0 * busy
    );
}

/// Writes the status of ReleasePins until `stop` is set: [`RATE`] times per second, or as often as the server
/// accepts.
async fn write(client: Client, there: Amount, written: Arc<AtomicUsize>, stop: Arc<AtomicBool>) {
    let pins: Api<ReleasePin> = Api::namespaced(client, NAMESPACE);
    let mut clock = tokio::time::interval(Duration::from_millis(10));
    let per_tick = RATE as usize / 100;
    let turns = futures::stream::poll_fn(move |context| match stop.load(Ordering::Relaxed) {
        true => std::task::Poll::Ready(None),
        false => clock.poll_tick(context).map(Some),
    });
    let turns = turns
        .flat_map(|_| futures::stream::iter(0..per_tick))
        .enumerate();
    let writes = turns.map(|(turn, _)| {
        let number = turn.wrapping_mul(7919) % there.components();
        let environment = ENVIRONMENTS[turn % ENVIRONMENTS.len()];
        let name = names::pin(&world::component(number), environment);
        let status = world::status(&world::release_name(number, 1), turn % 7 != 0, turn);
        let pins = pins.clone();
        async move {
            let patch = Patch::Merge(status);
            pins.patch_status(&name, &PatchParams::default(), &patch)
                .await
                .unwrap();
        }
    });
    let mut done = std::pin::pin!(writes.buffer_unordered(WRITERS));
    while done.next().await.is_some() {
        written.fetch_add(1, Ordering::Relaxed);
    }
}

fn leaves(pty: Pty) {
    pty.keys(LEAVE);
    assert!(pty.ended().status.success());
}

/// Measures key presses against `bowline serve`. It accepts more writes per second than a kube-apiserver on
/// the same two cores.
async fn served(home: &Path) {
    let there = Amount {
        pins: 5_000,
        releases: 100,
        content: 1_000,
        tree: false,
    };
    let mut server = Command::new(env!("CARGO_BIN_EXE_bowline"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg(format!("--embedded={}", home.join("bench.db").display()))
        .env("HOME", home)
        .stderr(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let url = line.split_whitespace().last().unwrap().to_owned();
    let config = kube::Config::new(url.parse().unwrap());
    let client = Client::try_from(config).unwrap();
    world::fill(&client, there).await;
    let kubeconfig = home.join("served");
    let contents = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "served",
        "clusters": [{"name": "served", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "served", "context": {"cluster": "served", "user": "u", "namespace": NAMESPACE}}],
    });
    std::fs::write(&kubeconfig, contents.to_string()).unwrap();
    let flags = ["--kubeconfig".to_owned(), kubeconfig.display().to_string()];
    let mut pty = Pty::bowline(&flags, home, SIZE);
    starts(&mut pty, there.components());
    under_load("bowline serve", &mut pty, &client, there).await;
    leaves(pty);
    server.kill().unwrap();
    server.wait().unwrap();
}
