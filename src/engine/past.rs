//! The matrix as of a moment: what ran where, by the record of who moved what, and by what became of it.
//!
//! AuditEntries say which release counted and who held it; the outcomes on the pins say whether it was
//! healthy when it was replaced. What neither says is not made up: a cell is then unknown, and a moment
//! before the record begins says that it is.

mod then;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use super::audit::chains;
use super::matrix::Columns;
use super::world::{Key, Move, Pin, World};
use crate::api::audit::{Action, AuditEntry, SubjectKind};
use crate::api::labels;
use crate::api::pin::{self, Hold};

pub use then::{Recorded, Then};

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
    /// The uid of the ReleasePin; None if the record does not say it.
    uid: Option<Box<str>>,
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
        let mut recorded: BTreeSet<(Key, Option<&str>, i64)> = BTreeSet::new();
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
                // A ReleasePin of the same name that was deleted had revisions of its own.
                let mut uids = [None, Some(&*pin.uid)].into_iter();
                let is_recorded =
                    uids.any(|uid| recorded.contains(&(pin.key.clone(), uid, ran.generation)));
                if !is_recorded {
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

    /// Returns the environments of a namespace of which something is recorded.
    pub fn environments<'p>(&'p self, namespace: &'p str) -> impl Iterator<Item = &'p str> {
        let here = self.pins.iter();
        let here = here.filter(move |(component, _)| &*component.namespace == namespace);
        here.flat_map(|(_, of_component)| of_component.keys().map(|name| &**name))
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
    /// Returns the time of the last recorded change of the ReleasePin that existed before a moment, if the
    /// ReleasePin was deleted after that change and before the next one. Nobody records a deletion itself.
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

    /// Returns the states until a moment, oldest first.
    fn until(&self, moment: Timestamp) -> &[State] {
        let after = self.states.partition_point(|state| state.at <= moment);
        self.states.get(..after).unwrap_or_default()
    }
}

impl State {
    /// Tells whether this is a state of the ReleasePin that exists now, as far as the record says.
    fn is_of(&self, pin: &Pin) -> bool {
        self.uid.as_deref().is_none_or(|uid| *uid == *pin.uid)
    }

    /// Tells whether two states are of one ReleasePin, as far as the record says.
    fn is_like(&self, other: &State) -> bool {
        self.uid.is_none() || other.uid.is_none() || self.uid == other.uid
    }

    /// Returns the release that was effective at a moment, while this was so.
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
        uid: entry.spec.subject.uid.as_deref().map(Into::into),
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
        uid: Some(pin.uid.clone()).filter(|uid| !uid.is_empty()),
        revision: ran.generation,
        reference: to.clone(),
        // A hold that is still there, and began before, was there.
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
