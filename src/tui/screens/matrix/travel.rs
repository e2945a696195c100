//! The matrix at a past time. bowline reads the audit trail once; then keys step from change to
//! change.
//!
//! The rows, totals and columns are those of the past time. New objects in the read model only add
//! information about that time.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::State;
use crate::action::{Action, Mode};
use crate::effect::{Answer, CellKey, Compared, Effect, Ticket};
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, World};
use crate::keymap::Keymap;
use crate::model::{Level, Turn};
use crate::screens::{Screen, diff, revisions};
use crate::subjects::release_pin::past::{Past, Recorded, Then};

/// The state of the matrix while it shows a past time.
pub(super) struct Travel {
    pub(super) past: Past,
    pub(super) at: Timestamp,
    /// The rows that were marked in the live matrix. They may not exist at the past time.
    marked: Vec<Key>,
    /// The row that was selected in the live matrix.
    selected: Option<Key>,
}

/// The ticket of the request for the audit trail, and the past time to show after its answer; None
/// for the time of the last change.
pub(super) type Reading = (Ticket, Option<Timestamp>);

impl State {
    /// Returns the displayed past time; None if the matrix is live.
    pub fn as_of(&self) -> Option<Timestamp> {
        self.travel.as_ref().map(|travel| travel.at)
    }

