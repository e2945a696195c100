//! The string formats that are checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use base64::Engine;
use kube_embedded::schema::{is_date, is_date_time};

use crate::api::interval::Interval;

/// Returns whether a text has the format.
pub(super) type Check = fn(&str) -> bool;

/// The formats of strings; `password` has no check.
pub(super) const TEXTS: [(&str, Check); 12] = [
    ("byte", is_base64),
    ("cidr", is_cidr),
    ("date", is_date),
    ("date-time", is_date_time),
    ("duration", is_duration),
    ("email", is_email),
    ("hostname", is_hostname),
    ("ipv4", |text| text.parse::<Ipv4Addr>().is_ok()),
    ("ipv6", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("password", |_| true),
    ("uri", is_uri),
    ("uuid", |text| {
        text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
    }),
];

/// The formats of numbers; only `int32` restricts the value.
pub(super) const NUMBERS: [&str; 4] = ["double", "float", "int32", "int64"];

fn is_base64(text: &str) -> bool {
    base64::engine::general_purpose::STANDARD
        .decode(text)
        .is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    let is_canonical = length == "0" || length.starts_with(|c: char| ('1'..='9').contains(&c));
    is_canonical && length.parse::<u8>().is_ok_and(|length| length <= most)
}

fn is_duration(text: &str) -> bool {
    Interval::from(text).duration().is_ok()
}

fn is_email(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, host)| {
        !local.is_empty()
            && !local.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@')
            && is_hostname(host)
    })
}

fn is_hostname(text: &str) -> bool {
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

fn is_uri(text: &str) -> bool {
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
    fn which_texts_have_which_format() {
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
            let (_, check) = TEXTS.iter().find(|(name, _)| *name == format).unwrap();
            for text in yes {
                assert!(check(text), "{text:?} is a {format}");
            }
            for text in no {
                assert!(!check(text), "{text:?} is no {format}");
            }
        }
    }
}
