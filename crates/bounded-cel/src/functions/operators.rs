//! The operators for arithmetic, order and membership, and the math functions.

use std::cmp::Ordering;
use std::rc::Rc;

use jiff::SignedDuration;

use super::super::CelError;
use super::super::meter::Meter;
use super::super::tree::Operator;
use super::super::value::Val;
use super::{Function, made_text, mismatch};

/// Applies a binary operator.
pub(in super::super) fn operate<'a>(
    operator: Operator,
    left: Val<'a>,
    right: Val<'a>,
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    match operator {
        Operator::Equal => left.equals(&right, meter).map(Val::Bool),
        Operator::NotEqual => left.equals(&right, meter).map(|is| Val::Bool(!is)),
        Operator::Less => order(&left, &right, meter, &[Ordering::Less]),
        Operator::LessOrEqual => order(&left, &right, meter, &[Ordering::Less, Ordering::Equal]),
        Operator::Greater => order(&left, &right, meter, &[Ordering::Greater]),
        Operator::GreaterOrEqual => {
            order(&left, &right, meter, &[Ordering::Greater, Ordering::Equal])
        }
        Operator::In => contained(&left, &right, meter),
        _ => arithmetic(operator, left, right, meter),
    }
}

fn order<'a>(
    left: &Val<'a>,
    right: &Val<'a>,
    meter: &mut Meter,
    accepted: &[Ordering],
) -> Result<Val<'a>, CelError> {
    let order = left.order(right, meter)?;
    Ok(Val::Bool(order.is_some_and(|o| accepted.contains(&o))))
}

fn contained<'a>(left: &Val<'a>, right: &Val<'a>, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    if right.list_len().is_some() {
        return left.is_in(right, meter).map(Val::Bool);
    }
    if right.map_len().is_some() {
        let found = left.key().and_then(|key| right.entry(&key));
        return Ok(Val::Bool(found.is_some()));
    }
    Err(mismatch("@in", &[left.clone(), right.clone()]))
}

fn arithmetic<'a>(
    operator: Operator,
    left: Val<'a>,
    right: Val<'a>,
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    match (&left, &right) {
        (Val::Int(a), Val::Int(b)) => int(operator, *a, *b),
        (Val::Uint(a), Val::Uint(b)) => uint(operator, *a, *b),
        (Val::Double(a), Val::Double(b)) => double(operator, *a, *b),
        (Val::Text(a), Val::Text(b)) if operator == Operator::Add => {
            // The bytes of the new text are charged before they are allocated, so that a huge text cannot be
            // allocated.
            meter.make(a.len() + b.len())?;
            Ok(Val::text([&**a, &**b].concat()))
        }
        (Val::Bytes(a), Val::Bytes(b)) if operator == Operator::Add => {
            meter.make(a.len() + b.len())?;
            Ok(Val::Bytes([&**a, &**b].concat().into()))
        }
        _ => match (left.list_len(), right.list_len()) {
            (Some(a), Some(b)) if operator == Operator::Add => {
                meter.make((a + b) * std::mem::size_of::<Val<'_>>())?;
                Ok(Val::List(Rc::new(
                    left.items().chain(right.items()).collect(),
                )))
            }
            _ => times(operator, left, right),
        },
    }
}

fn by_zero(operator: Operator, is_zero: bool) -> Result<(), CelError> {
    match operator {
        Operator::Divide if is_zero => Err(CelError::failed("division by zero")),
        Operator::Remainder if is_zero => Err(CelError::failed("modulus by zero")),
        _ => Ok(()),
    }
}

fn int<'a>(operator: Operator, a: i64, b: i64) -> Result<Val<'a>, CelError> {
    by_zero(operator, b == 0)?;
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        _ => None,
    };
    result.map(Val::Int).ok_or_else(overflow)
}

fn uint<'a>(operator: Operator, a: u64, b: u64) -> Result<Val<'a>, CelError> {
    by_zero(operator, b == 0)?;
    let result = match operator {
        Operator::Add => a.checked_add(b),
        Operator::Subtract => a.checked_sub(b),
        Operator::Multiply => a.checked_mul(b),
        Operator::Divide => a.checked_div(b),
        Operator::Remainder => a.checked_rem(b),
        _ => None,
    };
    result
        .map(Val::Uint)
        .ok_or_else(|| CelError::failed("unsigned integer overflow"))
}

