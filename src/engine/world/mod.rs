//! The read model: what runs where, updated in place for one changed object.
//!
//! It is fed by watches and asked by planners and screens. It keeps summaries, not bodies, and indexes by
//! component, environment, release and pin, so that an event and a question cost the same however many
//! objects there are. Nothing here talks to a server; [`feed`] does.

pub mod feed;
#[cfg(test)]
pub(crate) mod fixture;
mod questions;
mod rows;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::PartialObjectMeta;
use kube::core::ApiResource;

use crate::api::{
    ComponentEnvSnapshot, DeploymentPipeline, Environment, Release, ReleasePin, labels,
};
use crate::connect::kinds::kind;

pub use rows::{Key, Labels, Move, Pin, Ready, ReleaseRow, SnapshotRow};

/// What runs where, as far as the watches have told.
#[derive(Default)]
pub struct World {
    /// Names of namespaces, components and environments, each once.
    names: HashSet<Arc<str>>,
    pins: Table<Pin>,
    releases: Table<ReleaseRow>,
    snapshots: Table<SnapshotRow>,
    environments: Table<Environment>,
    pipelines: Table<DeploymentPipeline>,
    components: HashMap<Key, OfComponent>,
    /// The releases that name no component.
    unowned: BTreeSet<Key>,
    /// The pins that name a release, whether it is there or not.
    named_by: HashMap<Key, BTreeSet<Arc<str>>>,
    sources: BTreeMap<Source, Freshness>,
}

/// What belongs to one component.
#[derive(Default)]
struct OfComponent {
    /// The names of its pins, by environment.
    pins: BTreeMap<Arc<str>, Arc<str>>,
    /// Its releases, newest first; of two that were made in one second, the last by name.
    releases: BTreeSet<Place>,
    /// Its snapshots by environment, newest first.
    snapshots: BTreeMap<Arc<str>, BTreeSet<Place>>,
}

/// Where something stands among others of its component: newest first.
type Place = Reverse<(Timestamp, Arc<str>)>;

/// The kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// ReleasePins.
    Pins,
    /// Releases, by their metadata.
    Releases,
    /// ComponentEnvSnapshots, by their metadata.
    Snapshots,
    /// Environments.
    Environments,
    /// DeploymentPipelines.
    Pipelines,
}

impl Source {
    /// Returns the API resource of the kind.
    pub fn kind(self) -> ApiResource {
        match self {
            Self::Pins => kind::<ReleasePin>(),
            Self::Releases => kind::<Release>(),
            Self::Snapshots => kind::<ComponentEnvSnapshot>(),
            Self::Environments => kind::<Environment>(),
            Self::Pipelines => kind::<DeploymentPipeline>(),
        }
    }

    /// Those that planners of moves ask; the last, snapshots, matter to who collects.
    pub const OF_MOVES: [Source; 4] = [
        Source::Pins,
        Source::Releases,
        Source::Environments,
        Source::Pipelines,
    ];
    /// All of them.
    pub const ALL: [Source; 5] = [
        Source::Pins,
        Source::Releases,
        Source::Snapshots,
        Source::Environments,
        Source::Pipelines,
    ];

    /// Returns the word for the objects of the kind.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pins => "ReleasePins",
            Self::Releases => "releases",
            Self::Snapshots => "snapshots",
            Self::Environments => "environments",
            Self::Pipelines => "pipelines",
        }
    }
}

/// How current what a watch told is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// The first list is not complete.
    #[default]
    Loading,
    /// The watch runs.
    Live,
    /// The server does not have the kind; the watch starts when the server has it.
    Absent,
    /// The watch is cut off.
    Stale {
        /// Since when.
        since: Timestamp,
        /// Why.
        why: String,
        /// Whether it will not come back by itself, because we may not have it.
        denied: bool,
    },
}

/// What a watch tells.
#[derive(Clone, Debug)]
pub enum Event<K> {
    /// A list begins; what it does not bring is gone.
    Listing,
    /// An object of a list, or one that changed.
    Applied(K),
    /// An object is gone.
    Deleted(K),
    /// The list is complete.
    Listed,
}

