//! The YAML of two objects at once: what both have is noted by reference, and written only where it
//! is seen beside a change.
//!
//! Most lines of two large objects are equal and far from any change. Writing them would cost more than
//! finding the changes, so a piece knows how many lines it has and writes them when it is asked to.

use std::ops::Range;

use serde_json::Value;

use super::lines::{Hunk, Kind};
use super::sequence;
use crate::yaml::{self, Block, Spot};

/// Which of the two objects have a piece.
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

    /// Names the sides for which something holds, where there is one.
    pub(super) fn of(before: bool, after: bool) -> Option<Self> {
        match (before, after) {
            (true, true) => Some(Self::Both),
            (true, false) => Some(Self::Before),
            (false, true) => Some(Self::After),
            (false, false) => None,
        }
    }
}

/// Where something stands in the YAML of an object; its dashes are known when it is written.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct At<'a> {
    pub(super) indent: usize,
    pub(super) key: Option<&'a str>,
}

impl<'a> At<'a> {
    /// Returns where an entry of a map that stands here stands.
    pub(super) fn entry(self, key: &'a str) -> Self {
        Self {
            indent: self.spot(0).of_map().indent,
            key: Some(key),
        }
    }

    /// Returns where an item of a list that stands here stands.
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

/// What stands at a place.
#[derive(Debug, Clone)]
pub(super) enum What<'a> {
    /// The key of a map or list that follows.
    Open,
    /// A scalar, or an empty map or list.
    Leaf(&'a Value),
    /// A text that stands for a value.
    Instead(&'static str),
    /// An empty map or list, of which everything is hidden.
    Nothing(&'static str),
    /// The line before the lines of a text, and how that text ends.
    Head(&'static str),
    /// A line of a text.
    Text(&'a str),
    /// A whole line that was written already.
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
    /// Writes the piece's lines into a hunk, some at its start left out and no more than some taken.
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
            What::Open => yaml::open(out, spot),
            What::Leaf(value) => yaml::leaf(out, value, spot),
            What::Instead(text) => yaml::leaf(out, &Value::from(*text), spot),
            What::Nothing("[]") => yaml::leaf(out, &Value::Array(Vec::new()), spot),
            What::Nothing(_) => yaml::leaf(out, &Value::Object(Default::default()), spot),
            What::Head(chomping) => yaml::block_head(out, chomping, spot),
            What::Text(line) => yaml::block_line(out, line, self.at.indent),
            What::Written(line) => {
                out.push_str(line);
                out.push('\n');
            }
        }
    }
}

/// The YAML of two objects, in pieces that one of them has or both.
#[derive(Debug, Default)]
pub(super) struct Script<'a> {
    pieces: Vec<Piece<'a>>,
    /// The dashes that no line of a side has yet.
    dashes: [u32; 2],
    /// How many pieces each side has.
    counts: [usize; 2],
}

/// A place in a script, to see later what came after it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    piece: usize,
    counts: [usize; 2],
}

impl<'a> Script<'a> {
    /// Forgets everything, and keeps the room for it.
    pub(super) fn clear(&mut self) {
        self.pieces.clear();
        self.dashes = [0, 0];
        self.counts = [0, 0];
    }

    /// Begins an item of a list.
    pub(super) fn dash(&mut self, sides: Sides) {
        for (side, dashes) in self.dashes.iter_mut().enumerate() {
            *dashes += u32::from(sides.on(side));
        }
    }

    /// Adds what some sides have at a place.
    pub(super) fn push(&mut self, sides: Sides, at: At<'a>, what: What<'a>) {
        let [before, after] = self.dashes;
        // What begins an item on one side only has another first line there.
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
            What::Leaf(value) => yaml::leaf_lines(value, spot),
            What::Text(_) | What::Written(_) => 1,
            _ => yaml::key_lines(spot),
        };
        self.pieces.push(Piece {
            sides,
            at,
            dashes,
            lines: u32::try_from(lines).unwrap_or(u32::MAX),
            what,
        });
    }

    /// Remembers where the script is.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            piece: self.pieces.len(),
            counts: self.counts,
        }
    }

    /// Tells on which of some sides nothing was added since a mark.
    pub(super) fn silent(&self, mark: Mark, sides: Sides) -> Option<Sides> {
        let is_silent = |side: usize| sides.on(side) && self.counts[side] == mark.counts[side];
        Sides::of(is_silent(0), is_silent(1))
    }

    /// Takes the key at a mark back, which is the last piece.
    pub(super) fn take_back(&mut self, mark: Mark) {
        self.pieces.truncate(mark.piece);
        self.counts = mark.counts;
    }

    /// Says of the key at a mark that nothing follows it on some sides.
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
        // One piece for both, or one for each where their dashes differ.
        for head in self.pieces.iter_mut().skip(mark.piece).take(2) {
            let is_head = matches!(head.what, What::Open);
            let is_silent = head.sides == silent || silent == Sides::Both;
            if is_head && is_silent {
                head.what = What::Nothing(empty);
            }
        }
    }

    /// Adds what two texts have at a place, line by line; tells whether there was time for it.
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

    /// Adds what was written of two lists in two orders, line by line; tells whether there was time.
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

    /// Writes one side of some scripts whose items stand at a place; the first line gets the dashes that
    /// the side still has to write.
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

    /// Writes what changed, with `context` equal lines around it.
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
        // Equal lines are counted twice, which is room for what follows.
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

/// Writes the pieces that one side has.
fn put(hunk: &mut Hunk, kind: Kind, pieces: &[Piece<'_>], sides: Sides) {
    for piece in pieces.iter().filter(|piece| piece.sides == sides) {
        piece.add_to(hunk, kind, 0, usize::MAX);
    }
}

/// Pieces in a row that only one side has.
struct Run {
    pieces: Range<usize>,
    before: Range<usize>,
    after: Range<usize>,
}
