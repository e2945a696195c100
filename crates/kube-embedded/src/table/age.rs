//! Formats ages as kubectl does.

use jiff::Timestamp;
use serde_json::Value;

/// Formats the time from a timestamp until `now` as an age, such as `5m`.
pub(super) fn since(stamp: &Value, now: &str) -> String {
    let Some(stamp) = stamp.as_str().filter(|stamp| !stamp.is_empty()) else {
        return "<unknown>".to_owned();
    };
    match (stamp.parse::<Timestamp>(), now.parse::<Timestamp>()) {
        (Ok(then), Ok(now)) => human_duration(now.as_second() - then.as_second()),
        _ => "<invalid>".to_owned(),
    }
}

/// Formats the time between two timestamps; `None` if one of them is missing or invalid.
pub(super) fn between(from: &Value, to: &Value) -> Option<String> {
    let read = |stamp: &Value| stamp.as_str()?.parse::<Timestamp>().ok();
    Some(human_duration(
        read(to)?.as_second() - read(from)?.as_second(),
    ))
}

/// Formats a number of seconds as kubectl does: `2m15s`, `47h`, `2y1d`; `<invalid>` if it is less than -1.
pub fn human_duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let pair = |large: i64, a: char, small: i64, b: char| match small {
        0 => format!("{large}{a}"),
        small => format!("{large}{a}{small}{b}"),
    };
    match seconds {
        // One second in the future counts as 0, because the clocks of two machines may differ.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_two_or_three_figures() {
        const MINUTE: i64 = 60;
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        for (seconds, words) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (135, "2m15s"),
            (9 * MINUTE + 59, "9m59s"),
            (10 * MINUTE + 30, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY + 3 * HOUR, "8d"),
            (729 * DAY, "729d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (9 * 365 * DAY, "9y"),
        ] {
            assert_eq!(human_duration(seconds), words, "{seconds}");
        }
    }
}
