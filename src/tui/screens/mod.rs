//! The screens. Each screen has a state, handles actions, and draws itself.
//!
//! A screen reads the read model, and sends requests to the model through its [`Turn`]. The model passes the answers
//! back to the screen. A screen uses another screen only to open it.

pub mod audit;
pub mod collect;
pub mod component;
pub mod contexts;
pub mod describe;
pub mod diff;
pub mod help;
mod history;
pub mod list;
pub mod log;
pub mod matrix;
pub mod plan;
pub mod revisions;
pub mod since;
pub mod tasks;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crossterm::event::KeyEvent;
use jiff::Timestamp;

use super::action::{Action, Mode};
use super::effect::{Answer, Comparison, Ticket};
use super::filter::Filter;
use super::model::{Subject, Turn};
use super::pen::Sheet;
use super::roster::RowSet;
use super::theme::Role;
use crate::api::openchoreo::release::Verdict;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, World};

/// An open screen with its state. Each method of this type calls the method of the same name of the state.
#[derive(Debug)]
pub enum Screen {
    /// The matrix of components and environments.
    Matrix(Box<matrix::State>),
    /// The plan for a command, and its confirmation.
    Plan(Box<plan::State>),
    /// A list of releases, ReleasePins or snapshots.
    List(Box<list::State>),
    /// One object as YAML.
    Describe(Box<describe::State>),
    /// The releases and snapshots, and whether gc can delete them.
    Collect(Box<collect::State>),
    Audit(Box<audit::State>),
    /// One audit entry.
    Entry(Box<audit::entry::State>),
    /// The tasks (confirmed plans).
    Tasks(Box<tasks::State>),
    Log(Box<log::State>),
    /// The contexts and namespaces to switch to.
    Contexts(Box<contexts::State>),
    /// The help for keys and commands.
    Help(Box<help::State>),
    Diff(Box<diff::State>),
    /// One component in all its environments.
    Component(Box<component::State>),
    /// The revisions of a ReleasePin or workload.
    Revisions(Box<revisions::State>),
    /// The changes around the start of an incident.
    Since(Box<since::State>),
}

/// Whether a screen handled an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    Yes,
    /// The screen ignored the input, so the model handles it as on every other screen.
    No,
}

impl Screen {
    /// Returns the title of the screen for the line with the titles of all open screens.
    pub fn title(&self) -> String {
        match self {
            Self::Matrix(state) => state.title(),
            Self::Plan(state) => state.command.verb().to_owned(),
            Self::List(state) => state.title().to_owned(),
            Self::Describe(state) => state.title(),
            Self::Collect(_) => "gc".to_owned(),
            Self::Audit(_) => "audit".to_owned(),
            Self::Entry(state) => state.title(),
            Self::Tasks(_) => "tasks".to_owned(),
            Self::Log(_) => "command log".to_owned(),
            Self::Contexts(_) => "contexts".to_owned(),
            Self::Help(_) => "help".to_owned(),
            Self::Diff(_) => "diff".to_owned(),
            Self::Component(state) => state.title(),
            Self::Revisions(state) => state.title(),
            Self::Since(_) => "since".to_owned(),
        }
    }

