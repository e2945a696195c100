//! A simple second implementation of the YAML that the diff shows. Tests compare the diff with it.
//!
//! It returns two complete objects, while the diff itself prints only the parts near a change.

use serde_json::{Map, Value};

use super::super::{Options, Side, mask, pairing, sequence};
use crate::api::labels;
use mask::{LAST_APPLIED, MASK, MASK_CHANGED, Secrecy};

type Both = (Option<Value>, Option<Value>);

/// Returns two objects in the form that the diff shows: without noise and with masked values.
pub(super) fn shown(before: &Value, after: &Value, options: &Options) -> (Value, Value) {
    Plain {
        options,
        path: Vec::new(),
    }
    .both(before, after, false)
}

/// Returns an object that only one side has, in the form that the diff shows.
pub(super) fn alone(object: &Value, options: &Options) -> Value {
    let mut shown = mask::masked(object, false);
    if !options.show_noise
        && let Some(map) = shown.as_object_mut()
    {
        map.remove("status");
        if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !is_noise(&["metadata"], key));
            let annotations = metadata.get_mut("annotations");
            if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                annotations.retain(|key, _| !is_noise(&["metadata", "annotations"], key));
                if annotations.is_empty() {
                    metadata.remove("annotations");
                }
            }
        }
    }
    shown
}

struct Plain<'a> {
    options: &'a Options,
    /// The keys of the parents of the current value. A list item counts as a key that no real map has.
    path: Vec<String>,
}

impl Plain<'_> {
    fn both(&mut self, before: &Value, after: &Value, secret: bool) -> (Value, Value) {
        let noise = self.options.show_noise;
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                let (before, after) = self.maps(before, after, secret);
                (before.into(), after.into())
            }
            (Value::Array(before), Value::Array(after)) => self.lists(before, after, secret),
            _ if before == after => (before.clone(), after.clone()),
            _ if !noise && is_empty(before) && is_empty(after) => (before.clone(), before.clone()),
            _ => (mask::masked(before, secret), mask::masked(after, secret)),
        }
    }

    fn maps(
        &mut self,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        secret: bool,
    ) -> (Map<String, Value>, Map<String, Value>) {
        let own = [before, after].map(Secrecy::of);
        let secret = secret || own.contains(&Secrecy::Secret);
        let list = own.contains(&Secrecy::List);
        let (mut left, mut right) = (Map::new(), Map::new());
        let new = after.keys().filter(|key| !before.contains_key(*key));
        for key in before.keys().chain(new) {
            let (old, new) = (before.get(key), after.get(key));
            if self.is_hidden(key, old, new) {
                continue;
            }
            self.path.push(key.clone());
            let (old, new) = match key.as_str() {
                field if secret && mask::is_secret_field(field) => secrets(old, new),
                LAST_APPLIED => self.annotation(old, new),
                field => self.field(old, new, list && field == "items"),
            };
            self.path.pop();
            left.extend(old.map(|value| (key.clone(), value)));
            right.extend(new.map(|value| (key.clone(), value)));
        }
        (left, right)
    }

    fn is_hidden(&self, key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        if self.options.show_noise {
            return false;
        }
        let (only, side) = match (old, new) {
            _ if is_noise(&path, key) => return true,
            (Some(old), None) => (old, Side::Before),
            (None, Some(new)) => (new, Side::After),
            _ => return false,
        };
        let is_content = |key: &str| matches!(key, "data" | "binaryData" | "stringData");
        let is_content = path.is_empty() && is_content(key)
            || path.len() == 1 && path.iter().all(|key| is_content(key));
        is_empty(only) || self.options.live == Some(side) && !is_content
    }

    fn field(&mut self, old: Option<&Value>, new: Option<&Value>, secret: bool) -> Both {
        let is_metadata = self.path == ["metadata"] || self.path == ["metadata", "annotations"];
        let nothing = Value::Object(Map::new());
        let filled = |value: Value| Some(value).filter(|value| *value != nothing);
        match (old, new) {
            (Some(old), Some(new)) => {
                let (old, new) = self.both(old, new, secret);
                (Some(old), Some(new))
            }
            (Some(old), None) if is_metadata && old.is_object() => {
                (filled(self.both(old, &nothing, secret).0), None)
            }
            (None, Some(new)) if is_metadata && new.is_object() => {
                (None, filled(self.both(&nothing, new, secret).1))
            }
            (old, new) => {
                let masked = |value: &Value| mask::masked(value, secret);
                (old.map(masked), new.map(masked))
            }
        }
    }

    fn annotation(&mut self, old: Option<&Value>, new: Option<&Value>) -> Both {
        let mut given = [old, new].into_iter().flatten();
        match given.all(mask::is_open_annotation) {
            true => self.field(old, new, false),
            false => one_secret(old, new),
        }
    }

    fn lists(&mut self, before: &[Value], after: &[Value], secret: bool) -> (Value, Value) {
        let mut pairs: Vec<pairing::Pair> = Vec::new();
        let mut keeps_order = false;
        if before == after {
            pairs.extend((0..before.len()).map(|at| (Some(at), Some(at))));
            let list: Value = before
                .iter()
                .map(|item| mask::masked(item, secret))
                .collect();
            return (list.clone(), list);
        } else if let Some(names) = pairing::names(before, after) {
            let reordered;
            (pairs, reordered) = pairing::by_name(&names.before, &names.after);
            let is_ordered = self.path.last().is_some_and(|key| pairing::is_ordered(key));
            keeps_order = reordered && (self.options.show_noise || is_ordered);
        } else {
            let edits = sequence::edits(before, after, self.options.deadline).edits;
            sequence::each(&edits, before.len(), |old, new| match (old, new) {
                (Some(old), Some(new)) => pairs.extend(old.map(Some).zip(new.map(Some))),
                (old, new) => {
                    pairs.extend(old.into_iter().flatten().map(|at| (Some(at), None)));
                    pairs.extend(new.into_iter().flatten().map(|at| (None, Some(at))));
                }
            });
            pairs = side_by_side(pairs);
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (at_old, at_new) in pairs {
            let (a, b) = (at_old.map(|at| &before[at]), at_new.map(|at| &after[at]));
            self.path.push("[item]".to_owned());
            let (a, b) = match (a, b) {
                // Two equal lists without item names need no pairing, so their items keep their order.
                (Some(a), Some(b)) if a == b => {
                    let shown = mask::masked(a, secret);
                    match pairing::names(before, after) {
                        None => (Some(shown.clone()), Some(shown)),
                        Some(_) => self.field(Some(a), Some(b), secret),
                    }
                }
                (a, b) => self.field(a, b, secret),
            };
            self.path.pop();
            left.extend(a);
            right.extend(b.map(|value| (at_new, value)));
        }
        if keeps_order {
            right.sort_by_key(|(at, _)| *at);
        }
        let right: Vec<Value> = right.into_iter().map(|(_, value)| value).collect();
        (left.into(), right.into())
    }
}

