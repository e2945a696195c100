//! Dates and times as Kubernetes writes them.

use jiff::Timestamp;
use jiff::civil::Date;

/// Reads a date, as in `2024-02-29`.
pub fn date(text: &str) -> Option<Date> {
    text.parse().ok().filter(|_| text.len() == 10)
}

/// Reads a time of RFC 3339: with a `T`, an offset, and no annotation in brackets.
pub fn timestamp(text: &str) -> Option<Timestamp> {
    let separator = text.as_bytes().get(10);
    let is_plain = separator.is_some_and(|c| matches!(c, b'T' | b't')) && !text.contains('[');
    text.parse().ok().filter(|_| is_plain)
}
