//! The RenderedRelease controller: it makes data planes match their RenderedReleases. One controller serves
//! all data planes.
//!
//! A pass is one reconcile of a RenderedRelease: the controller creates namespaces, applies resources,
//! deletes stale objects, and writes the inventory. The inventory is the list of resources with their health,
//! in the status.
//!
//! Watches keep bowline's kinds and the objects of the data planes in memory, so a pass without changes sends
//! no request. If an object in a data plane changes, the controller starts a pass over the RenderedRelease
//! that owns the object.

mod apply;
mod causes;
pub mod deletion_guard;
mod deploy;
mod desired;
mod finalize;
mod finalizer;
pub mod kinds;
mod live;
mod moving;
mod namespaces;
mod pause;
mod placing;
mod plane;
mod prune;
mod status;
#[cfg(test)]
mod tests;
mod wakes;
mod watch;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{Controller, WatchStreamExt};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::{Context, run as runner, simulator};
use crate::api::annotation::UnreadableAnnotation;
use crate::api::choreo::rendered::RenderedReleaseStatus;
use crate::api::condition::{self, Status};
use crate::api::{DataPlane, Environment, RenderedRelease, labels};
use crate::connect::{DataPlanes, explain};
use live::Owner;
use placing::{Placed, Planes, Unplaced};
use plane::{Unreachable, lock};

pub use plane::Settings;

/// The name of the controller in logs and metrics.
const NAME: &str = "renderedrelease";

/// The connections to the data planes, and the settings for their use.
pub struct DataPlaneOptions {
    /// The connections to the data planes, by name.
    pub planes: DataPlanes,
    /// The limits and deadlines of each data plane.
    pub settings: Settings,
    /// The settings of the simulator, which replaces the cluster of an embedded data plane.
    pub simulator: simulator::Settings,
}

impl DataPlaneOptions {
    /// Creates options with default settings.
    pub fn new(planes: DataPlanes) -> Self {
        Self {
            planes,
            settings: Settings::default(),
            simulator: simulator::Settings::default(),
        }
    }
}

