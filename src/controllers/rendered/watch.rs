//! A watch of one kind in one data plane. It contains all objects that have the label of the controller.
//!
//! The controller finds the objects of a RenderedRelease in the watch without a request, and a change of them
//! starts a pass. The watch also reports when it is not in sync, because then an object may exist that the
//! watch does not show.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, ResourceExt};
use tokio::sync::watch;

use super::kinds::{Blind, Kind};
use super::live::{Live, Seen};
use super::pause;
use super::wakes::ReconcileTriggers;
use crate::api::labels;

/// The first and the longest wait after a failed watch.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(30));
/// How long the server keeps a watch connection, in seconds. So a dead connection is noticed after this time
/// at the latest.
const LASTS: u32 = 120;

/// Whether the objects of a watch are complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sync {
    /// The first list of the kind is not complete.
    Listing,
    /// The list is complete, and the watch receives all changes.
    Current,
    /// The kind cannot be read. Contains the reason.
    Blind(Blind),
}

/// The namespace and the name of an object.
type Place = (String, String);

#[derive(Default)]
struct Objects {
    by_place: HashMap<Place, Sighting>,
    by_release: HashMap<String, HashSet<Place>>,
}

/// An object, and the time at which the watch or a request last saw it.
#[derive(Clone)]
struct Sighting {
    live: Arc<Live>,
    at: Instant,
}

/// The objects of one kind that a watch keeps in memory.
pub struct Watch {
    pub kind: Kind,
    objects: RwLock<Objects>,
    sync: watch::Sender<Sync>,
    wakes: Arc<ReconcileTriggers>,
    since: tokio::time::Instant,
}

impl Watch {
    /// Creates a watch without objects. The caller then runs [`Watch::follow`].
    pub fn new(kind: Kind, wakes: Arc<ReconcileTriggers>) -> Self {
        Self {
            kind,
            objects: RwLock::default(),
            sync: watch::Sender::new(Sync::Listing),
            wakes,
            since: tokio::time::Instant::now(),
        }
    }

    /// Waits until the watch has listed its kind or has failed. Returns an error if `patience` has passed
    /// since the creation of the watch, so only the first callers wait.
    pub async fn settled(&self, patience: Duration) -> Result<(), Blind> {
        let mut sync = self.sync.subscribe();
        let settled = sync.wait_for(|sync| *sync != Sync::Listing);
        let settled = tokio::time::timeout_at(self.since + patience, settled).await;
        match settled.map(|sync| sync.map(|sync| sync.clone())) {
            Ok(Ok(Sync::Blind(blind))) => Err(blind),
            Ok(Ok(_)) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(Blind::Unread {
                kind: self.kind.name(),
                why: format!("the server did not list it within {patience:?}"),
                unreachable: true,
            }),
        }
    }

    pub fn sync(&self) -> Sync {
        self.sync.borrow().clone()
    }

    /// Returns an object, and how long ago it was last seen.
    pub fn get(&self, namespace: &str, name: &str) -> Option<(Arc<Live>, Duration)> {
        let place = (namespace.to_owned(), name.to_owned());
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let sighting = objects.by_place.get(&place)?;
        Some((sighting.live.clone(), sighting.at.elapsed()))
    }

