//! Replaces byte ranges of a text, and finds line starts and line ends.

use super::change::Refused;
use super::node::Node;

/// The replacement of a byte range by a new text.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) text: String,
}

/// Applies edits to a text; fails if two edits overlap.
pub(super) fn apply(text: &str, mut edits: Vec<Edit>) -> Result<String, Refused> {
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let mut out = String::with_capacity(text.len() + 256);
    let mut at = 0;
    for edit in edits {
        let kept = text.get(at..edit.start).filter(|_| edit.start >= at);
        let Some(kept) = kept.filter(|_| edit.end >= edit.start) else {
            return Err(Refused {
                at: edit.start,
                why: "two changes meet at one place".to_owned(),
            });
        };
        out.push_str(kept);
        out.push_str(&edit.text);
        at = edit.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    Ok(out)
}

/// Returns the offset of the start of the line that contains the offset `at`.
pub(super) fn line_start(text: &str, at: usize) -> usize {
    let before = text.get(..at).unwrap_or_default();
    before.rfind('\n').map_or(0, |newline| newline + 1)
}

/// Returns the offset of the end of the line that contains the offset `at`, without its line ending.
pub(super) fn line_end(text: &str, at: usize) -> usize {
    let after = text.get(at..).unwrap_or_default();
    let end = after.find('\n').map_or(text.len(), |newline| at + newline);
    match text.get(at..end).is_some_and(|rest| rest.ends_with('\r')) {
        true => end - 1,
        false => end,
    }
}

/// Returns the offset of the start of the next line after the offset `at`.
pub(super) fn next_line(text: &str, at: usize) -> usize {
    let after = text.get(at..).unwrap_or_default();
    after
        .find('\n')
        .map_or(text.len(), |newline| at + newline + 1)
}

/// Returns the line ending of the line before the offset `at`: `\n` or `\r\n`. If no line is before it, returns the
/// line ending of the first line.
pub(super) fn line_ending(text: &str, at: usize) -> &'static str {
    let before = text.get(..at).unwrap_or(text);
    let newline = before.rfind('\n').or_else(|| text.find('\n'));
    let carriage =
        newline.is_some_and(|newline| text.get(..newline).is_some_and(|to| to.ends_with('\r')));
    if carriage { "\r\n" } else { "\n" }
}

/// Removes a document, the `---` before it, and the comments between that `---` and the document.
pub(super) fn without_document(text: &str, nodes: &[Node], document: usize) -> Option<String> {
    let node = nodes.get(document)?;
    let before = text.get(..node.start)?;
    // The `---` before the document is removed too. The first document of a text may have none.
    let separator = before
        .match_indices("---")
        .map(|(at, _)| at)
        .filter(|at| line_start(text, *at) == *at)
        .last();
    let previous_end = match document.checked_sub(1) {
        Some(previous) => nodes.get(previous)?.end,
        None => 0,
    };
    let start = separator.filter(|at| *at >= previous_end);
    let after = text.get(node.end..)?;
    let end = after
        .match_indices("---")
        .map(|(at, _)| node.end + at)
        .find(|at| line_start(text, *at) == *at);
    match (start, end) {
        (Some(start), Some(end)) => Some(format!("{}{}", text.get(..start)?, text.get(end..)?)),
        (Some(start), None) => Some(text.get(..start)?.to_owned()),
        (None, Some(end)) if document == 0 => {
            let rest = text.get(next_line(text, end)..)?;
            Some(rest.to_owned())
        }
        _ => None,
    }
}

/// Removes a value from a text with several JSON values, together with the blank space up to the next line.
pub(super) fn without_value(text: &str, nodes: &[Node], document: usize) -> Option<String> {
    let node = nodes.get(document)?;
    let (before, after) = (text.get(..node.start)?, text.get(node.end..)?);
    let blanks = after.trim_start_matches([' ', '\t', '\r']);
    let after = blanks.strip_prefix('\n').unwrap_or(blanks);
    Some(format!("{before}{after}"))
}