/// The reasons why a pass over a RenderedRelease failed. Where possible, the conditions of the
/// RenderedRelease report the reason too.
#[derive(Debug, thiserror::Error)]
enum Error {
    /// A request to the control plane failed.
    #[error("control plane: {}", explain(.0))]
    ControlPlane(#[from] kube::Error),
    /// The controller could not list one of bowline's kinds in time. Contains the kind.
    #[error("the controller has not listed {0} yet; if this does not end, grant list and watch")]
    NotListed(String),
    /// The RenderedRelease has no data plane.
    #[error(transparent)]
    Unplaced(#[from] Unplaced),
    /// The data plane does not answer.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Resources could not be applied, or stale objects could not be deleted.
    #[error("{0}")]
    Deploy(String),
    /// The cleanup of a deleted RenderedRelease cannot finish.
    #[error("cannot remove the resources: {0}")]
    Finalize(String),
    /// One of bowline's annotations on the RenderedRelease has an invalid value.
    #[error(transparent)]
    Annotation(#[from] UnreadableAnnotation),
}

/// The state that the reconciles of all RenderedReleases share.
struct State {
    context: Arc<Context>,
    planes: Planes,
    environments: Store<Environment>,
    data_planes: Store<DataPlane>,
    is_simulated: bool,
    /// The resourceVersion of each RenderedRelease after the last write by this controller, by the uid of the
    /// RenderedRelease.
    written: Mutex<HashMap<String, String>>,
}

/// Runs the controller until the stop future is ready. If the control plane is an embedded store, also runs
/// the simulator, because no cluster is there.
pub async fn run(
    context: Arc<Context>,
    ways: DataPlaneOptions,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) {
    let (sender, woken) = tokio::sync::mpsc::unbounded_channel();
    let woken = futures::stream::unfold(woken, |mut woken| async {
        let next: Option<ObjectRef<RenderedRelease>> = woken.recv().await;
        next.map(|next| (next, woken))
    });
    let (releases, writer) = reflector::store();
    let stream = watcher(context.all::<RenderedRelease>(), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .applied_objects()
        .predicate_filter(trigger_hash, Default::default());
    let (environments, writer) = reflector::store();
    let environment_stream = watcher(context.all::<Environment>(), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .touched_objects();
    let (data_planes, writer) = reflector::store();
    let data_plane_stream = watcher(context.all::<DataPlane>(), watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .touched_objects();
    let in_environment = {
        let releases = releases.clone();
        move |environment: Environment| {
            let name = environment.name_any();
            let namespace = environment.namespace();
            refer(&releases, move |release| {
                release.metadata.namespace == namespace && release.spec.environment_name == name
            })
        }
    };
    let on_data_plane = {
        let (releases, environments) = (releases.clone(), environments.clone());
        move |plane: DataPlane| {
            let (name, namespace) = (plane.name_any(), plane.namespace());
            let on_it: Vec<String> = environments
                .state()
                .into_iter()
                .filter(|environment: &Arc<Environment>| {
                    environment.metadata.namespace == namespace
                        && environment.spec.data_plane_ref.name == name
                })
                .map(|environment| environment.name_any())
                .collect();
            refer(&releases, move |release| {
                release.metadata.namespace == namespace
                    && on_it.contains(&release.spec.environment_name)
            })
        }
    };
    let (told, stopped) = tokio::sync::watch::channel(false);
    let until_stopped = |mut stopped: tokio::sync::watch::Receiver<bool>| async move {
        // The wait also ends if the sender is dropped.
        let _ = stopped.wait_for(|stopped| *stopped).await;
    };
    let controller = Controller::for_stream(stream, releases)
        .watches_stream(environment_stream, in_environment)
        .watches_stream(data_plane_stream, on_data_plane)
        .reconcile_on(woken)
        .graceful_shutdown_on(until_stopped(stopped.clone()));
    let is_simulated = ways.planes.is_embedded();
    let state = Arc::new(State {
        context: context.clone(),
        planes: Planes::new(ways.planes, ways.settings, sender),
        environments,
        data_planes,
        is_simulated,
        written: Mutex::default(),
    });
    // The limit is 0 (none), because each data plane has its own limit. With a common limit, a slow data
    // plane would delay all others.
    let controller = runner::run(NAME, controller, 0, context.clone(), state, reconcile);
    let simulated = async {
        if is_simulated {
            simulator::run(context, ways.simulator, until_stopped(stopped)).await;
        }
    };
    let stop = async {
        stop.await;
        told.send_replace(true);
    };
    let ((), (), ()) = futures::join!(controller, simulated, stop);
}

/// Returns a hash over the fields whose change triggers a reconcile. The status is not one of them, because
/// this controller writes the status.
fn trigger_hash(release: &RenderedRelease) -> Option<u64> {
    let metadata = &release.metadata;
    let mut hasher = DefaultHasher::new();
    metadata.generation.hash(&mut hasher);
    metadata.deletion_timestamp.is_some().hash(&mut hasher);
    metadata.finalizers.hash(&mut hasher);
    let annotations = metadata.annotations.as_ref();
    for name in [labels::DATA_PLANES, labels::REMOVE_RUNNING] {
        annotations
            .and_then(|annotations| annotations.get(name))
            .hash(&mut hasher);
    }
    Some(hasher.finish())
}

fn refer(
    releases: &Store<RenderedRelease>,
    wanted: impl Fn(&RenderedRelease) -> bool,
) -> Vec<ObjectRef<RenderedRelease>> {
    let releases = releases.state();
    let wanted = releases.iter().filter(|release| wanted(release));
    wanted
        .map(|release| ObjectRef::from_obj(&**release))
        .collect()
}

async fn reconcile(release: Arc<RenderedRelease>, state: Arc<State>) -> Result<Action, Error> {
    let Some(release) = state.newest(release).await? else {
        return Ok(Action::await_change());
    };
    if release.metadata.deletion_timestamp.is_some() {
        return finalize::finalize(&state, release).await;
    }
    let Placed { plane, namespace } = match placing::place(&state, &release).await {
        Ok(placed) => placed,
        Err(Error::Unplaced(unplaced)) => {
            let said = (Status::False, unplaced.reason, unplaced.message.clone());
            state.say_unready(&release, said).await?;
            return match unplaced.reason {
                condition::DATA_PLANE_UNUSABLE => Err(unplaced.into()),
                // A watch reports the missing object when it appears.
                _ => Ok(Action::await_change()),
            };
        }
        Err(error) => return Err(error),
    };
    let owner = Owner::of(&release);
    plane
        .wakes
        .remember(&owner.uid, ObjectRef::from_obj(&*release));
    let mut listed = release.data_planes().unwrap_or_default();
    if !listed.contains(&plane.name) {
        listed.push(plane.name.clone());
    }
    let release = finalizer::claim(&state, release, &listed).await?;
    let turn = match plane.turn().await {
        Ok(turn) => turn,
        Err(unreachable) => return state.say_unreachable(&release, &plane, unreachable).await,
    };
    let release = moving::announce(&state, release).await?;
    let deployed = deploy::deploy(&plane, &release, &owner, &namespace).await;
    drop(turn);
    if deployed.unanswered
        && let Err(unreachable) = plane.suspect().await
    {
        return state.say_unreachable(&release, &plane, unreachable).await;
    }
    let is_blind = matches!(deployed.pruned, deploy::Pruned::Blind(_));
    plane.wakes.troubled(&owner.uid, is_blind);
    let (deployed, listed) =
        moving::leave(&state, &plane, &release, &owner, deployed, listed).await;
    let before = release.status.clone().unwrap_or_default();
    let generation = release.metadata.generation;
    let after = status::after(
        &before,
        &deployed,
        generation,
        state.is_simulated,
        state.now(),
    );
    let is_moving = status::is_moving(&after) || listed.len() > 1;
    let failed = failure(&after);
    let release = state.write(&release, after).await?;
    let release = finalizer::claim(&state, release, &listed).await?;
    match failed {
        Some(why) => Err(Error::Deploy(why)),
        None => {
            let version = release.metadata.resource_version.as_deref();
            let seed = format!("{}/{}", owner.uid, version.unwrap_or_default());
            Ok(pause::again(&release.spec, is_moving, &seed))
        }
    }
}

/// Returns the message of the first failed condition that a retry may fix; None if there is no such
/// condition.
fn failure(status: &RenderedReleaseStatus) -> Option<String> {
    let failures = [
        condition::APPLY_FAILED,
        condition::DELETE_FAILED,
        condition::LIVE_STATE_UNKNOWN,
    ];
    let failed = [condition::APPLIED, condition::PRUNED]
        .iter()
        .filter_map(|type_| condition::find(&status.conditions, type_))
        .find(|condition| failures.contains(&condition.reason.as_str()));
    failed.map(|condition| condition.message.clone())
}

impl Owner {
    fn of(release: &RenderedRelease) -> Self {
        Self {
            uid: release.uid().unwrap_or_default(),
            namespace: release.namespace().unwrap_or_default(),
            name: release.name_any(),
        }
    }
}

impl State {
    fn now(&self) -> Timestamp {
        self.context.now()
    }

    fn api(&self, release: &RenderedRelease) -> Api<RenderedRelease> {
        let namespace = release.metadata.namespace.as_deref();
        self.context.within(namespace.unwrap_or_default())
    }

    /// Stores the resourceVersion of a written RenderedRelease, so that no reconcile uses an older state from
    /// the watch.
    fn wrote(&self, release: &RenderedRelease) {
        if let (Some(uid), Some(version)) = (release.uid(), release.resource_version()) {
            lock(&self.written).insert(uid, version);
        }
    }

    async fn forget(&self, uid: &str) {
        lock(&self.written).remove(uid);
        self.planes.forget(uid).await;
    }

    /// Returns the RenderedRelease from the watch; from the server if the watch is behind this controller's
    /// last write. Returns None if the RenderedRelease no longer exists.
    async fn newest(
        &self,
        release: Arc<RenderedRelease>,
    ) -> Result<Option<Arc<RenderedRelease>>, Error> {
        let uid = release.metadata.uid.clone().unwrap_or_default();
        let number = |version: Option<&String>| version.and_then(|text| text.parse::<u64>().ok());
        let written = number(lock(&self.written).get(&uid));
        if number(release.metadata.resource_version.as_ref()) >= written {
            return Ok(Some(release));
        }
        let read = self.api(&release).get_opt(&release.name_any()).await?;
        Ok(read
            .filter(|read| read.metadata.uid == release.metadata.uid)
            .map(Arc::new))
    }

    /// Writes the status of a RenderedRelease, unless the status is unchanged. Returns the RenderedRelease
    /// with the new status.
    async fn write(
        &self,
        release: &Arc<RenderedRelease>,
        status: RenderedReleaseStatus,
    ) -> Result<Arc<RenderedRelease>, Error> {
        if release.status.clone().unwrap_or_default() == status {
            return Ok(release.clone());
        }
        let mut body = json!({"metadata": {"uid": release.metadata.uid}, "status": status});
        // An empty list is not serialised, so a merge patch would keep the old list.
        if status.resources.is_empty() {
            body["status"]["resources"] = Value::Null;
        }
        let params = PatchParams {
            field_manager: Some(labels::MANAGER_CONTROLLER.to_owned()),
            ..PatchParams::default()
        };
        let api = self.api(release);
        let name = release.name_any();
        let written = api
            .patch_status(&name, &params, &Patch::Merge(&body))
            .await?;
        self.wrote(&written);
        Ok(Arc::new(written))
    }

    /// Sets the condition Ready to False with the given reason, independent of the health of the resources.
    async fn say_unready(
        &self,
        release: &Arc<RenderedRelease>,
        said: status::Said,
    ) -> Result<(), Error> {
        let mut status = release.status.clone().unwrap_or_default();
        let generation = release.metadata.generation;
        status.observed_generation = generation;
        status::set(
            &mut status.conditions,
            condition::READY,
            said,
            generation,
            self.now(),
        );
        self.write(release, status).await.map(|_| ())
    }

    async fn say_unreachable(
        &self,
        release: &Arc<RenderedRelease>,
        plane: &plane::Plane,
        unreachable: Unreachable,
    ) -> Result<Action, Error> {
        let uid = release.metadata.uid.as_deref().unwrap_or_default();
        plane.wakes.troubled(uid, true);
        let message = unreachable.to_string();
        let said = (Status::Unknown, condition::DATA_PLANE_UNREACHABLE, message);
        self.say_unready(release, said).await?;
        Err(unreachable.into())
    }
}
