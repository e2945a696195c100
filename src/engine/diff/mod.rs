//! The difference between two sets of objects: by object, then by field, then by line and word.
//!
//! Objects are paired by group, kind, namespace and name. List items are paired by their names, so another order of a
//! list is no change. By default, the diff hides noise: fields that servers and controllers write. The diff masks the
//! values of Secrets before it stores them, so no output can contain such a value.
//!
//! The lines show the objects as YAML, without noise and with masked values. Lists of the second object are shown in
//! the order of the first. This module does not read from a cluster, use colours or print.

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
    /// Whether the diff shows noise: fields that servers and controllers write, differences between empty and absent
    /// values, and another order of list items.
    pub show_noise: bool,
    /// The side that contains live objects; None if no side does. The diff hides fields that only this side has,
    /// because the server filled in defaults.
    pub live: Option<Side>,
    /// Whether the diff also compares lines, which is slow. An overview therefore compares only fields, and compares
    /// lines only for the objects on the screen.
    pub lines: bool,
    /// The number of equal lines that the diff shows around a change.
    pub context: usize,
    /// The time at which the diff stops the search for the smallest difference. After that it shows whole blocks as
    /// replaced. None for no limit.
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

/// The value of [`Options::context`] that shows the whole object around a change.
pub const WHOLE: usize = usize::MAX;

/// One of the two sides of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The older or left side.
    Before,
    /// The newer or right side.
    After,
}

/// The identity of an object. The diff compares objects that have the same identity.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Identity {
    /// The API group of the object; empty for the core group.
    pub group: String,
    pub kind: String,
    /// The namespace of the object; empty for a cluster-scoped object.
    pub namespace: String,
    pub name: String,
}

impl Identity {
    /// Returns the identity of an object. If the object has no namespace, for example, the namespace in the identity
    /// is empty.
    pub fn of(object: &Value) -> Self {
        Key::of(object).into()
    }
}

/// The identity of an object, borrowed from the object to avoid copies.
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

/// How an object differs between the two sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Change {
    /// Only the second set has the object.
    Added,
    /// Only the first set has the object.
    Removed,
    /// Both sets have the object, and a field of it differs.
    Changed,
    /// Both sets have the object, and no field of it differs, except hidden noise.
    Same,
}

/// A field of an object that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldChange {
    /// The path of the field, such as `spec.containers[name=app].image`; empty for the object itself.
    pub path: String,
    /// The old value of the field, masked if it is secret; None if only the new object has the field.
    pub before: Option<Value>,
    /// The new value of the field, masked if it is secret; None if only the old object has the field.
    pub after: Option<Value>,
}

/// The difference of one object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectDiff {
    pub identity: Identity,
    /// How the object differs between the two sets.
    pub change: Change,
    /// The fields that differ; empty if the whole object is added or removed.
    pub fields: Vec<FieldChange>,
    /// The changed lines of the object's YAML, with context; empty if [`Options::lines`] is false.
    pub hunks: Vec<Hunk>,
}

/// The difference between two sets of objects, sorted by identity.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    pub objects: Vec<ObjectDiff>,
    /// The reason why hunks may be larger than necessary; None if all hunks are as small as possible. A hunk that
    /// is too large is still correct.
    pub coarse: Option<String>,
}

/// Compares two sets of objects and returns their difference.
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

/// Pairs the objects of two sets by identity, sorted. Several objects with the same identity are paired in the order
/// of their sets.
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

/// Compares two objects with the same identity. An object is None if its set does not contain it.
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