fn double<'a>(operator: Operator, a: f64, b: f64) -> Result<Val<'a>, CelError> {
    Ok(Val::Double(match operator {
        Operator::Add => a + b,
        Operator::Subtract => a - b,
        Operator::Multiply => a * b,
        Operator::Divide => a / b,
        _ => return Err(mismatch("%", &[Val::Double(a), Val::Double(b)])),
    }))
}

fn times<'a>(operator: Operator, left: Val<'a>, right: Val<'a>) -> Result<Val<'a>, CelError> {
    let shifted = |time: &jiff::Timestamp, nanos: i64| {
        time.checked_add(SignedDuration::from_nanos(nanos))
            .ok()
            .map(Val::Time)
    };
    let result = match (operator, &left, &right) {
        (Operator::Add, Val::Time(time), Val::Span(nanos))
        | (Operator::Add, Val::Span(nanos), Val::Time(time)) => shifted(time, *nanos),
        (Operator::Subtract, Val::Time(time), Val::Span(nanos)) => {
            nanos.checked_neg().and_then(|nanos| shifted(time, nanos))
        }
        (Operator::Subtract, Val::Time(a), Val::Time(b)) => {
            i64::try_from(a.as_nanosecond() - b.as_nanosecond())
                .ok()
                .map(Val::Span)
        }
        (Operator::Add, Val::Span(a), Val::Span(b)) => a.checked_add(*b).map(Val::Span),
        (Operator::Subtract, Val::Span(a), Val::Span(b)) => a.checked_sub(*b).map(Val::Span),
        _ => {
            let name = match operator {
                Operator::Add => "+",
                Operator::Subtract => "-",
                Operator::Multiply => "*",
                Operator::Divide => "/",
                _ => "%",
            };
            return Err(mismatch(name, &[left, right]));
        }
    };
    result.ok_or_else(overflow)
}

fn overflow() -> CelError {
    CelError::failed("integer overflow")
}

/// Calls a function of CEL's math extension, such as `math.abs`.
pub(super) fn math<'a>(
    function: Function,
    args: &[Val<'a>],
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    use Function as F;
    Ok(match (function, args) {
        (F::MathGreatest | F::MathLeast, _) => {
            let all: Vec<Val<'a>> = match args {
                [list] if list.list_len().is_some() => list.items().collect(),
                _ => args.to_vec(),
            };
            let wanted = match function {
                F::MathGreatest => Ordering::Greater,
                _ => Ordering::Less,
            };
            let mut best: Option<Val<'a>> = None;
            for value in all {
                if !matches!(value, Val::Int(_) | Val::Uint(_) | Val::Double(_)) {
                    return Err(mismatch("math.greatest", &[value]));
                }
                meter.step(1)?;
                let better = match &best {
                    None => true,
                    Some(best) => value.order(best, meter)? == Some(wanted),
                };
                if better {
                    best = Some(value);
                }
            }
            return best.ok_or_else(|| CelError::failed("the list is empty"));
        }
        (F::MathAbs, [Val::Int(int)]) => Val::Int(int.checked_abs().ok_or_else(overflow)?),
        (F::MathAbs, [Val::Uint(uint)]) => Val::Uint(*uint),
        (F::MathAbs, [Val::Double(double)]) => Val::Double(double.abs()),
        (F::MathSign, [Val::Int(int)]) => Val::Int(int.signum()),
        (F::MathSign, [Val::Uint(uint)]) => Val::Uint((*uint).min(1)),
        (F::MathSign, [Val::Double(double)]) if *double == 0.0 => Val::Double(0.0),
        (F::MathSign, [Val::Double(double)]) => Val::Double(double.signum()),
        (F::MathCeil, [Val::Double(double)]) => Val::Double(double.ceil()),
        (F::MathFloor, [Val::Double(double)]) => Val::Double(double.floor()),
        (F::MathRound, [Val::Double(double)]) => Val::Double(double.round()),
        (F::MathTrunc, [Val::Double(double)]) => Val::Double(double.trunc()),
        _ => return Err(mismatch("math", args)),
    })
}

/// Formats a double as Go's shortest `%g` does.
pub(super) fn show_double<'a>(double: f64, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    made_text(double_text(double), meter)
}

/// Formats a double as Go's `%v` does.
pub fn double_text(double: f64) -> String {
    if double.is_nan() {
        return "NaN".to_owned();
    }
    if double.is_infinite() {
        return if double > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{double:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let power: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&power) {
        return format!("{double}");
    }
    let sign = if power < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", power.abs())
}
