//! Runs garbage collection after each new release, in the namespaces whose pipeline enables retention.
//!
//! The controller plans with the rules of the command `gc`, from the read model, so a release that makes
//! nothing obsolete costs no request. Like the command, it reads the store again before each deletion, and
//! keeps objects that a GitOps tool owns.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use kube::ResourceExt;
use kube::runtime::controller::Action;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::{Controller, watcher};

use super::Context;
use crate::api::DeploymentPipeline;
use crate::connect::explain;
use crate::engine::plan::Asked;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Source, World};
use crate::subjects::release_pin::actions::gc::{self, Candidate, Collection, Gc};
use crate::subjects::release_pin::collect::{CollectError, Collected, Collector};
use crate::subjects::release_pin::rules::Refusal;

/// How many namespaces the controller collects at the same time.
const AT_ONCE: u16 = 4;

/// How long the controller remembers a deleted release. A user may have read the release just before its
/// deletion. So if a ReleasePin names the release within this time, the controller creates the release again.
const REMEMBERS: Duration = Duration::from_secs(1);

/// The reasons why the controller retries a garbage collection.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// A rule of the engine refuses the collection.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The collection stopped with an error.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// A release or snapshot could not be deleted.
    #[error("{0}")]
    Failed(String),
    /// A request to the control plane failed.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// The components that need a garbage collection, by namespace.
#[derive(Default)]
struct Due {
    components: HashMap<Arc<str>, BTreeSet<String>>,
    /// The pipelines with retention enabled at their last reconcile: the uid and the generation.
    enabled: HashMap<String, i64>,
    /// The uid of each release that the controller has seen. A release with another uid is new.
    seen: HashMap<Key, Box<str>>,
}

/// The state that the reconciles of all namespaces share.
struct Shared {
    base: Arc<Context>,
    due: Mutex<Due>,
    stopping: AtomicBool,
}

impl Shared {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records new releases. Returns the namespaces to reconcile: those with a new release, or with a
    /// pipeline that changed in the read model. The watch of this controller may report the pipeline earlier
    /// than the read model contains it.
    fn touched(&self, touched: &Touched) -> BTreeSet<Arc<str>> {
        let world = self.base.feed().world();
        match (touched.source, &touched.key) {
            (Source::RELEASES, _) => {}
            (Source::PIPELINES, Some(key)) => return BTreeSet::from([key.namespace.clone()]),
            (Source::PIPELINES, None) => {
                let namespaces = world.components().map(|key| key.namespace.clone());
                return namespaces.collect();
            }
            _ => return BTreeSet::new(),
        }
        let mut due = self.due();
        let Some(key) = &touched.key else {
            due.seen.retain(|key, _| world.release(key).is_some());
            return world
                .all_releases()
                .filter_map(|row| due.note(row))
                .collect();
        };
        match world.release(key) {
            Some(row) => due.note(row).into_iter().collect(),
            None => {
                due.seen.remove(key);
                BTreeSet::new()
            }
        }
    }

    /// Returns a stream of the pipelines of each namespace that has a new release or a changed pipeline.
    fn triggers(
        self: &Arc<Self>,
        pipelines: Store<DeploymentPipeline>,
    ) -> impl Stream<Item = ObjectRef<DeploymentPipeline>> + Send + use<> {
        let shared = self.clone();
        self.base.feed().touched().flat_map(move |touched| {
            let namespaces = shared.touched(&touched);
            let here = |pipeline: &DeploymentPipeline| {
                let namespace = pipeline.metadata.namespace.as_deref();
                namespaces.contains(namespace.unwrap_or_default())
            };
            let found = pipelines.state_filter(here).into_iter();
            let found = found.map(|pipeline| ObjectRef::from_obj(&*pipeline));
            futures::stream::iter(found.collect::<Vec<_>>())
        })
    }
}

impl Due {
    /// Records a release. Returns its namespace if the release is new and has a component label; else None.
    fn note(&mut self, row: &crate::subjects::release_pin::rows::ReleaseRow) -> Option<Arc<str>> {
        // A release without a component label is new when it gets the label.
        let component = row.component.as_deref()?;
        let before = self.seen.insert(row.key.clone(), row.uid.clone());
        if before.as_deref() == Some(&row.uid) {
            return None;
        }
        let namespace = &row.key.namespace;
        let here = self.components.entry(namespace.clone()).or_default();
        here.insert(component.to_owned());
        Some(namespace.clone())
    }
}

pub async fn run(context: Arc<Context>, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let shared = Arc::new(Shared {
        base: context.clone(),
        due: Mutex::default(),
        stopping: AtomicBool::new(false),
    });
    let stopping = shared.clone();
    let stop = async move {
        stop.await;
        stopping.stopping.store(true, Ordering::SeqCst);
    };
    let pipelines = context.all::<DeploymentPipeline>();
    let controller = Controller::new(pipelines, watcher::Config::default());
    let triggers = shared.triggers(controller.store());
    let controller = controller.reconcile_on(triggers).graceful_shutdown_on(stop);
    super::run::run(
        "retention",
        controller,
        AT_ONCE,
        context,
        shared,
        |pipeline, shared| reconcile(pipeline, shared).boxed(),
    )
    .await;
}