    /// Returns the modes in which bowline looks up the keys of the screen, in this order.
    pub fn modes(&self) -> &'static [Mode] {
        match self {
            Self::Matrix(_) => &[Mode::Matrix, Mode::List, Mode::Global],
            Self::Plan(state) => state.modes(),
            Self::Describe(_) => &[Mode::Diff, Mode::List, Mode::Global],
            // Keys that type text come first, because they extend the search. All other keys do the same as on every
            // screen.
            Self::Help(_) => &[Mode::Text, Mode::Global],
            Self::Diff(_) => &[Mode::Diff, Mode::Global],
            Self::List(_)
            | Self::Component(_)
            | Self::Revisions(_)
            | Self::Since(_)
            | Self::Collect(_)
            | Self::Audit(_)
            | Self::Entry(_)
            | Self::Tasks(_)
            | Self::Log(_)
            | Self::Contexts(_) => &[Mode::List, Mode::Global],
        }
    }

    /// Returns whether an action of the screen's modes has no effect on this screen, so that the help omits the
    /// action.
    pub fn lacks(&self, action: Action) -> bool {
        match action {
            Action::Columns => !matches!(self, Self::List(_)),
            _ => false,
        }
    }

    /// Returns the actions that the footer shows, each with its label, the most important first.
    pub fn hints(&self) -> Cow<'static, [(Action, &'static str)]> {
        let hints: &'static [(Action, &'static str)] = match self {
            // A plan is possible only in the present, so the footer of a past time lists other keys.
            Self::Matrix(state) if state.as_of().is_some() => &[
                (Action::StepBack, "previous change"),
                (Action::StepForth, "next change"),
                (Action::Live, "present"),
                (Action::Diff, "diff"),
                (Action::Open, "revisions"),
                (Action::Filter, "filter"),
                (Action::Command, "command"),
                (Action::Help, "help"),
            ],
            Self::Matrix(_) => &[
                (Action::Promote, "promote"),
                (Action::Rollback, "rollback"),
                (Action::Hold, "pin"),
                (Action::Diff, "diff"),
                (Action::Open, "open"),
                (Action::Mark, "mark"),
                (Action::Filter, "filter"),
                (Action::Command, "command"),
                (Action::TimeTravel, "time"),
                (Action::Help, "help"),
            ],
            Self::Plan(state) => return Cow::Owned(state.hints()),
            Self::List(_) => &[
                (Action::Open, "open"),
                (Action::Promote, "promote"),
                (Action::Rollback, "rollback"),
                (Action::Hold, "pin"),
                (Action::MarkBad, "mark bad"),
                (Action::Mark, "mark"),
                (Action::Filter, "filter"),
                (Action::Sort, "sort"),
                (Action::Columns, "columns"),
                (Action::Help, "help"),
            ],
            Self::Describe(_) => &[
                (Action::Filter, "find"),
                (Action::NextHunk, "next"),
                (Action::Copy, "copy"),
                (Action::CopyCommand, "copy the command"),
                (Action::Back, "back"),
                (Action::Help, "help"),
            ],
            Self::Collect(_) => &[
                (Action::Collect, "delete"),
                (Action::FaultsOnly, "only deletable"),
                (Action::Open, "open"),
                (Action::Filter, "filter"),
                (Action::Sort, "sort"),
                (Action::Help, "help"),
            ],
            Self::Audit(_) => &[
                (Action::Open, "open"),
                (Action::Diff, "its changes"),
                (Action::Filter, "filter"),
                (Action::NextFault, "broken chains"),
                (Action::Command, "command"),
                (Action::Help, "help"),
            ],
            Self::Entry(_) => &[
                (Action::Left, "previous entry"),
                (Action::Right, "next entry"),
                (Action::Diff, "its changes"),
                (Action::Open, "as YAML"),
                (Action::Back, "back"),
                (Action::Help, "help"),
            ],
            Self::Tasks(_) => &[
                (Action::Undo, "undo"),
                (Action::Interrupt, "stop"),
                (Action::CopyCommand, "copy the command"),
                (Action::Back, "back"),
                (Action::Help, "help"),
            ],
            Self::Log(_) => &[
                (Action::Copy, "copy bowline command"),
                (Action::CopyCommand, "copy kubectl command"),
                (Action::Filter, "filter"),
                (Action::Back, "back"),
                (Action::Help, "help"),
            ],
            Self::Contexts(_) => &[
                (Action::Open, "switch"),
                (Action::Filter, "filter"),
                (Action::Back, "back"),
                (Action::Help, "help"),
            ],
            Self::Diff(_) => &[
                (Action::NextHunk, "next hunk"),
                (Action::PreviousHunk, "previous hunk"),
                (Action::NextObject, "object"),
                (Action::Fold, "fold"),
                (Action::Layout, "layout"),
                (Action::Noise, "noise"),
                (Action::Copy, "copy"),
                (Action::Back, "back"),
                (Action::Help, "help"),
            ],
            Self::Revisions(_) | Self::Component(_) => &[
                (Action::Rollback, "roll back to this"),
                (Action::Diff, "diff"),
                (Action::Promote, "promote"),
                (Action::Hold, "pin"),
                (Action::MarkBad, "mark bad"),
                (Action::Mark, "mark"),
                (Action::Back, "back"),
                (Action::Command, "command"),
                (Action::Help, "help"),
            ],
            Self::Since(_) => &[
                (Action::Open, "open"),
                (Action::Diff, "diff"),
                (Action::Rollback, "rollback"),
                (Action::Hold, "pin"),
                (Action::Back, "back"),
                (Action::Help, "help"),
            ],
            Self::Help(_) => &[(Action::Confirm, "run it"), (Action::Back, "back")],
        };
        Cow::Borrowed(hints)
    }

    /// Returns the totals (text and role) of the screen. The frame draws them to the right of the titles of the open
    /// screens.
    pub fn totals(&self, scene: &Scene<'_>) -> Vec<(String, Role)> {
        match self {
            Self::Matrix(state) => state.totals(),
            Self::List(state) => state.totals(scene.world),
            Self::Describe(state) => state.totals(),
            Self::Collect(state) => state.totals(),
            Self::Audit(state) => state.totals(),
            Self::Tasks(_) => tasks::State::totals(&scene.model.tasks, scene.world),
            Self::Contexts(state) => state.totals(),
            Self::Since(state) => state.totals(),
            Self::Help(state) => state.totals(),
            _ => Vec::new(),
        }
    }

    /// Returns the filter of the rows; None if the screen has no filter.
    pub fn filter(&self) -> Option<&Filter> {
        match self {
            Self::Matrix(state) => state.roster().map(RowSet::filter),
            Self::List(state) => Some(state.roster().filter()),
            Self::Describe(state) => Some(state.filter()),
            Self::Collect(state) => Some(state.filter()),
            Self::Audit(state) => Some(state.filter()),
            Self::Contexts(state) => Some(state.filter()),
            Self::Log(state) => Some(state.filter()),
            Self::Since(state) => Some(state.filter()),
            Self::Component(state) => Some(state.history().filter()),
            Self::Revisions(state) => Some(state.history().filter()),
            Self::Plan(_) | Self::Entry(_) | Self::Tasks(_) | Self::Help(_) | Self::Diff(_) => None,
        }
    }

    /// Returns whether the filter accepts only words and regular expressions, because the rows have no cells.
    pub fn filters_text(&self) -> bool {
        !matches!(self, Self::Matrix(_) | Self::List(_))
    }

    /// Sets the filter of the rows. Does nothing if the screen has no filter.
    pub fn set_filter(&mut self, filter: Filter) {
        match self {
            Self::Matrix(state) => {
                if let Some(roster) = state.roster_mut() {
                    roster.set_filter(filter);
                }
            }
            Self::List(state) => state.roster_mut().set_filter(filter),
            Self::Describe(state) => state.set_filter(filter),
            Self::Collect(state) => state.set_filter(filter),
            Self::Audit(state) => state.set_filter(filter),
            Self::Contexts(state) => state.set_filter(filter),
            Self::Log(state) => state.set_filter(filter),
            Self::Since(state) => state.set_filter(filter),
            Self::Component(state) => state.history_mut().set_filter(filter),
            Self::Revisions(state) => state.history_mut().set_filter(filter),
            Self::Plan(_) | Self::Entry(_) | Self::Tasks(_) | Self::Help(_) | Self::Diff(_) => {}
        }
    }

    /// Returns the number of rows that match the filter; None if the screen does not count them.
    pub fn shown(&self) -> Option<usize> {
        match self {
            Self::Matrix(state) => state.roster().map(RowSet::len),
            Self::List(state) => Some(state.roster().len()),
            _ => None,
        }
    }

    /// Returns the past time that the screen shows; None if it shows the present.
    pub fn as_of(&self) -> Option<Timestamp> {
        match self {
            Self::Matrix(state) => state.as_of(),
            Self::Diff(state) => state.as_of(),
            _ => None,
        }
    }

    /// Returns the comparison that the diff key makes for the selected audit entry. None on other screens, or if the
    /// entry has no revisions to compare.
    pub fn comparison(&self) -> Option<Comparison> {
        match self {
            Self::Audit(state) => state.comparison(),
            Self::Entry(state) => state.comparison(),
            _ => None,
        }
    }

    /// Handles an action on the screen.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        match self {
            Self::Matrix(state) => state.act(action, turn),
            Self::Plan(state) => state.act(action, turn),
            Self::List(state) => state.act(action, turn),
            Self::Describe(state) => state.act(action, turn),
            Self::Collect(state) => state.act(action, turn),
            Self::Audit(state) => state.act(action, turn),
            Self::Entry(state) => state.act(action, turn),
            Self::Tasks(state) => state.act(action, turn),
            Self::Log(state) => state.act(action, turn),
            Self::Contexts(state) => state.act(action, turn),
            Self::Help(state) => state.act(action, turn),
            Self::Diff(state) => state.act(action, turn),
            Self::Component(state) => state.act(action, turn),
            Self::Revisions(state) => state.act(action, turn),
            Self::Since(state) => state.act(action, turn),
        }
    }

    /// Handles a key press that types text. The model calls this before it looks up the key in the keymap.
    pub fn key(&mut self, key: KeyEvent, turn: &mut Turn<'_>) -> Handled {
        match self {
            Self::Plan(state) => state.key(key, turn),
            Self::Help(state) => state.key(key),
            _ => Handled::No,
        }
    }

    /// Inserts pasted text. Does nothing if the screen has no text field.
    pub fn paste(&mut self, text: &str) -> Handled {
        match self {
            Self::Plan(state) => state.paste(text),
            Self::Help(state) => state.paste(text),
            _ => Handled::No,
        }
    }

    /// Handles the answer to a request of this screen. Returns the answer unchanged if another screen requested it.
    pub fn answer(
        &mut self,
        ticket: Ticket,
        answer: Answer,
        turn: &mut Turn<'_>,
    ) -> Option<Answer> {
        match self {
            Self::Matrix(state) => state.answer(ticket, answer, turn),
            Self::Plan(state) => state.answer(ticket, answer, turn),
            Self::Describe(state) => state.answer(ticket, answer),
            Self::Audit(state) => state.answer(ticket, answer, turn),
            Self::Contexts(state) => state.answer(ticket, answer, turn),
            Self::Diff(state) => state.answer(ticket, answer, turn),
            Self::Component(state) => state.answer(ticket, answer, turn),
            Self::Revisions(state) => state.answer(ticket, answer, turn),
            Self::Since(state) => state.answer(ticket, answer, turn),
            _ => Some(answer),
        }
    }

    /// Updates the screen after these objects of the read model changed. An empty slice means that every object may
    /// have changed.
    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        match self {
            Self::Matrix(state) => state.touched(touched, turn),
            Self::Plan(state) => state.touched(touched, turn),
            Self::List(state) => state.touched(touched, turn),
            Self::Collect(state) => state.touched(touched, turn),
            Self::Audit(state) => state.touched(touched, turn),
            Self::Component(state) => state.touched(touched, turn),
            Self::Revisions(state) => state.touched(touched, turn),
            _ => {}
        }
    }

    /// Updates the screen after time has passed, for example because a hold expired.
    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        match self {
            Self::Matrix(state) => state.tick(turn),
            Self::Plan(state) => state.tick(turn),
            Self::List(state) => state.tick(turn),
            Self::Collect(state) => state.tick(turn),
            Self::Audit(state) => state.tick(turn),
            _ => {}
        }
    }

    /// Updates the screen after the terminal changed its size.
    pub fn resized(&mut self, size: (u16, u16)) {
        match self {
            Self::Diff(state) => state.resized(size),
            Self::Plan(state) => state.resized(),
            _ => {}
        }
    }

    /// Returns the selection that an action applies to: the marked rows, or else the selected row.
    pub fn subject(&self, world: &World) -> Subject {
        match self {
            Self::Matrix(state) => state.subject(),
            Self::Plan(state) => state.subject(),
            Self::List(state) => state.subject(world),
            Self::Describe(state) => state.subject(world),
            Self::Collect(state) => state.subject(),
            Self::Audit(state) => state.subject(),
            Self::Entry(state) => state.subject(),
            Self::Tasks(state) => state.subject(),
            Self::Log(_) | Self::Contexts(_) | Self::Help(_) => Subject::default(),
            Self::Diff(state) => state.subject(),
            Self::Component(state) => state.subject(),
            Self::Revisions(state) => state.subject(),
            Self::Since(state) => state.subject(),
        }
    }

    /// Draws the screen.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        match self {
            Self::Matrix(state) => state.view(sheet, scene),
            Self::Plan(state) => state.view(sheet, scene),
            Self::List(state) => state.view(sheet, scene),
            Self::Describe(state) => state.view(sheet, scene),
            Self::Collect(state) => state.view(sheet, scene),
            Self::Audit(state) => state.view(sheet, scene),
            Self::Entry(state) => state.view(sheet, scene),
            Self::Tasks(state) => state.view(sheet, scene),
            Self::Log(state) => state.view(sheet, scene),
            Self::Contexts(state) => state.view(sheet, scene),
            Self::Help(state) => state.view(sheet, scene),
            Self::Diff(state) => state.view(sheet, scene),
            Self::Component(state) => state.view(sheet, scene),
            Self::Revisions(state) => state.view(sheet, scene),
            Self::Since(state) => state.view(sheet, scene),
        }
    }
}

/// The label that all lists show after the name of a release that is marked bad.
pub(crate) const BAD: &str = "bad";

/// Returns whether a release is marked bad.
pub(crate) fn is_bad(world: &World, namespace: &str, release: &str) -> bool {
    let row = world.release(&Key::new(namespace, release));
    row.is_some_and(|row| row.mark == Some(Verdict::Bad))
}

/// The data from which a screen draws itself.
pub struct Scene<'a> {
    pub world: &'a World,
    pub model: &'a super::model::Model,
}

impl Scene<'_> {
    /// Returns the keys that run an action on the front screen, as text for a message.
    pub fn keys(&self, action: Action) -> String {
        let modes = self.model.front().modes();
        self.model.look.keymap.keys_or_word(modes, action)
    }

    /// Returns the message that the filter hides all rows, with the key that removes the filter.
    pub fn no_match(&self) -> String {
        let keys = self.keys(Action::Back);
        format!("no row matches the filter; {keys} clears it")
    }
}
