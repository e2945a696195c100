//! Runs a controller: limits concurrent reconciles, waits longer after each failure of an object, and records
//! metrics and logs.

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::Resource;
use kube::runtime::Controller;
use kube::runtime::controller::{Action, Config, Error};
use kube::runtime::reflector::ObjectRef;
use serde::de::DeserializeOwned;

use super::Context;

/// The wait after the first failure of an object. Each further failure doubles the wait.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest wait after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Runs a controller until its stop future is ready.
pub async fn run<K, C, E, F>(
    name: &'static str,
    controller: Controller<K>,
    concurrency: u16,
    base: Arc<Context>,
    context: Arc<C>,
    reconcile: impl Fn(Arc<K>, Arc<C>) -> F + Send + Sync + 'static,
) where
    K: Resource<DynamicType: Eq + Hash + Clone + Debug + Default + Unpin>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
    C: Send + Sync + 'static,
    E: std::error::Error + Send + 'static,
    F: Future<Output = Result<Action, E>> + Send + 'static,
{
    let failures = Arc::new(Failures::default());
    let measured = {
        let (failures, base) = (failures.clone(), base.clone());
        move |object: Arc<K>, context: Arc<C>| {
            let key = Key::of(&*object);
            let (failures, base) = (failures.clone(), base.clone());
            let begun = Instant::now();
            let work = reconcile(object, context);
            async move {
                let result = work.await;
                let took = begun.elapsed();
                base.metrics.reconciled(name, result.is_ok(), took);
                if result.is_ok() {
                    failures.forget(&key);
                    tracing::debug!(controller = name, object = %key, ?took, "reconciled");
                }
                result
            }
        }
    };
    let again = {
        let failures = failures.clone();
        move |object: Arc<K>, error: &E, _: Arc<C>| {
            let key = Key::of(&*object);
            let pause = failures.pause(&key);
            tracing::warn!(controller = name, object = %key, error = %Causes(error), again_in = ?pause, "reconcile failed");
            Action::requeue(pause)
        }
    };
    let config = Config::default().concurrency(concurrency);
    let controller = controller.with_config(config);
    tracing::info!(controller = name, "started");
    controller
        .run(measured, again, context)
        .for_each(|ended| {
            match ended {
                // The reconcile already logged its failure, with the backoff.
                Ok(_) | Err(Error::ReconcilerFailed(..)) => {}
                Err(Error::ObjectNotFound(object)) => failures.forget(&Key::from(&*object)),
                Err(Error::QueueError(error)) => {
                    base.metrics.watch_failed(name);
                    tracing::warn!(controller = name, error = %Causes(&error), "a watch failed; restarting it");
                }
                Err(Error::RunnerError(error)) => {
                    tracing::error!(controller = name, error = %Causes(&error), "the queue failed");
                }
            }
            futures::future::ready(())
        })
        .await;
    tracing::info!(controller = name, "ended");
}

/// The namespace and the name of a reconciled object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    namespace: Option<String>,
    name: String,
}

impl Key {
    fn of<K: Resource>(object: &K) -> Self {
        Self {
            namespace: object.meta().namespace.clone(),
            name: object.meta().name.clone().unwrap_or_default(),
        }
    }
}

impl<K: Resource> From<&ObjectRef<K>> for Key {
    fn from(object: &ObjectRef<K>) -> Self {
        Self {
            namespace: object.namespace.clone(),
            name: object.name.clone(),
        }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// The number of consecutive failures of each object.
#[derive(Default)]
struct Failures {
    times: Mutex<HashMap<Key, u32>>,
    random: RandomState,
}

impl Failures {
    /// Counts a failure of an object, and returns the wait until its next reconcile.
    fn pause(&self, key: &Key) -> Duration {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let times = times.entry(key.clone()).or_default();
        let pause = scattered(pause(*times), self.random.hash_one((key, *times)));
        *times = times.saturating_add(1);
        pause
    }

    fn forget(&self, key: &Key) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.remove(key);
    }
}

/// Returns the wait after this number of consecutive failures.
pub(super) fn pause(failures: u32) -> Duration {
    FIRST_PAUSE
        .saturating_mul(1 << failures.min(16))
        .min(LONGEST_PAUSE)
}

/// Shortens a wait by up to a fifth, so that objects that failed together are not retried together.
fn scattered(pause: Duration, random: u64) -> Duration {
    let less = (random % 1024) as u32;
    pause - pause * less / (5 * 1024)
}

/// Formats an error and all its causes on one line.
struct Causes<'a>(&'a dyn std::error::Error);

impl std::fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = self.0.to_string();
        let mut cause = self.0.source();
        while let Some(error) = cause {
            let words = error.to_string();
            // Leaves out a cause whose text is already in the error, because many errors repeat their cause.
            if !text.contains(&words) {
                text = format!("{text}: {words}");
            }
            cause = error.source();
        }
        f.write_str(&text)
    }
}

#[cfg(test)]
mod tests;
