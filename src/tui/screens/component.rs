//! The component screen: the release of a component in each environment, and the revisions in the
//! selected environment.
//!
//! Left and right select an environment, up and down select a revision.

mod view;

use std::sync::Arc;

use super::Handled;
use super::history::History;
use crate::action::Action;
use crate::effect::{Answer, CellKey, Ticket};
use crate::engine::world::feed::Touched;
use crate::engine::world::{Key, Source};
use crate::model::{Subject, Turn};
use crate::subjects::release_pin::matrix::Columns;

#[derive(Debug)]
pub struct State {
    component: Key,
    columns: Columns,
    column: usize,
    history: History,
}

impl State {
    /// Opens a component with this environment selected. If `environment` is None, selects the first environment in
    /// which the component is deployed.
    pub fn open(component: Arc<str>, environment: Option<Arc<str>>, turn: &mut Turn<'_>) -> Self {
        let namespace = &turn.target_info.namespace;
        let columns = Columns::of(turn.world, Some(namespace));
        let key = Key::new(namespace, &component);
        let deployed = || {
            let mut names = columns.names().iter();
            names.position(|name| turn.world.pin_of(&key, name).is_some())
        };
        let column = environment
            .and_then(|name| columns.position(&name))
            .or_else(deployed)
            .unwrap_or_default();
        let name = columns.names().get(column).cloned();
        let place = CellKey {
            component,
            environment: name.unwrap_or_else(|| "".into()),
        };
        Self {
            component: key,
            columns,
            column,
            history: History::open(place, turn),
        }
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    pub fn history_mut(&mut self) -> &mut History {
        &mut self.history
    }

    pub fn title(&self) -> String {
        self.component.name.to_string()
    }

    pub fn subject(&self) -> Subject {
        Subject {
            components: vec![Arc::clone(&self.component.name)],
            release: None,
            environment: self.columns.names().get(self.column).cloned(),
        }
    }

    pub fn touched(&mut self, touched: &[Touched], turn: &mut Turn<'_>) {
        let is_of = |source: Source| touched.iter().any(|one| one.source == source);
        let fresh = touched.is_empty() || touched.iter().any(|one| one.key.is_none());
        if fresh || is_of(Source::ENVIRONMENTS) || is_of(Source::PIPELINES) {
            let selected = self.columns.names().get(self.column).cloned();
            self.columns = Columns::of(turn.world, Some(&turn.target_info.namespace));
            let column = selected.and_then(|name| self.columns.position(&name));
            self.go(column.unwrap_or_default(), turn);
        }
        if fresh || is_of(Source::RELEASE_PINS) {
            self.history.ask(turn);
        }
    }

    pub fn answer(&mut self, ticket: Ticket, answer: Answer, _: &mut Turn<'_>) -> Option<Answer> {
        self.history.answer(ticket, answer)
    }

    /// Selects the environment of a column, and requests the component's revisions there.
    fn go(&mut self, column: usize, turn: &mut Turn<'_>) {
        let last = self.columns.names().len().saturating_sub(1);
        self.column = column.min(last);
        let Some(environment) = self.columns.names().get(self.column) else {
            return;
        };
        if self.history.place.environment != *environment {
            let place = CellKey {
                component: Arc::clone(&self.component.name),
                environment: Arc::clone(environment),
            };
            self.history = History::open(place, turn);
        }
    }

    pub fn act(&mut self, action: Action, turn: &mut Turn<'_>) -> Handled {
        match action {
            Action::Left => self.go(self.column.saturating_sub(1), turn),
            Action::Right => self.go(self.column + 1, turn),
            action => return self.history.act(action, turn),
        }
        Handled::Yes
    }
}

#[cfg(test)]
mod tests;
