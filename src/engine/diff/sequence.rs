//! Finds the edits that turn one sequence into another. Until the deadline, the edits are as small as possible; after
//! it, they replace whole blocks.
//!
//! First removes the equal items at both ends. Then items that occur exactly once on each side become anchors, if
//! most of them have the same order on both sides. Only the gaps between anchors need a slower algorithm. So a long
//! document with few changes, or in another order, needs little time.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// The largest gap between anchors for which the smallest possible difference is computed (Myers). For a larger gap,
/// the faster histogram algorithm is used.
const SMALL: usize = 256;

/// A range of the first sequence, and the range of the second sequence that replaces it. One of the ranges may be
/// empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) before: Range<usize>,
    pub(super) after: Range<usize>,
}

/// The edits between two sequences, in order. All items between the edits are equal.
#[derive(Debug, Default)]
pub(super) struct Edits {
    pub(super) edits: Vec<Edit>,
    /// Whether each edit is as small as possible. False if the deadline passed during the search.
    pub(super) exact: bool,
}

impl Edits {
    fn push(&mut self, before: Range<usize>, after: Range<usize>) {
        if before.is_empty() && after.is_empty() {
            return;
        }
        match self.edits.last_mut() {
            Some(last) if last.before.end == before.start && last.after.end == after.start => {
                last.before.end = before.end;
                last.after.end = after.end;
            }
            _ => self.edits.push(Edit { before, after }),
        }
    }
}

/// Finds the edits between two sequences.
pub(super) fn edits<T: Eq + Hash>(before: &[T], after: &[T], deadline: Option<Instant>) -> Edits {
    let mut found = Edits {
        edits: Vec::new(),
        exact: true,
    };
    let (a, b) = trim(before, after, 0..before.len(), 0..after.len());
    if a.is_empty() || b.is_empty() {
        found.push(a, b);
        return found;
    }
    if let Some(runs) = in_place(&before[a.clone()], &after[b.clone()]) {
        for run in runs {
            let old = a.start + run.start..a.start + run.end;
            let new = b.start + run.start..b.start + run.end;
            match run.len() {
                1 => found.push(old, new),
                _ => general(before, after, old, new, deadline, &mut found),
            }
        }
        return found;
    }
    general(before, after, a, b, deadline, &mut found);
    found
}

/// Returns the ranges that differ, if the sequences have the same length and most items are equal at the same index;
/// otherwise None. This common case needs no search.
fn in_place<T: Eq>(before: &[T], after: &[T]) -> Option<Vec<Range<usize>>> {
    if before.len() != after.len() {
        return None;
    }
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut changed = 0;
    for (at, _) in before
        .iter()
        .zip(after)
        .enumerate()
        .filter(|(_, (a, b))| a != b)
    {
        changed += 1;
        if changed * 4 > before.len() {
            return None;
        }
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    Some(runs)
}

/// Compares two sequences that differ in their first item and in their last item.
fn general<T: Eq + Hash>(
    before: &[T],
    after: &[T],
    a: Range<usize>,
    b: Range<usize>,
    deadline: Option<Instant>,
    found: &mut Edits,
) {
    if is_past(deadline) {
        found.exact = false;
        return found.push(a, b);
    }
    let mut inner = Edits {
        edits: Vec::new(),
        exact: true,
    };
    let (left, right) = number(&before[a.clone()], &after[b.clone()]);
    let (mut from_a, mut from_b) = (0, 0);
    let end = (left.len(), right.len());
    for (to_a, to_b) in anchors(&left, &right).into_iter().chain([end]) {
        gap(
            &left,
            &right,
            from_a..to_a,
            from_b..to_b,
            deadline,
            &mut inner,
        );
        (from_a, from_b) = (to_a + 1, to_b + 1);
    }
    found.exact &= inner.exact;
    for edit in inner.edits {
        found.push(
            edit.before.start + a.start..edit.before.end + a.start,
            edit.after.start + b.start..edit.after.end + b.start,
        );
    }
}

/// Calls a function for each run of items: with two ranges if the items are equal, with one range if only one
/// sequence has the items. `end` is the length of the first sequence.
pub(super) fn each(
    edits: &[Edit],
    end: usize,
    mut run: impl FnMut(Option<Range<usize>>, Option<Range<usize>>),
) {
    let (mut at, mut at_after) = (0, 0);
    for edit in edits {
        let equal = at..edit.before.start;
        run(Some(equal), Some(at_after..edit.after.start));
        run(Some(edit.before.clone()), None);
        run(None, Some(edit.after.clone()));
        (at, at_after) = (edit.before.end, edit.after.end);
    }
    run(Some(at..end), Some(at_after..at_after + end - at));
}

fn is_past(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|deadline| Instant::now() >= deadline)
}

