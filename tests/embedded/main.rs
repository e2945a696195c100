//! Tests the guarantees of the embedded API other than correct answers: no acknowledged write is lost,
//! several processes can share a file, the file and the memory stay small, and invalid input is refused.
//!
//! By default each test runs in a short form. `BOWLINE_FULL=1 cargo test --release --test embedded --
//! --nocapture` runs the long form and prints measurements. A word before `--` selects tests by name, as in
//! `BOWLINE_FULL=1 cargo test --release --test embedded kill -- --nocapture`.

// Clippy allows unwrap only in `#[test]` functions, not in their helpers.
#![allow(clippy::unwrap_used)]

mod child;
mod fuzz;
mod kill;
mod memory;
mod opening;
mod processes;
mod recovery;
mod space;
mod writers;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, ObjectMeta, PostParams};
use kube_embedded::Embedded;
use serde_json::Value;

/// The time limit of one operation; after it, the test fails.
const HANG: Duration = Duration::from_secs(60);

/// Returns `full` if BOWLINE_FULL is set, else `short`.
fn sized<T>(short: T, full: T) -> T {
    match std::env::var_os("BOWLINE_FULL") {
        None => short,
        Some(_) => full,
    }
}

async fn open(path: &Path) -> Embedded {
    Embedded::open(path, "ana", bowline::api::store_setup())
        .await
        .unwrap()
}

fn config_map(name: &str, data: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("data".into(), data.into())])),
        ..ConfigMap::default()
    }
}

async fn create_namespace(client: &kube::Client, name: &str) {
    let namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let api: Api<Namespace> = Api::all(client.clone());
    match api.create(&PostParams::default(), &namespace).await {
        Ok(_) => {}
        // Another process may have created the same namespace.
        Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
        Err(other) => panic!("{other}"),
    }
}

fn revision(meta: &ObjectMeta) -> u64 {
    meta.resource_version.as_deref().unwrap().parse().unwrap()
}

/// Sends a request without `kube::Client`. Returns the status code and the body.
async fn send(api: &Embedded, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Bytes::from(body.to_string()))
        .unwrap();
    let answer = tokio::time::timeout(HANG, api.call(request)).await.unwrap();
    let code = answer.status().as_u16();
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Returns the size of the store's files on disk. Does not open them, because closing an open file would
/// release SQLite's locks.
fn bytes_on_disk(path: &Path) -> u64 {
    let size = |path: &Path| std::fs::metadata(path).map_or(0, |file| file.len());
    let mut wal = path.as_os_str().to_owned();
    wal.push("-wal");
    size(path) + size(Path::new(&wal))
}

/// A generator of pseudo-random numbers. The same seed gives the same numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        // The algorithm is xorshift64*.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % sides
    }
}

/// Returns the value at a percentile: 0.5 as `share` gives the median.
fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let place = ((values.len() as f64 - 1.0) * share).round() as usize;
    values.get(place).copied().unwrap_or(f64::NAN)
}
