//! Builds the cells of the matrix at a past time.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Change, History, Past, State};
use crate::api::hold::Hold;
use crate::engine::world::{Key, Source, World};
use crate::subjects::release_pin::actions::rollback;
use crate::subjects::release_pin::matrix::{Cell, Columns, Good, Health, Named};
use crate::subjects::release_pin::revisions::{Span, origin};
use crate::subjects::release_pin::rows::Pin;

#[derive(Clone, Copy)]
pub struct Then<'p> {
    pub(super) past: &'p Past,
    pub(super) world: &'p World,
    pub(super) columns: &'p Columns,
    pub(super) moment: Timestamp,
}

/// A cell of the matrix at a past time, if it is recorded.
// Only the cells on the screen exist at the same time, so large variants need little memory.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recorded<'p> {
    /// A release was effective at this time. Contains the cell.
    Ran(Cell<'p>),
    /// The ReleasePin was deleted at an unknown time after its last recorded change. Contains the time of that
    /// change.
    Deleted(Timestamp),
    /// The component was not deployed in the environment.
    Nothing,
    /// This time is before the first record, so the cell is unknown.
    NotYet,
}

impl<'p> Recorded<'p> {
    /// Returns the cell if a release is recorded for this time; otherwise None.
    pub fn cell(self) -> Option<Cell<'p>> {
        match self {
            Self::Ran(cell) => Some(cell),
            Self::Deleted(_) | Self::Nothing | Self::NotYet => None,
        }
    }
}

impl<'p> Then<'p> {
    /// Returns the past time that the matrix shows.
    pub fn moment(&self) -> Timestamp {
        self.moment
    }

    /// Returns whether the time of the matrix is before the first record, so that all cells are unknown.
    pub fn is_before_the_record(&self) -> bool {
        self.past.begins().is_none_or(|begins| self.moment < begins)
    }

