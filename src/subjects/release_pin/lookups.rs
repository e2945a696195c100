//! Looks up ReleasePins, releases and snapshots in the read model.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::rows::{Pin, ReleaseRow, SnapshotRow};
use crate::engine::world::{Key, Source, World};

impl World {
    pub fn pin(&self, key: &Key) -> Option<&Pin> {
        self.release_pins().pins.get(key)
    }

    /// Returns the ReleasePin of a component in an environment; None if the component is not deployed there.
    pub fn pin_of(&self, component: &Key, environment: &str) -> Option<&Pin> {
        let name = self
            .release_pins()
            .components
            .get(component)?
            .pins
            .get(environment)?;
        self.release_pins().pins.get(&Key {
            namespace: component.namespace.clone(),
            name: name.clone(),
        })
    }

    /// Returns the ReleasePins of a component, sorted by environment.
    pub fn pins_of(&self, component: &Key) -> impl Iterator<Item = &Pin> {
        let of_component = self.release_pins().components.get(component);
        let names = of_component
            .into_iter()
            .flat_map(|found| found.pins.values());
        let namespace = component.namespace.clone();
        names.filter_map(move |name| {
            self.release_pins().pins.get(&Key {
                namespace: namespace.clone(),
                name: name.clone(),
            })
        })
    }

    pub fn release(&self, key: &Key) -> Option<&ReleaseRow> {
        self.release_pins().releases.get(key)
    }

    /// Returns the releases of a component, newest first.
    pub fn releases_of(&self, component: &Key) -> impl Iterator<Item = &ReleaseRow> {
        let of_component = self.release_pins().components.get(component);
        let names = of_component
            .into_iter()
            .flat_map(|found| found.releases.iter());
        let namespace = component.namespace.clone();
        names.filter_map(move |Reverse((_, name))| {
            self.release_pins().releases.get(&Key {
                namespace: namespace.clone(),
                name: name.clone(),
            })
        })
    }

    pub fn all_releases(&self) -> impl Iterator<Item = &ReleaseRow> {
        self.release_pins().releases.iter().map(|(_, row)| row)
    }

    /// Returns the releases without a component label, sorted by name.
    pub fn unowned_releases(&self) -> impl Iterator<Item = &ReleaseRow> {
        self.release_pins()
            .unowned
            .iter()
            .filter_map(|key| self.release_pins().releases.get(key))
    }

    pub fn snapshot(&self, key: &Key) -> Option<&SnapshotRow> {
        self.release_pins().snapshots.get(key)
    }

    pub fn all_snapshots(&self) -> impl Iterator<Item = &SnapshotRow> {
        self.release_pins().snapshots.iter().map(|(_, row)| row)
    }

    /// Returns the snapshots of a component, grouped by environment. In each group, the newest snapshot comes first.
    pub fn snapshots_of(&self, component: &Key) -> impl Iterator<Item = (&str, Vec<&SnapshotRow>)> {
        let of_component = self.release_pins().components.get(component);
        let by_environment = of_component.into_iter().flat_map(|found| &found.snapshots);
        let namespace = component.namespace.clone();
        by_environment.map(move |(environment, places)| {
            let rows = places.iter().filter_map(|Reverse((_, name))| {
                self.release_pins().snapshots.get(&Key {
                    namespace: namespace.clone(),
                    name: name.clone(),
                })
            });
            (&**environment, rows.collect())
        })
    }

    /// Returns the names of the ReleasePins that name a release. The release itself may not exist.
    pub fn pins_naming(&self, release: &Key) -> impl Iterator<Item = &str> {
        let named = self.release_pins().named_by.get(release);
        named.into_iter().flatten().map(|name| &**name)
    }

    /// Returns the component that a ReleasePin, release or snapshot belongs to; None if it belongs to no component.
    pub fn component_of(&self, source: Source, key: &Key) -> Option<&Arc<str>> {
        match source {
            Source::RELEASE_PINS => self.pin(key).map(|pin| &pin.component),
            Source::RELEASES => self.release(key)?.component.as_ref(),
            Source::SNAPSHOTS => self.snapshot(key).map(|snapshot| &snapshot.component),
            _ => None,
        }
    }

    /// Returns the namespaces with a component, an Environment or a pipeline.
    pub fn namespaces(&self) -> BTreeSet<&Arc<str>> {
        let components = self.release_pins().components.keys();
        let components = components.map(|key| &key.namespace);
        components.chain(self.pipeline_namespaces()).collect()
    }

    /// Returns the environments that the ReleasePins of a namespace name. Some of these environments may not exist.
    pub fn pinned_environments(&self, namespace: &str) -> BTreeSet<&Arc<str>> {
        let here = self.release_pins().components.iter();
        let here = here.filter(|(key, _)| &*key.namespace == namespace);
        here.flat_map(|(_, of_component)| of_component.pins.keys())
            .collect()
    }

    pub fn has_component(&self, component: &Key) -> bool {
        self.release_pins().components.contains_key(component)
    }

    pub fn all_pins(&self) -> impl Iterator<Item = &Pin> {
        self.release_pins().pins.iter().map(|(_, row)| row)
    }

    /// Returns the components that have a ReleasePin, a release or a snapshot. The order is undefined.
    pub fn components(&self) -> impl Iterator<Item = &Key> {
        self.release_pins().components.keys()
    }

    /// Returns how many releases the effective release of `pin` is behind that of `ahead`. None if one of the two
    /// releases does not exist.
    pub fn behind(&self, pin: &Pin, ahead: &Pin, now: Timestamp) -> Option<usize> {
        let component = Key {
            namespace: pin.key.namespace.clone(),
            name: pin.component.clone(),
        };
        let (own, other) = (pin.effective_release(now), ahead.effective_release(now));
        self.releases_between(&component, own, other)
    }

    /// Returns how many releases of a component `other` is newer than `one`: 1 if it is the next release, 0 if it is
    /// older. None if one of the two does not exist.
    pub fn releases_between(&self, component: &Key, one: &str, other: &str) -> Option<usize> {
        let releases = &self.release_pins().components.get(component)?.releases;
        let place = |wanted: &str| {
            let mut names = releases.iter().map(|Reverse((_, name))| &**name);
            names.position(|name| name == wanted)
        };
        Some(place(one)?.saturating_sub(place(other)?))
    }
}
