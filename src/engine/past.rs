//! The matrix as of a moment: what ran where, by the record of who moved what, and by what became of it.
//!
//! AuditEntries say which release counted and who held it; the outcomes on the pins say whether it was
//! healthy when it was replaced. What neither says is not made up: a cell is then unknown, and a moment
//! before the record begins says that it is.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use super::audit::chains;
use super::matrix::{Cell, Columns, Good, Health, Named};
use super::world::{Key, Move, Pin, World};
use crate::api::audit::{Action, AuditEntry, SubjectKind};
use crate::api::labels;
use crate::api::pin::{self, Hold};

/// What was recorded of a set of pins and releases.
#[derive(Clone, Debug, Default)]
pub struct Past {
    changes: Vec<Change>,
    pins: BTreeMap<Key, BTreeMap<Arc<str>, History>>,
    /// When releases were marked bad, or good again.
    marks: HashMap<Key, Vec<(Timestamp, bool)>>,
}

/// Something that was done.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When; never before what it follows, whatever its clock said.
    pub at: Timestamp,
    /// The component.
    pub component: Key,
    /// Where; nowhere for what was done to a release.
    pub environment: Option<Arc<str>>,
    /// What was done; nothing where only the outcome of a move is known.
    pub action: Option<Action>,
    /// Who did it, by the server's word.
    pub actor: Option<String>,
    /// The release that counted before.
    pub from: Option<String>,
    /// The release that counts after, or that was marked.
    pub to: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// The revision.
    pub revision: i64,
}

impl Change {
    /// Tells whether another release counts after it.
    pub fn moves(&self) -> bool {
        self.environment.is_some() && self.to.is_some() && self.from != self.to
    }
}

/// What is known of one pin.
#[derive(Clone, Debug, Default)]
struct History {
    /// By time.
    states: Vec<State>,
}

/// What a pin was from a moment on.
#[derive(Clone, Debug)]
struct State {
    at: Timestamp,
    revision: i64,
    /// What its releaseRef named; nothing where that is not known.
    reference: Option<String>,
    holds: Vec<Hold>,
    /// What ran before, for the first one.
    before: Option<String>,
    change: usize,
}

impl Past {
    /// Puts together what entries and pins tell.
    pub fn of(entries: &[AuditEntry], world: &World) -> Self {
        let mut found: Vec<(Change, Option<State>)> = Vec::new();
        let mut recorded: BTreeSet<(Key, i64)> = BTreeSet::new();
        for chain in chains(entries) {
            let mut latest = Timestamp::MIN;
            for entry in chain.all() {
                // A checkpoint is written long after what it stands for.
                if entry.spec.checkpoint.is_some() {
                    continue;
                }
                latest = latest.max(entry.spec.at.0);
                let Some(change) = change(entry, latest, world) else {
                    continue;
                };
                let state = (entry.spec.subject.kind == SubjectKind::ReleasePin)
                    .then(|| state(entry, &change));
                let pin = Key::new(&change.component.namespace, &entry.spec.subject.name);
                recorded.insert((pin, change.revision));
                found.push((change, state));
            }
        }
        for pin in world.all_pins() {
            let mut before: Option<&Move> = None;
            for ran in &pin.moves {
                if !recorded.contains(&(pin.key.clone(), ran.generation)) {
                    found.push(unrecorded(pin, before, ran));
                }
                before = Some(ran);
            }
        }
        // What happened at one moment stays in the order of its chain.
        found.sort_by_key(|(change, _)| change.at);
        let mut past = Self::default();
        for (change, state) in found {
            past.take(change, state);
        }
        past
    }

    fn take(&mut self, change: Change, state: Option<State>) {
        let number = self.changes.len();
        if let (Some(environment), Some(state)) = (&change.environment, state) {
            let of_component = self.pins.entry(change.component.clone()).or_default();
            let history = of_component.entry(environment.clone()).or_default();
            let change = number;
            history.states.push(State { change, ..state });
        }
        let mark = match change.action {
            Some(Action::MarkBad) => Some(true),
            Some(Action::MarkGood) => Some(false),
            _ => None,
        };
        if let (Some(bad), Some(release)) = (mark, &change.to) {
            let release = Key::new(&change.component.namespace, release);
            self.marks
                .entry(release)
                .or_default()
                .push((change.at, bad));
        }
        self.changes.push(change);
    }

    /// Returns everything that was recorded, oldest first.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns when the record begins.
    pub fn begins(&self) -> Option<Timestamp> {
        self.changes.first().map(|change| change.at)
    }