async fn reconcile(
    pipeline: Arc<DeploymentPipeline>,
    shared: Arc<Shared>,
) -> Result<Action, RetentionError> {
    let namespace = pipeline.namespace().unwrap_or_default();
    let feed = shared.base.feed();
    feed.when(World::is_live).await;
    // The read model decides which pipeline is effective if a namespace has several.
    let enabled = {
        let world = feed.world();
        let retention = world
            .pipeline(&namespace)
            .and_then(|spec| spec.retention.as_ref());
        retention.is_some_and(|retention| retention.enabled)
    };
    let uid = pipeline.uid().unwrap_or_default();
    if !enabled {
        let mut due = shared.due();
        due.components.remove(&*namespace);
        due.enabled.remove(&uid);
        return Ok(Action::await_change());
    }
    // If retention was just enabled or changed, the collection covers all components of the namespace.
    let generation = pipeline.metadata.generation.unwrap_or_default();
    let before = shared.due().enabled.insert(uid, generation);
    if before != Some(generation) {
        let world = feed.world();
        let here = world
            .components()
            .filter(|key| *key.namespace == *namespace);
        let all: Vec<String> = here.map(|key| key.name.to_string()).collect();
        drop(world);
        let mut due = shared.due();
        let here = due.components.entry(namespace.as_str().into());
        here.or_default().extend(all);
    }
    let due = shared
        .due()
        .components
        .remove(&*namespace)
        .unwrap_or_default();
    if due.is_empty() {
        return Ok(Action::await_change());
    }
    let swept = sweep(&shared, &namespace, &due).await;
    if swept.is_err() {
        let mut again = shared.due();
        let here = again
            .components
            .entry(namespace.as_str().into())
            .or_default();
        here.extend(due);
    }
    swept.map(|()| Action::await_change())
}

/// Deletes those releases and snapshots of the given components that are no longer needed.
async fn sweep(
    shared: &Shared,
    namespace: &str,
    due: &BTreeSet<String>,
) -> Result<(), RetentionError> {
    let user = shared.base.user().await?;
    let asked = Asked {
        operation: uuid::Uuid::new_v4().to_string(),
        now: shared.base.now(),
        user: user.to_owned(),
        reason: Some("retention".to_owned()),
        namespace: namespace.to_owned(),
    };
    let planned = plan(&shared.base.feed().world(), due, &asked)?;
    let Some(plan) = planned.filter(has_work) else {
        return Ok(());
    };
    let clock = || shared.base.now();
    let collector = Collector {
        client: &shared.base.client,
        plan: &plan,
        by: user,
        clock: &clock,
        remembers: REMEMBERS,
    };
    let metrics = &shared.base.metrics;
    let mut failed = Vec::new();
    let mut tell = |candidate: &Candidate, collected: Collected| {
        let kind = match candidate.environment {
            Some(_) => "snapshot",
            None => "release",
        };
        let name = &candidate.key.name;
        match collected {
            Collected::Gone => {
                metrics.collected(kind, candidate.size.unwrap_or_default());
                tracing::info!(%namespace, kind, %name, "collected");
            }
            Collected::Kept(why) => tracing::info!(%namespace, kind, %name, ?why, "kept"),
            Collected::PutBack(by) => tracing::info!(%namespace, kind, %name, ?by, "restored"),
            Collected::Failed(error) => failed.push(format!("{kind} {name}: {}", explain(&error))),
        }
    };
    let stop = || shared.stopping.load(Ordering::SeqCst);
    collector.collect(&stop, &mut tell).await?;
    match failed.is_empty() {
        true => Ok(()),
        false => Err(RetentionError::Failed(failed.join("; "))),
    }
}

/// Plans the collection for the given components. Leaves out components that no longer exist.
fn plan(
    world: &World,
    due: &BTreeSet<String>,
    asked: &Asked,
) -> Result<Option<Collection>, Refusal> {
    let there = world
        .components()
        .filter(|key| *key.namespace == *asked.namespace);
    let there = there.filter(|key| due.contains(&*key.name));
    let components: Vec<String> = there.map(|key| key.name.to_string()).collect();
    if components.is_empty() {
        return Ok(None);
    }
    let command = Gc {
        components,
        ..Gc::default()
    };
    gc::plan(world, &command, asked).map(Some)
}

/// Returns whether a collection would delete or change anything.
fn has_work(plan: &Collection) -> bool {
    let mislabelled = |candidate: &Candidate| candidate.mislabelled;
    plan.going().next().is_some() || plan.releases.iter().any(mislabelled)
}

#[cfg(test)]
mod tests;
