//! The CEL functions for Kubernetes quantities. The amount of a quantity is an integer number of billionths.

use std::cmp::Ordering;
use std::fmt;

use kube_values::quantity::{ONE, Parts};

use super::super::CelError;
use super::super::value::Val;
use super::{Function, mismatch};

#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Quantity {
    /// The amount of the quantity in billionths.
    amount: i128,
    /// Whether Kubernetes accepts the text of the quantity as an integer. It does not accept `2000m` and `1.5Gi`.
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
    /// Parses a quantity such as `100m`, `1.5Gi` or `2e3`. A fraction smaller than a billionth is rounded up. None if
    /// the text is not a quantity.
    fn parse(text: &str) -> Option<Self> {
        let parts = Parts::parse(text)?;
        Some(Self {
            amount: parts.amount()?,
            is_integer: parts.is_integer(),
        })
    }
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

/// A function that takes one quantity and no other argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum UnaryFunction {
    AsApproximateFloat,
    AsInteger,
    IsInteger,
    Sign,
}

impl UnaryFunction {
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

/// Calls a function that takes quantities.
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
            UnaryFunction::IsInteger => Val::Bool(quantity.is_integer),
            UnaryFunction::AsInteger if quantity.is_integer => {
                Val::Int((quantity.amount / ONE) as i64)
            }
            UnaryFunction::AsInteger => {
                return Err(CelError::failed("cannot convert value to integer"));
            }
            UnaryFunction::AsApproximateFloat => Val::Double(quantity.amount as f64 / ONE as f64),
            UnaryFunction::Sign => Val::Int(quantity.amount.signum() as i64),
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
