//! The lines that differ between two texts, in hunks with context lines.

use std::ops::Range;
use std::time::Instant;

use serde::Serialize;

use super::sequence::{self, Edit};
use super::words::words;

/// Whether a line is in both texts or only in one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// In both texts.
    Context,
    /// In the first text only.
    Removed,
    /// In the second text only.
    Added,
}

/// One line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Whether the line is in both texts or only in one of them.
    pub kind: Kind,
    /// The line number in the first text, from 1; None if the line is not in that text.
    pub before: Option<usize>,
    /// The line number in the second text, from 1; None if the line is not in that text.
    pub after: Option<usize>,
    /// The byte range in the text of the hunk, without the line end.
    text: Range<usize>,
    /// Whether the line has a line end; only the last line of a text may have none.
    pub ended: bool,
    /// The index in the hunk of the removed or added line that this line is paired with.
    pub pair: Option<usize>,
}

/// A run of lines of one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The number of the first line, from 1; for an empty run, the number of the line before it.
    pub start: usize,
    /// The number of lines.
    pub count: usize,
}

/// Changes that are close together, with the equal lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The position and number of the lines in the first text.
    pub before: Span,
    /// The position and number of the lines in the second text.
    pub after: Span,
    /// The lines, removed lines before added lines.
    pub lines: Vec<Line>,
    /// The text of all lines in one string: thousands of small strings would cost more than the
    /// diff.
    text: String,
}

impl Hunk {
    /// Creates an empty hunk after the first `before` and `after` lines of the two texts, with capacity for
    /// `lines` lines.
    pub(super) fn begin(before: usize, after: usize, lines: usize) -> Self {
        let empty = |start| Span { start, count: 0 };
        Self {
            before: empty(before),
            after: empty(after),
            lines: Vec::with_capacity(lines),
            text: String::with_capacity(lines.saturating_mul(LENGTH)),
        }
    }

    /// Adds one line.
    pub(super) fn write_line(&mut self, kind: Kind, write: impl FnOnce(&mut String)) {
        let at = self.text.len();
        write(&mut self.text);
        let ended = self.text.ends_with('\n');
        let end = self.text.len() - usize::from(ended);
        self.push(kind, at..end, ended);
    }

    /// Adds lines of one kind: skips the first `skip` lines and adds at most `limit`. Returns how many it
    /// added.
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
                // An empty run has the number of the line before it; any other run has the number of its
                // first line.
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

    /// Returns the text of a line without its line end; not cleaned for a terminal.
    pub fn text(&self, line: &Line) -> &str {
        self.text.get(line.text.clone()).unwrap_or_default()
    }

    /// Pairs removed with added lines: one to one if the numbers are equal, otherwise by their
    /// indentation and key.
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

    /// Removes equal lines that are far from any change. The rest may be several hunks.
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

    /// Copies some lines to a new hunk.
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

    /// Returns the changed byte ranges in the text of a line. Computed on demand, because only visible
    /// lines need it.
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

/// The difference between two texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    /// The changes, in order.
    pub hunks: Vec<Hunk>,
    /// The reason why some change is shown larger than it is; None if all are exact.
    pub coarse: Option<String>,
}

impl Lines {
    /// Applies the difference to the first text and returns the second; None if `before` is not the
    /// compared text.
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

/// The estimated length of a line, in bytes.
const LENGTH: usize = 40;

/// How many lines ahead the pairing searches.
const REACH: usize = 16;

/// Returns the indentation and key of a line of YAML.
fn head(text: &str) -> &str {
    text.split_once(':').map_or(text, |(head, _)| head)
}
