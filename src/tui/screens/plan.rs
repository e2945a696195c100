//! The plan screen: the changes of a plan, object by object, and the confirmation; afterwards the
//! outcome.
//!
//! The screen opens at once. Until the terminal has shown the plan, it accepts only keys that leave
//! the screen. After the plan is applied, the screen follows the rollouts; if the user leaves it,
//! they continue as a task.

mod changes;
mod facts;
mod follow;
mod keys;
mod outcome;
mod page;
#[cfg(test)]
mod tests;
mod view;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;

pub use keys::PlanKey;
pub use outcome::Outcome;

use keys::Dropped;
use page::Page;

use super::{Handled, Screen, diff, revisions};
use crate::action::{Action, Mode};
use crate::confirm::ConfirmationLine;
use crate::effect::{Answer, CellKey, Compare, Effect, Half, Planned, Refused, Ticket};
use crate::engine::confirmation::Confirmation;
use crate::engine::diff::Diff;
use crate::engine::world::Key;
use crate::from_keys::{self, Wanted};
use crate::gitops::propose::Proposal;
use crate::hints;
use crate::model::{Level, ScreenRequest, Subject, Turn};
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::planner;
use crate::subjects::service::{Command, Confirmed, PlannedCommand};
use crate::tasks::{self, Task};

/// The state of the plan screen.
#[derive(Debug)]
pub struct State {
    /// The command that the plan executes.
    pub command: Command,
    /// The ticket of the requests for this plan.
    pub ticket: Ticket,
    /// The time of the latest request for the plan.
    pub opened: Timestamp,
    pub stage: Stage,
    /// The number of lines by which the user has scrolled the changes.
    pub scroll: usize,
    /// The input that was ignored because it came before the terminal showed the plan.
    pub dropped: Dropped,
    /// Whether the terminal has shown the plan.
    drawn: bool,
    /// Whether the terminal has shown the diffs of the plan.
    shown: bool,
    /// For each fact that no longer holds: a text that says what changed, and who changed it.
    pub stale: Vec<String>,
    /// The time of the last check of the facts of a garbage collection. Each check reads every
    /// release.
    checked: Option<Timestamp>,
    /// Whether another check of the facts is due after a pause.
    late: bool,
    /// The text that the user had typed before the plan was made again.
    typed: String,
    /// The reason that the user gave; None without a reason.
    pub reason: Option<String>,
    /// The files that the plan changes; None if the target is a server.
    pub files: Option<Arc<Proposal>>,
}

/// The stage of a plan, from the request to the outcome.
#[derive(Debug)]
pub enum Stage {
    /// bowline is making the plan.
    Planning,
    /// bowline made no plan; the value has the reasons.
    Refused(Refused),
    /// The plan waits for its confirmation.
    Asking(Box<PlannedCommand>, Shown, Box<ConfirmationLine>),
    /// bowline is applying the plan.
    Applying(Box<PlannedCommand>, Shown),
    /// bowline has applied the plan.
    Applied(Box<PlannedCommand>, Shown, Outcome),
}

/// The diffs of a plan in its environments.
#[derive(Debug)]
pub enum Shown {
    /// bowline is rendering the manifests.
    Rendering,
    /// The diff of each change, in the order of the plan; None if a change makes no difference.
    Diffs(Vec<Option<Diff>>),
    /// bowline cannot render the manifests, so the plan cannot be applied. The text is the error.
    Failed(String),
}

impl State {
    /// Opens the plan screen for a command, and requests the plan.
    pub fn open(
        command: Command,
        ticket: Ticket,
        now: Timestamp,
        effects: &mut Vec<Effect>,
    ) -> Self {
        effects.push(Effect::Plan(ticket, Box::new(command.clone())));
        Self {
            command,
            ticket,
            opened: now,
            stage: Stage::Planning,
            scroll: 0,
            dropped: Dropped::default(),
            drawn: false,
            shown: false,
            stale: Vec::new(),
            checked: None,
            late: false,
            typed: String::new(),
            reason: None,
            files: None,
        }
    }

