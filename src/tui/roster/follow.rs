//! Updates a row set after a change of the read model: finds the rows that depend on the changed object, and computes
//! only these rows again.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Kind, RowSet};
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Source, World};
use crate::filter::{Facts, Matcher, View};
use crate::subjects::release_pin::matrix::Columns;
use crate::subjects::release_pin::past::Past;
use crate::subjects::{matrix, workload};

impl RowSet {
    /// Computes all rows again. If an object still exists, its row stays selected or marked.
    pub fn rebuild(&mut self, world: &World, now: Timestamp) {
        let columns = self.columns_of(world);
        let keys = self.keys(world).into_iter();
        let rows = keys.filter_map(|key| {
            let facts = self.facts(world, &columns, &key, now)?;
            Some((key, facts))
        });
        let rows = rows.collect();
        self.fill(columns, rows);
    }

    /// Replaces the rows by the components at a past time. If a component existed then, its row stays selected or
    /// marked.
    pub fn rebuild_past(&mut self, past: &Past, world: &World, moment: Timestamp) {
        let namespace = self.namespace.clone();
        let more = past.environments(namespace.as_deref().unwrap_or_default());
        let columns = Columns::including(world, namespace.as_deref(), more);
        let then = past.then(world, &columns, moment);
        let components = then.components(namespace.as_deref()).into_iter();
        let rows = components.map(|key| {
            let facts = Facts::of_past(&key, &then.row(&key));
            (key, facts)
        });
        let rows = rows.collect();
        self.fill(columns, rows);
    }

    /// Updates the row of one component at the displayed past time, after new information about
    /// that time arrived.
    pub fn touch_past(&mut self, past: &Past, world: &World, moment: Timestamp, key: &Key) {
        let then = past.then(world, &self.columns, moment);
        let there = self.is_here(key) && then.has_component(key);
        let facts = there.then(|| Facts::of_past(key, &then.row(key)));
        self.put(key, facts);
    }

    /// Replaces all rows. If an object still exists, its row stays selected or marked.
    fn fill(&mut self, columns: Columns, rows: Vec<(Key, Facts)>) {
        let stood = self.position();
        self.columns = columns;
        self.matcher = Matcher::new(&self.filter, self.columns.names());
        self.rows.clear();
        self.free.clear();
        self.workloads = 0;
        self.slots.clear();
        self.order.clear();
        self.shown.clear();
        self.expiries.clear();
        self.totals = super::Totals::default();
        for (key, facts) in rows {
            let slot = self.insert(key, facts);
            self.order.push(slot);
        }
        self.arrange();
        self.marked.retain(|key| self.slots.contains_key(key));
        match &self.selected {
            Some(key) if !self.slots.contains_key(key) => {
                self.selected = None;
                self.select_near(stood.unwrap_or_default());
            }
            _ => self.hand_over(),
        }
    }

    /// Applies one change of the read model; returns whether a row may have changed.
    pub fn touch(&mut self, world: &World, touched: &Touched, now: Timestamp) -> bool {
        let Some(key) = &touched.key else {
            // A change without a key means that a watch has listed the whole kind again.
            if self.concerns(touched.source) {
                self.rebuild(world, now);
            }
            return self.concerns(touched.source);
        };
        if !self.is_here(key) || !self.concerns(touched.source) {
            return false;
        }
        if self.changes_columns(world, touched.source, key) {
            self.rebuild(world, now);
            return true;
        }
        let mut changed = false;
        for key in self.affected(world, touched, key) {
            let facts = self.facts(world, &self.columns, &key, now);
            changed |= self.put(&key, facts);
        }
        changed
    }

    /// Updates the rows whose holds have expired by now; returns whether a row changed.
    pub fn tick(&mut self, world: &World, now: Timestamp) -> bool {
        let mut affected = BTreeSet::new();
        while let Some((at, slot)) = self.expiries.first().copied() {
            if at > now {
                break;
            }
            self.expiries.pop_first();
            if let Some(row) = self.row(slot) {
                affected.extend(self.kin(world, &row.key));
            }
        }
        let mut changed = false;
        for key in affected {
            let facts = self.facts(world, &self.columns, &key, now);
            changed |= self.put(&key, facts);
        }
        changed
    }

    /// Returns a row and the other rows of the same component. These rows change together, because the effective
    /// release of one environment decides how many releases another environment is behind.
    fn kin(&self, world: &World, key: &Key) -> BTreeSet<Key> {
        let source = match self.kind {
            Kind::Components | Kind::Pins => Source::RELEASE_PINS,
            Kind::Releases => Source::RELEASES,
            Kind::Snapshots => Source::SNAPSHOTS,
        };
        let touched = Touched {
            source,
            key: Some(key.clone()),
            component: match self.kind {
                Kind::Components => Some(key.name.clone()),
                _ => world.component_of(source, key).cloned(),
            },
        };
        self.affected(world, &touched, key)
    }

