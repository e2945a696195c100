//! The lines that differ between two texts, in hunks with their surroundings.

use std::ops::Range;
use std::time::Instant;

use serde::Serialize;

use super::sequence::{self, Edit};
use super::words::words;

/// Whether a line is on both sides or on one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// It stands in both texts.
    Context,
    /// It stands in the first text only.
    Removed,
    /// It stands in the second text only.
    Added,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// On which side it stands.
    pub kind: Kind,
    /// Its number in the first text, from 1.
    pub before: Option<usize>,
    /// Its number in the second text, from 1.
    pub after: Option<usize>,
    /// What it says, without its line end; not cleaned for a terminal.
    pub text: String,
    /// Whether a line end follows; only the last line of a text may have none.
    pub ended: bool,
    /// Where in the hunk the line stands that this one became or was.
    pub pair: Option<usize>,
}

/// A run of lines of one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The number of the first line, from 1; of an empty run, the line before it.
    pub start: usize,
    /// How many lines.
    pub count: usize,
}

/// Changes that stand close together, with the equal lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// What it covers of the first text.
    pub before: Span,
    /// What it covers of the second text.
    pub after: Span,
    /// Its lines, removed ones before added ones.
    pub lines: Vec<Line>,
}

impl Hunk {
    /// Finds the bytes of a line's text that changed inside it; worked out when asked, for what is seen.
    pub fn words(&self, line: usize) -> Vec<Range<usize>> {
        let Some(this) = self.lines.get(line) else {
            return Vec::new();
        };
        let Some(other) = this.pair.and_then(|pair| self.lines.get(pair)) else {
            return Vec::new();
        };
        match this.kind {
            Kind::Removed => words(&this.text, &other.text).0,
            Kind::Added => words(&other.text, &this.text).1,
            Kind::Context => Vec::new(),
        }
    }
}

/// What differs between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The changes, in order.
    pub hunks: Vec<Hunk>,
    /// Says why some change is shown larger than it is.
    pub coarse: Option<String>,
}

impl Lines {
    /// Makes the second text out of the first; none when it is not the text that was compared.
    pub fn apply(&self, before: &str) -> Option<String> {
        let old: Vec<&str> = before.split_inclusive('\n').collect();
        let mut out = String::with_capacity(before.len());
        let mut at = 0;
        for hunk in &self.hunks {
            let empty = usize::from(hunk.before.count == 0);
            let start = (hunk.before.start + empty).checked_sub(1)?;
            out.extend(old.get(at..start)?.iter().copied());
            at = start;
            for line in &hunk.lines {
                if line.kind != Kind::Added {
                    let found = old.get(at)?;
                    if found.strip_suffix('\n').unwrap_or(found) != line.text {
                        return None;
                    }
                    at += 1;
                }
                if line.kind != Kind::Removed {
                    out.push_str(&line.text);
                    if line.ended {
                        out.push('\n');
                    }
                }
            }
        }
        out.extend(old.get(at..)?.iter().copied());
        Some(out)
    }
}

/// Compares two texts by line, with `context` equal lines around each change.
pub fn lines(before: &str, after: &str, context: usize, deadline: Option<Instant>) -> Lines {
    if before == after {
        return Lines {
            hunks: Vec::new(),
            coarse: None,
        };
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    let found = sequence::edits(&old, &new, deadline);
    let hunks = found
        .edits
        .chunk_by(|one, next| next.before.start - one.before.end <= context.saturating_mul(2))
        .map(|edits| hunk(&old, &new, edits, context))
        .collect();
    let coarse = (!found.exact)
        .then(|| "the deadline passed: some lines are compared in whole blocks".to_owned());
    Lines { hunks, coarse }
}

fn hunk(old: &[&str], new: &[&str], edits: &[Edit], context: usize) -> Hunk {
    let first = edits.first().expect("BUG: a chunk has an item");
    let last = edits.last().expect("BUG: a chunk has an item");
    let lead = context.min(first.before.start);
    let tail = context.min(old.len() - last.before.end);
    let before = first.before.start - lead..last.before.end + tail;
    let after = first.after.start - lead..last.after.end + tail;
    let mut lines = Vec::with_capacity(before.len().max(after.len()));
    let (mut at, mut at_after) = (before.start, after.start);
    let end = Edit {
        before: before.end..before.end,
        after: after.end..after.end,
    };
    for edit in edits.iter().chain([&end]) {
        for (number, text) in (at..).zip(&old[at..edit.before.start]) {
            let other = at_after + number - at;
            lines.push(line(Kind::Context, Some(number), Some(other), text));
        }
        let removed = lines.len();
        for (number, text) in (edit.before.start..).zip(&old[edit.before.clone()]) {
            lines.push(line(Kind::Removed, Some(number), None, text));
        }
        let added = lines.len();
        for (number, text) in (edit.after.start..).zip(&new[edit.after.clone()]) {
            lines.push(line(Kind::Added, None, Some(number), text));
        }
        pair(&mut lines, removed, added);
        (at, at_after) = (edit.before.end, edit.after.end);
    }
    Hunk {
        before: span(&before),
        after: span(&after),
        lines,
    }
}

fn line(kind: Kind, before: Option<usize>, after: Option<usize>, text: &str) -> Line {
    let stripped = text.strip_suffix('\n');
    Line {
        kind,
        before: before.map(|at| at + 1),
        after: after.map(|at| at + 1),
        text: stripped.unwrap_or(text).to_owned(),
        ended: stripped.is_some(),
        pair: None,
    }
}

fn span(range: &Range<usize>) -> Span {
    Span {
        start: range.start + usize::from(!range.is_empty()),
        count: range.len(),
    }
}

/// How far down a line's partner is looked for.
const REACH: usize = 16;

/// Pairs removed with added lines: one to one where there are as many, else by what they begin with.
fn pair(lines: &mut [Line], removed: usize, added: usize) {
    let end = lines.len();
    let as_many = added - removed == end - added;
    let mut next = added;
    for at in removed..added {
        let found = match as_many {
            true => Some(next),
            false => (next..end.min(next + REACH))
                .find(|other| head(&lines[*other].text) == head(&lines[at].text)),
        };
        let Some(other) = found.filter(|other| *other < end) else {
            continue;
        };
        lines[at].pair = Some(other);
        lines[other].pair = Some(at);
        next = other + 1;
    }
}

/// What names a line of YAML: its indentation and key.
fn head(text: &str) -> &str {
    text.split_once(':').map_or(text, |(head, _)| head)
}
