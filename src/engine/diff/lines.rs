//! Compares two texts by line. The differences are hunks with equal lines (context) around them.

use std::ops::Range;
use std::time::Instant;

use serde::Serialize;

use super::sequence::{self, Edit};
use super::words::words;

/// The text that contains a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Both texts.
    Context,
    /// Only the first text.
    Removed,
    /// Only the second text.
    Added,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub kind: Kind,
    /// The number of the line in the first text, from 1; None if that text does not contain the line.
    pub before: Option<usize>,
    /// The number of the line in the second text, from 1; None if that text does not contain the line.
    pub after: Option<usize>,
    /// The byte range of the line in the text of the hunk, without the line end.
    text: Range<usize>,
    /// Whether a line break ends the line. Only the last line of a text may have none.
    pub ended: bool,
    /// The index in the hunk of the line that replaces this line or that this line replaces; None if there is
    /// none.
    pub pair: Option<usize>,
}

/// Consecutive lines of one text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The number of the first line, from 1; if there are no lines, the number of the line before.
    pub start: usize,
    /// The number of lines.
    pub count: usize,
}

/// Changes that are close together, with the equal lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// The lines of the first text that the hunk covers.
    pub before: Span,
    /// The lines of the second text that the hunk covers.
    pub after: Span,
    /// The lines of the hunk; removed lines come before added lines.
    pub lines: Vec<Line>,
    /// The text of all lines as one string. One small string per line would cost more time than the diff.
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

    /// Adds one line.
    pub(super) fn write_line(&mut self, kind: Kind, write: impl FnOnce(&mut String)) {
        let at = self.text.len();
        write(&mut self.text);
        let ended = self.text.ends_with('\n');
        let end = self.text.len() - usize::from(ended);
        self.push(kind, at..end, ended);
    }

    /// Adds lines of one kind: skips the first `skip` lines, then adds at most `limit`. Returns the number of
    /// added lines.
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
                // The span of an empty run starts at the line before it, so the first added line moves the
                // start.
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

    /// Returns the text of a line without its line end. The text may contain control characters.
    pub fn text(&self, line: &Line) -> &str {
        self.text.get(line.text.clone()).unwrap_or_default()
    }

    /// Pairs each removed line with an added line: in order if there are as many removed as added lines,
    /// otherwise by indentation and key.
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

    /// Returns the hunk with at most `context` equal lines around each change. The result may be several
    /// hunks.
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

    /// Copies a range of lines to a new hunk.
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

    /// Returns the byte ranges of a line that differ from its pair. Callers use it only for visible lines,
    /// because it is slow.
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
    /// The reason why a hunk is larger than necessary; None if all hunks are exact.
    pub coarse: Option<String>,
}

impl Lines {
    /// Applies the difference to the first text and returns the second text; None if `before` is not the
    /// first text.
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

/// Compares two texts by line, with `context` equal lines around each change. After `deadline`, reports whole
/// blocks as replaced.
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

/// The estimated length of a line in bytes, for the capacity of strings.
const LENGTH: usize = 40;

/// How many lines ahead the pairing of lines searches.
const REACH: usize = 16;

/// Returns the indentation and the key of a YAML line.
fn head(text: &str) -> &str {
    text.split_once(':').map_or(text, |(head, _)| head)
}
