//! Which items of two lists are the same ones.

use std::collections::HashMap;

use serde_json::Value;

/// The keys that name an item, tried in this order; a second key may be absent and then has a default.
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

/// Lists whose items are named and yet run one after the other.
pub(super) fn is_ordered(key: &str) -> bool {
    key == "initContainers"
}

/// Names the items of two lists when one kind of key names all of them, each once in its list.
pub(super) fn names(before: &[Value], after: &[Value]) -> Option<[Vec<String>; 2]> {
    if before.is_empty() && after.is_empty() {
        return None;
    }
    KEYS.iter().find_map(|(first, second)| {
        let named = |list: &[Value]| -> Option<Vec<String>> {
            let names: Vec<String> = list
                .iter()
                .map(|item| name(item, first, *second))
                .collect::<Option<_>>()?;
            let mut seen: Vec<&String> = names.iter().collect();
            seen.sort_unstable();
            seen.is_sorted_by(|a, b| a < b).then_some(names)
        };
        Some([named(before)?, named(after)?])
    })
}

fn name(item: &Value, first: &str, second: Option<(&str, &str)>) -> Option<String> {
    let map = item.as_object()?;
    let mut name = format!("{first}={}", scalar(map.get(first)?)?);
    if let Some((key, default)) = second {
        let value = match map.get(key) {
            None | Some(Value::Null) => default.to_owned(),
            Some(value) => scalar(value)?,
        };
        if value != default {
            name.push_str(&format!(",{key}={value}"));
        }
    }
    Some(name)
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// One place of a list that shows both: the items' indices.
pub(super) type Pair = (Option<usize>, Option<usize>);

/// Pairs named items in the order of `before`, new ones behind what they stand behind in `after`;
/// tells too whether the items that both have stand in another order.
pub(super) fn by_name(before: &[String], after: &[String]) -> (Vec<Pair>, bool) {
    let places: HashMap<&str, usize> = after
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_str(), at))
        .collect();
    let known: HashMap<&str, usize> = before
        .iter()
        .enumerate()
        .map(|(at, name)| (name.as_str(), at))
        .collect();
    // New items by the known item that they follow; those at the start follow none.
    let mut following: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let mut last = None;
    for (at, name) in after.iter().enumerate() {
        match known.get(name.as_str()) {
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
        pairs.push((Some(at), places.get(name.as_str()).copied()));
        append(Some(at), &mut pairs);
    }
    let common = pairs.iter().filter_map(|pair| match pair {
        (Some(_), after) => *after,
        _ => None,
    });
    let reordered = !common.is_sorted();
    (pairs, reordered)
}