    /// Returns the namespace, the name and the summary of each object that has the label of a
    /// RenderedRelease.
    pub fn labelled(&self, uid: &str) -> Vec<(String, String, Arc<Live>)> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let places = objects.by_release.get(uid).into_iter().flatten();
        let found = places.filter_map(|place| {
            let sighting = objects.by_place.get(place)?;
            Some((place.0.clone(), place.1.clone(), sighting.live.clone()))
        });
        found.collect()
    }

    /// Stores an object from the answer to a request, because the watch may still have an older state.
    pub fn learn(&self, namespace: &str, name: &str, live: Arc<Live>) {
        let place = (namespace.to_owned(), name.to_owned());
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.put(place, live);
    }

    /// Removes an object after its deletion, unless a new object of the same name has replaced it.
    pub fn unlearn(&self, namespace: &str, name: &str, uid: &str) {
        let place = (namespace.to_owned(), name.to_owned());
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.take(&place, uid);
    }

    /// Runs the watch. This function never returns.
    pub async fn follow<const METADATA: bool>(self: Arc<Self>, api: Api<Seen<METADATA>>) {
        let selector = format!("{}={}", labels::MANAGED_BY, labels::RELEASE_CONTROLLER);
        let config = watcher::Config::default().labels(&selector).timeout(LASTS);
        let mut pause = PAUSES.0;
        loop {
            let mut events = std::pin::pin!(watcher(api.clone(), config.clone()));
            let mut listed: Option<HashMap<Place, Arc<Live>>> = None;
            let failed = loop {
                match events.next().await {
                    Some(Ok(event)) => {
                        if self.take_in(event, &mut listed) {
                            pause = PAUSES.0;
                        }
                    }
                    Some(Err(error)) => break Some(error),
                    None => break None,
                }
            };
            if let Some(error) = failed {
                let blind = self.explained(&error);
                tracing::warn!(kind = %self.kind.name(), error = %blind, "watch failed");
                self.sync.send_replace(Sync::Blind(blind));
            }
            // A failed watch starts again with a new list. Until that list is complete, callers get the
            // error.
            tokio::time::sleep(pause::jittered(pause, &self.kind.name())).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    /// Handles an event of the watch. Returns true if the event completes a list, because then the watch is
    /// in sync.
    fn take_in<const METADATA: bool>(
        &self,
        event: Event<Seen<METADATA>>,
        listed: &mut Option<HashMap<Place, Arc<Live>>>,
    ) -> bool {
        match event {
            Event::Init => *listed = Some(HashMap::new()),
            Event::InitApply(seen) => {
                let (place, live) = self.kept(seen);
                listed.get_or_insert_default().insert(place, live);
            }
            Event::InitDone => {
                self.replace(listed.take().unwrap_or_default());
                let before = self.sync.send_replace(Sync::Current);
                if before != Sync::Listing {
                    self.wakes.wake_troubled();
                }
                return true;
            }
            Event::Apply(seen) => {
                let (place, live) = self.kept(seen);
                let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
                let changed = objects.put(place, live);
                drop(objects);
                self.wake(changed);
            }
            Event::Delete(seen) => {
                let (place, live) = self.kept(seen);
                let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
                let gone = objects.take(&place, &live.uid);
                drop(objects);
                self.wake(gone.map(|live| live.labelled.uid.clone()));
            }
        }
        false
    }

    fn kept<const METADATA: bool>(&self, seen: Seen<METADATA>) -> (Place, Arc<Live>) {
        let place = (seen.namespace().unwrap_or_default(), seen.name_any());
        let resource = &self.kind.resource;
        let live = seen.keep(&resource.group, &resource.kind);
        (place, Arc::new(live))
    }

    /// Replaces all stored objects by a complete list.
    fn replace(&self, listed: HashMap<Place, Arc<Live>>) {
        let mut changed = Vec::new();
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let known: Vec<Place> = objects.by_place.keys().cloned().collect();
        for place in known.iter().filter(|place| !listed.contains_key(*place)) {
            let uid = objects.by_place.get(place).map(|it| it.live.uid.clone());
            let gone = objects.take(place, &uid.unwrap_or_default());
            changed.extend(gone.map(|live| live.labelled.uid.clone()));
        }
        for (place, live) in listed {
            changed.extend(objects.put(place, live));
        }
        drop(objects);
        self.wake(changed);
    }

    fn wake(&self, releases: impl IntoIterator<Item = String>) {
        for uid in releases {
            self.wakes.wake(&uid);
        }
    }

    fn explained(&self, error: &watcher::Error) -> Blind {
        let kind = self.kind.name();
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => Blind::of(kind, error),
            watcher::Error::WatchError(status) => {
                Blind::of(kind, &kube::Error::Api(status.clone()))
            }
            watcher::Error::NoResourceVersion => Blind::Unread {
                kind,
                why: error.to_string(),
                unreachable: false,
            },
        }
    }
}

impl Objects {
    /// Stores an object, unless a newer version of the object is stored. Returns the uids of the
    /// RenderedReleases that need a pass, because a relevant field changed.
    fn put(&mut self, place: Place, live: Arc<Live>) -> Vec<String> {
        let at = Instant::now();
        let Some(known) = self.by_place.get_mut(&place) else {
            let uid = live.labelled.uid.clone();
            self.index(&uid, &place);
            self.by_place.insert(place, Sighting { live, at });
            return vec![uid];
        };
        if is_older(&live, &known.live) {
            return Vec::new();
        }
        let before = std::mem::replace(known, Sighting { live, at }).live;
        let after = &known.live;
        let same = Live {
            resource_version: after.resource_version.clone(),
            ..(*before).clone()
        } == **after;
        if same {
            return Vec::new();
        }
        let (old, new) = (before.labelled.uid.clone(), after.labelled.uid.clone());
        if old == new {
            return vec![new];
        }
        self.unindex(&old, &place);
        self.index(&new, &place);
        vec![old, new]
    }

    /// Removes an object, unless a new object of the same name has replaced it.
    fn take(&mut self, place: &Place, uid: &str) -> Option<Arc<Live>> {
        if self.by_place.get(place)?.live.uid != uid {
            return None;
        }
        let live = self.by_place.remove(place)?.live;
        let release = live.labelled.uid.clone();
        self.unindex(&release, place);
        Some(live)
    }

    fn index(&mut self, release: &str, place: &Place) {
        let places = self.by_release.entry(release.to_owned()).or_default();
        places.insert(place.clone());
    }

    fn unindex(&mut self, release: &str, place: &Place) {
        if let Some(places) = self.by_release.get_mut(release) {
            places.remove(place);
            if places.is_empty() {
                self.by_release.remove(release);
            }
        }
    }
}

/// Returns whether `one` is an older version of an object than `other`. Compares the numbers in their
/// resourceVersions. Returns false if one is not a number, so the version that arrived later then wins.
fn is_older(one: &Live, other: &Live) -> bool {
    let number = |live: &Live| live.resource_version.parse::<u64>().ok();
    matches!((number(one), number(other)), (Some(one), Some(other)) if one < other)
}