    /// Returns a text that says which data of the past view is loading; None if nothing is loading.
    pub fn loading(&self) -> Option<&'static str> {
        self.reading.map(|_| "loading the audit trail")
    }

    /// Returns the message that refuses an action at a past time; None if the matrix is live.
    /// `needs` completes the message: it says what the user can do in the present.
    pub fn refuses_in_past(&self, keymap: &Keymap, needs: &str) -> Option<String> {
        let modes = &[Mode::Matrix, Mode::List, Mode::Global];
        let keys = keymap.keys_or_word(modes, Action::Back);
        self.as_of()
            .map(|_| format!("this is the past: {keys} returns to the present, {needs}"))
    }

    /// Handles an action that opens something from the displayed past time: opens a screen for that
    /// time, or refuses the action. Returns false for other actions, and if the matrix is live.
    pub(super) fn act_in_past(&mut self, action: Action, turn: &mut Turn<'_>) -> bool {
        let needs = match action {
            action if action.plans() => "where you can plan",
            Action::GoReleases | Action::GoPins | Action::GoSnapshots | Action::GoCollect => {
                "where you can open the list"
            }
            Action::Diff | Action::Open | Action::GoComponent | Action::GoRevisions => "",
            _ => return false,
        };
        let Some(at) = self.as_of() else {
            return false;
        };
        let opened = match action {
            Action::Diff => self.compared_then(turn).map(|compared| {
                let state = diff::State::open(compared, turn).at_past(at);
                Screen::Diff(Box::new(state))
            }),
            Action::Open | Action::GoComponent | Action::GoRevisions => {
                self.revision_then(turn).map(|(place, revision)| {
                    let state = revisions::State::open(place, turn).at_past(at, revision);
                    Screen::Revisions(Box::new(state))
                })
            }
            _ => Err(self
                .refuses_in_past(&turn.look.keymap, needs)
                .unwrap_or_default()),
        };
        match opened {
            Ok(screen) => turn.open(screen),
            Err(why) => turn.say(Level::Warning, why),
        }
        true
    }

    /// Returns the matrix at the displayed past time, the cell and component under the cursor, and
    /// the time in words.
    fn then<'t>(&'t self, turn: &Turn<'t>) -> Result<(Then<'t>, CellKey, Key, String), String> {
        let found = self.travel.as_ref().zip(self.roster.as_ref());
        let ((travel, roster), place) = found
            .zip(self.place())
            .ok_or_else(|| "select a component first".to_owned())?;
        let then = travel.past.then(turn.world, roster.columns(), travel.at);
        let component = Key::new(&turn.target_info.namespace, &place.component);
        let moment = turn.target_info.clock(travel.at, turn.now);
        Ok((then, place, component, moment))
    }

    /// Returns the comparison of two releases that were effective at the displayed past time: the
    /// one under the cursor, and the one in the environment before.
    fn compared_then(&self, turn: &Turn<'_>) -> Result<Compared, String> {
        let (then, place, component, moment) = self.then(turn)?;
        let columns = self.roster.as_ref().map(|roster| roster.columns());
        let names = columns.map_or(&[][..], |columns| columns.names());
        let release = |column: usize| {
            let environment = names.get(column).map_or("", |name| &**name);
            let name = &place.component;
            match then.cell(&component, column) {
                Recorded::Ran(cell) => Ok(cell.release.to_owned()),
                Recorded::Nothing => Err(format!(
                    "{name} was not deployed in {environment} at {moment}"
                )),
                Recorded::NotYet | Recorded::Deleted(_) => Err(format!(
                    "the release of {name} in {environment} at {moment} is not recorded"
                )),
            }
        };
        let to = release(self.column)?;
        let before = columns.and_then(|columns| {
            let namespace = &turn.target_info.namespace;
            columns.before(namespace, self.column)
        });
        let before = before.ok_or_else(|| {
            format!(
                "no environment is before {}, so nothing can be compared at {moment}",
                place.environment
            )
        })?;
        let from = release(before)?;
        Ok(Compared::Releases { from, to })
    }

    /// Returns the cell under the cursor, and its revision at the displayed past time.
    fn revision_then(&self, turn: &Turn<'_>) -> Result<(CellKey, i64), String> {
        let (then, place, component, moment) = self.then(turn)?;
        let CellKey {
            component: name,
            environment,
        } = &place;
        match (
            then.revision(&component, self.column),
            then.cell(&component, self.column),
        ) {
            (Some(revision), Recorded::Ran(_)) => Ok((place, revision)),
            (_, Recorded::Nothing) => Err(format!(
                "{name} was not deployed in {environment} at {moment}"
            )),
            _ => Err(format!(
                "the revision of {name} in {environment} at {moment} is not recorded"
            )),
        }
    }

    /// Shows the matrix at a past time; at the time of the last change if `to` is None. First
    /// requests the audit trail if necessary.
    pub fn travel(&mut self, to: Option<Timestamp>, turn: &mut Turn<'_>) {
        match (&self.travel, &mut self.reading, to) {
            (Some(_), _, Some(to)) => self.show(to.min(turn.now), turn.world),
            (Some(_), _, None) => {}
            (None, Some((_, wanted)), to) => *wanted = to,
            (None, reading, to) => {
                let ticket = turn.ticket();
                *reading = Some((ticket, to));
                turn.effects.push(Effect::Record(ticket));
            }
        }
    }

    /// Shows the matrix at another past time.
    fn show(&mut self, at: Timestamp, world: &World) {
        let environment = self.environment();
        if let (Some(travel), Some(roster)) = (&mut self.travel, &mut self.roster) {
            travel.at = at;
            roster.rebuild_past(&travel.past, world, at);
        }
        self.keep_column(environment);
    }

    /// Returns to the live matrix, or cancels the request for the audit trail; returns false if
    /// there is neither.
    pub(super) fn come_back(&mut self, turn: &mut Turn<'_>) -> bool {
        if let Some((ticket, _)) = self.reading.take() {
            turn.effects.push(Effect::Cancel(ticket));
            return true;
        }
        let Some(travel) = self.travel.take() else {
            return false;
        };
        let environment = self.environment();
        if let Some(roster) = &mut self.roster {
            let shown = roster.selected().cloned();
            roster.rebuild(turn.world, turn.now);
            roster.mark_again(&travel.marked);
            let again = shown.iter().chain(&travel.selected);
            for key in again {
                if roster.select(key) {
                    break;
                }
            }
        }
        self.keep_column(environment);
        true
    }

    /// Goes to the previous or next change of the matrix; after the last change, to the live
    /// matrix.
    pub(super) fn step(&mut self, back: bool, turn: &mut Turn<'_>) {
        let Some(travel) = &self.travel else {
            return self.travel(None, turn);
        };
        let next = match back {
            true => travel.past.before(travel.at),
            false => travel.past.after(travel.at),
        };
        match (next, back) {
            (Some(at), _) => self.show(at, turn.world),
            (None, true) => turn.say(Level::Info, "no earlier changes are recorded"),
            (None, false) => {
                self.come_back(turn);
                turn.say(Level::Info, "this is the present");
            }
        }
    }

    /// Updates the rows with new information about the past time.
    pub(super) fn touched_past(&mut self, touched: &[Touched], world: &World) {
        let (Some(travel), Some(roster)) = (&self.travel, &mut self.roster) else {
            return;
        };
        let is_whole = |one: &Touched| one.key.is_none() || one.component.is_none();
        if touched.is_empty() || touched.iter().any(is_whole) {
            let at = travel.at;
            return self.show(at, world);
        }
        let components = touched.iter().filter_map(|one| {
            let namespace = one.key.as_ref()?.namespace.clone();
            let name = one.component.clone()?;
            Some(Key { namespace, name })
        });
        for component in components.collect::<BTreeSet<Key>>() {
            roster.touch_past(&travel.past, world, travel.at, &component);
        }
    }

    /// Handles the audit trail, if this matrix requested it; otherwise returns the answer.
    pub(super) fn recorded(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        let Some((_, to)) = self.reading.filter(|(asked, _)| *asked == ticket) else {
            return Some(answer);
        };
        let record = match answer {
            Answer::Record(record) => record,
            other => return Some(other),
        };
        self.reading = None;
        match record {
            Ok(record) => {
                let past = Past::of(&record.entries, turn.world);
                match to.or_else(|| past.before(turn.now)) {
                    Some(at) => {
                        let roster = self.roster.as_ref();
                        let marked = roster.map(|roster| roster.marked()).unwrap_or_default();
                        self.travel = Some(Travel {
                            past,
                            at,
                            marked: marked.into_iter().cloned().collect(),
                            selected: roster.and_then(|roster| roster.selected().cloned()),
                        });
                        self.show(at.min(turn.now), turn.world);
                    }
                    None => turn.say(Level::Warning, "no changes are recorded yet"),
                }
            }
            Err(why) => {
                turn.say(Level::Error, format!("cannot read the audit trail: {why}"));
            }
        }
        None
    }
}
