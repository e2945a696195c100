//! The rows of a list screen or of the matrix: sorted, filtered, counted and selected, for any number of rows.
//!
//! After a change of one object, the row set computes and moves only the rows that depend on this object. It sorts or
//! filters all rows only if the user changes the order or the filter, or if a watch lists a whole kind again. Drawing
//! reads only the visible rows.

mod follow;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::filter::{Facts, Filter, Matcher, RowSummary};
use crate::engine::world::Key;
use crate::subjects::release_pin::matrix::Columns;

/// The kind of the objects in the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Components and workloads, as in the matrix.
    Components,
    Releases,
    Pins,
    Snapshots,
}

/// The sort order of the rows. Rows that this order treats as equal are sorted by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    #[default]
    Name,
    /// Rows with the worst health come first.
    Health,
    /// Rows with the latest change come first.
    Changed,
    /// Rows that are behind by the most releases come first.
    Behind,
    /// Rows with the most held cells come first.
    Held,
    /// Rows of the largest objects come first.
    Size,
}

impl Sort {
    /// All sort orders with their names, in the order in which the sort key steps through them.
    pub const ALL: [(Sort, &'static str); 6] = [
        (Sort::Name, "name"),
        (Sort::Health, "health"),
        (Sort::Changed, "changed"),
        (Sort::Behind, "behind"),
        (Sort::Held, "held"),
        (Sort::Size, "size"),
    ];

    fn compare(self, one: &RowSummary, other: &RowSummary) -> Ordering {
        match self {
            Self::Name => Ordering::Equal,
            Self::Health => other.worst.cmp(&one.worst),
            Self::Changed => other.changed.cmp(&one.changed),
            Self::Behind => other.behind.cmp(&one.behind),
            Self::Held => other.held.cmp(&one.held),
            Self::Size => other.size.cmp(&one.size),
        }
    }
}

/// The totals over all rows, including rows that the filter hides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub rows: usize,
    /// The number of rows with a fault.
    pub degraded: usize,
    /// The number of rows with at least one progressing cell.
    pub progressing: usize,
    /// The number of rows with at least one held cell.
    pub held: usize,
    /// The number of rows with at least one cell that is behind.
    pub behind: usize,
    /// The size of the objects of all rows together, in bytes.
    pub size: usize,
}

impl Totals {
    fn count(&mut self, summary: &RowSummary, change: fn(usize, usize) -> usize) {
        let add = |total: &mut usize, counts: bool| *total = change(*total, usize::from(counts));
        add(&mut self.rows, true);
        add(&mut self.degraded, summary.worst.is_fault());
        add(&mut self.progressing, summary.progressing);
        add(&mut self.held, summary.held > 0);
        add(&mut self.behind, summary.behind > 0);
        let size = usize::try_from(summary.size).unwrap_or(usize::MAX);
        self.size = change(self.size, size);
    }
}

/// A row inside the visible window, as screens draw it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'r> {
    /// The key of the object in the row.
    pub key: &'r Key,
    pub summary: &'r RowSummary,
    pub selected: bool,
    /// Whether the user has marked the row.
    pub marked: bool,
}

/// The index of a row in `rows`. The index stays the same while the row exists.
type Slot = u32;

struct Row {
    key: Key,
    facts: Facts,
    shown: bool,
}

/// The rows of a list screen or of the matrix.
pub struct RowSet {
    kind: Kind,
    namespace: Option<Arc<str>>,
    user: String,
    columns: Columns,
    rows: Vec<Option<Row>>,
    free: Vec<Slot>,
    /// The number of rows that are workloads.
    workloads: usize,
    slots: HashMap<Key, Slot>,
    /// All rows in the sort order.
    order: Vec<Slot>,
    /// The rows that match the filter, in the sort order.
    shown: Vec<Slot>,
    sort: Sort,
    reversed: bool,
    filter: Filter,
    matcher: Matcher,
    marked: HashSet<Key>,
    totals: Totals,
    /// The times at which holds end, each with the row that has the hold.
    expiries: BTreeSet<(Timestamp, Slot)>,
    selected: Option<Key>,
}

