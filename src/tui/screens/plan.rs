//! The plan screen: the changes of an action, object by object, and the confirmation; then the outcome.
//!
//! The screen opens at once. Until the plan is drawn, it accepts only keys that leave it. After the plan is
//! applied, the screen follows the rollout; if the user leaves it, the rollout continues as a task.

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
use crate::engine::confirmation::Confirmation;
use crate::engine::diff::Diff;
use crate::engine::world::Key;
use crate::gitops::propose::Proposal;
use crate::subjects::release_pin::actions::rollback::Target;
use crate::subjects::release_pin::planner;
use crate::subjects::service::{Command, Confirmed, PlannedCommand};
use crate::tui::action::{Action, Mode};
use crate::tui::confirm::ConfirmationLine;
use crate::tui::effect::{Answer, CellKey, Compare, Effect, Half, Planned, Refused, Ticket};
use crate::tui::from_keys::{self, Wanted};
use crate::tui::hints;
use crate::tui::model::{Level, ScreenRequest, Subject, Turn};
use crate::tui::tasks::{self, Task};

/// A plan, from the request to the outcome.
#[derive(Debug)]
pub struct State {
    /// The command to plan.
    pub command: Command,
    /// The ticket of the requests of this plan.
    pub ticket: Ticket,
    /// The time of the latest request for the plan.
    pub opened: Timestamp,
    /// The state of the plan.
    pub stage: Stage,
    /// The number of lines by which the changes are scrolled.
    pub scroll: usize,
    /// Input that came before the plan was drawn.
    pub dropped: Dropped,
    /// Whether the terminal has shown the plan.
    drawn: bool,
    /// Whether the terminal has shown the differences.
    shown: bool,
    /// The facts of the plan that no longer hold, and who changed them.
    pub stale: Vec<String>,
    /// The time of the last check of the facts of a garbage collection: a check reads every release.
    checked: Option<Timestamp>,
    /// Whether a check of the facts is due after the pause.
    late: bool,
    /// The text that the user typed before the plan was made again.
    typed: String,
    /// The reason that the user gave.
    pub reason: Option<String>,
    /// The changed files, if the target is a repository.
    pub files: Option<Arc<Proposal>>,
}

/// The state of a plan.
#[derive(Debug)]
pub enum Stage {
    /// bowline is making the plan.
    Planning,
    /// There is no plan; the value says why.
    Refused(Refused),
    /// The plan waits for its confirmation.
    Asking(Box<PlannedCommand>, Shown, Box<ConfirmationLine>),
    /// bowline is applying the plan.
    Applying(Box<PlannedCommand>, Shown),
    /// The plan was applied; this is the outcome.
    Applied(Box<PlannedCommand>, Shown, Outcome),
}

/// The differences in the environments.
#[derive(Debug)]
pub enum Shown {
    /// bowline is rendering the manifests.
    Rendering,
    /// One difference per change; None if the change makes no difference in its environment.
    Diffs(Vec<Option<Diff>>),
    /// The manifests cannot be rendered, so the plan cannot be applied; the text is the error.
    Failed(String),
}

impl State {
    /// Opens the plan screen of an action, and requests the plan.
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

    /// Returns the required input of the confirmation; None unless the plan waits for one.
    #[cfg(test)]
    pub fn needed(&self) -> Option<&Confirmation> {
        match &self.stage {
            Stage::Asking(_, _, confirmation) => Some(&confirmation.needed),
            _ => None,
        }
    }

    /// Returns the modes in which the keys of the plan are looked up.
    pub fn modes(&self) -> &'static [Mode] {
        match &self.stage {
            Stage::Asking(_, _, confirmation) if confirmation.takes_text() => {
                &[Mode::Plan, Mode::Text]
            }
            Stage::Refused(_) => hints::REFUSED,
            _ => &[Mode::Plan, Mode::Global],
        }
    }

    /// Returns the objects of the plan.
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

    /// Handles a key before the keymap lookup: text of the confirmation, or a key that comes too early.
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

    /// Inserts text that was pasted into the confirmation.
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

    /// Handles an action on this screen.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        if !self.takes(action) {
            let refused = matches!(self.stage, Stage::Refused(_));
            if refused && !action.is_everywhere() && action != Action::Switch {
                let words = format!("{} has no effect on this screen", action.word());
                turn.say(Level::Info, words);
                return Handled::Yes;
            }
            // Before the plan is drawn, the mouse wheel does not scroll.
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
                    // The default is Cancel: only typed text or the chosen button applies the plan.
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

    /// Adapts to a new size of the terminal.
    pub fn resized(&mut self) {
        if let Stage::Asking(_, _, confirmation) = &mut self.stage {
            confirmation.resized();
        }
    }

    /// Leaves the screen; an applied plan continues as a task.
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

    /// Returns the reason of the confirmed plan, or the reason that the user has typed so far.
    fn typed_reason(&self) -> Option<String> {
        match &self.stage {
            Stage::Asking(_, _, confirmation) => {
                let read = confirmation.needed.read(&confirmation.typed());
                read.ok().flatten()
            }
            _ => self.reason.clone(),
        }
    }

    /// Opens the differences as a diff screen.
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

    /// Plans to undo the applied plan.
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

    /// Plans the action that a hint of a refusal names. The refused plan stays open below, so that the user can
    /// plan it again. Returns false if no hint names the action.
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

    /// Returns the cell whose revision the user has to choose, because no last good revision is known.
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
        // With only one revision there is nothing to choose.
        let chooses = refused.chooses_revision && pin.generation > 1;
        chooses.then(|| CellKey::new(component, environment))
    }

    /// Returns the reason why the plan cannot be applied, no matter what the user types.
    fn obstacle(&self, sight: &page::Sight<'_>) -> Option<String> {
        let Stage::Asking(prepared, shown, confirmation) = &self.stage else {
            return None;
        };
        // A typed confirmation allows writes on a protected context for this plan only.
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

    /// Handles the answer to a request; returns the answer if this screen did not request it.
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
                    // The message may have been that the differences are not ready yet.
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

/// Returns the confirmation that a plan needs.
fn needed(prepared: &PlannedCommand, turn: &Turn<'_>) -> Confirmation {
    let target_info = turn.target_info;
    let is_closed = target_info.protected && target_info.unwritable(turn.now).is_some();
    let protected = is_closed.then_some(target_info.name.as_str());
    prepared.confirmation(turn.world, protected)
}
