//! Applies strategic merge patches. They merge two lists by the merge key that the schema declares for the list.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::{PatchError, not_a_map, without_nulls};
use crate::schema::{Schema, Type};

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Object = Map<String, Value>;

/// Applies a strategic merge patch to an object. `schema` is the schema of the object.
pub fn strategic_merge(
    schema: &Schema,
    target: &Value,
    patch: &Value,
) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        return match patch {
            Value::Null => Ok(target.clone()),
            other => Err(PatchError::Malformed(not_a_map(other))),
        };
    };
    let target = target.as_object().cloned().unwrap_or_default();
    merge_maps(schema.root(), target, patch.clone()).map(Value::Object)
}

fn malformed(what: &str) -> PatchError {
    PatchError::Malformed(format!("invalid patch format of {what}"))
}

fn merge_maps(ty: Type<'_>, mut original: Object, mut patch: Object) -> Result<Object, PatchError> {
    if let Some(directive) = patch.remove(DIRECTIVE) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Object::new()),
            _ => {
                let text = go_print(&directive);
                patch.insert(DIRECTIVE.to_owned(), directive);
                Err(PatchError::Unmergeable(format!(
                    "unknown patch type: {text} in map: {}",
                    go_print(&Value::Object(patch))
                )))
            }
        };
    }
    retain_keys(&mut original, &mut patch)?;
    order_lists(ty, &mut original, &mut patch)?;
    for (key, value) in patch {
        let (name, deletes) = if key.starts_with(DELETE_FROM) {
            (directive_field(&key, DELETE_FROM, "primitive list")?, true)
        } else {
            (key.as_str(), false)
        };
        if value.is_null() {
            original.remove(name);
            continue;
        }
        let field = ty.field(name).unwrap_or(Type::Opaque);
        let merged = match (original.remove(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) if !deletes => {
                Some(Value::Object(merge_maps(field, old, new)?))
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                if field.merge().merge || deletes {
                    Some(Value::Array(merge_lists(field, old, new, deletes)?))
                } else {
                    Some(Value::Array(new))
                }
            }
            (old, _) if deletes => old,
            (_, mut new) => {
                without_nulls(&mut new);
                without_directives(new)
            }
        };
        if let Some(merged) = merged {
            original.insert(name.to_owned(), merged);
        }
    }
    Ok(original)
}

fn directive_field<'a>(key: &'a str, prefix: &str, what: &str) -> Result<&'a str, PatchError> {
    key.strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('/'))
        .ok_or_else(|| malformed(what))
}

/// Executes the directive `$retainKeys` of a patch: removes the fields that the directive does not list.
fn retain_keys(original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else {
        return Ok(());
    };
    let keep: BTreeSet<&str> = directive
        .as_array()
        .ok_or_else(|| malformed("retainKeys"))?
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let contradicts = patch.iter().any(|(key, value)| {
        !value.is_null()
            && !key.starts_with(DELETE_FROM)
            && !key.starts_with(SET_ORDER)
            && !keep.contains(key.as_str())
    });
    if contradicts {
        return Err(malformed("retainKeys"));
    }
    original.retain(|key, _| keep.contains(key.as_str()));
    Ok(())
}

