//! Compares two texts by line. Each difference is a hunk: changed lines with some equal lines around them.

use std::ops::Range;
use std::time::Instant;

use serde::Serialize;

use super::sequence::{self, Edit};
use super::words::words;

/// Which of the two texts contains a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Both texts contain the line.
    Context,
    /// Only the first text contains the line.
    Removed,
    /// Only the second text contains the line.
    Added,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub kind: Kind,
    /// The number of the line in the first text, from 1; None if that text does not contain the line.
    pub before: Option<usize>,
    /// The number of the line in the second text, from 1; None if that text does not contain the line.
    pub after: Option<usize>,
    /// The byte range of the line in the text of the hunk, without the line break.
    text: Range<usize>,
    /// Whether the line ends with a line break. Only the last line of a text may have none.
    pub ended: bool,
    /// For a replaced line, the index in the hunk of the line that replaces it; for a replacing line, that of the
    /// line it replaces. None for other lines.
    pub pair: Option<usize>,
}

/// A range of consecutive lines in one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The number of the first line of the range, from 1. If the range is empty, the number of the line before it.
    pub start: usize,
    /// The number of lines in the range.
    pub count: usize,
}

/// A group of changed lines that are close together, with the equal lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The range of lines of the first text that the hunk shows.
    pub before: Span,
    /// The range of lines of the second text that the hunk shows.
    pub after: Span,
    /// The lines of the hunk in order. Removed lines come before the added lines that replace them.
    pub lines: Vec<Line>,
    /// The text of all lines of the hunk as one string, because one small string per line would be slow.
    text: String,
}

impl Hunk {
    /// Creates an empty hunk that starts after line `before` of the first text and line `after` of the second
    /// text, with capacity for `lines` lines.
    pub(super) fn begin(before: usize, after: usize, lines: usize) -> Self {
        let empty = |start| Span { start, count: 0 };
        Self {
            before: empty(before),
            after: empty(after),
            lines: Vec::with_capacity(lines),
            text: String::with_capacity(lines.saturating_mul(LENGTH)),
        }
    }

    /// Adds one line to the hunk. `write` appends the text of the line.
    pub(super) fn write_line(&mut self, kind: Kind, write: impl FnOnce(&mut String)) {
        let at = self.text.len();
        write(&mut self.text);
        let ended = self.text.ends_with('\n');
        let end = self.text.len() - usize::from(ended);
        self.push(kind, at..end, ended);
    }

    /// Adds lines of one kind to the hunk: skips the first `skip` lines, then adds at most `limit`. Returns the
    /// number of added lines.
    pub(super) fn write(
        &mut self,
        kind: Kind,
        skip: usize,
        limit: usize,
        write: impl FnOnce(&mut String),
    ) -> usize {
        let mut at = self.text.len();
        write(&mut self.text);
        let (known, end) = (self.lines.len(), self.text.len());
        let mut skipped = 0;
        while at < end && self.lines.len() - known < limit {
            let rest = self.text.get(at..end).unwrap_or_default();
            let length = rest.find('\n').unwrap_or(rest.len());
            let ended = length < rest.len();
            if skipped < skip {
                skipped += 1;
            } else {
                self.push(kind, at..at + length, ended);
            }
            at += length + usize::from(ended);
        }
        self.lines.len() - known
    }

    fn push(&mut self, kind: Kind, text: Range<usize>, ended: bool) {
        let next = |span: &mut Span, is_there: bool| {
            is_there.then(|| {
                // The start of an empty range is the line before it, so the start increases with the first added
                // line.
                span.start += usize::from(span.count == 0);
                span.count += 1;
                span.start + span.count - 1
            })
        };
        let before = next(&mut self.before, kind != Kind::Added);
        let after = next(&mut self.after, kind != Kind::Removed);
        self.lines.push(Line {
            kind,
            before,
            after,
            text,
            ended,
            pair: None,
        });
    }

    /// Returns the text of a line without its line break. The text may contain control characters.
    pub fn text(&self, line: &Line) -> &str {
        self.text.get(line.text.clone()).unwrap_or_default()
    }

    /// Pairs removed lines with added lines. The removed lines begin at the index `removed`; the added lines begin at
    /// the index `added` and reach to the end of the hunk.
    ///
    /// If there are as many removed as added lines, pairs them in order. Otherwise pairs a removed line with the next
    /// added line that has the same indentation and key.
    pub(super) fn pair(&mut self, removed: usize, added: usize) {
        let end = self.lines.len();
        let as_many = added - removed == end - added;
        let mut next = added;
        for at in removed..added {
            let found = match as_many {
                true => Some(next),
                false => {
                    let own = head(self.text(&self.lines[at]));
                    (next..end.min(next + REACH))
                        .find(|other| head(self.text(&self.lines[*other])) == own)
                }
            };
            let Some(other) = found.filter(|other| *other < end) else {
                continue;
            };
            self.lines[at].pair = Some(other);
            self.lines[other].pair = Some(at);
            next = other + 1;
        }
    }

