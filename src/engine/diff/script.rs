//! The YAML of two objects as one list of pieces. A piece is one or more lines that one object or both objects
//! contain.
//!
//! To print all lines of two large objects would be slower than to find the changes. So a piece keeps only its number
//! of lines, and this module prints only the pieces near a change.

use std::ops::Range;

use bounded_yaml::{Block, Spot};
use serde_json::Value;

use super::lines::{Hunk, Kind};
use super::sequence;

/// Which of the two compared objects have a piece in their YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sides {
    Before,
    After,
    Both,
}

impl Sides {
    fn on(self, side: usize) -> bool {
        match self {
            Self::Before => side == 0,
            Self::After => side == 1,
            Self::Both => true,
        }
    }

    /// Returns the sides for which the flag is true; None if both flags are false.
    pub(super) fn of(before: bool, after: bool) -> Option<Self> {
        match (before, after) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Before),
            (false, true) => Some(Self::After),
            (false, false) => None,
        }
    }
}

/// The indentation and the key of a piece. The dashes of list items before the key are added later, by [`Script`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct At<'a> {
    pub(super) indent: usize,
    pub(super) key: Option<&'a str>,
}

impl<'a> At<'a> {
    /// Returns the place of an entry with this key. `self` is the place of the map that contains the entry.
    pub(super) fn entry(self, key: &'a str) -> Self {
        Self {
            indent: self.spot(0).of_map().indent,
            key: Some(key),
        }
    }

    /// Returns the place of a list item. `self` is the place of the list that contains the item.
    pub(super) fn item(self) -> Self {
        Self {
            indent: self.spot(0).of_list().indent,
            key: None,
        }
    }

    fn spot(self, dashes: usize) -> Spot<'a> {
        Spot {
            indent: self.indent,
            dashes,
            key: self.key,
        }
    }
}

