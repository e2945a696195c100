//! The ReleasePin controller: renders the effective release to a RenderedRelease, and reports the progress in
//! the status of the ReleasePin.
//!
//! Watches keep every object that a ReleasePin refers to in memory. Releases, snapshots and environments are
//! in the read model that all controllers share. Settings, data planes and summaries of RenderedReleases are
//! in tables of this controller. A changed object triggers the reconcile of only those ReleasePins that read
//! the object.
//!
//! The requests of a reconcile:
//!
//! | when | reads | writes |
//! |---|---|---|
//! | nothing changed | none | none |
//! | the health changed | none | the status |
//! | a new ReleasePin, or another release | the release, if it is not cached | the snapshot and the RenderedRelease, at the same time; a missing claim and audit entry; the status |
//! | ... and its EnvSettings are gone | as above, and whether the kind EnvSettings is being deleted | as above |
//! | ... that bowline's engine made | whether its audit entry exists | as above |
//! | ... with git references | the snapshot of the same references, if there is one; else git | as above |
//! | after a restart | the release | none |
//!
//! The controller reads the spec of a release once for all ReleasePins that name the release. It sends independent
//! writes at the same time, and writes the status last. So after a crash the next reconcile repeats the work.
//!
//! This controller does not connect to data planes and deletes nothing. So if a release is deleted, its applied
//! resources stay.

mod concerns;
mod make;
mod rendered;
mod status;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use jiff::Timestamp;
use kube::api::PostParams;
use kube::runtime::Controller;
use kube::runtime::controller::Action;
use kube::runtime::reflector::ObjectRef;
use kube::runtime::watcher;
use kube::{Resource, ResourceExt};

use super::Context;
use super::table::{Change, Table};
use crate::api::openchoreo::definitions;
use crate::api::{DataPlane, EnvSettings, Environment, ReleasePin, labels, names};
use crate::connect::explain;
use crate::engine::audit::AuditWriter;
use crate::engine::claim::{ClaimError, ClaimOn, Claims};
use crate::engine::subject::dynamic;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Freshness, Key, Source, World};
use crate::render::Library;
use crate::subjects::release_pin::claim;
use crate::subjects::release_pin::kind::KIND;
use crate::subjects::release_pin::ownership;
use concerns::{DependencyIndex, ReferredObject};
use make::{Made, Work};
use rendered::{Row, Summary};
use status::{Done, Step, Subject, Trouble};

/// The number of ReleasePins that are reconciled at the same time.
const AT_ONCE: u16 = 32;

/// The lists that the read model must have completed before the first reconcile.
const SOURCES: [Source; 3] = [Source::RELEASES, Source::SNAPSHOTS, Source::ENVIRONMENTS];

/// The reasons why the reconcile of a ReleasePin is retried.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// A step failed.
    #[error("{reason}: {message}")]
    Step {
        /// The reason field of the status condition that reports the failed step.
        reason: &'static str,
        /// Explains the failure to the user.
        message: String,
    },
    /// A request to the control plane failed.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// A summary of an EnvSettings object, which has the settings of one component in one environment. Two values
/// are equal if their objects have the same uid and generation.
#[derive(Clone, Debug)]
struct Settings {
    uid: String,
    generation: i64,
    object: Arc<EnvSettings>,
}

impl PartialEq for Settings {
    fn eq(&self, other: &Self) -> bool {
        (&self.uid, self.generation) == (&other.uid, other.generation)
    }
}

impl Settings {
    fn of(mut object: EnvSettings) -> Self {
        let (uid, generation) = (object.uid(), object.metadata.generation);
        object.metadata = definitions::essential(&object.metadata);
        Self {
            uid: uid.unwrap_or_default(),
            generation: generation.unwrap_or_default(),
            object: Arc::new(object),
        }
    }

    /// Returns the key of the ReleasePin that uses these settings. The name of that ReleasePin follows from
    /// the component and the environment.
    fn place(key: &Key, settings: &Self) -> Key {
        let spec = &settings.object.spec;
        let pin = names::pin(&spec.owner.component_name, &spec.environment);
        Key::new(&key.namespace, &pin)
    }
}