    /// Reduces the hunk to at most `context` equal lines around each change. So the hunk may become several hunks.
    pub fn narrowed(&self, context: usize) -> Vec<Hunk> {
        let changed: Vec<usize> = (0..self.lines.len())
            .filter(|at| self.lines[*at].kind != Kind::Context)
            .collect();
        let near = context.saturating_mul(2).saturating_add(1);
        changed
            .chunk_by(|one, next| next - one <= near)
            .filter_map(|run| {
                let (first, last) = (run.first()?, run.last()?);
                let start = first.saturating_sub(context);
                let end = last
                    .saturating_add(context)
                    .saturating_add(1)
                    .min(self.lines.len());
                Some(self.part(start..end))
            })
            .collect()
    }

    /// Copies a range of the hunk's lines to a new hunk.
    fn part(&self, range: Range<usize>) -> Hunk {
        let gone = self.lines.get(..range.start).unwrap_or_default();
        let behind = |span: Span, without: Kind| {
            let lines = gone.iter().filter(|line| line.kind != without).count();
            span.start - usize::from(span.count > 0) + lines
        };
        let mut hunk = Hunk::begin(
            behind(self.before, Kind::Added),
            behind(self.after, Kind::Removed),
            range.len(),
        );
        for line in self.lines.get(range.clone()).unwrap_or_default() {
            hunk.write_line(line.kind, |out| {
                out.push_str(self.text(line));
                out.push_str(if line.ended { "\n" } else { "" });
            });
            if let Some(written) = hunk.lines.last_mut() {
                let pair = line.pair.filter(|pair| range.contains(pair));
                written.pair = pair.map(|pair| pair - range.start);
            }
        }
        hunk
    }

    /// Returns the byte ranges of a line that differ from the line it is paired with. This is slow, so callers use it
    /// only for lines on the screen.
    pub fn words(&self, line: usize) -> Vec<Range<usize>> {
        let Some(this) = self.lines.get(line) else {
            return Vec::new();
        };
        let Some(other) = this.pair.and_then(|pair| self.lines.get(pair)) else {
            return Vec::new();
        };
        match this.kind {
            Kind::Removed => words(self.text(this), self.text(other)).0,
            Kind::Added => words(self.text(other), self.text(this)).1,
            Kind::Context => Vec::new(),
        }
    }
}

/// The difference between two texts, as hunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    pub hunks: Vec<Hunk>,
    /// The reason why a hunk is larger than necessary; None if all hunks are as small as possible.
    pub coarse: Option<String>,
}

impl Lines {
    /// Applies the difference to the first text and returns the second text. Returns None if `before` is not the
    /// first text of this difference.
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
                    if found.strip_suffix('\n').unwrap_or(found) != hunk.text(line) {
                        return None;
                    }
                    at += 1;
                }
                if line.kind != Kind::Removed {
                    out.push_str(hunk.text(line));
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

/// Compares two texts by line, with `context` equal lines around each change. After `deadline`, reports each
/// remaining block as completely replaced.
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
        .then(|| "deadline exceeded: some lines are compared as whole blocks".to_owned());
    Lines { hunks, coarse }
}

fn hunk(old: &[&str], new: &[&str], edits: &[Edit], context: usize) -> Hunk {
    let first = edits.first().expect("BUG: a chunk has an item");
    let last = edits.last().expect("BUG: a chunk has an item");
    let lead = context.min(first.before.start);
    let tail = context.min(old.len() - last.before.end);
    let mut at = first.before.start - lead;
    let removed = last.before.end - first.before.start;
    let added: usize = edits.iter().map(|edit| edit.after.len()).sum();
    let room = lead + removed + added + tail;
    let mut hunk = Hunk::begin(at, first.after.start - lead, room);
    let put = |hunk: &mut Hunk, kind: Kind, lines: &[&str]| {
        for line in lines {
            hunk.write_line(kind, |out| out.push_str(line));
        }
    };
    for edit in edits {
        put(&mut hunk, Kind::Context, &old[at..edit.before.start]);
        let removed = hunk.lines.len();
        put(&mut hunk, Kind::Removed, &old[edit.before.clone()]);
        let added = hunk.lines.len();
        put(&mut hunk, Kind::Added, &new[edit.after.clone()]);
        hunk.pair(removed, added);
        at = edit.before.end;
    }
    put(&mut hunk, Kind::Context, &old[at..at + tail]);
    hunk
}

/// The estimated length of a line in bytes, to allocate strings with enough capacity.
const LENGTH: usize = 40;

/// How many added lines ahead `pair` searches for the line that replaces a removed line.
const REACH: usize = 16;

/// Returns the indentation and the key of a YAML line: the text before the first colon.
fn head(text: &str) -> &str {
    text.split_once(':').map_or(text, |(head, _)| head)
}
