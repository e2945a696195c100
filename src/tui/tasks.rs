//! What is under way beside the screens, and what was done as commands.

use jiff::Timestamp;

use super::effect::Ticket;
use super::model::Ground;
use super::order::{Order, Prepared, quoted};
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
    Rolling(Vec<Rolling>),
    /// It was done, and this became of it.
    Done(String),
    /// It failed, for this reason.
    Failed(String),
}

/// One revision of a pin that a task made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rolling {
    /// The pin.
    pub pin: Key,
    /// The revision.
    pub revision: i64,
    /// The release that the revision made effective.
    pub release: String,
    /// The outcome, once nothing changes it any more.
    pub ended: Option<Rollout>,
}

impl Rolling {
    /// Begins to follow a revision.
    pub fn new(pin: &Key, revision: i64, release: &str) -> Self {
        Self {
            pin: pin.clone(),
            revision,
            release: release.to_owned(),
            ended: None,
        }
    }

    /// Returns how far the revision is.
    pub fn rollout(&self, world: &World) -> Rollout {
        let now = || Rollout::of(world.pin(&self.pin), self.revision, &self.release);
        self.ended.clone().unwrap_or_else(now)
    }
}

/// Keeps the outcomes of revisions that nothing changes any more: the read model forgets them.
pub fn follow(tasks: &mut [Task], world: &World) {
    let states = tasks.iter_mut().map(|task| &mut task.state);
    let rolling = states.filter_map(|state| match state {
        State::Rolling(rolling) => Some(rolling),
        State::Applying | State::Done(_) | State::Failed(_) => None,
    });
    for one in rolling.flatten().filter(|one| one.ended.is_none()) {
        one.ended = Some(one.rollout(world)).filter(Rollout::is_over);
    }
}

/// Says who changed a pin after a revision of it, if anybody did: an undo would reverse that instead.
pub fn overtaken(world: &World, pin: &Key, revision: i64) -> Option<String> {
    let pin = world.pin(pin).filter(|pin| pin.generation > revision)?;
    let by = pin.changed_by.as_deref().unwrap_or("somebody");
    Some(format!(
        "{by} changed {} in {} after this: undo only reverses the last change, from the matrix",
        pin.component, pin.environment
    ))
}

/// A line of the command log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// When.
    pub at: Timestamp,
    /// The command lines, of bowline where it has one, that do the same.
    pub bowline: Vec<String>,
    /// The command lines of kubectl that come closest; of git, where the target is a repository.
    pub kubectl: Vec<String>,
    /// What became of it.
    pub outcome: String,
}

impl Logged {
    /// Adds the whole target to the commands.
    pub fn aim(&mut self, ground: &Ground) {
        for line in &mut self.bowline {
            *line = ground.aimed(std::mem::take(line));
        }
        self.kubectl = match &ground.repository {
            Some(repository) => {
                let git = format!("git -C {} ", quoted(&repository.directory));
                let lines = self.kubectl.iter();
                lines.map(|line| line.replacen("git ", &git, 1)).collect()
            }
            None => ground.kubectl(&self.kubectl),
        };
    }
}

impl Task {
    /// Says how far it is, by what the watches tell.
    pub fn progress(&self, world: &World) -> (Progress, String) {
        match &self.state {
            State::Applying => (Progress::Moving, "is writing".to_owned()),
            State::Done(words) => (Progress::Done, words.clone()),
            State::Failed(why) => (Progress::Failed, why.clone()),
            State::Rolling(rolling) => {
                let states: Vec<Rollout> = rolling.iter().map(|one| one.rollout(world)).collect();
                let ready = states.iter().filter(|state| state.is_ready()).count();
                let failing = states
                    .iter()
                    .find(|state| state.is_final_failure() || matches!(state, Rollout::Failing(_)));
                let unready = states.iter().find(|state| !state.is_ready());
                let said = failing.or(unready).or(states.first());
                let said = said.map(Rollout::words).unwrap_or_default();
                let words = match states.len() {
                    1 => said,
                    all if ready == all => format!("{ready} of {all} ready"),
                    all => format!("{ready} of {all} ready; {said}"),
                };
                if ready == states.len() {
                    return (Progress::Done, words);
                }
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
