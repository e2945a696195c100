//! The tables of the read model for ReleasePins, releases and snapshots, and the watches that fill them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::PartialObjectMeta;

use super::rows::{Pin, ReleaseRow, SnapshotRow};
use crate::api::{ComponentEnvSnapshot, Release, ReleasePin, labels};
use crate::engine::world::feed::Watch;
use crate::engine::world::{Event, Key, Source, Table, World};

impl Source {
    pub const RELEASE_PINS: Self = Self("ReleasePins");
    /// The watched kind Release. Only the metadata is watched.
    pub const RELEASES: Self = Self("releases");
    /// The watched kind ComponentEnvSnapshot. Only the metadata is watched.
    pub const SNAPSHOTS: Self = Self("snapshots");
}

/// The kinds that must be up to date to plan a change of ReleasePins or a mark.
pub const READ_BY_CHANGES: [Source; 4] = [
    Source::RELEASE_PINS,
    Source::RELEASES,
    Source::ENVIRONMENTS,
    Source::PIPELINES,
];

/// The kinds that must be up to date to plan gc.
pub const READ_BY_GC: [Source; 5] = [
    Source::RELEASE_PINS,
    Source::RELEASES,
    Source::SNAPSHOTS,
    Source::ENVIRONMENTS,
    Source::PIPELINES,
];

/// Returns the watches that fill the tables. Releases and snapshots are large, so only their metadata is watched,
/// which contains all values for the rows.
pub fn watches() -> [Watch; 3] {
    [
        Watch::new(Source::RELEASE_PINS, World::pins).of_row(World::component_of),
        Watch::new(Source::RELEASES, World::releases).of_row(World::component_of),
        Watch::new(Source::SNAPSHOTS, World::snapshots).of_row(World::component_of),
    ]
}

/// The rows of ReleasePins, releases and snapshots, with indexes for lookups.
#[derive(Default)]
pub(super) struct Tables {
    pub(super) pins: Table<Pin>,
    pub(super) releases: Table<ReleaseRow>,
    pub(super) snapshots: Table<SnapshotRow>,
    pub(super) components: HashMap<Key, OfComponent>,
    /// The keys of the releases without a component label.
    pub(super) unowned: BTreeSet<Key>,
    /// For each release, the names of the ReleasePins that name it. The release itself may not exist.
    pub(super) named_by: HashMap<Key, BTreeSet<Arc<str>>>,
}

/// The ReleasePins, releases and snapshots of one component.
#[derive(Default)]
pub(super) struct OfComponent {
    /// For each environment, the name of the component's ReleasePin.
    pub(super) pins: BTreeMap<Arc<str>, Arc<str>>,
    /// The releases of the component, newest first. Releases with the same creation time are in reverse order of
    /// their names.
    pub(super) releases: BTreeSet<Place>,
    /// For each environment, the snapshots of the component, newest first.
    pub(super) snapshots: BTreeMap<Arc<str>, BTreeSet<Place>>,
}

/// A sort key of creation time and name, which puts the newest object first.
type Place = Reverse<(Timestamp, Arc<str>)>;

static EMPTY: LazyLock<Tables> = LazyLock::new(Tables::default);

impl World {
    pub(super) fn release_pins(&self) -> &Tables {
        self.table().unwrap_or(&EMPTY)
    }

    /// Updates the rows of ReleasePins by a watch event.
    pub fn pins(&mut self, event: Event<ReleasePin>) {
        match event {
            Event::Listing => self.table_mut::<Tables>().pins.start_list(),
            Event::Applied(pin) => {
                self.name(&pin.namespace().unwrap_or_default());
                let key = self.key(&pin);
                let component = self.name(&pin.spec.component);
                let environment = self.name(&pin.spec.environment);
                let row = Pin::of(&pin, key, component, environment);
                self.table_mut::<Tables>().put_pin(row);
            }
            Event::Deleted(pin) => {
                let key = self.key(&pin);
                self.table_mut::<Tables>().remove_pin(&key);
            }
            Event::Listed => {
                let tables = self.table_mut::<Tables>();
                for key in tables.pins.unlisted() {
                    tables.remove_pin(&key);
                }
                self.listed(Source::RELEASE_PINS);
            }
        }
    }

    /// Updates the rows of releases by a watch event.
    pub fn releases(&mut self, event: Event<PartialObjectMeta<Release>>) {
        match event {
            Event::Listing => self.table_mut::<Tables>().releases.start_list(),
            Event::Applied(release) => {
                self.name(&release.namespace().unwrap_or_default());
                let key = self.key(&release);
                let component = release.labels().get(labels::COMPONENT);
                let component = component.map(|component| self.name(component));
                let row = ReleaseRow::of(&release, key, component);
                self.table_mut::<Tables>().put_release(row);
            }
            Event::Deleted(release) => {
                let key = self.key(&release);
                self.table_mut::<Tables>().remove_release(&key);
            }
            Event::Listed => {
                let tables = self.table_mut::<Tables>();
                for key in tables.releases.unlisted() {
                    tables.remove_release(&key);
                }
                self.listed(Source::RELEASES);
            }
        }
    }