/// The state that the reconciles of all ReleasePins share.
struct Shared {
    base: Arc<Context>,
    library: Arc<Library>,
    settings: Arc<Table<Settings>>,
    planes: Arc<Table<()>>,
    rendered: Arc<Table<Row>>,
    concerns: Mutex<DependencyIndex>,
    /// The result of the last render of each ReleasePin.
    made: Mutex<HashMap<Key, Arc<Made>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn new(base: Arc<Context>) -> Arc<Self> {
        Arc::new(Self {
            base,
            library: Arc::new(Library::new()),
            settings: Table::new(Settings::place),
            planes: Table::new(|key, _| key.clone()),
            rendered: Table::new(|key, _| key.clone()),
            concerns: Mutex::default(),
            made: Mutex::default(),
        })
    }

    fn made(&self, pin: &Key) -> Option<Arc<Made>> {
        locked(&self.made).get(pin).cloned()
    }

    fn remember(&self, pin: &Key, made: Arc<Made>) {
        locked(&self.made).insert(pin.clone(), made);
    }

    fn forget(&self, pin: &Key) {
        locked(&self.made).remove(pin);
    }

    /// Waits until the controller has listed every kind that a ReleasePin can refer to.
    async fn ready(&self) {
        let listed = |world: &World| {
            let loaded = |source: &Source| match world.freshness(*source) {
                Freshness::Live | Freshness::Stale { .. } => true,
                Freshness::Loading | Freshness::Absent => false,
            };
            SOURCES.iter().all(loaded)
        };
        self.base.feed().when(listed).await;
        self.settings.until_known().await;
        self.planes.until_listed().await;
        self.rendered.until_listed().await;
    }

    /// Returns the ReleasePins whose last reconcile read this object.
    fn concerned(&self, object: &ReferredObject) -> Vec<Key> {
        locked(&self.concerns).of(object)
    }

    /// Returns the ReleasePins to reconcile after a change of the read model.
    fn touched(&self, touched: &Touched) -> Vec<Key> {
        let Some(key) = &touched.key else {
            return match SOURCES.contains(&touched.source) {
                true => locked(&self.concerns).all(),
                false => Vec::new(),
            };
        };
        match touched.source {
            Source::RELEASES => self.concerned(&ReferredObject::Release(key.clone())),
            Source::ENVIRONMENTS => self.concerned(&ReferredObject::Environment(key.clone())),
            // A snapshot never changes, but a deleted snapshot has to be written again.
            Source::SNAPSHOTS if self.base.feed().world().snapshot(key).is_none() => {
                let pins = self.concerned(&ReferredObject::Snapshot(key.clone()));
                pins.iter().for_each(|pin| self.forget(pin));
                pins
            }
            _ => Vec::new(),
        }
    }

    /// Returns the ReleasePins that use an EnvSettings object, before or after its change.
    fn resettled(change: &Change<Settings>) -> Vec<Key> {
        let sides = change.before.iter().chain(&change.after);
        let mut pins: Vec<Key> = sides.map(|row| Settings::place(&change.key, row)).collect();
        pins.dedup();
        pins
    }

    /// Returns a stream of the ReleasePins to reconcile when another object changes.
    fn triggers(self: &Arc<Self>) -> impl Stream<Item = ObjectRef<ReleasePin>> + Send + use<> {
        let base = &self.base;
        let shared = self.clone();
        let world = base
            .feed()
            .touched()
            .map(move |touched| shared.touched(&touched));
        let settings = self
            .settings
            .follow(base.all::<EnvSettings>(), Settings::of);
        let settings = settings.map(|change| Self::resettled(&change));
        let shared = self.clone();
        let appearances = self.settings.appearances();
        let appearances = appearances.map(move |_| locked(&shared.concerns).all());
        let shared = self.clone();
        let planes = self.planes.follow(base.all::<DataPlane>(), |_| ());
        let planes =
            planes.map(move |change| shared.concerned(&ReferredObject::DataPlane(change.key)));
        let shared = self.clone();
        let rendered = self
            .rendered
            .follow(base.all::<Summary>(), |it| Row::of(&it));
        let rendered = rendered.map(move |change| {
            // A deleted RenderedRelease has to be written again; the new RenderedRelease has another uid.
            if change.after.is_none() {
                shared.forget(&change.key);
            }
            vec![change.key]
        });
        let all = futures::stream::select_all([
            world.boxed(),
            settings.boxed(),
            appearances.boxed(),
            planes.boxed(),
            rendered.boxed(),
        ]);
        all.flat_map(futures::stream::iter)
            .map(|pin| ObjectRef::new(&pin.name).within(&pin.namespace))
    }
}