    /// Returns the cell of a component in a column.
    pub fn cell(&self, component: &Key, column: usize) -> Recorded<'p> {
        let environment = self.columns.names().get(column);
        let history = environment.and_then(|name| self.history(component, name));
        let pin = environment.and_then(|name| self.world.pin_of(component, name));
        let Some(history) = history else {
            // There are no records. But the ReleasePin exists now, so it may have existed at that time too.
            return match pin {
                Some(_) => Recorded::NotYet,
                None => Recorded::Nothing,
            };
        };
        let Some(state) = history.at(self.moment) else {
            return self.before_the_first(component, history);
        };
        if let Some(last) = self.deleted_after(history, pin) {
            return Recorded::Deleted(last);
        }
        let pin = pin.filter(|pin| state.is_of(pin));
        let owned = pin.is_some_and(|pin| pin.gitops.is_some());
        let Some(release) = state.release(self.moment, owned) else {
            return Recorded::NotYet;
        };
        let before = self.columns.before(&component.namespace, column);
        let ahead = before.and_then(|before| {
            let environment = self.columns.names().get(before)?;
            let ahead = self.world.pin_of(component, environment);
            let history = self.history(component, environment)?;
            if self.deleted_after(history, ahead).is_some() {
                return None;
            }
            let owned = ahead.is_some_and(|ahead| ahead.gitops.is_some());
            history.at(self.moment)?.release(self.moment, owned)
        });
        let mut cell = self.known(component, release);
        cell.told = pin.map_or(Health::Unknown, |pin| self.health(pin, state, release));
        cell.behind =
            ahead.and_then(|ahead| self.world.releases_between(component, release, ahead));
        cell.holds = &state.holds;
        let active = state.holds.iter();
        cell.held = active
            .filter(|hold| hold.is_effective(self.moment, owned))
            .count();
        cell.since = self.origin(history, release, owned).map(|(state, ended)| {
            let end = ended.map(|(_, end)| end);
            end.unwrap_or(state.at)
        });
        cell.gitops = pin.and_then(|pin| pin.gitops);
        cell.wanted = state
            .reference
            .as_deref()
            .filter(|wanted| *wanted != release);
        cell.good = pin.and_then(|pin| self.good(component, pin, release));
        Recorded::Ran(cell)
    }

    /// Returns the change that made the release of a cell effective; None if that change is not recorded.
    pub fn made(&self, component: &Key, column: usize) -> Option<&'p Change> {
        let environment = self.columns.names().get(column)?;
        let history = self.history(component, environment)?;
        let pin = self.world.pin_of(component, environment);
        let owned = pin.is_some_and(|pin| pin.gitops.is_some());
        if self.deleted_after(history, pin).is_some() {
            return None;
        }
        let release = history.at(self.moment)?.release(self.moment, owned)?;
        let (state, _) = self.origin(history, release, owned)?;
        let change = self.past.changes.get(state.change)?;
        (change.from != change.to).then_some(change)
    }

    /// Returns the revision of a ReleasePin at that time. None if it is not recorded, or if the ReleasePin was
    /// deleted later.
    pub fn revision(&self, component: &Key, column: usize) -> Option<i64> {
        let environment = self.columns.names().get(column)?;
        let history = self.history(component, environment)?;
        let pin = self.world.pin_of(component, environment)?;
        if self.deleted_after(history, Some(pin)).is_some() {
            return None;
        }
        let state = history.at(self.moment)?;
        state.is_of(pin).then_some(state.revision)
    }

    /// Returns whether a component had a release or a ReleasePin at that time, according to the records.
    pub fn has_component(&self, component: &Key) -> bool {
        let mut releases = self.world.releases_of(component);
        releases.any(|release| release.created <= self.moment)
            || self
                .row(component)
                .iter()
                .any(|cell| *cell != Recorded::Nothing)
    }

    /// Returns the components that a namespace had at that time, sorted by name; the components of all namespaces if
    /// `namespace` is None.
    pub fn components(&self, namespace: Option<&str>) -> Vec<Key> {
        let known = self.past.components().chain(self.world.components());
        let here = known.filter(|key| namespace.is_none_or(|wanted| *key.namespace == *wanted));
        let all: BTreeSet<&Key> = here.collect();
        let there = all.into_iter().filter(|key| self.has_component(key));
        there.cloned().collect()
    }

    /// Returns the past cells of a component, one per column.
    pub fn row(&self, component: &Key) -> Vec<Recorded<'p>> {
        let columns = 0..self.columns.names().len();
        columns.map(|column| self.cell(component, column)).collect()
    }

    /// Returns a past cell at a time before the first recorded change. That change only records which release it
    /// replaced, so the start of that release is unknown.
    fn before_the_first(&self, component: &Key, history: &'p History) -> Recorded<'p> {
        match history.states.first() {
            Some(State {
                before: Some(release),
                ..
            }) => Recorded::Ran(self.known(component, release)),
            Some(first) if first.revision <= 1 => Recorded::Nothing,
            _ => Recorded::NotYet,
        }
    }

    fn history(&self, component: &Key, environment: &str) -> Option<&'p History> {
        self.past.pins.get(component)?.get(environment)
    }

    /// Returns a cell with the name, version and mark of a release, but without health and holds.
    fn known(&self, component: &Key, release: &'p str) -> Cell<'p> {
        let named = Named::of(self.world, component, release);
        let key = Key::new(&component.namespace, release);
        let marks = self.past.marks.get(&key);
        let mark = marks.and_then(|marks| marks.iter().rfind(|(at, _)| *at <= self.moment));
        Cell {
            release,
            version: named.version.unwrap_or(release),
            label: named.label,
            told: Health::Unknown,
            // The release may have existed at that time, even if it does not exist now.
            missing: false,
            bad: mark.is_some_and(|(_, bad)| *bad),
            progress: None,
            // The status contains only the newest reason and message, which may be from a later time.
            reason: None,
            behind: None,
            holds: &[],
            held: 0,
            since: None,
            turned: None,
            gitops: None,
            wanted: None,
            good: None,
        }
    }

    /// Returns the health of a release at that time. It comes from the Ready condition if that has not changed since;
    /// otherwise from the outcome.
    fn health(&self, pin: &Pin, state: &State, release: &str) -> Health {
        let ran = pin.moves.iter().rfind(|ran| {
            ran.generation >= state.revision && ran.since <= self.moment && *ran.release == *release
        });
        let Some(ran) = ran else {
            return Health::Unknown;
        };
        match (ran.until, ran.healthy) {
            (None, _) => match &pin.ready {
                Some(ready) if ready.since <= self.moment => Health::told(pin, self.moment),
                _ => Health::Unknown,
            },
            (Some(_), Some(true)) => Health::Ready,
            (Some(_), Some(false)) => Health::Degraded,
            (Some(_), None) => Health::Unknown,
        }
    }

    /// Returns the state that made a release effective; None if it is not recorded. If the end of a hold made the
    /// release effective, also returns that hold and the time of its end.
    fn origin(
        &self,
        history: &'p History,
        release: &str,
        owned: bool,
    ) -> Option<(&'p State, Option<(&'p Hold, Timestamp)>)> {
        let states = history.until(self.moment);
        // If the ReleasePin was deleted and created again, the states of the older ReleasePin are left out.
        let last = states.last()?;
        let own = states.iter().rev().take_while(|state| state.is_like(last));
        let states = states.get(states.len() - own.count()..)?;
        let spans: Vec<Span<'p>> = states.iter().map(Span::from).collect();
        let found = origin(&spans, release, self.moment, owned)?;
        Some((states.get(found.span)?, found.ended))
    }

    /// Returns the time of the last recorded change of a ReleasePin that may have been deleted since; None if it was
    /// not deleted.
    fn deleted_after(&self, history: &History, pin: Option<&Pin>) -> Option<Timestamp> {
        // Until the first list of ReleasePins is complete, a missing ReleasePin does not count as deleted.
        let is_listed = self.world.are_known(&[Source::RELEASE_PINS]);
        let deleted = || history.deleted_after(self.moment, pin);
        (pin.is_some() || is_listed).then(deleted).flatten()
    }

    /// Returns the release that was the last good one at that time; None if there was none.
    fn good(&self, component: &Key, pin: &'p Pin, release: &'p str) -> Option<Good<'p>> {
        let left = rollback::went_back(pin, release, self.moment);
        let ran = pin.moves.iter().rfind(|ran| {
            *ran.release != *release
                && !left.contains_key(&*ran.release)
                && ran.until.is_some_and(|until| until <= self.moment)
                && ran.healthy == Some(true)
                && !self.known(component, &ran.release).bad
        })?;
        Some(Good {
            release: &ran.release,
            label: Named::of(self.world, component, &ran.release).label,
            revision: ran.generation,
            since: ran.since,
            until: ran.until,
        })
    }
}

impl<'s> From<&'s State> for Span<'s> {
    fn from(state: &'s State) -> Self {
        Self {
            at: Some(state.at),
            recorded: None,
            reference: state.reference.as_deref(),
            holds: &state.holds,
        }
    }
}