    /// Returns the last moment before another at which something changed.
    pub fn before(&self, moment: Timestamp) -> Option<Timestamp> {
        let after = self.changes.partition_point(|change| change.at < moment);
        let last = self.changes.get(after.checked_sub(1)?)?;
        Some(last.at)
    }

    /// Returns the next moment after another at which something changed.
    pub fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        let after = self.changes.partition_point(|change| change.at <= moment);
        self.changes.get(after).map(|change| change.at)
    }

    /// Returns what changed at exactly a moment.
    pub fn at(&self, moment: Timestamp) -> &[Change] {
        let from = self.changes.partition_point(|change| change.at < moment);
        let to = self.changes.partition_point(|change| change.at <= moment);
        self.changes.get(from..to).unwrap_or_default()
    }

    /// Returns the components of which something is recorded.
    pub fn components(&self) -> impl Iterator<Item = &Key> {
        self.pins.keys()
    }

    /// Returns what brought a pin to where it is at a moment.
    pub fn cause(&self, component: &Key, environment: &str, moment: Timestamp) -> Option<&Change> {
        let history = self.pins.get(component)?.get(environment)?;
        let state = history.at(moment)?;
        self.changes.get(state.change)
    }

    /// Returns the last change of a pin to another release until a moment: since when, by whom and why what
    /// runs there runs.
    pub fn moved(&self, component: &Key, environment: &str, moment: Timestamp) -> Option<&Change> {
        let history = self.pins.get(component)?.get(environment)?;
        let until = history.states.partition_point(|state| state.at <= moment);
        let states = history.states.get(..until)?.iter().rev();
        let mut changes = states.filter_map(|state| self.changes.get(state.change));
        changes.find(|change| change.moves())
    }

    /// Looks at the matrix as of a moment.
    pub fn then<'p>(
        &'p self,
        world: &'p World,
        columns: &'p Columns,
        moment: Timestamp,
    ) -> Then<'p> {
        Then {
            past: self,
            world,
            columns,
            moment,
        }
    }
}

impl History {
    fn at(&self, moment: Timestamp) -> Option<&State> {
        let after = self.states.partition_point(|state| state.at <= moment);
        self.states.get(after.checked_sub(1)?)
    }
}

impl State {
    /// Returns the release that counted at a moment, while this was so.
    fn release(&self, moment: Timestamp, owned: bool) -> Option<&str> {
        let active = self.holds.iter().filter(|hold| hold.counts(moment, owned));
        pin::fixed(active).or(self.reference.as_deref())
    }
}

/// Reads a change off an entry; whose pin cannot be told is left out.
fn change(entry: &AuditEntry, at: Timestamp, world: &World) -> Option<Change> {
    let spec = &entry.spec;
    let namespace = entry.namespace().unwrap_or_default();
    let pin = world.pin(&Key::new(&namespace, &spec.subject.name));
    let label = |name| entry.labels().get(name).map(String::as_str);
    let (component, environment) = match spec.subject.kind {
        SubjectKind::Component => (spec.subject.name.as_str(), None),
        SubjectKind::ReleasePin => {
            let component = label(labels::COMPONENT).or(pin.map(|pin| &*pin.component));
            let environment = label(labels::ENVIRONMENT).or(pin.map(|pin| &*pin.environment));
            (component?, Some(environment?))
        }
    };
    Some(Change {
        at,
        component: Key::new(&namespace, component),
        environment: environment.map(Into::into),
        action: Some(spec.action),
        actor: spec.actor.clone(),
        from: spec.from.as_ref().map(|release| release.name.clone()),
        to: spec.to.as_ref().map(|release| release.name.clone()),
        reason: spec.reason.clone(),
        revision: spec.revision,
    })
}

fn state(entry: &AuditEntry, change: &Change) -> State {
    State {
        at: change.at,
        revision: change.revision,
        reference: entry.spec.release_ref.clone().or(change.to.clone()),
        holds: entry.spec.holds.clone(),
        before: change.from.clone(),
        change: 0,
    }
}

