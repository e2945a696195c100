//! The string formats of a schema, such as `email` or `date-time`.
//!
//! The API server accepts nearly every text as an `email` or a `uri`, and [`server`] checks formats as it does.
//! [`STRICT`] has stricter checks, which find typing errors in parameters that people write. The two differ for
//! `byte` (the server refuses the empty text), `cidr`, `duration` (days), `email`, `hostname`, `uri` and `uuid`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine;
use regex::Regex;

use super::name::Form;
use super::{duration, time};

/// A check of a string format: returns whether a text has the format.
pub type Check = fn(&str) -> bool;

/// The formats with strict checks. Every text has the format `password`.
pub const STRICT: [(&str, Check); 12] = [
    ("byte", is_base64),
    ("cidr", is_strict_cidr),
    ("date", is_date),
    ("date-time", is_date_time),
    ("duration", |text| duration::with_days(text).is_some()),
    ("email", is_strict_email),
    ("hostname", is_strict_hostname),
    ("ipv4", is_ipv4),
    ("ipv6", is_ipv6),
    ("password", |_| true),
    ("uri", is_strict_uri),
    ("uuid", |text| text.len() == 36 && is_uuid(text, None)),
];

/// Returns the check that the API server uses for a format; `None` if the server does not check the format.
/// The rare formats isbn, creditcard, rgbcolor and bsonobjectid accept every text.
pub fn server(format: &str) -> Option<Check> {
    Some(match format.replace('-', "").as_str() {
        "uri" => |text| {
            text.starts_with('/') || (text.contains(':') && http::Uri::try_from(text).is_ok())
        },
        "email" => |text| EMAIL.is_match(text),
        "hostname" => |text| {
            HOSTNAME.is_match(text)
                && text.len() <= 255
                && text.split('.').all(|part| part.len() <= 63)
        },
        "ipv4" => is_ipv4,
        "ipv6" => is_ipv6,
        "cidr" => |text| {
            network(text)
                .is_some_and(|(bits, most)| bits.parse::<u8>().is_ok_and(|bits| bits <= most))
        },
        "mac" => |text| MAC.is_match(text),
        "uuid" => |text| is_uuid(text, None),
        "uuid3" => |text| is_uuid(text, Some('3')),
        "uuid4" => |text| is_uuid(text, Some('4')),
        "uuid5" => |text| is_uuid(text, Some('5')),
        "byte" => |text| !text.is_empty() && is_base64(text),
        "date" => is_date,
        "datetime" => is_date_time,
        "duration" => |text| duration::parse(text).is_some() || SPELLED_DURATION.is_match(text),
        "hexcolor" => |text| HEX.is_match(text),
        "ssn" => |text| SSN.is_match(text),
        "password" | "isbn" | "isbn10" | "isbn13" | "creditcard" | "rgbcolor" | "bsonobjectid" => {
            |_| true
        }
        _ => match format {
            "k8s-short-name" => |text| Form::Label.check(text).is_ok(),
            "k8s-long-name" => |text| Form::Subdomain.check(text).is_ok(),
            _ => return None,
        },
    })
}

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
static EMAIL: LazyLock<Regex> = LazyLock::new(|| matcher(r"^(.*<)?[^@\s<>]+@[^@\s<>]+>?$"));
static MAC: LazyLock<Regex> = LazyLock::new(|| {
    matcher(
        "(?i)^([0-9a-f]{2}([:-][0-9a-f]{2}){5}|[0-9a-f]{2}([:-][0-9a-f]{2}){7}|[0-9a-f]{4}(\\.[0-9a-f]{4}){2,3})$",
    )
});
static HEX: LazyLock<Regex> = LazyLock::new(|| matcher("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static SSN: LazyLock<Regex> = LazyLock::new(|| matcher(r"^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
/// A duration as a number and a word, such as `2 days`.
static SPELLED_DURATION: LazyLock<Regex> = LazyLock::new(|| {
    matcher(
        r"^-?[0-9]+ ?(ns|nano|nanoseconds?|us|micro|microseconds?|ms|milli|milliseconds?|s|sec|seconds?|m|mins?|minutes?|h|hr|hours?|d|days?|w|wk|weeks?)$",
    )
});

fn matcher(source: &str) -> Regex {
    Regex::new(source).expect("BUG: a constant pattern compiles")
}

fn is_uuid(text: &str, version: Option<char>) -> bool {
    UUID.captures(text).is_some_and(|found| {
        let at = |i: usize| found.get(i).and_then(|m| m.as_str().chars().next());
        match version {
            None => true,
            Some('3') => at(1) == Some('3'),
            Some(v) => at(1) == Some(v) && at(2).is_some_and(|c| "89abAB".contains(c)),
        }
    })
}

fn is_date(text: &str) -> bool {
    time::date(text).is_some()
}

fn is_date_time(text: &str) -> bool {
    time::timestamp(text).is_some()
}

fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

/// Splits a network `ADDRESS/BITS`. Returns the text after the slash, and the number of bits of the address: 32 or
/// 128. None if the address is invalid.
fn network(text: &str) -> Option<(&str, u8)> {
    let (address, bits) = text.split_once('/')?;
    match address.parse().ok()? {
        IpAddr::V4(_) => Some((bits, 32)),
        IpAddr::V6(_) => Some((bits, 128)),
    }
}

fn is_base64(text: &str) -> bool {
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .is_ok()
}

fn is_strict_cidr(text: &str) -> bool {
    network(text).is_some_and(|(bits, most)| {
        let is_canonical = bits == "0" || bits.starts_with(|c: char| ('1'..='9').contains(&c));
        is_canonical && bits.parse::<u8>().is_ok_and(|bits| bits <= most)
    })
}

fn is_strict_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, host)| {
        !local.is_empty()
            && !local.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@')
            && is_strict_hostname(host)
    })
}

