//! Applies the patch operations of addons to rendered resources.
//!
//! Each call applies one operation to one resource. The caller selects the resources of a patch, and evaluates the
//! expressions in paths and values.

mod error;
mod path;
#[cfg(test)]
mod tests;

use std::fmt::Write;

use serde_json::Value;

pub use self::error::PatchError;
use self::error::{describe, items_hint, keys_hint, names_hint, shown};
use self::path::Segment;
pub use self::path::{MAX_LENGTH, MAX_SEGMENTS, Path, PathError, escape};
use super::merge::merge;
use crate::api::Object;
use crate::api::openchoreo::component::PatchVerb;
use crate::text;

/// The largest number of values that one operation can change in one resource.
pub const MAX_MATCHES: usize = 4_096;
/// The largest number of bytes that one operation can add to one resource. The size is approximate.
pub const MAX_ADDED: usize = 4 << 20;

/// Applies one operation to a resource. Returns the approximate number of bytes that the operation added. After an
/// error, the resource is unchanged.
///
/// - `add` sets a key, inserts before an index, or appends at `-`. It creates missing maps on its path, and a missing
///   list before a final `-`. For an index, a filter or a wildcard, it creates nothing.
/// - `replace` and `remove` fail if the value does not exist.
/// - `merge` merges a map by the rules of [`merge`], and creates missing maps.
///
/// With a filter or a wildcard in its path, the operation changes all matches. The operation fails if nothing
/// matches, or if it fails for one match.
pub fn apply(
    resource: &mut Value,
    verb: PatchVerb,
    path: &Path,
    value: Option<&Value>,
) -> Result<usize, PatchError> {
    let change = match (verb, value) {
        (PatchVerb::Remove, Some(_)) => return Err(PatchError::ValueUnwanted),
        (PatchVerb::Remove, None) => Change::Remove,
        (verb, None) => return Err(PatchError::ValueMissing(name(verb))),
        (PatchVerb::Add, Some(value)) => Change::Add(value),
        (PatchVerb::Replace, Some(value)) => Change::Replace(value),
        (PatchVerb::Merge, Some(Value::Object(value))) => Change::Merge(value),
        (PatchVerb::Merge, Some(other)) => {
            return Err(PatchError::ValueNoMap {
                found: describe(other),
            });
        }
    };
    if let (Change::Add(_), Some(last @ (Segment::All | Segment::Filter(_)))) =
        (&change, path.segments.last())
    {
        return Err(PatchError::AddToMatches {
            segment: shown(last),
        });
    }
    let mut operation = Operation {
        weight: value.map_or(0, weight),
        change,
        total: path.segments.len(),
        matches: 0,
        at: Vec::new(),
    };
    // The copy is changed, so that an error leaves the resource unchanged.
    let mut copy = resource.clone();
    operation.walk(&mut copy, &path.segments)?;
    *resource = copy;
    Ok(operation.weight.saturating_mul(operation.matches))
}

fn name(verb: PatchVerb) -> &'static str {
    match verb {
        PatchVerb::Add => "add",
        PatchVerb::Replace => "replace",
        PatchVerb::Remove => "remove",
        PatchVerb::Merge => "merge",
    }
}

