//! The ReleasePin controller: from the release that counts to a RenderedRelease, and a status that says how
//! far it came.
//!
//! Everything that a pin refers to is followed by watches and kept in memory: releases, snapshots and
//! environments in the read model that the controllers share, settings, data planes and what matters of
//! rendered releases in tables of its own. A changed object reconciles the pins that looked at it, and no
//! others. What a reconcile asks of the server:
//!
//! | when | reads | writes |
//! |---|---|---|
//! | nothing changed | none | none |
//! | the health changed | none | the status |
//! | a new pin, or a move | the release, if nobody read it yet | snapshot and rendered release, side by side; the claim and the audit entry where they are missing; the status |
//! | ... and its EnvSettings are gone | as above, and whether the kind EnvSettings is being deleted | as above |
//! | ... that an engine made | whether its audit entry is there | as above |
//! | ... with git references | the snapshot of the same references, if there is one; else git | as above |
//! | after a restart | the release | none |
//!
//! A body is read once for all pins that name it. Writes that do not wait for each other are sent
//! together; the status comes last, so that a crash before it leaves the pin as one that was not seen.
//!
//! Nothing here talks to a data plane, and nothing here deletes: a release that is gone leaves what was
//! applied of it as it is.

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
use crate::api::{DataPlane, EnvSettings, Environment, ReleasePin, definitions, labels, names};
use crate::connect::explain;
use crate::engine::claim::{ClaimError, Claims};
use crate::engine::ownership;
use crate::engine::recording::Scribe;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Freshness, Key, Source, World};
use crate::render::Library;
use concerns::{Concerns, Thing};
use make::{Made, Work};
use rendered::{Row, Summary};
use status::{Done, Step, Subject, Trouble};

/// How many pins are worked on at a time.
const AT_ONCE: u16 = 32;

/// What of the read model has to be listed before anything can be said of a pin.
const SOURCES: [Source; 3] = [Source::Releases, Source::Snapshots, Source::Environments];

/// Why a pin is tried again.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// A step could not be taken.
    #[error("{reason}: {message}")]
    Step {
        /// The reason in the condition.
        reason: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The target did not answer as it should.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// Settings of one component in one environment; what they say changes with their generation.
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

    /// The pin that they are for; pins are named after their place.
    fn place(key: &Key, settings: &Self) -> Key {
        let spec = &settings.object.spec;
        let pin = names::pin(&spec.owner.component_name, &spec.environment);
        Key::new(&key.namespace, &pin)
    }
}

