//! What is under way beside the screens, and what was done as commands.

use jiff::Timestamp;

use super::effect::Ticket;
use super::order::{Order, Prepared};
use crate::engine::rollout::Rollout;
use crate::engine::world::{Key, World};

/// Something that was confirmed and goes on by itself.
#[derive(Clone, Debug)]
pub struct Task {
    /// What asked for it.
    pub ticket: Ticket,
    /// What was ordered.
    pub order: Order,
    /// Its plan.
    pub prepared: Box<Prepared>,
    /// Why it was ordered.
    pub reason: Option<String>,
    /// Since when.
    pub since: Timestamp,
    /// How far it is.
    pub state: State,
}

/// How far a task is.
#[derive(Clone, Debug)]
pub enum State {
    /// It is being written.
    Applying,
    /// It was written; these revisions of pins roll out.
    Rolling(Vec<(Key, i64)>),
    /// It was done, and this became of it.
    Done(String),
    /// It failed, for this reason.
    Failed(String),
}

/// Says who changed a pin after a revision of it, if anybody did: an undo would reverse that instead.
pub fn overtaken(world: &World, pin: &Key, revision: i64) -> Option<String> {
    let pin = world.pin(pin).filter(|pin| pin.generation > revision)?;
    let by = pin.changed_by.as_deref().unwrap_or("somebody");
    Some(format!(
        "{by} changed {} in {} after this: only the last change is undone, from the matrix",
        pin.component, pin.environment
    ))
}

/// A line of the command log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When.
    pub at: Timestamp,
    /// The command line, of bowline where it has one, that does the same.
    pub bowline: String,
    /// The command lines of kubectl that come closest; of git, where the target is a repository.
    pub kubectl: Vec<String>,
    /// What became of it.
    pub outcome: String,
}

impl Task {
    /// Says how far it is, by what the watches tell.
    pub fn progress(&self, world: &World) -> (Progress, String) {
        match &self.state {
            State::Applying => (Progress::Moving, "is being written".to_owned()),
            State::Done(words) => (Progress::Done, words.clone()),
            State::Failed(why) => (Progress::Failed, why.clone()),
            State::Rolling(pins) => {
                let states: Vec<Rollout> = pins
                    .iter()
                    .map(|(pin, revision)| Rollout::of(world.pin(pin), *revision))
                    .collect();
                let ready = states.iter().filter(|state| state.is_ready()).count();
                if ready == states.len() {
                    return (Progress::Done, "ready".to_owned());
                }
                let failing = states
                    .iter()
                    .find(|state| matches!(state, Rollout::Failing(_)));
                let unready = states.iter().find(|state| !state.is_ready());
                let said = failing.or(unready).map_or("", Rollout::words);
                let words = match states.len() {
                    1 => said.to_owned(),
                    all => format!("{ready} of {all} ready; {said}"),
                };
                match failing {
                    Some(_) => (Progress::Failed, words),
                    None => (Progress::Moving, words),
                }
            }
        }
    }

    /// Tells whether it still goes on.
    pub fn goes_on(&self, world: &World) -> bool {
        self.progress(world).0 == Progress::Moving
    }
}

/// Whether a task moves, is done or has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It moves.
    Moving,
    /// It is done.
    Done,
    /// It has failed.
    Failed,
}