/// Executes the directives `$setElementOrder` of a patch: merges and sorts the lists that they name.
fn order_lists(ty: Type<'_>, original: &mut Object, patch: &mut Object) -> Result<(), PatchError> {
    let keys: Vec<String> = patch
        .keys()
        .filter(|k| k.starts_with(SET_ORDER))
        .cloned()
        .collect();
    for key in keys {
        let name = directive_field(&key, SET_ORDER, "setElementOrder list")?.to_owned();
        let Some(Value::Array(order)) = patch.remove(&key) else {
            return Err(malformed("setElementOrder list"));
        };
        let field = ty.field(&name).unwrap_or(Type::Opaque);
        let merge_key = field.merge().key;
        let old = match original.get(&name) {
            None => None,
            Some(Value::Array(items)) => Some(items.clone()),
            Some(_) => return Err(malformed("setElementOrder list")),
        };
        let new = match patch.get(&name) {
            None => None,
            Some(Value::Array(items)) => Some(items.clone()),
            Some(_) => return Err(malformed("setElementOrder list")),
        };
        if let Some(new) = &new {
            check_order(new, &order, merge_key.as_deref())?;
        }
        let merged = match (old.clone(), new) {
            (None, None) => continue,
            (Some(old), None) => old,
            (None, Some(new)) => match without_directives(Value::Array(new)) {
                Some(Value::Array(items)) => items,
                _ => continue,
            },
            (Some(old), Some(new)) if field.merge().merge => merge_lists(field, old, new, false)?,
            (Some(_), Some(new)) => new,
        };
        patch.remove(&name);
        let old = old.unwrap_or_default();
        let sorted = arrange(merged, &order, &old, merge_key.as_deref())?;
        original.insert(name, Value::Array(sorted));
    }
    Ok(())
}

/// Checks that the items of a list in the patch are in the order of the list's `$setElementOrder`.
fn check_order(
    items: &[Value],
    order: &[Value],
    merge_key: Option<&str>,
) -> Result<(), PatchError> {
    if items.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in items.iter().filter(|i| i.get(DIRECTIVE).is_none()) {
        let wanted = identity(item, merge_key)?;
        let mut found = false;
        for candidate in rest.by_ref() {
            if identity(candidate, merge_key)? == wanted {
                found = true;
                break;
            }
        }
        if !found {
            return Err(PatchError::Unmergeable(format!(
                "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
                go_print(&Value::Array(items.to_vec())),
                go_print(&Value::Array(order.to_vec()))
            )));
        }
    }
    Ok(())
}

/// Returns the value that identifies a list item: the value of its merge key, or the item itself if its list has no
/// merge key.
fn identity<'a>(item: &'a Value, merge_key: Option<&str>) -> Result<&'a Value, PatchError> {
    match merge_key {
        None => Ok(item),
        Some(key) => item.get(key).ok_or_else(|| {
            PatchError::Unmergeable(format!(
                "map: {} does not contain declared merge key: {key}",
                go_print(item)
            ))
        }),
    }
}

fn merge_lists(
    ty: Type<'_>,
    old: Vec<Value>,
    new: Vec<Value>,
    deletes: bool,
) -> Result<Vec<Value>, PatchError> {
    if old.is_empty() && new.is_empty() {
        return Ok(old);
    }
    let maps = uniform(&old, &new)?;
    if !maps {
        if deletes {
            let gone: HashSet<String> = new.iter().map(Value::to_string).collect();
            let stays = |value: &Value| !gone.contains(&value.to_string());
            return Ok(old.into_iter().filter(stays).collect());
        }
        let mut seen = HashSet::new();
        let all = old.iter().chain(&new);
        let merged: Vec<Value> = all
            .filter(|value| seen.insert(value.to_string()))
            .cloned()
            .collect();
        return arrange(merged, &new, &old, None);
    }
    let Some(key) = ty.merge().key else {
        return Err(PatchError::Unmergeable(
            "cannot merge lists without merge key".to_owned(),
        ));
    };
    let (mut merged, new) = special_elements(old.clone(), new, &key)?;
    let before = merged.clone();
    let mut known = places(&merged, Some(&key));
    for item in &new {
        let wanted = identity(item, Some(&key))?.to_string();
        let place = known.get(&wanted).and_then(|at| merged.get_mut(*at));
        match (place, item) {
            (Some(place), Value::Object(patch)) => {
                let original = place.as_object().cloned().unwrap_or_default();
                *place = Value::Object(merge_maps(ty.items(), original, patch.clone())?);
            }
            (_, item) => {
                known.entry(wanted).or_insert(merged.len());
                merged.push(item.clone());
            }
        }
    }
    arrange(merged, &new, &before, Some(&key))
}

