//! The metrics of the controllers, in the text format of Prometheus.
//!
//! Reconcilers call small methods that increment counters. Sums over stored objects, such as the bytes of all
//! releases, are computed from the read model at each scrape, so they need no work between scrapes.

mod stored;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;

use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::Context;
use crate::resolve::git::Git;
use stored::Stored;

/// The HTTP content type of the text that [`Metrics::text`] returns.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The histogram buckets for the duration of a reconcile, in seconds. The smallest fits a reconcile without
/// changes, the largest one that waits for git.
const SECONDS: [f64; 12] = [
    0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0, 60.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconciled {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfController {
    controller: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    kind: &'static str,
}

/// All metrics of this process.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Reconciled, Counter>,
    durations: Family<OfController, Histogram, fn() -> Histogram>,
    watch_errors: Family<OfController, Counter>,
    restarts: Family<OfController, Counter>,
    plain: Family<OfKind, Counter>,
    packed: Family<OfKind, Counter>,
    ratio: Family<OfKind, Gauge<f64, AtomicU64>>,
    reused: Counter,
    collected: Family<OfKind, Counter>,
    freed: Family<OfKind, Counter>,
    leading: Gauge,
    terms: Counter,
    sources: Sources,
}

/// The read model and the git reader, from which each scrape reads its sums and counters.
#[derive(Clone, Default)]
pub(super) struct Sources {
    context: Arc<RwLock<Weak<Context>>>,
    git: Arc<RwLock<Option<Git>>>,
}

impl Default for Metrics {
    fn default() -> Self {
        let sources = Sources::default();
        let mut metrics = Self {
            registry: Registry::with_prefix("bowline"),
            reconciles: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            watch_errors: Family::default(),
            restarts: Family::default(),
            plain: Family::default(),
            packed: Family::default(),
            ratio: Family::default(),
            reused: Counter::default(),
            collected: Family::default(),
            freed: Family::default(),
            leading: Gauge::default(),
            terms: Counter::default(),
            sources: sources.clone(),
        };
        metrics.register();
        let stored = Box::new(Stored(sources));
        metrics.registry.register_collector(stored);
        metrics
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    fn register(&mut self) {
        let registry = &mut self.registry;
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The version of the program", version);
        registry.register(
            "reconciles",
            "Completed reconciles",
            self.reconciles.clone(),
        );
        registry.register_with_unit(
            "reconcile_duration",
            "The duration of reconciles",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register(
            "watch_errors",
            "Watches that failed and were restarted",
            self.watch_errors.clone(),
        );
        registry.register(
            "controller_restarts",
            "Controllers that failed and were restarted",
            self.restarts.clone(),
        );
        registry.register_with_unit(
            "compression_plain",
            "The size of the stored data before its compression",
            Unit::Bytes,
            self.plain.clone(),
        );
        registry.register_with_unit(
            "compression_stored",
            "The size of the stored data after its compression",
            Unit::Bytes,
            self.packed.clone(),
        );
        registry.register(
            "compression_ratio",
            "The stored size divided by the size before compression, since the start of the process",
            self.ratio.clone(),
        );
        registry.register(
            "snapshots_reused",
            "Snapshots that a reconcile used instead of a git fetch",
            self.reused.clone(),
        );
        registry.register(
            "gc_deleted",
            "Objects that garbage collection deleted",
            self.collected.clone(),
        );
        registry.register_with_unit(
            "gc_freed",
            "The size of the objects that garbage collection deleted",
            Unit::Bytes,
            self.freed.clone(),
        );
        registry.register(
            "leader",
            "1 if this process is the leader, else 0",
            self.leading.clone(),
        );
        registry.register(
            "leader_terms",
            "How many times this process became the leader",
            self.terms.clone(),
        );
    }

    /// Counts one completed reconcile of a controller, and records its duration.
    pub fn reconciled(&self, controller: &'static str, succeeded: bool, took: Duration) {
        let result = if succeeded { "success" } else { "error" };
        let labels = Reconciled { controller, result };
        self.reconciles.get_or_create(&labels).inc();
        let durations = self.durations.get_or_create(&OfController { controller });
        durations.observe(took.as_secs_f64());
    }

    /// Counts a failed watch of a controller.
    pub fn watch_failed(&self, controller: &'static str) {
        let labels = OfController { controller };
        self.watch_errors.get_or_create(&labels).inc();
    }

    /// Counts a restart of a failed controller.
    pub fn restarted(&self, controller: &'static str) {
        let labels = OfController { controller };
        self.restarts.get_or_create(&labels).inc();
    }

    /// Adds the sizes in bytes, before and after compression, of a release that was read or a snapshot that
    /// was written.
    pub fn packed(&self, kind: &'static str, plain: usize, stored: usize) {
        let kind = OfKind { kind };
        let (plain, stored) = (plain as u64, stored as u64);
        let plain = self.plain.get_or_create(&kind).inc_by(plain) + plain;
        let stored = self.packed.get_or_create(&kind).inc_by(stored) + stored;
        if plain > 0 {
            let ratio = self.ratio.get_or_create(&kind);
            ratio.set(stored as f64 / plain as f64);
        }
    }

    /// Counts a reconcile that used a snapshot instead of a fetch from git.
    pub fn snapshot_reused(&self) {
        self.reused.inc();
    }

    /// Counts a release or a snapshot that garbage collection deleted. `bytes` is its stored size, or 0 if
    /// the size is unknown.
    pub fn collected(&self, kind: &'static str, bytes: u64) {
        let kind = OfKind { kind };
        self.collected.get_or_create(&kind).inc();
        self.freed.get_or_create(&kind).inc_by(bytes);
    }

    /// Records whether this process is the leader. Each call with `true` also counts a new term of
    /// leadership.
    pub fn leads(&self, leads: bool) {
        if leads {
            self.terms.inc();
        }
        self.leading.set(leads.into());
    }

    /// Sets the context whose read model gives the sums. Keeps only a weak reference, so that the metrics do
    /// not keep the context alive.
    pub fn follow(&self, context: &Arc<Context>) {
        let held = self.sources.context.write();
        *held.unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(context);
    }

    /// Sets the git reader whose counters the metrics report.
    pub fn reads_git(&self, git: &Git) {
        let held = self.sources.git.write();
        *held.unwrap_or_else(PoisonError::into_inner) = Some(git.clone());
    }

    /// Returns all metrics in the text format of Prometheus.
    pub fn text(&self) -> String {
        let mut out = String::new();
        // Writing to a string cannot fail. If the sums cannot be computed, the text ends before the sums.
        if text::encode(&mut out, &self.registry).is_err() {
            tracing::error!("cannot write the metrics");
        }
        out
    }
}