/// Objects by name, each with the list that brought it last.
struct Table<T> {
    rows: HashMap<Key, (u32, T)>,
    list: u32,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self {
            rows: HashMap::new(),
            list: 0,
        }
    }
}

impl<T> Table<T> {
    fn get(&self, key: &Key) -> Option<&T> {
        self.rows.get(key).map(|(_, row)| row)
    }

    fn put(&mut self, key: Key, row: T) -> Option<T> {
        self.rows.insert(key, (self.list, row)).map(|(_, old)| old)
    }

    /// Returns the keys that the list which just ended did not bring.
    fn unlisted(&self) -> Vec<Key> {
        let old = self.rows.iter().filter(|(_, (list, _))| *list != self.list);
        old.map(|(key, _)| key.clone()).collect()
    }
}

impl World {
    /// Begins with nothing known.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in what the watch of pins tells.
    pub fn pins(&mut self, event: Event<ReleasePin>) {
        match event {
            Event::Listing => self.begin(Source::Pins),
            Event::Applied(pin) => self.put_pin(&pin),
            Event::Deleted(pin) => self.remove_pin(&self.key(&pin)),
            Event::Listed => {
                for key in self.pins.unlisted() {
                    self.remove_pin(&key);
                }
                self.end(Source::Pins);
            }
        }
    }

    /// Takes in what the watch of releases tells.
    pub fn releases(&mut self, event: Event<PartialObjectMeta<Release>>) {
        match event {
            Event::Listing => self.begin(Source::Releases),
            Event::Applied(release) => self.put_release(&release),
            Event::Deleted(release) => self.remove_release(&self.key(&release)),
            Event::Listed => {
                for key in self.releases.unlisted() {
                    self.remove_release(&key);
                }
                self.end(Source::Releases);
            }
        }
    }

    /// Takes in what the watch of snapshots tells.
    pub fn snapshots(&mut self, event: Event<PartialObjectMeta<ComponentEnvSnapshot>>) {
        match event {
            Event::Listing => self.begin(Source::Snapshots),
            Event::Applied(snapshot) => self.put_snapshot(&snapshot),
            Event::Deleted(snapshot) => self.remove_snapshot(&self.key(&snapshot)),
            Event::Listed => {
                for key in self.snapshots.unlisted() {
                    self.remove_snapshot(&key);
                }
                self.end(Source::Snapshots);
            }
        }
    }

    /// Takes in what the watch of environments tells.
    pub fn environments(&mut self, event: Event<Environment>) {
        match event {
            Event::Listing => self.begin(Source::Environments),
            Event::Applied(environment) => {
                let key = self.key(&environment);
                self.environments.put(key, environment);
            }
            Event::Deleted(environment) => {
                self.environments.rows.remove(&self.key(&environment));
            }
            Event::Listed => {
                let list = self.environments.list;
                self.environments.rows.retain(|_, (seen, _)| *seen == list);
                self.end(Source::Environments);
            }
        }
    }

    /// Takes in what the watch of pipelines tells.
    pub fn pipelines(&mut self, event: Event<DeploymentPipeline>) {
        match event {
            Event::Listing => self.begin(Source::Pipelines),
            Event::Applied(pipeline) => {
                let key = self.key(&pipeline);
                self.pipelines.put(key, pipeline);
            }
            Event::Deleted(pipeline) => {
                self.pipelines.rows.remove(&self.key(&pipeline));
            }
            Event::Listed => {
                let list = self.pipelines.list;
                self.pipelines.rows.retain(|_, (seen, _)| *seen == list);
                self.end(Source::Pipelines);
            }
        }
    }

    /// Notes that every list is complete, where the read model is filled by hand.
    pub fn all_listed(&mut self) {
        for source in Source::ALL {
            self.end(source);
        }
    }

    /// Notes that a watch is cut off; what it told stays, with its age.
    pub fn cut_off(&mut self, source: Source, now: Timestamp, why: String, denied: bool) {
        let known = self.sources.entry(source).or_default();
        let since = match known {
            Freshness::Stale { since, .. } => *since,
            _ => now,
        };
        *known = Freshness::Stale { since, why, denied };
    }