/// Makes a change of a move of which only the outcome is known.
fn unrecorded(pin: &Pin, before: Option<&Move>, ran: &Move) -> (Change, Option<State>) {
    let from = before.map(|before| before.release.to_string());
    let to = Some(ran.release.to_string());
    let state = State {
        at: ran.since,
        revision: ran.generation,
        reference: to.clone(),
        holds: Vec::new(),
        before: from.clone(),
        change: 0,
    };
    let change = Change {
        at: ran.since,
        component: Key {
            namespace: pin.key.namespace.clone(),
            name: pin.component.clone(),
        },
        environment: Some(pin.environment.clone()),
        action: None,
        actor: None,
        from,
        to,
        reason: None,
        revision: ran.generation,
    };
    (change, Some(state))
}

/// The matrix as of a moment.
#[derive(Clone, Copy)]
pub struct Then<'p> {
    past: &'p Past,
    world: &'p World,
    columns: &'p Columns,
    moment: Timestamp,
}

/// What is on record of one place at a moment.
// A few are made for each frame, and none is kept.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recorded<'p> {
    /// This ran.
    Ran(Cell<'p>),
    /// Nothing was deployed.
    Nothing,
    /// The record begins later.
    NotYet,
}

impl<'p> Recorded<'p> {
    /// Returns what ran.
    pub fn cell(self) -> Option<Cell<'p>> {
        match self {
            Self::Ran(cell) => Some(cell),
            Self::Nothing | Self::NotYet => None,
        }
    }
}

impl<'p> Then<'p> {
    /// Returns the moment.
    pub fn moment(&self) -> Timestamp {
        self.moment
    }

    /// Tells whether the record begins later, so that nothing can be said.
    pub fn is_before_the_record(&self) -> bool {
        self.past.begins().is_none_or(|begins| self.moment < begins)
    }

    /// Says what ran in one place.
    pub fn cell(&self, component: &Key, column: usize) -> Recorded<'p> {
        let environment = self.columns.names().get(column);
        let history = environment.and_then(|name| self.history(component, name));
        let Some((history, environment)) = history.zip(environment) else {
            return Recorded::Nothing;
        };
        let pin = self.world.pin_of(component, environment);
        let owned = pin.is_some_and(|pin| pin.gitops.is_some());
        let Some(state) = history.at(self.moment) else {
            return self.before_the_first(component, history);
        };
        let Some(release) = state.release(self.moment, owned) else {
            return Recorded::NotYet;
        };
        let before = self.columns.before(&component.namespace, column);
        let ahead = before.and_then(|before| {
            let environment = self.columns.names().get(before)?;
            let ahead = self.world.pin_of(component, environment);
            let owned = ahead.is_some_and(|ahead| ahead.gitops.is_some());
            let state = self.history(component, environment)?.at(self.moment)?;
            state.release(self.moment, owned)
        });
        let mut cell = self.known(component, release);
        cell.told = pin.map_or(Health::Unknown, |pin| self.health(pin, state, release));
        cell.behind =
            ahead.and_then(|ahead| self.world.releases_between(component, release, ahead));
        cell.holds = &state.holds;
        let active = state.holds.iter();
        cell.held = active
            .filter(|hold| hold.counts(self.moment, owned))
            .count();
        cell.since = self.since(history, release, owned);
        cell.gitops = pin.and_then(|pin| pin.gitops);
        cell.wanted = state
            .reference
            .as_deref()
            .filter(|wanted| *wanted != release);
        cell.good = pin.and_then(|pin| self.good(component, pin, release));
        Recorded::Ran(cell)
    }

    /// Returns the row of a component: one cell per column.
    pub fn row(&self, component: &Key) -> Vec<Recorded<'p>> {
        let columns = 0..self.columns.names().len();
        columns.map(|column| self.cell(component, column)).collect()
    }

    /// The first that is recorded says what was before it, though not since when.
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

    /// Says what is known of a release, whatever it did.
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
            // That it is gone by now does not mean that it was not there.
            missing: false,
            bad: mark.is_some_and(|(_, bad)| *bad),
            progress: None,
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

    /// Says how a pin was doing: what is said of it now where it has not turned since, and what was said when
    /// the release was replaced.
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

    fn since(&self, history: &History, release: &str, owned: bool) -> Option<Timestamp> {
        let until = history
            .states
            .partition_point(|state| state.at <= self.moment);
        let states = history.states.get(..until)?.iter().rev();
        let run = states.take_while(|state| state.release(state.at, owned) == Some(release));
        run.last().map(|state| state.at)
    }

    /// Says what a rollback would have restored.
    fn good(&self, component: &Key, pin: &'p Pin, release: &str) -> Option<Good<'p>> {
        let ran = pin.moves.iter().rfind(|ran| {
            *ran.release != *release
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

#[cfg(test)]
pub(crate) mod tests;
