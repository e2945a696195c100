//! The revisions screen: a list of revisions with release, time, user, reason and outcome.
//!
//! The user can compare two marked revisions, and roll back to any revision.

use std::sync::Arc;

use jiff::Timestamp;

use super::history::History;
use super::{Handled, Scene};
use crate::action::Action;
use crate::effect::{Answer, CellKey, Ticket};
use crate::engine::world::feed::Touched;
use crate::model::{Subject, Turn};
use crate::pen::Sheet;
use crate::theme::Role;
use crate::widgets::wrap;

/// The number of rows of the lower pane, which describes the selected revision.
const DETAIL: u16 = 8;

#[derive(Debug)]
pub struct State {
    history: History,
    closed: bool,
    /// The past time from which the user opened the screen, and the revision at that time. None if
    /// the user opened it from the present.
    past: Option<(Timestamp, i64)>,
}

impl State {
    /// Opens the revisions of a cell, and requests them.
    pub fn open(place: CellKey, turn: &mut Turn<'_>) -> Self {
        Self {
            history: History::open(place, turn),
            closed: false,
            past: None,
        }
    }

    /// Selects the revision that was current at a past time, and shows this time above the list.
    pub fn at_past(mut self, at: Timestamp, revision: i64) -> Self {
        self.history.select_revision(revision);
        self.past = Some((at, revision));
        self
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    pub fn title(&self) -> String {
        "revisions".to_owned()
    }

    pub fn subject(&self) -> Subject {
        let place = &self.history.place;
        Subject {
            components: vec![Arc::clone(&place.component)],
            environment: Some(Arc::clone(&place.environment)),
            release: None,
        }
    }

    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        if self.history.concerns(touched) {
            self.history.ask(turn);
        }
    }

    pub fn answer(&mut self, ticket: Ticket, answer: Answer, _: &mut Turn<'_>) -> Option<Answer> {
        self.history.answer(ticket, answer)
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        match action {
            Action::Pane => {
                self.closed = !self.closed;
                Handled::Yes
            }
            action => self.history.act(action, turn),
        }
    }

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
        let mut top = 1;
        let width = usize::from(sheet.width().saturating_sub(2));
        let record = self.history.record().map(|record| wrap(record, width));
        for line in record.into_iter().flatten() {
            sheet.line(top).skip(1).put(&line, Role::Muted);
            top += 1;
        }
        let height = sheet.height();
        top += u16::from(height > 12);
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
