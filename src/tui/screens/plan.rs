//! The plan: what an action would do, object by object, and its confirmation; then what became of it.
//!
//! It opens at once and takes no key but those that leave it until the plan is drawn. After it was applied
//! it follows the rollout, and leaving it leaves that running under tasks.

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
use crate::engine::actions::rollback::Target;
use crate::engine::desk;
use crate::engine::diff::Diff;
use crate::engine::repository::Proposal;
use crate::engine::world::Key;
use crate::tui::action::{Action, Mode};
use crate::tui::confirm::{Confirmation, Demand};
use crate::tui::effect::{
    Answer, Compare, Confirmed, Effect, Half, Place, Planned, Refused, Ticket,
};
use crate::tui::model::{Level, Subject, Turn, Wish};
use crate::tui::order::{Order, Prepared};
use crate::tui::orders;
use crate::tui::tasks::{self, Task};

/// A plan, from being made to what became of it.
#[derive(Debug)]
pub struct State {
    /// What was ordered.
    pub order: Order,
    /// What its answers are to.
    pub ticket: Ticket,
    /// When it was opened.
    pub opened: Timestamp,
    /// How far it is.
    pub stage: Stage,
    /// How far down the changes are scrolled.
    pub scroll: usize,
    /// Input that came before the plan was drawn.
    pub dropped: Dropped,
    /// Whether the terminal has shown the plan.
    drawn: bool,
    /// Whether the terminal has shown the changes.
    shown: bool,
    /// The facts of the plan that no longer hold, and who changed them.
    pub stale: Vec<String>,
    /// When the facts of a garbage collection were checked last: that reads every release.
    checked: Option<Timestamp>,
    /// Whether something changed since.
    late: bool,
    /// The text that the user typed before the plan was made again.
    typed: String,
    /// The reason that was given.
    pub reason: Option<String>,
    /// What changes in the files, where the target is a repository.
    pub files: Option<Arc<Proposal>>,
}

/// How far a plan is.
#[derive(Debug)]
pub enum Stage {
    /// It is being made.
    Planning,
    /// There is none.
    Refused(Refused),
    /// It waits for its confirmation.
    Asking(Box<Prepared>, Shown, Box<Confirmation>),
    /// It is being applied.
    Applying(Box<Prepared>, Shown),
    /// It was applied, and this became of it.
    Applied(Box<Prepared>, Shown, Outcome),
}

/// What changes in the environments.
#[derive(Debug)]
pub enum Shown {
    /// It is being rendered.
    Rendering,
    /// Item by item.
    Diffs(Vec<Option<Diff>>),
    /// It cannot be rendered, so it cannot be applied.
    Failed(String),
}