impl RowSet {
    /// Creates a row set without rows. `user` is the name of the current user, for the filter `mine`.
    pub fn new(kind: Kind, namespace: Option<&str>, user: &str) -> Self {
        Self {
            kind,
            namespace: namespace.map(Into::into),
            user: user.to_owned(),
            columns: Columns::default(),
            rows: Vec::new(),
            free: Vec::new(),
            workloads: 0,
            slots: HashMap::new(),
            order: Vec::new(),
            shown: Vec::new(),
            sort: Sort::default(),
            reversed: false,
            filter: Filter::default(),
            matcher: Matcher::default(),
            marked: HashSet::new(),
            totals: Totals::default(),
            expiries: BTreeSet::new(),
            selected: None,
        }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Sets the name of the current user, for the filter `mine`. The rows use the new name after their next rebuild.
    pub fn set_user(&mut self, user: &str) {
        if self.user != user {
            user.clone_into(&mut self.user);
        }
    }

    /// Returns the columns of the table: the environments.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns the number of rows that match the filter.
    pub fn len(&self) -> usize {
        self.shown.len()
    }

    /// Returns whether no row matches the filter.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Returns the totals over all rows, including rows that the filter hides.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns at most `height` rows, starting with the row at position `first`. The cost does not depend on the
    /// total number of rows.
    pub fn window(&self, first: usize, height: usize) -> impl Iterator<Item = Seen<'_>> {
        let end = first.saturating_add(height).min(self.shown.len());
        let slots = self.shown.get(first..end).unwrap_or_default();
        slots.iter().filter_map(|slot| {
            let row = self.row(*slot)?;
            Some(Seen {
                key: &row.key,
                summary: &row.facts.summary,
                selected: self.selected.as_ref() == Some(&row.key),
                marked: self.is_marked(&row.key),
            })
        })
    }

    /// Returns the values by which screens sort and count the row of an object; None if the object has no row.
    pub fn summary(&self, key: &Key) -> Option<&RowSummary> {
        let slot = self.slots.get(key)?;
        self.row(*slot).map(|row| &row.facts.summary)
    }
}

/// The minimum number of rows that one thread filters; fewer rows need fewer threads.
const SHARE: usize = 8 * 1024;

/// Methods for the sort order and the filter of the rows.
impl RowSet {
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Sets the filter. If the new filter only removes rows from the shown ones, only the shown rows are checked.
    pub fn set_filter(&mut self, filter: Filter) {
        let narrows = filter.narrows(&self.filter);
        self.filter = filter;
        self.matcher = Matcher::new(&self.filter, self.columns.names());
        match narrows {
            true => self.narrow(),
            false => self.show(),
        }
        self.hand_over();
    }

    /// Returns the sort order, and whether it is reversed.
    pub fn sort(&self) -> (Sort, bool) {
        (self.sort, self.reversed)
    }

    pub fn set_sort(&mut self, sort: Sort, reversed: bool) {
        (self.sort, self.reversed) = (sort, reversed);
        self.arrange();
    }

    /// Sorts all rows again, and updates the shown rows.
    fn arrange(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_unstable_by(|one, other| self.compare(*one, *other));
        self.order = order;
        let shown = self.order.iter().filter(|slot| self.is_shown(**slot));
        self.shown = shown.copied().collect();
    }

    /// Applies the filter to all rows.
    fn show(&mut self) {
        self.sift(|_| true);
    }

    /// Applies the filter only to the rows that are shown now.
    fn narrow(&mut self) {
        // For a few rows, looking up each row is faster; for many rows, reading all rows in memory order is faster.
        if self.shown.len() > self.rows.len() / 16 {
            return self.sift(|row| row.shown);
        }
        let mut shown = std::mem::take(&mut self.shown);
        shown.retain(|slot| {
            let keeps = self.keeps(*slot);
            if let Some(Some(row)) = self.rows.get_mut(*slot as usize) {
                row.shown = keeps;
            }
            keeps
        });
        self.shown = shown;
    }

