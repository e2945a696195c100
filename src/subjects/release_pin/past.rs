//! The matrix at a past time, computed from audit entries and from the outcomes in the status of ReleasePins.
//!
//! An AuditEntry has the effective release and the holds. An outcome says whether a release was healthy when another
//! release replaced it. Without a record, the health or the whole cell is unknown.

mod then;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use super::matrix::Columns;
use crate::api::bowline::audit::{Action, AuditEntry, COMPONENT, RELEASE_PIN};
use crate::api::hold::Hold;
use crate::api::labels;
use crate::api::openchoreo::pin;
use crate::engine::audit::chains;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::rows::{Move, Pin};

pub use then::{Recorded, Then};

/// The recorded changes of all ReleasePins, and the recorded marks on releases.
#[derive(Clone, Debug, Default)]
pub struct Past {
    changes: Vec<Change>,
    pins: BTreeMap<Key, BTreeMap<Arc<str>, History>>,
    /// For each release, the times of its marks, each with true for a bad mark and false for a good one.
    marks: HashMap<Key, Vec<(Timestamp, bool)>>,
}

/// A recorded change of a ReleasePin, or a recorded action on a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The time of the change. It is never earlier than that of the previous change in the same chain, because clocks
    /// may differ.
    pub at: Timestamp,
    pub component: Key,
    /// The environment of the ReleasePin; None for an action on a release.
    pub environment: Option<Arc<str>>,
    /// The action that made the change; None if only an outcome records the change.
    pub action: Option<Action>,
    /// The user who made the change, by the name that the server knows; None if it is not recorded.
    pub actor: Option<String>,
    pub from: Option<String>,
    /// The effective release after the change. For an action on a release, that release.
    pub to: Option<String>,
    pub reason: Option<String>,
    pub revision: i64,
}

impl Change {
    /// Returns whether the change made another release effective.
    pub fn moves(&self) -> bool {
        self.environment.is_some() && self.to.is_some() && self.from != self.to
    }
}

/// The recorded states of one ReleasePin.
#[derive(Clone, Debug, Default)]
struct History {
    /// The recorded states of the ReleasePin, sorted by time.
    states: Vec<State>,
}

/// The state of a ReleasePin from the time `at` until its next state.
#[derive(Clone, Debug)]
struct State {
    at: Timestamp,
    /// The uid of the ReleasePin in this state; None if it is not recorded.
    uid: Option<Box<str>>,
    revision: i64,
    /// The release that the releaseRef names in this state; None if it is not recorded.
    reference: Option<String>,
    holds: Vec<Hold>,
    /// The effective release before this state; None if it is not recorded. It is used only in the first state of a
    /// history.
    before: Option<String>,
    change: usize,
}

