//! Pairs the items of two lists by their identity, such as the `name` of a container.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

/// The keys that can identify list items; the first key that identifies every item is taken. If a key is listed with a
/// second key, such as `protocol`, the two values together identify an item. The text after a second key is its
/// default.
const KEYS: &[(&str, Option<(&str, &str)>)] = &[
    ("name", None),
    ("containerPort", Some(("protocol", "TCP"))),
    ("port", Some(("protocol", "TCP"))),
    ("mountPath", None),
    ("devicePath", None),
    ("key", None),
    ("ip", None),
    ("id", None),
    ("type", None),
    ("topologyKey", Some(("whenUnsatisfiable", ""))),
    ("host", None),
];

/// Returns whether the order of the list under this key is important, even if its items have names.
pub(super) fn is_ordered(key: &str) -> bool {
    key == "initContainers"
}

/// The names by which the items of two lists are paired.
pub(super) struct Names<'a> {
    /// The key under which each item contains its name.
    pub(super) key: &'static str,
    /// The names of the items of the first list, in its order.
    pub(super) before: Vec<Cow<'a, str>>,
    /// The names of the items of the second list, in its order.
    pub(super) after: Vec<Cow<'a, str>>,
}

/// Returns the names of the items of two lists; None if no key identifies every item of both lists.
pub(super) fn names<'a>(before: &'a [Value], after: &'a [Value]) -> Option<Names<'a>> {
    if before.is_empty() && after.is_empty() {
        return None;
    }
    KEYS.iter().find_map(|(first, second)| {
        let named = |list: &'a [Value]| -> Option<Vec<Cow<'a, str>>> {
            let names: Vec<Cow<'a, str>> = list
                .iter()
                .map(|item| name(item, first, *second))
                .collect::<Option<_>>()?;
            let mut seen: Vec<&str> = names.iter().map(Cow::as_ref).collect();
            seen.sort_unstable();
            seen.is_sorted_by(|a, b| a < b).then_some(names)
        };
        Some(Names {
            key: first,
            before: named(before)?,
            after: named(after)?,
        })
    })
}

fn name<'a>(item: &'a Value, first: &str, second: Option<(&str, &str)>) -> Option<Cow<'a, str>> {
    let map = item.as_object()?;
    let name = scalar(map.get(first)?)?;
    let Some((key, default)) = second else {
        return Some(name);
    };
    let value = match map.get(key) {
        None | Some(Value::Null) => return Some(name),
        Some(value) => scalar(value)?,
    };
    Some(match value == default {
        true => name,
        false => format!("{name},{key}={value}").into(),
    })
}

fn scalar(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(text.into()),
        Value::Number(number) => Some(number.to_string().into()),
        _ => None,
    }
}

/// Two paired list items: the index in the first list and the index in the second list. An index is None if its list
/// does not contain the item.
pub(super) type Pair = (Option<usize>, Option<usize>);

/// Pairs list items by name, in the order of `before`. An item that only `after` has comes behind the item that
/// precedes it in `after`. The flag says whether the common items have another order in `after`.
pub(super) fn by_name(before: &[Cow<'_, str>], after: &[Cow<'_, str>]) -> (Vec<Pair>, bool) {
    // The usual case: the lists have the same names in the same order.
    if before == after {
        let pairs = (0..before.len()).map(|at| (Some(at), Some(at)));
        return (pairs.collect(), false);
    }
    let places: HashMap<&str, usize> = after
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_ref(), at))
        .collect();
    let known: HashMap<&str, usize> = before
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_ref(), at))
        .collect();
    // The new items, grouped by the common item before them. The key None groups the new items at the start of the
    // list.
    let mut following: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let mut last = None;
    for (at, name) in after.iter().enumerate() {
        match known.get(name.as_ref()) {
            Some(place) => last = Some(*place),
            None => following.entry(last).or_default().push(at),
        }
    }
    let mut pairs = Vec::with_capacity(before.len().max(after.len()));
    let mut append = |follows: Option<usize>, pairs: &mut Vec<Pair>| {
        let new = following.remove(&follows).unwrap_or_default();
        pairs.extend(new.into_iter().map(|at| (None, Some(at))));
    };
    append(None, &mut pairs);
    for (at, name) in before.iter().enumerate() {
        pairs.push((Some(at), places.get(name.as_ref()).copied()));
        append(Some(at), &mut pairs);
    }
    let common = pairs.iter().filter_map(|pair| match pair {
        (Some(_), after) => *after,
        _ => None,
    });
    let reordered = !common.is_sorted();
    (pairs, reordered)
}