/// Runs the controller until the stop future is ready.
pub async fn run(context: Arc<Context>, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let shared = Shared::new(context.clone());
    let controller = Controller::new(context.all::<ReleasePin>(), watcher::Config::default())
        .reconcile_on(shared.triggers())
        .graceful_shutdown_on(stop);
    super::run::run(
        "pin",
        controller,
        AT_ONCE,
        context,
        shared,
        |pin, shared| reconcile(pin, shared).boxed(),
    )
    .await;
}

/// Reconciles one ReleasePin.
async fn reconcile(pin: Arc<ReleasePin>, shared: Arc<Shared>) -> Result<Action, PinError> {
    let key = Key::new(&pin.namespace().unwrap_or_default(), &pin.name_any());
    if pin.metadata.deletion_timestamp.is_some() {
        // The server deletes the objects that the ReleasePin owns.
        shared.forget(&key);
        locked(&shared.concerns).forget(&key);
        return Ok(Action::await_change());
    }
    shared.ready().await;
    let now = shared.base.now();
    let release = ownership::effective_release(&pin, now);
    let (making, completing) = (
        make(&shared, &pin, &key, release),
        complete(&shared, &pin, &key, now),
    );
    let (found, written) = match pin.operation() {
        // Another process is still completing the operation, and writes the claim and the audit entry itself.
        // The controller renders first, and then writes only those of the two that are still missing.
        Ok(Some(_)) => (making.await, completing.await),
        _ => futures::join!(making, completing),
    };
    let status = status::status(
        &pin.status.clone().unwrap_or_default(),
        &Subject {
            generation: pin.metadata.generation.unwrap_or_default(),
            release,
            since: asked_at(&pin),
        },
        &found,
        now,
    );
    // The audit entry must exist before the status reports the generation as observed.
    written?;
    if pin.status.as_ref() != Some(&status) {
        write_status(&shared, &pin, status).await?;
    }
    match found {
        Err(trouble) if trouble.may_pass => Err(PinError::Step {
            reason: trouble.reason,
            message: trouble.message,
        }),
        _ => Ok(next_look(&pin, now)),
    }
}

/// Renders and writes the RenderedRelease of a ReleasePin. Returns the result with the reported health.
async fn make(
    shared: &Shared,
    pin: &ReleasePin,
    key: &Key,
    release: &str,
) -> Result<Done, Trouble> {
    let beside = |name: &str| Key::new(&key.namespace, name);
    let place = beside(&pin.spec.environment);
    let plane_of = |environment: &Environment| beside(&environment.spec.data_plane_ref.name);
    let note = |environment: Option<&Environment>| {
        let releases = pin
            .spec
            .named_releases()
            .map(|name| ReferredObject::Release(beside(name)));
        let snapshot = shared
            .made(key)
            .map(|made| ReferredObject::Snapshot(beside(&made.snapshot)));
        let mut objects: Vec<ReferredObject> = releases.chain(snapshot).collect();
        objects.push(ReferredObject::Environment(place.clone()));
        objects.extend(environment.map(|found| ReferredObject::DataPlane(plane_of(found))));
        locked(&shared.concerns).note(key, objects);
    };
    // The objects are registered before they are read, so that a change in between triggers a reconcile.
    let look = || shared.base.feed().world().environment(&place).cloned();
    note(look().as_ref());
    let mut environment = look();
    if environment.is_none() {
        // The read model may be behind the server.
        let environments = shared.base.within::<Environment>(&key.namespace);
        let found = environments.get_opt(&pin.spec.environment).await;
        environment = found.map_err(|error| make::unread(Step::Render, &error))?;
    }
    let own = |settings: &Settings| {
        let spec = &settings.object.spec;
        (&spec.owner.component_name, &spec.environment)
            == (&pin.spec.component, &pin.spec.environment)
    };
    // Two pairs of component and environment can give the same ReleasePin name, so the spec is compared too.
    let settings = shared
        .settings
        .at(key)
        .into_iter()
        .map(|(_, settings)| settings);
    let work = Work {
        shared,
        pin,
        key,
        release,
        environment: environment.clone(),
        settings: settings.filter(own).collect(),
        row: shared.rendered.get(key),
    };
    let made = work.make().await?;
    note(environment.as_ref());
    let row = shared.rendered.get(key);
    let of_this = row.filter(|row| row.uid == made.uid && row.generation == made.generation);
    let plane = environment.as_ref().map(plane_of);
    Ok(Done {
        snapshot: made.snapshot.clone(),
        resources: made.resources,
        warnings: made.warnings.clone(),
        report: of_this.and_then(|row| row.report),
        no_plane: plane
            .filter(|plane| shared.planes.get(plane).is_none())
            .map(|plane| plane.name.to_string()),
    })
}

