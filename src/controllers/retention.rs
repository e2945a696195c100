//! Retention: where the pipeline of a namespace says so, what nobody needs any more is collected after each
//! new release.
//!
//! What can go is planned on the read model by the rules of `gc`, so that a release after which nothing goes
//! costs the server nothing; what goes is collected as a person's `gc` does, who looks at the store again
//! before anything is deleted. What a GitOps tool owns stays.

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
use crate::engine::actions::gc::{self, Candidate, Collection, Gc};
use crate::engine::collect::{CollectError, Collected, Collector};
use crate::engine::plan::Asked;
use crate::engine::rules::Refusal;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Source, World};

/// How many namespaces are worked on at a time.
const AT_ONCE: u16 = 4;

/// Long enough for somebody who looked at a release to have written their pin.
const REMEMBERS: Duration = Duration::from_secs(1);

/// Why a collection is tried again.
#[derive(Debug, thiserror::Error)]
pub enum RetentionError {
    /// What is known does not allow it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The collection could not go on.
    #[error(transparent)]
    Collect(#[from] CollectError),
    /// Something could not be deleted.
    #[error("{0}")]
    Failed(String),
    /// The target did not answer as it should.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// Which components of which namespaces are to be looked at.
#[derive(Default)]
struct Due {
    components: HashMap<Arc<str>, BTreeSet<String>>,
    /// The pipelines that were enabled when they were looked at, by uid and generation.
    enabled: HashMap<String, i64>,
    /// The releases that were seen, by their uids.
    seen: HashMap<Key, Box<str>>,
}

/// What the reconciles of all namespaces share.
struct Room {
    base: Arc<Context>,
    due: Mutex<Due>,
    stopping: AtomicBool,
}

impl Room {
    fn due(&self) -> MutexGuard<'_, Due> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes new releases, and returns the namespaces that have one, or whose pipeline the read model has
    /// now; it is what counts, and may learn of one later than the controller does.
    fn touched(&self, touched: &Touched) -> BTreeSet<Arc<str>> {
        let world = self.base.feed().world();
        match (touched.source, &touched.key) {
            (Source::Releases, _) => {}
            (Source::Pipelines, Some(key)) => return BTreeSet::from([key.namespace.clone()]),
            (Source::Pipelines, None) => {
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

    /// The namespaces that have a new release, by their pipelines.
    fn triggers(
        self: &Arc<Self>,
        pipelines: Store<DeploymentPipeline>,
    ) -> impl Stream<Item = ObjectRef<DeploymentPipeline>> + Send + use<> {
        let room = self.clone();
        self.base.feed().touched().flat_map(move |touched| {
            let namespaces = room.touched(&touched);
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
    /// Notes a release; returns its namespace where it is new and its component is known.
    fn note(&mut self, row: &crate::engine::world::ReleaseRow) -> Option<Arc<str>> {
        // One whose component is not known yet is new when it is.
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

/// Runs the controller until it is told to stop.
pub async fn run(context: Arc<Context>, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let room = Arc::new(Room {
        base: context.clone(),
        due: Mutex::default(),
        stopping: AtomicBool::new(false),
    });
    let stopping = room.clone();
    let stop = async move {
        stop.await;
        stopping.stopping.store(true, Ordering::SeqCst);
    };
    let pipelines = context.all::<DeploymentPipeline>();
    let controller = Controller::new(pipelines, watcher::Config::default());
    let triggers = room.triggers(controller.store());
    let controller = controller.reconcile_on(triggers).graceful_shutdown_on(stop);
    super::run::run(
        "retention",
        controller,
        AT_ONCE,
        context,
        room,
        |pipeline, room| reconcile(pipeline, room).boxed(),
    )
    .await;
}

async fn reconcile(
    pipeline: Arc<DeploymentPipeline>,
    room: Arc<Room>,
) -> Result<Action, RetentionError> {
    let namespace = pipeline.namespace().unwrap_or_default();
    let feed = room.base.feed();
    feed.when(World::is_live).await;
    // Of several pipelines one counts; which, the read model says.
    let enabled = {
        let world = feed.world();
        let retention = world
            .pipeline(&namespace)
            .and_then(|spec| spec.retention.as_ref());
        retention.is_some_and(|retention| retention.enabled)
    };
    let uid = pipeline.uid().unwrap_or_default();
    if !enabled {
        let mut due = room.due();
        due.components.remove(&*namespace);
        due.enabled.remove(&uid);
        return Ok(Action::await_change());
    }
    // One that was just enabled, or says something else, is about all that there is.
    let generation = pipeline.metadata.generation.unwrap_or_default();
    let before = room.due().enabled.insert(uid, generation);
    if before != Some(generation) {
        let world = feed.world();
        let here = world
            .components()
            .filter(|key| *key.namespace == *namespace);
        let all: Vec<String> = here.map(|key| key.name.to_string()).collect();
        drop(world);
        let mut due = room.due();
        let here = due.components.entry(namespace.as_str().into());
        here.or_default().extend(all);
    }
    let due = room
        .due()
        .components
        .remove(&*namespace)
        .unwrap_or_default();
    if due.is_empty() {
        return Ok(Action::await_change());
    }
    let swept = sweep(&room, &namespace, &due).await;
    if swept.is_err() {
        let mut again = room.due();
        let here = again
            .components
            .entry(namespace.as_str().into())
            .or_default();
        here.extend(due);
    }
    swept.map(|()| Action::await_change())
}

/// Collects what some components do not need any more.
async fn sweep(room: &Room, namespace: &str, due: &BTreeSet<String>) -> Result<(), RetentionError> {
    let user = room.base.user().await?;
    let asked = Asked {
        operation: uuid::Uuid::new_v4().to_string(),
        now: room.base.now(),
        user: user.to_owned(),
        reason: Some("retention".to_owned()),
        namespace: namespace.to_owned(),
    };
    let planned = plan(&room.base.feed().world(), due, &asked)?;
    let Some(plan) = planned.filter(has_work) else {
        return Ok(());
    };
    let clock = || room.base.now();
    let collector = Collector {
        client: &room.base.client,
        plan: &plan,
        by: user,
        clock: &clock,
        remembers: REMEMBERS,
    };
    let metrics = &room.base.metrics;
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
            Collected::PutBack(by) => tracing::info!(%namespace, kind, %name, ?by, "put back"),
            Collected::Failed(error) => failed.push(format!("{kind} {name}: {}", explain(&error))),
        }
    };
    let stop = || room.stopping.load(Ordering::SeqCst);
    collector.collect(&stop, &mut tell).await?;
    match failed.is_empty() {
        true => Ok(()),
        false => Err(RetentionError::Failed(failed.join("; "))),
    }
}

/// Plans the collection of those components that there still are.
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

/// Tells whether a plan would do anything.
fn has_work(plan: &Collection) -> bool {
    let mislabelled = |candidate: &Candidate| candidate.mislabelled;
    plan.going().next().is_some() || plan.releases.iter().any(mislabelled)
}

#[cfg(test)]
mod tests;
