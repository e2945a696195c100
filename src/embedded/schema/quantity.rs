//! How the server writes a quantity: `1024Mi` becomes `1Gi`, `0.5` becomes `500m`.
//!
//! A quantity that Go would print from its amount is printed here the same way; one whose text
//! Go keeps (`1500m`, `1e3`, but also `1.500`) is kept. Amounts beyond 10^29 are left as written.

/// The smallest part of one that is kept; less is rounded up to it.
const NANO: i128 = 1_000_000_000;

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Decimal,
    Exponent,
    Binary,
}

struct Parsed<'t> {
    negative: bool,
    whole: &'t str,
    fraction: &'t str,
    format: Format,
    /// Of ten, or of two in the binary format.
    exponent: i32,
}

/// Returns the text that the server would answer with; none when it is no quantity.
pub(super) fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    let parsed = parse(text)?;
    if parsed.is_kept() {
        return Some(text.to_owned());
    }
    let nanos = parsed.nanos()?;
    let format = match parsed.format {
        // Less than a Ki, or a part of one: Go does not lose it.
        Format::Binary if nanos.abs() < 1024 * NANO || nanos % NANO != 0 => Format::Decimal,
        format => format,
    };
    Some(match format {
        _ if nanos == 0 => "0".to_owned(),
        Format::Binary => binary(nanos / NANO),
        Format::Decimal => decimal(nanos, Some(18)),
        Format::Exponent => decimal(nanos, None),
    })
}

fn parse(text: &str) -> Option<Parsed<'_>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, rest) = digits(unsigned);
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (format, exponent) = if let Some((_, exponent)) = DECIMAL.iter().find(|(s, _)| *s == suffix)
    {
        (Format::Decimal, *exponent)
    } else if let Some(power) = BINARY.iter().position(|s| *s == suffix) {
        (Format::Binary, i32::try_from(power).ok()? * 10)
    } else {
        let exponent = suffix.strip_prefix(['e', 'E'])?;
        (Format::Exponent, exponent.parse().ok()?)
    };
    Some(Parsed {
        negative: text.starts_with('-'),
        whole: match whole.trim_start_matches('0') {
            "" => "0",
            stripped => stripped,
        },
        fraction,
        format,
        exponent,
    })
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

impl Parsed<'_> {
    fn shifted(&self) -> String {
        format!("{}{}", self.whole, self.fraction)
    }

    /// Go keeps the text of a small number that looks canonical at a glance.
    fn is_kept(&self) -> bool {
        let shifted = self.shifted();
        let length = i32::try_from(shifted.len()).unwrap_or(i32::MAX);
        if self.format == Format::Binary {
            let digits = length + self.exponent * 3 / 10;
            let odd = || shifted.parse::<i64>().is_ok_and(|value| value % 8 != 0);
            return self.fraction.is_empty() && digits <= 14 && odd();
        }
        let places = i32::try_from(self.fraction.len()).unwrap_or(i32::MAX);
        let scale = self.exponent.saturating_sub(places);
        length <= 18
            && scale >= -9
            && scale % 3 == 0
            && !shifted.ends_with("000")
            && !shifted.starts_with('0')
    }

    fn nanos(&self) -> Option<i128> {
        let mut amount: i128 = self.shifted().parse().ok()?;
        let mut scale = 9 - i32::try_from(self.fraction.len()).ok()?;
        match self.format {
            Format::Binary => amount = amount.checked_mul(1 << self.exponent)?,
            _ => scale = scale.checked_add(self.exponent)?,
        }
        if amount != 0 {
            amount = match (scale, 10_i128.checked_pow(scale.unsigned_abs())) {
                (0.., power) => amount.checked_mul(power?)?,
                (_, Some(power)) => amount / power + i128::from(amount % power != 0),
                // So little that only the rounding is left.
                (_, None) => 1,
            };
        }
        if self.format == Format::Binary {
            amount = amount.min(i128::from(i64::MAX) * NANO);
        }
        Some(if self.negative { -amount } else { amount })
    }
}

fn binary(mut amount: i128) -> String {
    let mut power = 0;
    while amount % 1024 == 0 && power + 1 < BINARY.len() {
        amount /= 1024;
        power += 1;
    }
    format!("{amount}{}", BINARY.get(power).unwrap_or(&""))
}

/// Prints with an exponent that is a multiple of three: as a suffix if it has a limit.
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

    use super::{canonical, parse};

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
                parse(&once).unwrap().nanos(),
                parse(text.trim()).unwrap().nanos(),
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
