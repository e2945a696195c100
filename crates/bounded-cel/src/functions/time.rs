//! The functions for timestamps and durations. Only UTC and fixed offsets are supported as time zones, so that a
//! result does not depend on the time zone files of the machine.

use jiff::Timestamp;
use jiff::tz::{Offset, TimeZone};
use kube_values::{duration, time};

use super::super::CelError;
use super::super::meter::Meter;
use super::super::value::Val;
use super::{Function, mismatch};

/// A part of a timestamp, such as its hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Part {
    Date,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    FullYear,
    Hours,
    Milliseconds,
    Minutes,
    Month,
    Seconds,
}

impl Part {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "getDate" => Self::Date,
            "getDayOfMonth" => Self::DayOfMonth,
            "getDayOfWeek" => Self::DayOfWeek,
            "getDayOfYear" => Self::DayOfYear,
            "getFullYear" => Self::FullYear,
            "getHours" => Self::Hours,
            "getMilliseconds" => Self::Milliseconds,
            "getMinutes" => Self::Minutes,
            "getMonth" => Self::Month,
            "getSeconds" => Self::Seconds,
            _ => return None,
        })
    }
}

/// Calls a function that takes timestamps or durations.
pub(super) fn call<'a>(
    function: Function,
    args: &[Val<'a>],
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    meter.step(4)?;
    match (function, args) {
        (Function::Timestamp, [Val::Time(_)]) | (Function::Duration, [Val::Span(_)]) => {
            Ok(args.first().cloned().unwrap_or(Val::Null))
        }
        (Function::Timestamp, [Val::Text(text)]) => {
            time::timestamp(text).map(Val::Time).ok_or_else(|| {
                CelError::failed(
                    "type conversion error from 'string' to 'google.protobuf.Timestamp'",
                )
            })
        }
        (Function::Timestamp, [Val::Int(seconds)]) => Timestamp::from_second(*seconds)
            .map(Val::Time)
            .map_err(|_| CelError::failed("the timestamp is out of range")),
        (Function::Duration, [Val::Text(text)]) => {
            duration::parse(text).map(Val::Span).ok_or_else(|| {
                CelError::failed(
                    "type conversion error from 'string' to 'google.protobuf.Duration'",
                )
            })
        }
        (Function::Duration, [Val::Int(nanos)]) => Ok(Val::Span(*nanos)),
        (Function::Part(part), [Val::Span(nanos)]) => span_part(part, *nanos, args),
        (Function::Part(part), [Val::Time(time)]) => Ok(time_part(part, *time, TimeZone::UTC)),
        (Function::Part(part), [Val::Time(time), Val::Text(zone)]) => {
            Ok(time_part(part, *time, zone_named(zone)?))
        }
        _ => Err(mismatch("time function", args)),
    }
}

fn span_part<'a>(part: Part, nanos: i64, args: &[Val<'a>]) -> Result<Val<'a>, CelError> {
    const SECOND: i64 = 1_000_000_000;
    Ok(Val::Int(match part {
        Part::Hours => nanos / (3600 * SECOND),
        Part::Minutes => nanos / (60 * SECOND),
        Part::Seconds => nanos / SECOND,
        Part::Milliseconds => nanos / 1_000_000,
        _ => return Err(mismatch("time function", args)),
    }))
}

fn time_part<'a>(part: Part, time: Timestamp, zone: TimeZone) -> Val<'a> {
    let time = time.to_zoned(zone);
    Val::Int(match part {
        Part::Date => i64::from(time.day()),
        Part::DayOfMonth => i64::from(time.day()) - 1,
        Part::DayOfWeek => i64::from(time.weekday().to_sunday_zero_offset()),
        Part::DayOfYear => i64::from(time.day_of_year()) - 1,
        Part::FullYear => i64::from(time.year()),
        Part::Hours => i64::from(time.hour()),
        Part::Milliseconds => i64::from(time.millisecond()),
        Part::Minutes => i64::from(time.minute()),
        Part::Month => i64::from(time.month()) - 1,
        Part::Seconds => i64::from(time.second()),
    })
}

fn zone_named(name: &str) -> Result<TimeZone, CelError> {
    if matches!(name, "UTC" | "Etc/UTC" | "Z" | "") {
        return Ok(TimeZone::UTC);
    }
    let offset = || {
        let (sign, rest) = match name.strip_prefix('-') {
            Some(rest) => (-1, rest),
            None => (1, name.strip_prefix('+').unwrap_or(name)),
        };
        let (hours, minutes) = rest.split_once(':')?;
        let hours: i32 = hours.parse().ok().filter(|h| (0..=18).contains(h))?;
        let minutes: i32 = minutes.parse().ok().filter(|m| (0..60).contains(m))?;
        Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
    };
    offset()
        .map(TimeZone::fixed)
        .ok_or_else(|| CelError::failed("a time zone is UTC or an offset here, as in +02:00"))
}

/// Formats a duration, given in nanoseconds, as a number of seconds: `5400s`, `1.5s`.
pub(in super::super) fn show_span(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let nanos = nanos.unsigned_abs();
    let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
    if rest == 0 {
        return format!("{sign}{seconds}s");
    }
    let fraction = format!("{rest:09}");
    format!("{sign}{seconds}.{}s", fraction.trim_end_matches('0'))
}
