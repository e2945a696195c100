//! Kubernetes quantities: `100m`, `1.5Gi`, `2e3`.
//!
//! The amount of a quantity is an integer number of billionths. A smaller fraction is rounded away from zero, as in
//! Go.

mod canonical;

pub use canonical::canonical;

/// The amount 1, in billionths.
pub const ONE: i128 = 1_000_000_000;

/// The decimal suffixes, each with its power of ten.
pub const DECIMAL: [(&str, i32); 10] = [
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

/// The binary suffixes, in ascending order. Each stands for 1024 times the suffix before it.
pub const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The notation of the suffix of a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A decimal suffix or no suffix, as in `100m` or `2`.
    Decimal,
    /// A power of ten, as in `2e3`.
    Exponent,
    /// A binary suffix, as in `1.5Gi`.
    Binary,
}

/// The text of a quantity, split into its sign, digits and suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts<'t> {
    /// Whether the quantity has a minus sign.
    pub negative: bool,
    /// The digits before the decimal point, without leading zeros; `0` if there are no others.
    pub whole: &'t str,
    /// The digits after the decimal point; empty if the quantity has no decimal point.
    pub fraction: &'t str,
    /// The notation of the quantity's suffix.
    pub format: Format,
    /// The exponent for which the suffix stands: of ten, or of two in the binary format.
    pub exponent: i32,
}

impl<'t> Parts<'t> {
    /// Parses a quantity; `None` if the text is not a quantity.
    pub fn parse(text: &'t str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = digits(unsigned);
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest),
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let decimal = DECIMAL.iter().find(|(known, _)| *known == suffix);
        let binary = BINARY.iter().position(|known| *known == suffix);
        let (format, exponent) = match (decimal, binary) {
            (Some((_, exponent)), _) => (Format::Decimal, *exponent),
            (None, Some(power)) => (Format::Binary, i32::try_from(power).ok()? * 10),
            (None, None) => {
                let exponent = suffix.strip_prefix(['e', 'E'])?;
                (Format::Exponent, exponent.parse().ok()?)
            }
        };
        Some(Self {
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

    /// Returns the digits before and after the decimal point as one text.
    pub fn digits(&self) -> String {
        format!("{}{}", self.whole, self.fraction)
    }

    /// Returns the amount of the quantity in billionths; None if it is about 10^29 or larger. A binary quantity has
    /// at most the amount 2^63-1, as in Go.
    pub fn amount(&self) -> Option<i128> {
        let mut amount = self.unlimited()?;
        if self.format == Format::Binary {
            amount = amount.min(i128::from(i64::MAX) * ONE);
        }
        Some(if self.negative { -amount } else { amount })
    }

    /// Returns whether Kubernetes accepts the text of the quantity as an integer. It does not accept `2000m` and
    /// `1.5Gi`.
    pub fn is_integer(&self) -> bool {
        let places = self.fraction.trim_end_matches('0').len();
        let is_whole = match self.format {
            Format::Binary => places == 0,
            Format::Decimal | Format::Exponent => {
                i32::try_from(places).is_ok_and(|places| places <= self.exponent)
            }
        };
        let amount = self.unlimited();
        is_whole && amount.is_some_and(|amount| i64::try_from(amount / ONE).is_ok())
    }

    fn unlimited(&self) -> Option<i128> {
        let mut amount: i128 = self.digits().parse().ok()?;
        let mut scale = 9 - i32::try_from(self.fraction.len()).ok()?;
        match self.format {
            Format::Binary => amount = amount.checked_mul(1 << self.exponent)?,
            Format::Decimal | Format::Exponent => scale = scale.checked_add(self.exponent)?,
        }
        if amount == 0 {
            return Some(0);
        }
        match (scale, 10_i128.checked_pow(scale.unsigned_abs())) {
            (0.., power) => amount.checked_mul(power?),
            (_, Some(power)) => Some(amount / power + i128::from(amount % power != 0)),
            // An amount below one billionth is rounded up to one billionth.
            (_, None) => Some(1),
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_in_billionths() {
        for (text, amount, is_integer) in [
            ("0", 0, true),
            ("1", ONE, true),
            ("-1.5", -ONE * 3 / 2, false),
            ("+2k", 2000 * ONE, true),
            ("1.5k", 1500 * ONE, true),
            ("2000m", 2 * ONE, false),
            ("1.50Ki", 1536 * ONE, false),
            ("1.0Ki", 1024 * ONE, true),
            ("2e3", 2000 * ONE, true),
            ("1e-40", 1, false),
            ("0.0000000001", 1, false),
            ("-0.0000000001", -1, false),
            ("8Ei", i128::from(i64::MAX) * ONE, false),
        ] {
            let parts = Parts::parse(text).unwrap();
            let found = (parts.amount(), parts.is_integer());
            assert_eq!(found, (Some(amount), is_integer), "{text}");
        }
        for text in ["", "x", "1x", " 1", ".", "Mi", "1e", "1.2.3", "--1"] {
            assert_eq!(Parts::parse(text), None, "{text:?}");
        }
        let large = Parts::parse("1e40").unwrap();
        assert_eq!((large.amount(), large.is_integer()), (None, false));
    }
}
