//! The CEL function `format`, as in `'%s items'.format([3])`.

use std::fmt::Write as _;

use super::super::CelError;
use super::super::meter::Meter;
use super::super::value::{Key, Val};
use super::operators::double_text;
use super::time::show_span;
use super::{made_text, mismatch};

/// Replaces the `%` clauses of a format string with the items of a list.
pub(super) fn call<'a>(args: &[Val<'a>], meter: &mut Meter) -> Result<Val<'a>, CelError> {
    let [Val::Text(format), list] = args else {
        return Err(mismatch("format", args));
    };
    let mut items = list.items();
    let mut out = String::new();
    let mut rest = &**format;
    while let Some((before, clause)) = rest.split_once('%') {
        meter.make(before.len())?;
        out.push_str(before);
        if let Some(after) = clause.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let (precision, clause) = precision(clause)?;
        let mut chars = clause.chars();
        let verb = chars.next().ok_or_else(|| invalid("it ends in %"))?;
        rest = chars.as_str();
        let item = items
            .next()
            .ok_or_else(|| invalid("it has more clauses than items"))?;
        let start = out.len();
        match verb {
            's' => top(&item, &mut out, meter)?,
            'd' => decimal(&item, &mut out)?,
            'f' | 'e' => float(&item, verb, precision.unwrap_or(6), &mut out)?,
            'x' | 'X' | 'o' | 'b' => radix(&item, verb, &mut out)?,
            _ => return Err(invalid("it has a clause that is not known")),
        }
        meter.make(out.len() - start)?;
    }
    out.push_str(rest);
    made_text(out, meter)
}

fn invalid(why: &str) -> CelError {
    CelError::failed(format!("the format cannot be used: {why}"))
}

fn precision(clause: &str) -> Result<(Option<usize>, &str), CelError> {
    let Some(rest) = clause.strip_prefix('.') else {
        return Ok((None, clause));
    };
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    match digits.parse() {
        Ok(precision) if precision <= 100 => Ok((Some(precision), rest)),
        _ => Err(invalid("it has a precision that is not known")),
    }
}

/// Formats an item of the argument list as the function `string()` does. For values inside such an item, see
/// [`show`].
fn top(item: &Val<'_>, out: &mut String, meter: &mut Meter) -> Result<(), CelError> {
    match item {
        Val::Text(text) => {
            meter.make(text.len())?;
            out.push_str(text);
            Ok(())
        }
        Val::Double(double) => {
            out.push_str(&double_text(*double));
            Ok(())
        }
        item => show(item, out, meter),
    }
}

/// Formats a value inside a list or map: strings are quoted, and doubles have six decimals.
fn show(item: &Val<'_>, out: &mut String, meter: &mut Meter) -> Result<(), CelError> {
    meter.step(1)?;
    match item {
        Val::Null => out.push_str("null"),
        Val::Bool(is) => out.push_str(if *is { "true" } else { "false" }),
        Val::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Val::Uint(uint) => {
            let _ = write!(out, "{uint}");
        }
        Val::Double(double) => {
            let _ = write!(out, "{double:.6}");
        }
        Val::Text(text) => {
            meter.make(text.len())?;
            let _ = write!(out, "{text:?}", text = &**text);
        }
        Val::Bytes(bytes) => {
            meter.make(bytes.len())?;
            out.push_str(&String::from_utf8_lossy(bytes));
        }
        Val::Time(time) => {
            let _ = write!(out, "{time}");
        }
        Val::Span(nanos) => out.push_str(&show_span(*nanos)),
        Val::Type(name) => out.push_str(name),
        Val::Quantity(quantity) => {
            let _ = write!(out, "{quantity}");
        }
        other if other.list_len().is_some() => {
            out.push('[');
            for (at, item) in other.items().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                show(&item, out, meter)?;
            }
            out.push(']');
        }
        other if other.map_len().is_some() => {
            out.push('{');
            for (at, (key, value)) in other.entries().into_iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                show(&Val::from(key as Key<'_>), out, meter)?;
                out.push(':');
                show(&value, out, meter)?;
            }
            out.push('}');
        }
        other => return Err(mismatch("format", std::slice::from_ref(other))),
    }
    Ok(())
}

fn decimal(item: &Val<'_>, out: &mut String) -> Result<(), CelError> {
    match item {
        Val::Int(int) => {
            let _ = write!(out, "{int}");
        }
        Val::Uint(uint) => {
            let _ = write!(out, "{uint}");
        }
        other => return Err(mismatch("format %d", std::slice::from_ref(other))),
    }
    Ok(())
}

fn float(item: &Val<'_>, verb: char, precision: usize, out: &mut String) -> Result<(), CelError> {
    let double = match item {
        Val::Double(double) => *double,
        Val::Int(int) => *int as f64,
        Val::Uint(uint) => *uint as f64,
        other => return Err(mismatch("format %f", std::slice::from_ref(other))),
    };
    if verb == 'f' || !double.is_finite() {
        let _ = write!(out, "{double:.precision$}");
        return Ok(());
    }
    let text = format!("{double:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, power)) => {
            let (sign, digits) = match power.strip_prefix('-') {
                Some(digits) => ("⁻", digits),
                None => ("", power),
            };
            let _ = write!(out, "{mantissa}×10{sign}");
            out.extend(format!("{digits:0>2}").chars().map(superscript));
        }
        None => out.push_str(&text),
    }
    Ok(())
}

fn superscript(digit: char) -> char {
    match digit {
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    }
}

fn radix(item: &Val<'_>, verb: char, out: &mut String) -> Result<(), CelError> {
    let (negative, size) = match (item, verb) {
        (Val::Int(int), _) => (*int < 0, int.unsigned_abs()),
        (Val::Uint(uint), _) => (false, *uint),
        (Val::Bool(is), 'b') => (false, u64::from(*is)),
        (Val::Text(text), 'x' | 'X') => {
            return hex(text.as_bytes(), verb, out);
        }
        (Val::Bytes(bytes), 'x' | 'X') => return hex(bytes, verb, out),
        (other, _) => return Err(mismatch("format %x", std::slice::from_ref(other))),
    };
    if negative {
        out.push('-');
    }
    let _ = match verb {
        'x' => write!(out, "{size:x}"),
        'X' => write!(out, "{size:X}"),
        'o' => write!(out, "{size:o}"),
        _ => write!(out, "{size:b}"),
    };
    Ok(())
}

fn hex(bytes: &[u8], verb: char, out: &mut String) -> Result<(), CelError> {
    for byte in bytes {
        let _ = match verb {
            'x' => write!(out, "{byte:02x}"),
            _ => write!(out, "{byte:02X}"),
        };
    }
    Ok(())
}
