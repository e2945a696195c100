//! The functions of the CEL extension for strings. As in CEL, positions count characters, not bytes.

use std::rc::Rc;

use super::super::CelError;
use super::super::meter::Meter;
use super::super::value::{Text, Val};
use super::{Function, made_text, mismatch};

/// Calls a function that takes strings.
pub(super) fn call<'a>(
    function: Function,
    args: &[Val<'a>],
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    use Function as F;
    if let Some(Val::Text(text)) = args.first() {
        meter.scan(text.len())?;
    }
    match (function, args) {
        (F::Contains, [Val::Text(text), Val::Text(part)]) => {
            // The search for a part costs steps for the length of both texts, because its time grows with both.
            meter.scan(part.len())?;
            Ok(Val::Bool(text.contains(&**part)))
        }
        (F::StartsWith, [Val::Text(text), Val::Text(part)]) => {
            Ok(Val::Bool(text.starts_with(&**part)))
        }
        (F::EndsWith, [Val::Text(text), Val::Text(part)]) => Ok(Val::Bool(text.ends_with(&**part))),
        (F::LowerAscii, [Val::Text(text)]) => made_text(text.to_ascii_lowercase(), meter),
        (F::UpperAscii, [Val::Text(text)]) => made_text(text.to_ascii_uppercase(), meter),
        (F::Trim, [Val::Text(text)]) => made_text(text.trim().to_owned(), meter),
        (F::Reverse, [Val::Text(text)]) => made_text(text.chars().rev().collect(), meter),
        (F::CharAt, [Val::Text(text), Val::Int(at)]) => {
            let count = text.chars().count();
            let at = place(*at, count)?;
            made_text(text.chars().skip(at).take(1).collect(), meter)
        }
        (F::Substring, [Val::Text(text), Val::Int(from)]) => {
            substring(text, *from, text.chars().count() as i64, meter)
        }
        (F::Substring, [Val::Text(text), Val::Int(from), Val::Int(to)]) => {
            substring(text, *from, *to, meter)
        }
        (F::IndexOf, [Val::Text(text), Val::Text(part)]) => index_of(text, part, 0, meter),
        (F::IndexOf, [Val::Text(text), Val::Text(part), Val::Int(from)]) => {
            index_of(text, part, *from, meter)
        }
        (F::LastIndexOf, [Val::Text(text), Val::Text(part)]) => {
            last_index_of(text, part, None, meter)
        }
        (F::LastIndexOf, [Val::Text(text), Val::Text(part), Val::Int(from)]) => {
            last_index_of(text, part, Some(*from), meter)
        }
        (F::Replace, [Val::Text(text), Val::Text(from), Val::Text(to)]) => {
            replace(text, from, to, usize::MAX, meter)
        }
        (
            F::Replace,
            [
                Val::Text(text),
                Val::Text(from),
                Val::Text(to),
                Val::Int(times),
            ],
        ) => {
            let times = usize::try_from(*times).unwrap_or(usize::MAX);
            replace(text, from, to, times, meter)
        }
        (F::Split, [Val::Text(text), Val::Text(by)]) => split(text, by, usize::MAX, meter),
        (F::Split, [Val::Text(text), Val::Text(by), Val::Int(count)]) => split(
            text,
            by,
            usize::try_from(*count).unwrap_or(usize::MAX),
            meter,
        ),
        (F::Join, [list]) => join(list, "", meter),
        (F::Join, [list, Val::Text(by)]) => join(list, by, meter),
        (F::Quote, [Val::Text(text)]) => quote(text, meter),
        _ => Err(mismatch("text function", args)),
    }
}

fn place(at: i64, count: usize) -> Result<usize, CelError> {
    usize::try_from(at)
        .ok()
        .filter(|at| *at <= count)
        .ok_or_else(|| CelError::failed(format!("index out of range: {at}")))
}

/// Converts a position in characters to an offset in bytes. A position after the end of the text becomes the end of
/// the text.
fn byte_at(text: &str, at: usize) -> usize {
    text.char_indices()
        .nth(at)
        .map_or(text.len(), |(byte, _)| byte)
}

