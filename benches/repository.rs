//! Measures bowline on large git repositories: opening one with 20,000 objects, and garbage collection in one
//! with 5,000 releases.
//!
//! `cargo bench --bench repository` compares the opening with reading and hashing the same files, and garbage
//! collection with `git rm` of the same files. It also prints the cost of one changed file. The two sides of
//! a comparison alternate in the same process, and the best of several rounds is the result.

// Clippy allows unwrap here, because a benchmark that cannot run may panic.
#![allow(clippy::unwrap_used, missing_docs)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bowline::api::{AuditEntry, Release, ReleasePin};
use bowline::gitops::tree::{self, Layout, TreeOptions};
use kube::Api;
use kube::api::ListParams;
use kube_embedded::Embedded;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

const ROUNDS: usize = 5;
/// How often the benchmark opens the repository. The number is large, because an opening is short and other
/// load on the machine affects it.
const OPENINGS: usize = 15;

fn main() {
    // `cargo test --benches` only checks that the benchmark compiles and starts.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    opening(&runtime);
    collecting();
}

fn git(directory: &Path, arguments: &[&str]) {
    let status = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .expect("git");
    assert!(status.success(), "git {arguments:?}");
}

fn write(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
    std::fs::write(file, text).expect("a file");
}

fn begin(root: &Path) {
    std::fs::create_dir_all(root).expect("a folder");
    git(root, &["init", "-q", "-b", "main"]);
    git(root, &["config", "user.name", "Ana"]);
    git(root, &["config", "user.email", "ana@example.com"]);
    git(root, &["config", "gc.auto", "0"]);
}

fn commit(root: &Path) {
    git(root, &["add", "-A"]);
    git(root, &["commit", "-q", "-m", "begin"]);
}

/// Returns a release as the command `release create` writes it to a repository: with git references.
fn release(component: &str, number: usize) -> String {
    let reference = |path: &str| {
        format!(
            "gitRef:\n      repository: https://git.example.com/shop/definitions.git\n      revision: {}\n      path: {path}",
            "0123456789abcdef0123456789abcdef01234567"
        )
    };
    format!(
        "apiVersion: openchoreo.dev/v1alpha1\nkind: Release\nmetadata:\n  name: {component}-v{number}\n  namespace: shop\n  labels:\n    openchoreo.dev/component: {component}\n  annotations:\n    bowline.dev/version: v{number}\nspec:\n  component:\n    name: {component}\n    {}\n  componentTypeDefinition:\n    name: web\n    {}\n  workload:\n    apiVersion: openchoreo.dev/v1alpha1\n    kind: Workload\n    metadata:\n      name: {component}\n    spec:\n      image: registry.example.com/shop/{component}:{number}\n      env:\n        - name: LOG_LEVEL\n          value: info\n",
        reference("components/web.yaml"),
        reference("types/web.yaml"),
    )
}

fn pin(component: &str, environment: &str, release: &str) -> String {
    format!(
        "apiVersion: openchoreo.dev/v1alpha1\nkind: ReleasePin\nmetadata:\n  name: {component}-{environment}\n  namespace: shop\n  labels:\n    openchoreo.dev/component: {component}\n    openchoreo.dev/environment: {environment}\nspec:\n  component: {component}\n  environment: {environment}\n  releaseRef:\n    name: {release}\n"
    )
}

fn environment(name: &str) -> String {
    format!(
        "apiVersion: openchoreo.dev/v1alpha1\nkind: Environment\nmetadata:\n  name: {name}\n  namespace: shop\nspec:\n  dataPlaneRef:\n    name: here\n  namespace: shop-{name}\n"
    )
}

/// Writes the files of components, each with 3 ReleasePins and `releases` releases. Returns the number of
/// written objects.
fn fill(root: &Path, components: usize, releases: usize) -> usize {
    let mut count = 0;
    for name in ["dev", "staging", "prod"] {
        write(
            root,
            &format!("environments/{name}.yaml"),
            &environment(name),
        );
        count += 1;
    }
    for at in 0..components {
        let component = format!("component-{at:04}");
        for number in 1..=releases {
            let path = format!("releases/{component}/{component}-v{number}.yaml");
            write(root, &path, &release(&component, number));
        }
        for (environment, number) in [("dev", releases), ("staging", releases), ("prod", 1)] {
            let text = pin(&component, environment, &format!("{component}-v{number}"));
            write(root, &format!("pins/{environment}/{component}.yaml"), &text);
        }
        count += releases + 3;
    }
    commit(root);
    count
}

/// Reads and hashes every file that git tracks. Returns how long this took.
fn read_and_hash(root: &Path) -> Duration {
    let begun = Instant::now();
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .expect("git");
    let listed = String::from_utf8(listed.stdout).expect("names");
    let mut sum = 0_u64;
    for path in listed.split('\0').filter(|path| !path.is_empty()) {
        let bytes = std::fs::read(root.join(path)).expect("a file");
        let digest = Sha256::digest(&bytes);
        sum += u64::from(digest[0]);
    }
    assert!(sum > 0);
    begun.elapsed()
}

fn options(root: &Path, cache: &Path) -> TreeOptions {
    TreeOptions {
        directory: root.to_owned(),
        cache: Some(cache.to_owned()),
        namespace: None,
        beside: None,
        user: Some("ana".to_owned()),
        account: "ana".to_owned(),
        variables: std::env::vars_os().collect(),
        layout: Layout::default(),
    }
}