    /// Returns the input that the confirmation requires; None if the plan does not wait for a
    /// confirmation.
    #[cfg(test)]
    pub fn needed(&self) -> Option<&Confirmation> {
        match &self.stage {
            Stage::Asking(_, _, confirmation) => Some(&confirmation.needed),
            _ => None,
        }
    }

    /// Returns the modes in which bowline looks up the keys of the screen, in this order.
    pub fn modes(&self) -> &'static [Mode] {
        match &self.stage {
            Stage::Asking(_, _, confirmation) if confirmation.takes_text() => {
                &[Mode::Plan, Mode::Text]
            }
            Stage::Refused(_) => hints::REFUSED,
            _ => &[Mode::Plan, Mode::Global],
        }
    }

    pub fn subject(&self) -> Subject {
        let place = self.command.place();
        Subject {
            components: place
                .iter()
                .map(|(component, _)| (*component).into())
                .collect(),
            environment: place.map(|(_, environment)| environment.into()),
            release: None,
        }
    }

    /// Handles a key press before the keymap lookup: types it into the confirmation, or ignores it
    /// because the plan is not shown yet.
    pub fn key(&mut self, key: KeyEvent, turn: &mut Turn<'_>) -> Handled {
        if self.is_early() {
            return self.drop_key(key, turn);
        }
        let Stage::Asking(_, _, confirmation) = &mut self.stage else {
            return Handled::No;
        };
        if !confirmation.takes_text() {
            return Handled::No;
        }
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        let is_text = match key.code {
            KeyCode::Enter => confirmation.editor && plain,
            KeyCode::Char('w' | 'u' | 'k' | 'a') if key.modifiers == KeyModifiers::CONTROL => true,
            KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Delete => plain,
            KeyCode::Left | KeyCode::Right | KeyCode::Home | KeyCode::End => true,
            KeyCode::Up | KeyCode::Down => confirmation.editor,
            _ => false,
        };
        if is_text {
            confirmation.input(key);
        }
        match is_text {
            true => Handled::Yes,
            false => Handled::No,
        }
    }

    /// Inserts pasted text into the confirmation.
    pub fn paste(&mut self, text: &str) -> Handled {
        if self.is_early() {
            self.dropped.pastes += 1;
            return Handled::Yes;
        }
        match &mut self.stage {
            Stage::Asking(_, _, confirmation) if confirmation.takes_text() => {
                confirmation.paste(text);
                Handled::Yes
            }
            _ => Handled::No,
        }
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        if !self.takes(action) {
            let refused = matches!(self.stage, Stage::Refused(_));
            if refused && !action.is_everywhere() && action != Action::Switch {
                let words = format!("{} has no effect on this screen", action.word());
                turn.say(Level::Info, words);
                return Handled::Yes;
            }
            // Before the terminal has shown the plan, even the mouse wheel is ignored.
            return match self.is_early() && !keys::leaves(action) {
                true => Handled::Yes,
                false => Handled::No,
            };
        }
        match action {
            action if self.remedies(action, turn) => {}
            Action::Back | Action::Interrupt | Action::Quit => self.leave(turn),
            Action::Up
            | Action::Down
            | Action::PageUp
            | Action::PageDown
            | Action::HalfPageUp
            | Action::HalfPageDown
            | Action::Top
            | Action::Bottom => self.scroll_by(action, turn),
            Action::CopyCommand => {
                let reason = self.typed_reason();
                let line = self
                    .command
                    .aimed(reason.as_deref(), &turn.target_info.address);
                turn.effects.push(Effect::Copy(line));
                turn.say(Level::Info, "the command line is on the clipboard");
            }
            Action::Apply => self.confirm(turn),
            Action::Confirm | Action::Open => match &mut self.stage {
                Stage::Asking(_, _, confirmation) => {
                    // The default button is Cancel. The plan is applied only after typed text, or
                    // with the Apply button in focus.
                    match confirmation.takes_text() || confirmation.apply {
                        true => self.confirm(turn),
                        false => self.leave(turn),
                    }
                }
                _ => self.leave(turn),
            },
            Action::NextField | Action::Left | Action::Right => {
                if let Stage::Asking(_, _, confirmation) = &mut self.stage {
                    confirmation.apply = !confirmation.apply;
                }
            }
            Action::Editor => {
                if let Stage::Asking(_, _, confirmation) = &mut self.stage {
                    confirmation.editor = !confirmation.editor;
                }
            }
            Action::PlanAgain => self.plan_again(turn),
            Action::Undo => self.undo(turn),
            Action::Diff => self.differences(turn),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn scroll_by(&mut self, action: Action, turn: &Turn<'_>) {
        let page = Page::of(self, &page::Sight::of_turn(turn));
        let (at, last) = (self.scroll.min(page.last()), page.last());
        let step = page.room.max(1);
        self.scroll = match action {
            Action::Up => at.saturating_sub(1),
            Action::Down => at + 1,
            Action::PageUp => at.saturating_sub(step),
            Action::PageDown => at + step,
            Action::HalfPageUp => at.saturating_sub(step.div_ceil(2)),
            Action::HalfPageDown => at + step.div_ceil(2),
            Action::Top => 0,
            _ => last,
        }
        .min(last);
    }

    pub fn resized(&mut self) {
        if let Stage::Asking(_, _, confirmation) = &mut self.stage {
            confirmation.resized();
        }
    }

    /// Closes the editor if it is open, otherwise the screen. An applied plan continues as a task.
    fn leave(&mut self, turn: &mut Turn<'_>) {
        if let Stage::Asking(_, _, confirmation) = &mut self.stage
            && confirmation.editor
        {
            confirmation.editor = false;
            return;
        }
        if matches!(self.stage, Stage::Planning | Stage::Asking(..)) {
            turn.effects.push(Effect::Cancel(self.ticket));
        }
        turn.requests.push(ScreenRequest::Close);
    }

    /// Returns the reason of the confirmed plan, or the valid reason that the user has typed so
    /// far.
    fn typed_reason(&self) -> Option<String> {
        match &self.stage {
            Stage::Asking(_, _, confirmation) => {
                let read = confirmation.needed.read(&confirmation.typed());
                read.ok().flatten()
            }
            _ => self.reason.clone(),
        }
    }

    /// Opens the diffs of the plan in a diff screen.
    fn differences(&self, turn: &mut Turn<'_>) {
        let (Stage::Asking(prepared, shown, _)
        | Stage::Applying(prepared, shown)
        | Stage::Applied(prepared, shown, _)) = &self.stage
        else {
            return;
        };
        let (PlannedCommand::Changes(action_plan), Shown::Diffs(diffs)) = (&**prepared, shown)
        else {
            let words = match shown {
                Shown::Rendering => "the changes are still loading",
                Shown::Failed(_) => "the changes cannot be rendered",
                Shown::Diffs(_) => "this action changes no object in an environment",
            };
            return turn.say(Level::Info, words);
        };
        let half = |what: String| Half {
            what,
            read: self.opened,
        };
        let (before, after) = match action_plan.plan.changes.as_slice() {
            [change] => {
                let place = format!("{} in {}", change.name, change.environment);
                let before = match &change.from {
                    Some(from) => format!("{place}, release {}", from.name),
                    None => format!("{place}, where it is not deployed"),
                };
                (before, format!("{place}, release {}", change.to.name))
            }
            changes => (
                "current state".to_owned(),
                format!("planned state of {} components", changes.len()),
            ),
        };
        let compare = Compare {
            before: half(before),
            after: half(after),
            diff: diff::together(diffs.iter().flatten()),
            notes: action_plan.notes.clone(),
        };
        let place = self.command.place();
        let place = place.map(|(component, environment)| CellKey::new(component, environment));
        let opened = diff::State::given(compare, place, turn);
        turn.open(Screen::Diff(Box::new(opened)));
    }

    /// Opens the plan that undoes the applied plan.
    fn undo(&mut self, turn: &mut Turn<'_>) {
        let Stage::Applied(prepared, _, outcome) = &self.stage else {
            return;
        };
        let Some(command) = from_keys::undo_of(&outcome.undone(prepared)) else {
            return;
        };
        let mut rolling = outcome.rolling.iter();
        let overtaken = rolling.find_map(|one| one.overtaken(turn.world));
        if let Some(why) = overtaken {
            return turn.say(Level::Warning, why);
        }
        turn.requests.push(ScreenRequest::Close);
        turn.requests.push(ScreenRequest::Plan(command));
    }

    /// Opens the plan for an action that a hint of a refusal names. The refused plan stays open
    /// below, so that the user can make it again. Returns false if no hint names the action.
    fn remedies(&self, action: Action, turn: &mut Turn<'_>) -> bool {
        let Stage::Refused(refused) = &self.stage else {
            return false;
        };
        let mut named = refused.refusals.iter().filter_map(hints::remedy);
        if !named.any(|(named, _)| named == action) {
            return false;
        }
        match from_keys::remedy(action, &refused.refusals, turn.world, turn.target_info) {
            Ok(Wanted::Command(command)) => turn.requests.push(ScreenRequest::Plan(command)),
            Ok(Wanted::Choice(choice)) => turn.requests.push(ScreenRequest::Choose(choice)),
            Err(why) => turn.say(Level::Warning, why),
        }
        true
    }

    /// Returns the cell whose revision the user has to choose, because its last good revision is
    /// unknown. None if a choice does not help.
    fn choosing(&self, refused: &Refused, turn: &Turn<'_>) -> Option<CellKey> {
        let Command::Change(planner::ActionRequest::Rollback {
            component,
            environment,
            to: Target::LastGood,
            ..
        }) = &self.command
        else {
            return None;
        };
        let key = Key::new(&turn.target_info.namespace, component);
        let pin = turn.world.pin_of(&key, environment)?;
        // If there is only one revision, the user has nothing to choose.
        let chooses = refused.chooses_revision && pin.generation > 1;
        chooses.then(|| CellKey::new(component, environment))
    }

    /// Returns the reason why the plan cannot be applied, whatever the user types; None if it can.
    fn obstacle(&self, sight: &page::Sight<'_>) -> Option<String> {
        let Stage::Asking(prepared, shown, confirmation) = &self.stage else {
            return None;
        };
        // The typed confirmation of a plan on a protected context allows the writes of this plan.
        let unwritable = match sight.target_info.protected {
            true => None,
            false => sight.target_info.unwritable(sight.now),
        };
        if let Some(why) = unwritable {
            return Some(format!("read-only: {why}"));
        }
        if prepared.is_idle() {
            return Some(outcome::already(prepared).to_owned());
        }
        if self
            .files
            .as_ref()
            .is_some_and(|files| files.edits.is_empty())
        {
            return Some("nothing to do: no file would change".to_owned());
        }
        if !self.stale.is_empty() {
            let keys = sight.keys_for(self.modes(), Action::PlanAgain);
            return Some(format!("out of date: {keys} plans again"));
        }
        match shown {
            Shown::Failed(why) => Some(why.clone()),
            Shown::Rendering if confirmation.needed.shown => {
                Some("the changes are still being rendered".to_owned())
            }
            Shown::Rendering | Shown::Diffs(_) => None,
        }
    }

    fn confirm(&mut self, turn: &mut Turn<'_>) {
        self.check(turn);
        let sight = page::Sight::of_turn(turn);
        let unreadable = || Page::of(self, &sight).unreadable;
        let obstacle = self.obstacle(&sight).or_else(unreadable);
        let shown = self.shown;
        let Stage::Asking(_, _, confirmation) = &mut self.stage else {
            return;
        };
        if let Some(obstacle) = obstacle {
            confirmation.complaint = Some(obstacle);
            return;
        }
        let Some(accepted) = confirmation.accept(shown) else {
            return;
        };
        self.typed = confirmation.typed();
        let planning = std::mem::replace(&mut self.stage, Stage::Planning);
        let Stage::Asking(prepared, shown, _) = planning else {
            return;
        };
        self.reason.clone_from(&accepted.reason);
        let confirmed = Confirmed::new(prepared, self.files.clone(), accepted);
        let prepared = confirmed.planned.clone();
        let apply = Effect::Apply(self.ticket, Box::new(confirmed));
        turn.effects.push(apply);
        turn.requests.push(ScreenRequest::Follow(Box::new(Task {
            ticket: self.ticket,
            command: self.command.clone(),
            prepared: prepared.clone(),
            reason: self.reason.clone(),
            since: turn.now,
            target: tasks::Target::of(turn.target_info),
            state: tasks::State::Applying,
            frozen: None,
        })));
        self.stage = Stage::Applying(prepared, shown);
        self.scroll = 0;
    }

    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        if ticket != self.ticket {
            return Some(answer);
        }
        match answer {
            Answer::Planned(Ok(planned)) => {
                let Planned { prepared, files } = *planned;
                self.files = files;
                self.drawn = false;
                self.shown = false;
                let mut confirmation = ConfirmationLine::new(needed(&prepared, turn));
                confirmation.retype(&self.typed);
                let shown = match *prepared {
                    PlannedCommand::Changes(_) => Shown::Rendering,
                    PlannedCommand::Mark(_) | PlannedCommand::Collection(_) => {
                        Shown::Diffs(Vec::new())
                    }
                };
                self.stage = Stage::Asking(prepared, shown, Box::new(confirmation));
                self.check(turn);
            }
            Answer::Planned(Err(refused)) => match self.choosing(&refused, turn) {
                Some(place) => {
                    let why = refused.why.join("; ");
                    let opened = revisions::State::open(place, turn);
                    turn.requests.push(ScreenRequest::Close);
                    turn.open(Screen::Revisions(Box::new(opened)));
                    let modes = &[Mode::List, Mode::Global];
                    let keys = turn.look.keymap.keys_or_word(modes, Action::Rollback);
                    let words = format!("{why}: choose a revision; {keys} rolls back to it");
                    turn.say(Level::Warning, words);
                }
                None => self.stage = Stage::Refused(refused),
            },
            Answer::Shown(rendered) => {
                self.shown = false;
                if let Stage::Asking(prepared, shown, confirmation) = &mut self.stage {
                    // The message may say that the diffs are not ready yet.
                    confirmation.complaint = None;
                    match rendered {
                        Ok(previews) => {
                            *prepared = previews.prepared;
                            *shown = Shown::Diffs(previews.diffs);
                        }
                        Err(why) => *shown = Shown::Failed(why),
                    }
                }
            }
            Answer::Applied(applied) => {
                let planning = std::mem::replace(&mut self.stage, Stage::Planning);
                self.stage = match planning {
                    Stage::Applying(prepared, shown) => {
                        let outcome = Outcome::of(&prepared, &applied);
                        self.scroll = 0;
                        Stage::Applied(prepared, shown, outcome)
                    }
                    other => other,
                };
            }
            other => return Some(other),
        }
        None
    }
}

/// Returns the confirmation that a plan requires.
fn needed(prepared: &PlannedCommand, turn: &Turn<'_>) -> Confirmation {
    let target_info = turn.target_info;
    let is_closed = target_info.protected && target_info.unwritable(turn.now).is_some();
    let protected = is_closed.then_some(target_info.name.as_str());
    prepared.confirmation(turn.world, protected)
}