    /// Applies the filter to the rows that `may` accepts, and hides all other rows. If there are many rows, uses all
    /// cores, because the user waits while typing.
    fn sift(&mut self, may: impl Fn(&Row) -> bool + Sync) {
        let Self {
            rows,
            marked,
            matcher,
            ..
        } = self;
        let (marked, may) = (&*marked, &may);
        // Each thread has its own matcher, because threads that share a regular expression wait for
        // its scratch memory.
        let sift = |part: &mut [Option<Row>], matcher: Matcher| -> Vec<bool> {
            let rows = part.iter_mut().map(|row| {
                let Some(row) = row else {
                    return false;
                };
                let is_marked = !marked.is_empty() && marked.contains(&row.key);
                row.shown = may(row) && matcher.keeps(&row.facts, is_marked);
                row.shown
            });
            rows.collect()
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let share = rows.len().div_ceil(workers).max(SHARE);
        let kept = std::thread::scope(|scope| {
            let mut parts = rows.chunks_mut(share);
            let own = parts.next();
            let others: Vec<_> = parts
                .map(|part| {
                    let matcher = matcher.clone();
                    scope.spawn(move || sift(part, matcher))
                })
                .collect();
            let mut kept = own.map_or_else(Vec::new, |part| sift(part, matcher.clone()));
            for part in others {
                let part = part.join();
                kept.extend(part.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            kept
        });
        let order = self.order.iter().copied();
        self.shown = order
            .filter(|slot| kept.get(*slot as usize) == Some(&true))
            .collect();
    }

    fn row(&self, slot: Slot) -> Option<&Row> {
        self.rows.get(slot as usize)?.as_ref()
    }

    fn is_shown(&self, slot: Slot) -> bool {
        self.row(slot).is_some_and(|row| row.shown)
    }

    fn keeps(&self, slot: Slot) -> bool {
        let row = self.row(slot);
        row.is_some_and(|row| self.matcher.keeps(&row.facts, self.is_marked(&row.key)))
    }

    fn compare(&self, one: Slot, other: Slot) -> Ordering {
        let (Some(one), Some(other)) = (self.row(one), self.row(other)) else {
            return Ordering::Equal;
        };
        let by = self.sort.compare(&one.facts.summary, &other.facts.summary);
        let by = by.then_with(|| one.key.name.cmp(&other.key.name));
        let by = by.then_with(|| one.key.namespace.cmp(&other.key.namespace));
        match self.reversed {
            true => by.reverse(),
            false => by,
        }
    }

    /// Returns the position of a row in a sorted list. If the list does not contain the row, the error is the
    /// position at which to insert the row.
    fn find(&self, among: &[Slot], slot: Slot) -> Result<usize, usize> {
        among.binary_search_by(|other| self.compare(*other, slot))
    }
}

/// Methods that change single rows.
impl RowSet {
    /// Inserts or replaces the row of an object, or removes the row if `facts` is None. Returns whether a row
    /// changed.
    fn put(&mut self, key: &Key, facts: Option<Facts>) -> bool {
        let changed = match (self.slots.get(key).copied(), facts) {
            (None, None) => false,
            (Some(slot), None) => {
                self.remove(slot);
                true
            }
            (None, Some(facts)) => {
                let slot = self.insert(key.clone(), facts);
                self.place(slot);
                true
            }
            (Some(slot), Some(facts)) => self.replace(slot, facts),
        };
        // The filter may hide the selected row. Then select a row that is shown, if this change has added one.
        if changed {
            self.hand_over();
        }
        changed
    }

    /// Creates a row, and adds it to the totals. The caller must add the row to the sort order.
    fn insert(&mut self, key: Key, facts: Facts) -> Slot {
        let is_marked = self.is_marked(&key);
        let shown = self.matcher.keeps(&facts, is_marked);
        self.totals.count(&facts.summary, usize::saturating_add);
        let expires = facts.summary.expires;
        self.workloads += usize::from(has_kind(&key));
        let row = Some(Row {
            key: key.clone(),
            facts,
            shown,
        });
        let slot = match self.free.pop() {
            Some(slot) => {
                if let Some(place) = self.rows.get_mut(slot as usize) {
                    *place = row;
                }
                slot
            }
            None => {
                self.rows.push(row);
                Slot::try_from(self.rows.len() - 1).expect("BUG: more rows than memory holds")
            }
        };
        self.expiries.extend(expires.map(|at| (at, slot)));
        self.slots.insert(key, slot);
        slot
    }

    /// Inserts a row into the sorted lists.
    fn place(&mut self, slot: Slot) {
        let at = self.find(&self.order, slot).unwrap_or_else(|at| at);
        self.order.insert(at, slot);
        if self.is_shown(slot) {
            let at = self.find(&self.shown, slot).unwrap_or_else(|at| at);
            self.shown.insert(at, slot);
        }
    }

    /// Removes a row from the sorted lists; returns its former position among the shown rows.
    fn lift(&mut self, slot: Slot) -> Option<usize> {
        if let Ok(at) = self.find(&self.order, slot) {
            self.order.remove(at);
        }
        let at = match self.is_shown(slot) {
            true => self.find(&self.shown, slot).ok(),
            false => None,
        };
        at.inspect(|at| {
            self.shown.remove(*at);
        })
    }

    fn remove(&mut self, slot: Slot) {
        let stood = self.lift(slot);
        let Some(row) = self.rows.get_mut(slot as usize).and_then(Option::take) else {
            return;
        };
        self.free.push(slot);
        self.workloads -= usize::from(has_kind(&row.key));
        self.slots.remove(&row.key);
        self.marked.remove(&row.key);
        let summary = &row.facts.summary;
        self.totals.count(summary, usize::saturating_sub);
        if let Some(at) = summary.expires {
            self.expiries.remove(&(at, slot));
        }
        if self.selected.as_ref() == Some(&row.key) {
            self.selected = None;
            self.select_near(stood.unwrap_or_default());
        }
    }

    fn replace(&mut self, slot: Slot, facts: Facts) -> bool {
        let Some(row) = self.row(slot) else {
            return false;
        };
        if row.facts == facts {
            return false;
        }
        let (old, new) = (row.facts.summary, facts.summary);
        let shows = self.matcher.keeps(&facts, self.is_marked(&row.key));
        let was_selected = self.selected.as_ref() == Some(&row.key);
        let stays = shows == row.shown && self.sort.compare(&old, &new).is_eq();
        let stood = match stays {
            true => None,
            false => self.lift(slot),
        };
        self.totals.count(&old, usize::saturating_sub);
        self.totals.count(&new, usize::saturating_add);
        if old.expires != new.expires {
            if let Some(at) = old.expires {
                self.expiries.remove(&(at, slot));
            }
            self.expiries.extend(new.expires.map(|at| (at, slot)));
        }
        if let Some(Some(row)) = self.rows.get_mut(slot as usize) {
            row.facts = facts;
            row.shown = shows;
        }
        if !stays {
            self.place(slot);
        }
        if was_selected && !shows {
            self.select_near(stood.unwrap_or_default());
        }
        true
    }
}

/// Returns whether the name of a row starts with a kind, such as `deploy/web`. Then the row is a workload.
fn has_kind(key: &Key) -> bool {
    key.name.contains('/')
}

impl RowSet {
    /// Returns whether at least one row is a workload.
    pub fn has_workloads(&self) -> bool {
        self.workloads > 0
    }
}

/// Methods for the selection. The selection stays on its object when rows move.
impl RowSet {
    /// Returns the key of the selected object; None if nothing is selected.
    pub fn selected(&self) -> Option<&Key> {
        self.selected.as_ref()
    }

    /// Returns the position of the selected row; None if no row is selected or the filter hides the row.
    pub fn position(&self) -> Option<usize> {
        self.position_of(self.selected.as_ref()?)
    }

    /// Returns the position of the row of an object; None if the row is not shown.
    pub fn position_of(&self, key: &Key) -> Option<usize> {
        let slot = *self.slots.get(key)?;
        match self.is_shown(slot) {
            true => self.find(&self.shown, slot).ok(),
            false => None,
        }
    }

    /// Returns the key of the object at a position among the shown rows; None if the position is too large.
    pub fn at(&self, number: usize) -> Option<&Key> {
        let slot = self.shown.get(number)?;
        self.row(*slot).map(|row| &row.key)
    }

    /// Selects an object; returns false, and keeps the selection, if the object is not shown.
    pub fn select(&mut self, key: &Key) -> bool {
        let shown = self.position_of(key).is_some();
        if shown {
            self.selected = Some(key.clone());
        }
        shown
    }

    /// Selects the row at this position, or the last row if the position is too large.
    pub fn select_at(&mut self, number: usize) {
        self.select_near(number);
    }

    /// Moves the selection down by `rows`, up if negative; stops at the first and the last row.
    pub fn step(&mut self, rows: isize) {
        let number = match self.position() {
            Some(number) => number.saturating_add_signed(rows),
            None => 0,
        };
        self.select_near(number);
    }

    /// Selects the next or previous row with a fault; after the last row, continues with the first. Returns false if
    /// no row has a fault.
    pub fn step_to_fault(&mut self, forward: bool) -> bool {
        let count = self.shown.len();
        let here = self.position();
        let found = (1..=count).find_map(|step| {
            let number = match (here, forward) {
                (Some(here), true) => (here + step) % count,
                (Some(here), false) => (here + count - step) % count,
                (None, true) => step - 1,
                (None, false) => count - step,
            };
            let row = self.row(*self.shown.get(number)?)?;
            row.facts.summary.worst.is_fault().then_some(number)
        });
        if let Some(number) = found {
            self.select_near(number);
        }
        found.is_some()
    }

    /// Returns the cell with the most serious state, as (row, column): the worst fault in production, or else the
    /// worst cell of all. Of equally bad cells, returns the one with the latest change.
    pub fn worst(&self) -> Option<(Key, usize)> {
        let places = self.shown.iter().filter_map(|slot| {
            let row = self.row(*slot)?;
            let is_production = |column| self.columns.is_production(&row.key.namespace, column);
            let (column, health) = row.facts.worst_column(is_production)?;
            let rank = (health.is_fault() && is_production(column), health);
            Some((rank, row.facts.summary.changed, row, column))
        });
        let worst = places.reduce(|best, next| match (next.0, next.1) > (best.0, best.1) {
            true => next,
            false => best,
        });
        worst.map(|(_, _, row, column)| (row.key.clone(), column))
    }

    /// Selects the row at this position, or the last row if the position is too large. Keeps the
    /// selection if no row is shown.
    fn select_near(&mut self, number: usize) {
        let last = self.shown.len().checked_sub(1);
        if let Some(key) = last.and_then(|last| self.at(number.min(last))) {
            self.selected = Some(key.clone());
        }
    }

    /// If the filter hides the selected row, selects the next shown row, or else the last shown row.
    fn hand_over(&mut self) {
        let Some(slot) = self.selected.as_ref().and_then(|key| self.slots.get(key)) else {
            return;
        };
        if let Err(number) = self.find(&self.shown, *slot) {
            self.select_near(number);
        }
    }
}

/// Methods for the marks. A mark stays when the filter hides its row.
impl RowSet {
    pub fn is_marked(&self, key: &Key) -> bool {
        !self.marked.is_empty() && self.marked.contains(key)
    }

    /// Returns the keys of the marked objects, sorted.
    pub fn marked(&self) -> Vec<&Key> {
        let mut marked: Vec<&Key> = self.marked.iter().collect();
        marked.sort_unstable();
        marked
    }

    /// Marks an object, or removes its mark.
    pub fn toggle_mark(&mut self, key: &Key) {
        if !self.marked.remove(key) && self.slots.contains_key(key) {
            self.marked.insert(key.clone());
        }
        self.filter_marks();
    }

    /// Marks all rows that match the filter.
    pub fn mark_shown(&mut self) {
        let shown: Vec<Key> = self
            .shown
            .iter()
            .filter_map(|slot| Some(self.row(*slot)?.key.clone()))
            .collect();
        self.marked.extend(shown);
        self.filter_marks();
    }

    /// Marks the objects with these keys. Ignores objects that have no row.
    pub fn mark_again(&mut self, keys: &[Key]) {
        let there = keys.iter().filter(|key| self.slots.contains_key(key));
        let there: Vec<Key> = there.cloned().collect();
        self.marked.extend(there);
        self.filter_marks();
    }

    pub fn unmark(&mut self) {
        self.marked.clear();
        self.filter_marks();
    }

    /// Filters the rows again after the marks changed, if the filter contains the term `marked`.
    fn filter_marks(&mut self) {
        if self.matcher.asks_for_marks() {
            self.show();
            self.hand_over();
        }
    }
}
