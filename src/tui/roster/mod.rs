//! The rows of a screen: sorted, filtered, counted and selected, for as many as there are.
//!
//! One changed object moves one row. Nothing is sorted or filtered as a whole but when a person asks for
//! another order or another filter, or when a whole list came. Who draws pays for the rows that are seen.

mod follow;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::filter::{Facts, Filter, Matcher, Standing};
use crate::engine::matrix::Columns;
use crate::engine::world::Key;

/// What the rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Components, as in the matrix.
    Components,
    /// Releases.
    Releases,
    /// Pins.
    Pins,
    /// Snapshots.
    Snapshots,
}

/// What rows are sorted by; what is equal stands by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// By name.
    #[default]
    Name,
    /// The worst first.
    Health,
    /// What changed last first.
    Changed,
    /// What is furthest behind first.
    Behind,
    /// What is held first.
    Held,
    /// The largest first.
    Size,
}

impl Sort {
    /// All of them, in the order in which a key goes through them, and what they are called.
    pub const ALL: [(Sort, &'static str); 6] = [
        (Sort::Name, "name"),
        (Sort::Health, "health"),
        (Sort::Changed, "changed"),
        (Sort::Behind, "behind"),
        (Sort::Held, "held"),
        (Sort::Size, "size"),
    ];

    fn compare(self, one: &Standing, other: &Standing) -> Ordering {
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

/// How many rows there are, shown or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// All of them.
    pub rows: usize,
    /// Those that somebody has to look at.
    pub degraded: usize,
    /// Those with a place that is on its way.
    pub progressing: usize,
    /// Those that are held somewhere.
    pub held: usize,
    /// Those that are behind somewhere.
    pub behind: usize,
    /// How many bytes all of them have.
    pub size: usize,
}

impl Totals {
    fn count(&mut self, standing: &Standing, change: fn(usize, usize) -> usize) {
        let add = |total: &mut usize, counts: bool| *total = change(*total, usize::from(counts));
        add(&mut self.rows, true);
        add(&mut self.degraded, standing.worst.is_fault());
        add(&mut self.progressing, standing.progressing);
        add(&mut self.held, standing.held > 0);
        add(&mut self.behind, standing.behind > 0);
        let size = usize::try_from(standing.size).unwrap_or(usize::MAX);
        self.size = change(self.size, size);
    }
}

/// One row that is seen.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'r> {
    /// The object.
    pub key: &'r Key,
    /// What it is sorted and counted by.
    pub standing: &'r Standing,
    /// Whether it is selected.
    pub selected: bool,
    /// Whether it is marked.
    pub marked: bool,
}

/// Where a row is kept; it stays there while it lives.
type Slot = u32;

struct Row {
    key: Key,
    facts: Facts,
    shown: bool,
}

/// The rows of a screen.
pub struct Roster {
    kind: Kind,
    namespace: Option<Arc<str>>,
    user: String,
    columns: Columns,
    rows: Vec<Option<Row>>,
    free: Vec<Slot>,
    slots: HashMap<Key, Slot>,
    /// Every row, sorted.
    order: Vec<Slot>,
    /// Those that the filter keeps, sorted.
    shown: Vec<Slot>,
    sort: Sort,
    reversed: bool,
    filter: Filter,
    matcher: Matcher,
    marked: HashSet<Key>,
    totals: Totals,
    /// When holds end, and whose.
    expiries: BTreeSet<(Timestamp, Slot)>,
    selected: Option<Key>,
}

impl Roster {
    /// Begins without rows; `user` is who `mine` is about.
    pub fn new(kind: Kind, namespace: Option<&str>, user: &str) -> Self {
        Self {
            kind,
            namespace: namespace.map(Into::into),
            user: user.to_owned(),
            columns: Columns::default(),
            rows: Vec::new(),
            free: Vec::new(),
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

    /// Returns what the rows are.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Changes who `mine` is about; the rows follow when they are made anew.
    pub fn set_user(&mut self, user: &str) {
        if self.user != user {
            user.clone_into(&mut self.user);
        }
    }

    /// Returns the environments, as of when the rows were made.
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Counts the rows that are shown.
    pub fn len(&self) -> usize {
        self.shown.len()
    }

    /// Tells whether no row is shown.
    pub fn is_empty(&self) -> bool {
        self.shown.is_empty()
    }

    /// Returns how many rows there are, shown or not.
    pub fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the rows from one on; it costs what is returned, however many there are.
    pub fn window(&self, first: usize, height: usize) -> impl Iterator<Item = Seen<'_>> {
        let end = first.saturating_add(height).min(self.shown.len());
        let slots = self.shown.get(first..end).unwrap_or_default();
        slots.iter().filter_map(|slot| {
            let row = self.row(*slot)?;
            Some(Seen {
                key: &row.key,
                standing: &row.facts.standing,
                selected: self.selected.as_ref() == Some(&row.key),
                marked: self.is_marked(&row.key),
            })
        })
    }

    /// Returns what a row is sorted and counted by.
    pub fn standing(&self, key: &Key) -> Option<&Standing> {
        let slot = self.slots.get(key)?;
        self.row(*slot).map(|row| &row.facts.standing)
    }
}

/// How many rows are filtered sooner than a thread is begun for them.
const SHARE: usize = 8 * 1024;

/// Order and filter.
impl Roster {
    /// Returns the filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Shows what another filter keeps; where it narrows the one before, only what was shown is looked at.
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