/// In each run of items that only one list has, pairs the removed items with the added items, in order.
fn side_by_side(pairs: Vec<pairing::Pair>) -> Vec<pairing::Pair> {
    let mut out = Vec::new();
    for run in pairs.chunk_by(|one, next| is_pair(one) == is_pair(next)) {
        let old: Vec<usize> = run.iter().filter_map(|(old, _)| *old).collect();
        let new: Vec<usize> = run.iter().filter_map(|(_, new)| *new).collect();
        let longest = old.len().max(new.len());
        out.extend((0..longest).map(|at| (old.get(at).copied(), new.get(at).copied())));
    }
    out
}

fn is_pair(pair: &pairing::Pair) -> bool {
    matches!(pair, (Some(_), Some(_)))
}

fn secrets(old: Option<&Value>, new: Option<&Value>) -> Both {
    match (old, new) {
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let (mut left, mut right) = (Map::new(), Map::new());
            for key in old.keys().chain(new.keys()) {
                let (old, new) = one_secret(old.get(key), new.get(key));
                left.extend(old.map(|value| (key.clone(), value)));
                right.extend(new.map(|value| (key.clone(), value)));
            }
            (Some(left.into()), Some(right.into()))
        }
        (Some(_), Some(_)) => one_secret(old, new),
        _ => (old.map(mask::values), new.map(mask::values)),
    }
}

fn one_secret(old: Option<&Value>, new: Option<&Value>) -> Both {
    let shown = |value: Option<&Value>, text: &str| value.map(|_| Value::from(text));
    let is_changed = old != new && old.is_some();
    let changed = if is_changed { MASK_CHANGED } else { MASK };
    (shown(old, MASK), shown(new, changed))
}

fn is_noise(parent: &[&str], key: &str) -> bool {
    match parent {
        [] => key == "status",
        ["metadata"] => matches!(
            key,
            "managedFields"
                | "resourceVersion"
                | "uid"
                | "generation"
                | "creationTimestamp"
                | "selfLink"
        ),
        ["metadata", "annotations"] => [
            LAST_APPLIED,
            labels::CONTENT_HASH,
            labels::REFERENCES_HASH,
            labels::RENDERED_HASH,
            labels::APPLIED_HASH,
            labels::AUDIT_HEAD,
        ]
        .contains(&key),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