    /// Returns the time at which the next hold of a row ends; None if no hold ends.
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.expiries.first().map(|(at, _)| *at)
    }

    fn is_here(&self, key: &Key) -> bool {
        let namespace = self.namespace.as_ref();
        namespace.is_none_or(|namespace| *namespace == key.namespace)
    }

    fn concerns(&self, source: Source) -> bool {
        match (self.kind, source) {
            (Kind::Snapshots, Source::RELEASES | Source::RELEASE_PINS) => false,
            (Kind::Snapshots, _) => true,
            // A component that has snapshots but no ReleasePins has a row, too.
            (Kind::Components, _) => true,
            (Kind::Pins | Kind::Releases, source) => source != Source::SNAPSHOTS,
        }
    }

    /// Returns whether a changed object adds a column or changes the order of the columns.
    fn changes_columns(&self, world: &World, source: Source, key: &Key) -> bool {
        match source {
            Source::ENVIRONMENTS | Source::PIPELINES => self.columns_of(world) != self.columns,
            Source::RELEASE_PINS => {
                let environment = world.pin(key).map(|pin| &pin.environment);
                environment.is_some_and(|name| self.columns.position(name).is_none())
            }
            _ => world.workload_of(source, key).is_some_and(|row| {
                let column = workload::matrix::column(world, &row.key.namespace);
                self.columns.position(column).is_none()
            }),
        }
    }

    fn columns_of(&self, world: &World) -> Columns {
        match self.kind {
            Kind::Components => matrix::columns(world, self.namespace.as_deref()),
            _ => Columns::of(world, self.namespace.as_deref()),
        }
    }

    /// Returns the keys of the rows that depend on a changed object.
    fn affected(&self, world: &World, touched: &Touched, key: &Key) -> BTreeSet<Key> {
        let component = touched.component.as_ref().map(|name| Key {
            namespace: key.namespace.clone(),
            name: name.clone(),
        });
        let own = match (self.kind, touched.source) {
            (Kind::Components, _) => component.clone(),
            (Kind::Releases, Source::RELEASES)
            | (Kind::Pins, Source::RELEASE_PINS)
            | (Kind::Snapshots, Source::SNAPSHOTS) => Some(key.clone()),
            _ => None,
        };
        let mut affected: BTreeSet<Key> = own.into_iter().collect();
        // The ReleasePins of one component affect each other: each is behind by a number of releases that the others
        // decide. They also decide in which environments a release is effective.
        if let Some(component) = component {
            match self.kind {
                Kind::Pins => {
                    affected.extend(world.pins_of(&component).map(|pin| pin.key.clone()));
                }
                Kind::Releases => {
                    let releases = world.releases_of(&component);
                    affected.extend(releases.map(|release| release.key.clone()));
                }
                Kind::Components | Kind::Snapshots => {}
            }
        }
        affected
    }

    fn keys(&self, world: &World) -> Vec<Key> {
        let all: Vec<&Key> = match self.kind {
            Kind::Components => matrix::keys(world).collect(),
            Kind::Releases => world.all_releases().map(|row| &row.key).collect(),
            Kind::Pins => world.all_pins().map(|row| &row.key).collect(),
            Kind::Snapshots => world.all_snapshots().map(|row| &row.key).collect(),
        };
        let here = all.into_iter().filter(|key| self.is_here(key));
        let mut here: Vec<Key> = here.cloned().collect();
        // Sorted keys mostly belong to rows that are adjacent in memory, so the row set reads memory in order.
        here.sort_unstable();
        here
    }

    /// Returns the facts of the object in a row; None if the object does not exist.
    fn facts(&self, world: &World, columns: &Columns, key: &Key, now: Timestamp) -> Option<Facts> {
        let view = View {
            world,
            columns,
            user: &self.user,
            now,
        };
        match self.kind {
            Kind::Components => match world.workload(key) {
                Some(row) => Some(Facts::of_workload(&view, row)),
                None => world
                    .has_component(key)
                    .then(|| Facts::of_component(&view, key)),
            },
            Kind::Releases => Some(Facts::of_release(&view, world.release(key)?)),
            Kind::Pins => Some(Facts::of_pin(&view, world.pin(key)?)),
            Kind::Snapshots => Some(Facts::of_snapshot(&view, world.snapshot(key)?)),
        }
    }
}
