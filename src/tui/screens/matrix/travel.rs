//! The matrix as of a past moment: the record is read once, and keys step from change to change.
//!
//! The rows, totals and columns belong to the moment. A change of the read model only adds what became
//! known of that moment.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::State;
use crate::engine::past::Past;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, World};
use crate::tui::effect::{Answer, Effect, Ticket};
use crate::tui::model::{Level, Turn};

/// The moment that is shown.
pub(super) struct Travel {
    pub(super) past: Past,
    pub(super) at: Timestamp,
    /// The rows that were marked in the present: some may not be there at the moment.
    marked: Vec<Key>,
    /// The row that was selected in the present.
    selected: Option<Key>,
}

/// The request for the record, and the moment that is shown then; the last change if there is none.
pub(super) type Reading = (Ticket, Option<Timestamp>);

impl State {
    /// Returns the moment that is shown, unless it is the present.
    pub fn as_of(&self) -> Option<Timestamp> {
        self.travel.as_ref().map(|travel| travel.at)
    }

    /// Names the data that is still loading, without which a past moment cannot be shown.
    pub fn loading(&self) -> Option<&'static str> {
        self.reading.map(|_| "loading the audit trail")
    }

    /// Goes to a moment, or to the last change.
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

    /// Shows another moment of the record.
    fn show(&mut self, at: Timestamp, world: &World) {
        let environment = self.environment();
        if let (Some(travel), Some(roster)) = (&mut self.travel, &mut self.roster) {
            travel.at = at;
            roster.rebuild_past(&travel.past, world, at);
        }
        self.keep_column(environment);
    }

    /// Comes back to the present, or stops reading the record; tells whether there was either.
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

    /// Steps to the change before, or to the next; after the last comes the present.
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

    /// Takes in what became known of the moment: whole rows anew where a list came.
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

    /// Takes the record, if it answers the request of this screen.
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