/// Executes the directives among the items of a list in the patch. Returns the old list after them, and the items
/// that are no directives.
fn special_elements(
    mut old: Vec<Value>,
    new: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::with_capacity(new.len());
    let mut replace = false;
    for item in new {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let gone = identity(&item, Some(key))?.clone();
                old.retain(|o| o.get(key) != Some(&gone));
            }
            Some("replace") => replace = true,
            Some("merge") => {
                return Err(PatchError::Unmergeable(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            _ => {
                return Err(PatchError::Unmergeable(format!(
                    "unknown patch type: {} in map: {}",
                    go_print(directive),
                    go_print(&item)
                )));
            }
        }
    }
    Ok(if replace {
        (plain, Vec::new())
    } else {
        (old, plain)
    })
}

/// Returns whether all items of two lists are objects. Fails for items of different types and for lists of lists.
fn uniform(old: &[Value], new: &[Value]) -> Result<bool, PatchError> {
    let mut kinds = old.iter().chain(new).map(|v| match v {
        Value::Object(_) => 'o',
        Value::Array(_) => 'a',
        Value::String(_) => 's',
        Value::Bool(_) => 'b',
        Value::Number(_) => 'n',
        Value::Null => '0',
    });
    let first = kinds.next().unwrap_or('o');
    if kinds.any(|k| k != first) {
        let lists = [old, new].map(|l| go_print(&Value::Array(l.to_vec())));
        return Err(PatchError::Unmergeable(format!(
            "list element types are not identical: [{}]",
            lists.join(" ")
        )));
    }
    if first == 'a' {
        return Err(PatchError::Unsupported(
            "lists of lists are not supported".to_owned(),
        ));
    }
    Ok(first == 'o')
}

/// Sorts a merged list. The items in `order` get that order. Each other item of the live list comes before the first
/// of them that follows it in the live list. New items come last.
fn arrange(
    merged: Vec<Value>,
    order: &[Value],
    live: &[Value],
    key: Option<&str>,
) -> Result<Vec<Value>, PatchError> {
    let (in_order, in_live) = (places(order, key), places(live, key));
    // Each entry contains: the item's position in `order`, its position in the live list, and the item.
    let mut named: Vec<(usize, Option<usize>, Value)> = Vec::new();
    let mut rest: Vec<(Option<usize>, Value)> = Vec::new();
    for item in merged {
        let id = identity(&item, key)?.to_string();
        let live = in_live.get(&id).copied();
        match in_order.get(&id) {
            Some(at) => named.push((*at, live, item)),
            None => rest.push((live, item)),
        }
    }
    named.sort_by_key(|(at, ..)| *at);
    rest.sort_by_key(|(live, _)| live.unwrap_or(usize::MAX));
    let mut out = Vec::with_capacity(named.len() + rest.len());
    let mut rest = rest.into_iter().peekable();
    for (_, live, item) in named {
        while let (Some((Some(next), _)), Some(here)) = (rest.peek(), live) {
            if *next >= here {
                break;
            }
            out.extend(rest.next().map(|(_, item)| item));
        }
        out.push(item);
    }
    out.extend(rest.map(|(_, item)| item));
    Ok(out)
}

/// Returns the first position of each item of a list, by the value that identifies the item.
fn places(list: &[Value], key: Option<&str>) -> HashMap<String, usize> {
    let mut found = HashMap::with_capacity(list.len());
    for (at, item) in list.iter().enumerate() {
        if let Ok(id) = identity(item, key) {
            found.entry(id.to_string()).or_insert(at);
        }
    }
    found
}

/// Removes the directives from a value of the patch before it is added to the object. Returns None if the value
/// itself is a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(map) => {
            if map.contains_key(DIRECTIVE) {
                return None;
            }
            let kept = map
                .into_iter()
                .filter_map(|(k, v)| without_directives(v).map(|v| (k, v)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(
            items.into_iter().filter_map(without_directives).collect(),
        )),
        other => Some(other),
    }
}

/// Formats a value as Go's `%v` does.
fn go_print(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_print).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(k, v)| format!("{k}:{}", go_print(v)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        other => other.to_string(),
    }
}