    /// Updates the rows of snapshots by a watch event.
    pub fn snapshots(&mut self, event: Event<PartialObjectMeta<ComponentEnvSnapshot>>) {
        match event {
            Event::Listing => self.table_mut::<Tables>().snapshots.start_list(),
            Event::Applied(snapshot) => self.put_snapshot(&snapshot),
            Event::Deleted(snapshot) => {
                let key = self.key(&snapshot);
                self.table_mut::<Tables>().remove_snapshot(&key);
            }
            Event::Listed => {
                let tables = self.table_mut::<Tables>();
                for key in tables.snapshots.unlisted() {
                    tables.remove_snapshot(&key);
                }
                self.listed(Source::SNAPSHOTS);
            }
        }
    }

    fn put_snapshot(&mut self, snapshot: &PartialObjectMeta<ComponentEnvSnapshot>) {
        self.name(&snapshot.namespace().unwrap_or_default());
        let key = self.key(snapshot);
        self.table_mut::<Tables>().remove_snapshot(&key);
        // The controller writes both labels on every snapshot. If one is missing, the controller did not create the
        // snapshot, so it gets no row.
        let label = |name| snapshot.labels().get(name);
        let (Some(component), Some(environment)) =
            (label(labels::COMPONENT), label(labels::ENVIRONMENT))
        else {
            return;
        };
        let (component, environment) = (self.name(component), self.name(environment));
        let row = SnapshotRow::of(snapshot, key, component, environment);
        self.table_mut::<Tables>().put_snapshot(row);
    }
}

impl Tables {
    fn put_pin(&mut self, row: Pin) {
        let key = row.key.clone();
        let old = self.pins.get(&key);
        let same_place = old.is_some_and(|old| {
            old.component == row.component && old.environment == row.environment
        });
        let same_names = old.is_some_and(|old| old.named_releases().eq(row.named_releases()));
        if !same_place {
            self.unplace_pin(&key);
            let of_component = self.components.entry(key.beside(&row.component));
            of_component
                .or_default()
                .pins
                .insert(row.environment.clone(), key.name.clone());
        }
        if !same_names {
            self.unname_releases(&key);
            for release in row.named_releases() {
                let named = self.named_by.entry(key.beside(release)).or_default();
                named.insert(key.name.clone());
            }
        }
        self.pins.put(key, row);
    }

    fn remove_pin(&mut self, key: &Key) {
        self.unplace_pin(key);
        self.unname_releases(key);
        self.pins.remove(key);
    }

    /// Removes a ReleasePin from the index of its component.
    fn unplace_pin(&mut self, key: &Key) {
        let Some(old) = self.pins.get(key) else {
            return;
        };
        let component = key.beside(&old.component);
        if let Some(of_component) = self.components.get_mut(&component) {
            // Another ReleasePin may have the same component and environment; the index must keep that one.
            if of_component.pins.get(&old.environment) == Some(&key.name) {
                of_component.pins.remove(&old.environment);
            }
            if of_component.is_empty() {
                self.components.remove(&component);
            }
        }
    }

    /// Removes a ReleasePin from the index `named_by`.
    fn unname_releases(&mut self, key: &Key) {
        let Some(old) = self.pins.get(key) else {
            return;
        };
        for release in old.named_releases() {
            let release = key.beside(release);
            if let Some(named) = self.named_by.get_mut(&release) {
                named.remove(&key.name);
                if named.is_empty() {
                    self.named_by.remove(&release);
                }
            }
        }
    }

    fn put_release(&mut self, row: ReleaseRow) {
        let key = row.key.clone();
        let same_place = self
            .releases
            .get(&key)
            .is_some_and(|old| old.component == row.component && old.created == row.created);
        if !same_place {
            self.unlink_release(&key);
            match &row.component {
                Some(component) => {
                    let of_component = self.components.entry(key.beside(component)).or_default();
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
        self.releases.remove(key);
    }

    /// Removes a release from all indexes.
    fn unlink_release(&mut self, key: &Key) {
        let Some(old) = self.releases.get(key) else {
            return;
        };
        let Some(component) = &old.component else {
            self.unowned.remove(key);
            return;
        };
        let place = Reverse((old.created, key.name.clone()));
        let component = key.beside(component);
        if let Some(of_component) = self.components.get_mut(&component) {
            of_component.releases.remove(&place);
            if of_component.is_empty() {
                self.components.remove(&component);
            }
        }
    }

    fn put_snapshot(&mut self, row: SnapshotRow) {
        let key = row.key.clone();
        let of_component = self.components.entry(key.beside(&row.component));
        let of_pin = &mut of_component.or_default().snapshots;
        let of_pin = of_pin.entry(row.environment.clone()).or_default();
        of_pin.insert(Reverse((row.created, key.name.clone())));
        self.snapshots.put(key, row);
    }

    fn remove_snapshot(&mut self, key: &Key) {
        let Some(old) = self.snapshots.remove(key) else {
            return;
        };
        let component = key.beside(&old.component);
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

#[cfg(test)]
mod tests;