/// Writes what the author of the last change did not write: the claims on the releases that the ReleasePin
/// names, and the audit entry.
async fn complete(
    shared: &Shared,
    pin: &ReleasePin,
    key: &Key,
    now: Timestamp,
) -> Result<(), PinError> {
    let unclaimed: Vec<ClaimOn> = {
        let world = shared.base.feed().world();
        let named = pin.spec.named_releases();
        let rows = named.filter_map(|name| world.release(&Key::new(&key.namespace, name)));
        let unclaimed = rows.filter(|row| !row.pinned && !row.deleting);
        unclaimed.map(claim::on).collect()
    };
    for claimed in unclaimed {
        let operation = pin.operation().ok().flatten();
        let operation = operation.map_or_else(|| "controller".to_owned(), |known| known.id);
        match Claims::place(&shared.base.client, &operation, &[claimed], now).await {
            // The ReleasePin already names the release, with or without a claim; a condition reports a bad or
            // missing release.
            Ok(_) | Err(ClaimError::Bad(_) | ClaimError::Gone(_) | ClaimError::Deleting(_)) => {}
            Err(ClaimError::Target(error)) => return Err(error.into()),
        }
    }
    let observed = pin
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    if observed != pin.metadata.generation {
        let by = shared.base.user().await?.to_owned();
        let audit = AuditWriter::of(&shared.base.client, &key.namespace, by, now);
        audit.record(&KIND, &dynamic(pin)).await?;
    }
    Ok(())
}

/// Writes the status, on condition that the ReleasePin still has the resourceVersion that the reconcile read.
async fn write_status(
    shared: &Shared,
    pin: &ReleasePin,
    status: crate::api::openchoreo::pin::ReleasePinStatus,
) -> Result<(), PinError> {
    let pins = shared
        .base
        .within::<ReleasePin>(&pin.namespace().unwrap_or_default());
    let mut written = pin.clone();
    written.meta_mut().managed_fields = None;
    written.status = Some(status);
    let ours = PostParams {
        field_manager: Some(labels::MANAGER_CONTROLLER.to_owned()),
        ..PostParams::default()
    };
    match pins.replace_status(&pin.name_any(), &ours, &written).await {
        Ok(_) => Ok(()),
        // The ReleasePin changed or was deleted, so its watch triggers another reconcile.
        Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the time of the operation that made the current generation of the ReleasePin; None if another
/// tool, such as kubectl, made it.
fn asked_at(pin: &ReleasePin) -> Option<Timestamp> {
    let operation = pin.operation().ok().flatten();
    operation.map(|operation| operation.at.0)
}

/// Returns when to reconcile the ReleasePin again without any event: when its first active hold ends.
fn next_look(pin: &ReleasePin, now: Timestamp) -> Action {
    let active = pin.spec.active_holds(now);
    let ends = active.filter_map(|hold| Some(hold.until.as_ref()?.0));
    match ends.min() {
        None => Action::await_change(),
        Some(end) => {
            let left = Duration::try_from(end.duration_since(now)).unwrap_or_default();
            Action::requeue(left)
        }
    }
}