impl Past {
    /// Builds the past of all ReleasePins from audit entries and from the outcomes in the read model.
    pub fn of(entries: &[AuditEntry], world: &World) -> Self {
        let mut found: Vec<(Change, Option<State>)> = Vec::new();
        let mut recorded: BTreeSet<(Key, Option<&str>, i64)> = BTreeSet::new();
        for chain in chains(entries) {
            let mut latest = Timestamp::MIN;
            for entry in chain.all() {
                // A checkpoint records no change, because it only replaces older entries.
                if entry.spec.checkpoint.is_some() {
                    continue;
                }
                latest = latest.max(entry.spec.at.0);
                let Some(change) = change(entry, latest, world) else {
                    continue;
                };
                let state = (entry.spec.subject.kind == RELEASE_PIN).then(|| state(entry, &change));
                let pin = Key::new(&change.component.namespace, &entry.spec.subject.name);
                let uid = entry.spec.subject.uid.as_deref();
                recorded.insert((pin, uid, change.revision));
                found.push((change, state));
            }
        }
        let mut pins: Vec<&Pin> = world.all_pins().collect();
        pins.sort_by(|one, other| one.key.cmp(&other.key));
        for pin in pins {
            let mut before: Option<&Move> = None;
            for ran in &pin.moves {
                // A deleted ReleasePin with the same name had its own revision numbers, so the uids are compared.
                let mut uids = [None, Some(&*pin.uid)].into_iter();
                let is_recorded =
                    uids.any(|uid| recorded.contains(&(pin.key.clone(), uid, ran.generation)));
                if !is_recorded {
                    found.push(unrecorded(pin, before, ran));
                }
                before = Some(ran);
            }
        }
        // The sort is stable, so changes with the same time stay in the order of their chain.
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

    /// Returns all recorded changes, oldest first.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Returns the time of the first recorded change; None if nothing is recorded.
    pub fn begins(&self) -> Option<Timestamp> {
        self.changes.first().map(|change| change.at)
    }

    /// Returns the time of the last recorded change before `moment`; None if there is none.
    pub fn before(&self, moment: Timestamp) -> Option<Timestamp> {
        let after = self.changes.partition_point(|change| change.at < moment);
        let last = self.changes.get(after.checked_sub(1)?)?;
        Some(last.at)
    }

    /// Returns the time of the first recorded change after `moment`; None if there is none.
    pub fn after(&self, moment: Timestamp) -> Option<Timestamp> {
        let after = self.changes.partition_point(|change| change.at <= moment);
        self.changes.get(after).map(|change| change.at)
    }

    /// Returns the recorded changes at exactly the time `moment`.
    pub fn at(&self, moment: Timestamp) -> &[Change] {
        let from = self.changes.partition_point(|change| change.at < moment);
        let to = self.changes.partition_point(|change| change.at <= moment);
        self.changes.get(from..to).unwrap_or_default()
    }

    /// Returns the components whose ReleasePins have recorded changes.
    pub fn components(&self) -> impl Iterator<Item = &Key> {
        self.pins.keys()
    }

    /// Returns the environments of a namespace whose ReleasePins have recorded changes.
    pub fn environments<'p>(&'p self, namespace: &'p str) -> impl Iterator<Item = &'p str> {
        let here = self.pins.iter();
        let here = here.filter(move |(component, _)| &*component.namespace == namespace);
        here.flat_map(|(_, of_component)| of_component.keys().map(|name| &**name))
    }

    /// Returns the matrix at the past time `moment`.
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
    /// Returns the time of the last recorded change if the ReleasePin was deleted after it and before `moment`;
    /// otherwise None. The deletion itself is not recorded, so its exact time is unknown.
    fn deleted_after(&self, moment: Timestamp, pin: Option<&Pin>) -> Option<Timestamp> {
        let state = self.at(moment).filter(|state| state.at < moment)?;
        let next = self.states.get(self.until(moment).len());
        let is_kept = match (next, pin) {
            (Some(next), _) => state.is_like(next),
            (None, Some(pin)) => state.is_of(pin),
            (None, None) => false,
        };
        (!is_kept).then_some(state.at)
    }

    fn at(&self, moment: Timestamp) -> Option<&State> {
        self.until(moment).last()
    }

    /// Returns the states of the ReleasePin that started at `moment` or earlier, oldest first.
    fn until(&self, moment: Timestamp) -> &[State] {
        let after = self.states.partition_point(|state| state.at <= moment);
        self.states.get(..after).unwrap_or_default()
    }
}

impl State {
    /// Returns whether this state can belong to the existing ReleasePin `pin`, by uid.
    fn is_of(&self, pin: &Pin) -> bool {
        self.uid.as_deref().is_none_or(|uid| *uid == *pin.uid)
    }

    /// Returns whether two states can belong to the same ReleasePin, by uid.
    fn is_like(&self, other: &State) -> bool {
        self.uid.is_none() || other.uid.is_none() || self.uid == other.uid
    }

    /// Returns the effective release at `moment` if this state is current then; None if it is not recorded. `owned`
    /// says whether a GitOps tool owns the ReleasePin.
    fn release(&self, moment: Timestamp, owned: bool) -> Option<&str> {
        let active = self
            .holds
            .iter()
            .filter(|hold| hold.is_effective(moment, owned));
        pin::fixed(active).or(self.reference.as_deref())
    }
}

/// Converts an audit entry to a change. Returns None if the component or the environment of the entry is unknown.
fn change(entry: &AuditEntry, at: Timestamp, world: &World) -> Option<Change> {
    let spec = &entry.spec;
    let namespace = entry.namespace().unwrap_or_default();
    let pin = world.pin(&Key::new(&namespace, &spec.subject.name));
    let label = |name| entry.labels().get(name).map(String::as_str);
    let (component, environment) = match spec.subject.kind == COMPONENT {
        true => (spec.subject.name.as_str(), None),
        false => {
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
        uid: entry.spec.subject.uid.as_deref().map(Into::into),
        revision: change.revision,
        reference: entry.spec.release_ref.clone().or(change.to.clone()),
        holds: entry.spec.holds.clone(),
        before: change.from.clone(),
        change: 0,
    }
}

/// Converts an outcome to a change of its ReleasePin, for a change without an audit entry.
fn unrecorded(pin: &Pin, before: Option<&Move>, ran: &Move) -> (Change, Option<State>) {
    let from = before.map(|before| before.release.to_string());
    let to = Some(ran.release.to_string());
    let state = State {
        at: ran.since,
        uid: Some(pin.uid.clone()).filter(|uid| !uid.is_empty()),
        revision: ran.generation,
        reference: to.clone(),
        // The current holds that existed at the time of this outcome were active then.
        holds: match ran.until {
            None => pin
                .holds
                .iter()
                .filter(|hold| hold.since.0 <= ran.since)
                .cloned()
                .collect(),
            Some(_) => Vec::new(),
        },
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

#[cfg(test)]
pub(crate) mod tests;
