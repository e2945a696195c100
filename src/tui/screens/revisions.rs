//! The revisions of a subject as a list: release, time, user, reason and outcome.
//!
//! The user can compare two marked revisions and roll back to any revision.

use std::sync::Arc;

use jiff::Timestamp;

use super::history::History;
use super::{Handled, Scene};
use crate::engine::world::feed::Touched;
use crate::tui::action::Action;
use crate::tui::effect::{Answer, CellKey, Ticket};
use crate::tui::model::{Subject, Turn};
use crate::tui::pen::Sheet;
use crate::tui::theme::Role;

/// The height of the lower pane, which explains the selected revision.
const DETAIL: u16 = 8;

/// The revisions of a ReleasePin.
#[derive(Debug)]
pub struct State {
    history: History,
    /// Whether the lower pane is closed.
    closed: bool,
    /// The past time from which the list was opened, and the revision at that time.
    past: Option<(Timestamp, i64)>,
}

impl State {
    /// Opens the revisions of a ReleasePin, and requests them.
    pub fn open(place: CellKey, turn: &mut Turn<'_>) -> Self {
        Self {
            history: History::open(place, turn),
            closed: false,
            past: None,
        }
    }

    /// Selects the revision of a past time, and names the time above the list.
    pub fn at_past(mut self, at: Timestamp, revision: i64) -> Self {
        self.history.select_revision(revision);
        self.past = Some((at, revision));
        self
    }

    /// Returns the listed revisions.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the listed revisions, to filter them.
    pub fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    /// Returns the title in the path of open screens.
    pub fn title(&self) -> String {
        "revisions".to_owned()
    }

    /// Returns the objects that an action applies to.
    pub fn subject(&self) -> Subject {
        let place = &self.history.place;
        Subject {
            components: vec![Arc::clone(&place.component)],
            environment: Some(Arc::clone(&place.environment)),
            release: None,
        }
    }

    /// Updates the screen after changes in the read model.
    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        if self.history.concerns(touched) {
            self.history.ask(turn);
        }
    }

    /// Handles the answer to a request; returns the answer if this screen did not request it.
    pub fn answer(&mut self, ticket: Ticket, answer: Answer, _: &mut Turn<'_>) -> Option<Answer> {
        self.history.answer(ticket, answer)
    }

    /// Handles an action on this screen.
    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        match action {
            Action::Pane => {
                self.closed = !self.closed;
                Handled::Yes
            }
            action => self.history.act(action, turn),
        }
    }

    /// Draws the screen.
    pub fn view(&self, sheet: &mut Sheet<'_>, scene: &Scene<'_>) {
        let place = &self.history.place;
        let then = self.past.map(|(at, revision)| {
            let at = scene.model.target_info.clock(at, sheet.now);
            format!("  at {at} it was at revision {revision}; the list continues to the present")
        });
        sheet
            .line(0)
            .skip(1)
            .put(&place.component, Role::Title)
            .put(" in ", Role::Muted)
            .put(&place.environment, Role::Title)
            .put(then.as_deref().unwrap_or_default(), Role::AsOf);
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
