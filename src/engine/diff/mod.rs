//! The difference between two sets of objects: by identity, then by field, then by line and word.
//!
//! Objects are paired by group, kind, namespace and name. Their trees are compared first, with list items
//! paired by their own identity: a reordered list is no change, and little text is left to compare. Noise
//! (fields that servers and controllers write) is hidden by default. Values of Secrets are masked before
//! anything is stored, so that no output can contain one.
//!
//! The lines are those of the objects as YAML, without hidden noise and with masked values. The
//! list items of `after` are in the order of `before`. This module does not read a cluster, colour
//! or print.

mod importance;
mod labels;
mod lines;
mod mask;
mod output;
mod pairing;
mod quantity;
mod script;
mod sequence;
mod tree;
mod words;

#[cfg(test)]
mod tests;

use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

pub use importance::{ChangeLine, Importance, shortened};
pub use labels::labels;
pub use lines::{Hunk, Kind, Line, Lines, Span, lines};
pub use words::words;

/// Copies an object and masks the values of all Secrets in it.
pub fn masked(object: &Value) -> Value {
    mask::masked(object, false)
}

/// The options of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Shows fields that servers and controllers write, differences between empty and absent values, and
    /// reorderings.
    pub show_noise: bool,
    /// The side with live objects; fields that only this side has are defaults.
    pub live: Option<Side>,
    /// Compares lines too. Writing objects as YAML takes most of the time, so an overview compares only
    /// fields, and compares lines only for the visible objects.
    pub lines: bool,
    /// The number of equal lines around a change.
    pub context: usize,
    /// The time at which the comparison stops searching; after it, whole blocks are shown as
    /// replaced.
    pub deadline: Option<Instant>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            show_noise: false,
            live: None,
            lines: true,
            context: 3,
            deadline: None,
        }
    }
}

/// The value of `context` that shows the whole object around a change.
pub const WHOLE: usize = usize::MAX;

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The older or left side.
    Before,
    /// The newer or right side.
    After,
}

/// The identity of an object, by which the objects of two sets are paired.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Identity {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

impl Identity {
    /// Returns the identity of an object; a missing field is empty.
    pub fn of(object: &Value) -> Self {
        Key::of(object).into()
    }
}

/// A borrowed identity, to pair objects.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a> {
    group: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Key<'a> {
    fn of(object: &'a Value) -> Self {
        let metadata = object.get("metadata");
        let text = |map: Option<&'a Value>, key: &str| {
            let found = map.and_then(|map| map.get(key));
            found.and_then(Value::as_str).unwrap_or_default()
        };
        let version = text(Some(object), "apiVersion");
        Self {
            group: version.split_once('/').map_or("", |(group, _)| group),
            kind: text(Some(object), "kind"),
            namespace: text(metadata, "namespace"),
            name: text(metadata, "name"),
        }
    }
}

impl From<Key<'_>> for Identity {
    fn from(key: Key<'_>) -> Self {
        Self {
            group: key.group.to_owned(),
            kind: key.kind.to_owned(),
            namespace: key.namespace.to_owned(),
            name: key.name.to_owned(),
        }
    }
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.kind)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        f.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// The change of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Change {
    /// The object is only in the second set.
    Added,
    /// The object is only in the first set.
    Removed,
    /// The object is in both sets and differs.
    Changed,
    /// The object is in both sets and is equal, or differs only in hidden noise.
    Same,
}

/// One field of an object that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldChange {
    /// The path: `spec.containers[name=app].image`; empty for the object itself.
    pub path: String,
    /// The old value; secrets are masked.
    pub before: Option<Value>,
    /// The new value; secrets are masked.
    pub after: Option<Value>,
}

/// The difference of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectDiff {
    /// The identity of the object.
    pub identity: Identity,
    /// Whether the object is added, removed, changed or the same.
    pub change: Change,
    /// The fields that differ; empty if the whole object is added or removed.
    pub fields: Vec<FieldChange>,
    /// The lines that differ, with context, if the options ask for lines.
    pub hunks: Vec<Hunk>,
}

/// The difference between two sets of objects, in the order of their identities.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// All objects of both sets.
    pub objects: Vec<ObjectDiff>,
    /// The reason why some part is shown coarser than possible; None if all is exact. A coarse part is
    /// still correct.
    pub coarse: Option<String>,
}

/// Compares two sets of objects.
pub fn diff(before: &[Value], after: &[Value], options: &Options) -> Diff {
    let mut walk = tree::Walk::new(options);
    let mut coarse = 0;
    let objects: Vec<ObjectDiff> = pairs(before, after)
        .map(|(key, before, after)| {
            let object = compare(key.into(), before, after, &mut walk);
            coarse += usize::from(!walk.exact);
            object
        })
        .collect();
    let coarse = (coarse > 0).then(|| {
        format!(
            "deadline exceeded: {coarse} of {} objects are compared as whole blocks",
            objects.len()
        )
    });
    Diff { objects, coarse }
}

/// Pairs the objects of two sets, in the order of their identities. Objects with the same identity in one
/// set are paired in their order.
fn pairs<'a>(
    before: &'a [Value],
    after: &'a [Value],
) -> impl Iterator<Item = (Key<'a>, Option<&'a Value>, Option<&'a Value>)> {
    let sorted = |set: &'a [Value]| {
        let mut keys: Vec<(Key<'a>, &'a Value)> =
            set.iter().map(|object| (Key::of(object), object)).collect();
        keys.sort_by_key(|(key, _)| *key);
        keys.into_iter().peekable()
    };
    let (mut before, mut after) = (sorted(before), sorted(after));
    std::iter::from_fn(move || {
        let order = match (before.peek(), after.peek()) {
            (Some((old, _)), Some((new, _))) => old.cmp(new),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return None,
        };
        let old = if order.is_le() { before.next() } else { None };
        let new = if order.is_ge() { after.next() } else { None };
        let (key, _) = old.or(new)?;
        Some((
            key,
            old.map(|(_, object)| object),
            new.map(|(_, object)| object),
        ))
    })
}

/// Compares one pair of objects; None is an object that one of the sets does not have.
fn compare<'a>(
    identity: Identity,
    before: Option<&'a Value>,
    after: Option<&'a Value>,
    walk: &mut tree::Walk<'a>,
) -> ObjectDiff {
    walk.begin();
    let change = match (before, after) {
        (Some(before), Some(after)) if before == after => Change::Same,
        (Some(before), Some(after)) => {
            walk.objects(before, after);
            match walk.fields.is_empty() {
                true => Change::Same,
                false => Change::Changed,
            }
        }
        (Some(before), None) => {
            walk.alone(Side::Before, before);
            Change::Removed
        }
        (None, Some(after)) => {
            walk.alone(Side::After, after);
            Change::Added
        }
        (None, None) => Change::Same,
    };
    let hunks = match change {
        Change::Same => Vec::new(),
        _ => walk.script.hunks(walk.options.context),
    };
    ObjectDiff {
        identity,
        change,
        fields: std::mem::take(&mut walk.fields),
        hunks,
    }
}
