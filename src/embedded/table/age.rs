//! Ages as people say them: two or three figures, never more.

use jiff::Timestamp;
use serde_json::Value;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// How long ago a time stamp is.
pub(super) fn since(stamp: &Value, now: &str) -> String {
    let Some(text) = stamp.as_str().filter(|text| !text.is_empty()) else {
        return "<unknown>".to_owned();
    };
    match (text.parse::<Timestamp>(), now.parse::<Timestamp>()) {
        (Ok(then), Ok(now)) => words(now.as_second() - then.as_second()),
        _ => "<invalid>".to_owned(),
    }
}

/// The time between two stamps; nothing where one is missing.
pub(super) fn between(from: &Value, to: &Value) -> Option<String> {
    let read = |stamp: &Value| stamp.as_str()?.parse::<Timestamp>().ok();
    Some(words(read(to)?.as_second() - read(from)?.as_second()))
}

/// A span of seconds.
pub(super) fn words(seconds: i64) -> String {
    let pair = |large: i64, a: char, small: i64, b: char| match small {
        0 => format!("{large}{a}"),
        small => format!("{large}{a}{small}{b}"),
    };
    match seconds {
        // Clocks of two machines differ a little.
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => pair(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => pair(seconds / HOUR, 'h', seconds / MINUTE % 60, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => pair(seconds / DAY, 'd', seconds / HOUR % 24, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => pair(seconds / YEAR, 'y', seconds / DAY % 365, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}