fn is_strict_hostname(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            (1..=63).contains(&label.len())
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        })
}

fn is_strict_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
            && !rest.is_empty()
            && rest.bytes().all(|b| b.is_ascii_graphic())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_texts_have_which_strict_format() {
        for (format, yes, no) in [
            ("byte", vec!["", "aGk="], vec!["aGk", "h!"]),
            (
                "cidr",
                vec!["10.0.0.0/8", "::/0", "fd00::/64"],
                vec!["10.0.0.0", "10.0.0.0/33", "10.0.0.0/08", "::/129", "/8"],
            ),
            (
                "date",
                vec!["2024-02-29"],
                vec!["2023-02-29", "2024-1-1", "2024-01-01T00:00:00Z", ""],
            ),
            (
                "date-time",
                vec!["2024-01-01T00:00:00Z", "2024-01-01T00:00:00.5+02:00"],
                vec![
                    "2024-01-01",
                    "2024-01-01 00:00:00Z",
                    "2024-01-01T00:00:00",
                    "",
                ],
            ),
            (
                "duration",
                vec!["0", "30s", "1h30m", "30d"],
                vec!["", "1", "1 h", "soon"],
            ),
            (
                "email",
                vec!["a@example.com"],
                vec!["a", "@b", "a b@c", "a@b@c", "a@"],
            ),
            (
                "hostname",
                vec!["a", "a.b-c.d", "1.example"],
                vec!["", "-a", "a..b", "a_b", "a."],
            ),
            (
                "ipv4",
                vec!["127.0.0.1"],
                vec!["127.0.0", "::1", "256.0.0.1"],
            ),
            ("ipv6", vec!["::1"], vec!["127.0.0.1", ""]),
            ("password", vec!["", "anything at all"], vec![]),
            (
                "uri",
                vec!["https://a/b?c", "urn:x"],
                vec!["a/b", "https:", "1a:b", "a: b"],
            ),
            (
                "uuid",
                vec!["67e55044-10b1-426f-9247-bb680e5fe0c8"],
                vec!["67e5504410b1426f9247bb680e5fe0c8", ""],
            ),
        ] {
            let (_, check) = STRICT.iter().find(|(name, _)| *name == format).unwrap();
            for text in yes {
                assert!(check(text), "{text:?} is a {format}");
            }
            for text in no {
                assert!(!check(text), "{text:?} is no {format}");
            }
        }
    }

    #[test]
    fn which_texts_the_server_admits() {
        for (format, yes, no) in [
            ("byte", vec!["aGk="], vec!["", "aGk"]),
            (
                "cidr",
                vec!["10.0.0.0/08", "::/0"],
                vec!["10.0.0.0/33", "/8"],
            ),
            ("datetime", vec!["2024-01-01T00:00:00Z"], vec!["2024-01-01"]),
            (
                "duration",
                vec!["0", "-1.5h", "1 day", "2w"],
                vec!["", "1", "1h 30m", "soon"],
            ),
            ("email", vec!["a@b", "A <a@b.c>"], vec!["a"]),
            ("uuid", vec!["67e5504410b1426f9247bb680e5fe0c8"], vec![""]),
            (
                "uuid4",
                vec!["67e55044-10b1-426f-9247-bb680e5fe0c8"],
                vec!["67e55044-10b1-126f-9247-bb680e5fe0c8"],
            ),
            ("k8s-short-name", vec!["a-1"], vec!["a.b", "A", ""]),
            ("k8s-long-name", vec!["a.b-c"], vec!["a..b", "-a"]),
        ] {
            let check = server(format).unwrap();
            for text in yes {
                assert!(check(text), "{text:?} is a {format}");
            }
            for text in no {
                assert!(!check(text), "{text:?} is no {format}");
            }
        }
        assert!(server("int32").is_none());
    }
}