fn substring<'a>(
    text: &Text<'a>,
    from: i64,
    to: i64,
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    let count = text.chars().count();
    let (from, to) = (place(from, count)?, place(to, count)?);
    if from > to {
        return Err(CelError::failed(format!(
            "invalid substring range: {from} to {to}"
        )));
    }
    let (start, end) = (byte_at(text, from), byte_at(text, to));
    match text {
        // The result needs no memory, because it borrows a part of the borrowed text.
        Text::Borrowed(text) => Ok(Val::Text(Text::Borrowed(
            text.get(start..end).unwrap_or_default(),
        ))),
        Text::Shared(text) => made_text(text.get(start..end).unwrap_or_default().to_owned(), meter),
    }
}

fn index_of<'a>(text: &str, part: &str, from: i64, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    let from = place(from, text.chars().count())?;
    let start = byte_at(text, from);
    meter.scan(part.len())?;
    let rest = text.get(start..).unwrap_or_default();
    Ok(Val::Int(match rest.find(part) {
        Some(at) => (from + rest.get(..at).unwrap_or_default().chars().count()) as i64,
        None => -1,
    }))
}

fn last_index_of<'a>(
    text: &str,
    part: &str,
    from: Option<i64>,
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    meter.scan(part.len())?;
    let end = match from {
        None => text.len(),
        // `lastIndexOf` allows a match that begins at `from`, so the searched text ends where this match would end.
        Some(from) => {
            let start = byte_at(text, place(from, text.chars().count())?);
            let mut end = (start + part.len()).min(text.len());
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            end
        }
    };
    let searched = text.get(..end).unwrap_or_default();
    Ok(Val::Int(match searched.rfind(part) {
        Some(at) => searched.get(..at).unwrap_or_default().chars().count() as i64,
        None => -1,
    }))
}

fn replace<'a>(
    text: &str,
    from: &str,
    to: &str,
    times: usize,
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    // The bytes of the new text are charged before they are allocated, so that a huge text cannot be allocated.
    let found = match from.is_empty() {
        true => text.chars().count() + 1,
        false => text.matches(from).count(),
    }
    .min(times);
    let size = text
        .len()
        .saturating_sub(found.saturating_mul(from.len()))
        .saturating_add(found.saturating_mul(to.len()));
    meter.make(size)?;
    Ok(Val::text(text.replacen(from, to, times)))
}

fn split<'a>(text: &str, by: &str, count: usize, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    if count == 0 {
        return Ok(Val::list(Vec::new()));
    }
    let parts = match by.is_empty() {
        true => text.chars().count(),
        false => text.matches(by).count() + 1,
    }
    .min(count);
    meter.make(text.len() + parts * (std::mem::size_of::<Val<'_>>() + 16))?;
    if by.is_empty() {
        let mut items = Vec::with_capacity(parts);
        let mut rest = text;
        while items.len() + 1 < parts {
            let (one, after) = rest.split_at(byte_at(rest, 1));
            items.push(Val::text(one));
            rest = after;
        }
        if !rest.is_empty() {
            items.push(Val::text(rest));
        }
        return Ok(Val::list(items));
    }
    Ok(Val::list(text.splitn(count, by).map(Val::text).collect()))
}

fn join<'a>(list: &Val<'a>, by: &str, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    let Some(count) = list.list_len() else {
        return Err(mismatch("join", std::slice::from_ref(list)));
    };
    meter.step(count as u64)?;
    let mut size = by.len().saturating_mul(count.saturating_sub(1));
    for item in list.items() {
        match &item {
            Val::Text(text) => size = size.saturating_add(text.len()),
            _ => return Err(mismatch("join", &[list.clone(), item])),
        }
    }
    meter.make(size)?;
    let mut out = String::with_capacity(size);
    for (at, item) in list.items().enumerate() {
        if at > 0 {
            out.push_str(by);
        }
        if let Val::Text(text) = &item {
            out.push_str(text);
        }
    }
    Ok(Val::Text(Text::Shared(Rc::from(out))))
}

fn quote<'a>(text: &str, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    meter.make(text.len() * 2 + 2)?;
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            c => out.push(c),
        }
    }
    out.push('"');
    Ok(Val::text(out))
}

/// Joins the arguments of a template function with `-`; the arguments are texts and numbers.
pub(super) fn joined(name: &str, args: &[Val<'_>], meter: &mut Meter) -> Result<String, CelError> {
    let mut text = String::new();
    for (at, arg) in args.iter().enumerate() {
        if at > 0 {
            text.push('-');
        }
        match arg {
            Val::Text(part) => {
                meter.make(part.len())?;
                text.push_str(part);
            }
            Val::Int(number) => text.push_str(&number.to_string()),
            _ => return Err(mismatch(name, args)),
        }
    }
    Ok(text)
}