/// Shortens two ranges by their common items at both ends.
fn trim<T: Eq>(
    before: &[T],
    after: &[T],
    mut a: Range<usize>,
    mut b: Range<usize>,
) -> (Range<usize>, Range<usize>) {
    let front = before[a.clone()].iter().zip(&after[b.clone()]);
    let equal = front.take_while(|(a, b)| a == b).count();
    a.start += equal;
    b.start += equal;
    let back = before[a.clone()].iter().rev();
    let equal = back
        .zip(after[b.clone()].iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    a.end -= equal;
    b.end -= equal;
    (a, b)
}

/// Replaces the items of two sequences by numbers from 0. Equal items get equal numbers, so the search can compare
/// numbers.
fn number<T: Eq + Hash>(before: &[T], after: &[T]) -> (Vec<u32>, Vec<u32>) {
    let mut known: HashMap<&T, u32> = HashMap::with_capacity(before.len());
    let mut of = |item| {
        let next = known.len() as u32;
        *known.entry(item).or_insert(next)
    };
    let before = before.iter().map(&mut of).collect();
    let after = after.iter().map(&mut of).collect();
    (before, after)
}

/// Finds the anchors of two sequences: the longest series of items that occur exactly once on each side and have the
/// same order on both sides.
fn anchors(left: &[u32], right: &[u32]) -> Vec<(usize, usize)> {
    const NONE: u32 = u32::MAX;
    const MANY: u32 = u32::MAX - 1;
    let count = left.iter().chain(right).max().map_or(0, |max| max + 1) as usize;
    let places = |items: &[u32]| {
        let mut places = vec![NONE; count];
        for (at, item) in items.iter().enumerate() {
            let place = &mut places[*item as usize];
            *place = if *place == NONE { at as u32 } else { MANY };
        }
        places
    };
    let (once_left, once_right) = (places(left), places(right));
    let common: Vec<(u32, u32)> = left
        .iter()
        .map(|item| (once_left[*item as usize], once_right[*item as usize]))
        .filter(|(a, b)| *a < MANY && *b < MANY)
        .collect();
    // Patience sorting: `ends[n]` is the last item of the best series with n + 1 items, and `previous` has the item
    // that precedes each item in its series.
    let mut ends: Vec<usize> = Vec::new();
    let mut previous: Vec<Option<usize>> = Vec::with_capacity(common.len());
    for (at, (_, place)) in common.iter().enumerate() {
        let length = ends.partition_point(|end| common[*end].1 < *place);
        previous.push(length.checked_sub(1).map(|before| ends[before]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut chain = Vec::with_capacity(ends.len());
    let mut next = ends.last().copied();
    while let Some(at) = next {
        let (a, b) = common[at];
        chain.push((a as usize, b as usize));
        next = previous[at];
    }
    chain.reverse();
    chain
}

/// Finds the edits in the gap between two anchors.
fn gap(
    left: &[u32],
    right: &[u32],
    a: Range<usize>,
    b: Range<usize>,
    deadline: Option<Instant>,
    found: &mut Edits,
) {
    let (a, b) = trim(left, right, a, b);
    if a.is_empty() || b.is_empty() || a.len() == 1 && b.len() == 1 {
        return found.push(a, b);
    }
    if is_past(deadline) {
        found.exact = false;
        return found.push(a, b);
    }
    let algorithm = match a.len() + b.len() <= SMALL {
        true => Algorithm::Myers,
        false => Algorithm::Histogram,
    };
    let (old, new) = (&left[a.clone()], &right[b.clone()]);
    let ops = capture_diff_slices_deadline(algorithm, old, new, deadline);
    // Once the deadline has passed, the algorithm may return far larger edits than necessary without a notice. So it
    // is not called.
    if is_past(deadline) {
        found.exact = false;
        return found.push(a, b);
    }
    for op in ops {
        if !matches!(op, DiffOp::Equal { .. }) {
            let (old, new) = (op.old_range(), op.new_range());
            found.push(
                a.start + old.start..a.start + old.end,
                b.start + new.start..b.start + new.end,
            );
        }
    }
}
