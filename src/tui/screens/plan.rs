//! The plan: what an action would do, object by object, and its confirmation; then what became of it.
//!
//! It opens at once and takes no key but those that leave it until the plan is drawn. After it was applied
//! it follows the rollout, and leaving it leaves that running under tasks.

mod changes;
mod outcome;
mod view;

use std::sync::Arc;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::Timestamp;

pub use outcome::Outcome;

use super::{Handled, Screen, diff};
use crate::engine::actions::undo::Undo;
use crate::engine::desk;
use crate::engine::diff::Diff;
use crate::engine::repository::Proposal;
use crate::tui::action::{Action, Mode};
use crate::tui::confirm::{Confirmation, Demand};
use crate::tui::effect::{
    Answer, Compare, Confirmed, Effect, Half, Place, Planned, Refused, Ticket,
};
use crate::tui::model::{Level, Subject, Turn, Wish};
use crate::tui::order::{Order, Prepared};
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
    /// How many keys came before the plan was drawn.
    pub dropped: usize,
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
            dropped: 0,
            reason: None,
            files: None,
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

    /// Takes a key before it is looked up: text of the confirmation, or the key that confirms.
    pub fn key(&mut self, key: KeyEvent, turn: &mut Turn<'_>) -> Handled {
        let Stage::Asking(_, _, confirmation) = &mut self.stage else {
            return Handled::No;
        };
        let plain = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
        match (confirmation.takes_text(), key.code) {
            (true, KeyCode::Enter) if confirmation.editor && plain => {
                confirmation.input(key);
                Handled::Yes
            }
            (true, KeyCode::Char(_) | KeyCode::Backspace | KeyCode::Delete) if plain => {
                confirmation.input(key);
                Handled::Yes
            }
            (true, KeyCode::Left | KeyCode::Right | KeyCode::Home | KeyCode::End) => {
                confirmation.input(key);
                Handled::Yes
            }
            (true, KeyCode::Up | KeyCode::Down) if confirmation.editor => {
                confirmation.input(key);
                Handled::Yes
            }
            (true, KeyCode::Char('w' | 'u' | 'k' | 'a'))
                if key.modifiers == KeyModifiers::CONTROL =>
            {
                confirmation.input(key);
                Handled::Yes
            }
            (false, KeyCode::Char('y')) if plain => {
                self.confirm(turn);
                Handled::Yes
            }
            _ => Handled::No,
        }
    }

    /// Takes text that was pasted into the confirmation.
    pub fn paste(&mut self, text: &str) -> Handled {
        match &mut self.stage {
            Stage::Asking(_, _, confirmation) if confirmation.takes_text() => {
                confirmation.paste(text);
                Handled::Yes
            }
            Stage::Planning => {
                self.dropped += 1;
                Handled::Yes
            }
            _ => Handled::No,
        }
    }

    /// Does what a key means here.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        let page = usize::from(turn.size.1 / 2).max(1);
        match action {
            Action::Back | Action::Interrupt => return self.leave(turn),
            _ if matches!(self.stage, Stage::Planning) => self.dropped += 1,
            Action::Up => self.scroll = self.scroll.saturating_sub(1),
            Action::Down => self.scroll += 1,
            Action::PageUp | Action::HalfPageUp => self.scroll = self.scroll.saturating_sub(page),
            Action::PageDown | Action::HalfPageDown => self.scroll += page,
            Action::Top => self.scroll = 0,
            Action::Bottom => self.scroll = usize::MAX / 2,
            Action::CopyCommand | Action::Copy => {
                let line = self.order.command_line(self.reason.as_deref());
                let line = turn.ground.aimed(line);
                turn.effects.push(Effect::Copy(line));
                turn.say(Level::Info, "the command line is on the clipboard");
            }
            Action::Confirm | Action::Open => match &mut self.stage {
                Stage::Asking(_, _, confirmation) => {
                    // The default is Cancel: only what was typed, or the button that was chosen, applies.
                    match confirmation.takes_text() || confirmation.apply {
                        true => self.confirm(turn),
                        false => turn.wishes.push(Wish::Close),
                    }
                }
                Stage::Refused(_) | Stage::Applied(..) => return self.leave(turn),
                Stage::Planning | Stage::Applying(..) => {}
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
            Action::Undo => return self.undo(turn),
            Action::Diff => self.differences(turn),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Leaves the screen; what was applied goes on.
    fn leave(&mut self, turn: &mut Turn<'_>) -> Handled {
        if let Stage::Asking(_, _, confirmation) = &mut self.stage
            && confirmation.editor
            && !confirmation.demand.is_key()
        {
            confirmation.editor = false;
            return Handled::Yes;
        }
        if matches!(self.stage, Stage::Planning | Stage::Asking(..)) {
            turn.effects.push(Effect::Cancel(self.ticket));
        }
        turn.wishes.push(Wish::Close);
        Handled::Yes
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
                Shown::Rendering => "what changes is still being rendered",
                Shown::Failed(_) => "what changes cannot be rendered",
                Shown::Diffs(_) => "this changes no object in an environment",
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
                "what runs now".to_owned(),
                format!("what the plan brings to {} components", items.len()),
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
    fn undo(&mut self, turn: &mut Turn<'_>) -> Handled {
        let Stage::Applied(_, _, outcome) = &self.stage else {
            turn.say(Level::Info, "nothing was done here that could be undone");
            return Handled::Yes;
        };
        let place = match &self.order {
            Order::Move(order) => order.place(),
            Order::Mark(_) | Order::Collect(_) => None,
        };
        let (Some((component, environment)), true) = (place, outcome.can_be_undone()) else {
            turn.say(Level::Info, "only a change of one pin is undone");
            return Handled::Yes;
        };
        let mut rolling = outcome.rolling.iter();
        if let Some(why) = rolling.find_map(|(pin, at)| tasks::overtaken(turn.world, pin, *at)) {
            turn.say(Level::Warning, why);
            return Handled::Yes;
        }
        let undo = Undo {
            component: component.to_owned(),
            environment: environment.to_owned(),
        };
        turn.wishes.push(Wish::Close);
        turn.wishes
            .push(Wish::Order(Order::Move(desk::Order::Undo(undo))));
        Handled::Yes
    }

    /// Says why the plan cannot be applied, whatever is typed.
    pub(super) fn obstacle(&self, turn_unwritable: Option<&str>) -> Option<String> {
        let Stage::Asking(prepared, shown, confirmation) = &self.stage else {
            return None;
        };
        if let Some(why) = turn_unwritable {
            return Some(format!("read-only: {why}"));
        }
        if is_idle(prepared) {
            let words = match **prepared {
                Prepared::Collection(_) => "nothing can go: all of it is needed, new or young",
                Prepared::Moves(_) | Prepared::Mark(_) => {
                    "there is nothing to do: it is so already"
                }
            };
            return Some(words.to_owned());
        }
        if self
            .files
            .as_ref()
            .is_some_and(|files| files.edits.is_empty())
        {
            return Some("there is nothing to do: no file would change".to_owned());
        }
        match shown {
            Shown::Failed(why) => Some(why.clone()),
            Shown::Rendering if confirmation.demand.shown => {
                Some("what changes is still being rendered".to_owned())
            }
            Shown::Rendering | Shown::Diffs(_) => None,
        }
    }

    fn confirm(&mut self, turn: &mut Turn<'_>) {
        // A typed confirmation arms a protected context for this plan alone.
        let unwritable = match turn.ground.protected {
            true => None,
            false => turn.ground.unwritable(turn.now),
        };
        let obstacle = self.obstacle(unwritable);
        let Stage::Asking(_, _, confirmation) = &mut self.stage else {
            return;
        };
        if let Some(obstacle) = obstacle {
            confirmation.complaint = Some(obstacle);
            return;
        }
        let Some(reason) = confirmation.accept() else {
            return;
        };
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
            state: tasks::State::Applying,
        })));
        self.stage = Stage::Applying(prepared, shown);
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
                let mut demand = Demand::of(&prepared, turn.world);
                if turn.ground.protected && turn.ground.unwritable(turn.now).is_some() {
                    demand.on_protected(&turn.ground.target);
                }
                let confirmation = Confirmation::new(demand);
                let shown = match *prepared {
                    Prepared::Moves(_) => Shown::Rendering,
                    Prepared::Mark(_) | Prepared::Collection(_) => Shown::Diffs(Vec::new()),
                };
                self.stage = Stage::Asking(prepared, shown, Box::new(confirmation));
            }
            Answer::Planned(Err(refused)) => self.stage = Stage::Refused(refused),
            Answer::Shown(rendered) => {
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