impl State {
    /// Opens the plan of an order, and asks for it.
    pub fn open(order: Order, turn: &mut Turn<'_>) -> Self {
        let ticket = turn.ticket();
        let asked = Effect::Plan(ticket, Box::new(order.clone()));
        turn.effects.push(asked);
        Self {
            order,
            ticket,
            opened: turn.now,
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

    /// Returns the demand of the confirmation; None unless the plan waits for one.
    #[cfg(test)]
    pub fn demand(&self) -> Option<&crate::tui::confirm::Demand> {
        match &self.stage {
            Stage::Asking(_, _, confirmation) => Some(&confirmation.demand),
            _ => None,
        }
    }

    /// Returns where its keys are looked up.
    pub fn modes(&self) -> &'static [Mode] {
        match &self.stage {
            Stage::Asking(_, _, confirmation) if confirmation.takes_text() => {
                &[Mode::Plan, Mode::Text]
            }
            _ => &[Mode::Plan, Mode::Global],
        }
    }

    /// Returns what it is about.
    pub fn subject(&self) -> Subject {
        let place = match &self.order {
            Order::Move(order) => order.place(),
            Order::Mark(_) | Order::Collect(_) => None,
        };
        Subject {
            components: place
                .iter()
                .map(|(component, _)| (*component).into())
                .collect(),
            environment: place.map(|(_, environment)| environment.into()),
            release: None,
        }
    }

    /// Takes a key before it is looked up: text of the confirmation, or a key that comes too early.
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

    /// Takes text that was pasted into the confirmation.
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

    /// Does what a key means here.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        if !self.takes(action) {
            // A wheel that turns too early scrolls nothing.
            return match self.is_early() && !keys::leaves(action) {
                true => Handled::Yes,
                false => Handled::No,
            };
        }
        match action {
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
                let line = self.order.aimed(reason.as_deref(), &turn.ground.address);
                turn.effects.push(Effect::Copy(line));
                turn.say(Level::Info, "the command line is on the clipboard");
            }
            Action::Apply => self.confirm(turn),
            Action::Confirm | Action::Open => match &mut self.stage {
                Stage::Asking(_, _, confirmation) => {
                    // The default is Cancel: only what was typed, or the button that was chosen, applies.
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

    /// Takes another size of the terminal.
    pub fn resized(&mut self) {
        if let Stage::Asking(_, _, confirmation) = &mut self.stage {
            confirmation.resized();
        }
    }

    /// Leaves the screen; what was applied goes on.
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
        turn.wishes.push(Wish::Close);
    }

    /// Returns the reason that was given, or that is typed so far.
    fn typed_reason(&self) -> Option<String> {
        match &self.stage {
            Stage::Asking(_, _, confirmation) => {
                let read = confirmation.demand.read(&confirmation.typed());
                read.ok().flatten()
            }
            _ => self.reason.clone(),
        }
    }

    /// Opens what changes as a diff of its own.
    fn differences(&self, turn: &mut Turn<'_>) {
        let (Stage::Asking(prepared, shown, _)
        | Stage::Applying(prepared, shown)
        | Stage::Applied(prepared, shown, _)) = &self.stage
        else {
            return;
        };
        let (Prepared::Moves(draft), Shown::Diffs(diffs)) = (&**prepared, shown) else {
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
        let (before, after) = match draft.plan.items.as_slice() {
            [item] => {
                let place = format!("{} in {}", item.component, item.environment);
                let before = match &item.from {
                    Some(from) => format!("{place}, release {}", from.name),
                    None => format!("{place}, where it is not deployed"),
                };
                (before, format!("{place}, release {}", item.to.name))
            }
            items => (
                "current state".to_owned(),
                format!("planned state of {} components", items.len()),
            ),
        };
        let compare = Compare {
            before: half(before),
            after: half(after),
            diff: diff::together(diffs.iter().flatten()),
            notes: draft.notes.clone(),
        };
        let place = match &self.order {
            Order::Move(order) => order.place(),
            Order::Mark(_) | Order::Collect(_) => None,
        };
        let place = place.map(|(component, environment)| Place::new(component, environment));
        let opened = diff::State::given(compare, place, turn);
        turn.open(Screen::Diff(Box::new(opened)));
    }

    /// Plans the reverse of what was just done.
    fn undo(&mut self, turn: &mut Turn<'_>) {
        let Stage::Applied(prepared, _, outcome) = &self.stage else {
            return;
        };
        let Some(order) = orders::undo_of(&outcome.undone(prepared)) else {
            return;
        };
        let mut rolling = outcome.rolling.iter();
        let overtaken = rolling.find_map(|one| one.overtaken(turn.world));
        if let Some(why) = overtaken {
            return turn.say(Level::Warning, why);
        }
        turn.wishes.push(Wish::Close);
        turn.wishes.push(Wish::Order(order));
    }

    /// Returns where a revision has to be chosen, because which one was good is not known.
    fn choosing(&self, refused: &Refused, turn: &Turn<'_>) -> Option<Place> {
        let Order::Move(desk::Order::Rollback {
            component,
            environment,
            to: Target::LastGood,
            ..
        }) = &self.order
        else {
            return None;
        };
        let key = Key::new(&turn.ground.namespace, component);
        let pin = turn.world.pin_of(&key, environment)?;
        // A single revision leaves nothing to choose.
        let chooses = refused.chooses_revision && pin.generation > 1;
        chooses.then(|| Place::new(component, environment))
    }

    /// Says why the plan cannot be applied, whatever the user types.
    fn obstacle(&self, sight: &page::Sight<'_>) -> Option<String> {
        let Stage::Asking(prepared, shown, confirmation) = &self.stage else {
            return None;
        };
        // A typed confirmation arms a protected context for this plan alone.
        let unwritable = match sight.ground.protected {
            true => None,
            false => sight.ground.unwritable(sight.now),
        };
        if let Some(why) = unwritable {
            return Some(format!("read-only: {why}"));
        }
        if is_idle(prepared) {
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
            Shown::Rendering if confirmation.demand.shown => {
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
        let unseen = !self.shown;
        let Stage::Asking(_, _, confirmation) = &mut self.stage else {
            return;
        };
        if let Some(obstacle) = obstacle {
            confirmation.complaint = Some(obstacle);
            return;
        }
        if confirmation.demand.shown && unseen {
            confirmation.complaint = Some("the changes were not on the screen yet".to_owned());
            return;
        }
        let Some(reason) = confirmation.accept() else {
            return;
        };
        self.typed = confirmation.typed();
        let planning = std::mem::replace(&mut self.stage, Stage::Planning);
        let Stage::Asking(mut prepared, shown, _) = planning else {
            return;
        };
        prepared.because(reason.clone());
        self.reason.clone_from(&reason);
        let confirmed = Confirmed {
            prepared: prepared.clone(),
            reason,
            files: self.files.clone(),
        };
        let apply = Effect::Apply(self.ticket, Box::new(confirmed));
        turn.effects.push(apply);
        turn.wishes.push(Wish::Follow(Box::new(Task {
            ticket: self.ticket,
            order: self.order.clone(),
            prepared: prepared.clone(),
            reason: self.reason.clone(),
            since: turn.now,
            target: tasks::Target::of(turn.ground),
            state: tasks::State::Applying,
            frozen: None,
        })));
        self.stage = Stage::Applying(prepared, shown);
        self.scroll = 0;
    }

    /// Takes what a request brought.
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
                let mut confirmation = Confirmation::new(demand(&prepared, turn));
                confirmation.retype(&self.typed);
                let shown = match *prepared {
                    Prepared::Moves(_) => Shown::Rendering,
                    Prepared::Mark(_) | Prepared::Collection(_) => Shown::Diffs(Vec::new()),
                };
                self.stage = Stage::Asking(prepared, shown, Box::new(confirmation));
                self.check(turn);
            }
            Answer::Planned(Err(refused)) => match self.choosing(&refused, turn) {
                Some(place) => {
                    let why = refused.why.join("; ");
                    let opened = revisions::State::open(place, turn);
                    turn.wishes.push(Wish::Close);
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
                    // What was complained of may have been that it was not there yet.
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
            Answer::Applied(became) => {
                let planning = std::mem::replace(&mut self.stage, Stage::Planning);
                self.stage = match planning {
                    Stage::Applying(prepared, shown) => {
                        let outcome = Outcome::of(&prepared, &became);
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

/// Returns what the user has to type before a plan is applied.
fn demand(prepared: &Prepared, turn: &Turn<'_>) -> Demand {
    let mut demand = Demand::of(prepared, turn.world);
    if turn.ground.protected && turn.ground.unwritable(turn.now).is_some() {
        demand.on_protected(&turn.ground.target);
    }
    demand
}

/// Tells whether a plan would change nothing.
fn is_idle(prepared: &Prepared) -> bool {
    match prepared {
        Prepared::Moves(draft) => draft.plan.items.iter().all(|item| item.unchanged),
        Prepared::Mark(marking) => marking.unchanged,
        Prepared::Collection(collection) => {
            let mislabelled = collection.releases.iter().any(|found| found.mislabelled);
            collection.going().next().is_none() && !mislabelled
        }
    }
}
