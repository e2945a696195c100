//! Formats a quantity as the API server writes it: `1024Mi` becomes `1Gi`, `0.5` becomes `500m`.
//!
//! As in the Go library, a text that passes a quick check is kept; every other quantity is formatted anew from its
//! amount. The check is about the digits of the text, without the decimal point:
//!
//! - A quantity without a binary suffix is kept if it has at most 18 digits, which do not begin with `0` or end with
//!   `000`, and if its last digit stands for a power of ten that is a multiple of three and at least -9. So `1500m`,
//!   `1e3` and `1.500` are kept, but `1.5` is not.
//! - A quantity with a binary suffix is kept if it has no digit after a decimal point, if its digits are no multiple of
//!   8, and if it has at most 14 digits; each step of the suffix counts as three digits (`Ki` 3, `Mi` 6).
//!
//! Amounts of about 10^29 or more cannot be formatted anew.

use super::{BINARY, DECIMAL, Format, ONE, Parts};

/// Returns the text that the API server stores for a quantity; `None` if the text is not a quantity, or if the amount
/// is too large to format it anew.
pub fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    let parts = Parts::parse(text)?;
    if is_kept(&parts) {
        return Some(text.to_owned());
    }
    let nanos = parts.amount()?;
    let format = match parts.format {
        // Amounts below 1024 and amounts with a fraction are written in the decimal format, as in Go.
        Format::Binary if nanos.abs() < 1024 * ONE || nanos % ONE != 0 => Format::Decimal,
        format => format,
    };
    Some(match format {
        _ if nanos == 0 => "0".to_owned(),
        Format::Binary => binary(nanos / ONE),
        Format::Decimal => decimal(nanos, Some(18)),
        Format::Exponent => decimal(nanos, None),
    })
}

/// Returns whether Go keeps the text of the quantity, because it is short and a quick check accepts it as canonical.
fn is_kept(parts: &Parts<'_>) -> bool {
    let digits = parts.digits();
    let length = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    if parts.format == Format::Binary {
        let places = length + parts.exponent * 3 / 10;
        let odd = || digits.parse::<i64>().is_ok_and(|value| value % 8 != 0);
        return parts.fraction.is_empty() && places <= 14 && odd();
    }
    let places = i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
    let scale = parts.exponent.saturating_sub(places);
    length <= 18
        && scale >= -9
        && scale % 3 == 0
        && !digits.ends_with("000")
        && !digits.starts_with('0')
}

fn binary(mut amount: i128) -> String {
    let mut power = 0;
    while amount % 1024 == 0 && power + 1 < BINARY.len() {
        amount /= 1024;
        power += 1;
    }
    format!("{amount}{}", BINARY.get(power).unwrap_or(&""))
}

/// Formats an amount in billionths with an exponent that is a multiple of three. If `most` is set, writes the
/// exponent as a suffix and limits it to `most`; otherwise writes `e3`, `e6`, ...
fn decimal(nanos: i128, most: Option<i32>) -> String {
    let (mut amount, mut exponent) = (nanos, -9);
    while amount % 1000 == 0 && most.is_none_or(|most| exponent < most) {
        amount /= 1000;
        exponent += 3;
    }
    match most {
        None if exponent == 0 => amount.to_string(),
        None => format!("{amount}e{exponent}"),
        Some(_) => {
            let suffix = DECIMAL.iter().find(|(_, e)| *e == exponent);
            format!("{amount}{}", suffix.map_or("", |(suffix, _)| suffix))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Parts, canonical};

    #[test]
    fn quantities_as_go_writes_them() {
        for (text, wanted) in [
            ("0", "0"),
            ("0.0", "0"),
            ("-0", "0"),
            ("0Mi", "0"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.5", "1500m"),
            ("-0.5", "-500m"),
            ("1.500", "1.500"),
            ("500m", "500m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("100", "100"),
            ("1000", "1k"),
            ("1000000", "1M"),
            ("1024", "1024"),
            ("1e3", "1e3"),
            ("1e4", "10e3"),
            ("12e2", "1200"),
            ("1000e3", "1e6"),
            ("1E", "1E"),
            ("1024Mi", "1Gi"),
            ("1Gi", "1Gi"),
            ("8Mi", "8Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Mi", "512Ki"),
            ("0.5Ki", "512"),
            ("0.001Ki", "1024m"),
            ("1.1Ki", "1126400m"),
            ("1000Ki", "1000Ki"),
            ("1048576Ki", "1Gi"),
            ("0.0000000001", "1n"),
            ("1e-20", "1e-9"),
            ("8Ei", "9223372036854775807"),
            (" 1000m ", "1"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(wanted), "{text:?}");
        }
        for text in [
            "", "x", "1x", "1 Gi", "Mi", ".", "1e", "1.2.3", "1eMi", "--1",
        ] {
            assert_eq!(canonical(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn the_amount_is_kept(text in "[+-]?[0-9]{1,12}([.][0-9]{0,6})?(|n|u|m|k|M|G|T|Ki|Mi|Gi|e[0-9]|e-[1-6])") {
            let once = canonical(&text).unwrap();
            prop_assert_eq!(canonical(&once), Some(once.clone()));
            prop_assert_eq!(
                Parts::parse(&once).unwrap().amount(),
                Parts::parse(text.trim()).unwrap().amount(),
                "{}", once
            );
        }

        #[test]
        fn no_text_makes_it_stumble(text in "[+-]?[0-9]{0,45}[.]?[0-9]{0,45}[eE+nmKMi-]{0,3}[0-9]{0,12}") {
            if let Some(once) = canonical(&text) {
                prop_assert_eq!(canonical(&once), Some(once.clone()));
            }
        }
    }
}