/// What the reconciles of all pins share.
struct Room {
    base: Arc<Context>,
    library: Arc<Library>,
    settings: Arc<Table<Settings>>,
    planes: Arc<Table<()>>,
    rendered: Arc<Table<Row>>,
    concerns: Mutex<Concerns>,
    /// What was made of each pin last.
    made: Mutex<HashMap<Key, Arc<Made>>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Room {
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

    /// Waits until everything that a pin can refer to was listed once.
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

    /// Returns the pins that something concerns.
    fn concerned(&self, thing: &Thing) -> Vec<Key> {
        locked(&self.concerns).of(thing)
    }

    /// Returns the pins that a change of the read model concerns.
    fn touched(&self, touched: &Touched) -> Vec<Key> {
        let Some(key) = &touched.key else {
            return match SOURCES.contains(&touched.source) {
                true => locked(&self.concerns).all(),
                false => Vec::new(),
            };
        };
        match touched.source {
            Source::Releases => self.concerned(&Thing::Release(key.clone())),
            Source::Environments => self.concerned(&Thing::Environment(key.clone())),
            // One that is there is as it was made; one that is gone has to be made again.
            Source::Snapshots if self.base.feed().world().snapshot(key).is_none() => {
                let pins = self.concerned(&Thing::Snapshot(key.clone()));
                pins.iter().for_each(|pin| self.forget(pin));
                pins
            }
            Source::Snapshots | Source::Pins | Source::Pipelines => Vec::new(),
        }
    }

    /// Returns the pins that changed settings are for, or were.
    fn resettled(change: &Change<Settings>) -> Vec<Key> {
        let sides = change.before.iter().chain(&change.after);
        let mut pins: Vec<Key> = sides.map(|row| Settings::place(&change.key, row)).collect();
        pins.dedup();
        pins
    }

    /// Everything that makes a pin be looked at again, beside itself.
    fn triggers(self: &Arc<Self>) -> impl Stream<Item = ObjectRef<ReleasePin>> + Send + use<> {
        let base = &self.base;
        let room = self.clone();
        let world = base
            .feed()
            .touched()
            .map(move |touched| room.touched(&touched));
        let settings = self
            .settings
            .follow(base.all::<EnvSettings>(), Settings::of);
        let settings = settings.map(|change| Self::resettled(&change));
        let room = self.clone();
        let appearances = self.settings.appearances();
        let appearances = appearances.map(move |_| locked(&room.concerns).all());
        let room = self.clone();
        let planes = self.planes.follow(base.all::<DataPlane>(), |_| ());
        let planes = planes.map(move |change| room.concerned(&Thing::DataPlane(change.key)));
        let room = self.clone();
        let rendered = self
            .rendered
            .follow(base.all::<Summary>(), |it| Row::of(&it));
        let rendered = rendered.map(move |change| {
            // What is gone has to be made again; what is back is another.
            if change.after.is_none() {
                room.forget(&change.key);
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

/// Runs the controller until it is told to stop.
pub async fn run(context: Arc<Context>, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let room = Room::new(context.clone());
    let controller = Controller::new(context.all::<ReleasePin>(), watcher::Config::default())
        .reconcile_on(room.triggers())
        .graceful_shutdown_on(stop);
    super::run::run("pin", controller, AT_ONCE, context, room, |pin, room| {
        reconcile(pin, room).boxed()
    })
    .await;
}

/// Makes one pin so.
async fn reconcile(pin: Arc<ReleasePin>, room: Arc<Room>) -> Result<Action, PinError> {
    let key = Key::new(&pin.namespace().unwrap_or_default(), &pin.name_any());
    if pin.metadata.deletion_timestamp.is_some() {
        // What it owns goes with it.
        room.forget(&key);
        locked(&room.concerns).forget(&key);
        return Ok(Action::await_change());
    }
    room.ready().await;
    let now = room.base.now();
    let release = ownership::effective_release(&pin, now);
    let (making, completing) = (
        make(&room, &pin, &key, release),
        complete(&room, &pin, &key, now),
    );
    let (found, written) = match pin.operation() {
        // Who moved it is about to claim and record it; what they leave out is written after them.
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
    // What the record lacks is written before the pin counts as seen.
    written?;
    if pin.status.as_ref() != Some(&status) {
        write_status(&room, &pin, status).await?;
    }
    match found {
        Err(trouble) if trouble.may_pass => Err(PinError::Step {
            reason: trouble.reason,
            message: trouble.message,
        }),
        _ => Ok(next_look(&pin, now)),
    }
}

/// Makes what the pin wants, and looks how it is.
async fn make(room: &Room, pin: &ReleasePin, key: &Key, release: &str) -> Result<Done, Trouble> {
    let beside = |name: &str| Key::new(&key.namespace, name);
    let place = beside(&pin.spec.environment);
    let plane_of = |environment: &Environment| beside(&environment.spec.data_plane_ref.name);
    let note = |environment: Option<&Environment>| {
        let releases = pin
            .spec
            .named_releases()
            .map(|name| Thing::Release(beside(name)));
        let snapshot = room
            .made(key)
            .map(|made| Thing::Snapshot(beside(&made.snapshot)));
        let mut things: Vec<Thing> = releases.chain(snapshot).collect();
        things.push(Thing::Environment(place.clone()));
        things.extend(environment.map(|found| Thing::DataPlane(plane_of(found))));
        locked(&room.concerns).note(key, things);
    };
    // Noted before it is looked at: what changes in between is heard of.
    let look = || room.base.feed().world().environment(&place).cloned();
    note(look().as_ref());
    let mut environment = look();
    if environment.is_none() {
        // The read model may be behind; the server is not.
        let environments = room.base.within::<Environment>(&key.namespace);
        let found = environments.get_opt(&pin.spec.environment).await;
        environment = found.map_err(|error| make::unread(Step::Render, &error))?;
    }
    let own = |settings: &Settings| {
        let spec = &settings.object.spec;
        (&spec.owner.component_name, &spec.environment)
            == (&pin.spec.component, &pin.spec.environment)
    };
    // Two places can come to the same name.
    let settings = room
        .settings
        .at(key)
        .into_iter()
        .map(|(_, settings)| settings);
    let work = Work {
        room,
        pin,
        key,
        release,
        environment: environment.clone(),
        settings: settings.filter(own).collect(),
        row: room.rendered.get(key),
    };
    let made = work.make().await?;
    note(environment.as_ref());
    let row = room.rendered.get(key);
    let of_this = row.filter(|row| row.uid == made.uid && row.generation == made.generation);
    let plane = environment.as_ref().map(plane_of);
    Ok(Done {
        snapshot: made.snapshot.clone(),
        resources: made.resources,
        warnings: made.warnings.clone(),
        report: of_this.and_then(|row| row.report),
        no_plane: plane
            .filter(|plane| room.planes.get(plane).is_none())
            .map(|plane| plane.name.to_string()),
    })
}

/// Writes what others left out: the claims of what the pin names, and the record of its change.
async fn complete(
    room: &Room,
    pin: &ReleasePin,
    key: &Key,
    now: Timestamp,
) -> Result<(), PinError> {
    let unclaimed: Vec<(Key, Option<String>)> = {
        let world = room.base.feed().world();
        let named = pin.spec.named_releases();
        let rows = named.filter_map(|name| world.release(&Key::new(&key.namespace, name)));
        let unclaimed = rows.filter(|row| !row.pinned && !row.deleting);
        let identity = unclaimed.map(|row| (row.key.clone(), Some(row.uid.to_string())));
        identity.collect()
    };
    for claimed in unclaimed {
        let operation = pin.operation().ok().flatten();
        let operation = operation.map_or_else(|| "controller".to_owned(), |known| known.id);
        match Claims::place(&room.base.client, &operation, vec![claimed], now).await {
            // The pin names it already, good or bad, there or not: its condition says the rest.
            Ok(_) | Err(ClaimError::Bad(_) | ClaimError::Gone(_) | ClaimError::Deleting(_)) => {}
            Err(ClaimError::Target(error)) => return Err(error.into()),
        }
    }
    let observed = pin
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    if observed != pin.metadata.generation {
        let by = room.base.user().await?.to_owned();
        let scribe = Scribe::of(&room.base.client, &key.namespace, by, now);
        scribe.record(pin).await?;
    }
    Ok(())
}

/// Writes the status over the pin as it was read, and no later.
async fn write_status(
    room: &Room,
    pin: &ReleasePin,
    status: crate::api::pin::ReleasePinStatus,
) -> Result<(), PinError> {
    let pins = room
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
        // It changed or is gone, and the watch is about to say so.
        Err(kube::Error::Api(answer)) if matches!(answer.code, 404 | 409) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Says when the move was asked for that the pin is at.
fn asked_at(pin: &ReleasePin) -> Option<Timestamp> {
    let operation = pin.operation().ok().flatten();
    operation.map(|operation| operation.at.0)
}

/// Says when the pin has to be looked at again though nothing changes: when a hold ends.
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
