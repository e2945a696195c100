//! The revisions of a pin as a list: what it was, since when, by whom and why, and what became of it.
//!
//! Two that are marked are compared; any can be gone back to.

use std::sync::Arc;

use super::history::History;
use super::{Handled, Scene};
use crate::engine::world::Source;
use crate::engine::world::feed::Touched;
use crate::tui::action::Action;
use crate::tui::effect::{Answer, Place, Ticket};
use crate::tui::model::{Subject, Turn};
use crate::tui::pen::Sheet;
use crate::tui::theme::Role;

/// How high the part below is that explains the selected one.
const DETAIL: u16 = 8;

/// The revisions of a pin.
#[derive(Debug)]
pub struct State {
    history: History,
    /// Whether the part below is closed.
    closed: bool,
}

impl State {
    /// Opens the revisions of a pin, and asks for them.
    pub fn open(place: Place, turn: &mut Turn<'_>) -> Self {
        Self {
            history: History::open(place, turn),
            closed: false,
        }
    }

    /// Returns the revisions that it lists.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the revisions that it lists, to filter them.
    pub fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    /// Returns what the trail calls it.
    pub fn title(&self) -> String {
        "revisions".to_owned()
    }

    /// Returns what an action would be done to.
    pub fn subject(&self) -> Subject {
        let place = &self.history.place;
        Subject {
            components: vec![Arc::clone(&place.component)],
            environment: Some(Arc::clone(&place.environment)),
            release: None,
        }
    }

    /// Follows what changed in the read model.
    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        if touched.iter().any(|one| one.source == Source::Pins) {
            self.history.ask(turn);
        }
    }

    /// Takes what a request brought.
    pub fn answer(&mut self, ticket: Ticket, answer: Answer, _: &mut Turn<'_>) -> Option<Answer> {
        self.history.answer(ticket, answer)
    }

    /// Does what a key means here.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        match action {
            Action::Pane => {
                self.closed = !self.closed;
                Handled::Yes
            }
            action => self.history.act(action, turn),
        }
    }

    /// Draws it.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let place = &self.history.place;
        sheet
            .line(0)
            .skip(1)
            .put(&place.component, Role::Title)
            .put(" in ", Role::Muted)
            .put(&place.environment, Role::Title);
        let (height, top) = (sheet.height(), 1 + u16::from(sheet.height() > 12));
        let detail = match self.closed || height < 16 {
            true => 0,
            false => DETAIL,
        };
        let list = height.saturating_sub(top + detail);
        self.history.view(&mut sheet.rows(top, list), scene);
        if detail > 0 {
            self.history.detail(&mut sheet.rows(top + list, detail));
        }
    }
}

#[cfg(test)]
mod tests;
