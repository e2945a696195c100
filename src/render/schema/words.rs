//! Formats paths and values for messages.

use std::fmt::{self, Display};
use std::io;

use serde_json::Value;

use crate::text;

/// A path in parameters, for messages. Each element refers to the one before it, so that a path needs no memory
/// allocation.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Whole,
    Key(&'a Place<'a>, &'a str),
    Item(&'a Place<'a>, usize),
}

impl Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Whole => Ok(()),
            Place::Item(parent, at) => write!(f, "{parent}[{at}]"),
            Place::Key(parent, key) => {
                let is_plain = key.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                    && key
                        .chars()
                        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
                let shown = text::fit(key, 80);
                match (is_plain, parent) {
                    (true, Place::Whole) => write!(f, "{shown}"),
                    (true, _) => write!(f, "{parent}.{shown}"),
                    (false, _) => write!(f, "{parent}[{}]", Value::String(shown)),
                }
            }
        }
    }
}

/// Formats a value for a message, as JSON on one line, and shortens it.
pub(super) struct Shown<'a>(pub(super) &'a Value);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut room = Room(Vec::new());
        // An error is ignored, because it only means that the buffer is full and the value is cut off.
        let _ = serde_json::to_writer(&mut room, self.0);
        f.write_str(&text::fit(&String::from_utf8_lossy(&room.0), 48))
    }
}

struct Room(Vec<u8>);

impl io::Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        const SIZE: usize = 512;
        let taken = bytes.len().min(SIZE.saturating_sub(self.0.len()));
        self.0.extend(bytes.iter().take(taken));
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the type of a value in words, for messages.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns `, did you mean ...?` if `word` is similar to one of the words `known`; otherwise an empty text.
pub(super) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|known| (distance(word, known), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, known)| format!(", did you mean `{}`?", text::fit(known, 80)))
        .unwrap_or_default()
}

/// Returns how many letters must be added, removed or changed to get from one word to the other, ignoring case. For a
/// long word, returns the largest number, so that it is similar to no word.
fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 64;
    if a.len() > LONGEST || b.len() > LONGEST {
        return usize::MAX;
    }
    let a: Vec<char> = a.to_lowercase().chars().collect();
    let b: Vec<char> = b.to_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (to, above) in b.iter().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + usize::from(from != to);
            diagonal = *above;
            left = changed.min(left + 1).min(*above + 1);
            *above = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}