/// The content of a piece.
#[derive(Debug, Clone)]
pub(super) enum What<'a> {
    /// A key whose value is a map or list. The content of the map or list follows as other pieces.
    Open,
    /// A scalar, or an empty map or list.
    Leaf(&'a Value),
    /// A text that is shown instead of a value, such as a mask.
    Instead(&'static str),
    /// A map or list that is shown as empty (`{}` or `[]`), because the diff hides all its content.
    Nothing(&'static str),
    /// The first line of a multi-line string, with its chomping indicator (`-`, `+` or empty).
    Head(&'static str),
    /// A line of a multi-line string.
    Text(&'a str),
    /// A line that is already printed as YAML.
    Written(Box<str>),
}

#[derive(Debug, Clone)]
struct Piece<'a> {
    sides: Sides,
    at: At<'a>,
    dashes: u32,
    lines: u32,
    what: What<'a>,
}

impl Piece<'_> {
    /// Adds the lines of the piece to a hunk: skips the first `skip` lines, then adds at most `limit`. Returns the
    /// number of lines that it added.
    fn add_to(&self, hunk: &mut Hunk, kind: Kind, skip: usize, limit: usize) -> usize {
        match (self.lines, skip) {
            (1, 0) => {
                hunk.write_line(kind, |out| self.write(out));
                1
            }
            _ => hunk.write(kind, skip, limit, |out| self.write(out)),
        }
    }

    fn write(&self, out: &mut String) {
        let spot = self.at.spot(self.dashes as usize);
        match &self.what {
            What::Open => bounded_yaml::open(out, spot),
            What::Leaf(value) => bounded_yaml::leaf(out, value, spot),
            What::Instead(text) => bounded_yaml::leaf(out, &Value::from(*text), spot),
            What::Nothing("[]") => bounded_yaml::leaf(out, &Value::Array(Vec::new()), spot),
            What::Nothing(_) => bounded_yaml::leaf(out, &Value::Object(Default::default()), spot),
            What::Head(chomping) => bounded_yaml::block_head(out, chomping, spot),
            What::Text(line) => bounded_yaml::block_line(out, line, self.at.indent),
            What::Written(line) => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
}

/// The YAML of two objects as a list of pieces.
#[derive(Debug, Default)]
pub(super) struct Script<'a> {
    pieces: Vec<Piece<'a>>,
    /// For each side, the number of list dashes that its next piece must start with.
    dashes: [u32; 2],
    /// For each side, the number of pieces that the side has so far.
    counts: [usize; 2],
}

/// A position in a script. A caller uses it to find out which pieces were added after this position.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    piece: usize,
    counts: [usize; 2],
}

impl<'a> Script<'a> {
    /// Removes all pieces of the script. The allocated memory stays, because the next comparison uses it again.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.dashes = [0, 0];
        self.counts = [0, 0];
    }

    /// Starts a list item on these sides: the next piece of each side gets a dash.
    pub(super) fn dash(&mut self, sides: Sides) {
        for (side, dashes) in self.dashes.iter_mut().enumerate() {
            *dashes += u32::from(sides.on(side));
        }
    }

    /// Adds a piece to the script, for one side or both sides.
    pub(super) fn push(&mut self, sides: Sides, at: At<'a>, what: What<'a>) {
        let [before, after] = self.dashes;
        // The two sides start a different number of list items here. So their lines differ, and each side gets its
        // own piece.
        if sides == Sides::Both && before != after {
            self.add(Sides::Before, at, what.clone());
            return self.add(Sides::After, at, what);
        }
        self.add(sides, at, what);
    }

    fn add(&mut self, sides: Sides, at: At<'a>, what: What<'a>) {
        let mut dashes = 0;
        for side in [0, 1].into_iter().filter(|side| sides.on(*side)) {
            self.counts[side] += 1;
            dashes = std::mem::take(&mut self.dashes[side]);
        }
        let spot = at.spot(dashes as usize);
        let lines = match &what {
            What::Leaf(value) => bounded_yaml::leaf_lines(value, spot),
            What::Text(_) | What::Written(_) => 1,
            _ => bounded_yaml::key_lines(spot),
        };
        self.pieces.push(Piece {
            sides,
            at,
            dashes,
            lines: u32::try_from(lines).unwrap_or(u32::MAX),
            what,
        });
    }

    /// Returns the current end of the script as a position.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            piece: self.pieces.len(),
            counts: self.counts,
        }
    }

    /// Returns the sides among `sides` that got no piece after the position `mark`; None if each of them got a piece.
    pub(super) fn silent(&self, mark: Mark, sides: Sides) -> Option<Sides> {
        let is_silent = |side: usize| sides.on(side) && self.counts[side] == mark.counts[side];
        Sides::of(is_silent(0), is_silent(1))
    }

    /// Removes the key that was added at the position `mark`, because no content followed.
    pub(super) fn take_back(&mut self, mark: Mark) {
        self.pieces.truncate(mark.piece);
        self.counts = mark.counts;
    }

    /// Shows the map or list that was added at the position `mark` as empty, on the sides `silent`.
    pub(super) fn close(&mut self, mark: Mark, silent: Sides, empty: &'static str) {
        let Some(head) = self.pieces.get_mut(mark.piece) else {
            return;
        };
        let other = match (head.sides, silent) {
            (Sides::Both, Sides::Before) => Some(Sides::After),
            (Sides::Both, Sides::After) => Some(Sides::Before),
            _ => None,
        };
        if let Some(other) = other {
            let kept = Piece {
                sides: other,
                ..head.clone()
            };
            head.sides = silent;
            head.what = What::Nothing(empty);
            return self.pieces.insert(mark.piece + 1, kept);
        }
        // The key is one piece for both sides, or one piece per side if the sides have different list dashes.
        for head in self.pieces.iter_mut().skip(mark.piece).take(2) {
            let is_head = matches!(head.what, What::Open);
            let is_silent = head.sides == silent || silent == Sides::Both;
            if is_head && is_silent {
                head.what = What::Nothing(empty);
            }
        }
    }

    /// Adds two multi-line strings, compared by line. Returns false if the deadline passed, so that the difference
    /// may be larger than necessary.
    pub(super) fn texts(
        &mut self,
        at: At<'a>,
        before: Block<'a>,
        after: Block<'a>,
        deadline: Option<std::time::Instant>,
    ) -> bool {
        match before.chomping() == after.chomping() {
            true => self.push(Sides::Both, at, What::Head(before.chomping())),
            false => {
                self.push(Sides::Before, at, What::Head(before.chomping()));
                self.push(Sides::After, at, What::Head(after.chomping()));
            }
        }
        let at = At {
            indent: Block::indent(at.spot(0)),
            key: None,
        };
        let old: Vec<&'a str> = before.lines().collect();
        let new: Vec<&'a str> = after.lines().collect();
        let found = sequence::edits(&old, &new, deadline);
        sequence::each(&found.edits, old.len(), |before, after| {
            let (sides, lines) = match (before, after) {
                (Some(range), Some(_)) => (Sides::Both, &old[range]),
                (Some(range), None) => (Sides::Before, &old[range]),
                (None, Some(range)) => (Sides::After, &new[range]),
                (None, None) => return,
            };
            for line in lines {
                self.push(sides, at, What::Text(line));
            }
        });
        found.exact
    }

    /// Adds two lists with the same items in different orders, compared by line. Returns false if the deadline
    /// passed, so that the difference may be larger than necessary.
    pub(super) fn reordered(
        &mut self,
        at: At<'a>,
        [before, after]: [Vec<&Script<'a>>; 2],
        deadline: Option<std::time::Instant>,
    ) -> bool {
        let old = self.written(at, 0, &before);
        let new = self.written(at, 1, &after);
        let found = sequence::edits(&old, &new, deadline);
        let nowhere = At::default();
        sequence::each(&found.edits, old.len(), |before, after| {
            let (sides, lines) = match (before, after) {
                (Some(range), Some(_)) => (Sides::Both, &old[range]),
                (Some(range), None) => (Sides::Before, &old[range]),
                (None, Some(range)) => (Sides::After, &new[range]),
                (None, None) => return,
            };
            for line in lines {
                self.push(sides, nowhere, What::Written(line.as_str().into()));
            }
        });
        found.exact
    }

    /// Returns the lines of list items for one side. The first line also gets the list dashes of this side that no line
    /// contains yet.
    fn written(&mut self, at: At<'a>, side: usize, items: &[&Script<'a>]) -> Vec<String> {
        let mut out = String::new();
        for script in items {
            let pieces = script.pieces.iter();
            for piece in pieces.filter(|piece| piece.sides.on(side)) {
                piece.write(&mut out);
            }
        }
        let mut lines: Vec<String> = out.split_terminator('\n').map(str::to_owned).collect();
        let dashes = std::mem::take(&mut self.dashes[side]) as usize;
        let indent = at.indent.saturating_sub(2);
        if let Some(first) = lines.first_mut().filter(|_| dashes > 0) {
            let rest = first.split_off(indent.min(first.len()));
            *first = " ".repeat(indent.saturating_sub(2 * dashes)) + &"- ".repeat(dashes) + &rest;
        }
        lines
    }

    /// Returns the changes in the script as hunks, with `context` equal lines around each change.
    pub(super) fn hunks(&self, context: usize) -> Vec<Hunk> {
        let runs = self.runs();
        let near = context.saturating_mul(2);
        runs.chunk_by(|one, next| next.before.start - one.before.end <= near)
            .map(|runs| self.hunk(runs, context))
            .collect()
    }

    fn runs(&self) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        let mut at = [0, 0];
        for (place, piece) in self.pieces.iter().enumerate() {
            let start = at;
            for (side, at) in at.iter_mut().enumerate() {
                *at += piece.lines as usize * usize::from(piece.sides.on(side));
            }
            if piece.sides == Sides::Both {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.pieces.end == place => {
                    run.pieces.end = place + 1;
                    (run.before.end, run.after.end) = (at[0], at[1]);
                }
                _ => runs.push(Run {
                    pieces: place..place + 1,
                    before: start[0]..at[0],
                    after: start[1]..at[1],
                }),
            }
        }
        runs
    }

    fn hunk(&self, runs: &[Run], context: usize) -> Hunk {
        let first = runs.first().expect("BUG: a chunk has an item");
        let last = runs.last().expect("BUG: a chunk has an item");
        let lead = context.min(first.before.start);
        let lines = |of: fn(&Run) -> &Range<usize>| of(last).end - of(first).start;
        // The number of lines in the hunk, as capacity. It counts the equal lines between changes twice, which leaves
        // room for the context after the last change.
        let room = lead + lines(|run| &run.before) + lines(|run| &run.after);
        let mut hunk = Hunk::begin(first.before.start - lead, first.after.start - lead, room);
        let (mut next, mut covered) = (first.pieces.start, 0);
        while covered < lead {
            next -= 1;
            covered += self.pieces[next].lines as usize;
        }
        let mut skip = covered - lead;
        for run in runs {
            for piece in &self.pieces[next..run.pieces.start] {
                piece.add_to(&mut hunk, Kind::Context, skip, usize::MAX);
                skip = skip.saturating_sub(piece.lines as usize);
            }
            let removed = hunk.lines.len();
            let pieces = &self.pieces[run.pieces.clone()];
            put(&mut hunk, Kind::Removed, pieces, Sides::Before);
            let added = hunk.lines.len();
            put(&mut hunk, Kind::Added, pieces, Sides::After);
            hunk.pair(removed, added);
            next = run.pieces.end;
        }
        let mut left = context;
        for piece in self.pieces[last.pieces.end..].iter() {
            if left == 0 {
                break;
            }
            left -= piece.add_to(&mut hunk, Kind::Context, 0, left);
        }
        hunk
    }
}

/// Adds those of `pieces` to a hunk that the given side has.
fn put(hunk: &mut Hunk, kind: Kind, pieces: &[Piece<'_>], sides: Sides) {
    for piece in pieces.iter().filter(|piece| piece.sides == sides) {
        piece.add_to(hunk, kind, 0, usize::MAX);
    }
}

/// A run of consecutive pieces, each of which only one side has.
struct Run {
    pieces: Range<usize>,
    before: Range<usize>,
    after: Range<usize>,
}
