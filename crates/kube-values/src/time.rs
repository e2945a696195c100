//! Parses dates and times in the notation of Kubernetes.

use jiff::Timestamp;
use jiff::civil::Date;

/// Parses a date such as `2024-02-29`.
pub fn date(text: &str) -> Option<Date> {
    text.parse().ok().filter(|_| text.len() == 10)
}

/// Parses a time of RFC 3339: a `T` and an offset are necessary, an annotation in brackets is not allowed.
pub fn timestamp(text: &str) -> Option<Timestamp> {
    let separator = text.as_bytes().get(10);
    let is_plain = separator.is_some_and(|c| matches!(c, b'T' | b't')) && !text.contains('[');
    text.parse().ok().filter(|_| is_plain)
}
