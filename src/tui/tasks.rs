//! What is under way beside the screens, and what was done as commands.

use jiff::Timestamp;

use super::effect::Ticket;
use super::model::Ground;
use super::order::{Order, Prepared, quoted};
use crate::connect::Address;
use crate::engine::plan::Fact;
use crate::engine::rollout::Rollout;
use crate::engine::world::{Key, Pin, World};

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
    /// The target that it writes to.
    pub target: Target,
    /// How far it is.
    pub state: State,
    /// How far it was when the user left its target; None while the target is shown.
    pub frozen: Option<(Progress, String)>,
}

/// The target of a task: what a command needs to do the same in the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name.
    pub name: String,
    /// The flags that lead to it.
    pub address: Address,
    /// The directory of the repository, if it is one.
    pub repository: Option<String>,
}

impl Target {
    /// Names the target that is shown.
    pub fn of(ground: &Ground) -> Self {
        let repository = ground.repository.as_ref();
        Self {
            name: ground.target.clone(),
            address: ground.address.clone(),
            repository: repository.map(|repository| repository.directory.clone()),
        }
    }
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
    /// The uid of the pin; None until the read model shows the pin that the task created.
    pub uid: Option<Box<str>>,
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
            uid: None,
            revision,
            release: release.to_owned(),
            ended: None,
        }
    }

    /// Returns how far the revision is.
    pub fn rollout(&self, world: &World) -> Rollout {
        let now = || Rollout::of(self.pin(world), self.revision, &self.release);
        self.ended.clone().unwrap_or_else(now)
    }

    /// Returns the pin that the task changed, not another one that was created with its name later.
    fn pin<'w>(&self, world: &'w World) -> Option<&'w Pin> {
        let is_it = |pin: &&Pin| self.uid.as_ref().is_none_or(|uid| *uid == pin.uid);
        world.pin(&self.pin).filter(is_it)
    }

    /// Says why an undo would reverse something else than this revision, if so.
    pub fn overtaken(&self, world: &World) -> Option<String> {
        match (world.pin(&self.pin), self.pin(world)) {
            (Some(other), None) => Some(format!(
                "the ReleasePin of {} in {} was deleted and created again after this",
                other.component, other.environment
            )),
            (_, Some(pin)) if pin.generation > self.revision => {
                let by = pin.changed_by.as_deref().unwrap_or("somebody");
                Some(format!(
                    "{by} changed {} in {} after this: undo only reverses the last change, from the matrix",
                    pin.component, pin.environment
                ))
            }
            _ => None,
        }
    }
}

/// Keeps the outcomes of revisions that nothing changes any more: the read model forgets them.
pub fn follow(tasks: &mut [Task], world: &World) {
    let shown = tasks.iter_mut().filter(|task| task.frozen.is_none());
    let states = shown.map(|task| &mut task.state);
    let rolling = states.filter_map(|state| match state {
        State::Rolling(rolling) => Some(rolling),
        State::Applying | State::Done(_) | State::Failed(_) => None,
    });
    for one in rolling.flatten().filter(|one| one.ended.is_none()) {
        let created = world.pin(&one.pin);
        let created = created.filter(|pin| pin.generation >= one.revision);
        one.uid = one.uid.take().or(created.map(|pin| pin.uid.clone()));
        one.ended = Some(one.rollout(world)).filter(Rollout::is_over);
    }
}

/// Freezes the tasks of a target that the user leaves, as its read model shows them last.
pub fn leave(tasks: &mut [Task], world: &World, ground: &Ground) {
    let shown = tasks.iter_mut().filter(|task| task.frozen.is_none());
    for task in shown {
        let (progress, words) = task.progress(world);
        let words = match (&task.state, progress) {
            (State::Done(_) | State::Failed(_), _) | (_, Progress::Done) => words,
            _ => format!("when you left {}: {words}", ground.target),
        };
        task.frozen = Some((progress, words));
    }
}

/// Follows the tasks of a target again.
pub fn arrive(tasks: &mut [Task], ground: &Ground) {
    let target = Target::of(ground);
    for task in tasks.iter_mut().filter(|task| task.target == target) {
        task.frozen = None;
    }
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
    pub fn aim(&mut self, target: &Target) {
        for line in &mut self.bowline {
            *line = target.address.bowline(line);
        }
        self.kubectl = match &target.repository {
            Some(directory) => {
                let git = format!("git -C {} ", quoted(directory));
                let lines = self.kubectl.iter();
                lines.map(|line| line.replacen("git ", &git, 1)).collect()
            }
            None => {
                let lines = self.kubectl.iter();
                lines
                    .filter_map(|line| target.address.kubectl(line))
                    .collect()
            }
        };
    }
}

impl Task {
    /// Sets the state after the write. A task of another target than the shown one stays frozen.
    pub fn settle(&mut self, state: State, ground: &Ground) {
        self.state = state;
        if let State::Rolling(rolling) = &mut self.state {
            let items = self.prepared.plan().map_or(&[][..], |plan| &plan.items);
            for one in rolling {
                let planned = items.iter().flat_map(|item| &item.facts);
                one.uid = planned.into_iter().find_map(|fact| match fact {
                    Fact::Pin {
                        key,
                        is: Some((uid, _)),
                    } if *key == one.pin => Some(uid.as_str().into()),
                    _ => None,
                });
            }
        }
        if self.target == Target::of(ground) {
            return;
        }
        let name = &self.target.name;
        self.frozen = Some(match &self.state {
            State::Applying => (Progress::Moving, "is writing".to_owned()),
            State::Rolling(_) => {
                let words = format!("written to {name}; its rollout is followed only there");
                (Progress::Done, words)
            }
            State::Done(words) => (Progress::Done, words.clone()),
            State::Failed(why) => (Progress::Failed, why.clone()),
        });
    }

    /// Returns the command line that does the same, in the target of the task.
    pub fn command_line(&self) -> String {
        let reason = self.reason.as_deref();
        self.order.aimed(reason, &self.target.address)
    }

    /// Says how far it is, by what the watches tell.
    pub fn progress(&self, world: &World) -> (Progress, String) {
        if let Some(frozen) = &self.frozen {
            return frozen.clone();
        }
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
