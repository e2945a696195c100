//! The functions of the CEL extensions for lists and sets.

use std::cmp::Ordering;

use super::super::CelError;
use super::super::meter::Meter;
use super::super::tree::Operator;
use super::super::value::Val;
use super::{Function, mismatch, operate};

const ITEM: usize = std::mem::size_of::<Val<'static>>();

/// Calls a function that takes lists.
pub(super) fn call<'a>(
    function: Function,
    args: &[Val<'a>],
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    use Function as F;
    if let (F::Range, [Val::Int(count)]) = (function, args) {
        let count = usize::try_from(*count).map_err(|_| CelError::failed("a range below zero"))?;
        meter.range(count)?;
        meter.make(count * ITEM)?;
        return Ok(Val::list(
            (0..count).map(|at| Val::Int(at as i64)).collect(),
        ));
    }
    let Some((list, rest)) = args.split_first() else {
        return Err(mismatch("list function", args));
    };
    let Some(count) = list.list_len() else {
        return Err(mismatch("list function", args));
    };
    meter.step(count as u64 / 4)?;
    match (function, rest) {
        (F::First, []) => Ok(optional(list.item(0))),
        (F::Last, []) => Ok(optional(count.checked_sub(1).and_then(|at| list.item(at)))),
        (F::IndexOf, [item]) => position(list, item, false, meter),
        (F::LastIndexOf, [item]) => position(list, item, true, meter),
        (F::Reverse, []) => {
            meter.make(count * ITEM)?;
            let mut items: Vec<_> = list.items().collect();
            items.reverse();
            Ok(Val::list(items))
        }
        (F::Slice, [Val::Int(from), Val::Int(to)]) => slice(list, count, *from, *to, meter),
        (F::Flatten, []) => flatten(list, 1, meter),
        (F::Flatten, [Val::Int(depth)]) => {
            let depth = u8::try_from(*depth)
                .map_err(|_| CelError::failed("flatten takes a depth from 0 to 255"))?;
            flatten(list, depth, meter)
        }
        (F::Distinct, []) => distinct(list, meter),
        (F::IsSorted, []) => is_sorted(list, meter),
        (F::Sort, []) => sort(list, count, meter),
        (F::Max, []) => extreme(list, Ordering::Greater, meter),
        (F::Min, []) => extreme(list, Ordering::Less, meter),
        (F::Sum, []) => sum(list, meter),
        (F::SetsContains, [other]) => all_in(other, list, meter).map(Val::Bool),
        (F::SetsEquivalent, [other]) => Ok(Val::Bool(
            all_in(other, list, meter)? && all_in(list, other, meter)?,
        )),
        (F::SetsIntersects, [other]) => {
            for item in list.items() {
                if item.is_in(other, meter)? {
                    return Ok(Val::Bool(true));
                }
            }
            Ok(Val::Bool(false))
        }
        _ => Err(mismatch("list function", args)),
    }
}

fn optional(value: Option<Val<'_>>) -> Val<'_> {
    value.map_or(Val::Optional(None), Val::some)
}

fn position<'a>(
    list: &Val<'a>,
    wanted: &Val<'a>,
    last: bool,
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    let mut found = -1;
    for (at, item) in list.items().enumerate() {
        if item.equals(wanted, meter)? {
            found = at as i64;
            if !last {
                break;
            }
        }
    }
    Ok(Val::Int(found))
}

fn slice<'a>(
    list: &Val<'a>,
    count: usize,
    from: i64,
    to: i64,
    meter: &mut Meter,
) -> Result<Val<'a>, CelError> {
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    match range.filter(|(from, to)| from <= to && *to <= count) {
        Some((from, to)) => {
            meter.make((to - from) * ITEM)?;
            Ok(Val::list(
                (from..to).filter_map(|at| list.item(at)).collect(),
            ))
        }
        None => Err(CelError::failed(format!(
            "cannot slice {count} items from {from} to {to}"
        ))),
    }
}

fn flatten<'a>(list: &Val<'a>, depth: u8, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    let mut items: Vec<Val<'a>> = list.items().collect();
    for _ in 0..depth {
        if items.iter().all(|item| item.list_len().is_none()) {
            break;
        }
        let mut flat = Vec::new();
        for item in items {
            match item.list_len() {
                Some(count) => {
                    meter.make(count * ITEM)?;
                    flat.extend(item.items());
                }
                None => {
                    meter.make(ITEM)?;
                    flat.push(item);
                }
            }
        }
        items = flat;
    }
    Ok(Val::list(items))
}

fn distinct<'a>(list: &Val<'a>, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    let mut kept: Vec<Val<'a>> = Vec::new();
    'items: for item in list.items() {
        for known in &kept {
            if known.equals(&item, meter)? {
                continue 'items;
            }
        }
        meter.make(ITEM)?;
        kept.push(item);
    }
    Ok(Val::list(kept))
}

fn is_sorted<'a>(list: &Val<'a>, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    for (a, b) in list.items().zip(list.items().skip(1)) {
        if a.order(&b, meter)? == Some(Ordering::Greater) {
            return Ok(Val::Bool(false));
        }
    }
    Ok(Val::Bool(true))
}

fn sort<'a>(list: &Val<'a>, count: usize, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    meter.make(count * ITEM)?;
    let mut items: Vec<_> = list.items().collect();
    let mut failure = None;
    items.sort_by(|a, b| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        match meter.step(1).and_then(|()| a.order(b, meter)) {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(error) => {
                failure = Some(error);
                Ordering::Equal
            }
        }
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(Val::list(items)),
    }
}

fn extreme<'a>(list: &Val<'a>, wanted: Ordering, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    let mut best: Option<Val<'a>> = None;
    for item in list.items() {
        meter.step(1)?;
        let better = match &best {
            None => true,
            Some(best) => item.order(best, meter)? == Some(wanted),
        };
        if better {
            best = Some(item);
        }
    }
    best.ok_or_else(|| CelError::failed("min and max need a list that is not empty"))
}

fn sum<'a>(list: &Val<'a>, meter: &mut Meter) -> Result<Val<'a>, CelError> {
    let mut total: Option<Val<'a>> = None;
    for item in list.items() {
        meter.step(1)?;
        if !matches!(
            item,
            Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Span(_)
        ) {
            return Err(mismatch("sum", &[list.clone(), item]));
        }
        total = Some(match total {
            None => item,
            Some(total) => operate(Operator::Add, total, item, meter)?,
        });
    }
    Ok(total.unwrap_or(Val::Int(0)))
}

fn all_in<'a>(items: &Val<'a>, list: &Val<'a>, meter: &mut Meter) -> Result<bool, CelError> {
    for item in items.items() {
        if !item.is_in(list, meter)? {
            return Ok(false);
        }
    }
    Ok(items.list_len().is_some())
}
