//! Splits a stream of JSON objects: objects that follow each other without separators, as Kubernetes tools accept
//! them.
//!
//! The splitting is necessary because the YAML parser accepts only one JSON value. It also accepts no tab before a
//! key, so each tab between tokens is replaced by one space, which keeps all byte offsets valid.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

/// A part of a text that the YAML parser reads on its own.
pub(super) struct Part<'t> {
    /// The byte offset of the part in the text.
    pub(super) start: usize,
    /// The number of lines in the text before the part.
    pub(super) lines: usize,
    pub(super) text: Cow<'t, str>,
}

/// Splits a text into the parts that the YAML parser reads on their own. The text must not begin with a byte order
/// mark.
pub(super) fn parts(text: &str) -> Vec<Part<'_>> {
    let Some(values) = values(text) else {
        return vec![Part {
            start: 0,
            lines: 0,
            text: text.into(),
        }];
    };
    let mut lines = 0;
    let part = |range: Range<usize>| {
        let start = range.start;
        let said = text.get(range).unwrap_or_default();
        let part = Part {
            start,
            lines,
            text: without_tabs(said),
        };
        lines += said.matches('\n').count();
        part
    };
    values.into_iter().map(part).collect()
}

/// Returns whether a text consists of one or more JSON objects.
pub(super) fn is_json(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    values(text).is_some()
}

/// Returns the byte ranges of the objects in a stream of JSON objects, each with the blank space before it;
/// None for other texts.
fn values(text: &str) -> Option<Vec<Range<usize>>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut found: Vec<Range<usize>> = Vec::new();
    while let Some(value) = stream.next() {
        value.ok()?;
        let start = found.last().map_or(0, |last| last.end);
        found.push(start..stream.byte_offset());
    }
    Some(found)
}

/// Replaces each tab between the tokens of a JSON value by a space.
fn without_tabs(text: &str) -> Cow<'_, str> {
    if !text.contains('\t') {
        return text.into();
    }
    let (mut quoted, mut escaped) = (false, false);
    let replace = |c: char| {
        let is_quote = c == '"' && !escaped;
        escaped = quoted && c == '\\' && !escaped;
        quoted ^= is_quote;
        match c {
            '\t' if !quoted => ' ',
            c => c,
        }
    };
    text.chars().map(replace).collect()
}