async fn count<K>(served: &Embedded) -> usize
where
    K: kube::Resource<DynamicType = ()> + Clone + DeserializeOwned + std::fmt::Debug,
{
    let all: Api<K> = Api::all(served.client("shop"));
    let listed = all.list_metadata(&ListParams::default()).await;
    listed.expect("a list").items.len()
}

fn opening(runtime: &tokio::runtime::Runtime) {
    let place = TempDir::new().expect("a place");
    let root = place.path().join("deploy");
    begin(&root);
    let objects = fill(&root, 1000, 17);
    let (mut baseline, mut cold, mut warm) = (Vec::new(), Vec::new(), Vec::new());
    let (mut pins, mut whole) = (Vec::new(), Vec::new());
    for round in 0..OPENINGS {
        baseline.push(read_and_hash(&root));
        let cache = place.path().join(format!("cache-{round}"));
        let begun = Instant::now();
        let opened = runtime.block_on(tree::open(options(&root, &cache)));
        let (served, tree) = opened.expect("it opens");
        cold.push(begun.elapsed());
        assert_eq!(runtime.block_on(count::<ReleasePin>(&served)), 3000);
        pins.push(begun.elapsed());
        assert_eq!(runtime.block_on(count::<Release>(&served)), 17_000);
        assert_eq!(runtime.block_on(count::<AuditEntry>(&served)), 3000);
        whole.push(begun.elapsed());
        drop((served, tree));
        let begun = Instant::now();
        let opened = runtime.block_on(tree::open(options(&root, &cache)));
        drop(opened.expect("it opens"));
        warm.push(begun.elapsed());
    }
    let best = |times: &[Duration]| {
        times
            .iter()
            .min()
            .copied()
            .unwrap_or_default()
            .as_secs_f64()
    };
    let (baseline, cold, warm) = (best(&baseline), best(&cold), best(&warm));
    let (pins, whole) = (best(&pins), best(&whole));
    println!(
        "{objects} objects: reading and hashing {:.0} ms",
        baseline * 1e3
    );
    println!(
        "opened for the first time: {:.0} ms, {:.2}x (at most 3x)",
        cold * 1e3,
        cold / baseline
    );
    println!(
        "its 3,000 pins listed: {:.0} ms, {:.2}x; releases and history too: {:.0} ms, {:.2}x",
        pins * 1e3,
        pins / baseline,
        whole * 1e3,
        whole / baseline
    );
    println!(
        "opened again: {:.0} ms, {:.2}x",
        warm * 1e3,
        warm / baseline
    );

    let cache = place.path().join("cache-0");
    let (served, tree) = runtime
        .block_on(tree::open(options(&root, &cache)))
        .expect("it opens");
    for round in 0..ROUNDS {
        let file = format!("pins/staging/component-{round:04}.yaml");
        let component = format!("component-{round:04}");
        // Syncs until no file has to be read again: a file that was read in the clock tick of its write is
        // read once more.
        let settle = || runtime.block_on(tree.sync(&served)).expect("it follows");
        while settle().read > 0 {}
        write(
            &root,
            &file,
            &pin(&component, "staging", &format!("{component}-v2")),
        );
        let begun = Instant::now();
        let synced = runtime.block_on(tree.sync(&served)).expect("it follows");
        println!(
            "one file of {} changed: {} read, {} stored, {:.0} ms",
            synced.files,
            synced.read,
            synced.stored,
            begun.elapsed().as_secs_f64() * 1e3
        );
        assert_eq!((synced.read, synced.stored), (1, 1));
    }
}

fn collecting() {
    let (mut removing, mut collecting) = (Vec::new(), Vec::new());
    let mut went = 0;
    for _ in 0..ROUNDS {
        let place = TempDir::new().expect("a place");
        let root: PathBuf = place.path().join("deploy");
        begin(&root);
        fill(&root, 50, 100);
        // The first run reads the repository without measuring it, because `opening` measures that.
        let run = |line: &str| {
            let output = Command::new(env!("CARGO_BIN_EXE_bowline"))
                .args(line.split_whitespace())
                .arg("--repo")
                .arg(&root)
                .env("HOME", place.path())
                .env("XDG_CACHE_HOME", place.path().join("cache"))
                .stdin(Stdio::null())
                .output()
                .expect("bowline");
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
        };
        run("status");
        let begun = Instant::now();
        run("gc --keep 1 --min-age 0s --confirm");
        collecting.push(begun.elapsed());
        let gone = Command::new("git")
            .args(["diff", "--name-only", "--diff-filter=D", "HEAD^", "HEAD"])
            .current_dir(&root)
            .output()
            .expect("git");
        let list = place.path().join("list");
        std::fs::write(&list, &gone.stdout).expect("a list");
        went = String::from_utf8(gone.stdout)
            .expect("names")
            .lines()
            .count();
        git(&root, &["reset", "-q", "--hard", "HEAD^"]);
        let list = format!("--pathspec-from-file={}", list.display());
        let begun = Instant::now();
        git(&root, &["rm", "-q", &list]);
        removing.push(begun.elapsed());
    }
    let best = |times: &[Duration]| {
        times
            .iter()
            .min()
            .copied()
            .unwrap_or_default()
            .as_secs_f64()
    };
    let (removing, collecting) = (best(&removing), best(&collecting));
    println!("{went} of 5000 releases: git rm {:.0} ms", removing * 1e3);
    println!(
        "bowline gc, the whole program and its commit: {:.0} ms, {:.2}x (at most 2x)",
        collecting * 1e3,
        collecting / removing
    );
}
