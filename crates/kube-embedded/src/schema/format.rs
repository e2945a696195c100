//! The string formats that the server checks, and values in messages as Go prints them.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use regex::Regex;
use serde_json::Value;

fn matcher(source: &str) -> Regex {
    Regex::new(source).expect("BUG: a constant pattern compiles")
}

/// Returns whether the server checks this format; the others are only documentation.
pub(super) fn is_checked(format: &str) -> bool {
    matches!(
        format.replace('-', "").as_str(),
        "uri"
            | "email"
            | "hostname"
            | "ipv4"
            | "ipv6"
            | "cidr"
            | "mac"
            | "uuid"
            | "uuid3"
            | "uuid4"
            | "uuid5"
            | "byte"
            | "password"
            | "date"
            | "duration"
            | "datetime"
            | "hexcolor"
            | "ssn"
            | "isbn"
            | "isbn10"
            | "isbn13"
            | "creditcard"
            | "rgbcolor"
            | "bsonobjectid"
    ) || matches!(format, "k8s-short-name" | "k8s-long-name")
}

/// Returns whether a string has a format. Rare formats (isbn, creditcard, rgbcolor, bsonobjectid) are not
/// checked.
pub(super) fn holds(format: &str, text: &str) -> bool {
    static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
        matcher(
            r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9\-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$",
        )
    });
    static UUID: LazyLock<Regex> = LazyLock::new(|| {
        matcher(
            "(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?([0-9a-f])[0-9a-f]{3}-?([0-9a-f])[0-9a-f]{3}-?[0-9a-f]{12}$",
        )
    });
    static SHORT: LazyLock<Regex> = LazyLock::new(|| matcher("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"));
    static LONG: LazyLock<Regex> = LazyLock::new(|| {
        matcher(r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    });
    static EMAIL: LazyLock<Regex> = LazyLock::new(|| matcher(r"^(.*<)?[^@\s<>]+@[^@\s<>]+>?$"));
    static MAC: LazyLock<Regex> = LazyLock::new(|| {
        matcher(
            "(?i)^([0-9a-f]{2}([:-][0-9a-f]{2}){5}|[0-9a-f]{2}([:-][0-9a-f]{2}){7}|[0-9a-f]{4}(\\.[0-9a-f]{4}){2,3})$",
        )
    });
    static HEX: LazyLock<Regex> = LazyLock::new(|| matcher("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
    static SSN: LazyLock<Regex> =
        LazyLock::new(|| matcher(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
    static DURATION: LazyLock<Regex> = LazyLock::new(|| {
        matcher(
            r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))*)$|^-?[0-9]+ ?(ns|nano|nanoseconds?|us|micro|microseconds?|ms|milli|milliseconds?|s|sec|seconds?|m|mins?|minutes?|h|hr|hours?|d|days?|w|wk|weeks?)$",
        )
    });
    let uuid = |version: Option<char>| {
        UUID.captures(text).is_some_and(|found| {
            let at = |i: usize| found.get(i).and_then(|m| m.as_str().chars().next());
            match version {
                None => true,
                Some('3') => at(1) == Some('3'),
                Some(v) => at(1) == Some(v) && at(2).is_some_and(|c| "89abAB".contains(c)),
            }
        })
    };
    match format.replace('-', "").as_str() {
        "uri" => text.starts_with('/') || (text.contains(':') && http::Uri::try_from(text).is_ok()),
        "email" => EMAIL.is_match(text),
        "hostname" => {
            HOSTNAME.is_match(text)
                && text.len() <= 255
                && text.split('.').all(|part| part.len() <= 63)
        }
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, bits)| {
            let bits = bits.parse::<u8>();
            (address.parse::<Ipv4Addr>().is_ok() && bits.as_ref().is_ok_and(|&b| b <= 32))
                || (address.parse::<Ipv6Addr>().is_ok() && bits.is_ok_and(|b| b <= 128))
        }),
        "mac" => MAC.is_match(text),
        "uuid" => uuid(None),
        "uuid3" => uuid(Some('3')),
        "uuid4" => uuid(Some('4')),
        "uuid5" => uuid(Some('5')),
        "byte" => {
            !text.is_empty()
                && base64::engine::general_purpose::STANDARD
                    .decode(text)
                    .is_ok()
        }
        "date" => is_date(text),
        "duration" => DURATION.is_match(text),
        "datetime" => is_date_time(text),
        "hexcolor" => HEX.is_match(text),
        "ssn" => SSN.is_match(text),
        "k8sshortname" => text.len() <= 63 && SHORT.is_match(text),
        "k8slongname" => text.len() <= 253 && LONG.is_match(text),
        _ => true,
    }
}

/// Returns whether a text is a date, as in `2024-02-29`.
pub fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok()
}

/// Returns whether a text is a time of RFC 3339: with a `T`, an offset, and no annotation in brackets.
pub fn is_date_time(text: &str) -> bool {
    let separator = text.as_bytes().get(10);
    separator.is_some_and(|c| matches!(c, b'T' | b't'))
        && !text.contains('[')
        && text.parse::<jiff::Timestamp>().is_ok()
}

/// Formats a value for a field error: like `%v` or `%q` in Go, or as JSON.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(n) => match n.as_f64() {
            Some(float) if n.is_f64() => go_float(float),
            _ => n.to_string(),
        },
        Value::Bool(b) => b.to_string(),
        other => go_json(other),
    }
}

/// Formats JSON like Go, which escapes characters that are special in HTML.
pub(super) fn go_json(value: &Value) -> String {
    value
        .to_string()
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

/// Formats a string like `%q` in Go.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", c as u32))
            }
            c if c.is_control() || ('\u{200b}'..='\u{200f}').contains(&c) || c == '\u{feff}' => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Formats a float like `%v` in Go.
pub(super) fn go_float(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{float}")
}
