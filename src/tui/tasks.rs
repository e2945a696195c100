//! The tasks (confirmed plans) and the command log.

use jiff::Timestamp;

use super::effect::Ticket;
use super::target_info::TargetInfo;
use crate::connect::Address;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::rollout::Rollout;
use crate::subjects::release_pin::rows::Pin;
use crate::subjects::service::{Command, PlannedCommand};
use crate::subjects::workload;
use crate::text::quoted;

/// A confirmed plan that bowline applies in the background. Afterwards, bowline follows its rollouts.
#[derive(Clone, Debug)]
pub struct Task {
    /// The ticket of the request that applies the plan.
    pub ticket: Ticket,
    pub command: Command,
    /// The plan that the task applies, with its command.
    pub prepared: Box<PlannedCommand>,
    /// The reason that the user gave for the action; None if the user gave no reason.
    pub reason: Option<String>,
    /// The time at which the user confirmed the plan.
    pub since: Timestamp,
    pub target: Target,
    pub state: State,
    /// The last known progress and its description, if the user left the target of this task before the task ended.
    /// None while the UI shows this target, because [`Task::progress`] then computes them.
    pub frozen: Option<(Progress, String)>,
}

/// The target of a task, with the data that its command lines need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub name: String,
    /// The flags that select the target on a command line.
    pub address: Address,
    /// The directory of the repository that is the target; None if the target is a server.
    pub repository: Option<String>,
}

impl Target {
    /// Returns the connected target in the form that tasks store.
    pub fn of(target_info: &TargetInfo) -> Self {
        Self {
            name: target_info.name.clone(),
            address: target_info.address.clone(),
            repository: target_info.directory().map(str::to_owned),
        }
    }
}

/// The state of a task.
#[derive(Clone, Debug)]
pub enum State {
    /// bowline is writing the changes of the plan.
    Applying,
    /// bowline has written all changes, and these revisions are rolling out.
    Rolling(Vec<Rolling>),
    /// The task succeeded; the text describes its outcome.
    Done(String),
    /// The task failed; the text says why.
    Failed(String),
}

/// A revision that a task created, and the rollout of this revision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rolling {
    /// The key of the ReleasePin to which the revision belongs. For a workload, the key of its row in the matrix,
    /// such as `deploy/web`.
    pub pin: Key,
    /// The uid of the ReleasePin. None if the task created the ReleasePin and the read model does not contain the
    /// ReleasePin yet.
    pub uid: Option<Box<str>>,
    /// The number of the revision that the task created.
    pub revision: i64,
    /// The release that became effective with this revision.
    pub release: String,
    /// The final outcome of the rollout; None while the rollout may still change.
    pub ended: Option<Rollout>,
}

impl Rolling {
    /// Starts to follow the rollout of a revision.
    pub fn new(pin: &Key, revision: i64, release: &str) -> Self {
        Self {
            pin: pin.clone(),
            uid: None,
            revision,
            release: release.to_owned(),
            ended: None,
        }
    }

    /// Returns the outcome of the rollout if it has ended, or else its current state from the read model.
    pub fn rollout(&self, world: &World) -> Rollout {
        let now = || match world.workload(&self.pin) {
            Some(row) => workload::matrix::rollout(row, self.revision),
            None if self.pin.name.contains('/') => Rollout::Gone,
            None => Rollout::of(self.pin(world), self.revision, &self.release),
        };
        self.ended.clone().unwrap_or_else(now)
    }

    /// Returns the ReleasePin that the task changed. None if this ReleasePin was deleted, even if a new one has the
    /// same name.
    fn pin<'w>(&self, world: &'w World) -> Option<&'w Pin> {
        let is_it = |pin: &&Pin| self.uid.as_ref().is_none_or(|uid| *uid == pin.uid);
        world.pin(&self.pin).filter(is_it)
    }

    /// Returns the reason why an undo would not reverse this revision, for example because a newer change exists.
    /// None if an undo would reverse this revision.
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

/// Stores the final outcomes of rollouts in the tasks. Otherwise they would be lost, because the read model does not
/// keep them.
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

/// Stores the last known progress of the tasks, because the user leaves their target.
pub fn leave(tasks: &mut [Task], world: &World, target_info: &TargetInfo) {
    let shown = tasks.iter_mut().filter(|task| task.frozen.is_none());
    for task in shown {
        let (progress, words) = task.progress(world);
        let words = match (&task.state, progress) {
            (State::Done(_) | State::Failed(_), _) | (_, Progress::Done) => words,
            _ => format!("when you left {}: {words}", target_info.name),
        };
        task.frozen = Some((progress, words));
    }
}

/// Lets the tasks of a target follow the read model again, because the user has returned to this target.
pub fn arrive(tasks: &mut [Task], target_info: &TargetInfo) {
    let target = Target::of(target_info);
    for task in tasks.iter_mut().filter(|task| task.target == target) {
        task.frozen = None;
    }
}

/// An entry of the command log: an action, and command lines that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// The time of the action.
    pub at: Timestamp,
    /// The `bowline` command lines that do the same as the action. If bowline has no such command, lines of another
    /// program.
    pub bowline: Vec<String>,
    /// The kubectl command lines that are most similar to the action. If the target is a repository, git command
    /// lines.
    pub kubectl: Vec<String>,
    pub outcome: String,
}

impl Logged {
    /// Adds the flags that select the target to the command lines.
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
    /// Sets the state of the task after bowline has applied the plan. If the UI now shows another target, also
    /// updates the stored progress.
    pub fn settle(&mut self, state: State, target_info: &TargetInfo) {
        self.state = state;
        if let State::Rolling(rolling) = &mut self.state {
            let changes = self.prepared.plan().map_or(&[][..], |plan| &plan.changes);
            for one in rolling {
                let planned = changes.iter().find(|change| *change.key() == one.pin);
                let expected = planned.and_then(|change| change.expected.as_ref());
                one.uid = expected.map(|expected| expected.uid.as_str().into());
            }
        }
        if self.target == Target::of(target_info) {
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

    /// Returns the `bowline` command line that does the same as this task on the same target.
    pub fn command_line(&self) -> String {
        let reason = self.reason.as_deref();
        self.command.aimed(reason, &self.target.address)
    }

    /// Returns the progress of the task and its description: from the read model, or the stored ones if the UI shows
    /// another target.
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

    /// Returns whether the task is still writing, or its rollouts are still in progress.
    pub fn goes_on(&self, world: &World) -> bool {
        self.progress(world).0 == Progress::Moving
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// The task is still writing, or its rollouts are still in progress.
    Moving,
    Done,
    Failed,
}
