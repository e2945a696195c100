//! Ages as people say them: two or three figures, never more.

use jiff::Timestamp;
use serde_json::Value;

use crate::text;

/// How long ago a time stamp is.
pub(super) fn since(stamp: &Value, now: &str) -> String {
    let Some(stamp) = stamp.as_str().filter(|stamp| !stamp.is_empty()) else {
        return "<unknown>".to_owned();
    };
    match (stamp.parse::<Timestamp>(), now.parse::<Timestamp>()) {
        (Ok(then), Ok(now)) => text::age(now.as_second() - then.as_second()),
        _ => "<invalid>".to_owned(),
    }
}

/// The time between two stamps; nothing where one is missing.
pub(super) fn between(from: &Value, to: &Value) -> Option<String> {
    let read = |stamp: &Value| stamp.as_str()?.parse::<Timestamp>().ok();
    Some(text::age(read(to)?.as_second() - read(from)?.as_second()))
}