    /// Returns what rows are sorted by, and whether the other way round.
    pub fn sort(&self) -> (Sort, bool) {
        (self.sort, self.reversed)
    }

    /// Sorts by something else, or the other way round.
    pub fn set_sort(&mut self, sort: Sort, reversed: bool) {
        (self.sort, self.reversed) = (sort, reversed);
        self.arrange();
    }

    /// Sorts everything anew.
    fn arrange(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.sort_unstable_by(|one, other| self.compare(*one, *other));
        self.order = order;
        let shown = self.order.iter().filter(|slot| self.is_shown(**slot));
        self.shown = shown.copied().collect();
    }

    /// Filters everything anew.
    fn show(&mut self) {
        self.sift(|_| true);
    }

    /// Filters what is shown.
    fn narrow(&mut self) {
        // A few are looked up; many are better met in the order in which they lie in memory.
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

    /// Filters the rows that may be kept, and hides the others: many of them on every core, for somebody
    /// types.
    fn sift(&mut self, may: impl Fn(&Row) -> bool + Sync) {
        let Self {
            rows,
            marked,
            matcher,
            ..
        } = self;
        let (marked, may) = (&*marked, &may);
        // Each has a matcher of its own: there is something in an expression that only one can use.
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
        let by = self
            .sort
            .compare(&one.facts.standing, &other.facts.standing);
        let by = by.then_with(|| one.key.name.cmp(&other.key.name));
        let by = by.then_with(|| one.key.namespace.cmp(&other.key.namespace));
        match self.reversed {
            true => by.reverse(),
            false => by,
        }
    }

    /// Finds a row among sorted ones, or where it would stand.
    fn find(&self, among: &[Slot], slot: Slot) -> Result<usize, usize> {
        among.binary_search_by(|other| self.compare(*other, slot))
    }
}

/// Changes of single rows.
impl Roster {
    /// Puts a row in, replaces it or takes it away; tells whether anything changed.
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
        // What was selected may be hidden since nothing was shown, and now something is.
        if changed {
            self.hand_over();
        }
        changed
    }

    /// Gives a row a slot, counts it and filters it; it has no place in the order yet.
    fn insert(&mut self, key: Key, facts: Facts) -> Slot {
        let is_marked = self.is_marked(&key);
        let shown = self.matcher.keeps(&facts, is_marked);
        self.totals.count(&facts.standing, usize::saturating_add);
        let expires = facts.standing.expires;
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

    /// Puts a row where it belongs.
    fn place(&mut self, slot: Slot) {
        let at = self.find(&self.order, slot).unwrap_or_else(|at| at);
        self.order.insert(at, slot);
        if self.is_shown(slot) {
            let at = self.find(&self.shown, slot).unwrap_or_else(|at| at);
            self.shown.insert(at, slot);
        }
    }

    /// Takes a row from where it stands; returns where it stood among those that are shown.
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
        self.slots.remove(&row.key);
        self.marked.remove(&row.key);
        let standing = &row.facts.standing;
        self.totals.count(standing, usize::saturating_sub);
        if let Some(at) = standing.expires {
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
        let (old, new) = (row.facts.standing, facts.standing);
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

/// The selection, which follows the object.
impl Roster {
    /// Returns what is selected.
    pub fn selected(&self) -> Option<&Key> {
        self.selected.as_ref()
    }

    /// Returns the number of the selected row, where it is shown.
    pub fn position(&self) -> Option<usize> {
        self.position_of(self.selected.as_ref()?)
    }

    /// Returns the number of a row, where it is shown.
    pub fn position_of(&self, key: &Key) -> Option<usize> {
        let slot = *self.slots.get(key)?;
        match self.is_shown(slot) {
            true => self.find(&self.shown, slot).ok(),
            false => None,
        }
    }

    /// Returns the object of a row by its number.
    pub fn at(&self, number: usize) -> Option<&Key> {
        let slot = self.shown.get(number)?;
        self.row(*slot).map(|row| &row.key)
    }

    /// Selects an object; tells whether it is shown.
    pub fn select(&mut self, key: &Key) -> bool {
        let shown = self.position_of(key).is_some();
        if shown {
            self.selected = Some(key.clone());
        }
        shown
    }

    /// Selects the row of a number, or the last one before it.
    pub fn select_at(&mut self, number: usize) {
        self.select_near(number);
    }

    /// Moves the selection by rows, and stops at the ends.
    pub fn step(&mut self, rows: isize) {
        let number = match self.position() {
            Some(number) => number.saturating_add_signed(rows),
            None => 0,
        };
        self.select_near(number);
    }

    /// Moves the selection to the next row that somebody has to look at, or the one before; around the end.
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
            row.facts.standing.worst.is_fault().then_some(number)
        });
        if let Some(number) = found {
            self.select_near(number);
        }
        found.is_some()
    }

