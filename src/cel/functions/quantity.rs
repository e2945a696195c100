//! Kubernetes quantities, kept exactly in billionths.

use std::cmp::Ordering;
use std::fmt;

use super::super::CelError;
use super::super::value::Val;
use super::{Function, mismatch};

const ONE: i128 = 1_000_000_000;

/// An amount of a resource.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Quantity {
    /// In billionths of its unit.
    amount: i128,
    /// Whether it is written as an integer: to Kubernetes `2000m` and `1.5Gi` are none.
    is_integer: bool,
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.amount == other.amount
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.cmp(&other.amount)
    }
}

impl Quantity {
    /// Reads `100m`, `1.5Gi`, `2e3`; what is finer than a billionth is rounded up.
    fn parse(text: &str) -> Option<Self> {
        let (negative, body) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let end = body
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(body.len());
        let (number, suffix) = body.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || number.len() > 30 {
            return None;
        }
        // A fraction of billionths times a scale: (numerator, denominator).
        let (scale, divisor) = scale(suffix)?;
        let fraction = fraction.trim_end_matches('0');
        let digits = format!("{whole}{fraction}");
        let mantissa: i128 = digits.parse().ok()?;
        let divisor = 10_i128
            .checked_pow(fraction.len().try_into().ok()?)?
            .checked_mul(divisor)?;
        let scaled = mantissa.checked_mul(scale)?.checked_mul(ONE)?;
        let mut amount = scaled / divisor;
        if scaled % divisor != 0 {
            amount += 1;
        }
        let is_written_whole = match suffix.ends_with('i') {
            true => fraction.is_empty(),
            false => divisor == 1 || scale % divisor == 0,
        };
        Some(Self {
            amount: if negative { -amount } else { amount },
            is_integer: is_written_whole && i64::try_from(amount / ONE).is_ok(),
        })
    }
}

/// What a suffix multiplies and divides by.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    Some(match suffix {
        "" => (1, 1),
        "n" => (1, 1_000_000_000),
        "u" => (1, 1_000_000),
        "m" => (1, 1000),
        "k" => (1000, 1),
        "M" => (1_000_000, 1),
        "G" => (1_000_000_000, 1),
        "T" => (1_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000, 1),
        "E" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1 << 10, 1),
        "Mi" => (1 << 20, 1),
        "Gi" => (1 << 30, 1),
        "Ti" => (1 << 40, 1),
        "Pi" => (1 << 50, 1),
        "Ei" => (1 << 60, 1),
        _ => {
            let power: i32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = 10_i128.checked_pow(power.unsigned_abs())?;
            if power < 0 { (1, size) } else { (size, 1) }
        }
    })
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (unit, suffix) in [(ONE, ""), (1_000_000, "m"), (1000, "u")] {
            if self.amount % unit == 0 {
                return write!(f, "{}{suffix}", self.amount / unit);
            }
        }
        write!(f, "{}n", self.amount)
    }
}

/// What can be asked of one quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Question {
    AsApproximateFloat,
    AsInteger,
    IsInteger,
    Sign,
}

impl Question {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "asApproximateFloat" => Self::AsApproximateFloat,
            "asInteger" => Self::AsInteger,
            "isInteger" => Self::IsInteger,
            "sign" => Self::Sign,
            _ => return None,
        })
    }
}

/// Calls a function on quantities.
pub(super) fn call<'a>(function: Function, args: &[Val<'a>]) -> Result<Val<'a>, CelError> {
    use Function as F;
    Ok(match (function, args) {
        (F::IsQuantity, [Val::Text(text)]) => Val::Bool(Quantity::parse(text).is_some()),
        (F::IsQuantity, [_]) => Val::Bool(false),
        (F::ToQuantity, [Val::Text(text)]) => match Quantity::parse(text) {
            Some(quantity) => Val::Quantity(quantity),
            None => return Err(CelError::failed("the value is no quantity (as in 1.5Gi)")),
        },
        (F::QuantityIs(question), [Val::Quantity(quantity)]) => match question {
            Question::IsInteger => Val::Bool(quantity.is_integer),
            Question::AsInteger if quantity.is_integer => Val::Int((quantity.amount / ONE) as i64),
            Question::AsInteger => {
                return Err(CelError::failed("cannot convert value to integer"));
            }
            Question::AsApproximateFloat => Val::Double(quantity.amount as f64 / ONE as f64),
            Question::Sign => Val::Int(quantity.amount.signum() as i64),
        },
        (F::QuantityAdd | F::QuantitySubtract, [Val::Quantity(a), other]) => {
            let (other, is_integer) = match other {
                Val::Quantity(b) => (b.amount, a.is_integer && b.is_integer),
                Val::Int(int) => (i128::from(*int) * ONE, a.is_integer),
                _ => return Err(mismatch("add", args)),
            };
            let other = if function == F::QuantityAdd {
                other
            } else {
                -other
            };
            Val::Quantity(Quantity {
                amount: a.amount.saturating_add(other),
                is_integer,
            })
        }
        (F::QuantityCompare, [Val::Quantity(a), Val::Quantity(b)]) => Val::Int(a.cmp(b) as i64),
        (F::QuantityIsGreater, [Val::Quantity(a), Val::Quantity(b)]) => Val::Bool(a > b),
        (F::QuantityIsLess, [Val::Quantity(a), Val::Quantity(b)]) => Val::Bool(a < b),
        _ => return Err(mismatch("quantity function", args)),
    })
}