    /// Notes that the server does not have a kind. The objects of the kind went with it.
    fn absent(&mut self, source: Source) {
        self.sources.insert(source, Freshness::Absent);
    }

    /// Notes that a watch runs again.
    pub fn live(&mut self, source: Source) {
        let known = self.sources.entry(source).or_default();
        if matches!(known, Freshness::Stale { .. }) {
            *known = Freshness::Live;
        }
    }

    /// Returns how current what a watch told is.
    pub fn freshness(&self, source: Source) -> &Freshness {
        self.sources.get(&source).unwrap_or(&Freshness::Loading)
    }

    /// Tells whether the server does not have a kind.
    pub fn is_absent(&self, source: Source) -> bool {
        *self.freshness(source) == Freshness::Absent
    }

    /// Returns the kinds that the server does not have.
    pub fn absent_kinds(&self) -> Vec<String> {
        let absent = Source::ALL.into_iter();
        let absent = absent.filter(|source| self.is_absent(*source));
        absent.map(|source| source.kind().kind).collect()
    }

    /// Tells whether some kinds are listed, or are known to be absent.
    pub fn are_known(&self, sources: &[Source]) -> bool {
        let is_known = |source: &Source| match self.freshness(*source) {
            Freshness::Live | Freshness::Absent => true,
            Freshness::Loading | Freshness::Stale { .. } => false,
        };
        sources.iter().all(is_known)
    }

    /// Tells whether every watch runs.
    pub fn is_live(&self) -> bool {
        self.are_live(&Source::ALL)
    }

    /// Tells whether some watches run.
    pub fn are_live(&self, sources: &[Source]) -> bool {
        let live = |source: &Source| *self.freshness(*source) == Freshness::Live;
        sources.iter().all(live)
    }

    fn begin(&mut self, source: Source) {
        match source {
            Source::Pins => self.pins.list += 1,
            Source::Releases => self.releases.list += 1,
            Source::Snapshots => self.snapshots.list += 1,
            Source::Environments => self.environments.list += 1,
            Source::Pipelines => self.pipelines.list += 1,
        }
    }

    fn end(&mut self, source: Source) {
        self.sources.insert(source, Freshness::Live);
        // What nobody is called any more.
        self.names.retain(|name| Arc::strong_count(name) > 1);
    }

    fn name(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.names.get(text) {
            return known.clone();
        }
        let name: Arc<str> = text.into();
        self.names.insert(name.clone());
        name
    }

    fn key(&self, object: &impl ResourceExt) -> Key {
        let namespace = object.namespace().unwrap_or_default();
        let known = self.names.get(namespace.as_str()).cloned();
        Key {
            namespace: known.unwrap_or_else(|| namespace.into()),
            name: object.name_any().into(),
        }
    }

    fn put_pin(&mut self, pin: &ReleasePin) {
        self.name(&pin.namespace().unwrap_or_default());
        let key = self.key(pin);
        let component = self.name(&pin.spec.component);
        let environment = self.name(&pin.spec.environment);
        let row = Pin::of(pin, key.clone(), component, environment);
        let old = self.pins.get(&key);
        let same_place = old.is_some_and(|old| {
            old.component == row.component && old.environment == row.environment
        });
        let same_names = old.is_some_and(|old| old.named_releases().eq(row.named_releases()));
        if !same_place {
            self.unplace_pin(&key);
            let of_component = self.components.entry(within(&key, &row.component));
            of_component
                .or_default()
                .pins
                .insert(row.environment.clone(), key.name.clone());
        }
        if !same_names {
            self.unname_releases(&key);
            for release in row.named_releases() {
                let named = self.named_by.entry(within(&key, release)).or_default();
                named.insert(key.name.clone());
            }
        }
        self.pins.put(key, row);
    }

    fn remove_pin(&mut self, key: &Key) {
        self.unplace_pin(key);
        self.unname_releases(key);
        self.pins.rows.remove(key);
    }