    /// Returns the worst place in production, and where nothing is wrong there the worst anywhere; of equal
    /// ones the one that changed last.
    pub fn worst(&self) -> Option<(Key, usize)> {
        let places = self.shown.iter().filter_map(|slot| {
            let row = self.row(*slot)?;
            let is_production = |column| self.columns.is_production(&row.key.namespace, column);
            let (column, health) = row.facts.worst_column(is_production)?;
            let rank = (health.is_fault() && is_production(column), health);
            Some((rank, row.facts.standing.changed, row, column))
        });
        let worst = places.reduce(|best, next| match (next.0, next.1) > (best.0, best.1) {
            true => next,
            false => best,
        });
        worst.map(|(_, _, row, column)| (row.key.clone(), column))
    }

    /// Selects the row of a number, or the last before it; keeps what is selected where none is shown.
    fn select_near(&mut self, number: usize) {
        let last = self.shown.len().checked_sub(1);
        if let Some(key) = last.and_then(|last| self.at(number.min(last))) {
            self.selected = Some(key.clone());
        }
    }

    /// Passes the selection on from a row that is not shown any more: to the next that is, else to the last
    /// before it.
    fn hand_over(&mut self) {
        let Some(slot) = self.selected.as_ref().and_then(|key| self.slots.get(key)) else {
            return;
        };
        if let Err(number) = self.find(&self.shown, *slot) {
            self.select_near(number);
        }
    }
}

/// Marks, which stay whatever the filter shows.
impl Roster {
    /// Tells whether an object is marked.
    pub fn is_marked(&self, key: &Key) -> bool {
        !self.marked.is_empty() && self.marked.contains(key)
    }

    /// Returns what is marked, by name.
    pub fn marked(&self) -> Vec<&Key> {
        let mut marked: Vec<&Key> = self.marked.iter().collect();
        marked.sort_unstable();
        marked
    }

    /// Marks an object, or unmarks it.
    pub fn toggle_mark(&mut self, key: &Key) {
        if !self.marked.remove(key) && self.slots.contains_key(key) {
            self.marked.insert(key.clone());
        }
        self.filter_marks();
    }

    /// Marks everything that is shown.
    pub fn mark_shown(&mut self) {
        let shown: Vec<Key> = self
            .shown
            .iter()
            .filter_map(|slot| Some(self.row(*slot)?.key.clone()))
            .collect();
        self.marked.extend(shown);
        self.filter_marks();
    }

    /// Marks objects again that were marked before, where they are there.
    pub fn mark_again(&mut self, keys: &[Key]) {
        let there = keys.iter().filter(|key| self.slots.contains_key(key));
        let there: Vec<Key> = there.cloned().collect();
        self.marked.extend(there);
        self.filter_marks();
    }

    /// Unmarks everything.
    pub fn unmark(&mut self) {
        self.marked.clear();
        self.filter_marks();
    }

    /// Filters anew where the filter asks for marks.
    fn filter_marks(&mut self) {
        if self.matcher.asks_for_marks() {
            self.show();
            self.hand_over();
        }
    }
}
