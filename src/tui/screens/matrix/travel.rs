//! The matrix as of a moment: what is on record is read once, and keys step from change to change.

use jiff::Timestamp;

use super::State;
use crate::engine::past::Past;
use crate::tui::effect::{Answer, Effect, Ticket};
use crate::tui::model::{Level, Turn};

/// The moment that is looked at.
pub(super) struct Travel {
    pub(super) past: Past,
    pub(super) at: Timestamp,
}

/// What is being read, and the moment that is wanted then; the last change where it is absent.
pub(super) type Reading = (Ticket, Option<Timestamp>);

impl State {
    /// Returns the moment that is looked at, where it is not the present.
    pub fn as_of(&self) -> Option<Timestamp> {
        self.travel.as_ref().map(|travel| travel.at)
    }

    /// Goes to a moment, or to the last change.
    pub fn travel(&mut self, to: Option<Timestamp>, turn: &mut Turn<'_>) {
        match (&mut self.travel, to) {
            (Some(travel), Some(to)) => travel.at = to.min(turn.now),
            (Some(_), None) => {}
            (None, to) => {
                let ticket = turn.ticket();
                self.reading = Some((ticket, to));
                turn.effects.push(Effect::Record(ticket));
                turn.say(Level::Info, "what is on record is being read");
            }
        }
    }

    /// Comes back to the present; tells whether we were elsewhere.
    pub(super) fn come_back(&mut self) -> bool {
        self.reading = None;
        self.travel.take().is_some()
    }

    /// Steps to the change before, or to the next; after the last comes the present.
    pub(super) fn step(&mut self, back: bool, turn: &mut Turn<'_>) {
        let Some(travel) = &mut self.travel else {
            return self.travel(None, turn);
        };
        let next = match back {
            true => travel.past.before(travel.at),
            false => travel.past.after(travel.at),
        };
        match (next, back) {
            (Some(at), _) => travel.at = at,
            (None, true) => turn.say(Level::Info, "nothing is on record before this"),
            (None, false) => {
                self.come_back();
                turn.say(Level::Info, "this is the present");
            }
        }
    }

    /// Takes what is on record, if it was asked for here.
    pub(super) fn recorded(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        let Some((_, to)) = self.reading.filter(|(asked, _)| *asked == ticket) else {
            return Some(answer);
        };
        self.reading = None;
        match answer {
            Answer::Record(Ok(record)) => {
                let past = Past::of(&record.entries, turn.world);
                match to.or_else(|| past.before(turn.now)) {
                    Some(at) => {
                        self.travel = Some(Travel {
                            past,
                            at: at.min(turn.now),
                        });
                    }
                    None => turn.say(Level::Warning, "nothing is on record yet"),
                }
                None
            }
            Answer::Record(Err(why)) => {
                turn.say(
                    Level::Error,
                    format!("what is on record cannot be read: {why}"),
                );
                None
            }
            other => Some(other),
        }
    }
}
