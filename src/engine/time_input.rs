//! Parses the times that users type: a time of day, a date, or a duration ago.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan, Zoned};
use kube_values::time::date;

use crate::api::interval::Interval;

/// The error for a text that cannot be parsed as a time. Contains the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a time; write 14:02, yesterday 14:02, 2026-01-31, 2026-01-31 14:02, 2026-01-31T14:02:00Z, or a duration ago: 20m, 2h, 7d"
)]
pub struct NotATime(pub String);

/// Parses a time that a user typed. `now` is the current time, and `zone` the time zone of the user.
///
/// A time of day without a date is never in the future: `23:00`, typed at noon, means yesterday.
pub fn read(text: &str, now: Timestamp, zone: &TimeZone) -> Result<Timestamp, NotATime> {
    let words = text.trim();
    let here = now.to_zoned(zone.clone());
    let ago = words.strip_suffix(" ago").unwrap_or(words);
    let found = match words {
        "now" => Some(now),
        "today" => start_of(here.date(), zone),
        "yesterday" => here
            .date()
            .yesterday()
            .ok()
            .and_then(|day| start_of(day, zone)),
        _ => words
            .parse()
            .ok()
            .or_else(|| date(words).and_then(|day| start_of(day, zone)))
            .or_else(|| on_a_day(words, &here, zone))
            .or_else(|| last(time(words)?, &here, zone))
            .or_else(|| {
                now.checked_sub(Interval::from(ago.trim()).duration().ok()?)
                    .ok()
            }),
    };
    found.ok_or_else(|| NotATime(text.to_owned()))
}

/// Parses a time of day, with or without seconds.
fn time(text: &str) -> Option<Time> {
    let parts: Vec<&str> = text.split(':').collect();
    let number = |part: &&str| -> Option<i8> {
        let figures = matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse().ok().filter(|_| figures)
    };
    match parts.as_slice() {
        [hour, minute] => Time::new(number(hour)?, number(minute)?, 0, 0).ok(),
        [hour, minute, second] => {
            Time::new(number(hour)?, number(minute)?, number(second)?, 0).ok()
        }
        _ => None,
    }
}

fn on_a_day(text: &str, here: &Zoned, zone: &TimeZone) -> Option<Timestamp> {
    let (first, rest) = text.split_once([' ', 'T'])?;
    let date = match first {
        "today" => here.date(),
        "yesterday" => here.date().yesterday().ok()?,
        first => date(first)?,
    };
    moment(date.to_datetime(time(rest.trim())?), zone)
}

fn last(time: Time, here: &Zoned, zone: &TimeZone) -> Option<Timestamp> {
    let today = moment(here.date().to_datetime(time), zone)?;
    match today <= here.timestamp() {
        true => Some(today),
        false => moment(
            here.date().checked_sub(1.day()).ok()?.to_datetime(time),
            zone,
        ),
    }
}

fn start_of(day: Date, zone: &TimeZone) -> Option<Timestamp> {
    moment(day.to_datetime(Time::midnight()), zone)
}

fn moment(at: DateTime, zone: &TimeZone) -> Option<Timestamp> {
    Some(at.to_zoned(zone.clone()).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_type() {
        let now: Timestamp = "2026-11-17T13:30:00Z".parse().unwrap();
        // The test uses a time zone with UTC+1 in winter and UTC+2 in summer.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        for (text, expected) in [
            ("now", "2026-11-17T13:30:00Z"),
            ("14:02", "2026-11-17T13:02:00Z"),
            (" 14:02 ", "2026-11-17T13:02:00Z"),
            ("9:05", "2026-11-17T08:05:00Z"),
            ("14:30", "2026-11-17T13:30:00Z"),
            ("14:30:01", "2026-11-16T13:30:01Z"),
            ("14:31", "2026-11-16T13:31:00Z"),
            ("today 14:31", "2026-11-17T13:31:00Z"),
            ("yesterday 14:02", "2026-11-16T13:02:00Z"),
            ("yesterday", "2026-11-15T23:00:00Z"),
            ("today", "2026-11-16T23:00:00Z"),
            ("2026-11-17 14:02", "2026-11-17T13:02:00Z"),
            ("2026-07-01 14:02", "2026-07-01T12:02:00Z"),
            ("2026-07-01T14:02:03", "2026-07-01T12:02:03Z"),
            ("2026-07-01", "2026-06-30T22:00:00Z"),
            ("2026-07-01T14:02:03Z", "2026-07-01T14:02:03Z"),
            ("2026-07-01T14:02:03+05:00", "2026-07-01T09:02:03Z"),
            ("20m", "2026-11-17T13:10:00Z"),
            ("20m ago", "2026-11-17T13:10:00Z"),
            ("1h30m", "2026-11-17T12:00:00Z"),
            ("7d", "2026-11-10T13:30:00Z"),
            // On this day the clocks skip 02:30, so the result is one hour later.
            ("2026-03-29 02:30", "2026-03-29T01:30:00Z"),
        ] {
            let expected: Timestamp = expected.parse().unwrap();
            assert_eq!(read(text, now, &zone), Ok(expected), "{text}");
        }
        for text in [
            "",
            "soon",
            "25:00",
            "14:60",
            "14",
            "14:2x",
            "1:2:3:4",
            "2026-13-01",
            "tomorrow 14:02",
            "20 m",
            "-5m",
            "2026-11-17 noon",
            "99999999d",
        ] {
            assert_eq!(
                read(text, now, &zone),
                Err(NotATime(text.to_owned())),
                "{text}"
            );
        }
    }
}
