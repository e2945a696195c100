//! Durations in Go's notation, such as `1h30m`, `1.5s` or `100ms`, and durations in days.

use std::time::Duration;

const SECOND: i128 = 1_000_000_000;

/// One number with its unit, such as `1.5h`.
struct Term<'t> {
    number: &'t str,
    unit: &'t str,
    /// The length of the term in nanoseconds. A fraction of a nanosecond is cut off.
    nanos: i128,
}

/// Parses a duration as Go does, with an optional sign; `0` needs no unit. Returns nanoseconds; None if the text is
/// not a duration or the number does not fit into 64 bits.
pub fn parse(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let nanos = match unsigned {
        "0" => 0,
        _ => {
            let terms =
                terms(unsigned).filter(|terms| terms.iter().all(|term| term.unit != "d"))?;
            terms.iter().map(|term| term.nanos).sum()
        }
    };
    i64::try_from(if text.starts_with('-') { -nanos } else { nanos }).ok()
}

/// Parses a duration that a user types; None if it is invalid. Unlike Go, it accepts days (`30d`), but no sign, and
/// each number must begin and end with a digit.
pub fn with_days(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let is_digit = |c: char| c.is_ascii_digit();
    let mut nanos = 0;
    for term in terms(text)? {
        if !term.number.starts_with(is_digit) || !term.number.ends_with(is_digit) {
            return None;
        }
        nanos += term.nanos;
    }
    let seconds = u64::try_from(nanos / SECOND).ok()?;
    Some(Duration::new(seconds, (nanos % SECOND) as u32))
}

/// Splits a duration without a sign into its terms; `None` if there is no term or one of them is invalid.
fn terms(text: &str) -> Option<Vec<Term<'_>>> {
    /// The largest length of the text in bytes. Useful durations are shorter, and the sum of the terms cannot
    /// overflow.
    const LONGEST: usize = 256;
    if text.is_empty() || text.len() > LONGEST {
        return None;
    }
    let mut terms = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let is_number = |c: char| c.is_ascii_digit() || c == '.';
        let (number, after) = rest.split_at(rest.find(|c| !is_number(c))?);
        let (unit, after) = after.split_at(after.find(is_number).unwrap_or(after.len()));
        let nanos = nanos(number, scale(unit)?)?;
        terms.push(Term {
            number,
            unit,
            nanos,
        });
        rest = after;
    }
    Some(terms)
}

fn scale(unit: &str) -> Option<i128> {
    Some(match unit {
        "d" => 86_400 * SECOND,
        "h" => 3600 * SECOND,
        "m" => 60 * SECOND,
        "s" => SECOND,
        "ms" => 1_000_000,
        // The two characters are the micro sign and the Greek letter mu. Go accepts both.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1000,
        "ns" => 1,
        _ => return None,
    })
}

fn nanos(number: &str, scale: i128) -> Option<i128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || whole.len() > 19 || fraction.contains('.') {
        return None;
    }
    let mut nanos = match whole {
        "" => 0,
        whole => whole.parse::<i128>().ok()?.checked_mul(scale)?,
    };
    let mut place = scale;
    for digit in fraction.chars() {
        place /= 10;
        nanos += i128::from(digit.to_digit(10)?) * place;
    }
    Some(nanos)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations_as_go_reads_them() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("+.5s", Some(500_000_000)),
            ("1.s", Some(1_000_000_000)),
            ("100ms", Some(100_000_000)),
            ("7µs", Some(7_000)),
            ("7μs", Some(7_000)),
            ("0.5ns", Some(0)),
            ("", None),
            ("-", None),
            ("5", None),
            ("1d", None),
            ("1 h", None),
            ("1.2.3s", None),
            (".s", None),
            ("s", None),
            ("9999999999999h", None),
        ] {
            assert_eq!(parse(text), nanos, "{text:?}");
        }
        for (text, seconds) in [
            ("1d12h", Some(129_600)),
            (".5m", None),
            ("5.m", None),
            ("-5m", None),
        ] {
            assert_eq!(
                with_days(text).map(|found| found.as_secs()),
                seconds,
                "{text:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[0-9.]{0,300}[a-zµ]{0,3}.{0,20}") {
            let _ = parse(&text);
        }
    }
}