    /// Takes a pin out of the index of its component.
    fn unplace_pin(&mut self, key: &Key) {
        let Some((_, old)) = self.pins.rows.get(key) else {
            return;
        };
        let component = within(key, &old.component);
        if let Some(of_component) = self.components.get_mut(&component) {
            // Another pin may have taken the place.
            if of_component.pins.get(&old.environment) == Some(&key.name) {
                of_component.pins.remove(&old.environment);
            }
            if of_component.is_empty() {
                self.components.remove(&component);
            }
        }
    }

    /// Takes a pin out of the index of the releases that it names.
    fn unname_releases(&mut self, key: &Key) {
        let Some((_, old)) = self.pins.rows.get(key) else {
            return;
        };
        for release in old.named_releases() {
            let release = within(key, release);
            if let Some(named) = self.named_by.get_mut(&release) {
                named.remove(&key.name);
                if named.is_empty() {
                    self.named_by.remove(&release);
                }
            }
        }
    }

    fn put_release(&mut self, release: &PartialObjectMeta<Release>) {
        self.name(&release.namespace().unwrap_or_default());
        let key = self.key(release);
        let component = release.labels().get(labels::COMPONENT).cloned();
        let component = component.map(|component| self.name(&component));
        let row = ReleaseRow::of(release, key.clone(), component);
        let same_place = self
            .releases
            .get(&key)
            .is_some_and(|old| old.component == row.component && old.created == row.created);
        if !same_place {
            self.unlink_release(&key);
            match &row.component {
                Some(component) => {
                    let of_component = self.components.entry(within(&key, component)).or_default();
                    let place = Reverse((row.created, key.name.clone()));
                    of_component.releases.insert(place);
                }
                None => drop(self.unowned.insert(key.clone())),
            }
        }
        self.releases.put(key, row);
    }

    fn remove_release(&mut self, key: &Key) {
        self.unlink_release(key);
        self.releases.rows.remove(key);
    }

    /// Takes a release out of the indexes.
    fn unlink_release(&mut self, key: &Key) {
        let Some((_, old)) = self.releases.rows.get(key) else {
            return;
        };
        let Some(component) = &old.component else {
            self.unowned.remove(key);
            return;
        };
        let place = Reverse((old.created, key.name.clone()));
        let component = within(key, component);
        if let Some(of_component) = self.components.get_mut(&component) {
            of_component.releases.remove(&place);
            if of_component.is_empty() {
                self.components.remove(&component);
            }
        }
    }

    fn put_snapshot(&mut self, snapshot: &PartialObjectMeta<ComponentEnvSnapshot>) {
        self.name(&snapshot.namespace().unwrap_or_default());
        let key = self.key(snapshot);
        self.remove_snapshot(&key);
        // Only the controller makes snapshots, with both labels; what lacks one is none of ours.
        let label = |name| snapshot.labels().get(name);
        let (Some(component), Some(environment)) =
            (label(labels::COMPONENT), label(labels::ENVIRONMENT))
        else {
            return;
        };
        let (component, environment) = (self.name(component), self.name(environment));
        let row = SnapshotRow::of(snapshot, key.clone(), component, environment);
        let of_component = self.components.entry(within(&key, &row.component));
        let of_pin = &mut of_component.or_default().snapshots;
        let of_pin = of_pin.entry(row.environment.clone()).or_default();
        of_pin.insert(Reverse((row.created, key.name.clone())));
        self.snapshots.put(key, row);
    }

    fn remove_snapshot(&mut self, key: &Key) {
        let Some((_, old)) = self.snapshots.rows.remove(key) else {
            return;
        };
        let component = within(key, &old.component);
        if let Some(of_component) = self.components.get_mut(&component) {
            if let Some(of_pin) = of_component.snapshots.get_mut(&old.environment) {
                of_pin.remove(&Reverse((old.created, key.name.clone())));
                if of_pin.is_empty() {
                    of_component.snapshots.remove(&old.environment);
                }
            }
            if of_component.is_empty() {
                self.components.remove(&component);
            }
        }
    }
}

impl OfComponent {
    fn is_empty(&self) -> bool {
        self.pins.is_empty() && self.releases.is_empty() && self.snapshots.is_empty()
    }
}

/// The key of something in the namespace of another.
fn within(key: &Key, name: &str) -> Key {
    Key {
        namespace: key.namespace.clone(),
        name: name.into(),
    }
}
