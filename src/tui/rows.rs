//! A list of rows that a screen replaces as a whole, for example lines of a log, audit entries, contexts.
//!
//! Use it for short lists and for lists that are read once. For rows that watches change one by one, use a
//! [`super::roster::RowSet`].

use std::cell::Cell;

use super::action::Action;
use super::filter::{Facts, Filter, Matcher};
use super::screens::Handled;
use super::widgets::scrolled;

#[derive(Debug)]
pub struct Row<T> {
    /// The id of the row. After all rows are replaced, the selection finds its row by this id.
    pub id: String,
    /// The facts of the row that the filter checks.
    pub facts: Facts,
    pub item: T,
}

/// Rows with a filter and a selected row.
pub struct Rows<T> {
    all: Vec<Row<T>>,
    /// The indexes in `all` of the rows that match the filter.
    shown: Vec<usize>,
    /// The index in `shown` of the selected row.
    at: usize,
    filter: Filter,
    /// The first visible row of the last frame. Drawing starts from this row again, because the window must not
    /// scroll while the selected row is visible.
    first: Cell<usize>,
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            shown: Vec::new(),
            at: 0,
            filter: Filter::default(),
            first: Cell::new(0),
        }
    }
}

impl<T> std::fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (shown, all) = (self.shown.len(), self.all.len());
        write!(f, "{} of {shown} rows, {all} in all", self.at)
    }
}

impl<T> Rows<T> {
    /// Replaces all rows. The selection stays on the row with the same id, if this row still exists.
    pub fn replace(&mut self, all: Vec<Row<T>>) {
        let selected = self.selected_row().map(|row| row.id.clone());
        self.all = all;
        self.sift();
        if let Some(id) = selected {
            self.select(&id);
        }
    }

    /// Returns the number of all rows, including rows that the filter hides.
    pub fn total(&self) -> usize {
        self.all.len()
    }

    pub fn len(&self) -> usize {
        self.shown.len()
    }

    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Returns the rows that match the filter, in order.
    pub fn shown(&self) -> impl DoubleEndedIterator<Item = &T> {
        let shown = self.shown.iter();
        shown.filter_map(|at| self.all.get(*at).map(|row| &row.item))
    }

    /// Returns all rows in order, including rows that the filter hides.
    pub fn all(&self) -> impl Iterator<Item = &T> {
        self.all.iter().map(|row| &row.item)
    }

    fn selected_row(&self) -> Option<&Row<T>> {
        self.all.get(*self.shown.get(self.at)?)
    }

    pub fn selected(&self) -> Option<&T> {
        self.selected_row().map(|row| &row.item)
    }

    /// Selects the row with this id; returns false if no shown row has this id.
    pub fn select(&mut self, id: &str) -> bool {
        let found = self
            .shown
            .iter()
            .position(|at| self.all.get(*at).is_some_and(|row| row.id == id));
        self.at = found.unwrap_or(self.at).min(self.last());
        found.is_some()
    }

    /// Moves the selection down by `rows`, up if negative; stops at the first and the last row.
    pub fn step(&mut self, rows: isize) {
        self.at = self.at.saturating_add_signed(rows).min(self.last());
    }

    fn last(&self) -> usize {
        self.shown.len().saturating_sub(1)
    }

    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Sets the filter. The selected row stays selected if the new filter shows it.
    pub fn set_filter(&mut self, filter: Filter) {
        let selected = self.selected_row().map(|row| row.id.clone());
        self.filter = filter;
        self.sift();
        if let Some(id) = selected {
            self.select(&id);
        }
    }

    fn sift(&mut self) {
        let matcher = Matcher::new(&self.filter, &[]);
        let rows = self.all.iter().enumerate();
        let kept = rows.filter(|(_, row)| matcher.keeps(&row.facts, false));
        self.shown = kept.map(|(at, _)| at).collect();
        self.at = self.at.min(self.last());
    }

    /// Handles the actions that move the selection, and the action `back`, which removes the filter.
    pub fn act(&mut self, action: Action, page: isize) -> Handled {
        match action {
            Action::Up => self.step(-1),
            Action::Down => self.step(1),
            Action::PageUp => self.step(-page),
            Action::PageDown => self.step(page),
            Action::HalfPageUp => self.step(-(page / 2).max(1)),
            Action::HalfPageDown => self.step((page / 2).max(1)),
            Action::Top => self.at = 0,
            Action::Bottom => self.at = self.last(),
            Action::Back if !self.filter.is_empty() => self.set_filter(Filter::default()),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    /// Returns the rows that a window of `height` lines shows, and the position of the first of them. The flag is
    /// true for the selected row.
    pub fn window(&self, height: usize) -> (usize, Vec<(bool, &T)>) {
        let first = scrolled(self.first.get(), self.at, height, self.shown.len());
        self.first.set(first);
        let seen = self.shown.iter().enumerate().skip(first).take(height);
        let seen = seen.filter_map(|(number, at)| {
            let row = self.all.get(*at)?;
            Some((number == self.at, &row.item))
        });
        (first, seen.collect())
    }
}

/// Returns the number of rows by which a page key moves, for a terminal of this size (columns and
/// rows).
pub fn page(size: (u16, u16)) -> isize {
    isize::try_from(usize::from(size.1).saturating_sub(6).max(1)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::read;

    fn rows(names: &[&str]) -> Vec<Row<String>> {
        let row = |name: &&str| Row {
            id: (*name).to_owned(),
            facts: Facts::of_texts([*name]),
            item: (*name).to_owned(),
        };
        names.iter().map(row).collect()
    }

    #[test]
    fn the_selection_follows_what_is_selected() {
        let mut list = Rows::default();
        list.replace(rows(&["ape", "bee", "cat", "dog"]));
        list.step(2);
        list.replace(rows(&["ant", "ape", "bee", "cat", "dog"]));
        assert_eq!(list.selected().unwrap(), "cat");
        list.set_filter(read("a").filter);
        assert_eq!((list.len(), list.total()), (3, 5));
        assert_eq!(list.selected().unwrap(), "cat");
        list.set_filter(read("!a").filter);
        assert!(["bee", "dog"].contains(&list.selected().unwrap().as_str()));
        assert_eq!(list.act(Action::Back, 3), Handled::Yes);
        assert_eq!(list.act(Action::Back, 3), Handled::No);
        list.act(Action::Bottom, 3);
        list.act(Action::Down, 3);
        assert_eq!(list.selected().unwrap(), "dog");
        assert_eq!(list.window(2).0, 3);
        list.step(-1);
        // The window does not scroll while the selected row is visible.
        assert_eq!(list.window(2).0, 3);
        list.replace(Vec::new());
        assert_eq!(list.selected(), None);
        list.step(5);
        assert!(list.is_empty());
    }
}