#[derive(Clone, Copy)]
enum Change<'a> {
    Add(&'a Value),
    Replace(&'a Value),
    Remove,
    Merge(&'a Object),
}

struct Operation<'a> {
    change: Change<'a>,
    weight: usize,
    /// The number of segments in the whole path of the operation.
    total: usize,
    matches: usize,
    /// The keys and indices from the resource to the current value.
    at: Vec<String>,
}

impl Operation<'_> {
    /// Applies the operation to the values that the rest of the path selects in `value`. The recursion is limited,
    /// because the number of segments is.
    fn walk(&mut self, value: &mut Value, segments: &[Segment]) -> Result<(), PatchError> {
        let Some((segment, rest)) = segments.split_first() else {
            return self.change_here(value);
        };
        if rest.is_empty() && matches!(self.change, Change::Remove) {
            return self.remove(value, segment);
        }
        match segment {
            Segment::Key(key) => self.through_key(value, key, rest),
            Segment::All | Segment::Filter(_) => {
                for index in self.matching(value, segment, rest)? {
                    let (name, inner) = match (&mut *value, index) {
                        (Value::Array(items), Found::Index(at)) => {
                            (at.to_string(), items.get_mut(at))
                        }
                        (Value::Object(map), Found::Key(key)) => {
                            let inner = map.get_mut(&key);
                            (key, inner)
                        }
                        _ => continue,
                    };
                    if let Some(inner) = inner {
                        self.down(name, inner, rest)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn down(
        &mut self,
        name: String,
        value: &mut Value,
        rest: &[Segment],
    ) -> Result<(), PatchError> {
        self.at.push(name);
        self.walk(value, rest)?;
        self.at.pop();
        Ok(())
    }

    fn through_key(
        &mut self,
        value: &mut Value,
        key: &str,
        rest: &[Segment],
    ) -> Result<(), PatchError> {
        let creates = matches!(self.change, Change::Add(_) | Change::Merge(_));
        match value {
            Value::Object(map) => {
                if creates && map.get(key).is_none_or(Value::is_null) {
                    if let Change::Add(added) = self.change
                        && rest.is_empty()
                    {
                        self.count()?;
                        map.insert(key.to_owned(), added.clone());
                        return Ok(());
                    }
                    let fresh = self.fresh(key, rest)?;
                    map.insert(key.to_owned(), fresh);
                }
                match map.get_mut(key) {
                    Some(inner) => self.down(key.to_owned(), inner, rest),
                    None => Err(self.missing(key, keys_hint(map))),
                }
            }
            Value::Array(items) => {
                let length = items.len();
                if rest.is_empty()
                    && let Change::Add(added) = self.change
                {
                    let index = if key == "-" {
                        length
                    } else {
                        self.index(key, length)?
                    };
                    if index > length {
                        return Err(self.missing(key, items_hint(length)));
                    }
                    self.count()?;
                    items.insert(index, added.clone());
                    return Ok(());
                }
                if key == "-" {
                    return Err(
                        self.missing(key, "; only add takes `-`, and only at the end".into())
                    );
                }
                let index = self.index(key, length)?;
                match items.get_mut(index) {
                    Some(inner) => self.down(key.to_owned(), inner, rest),
                    None => Err(self.missing(key, items_hint(length))),
                }
            }
            other => Err(self.unfit(other, &escape(key), "a map or a list")),
        }
    }

    /// Returns the value that `add` or `merge` creates for a missing key on its path. Fails if the next segment is no
    /// key.
    fn fresh(&self, key: &str, rest: &[Segment]) -> Result<Value, PatchError> {
        match rest {
            [] => Ok(Value::Object(Object::new())),
            [Segment::Key(last)] if last == "-" && matches!(self.change, Change::Add(_)) => {
                Ok(Value::Array(Vec::new()))
            }
            [Segment::Key(next), ..] if next != "-" && parse_index(next).is_none() => {
                Ok(Value::Object(Object::new()))
            }
            [next, ..] => {
                let hint = format!(", and {} does not create it", shown(next));
                Err(self.missing(key, hint))
            }
        }
    }

    fn change_here(&mut self, value: &mut Value) -> Result<(), PatchError> {
        self.count()?;
        match self.change {
            Change::Add(new) | Change::Replace(new) => *value = new.clone(),
            Change::Merge(over) => {
                if value.is_null() {
                    *value = Value::Object(Object::new());
                }
                match value {
                    Value::Object(base) => merge(base, over),
                    other => return Err(self.unfit(other, "merge", "a map")),
                }
            }
            Change::Remove => return Err(PatchError::WholeResource),
        }
        Ok(())
    }

    fn remove(&mut self, value: &mut Value, segment: &Segment) -> Result<(), PatchError> {
        match segment {
            Segment::Key(key) => {
                self.count()?;
                match value {
                    Value::Object(map) => match map.remove(key) {
                        Some(_) => Ok(()),
                        None => Err(self.missing(key, keys_hint(map))),
                    },
                    Value::Array(items) => {
                        let index = self.index(key, items.len())?;
                        if index >= items.len() {
                            return Err(self.missing(key, items_hint(items.len())));
                        }
                        items.remove(index);
                        Ok(())
                    }
                    other => Err(self.unfit(other, &escape(key), "a map or a list")),
                }
            }
            Segment::All | Segment::Filter(_) => {
                for _ in self.matching(value, segment, &[])? {
                    self.count()?;
                }
                match value {
                    Value::Array(items) => items.retain(|item| !is_match(segment, item)),
                    Value::Object(map) => map.clear(),
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn matching(
        &self,
        value: &Value,
        segment: &Segment,
        rest: &[Segment],
    ) -> Result<Vec<Found>, PatchError> {
        let (found, hint) = match (value, segment) {
            (Value::Array(items), _) => {
                let found: Vec<Found> = items
                    .iter()
                    .enumerate()
                    .filter(|(_, item)| is_match(segment, item))
                    .map(|(at, _)| Found::Index(at))
                    .collect();
                (found, names_hint(items))
            }
            (Value::Object(map), Segment::All) => (
                map.keys().cloned().map(Found::Key).collect(),
                ", which is empty".to_owned(),
            ),
            (other, Segment::All) => return Err(self.unfit(other, "[*]", "a map or a list")),
            (other, _) => return Err(self.unfit(other, &segment.to_string(), "a list")),
        };
        if found.len() > MAX_MATCHES {
            return Err(PatchError::TooManyMatches);
        }
        if found.is_empty() {
            return Err(PatchError::NoMatch {
                at: self.place(),
                segment: shown(segment),
                place: self.total - rest.len(),
                hint,
            });
        }
        Ok(found)
    }

    /// Parses a segment as the index of a list, as RFC 6901 defines it: digits without leading zeros.
    fn index(&self, key: &str, length: usize) -> Result<usize, PatchError> {
        parse_index(key).ok_or_else(|| {
            let hint = format!(
                "{}; an item of a list is found by index or filter",
                items_hint(length)
            );
            self.missing(key, hint)
        })
    }

    fn count(&mut self) -> Result<(), PatchError> {
        self.matches += 1;
        if self.matches > MAX_MATCHES {
            Err(PatchError::TooManyMatches)
        } else if self.weight.saturating_mul(self.matches) > MAX_ADDED {
            Err(PatchError::TooMuch)
        } else {
            Ok(())
        }
    }

    /// Returns the path from the resource to the current value, as a JSON pointer.
    fn place(&self) -> String {
        if self.at.is_empty() {
            return "the resource".to_owned();
        }
        self.at.iter().fold(String::new(), |mut out, name| {
            let _ = write!(out, "/{}", text::fit(&escape(name), 80));
            out
        })
    }

    fn missing(&self, key: &str, hint: String) -> PatchError {
        PatchError::Missing {
            at: self.place(),
            segment: format!("`{}`", text::fit(&escape(key), 80)),
            hint,
        }
    }

    fn unfit(&self, found: &Value, segment: &str, wanted: &'static str) -> PatchError {
        PatchError::Unfit {
            at: self.place(),
            found: describe(found),
            segment: format!("`{}`", text::fit(segment, 80)),
            wanted,
        }
    }
}

enum Found {
    Index(usize),
    Key(String),
}

fn is_match(segment: &Segment, item: &Value) -> bool {
    match segment {
        Segment::All => true,
        Segment::Filter(conditions) => conditions.iter().all(|condition| condition.holds(item)),
        Segment::Key(_) => false,
    }
}

fn parse_index(key: &str) -> Option<usize> {
    let is_canonical = key == "0" || !key.starts_with('0');
    (is_canonical && key.bytes().all(|b| b.is_ascii_digit()))
        .then(|| key.parse().ok())
        .flatten()
}

/// Returns the approximate size of a value, in bytes.
fn weight(value: &Value) -> usize {
    let mut total = 0usize;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        total = total.saturating_add(8);
        match value {
            Value::String(text) => total = total.saturating_add(text.len()),
            Value::Array(items) => open.extend(items),
            Value::Object(map) => {
                total = total.saturating_add(map.keys().map(String::len).sum());
                open.extend(map.values());
            }
            _ => {}
        }
    }
    total
}
