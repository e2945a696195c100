//! What changed between two sets of objects: by identity, then by field, then by line and word.
//!
//! Objects are paired by group, kind, namespace and name, and their trees are walked first, with
//! list items paired by their own identity: a reordered list is then no change, and little text is
//! left to compare. Noise (what servers and controllers write) is hidden unless it is asked for;
//! values of Secrets are masked before anything is kept, so that no output can hold one.
//!
//! The lines are those of the objects written as YAML after noise and masks, with list items of
//! `after` in the order of `before`. Nothing here reads a cluster, colours or prints.

mod importance;
mod labels;
mod lines;
mod mask;
mod output;
mod pairing;
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

/// Copies an object with the values of every Secret in it masked, wherever one stands.
pub fn masked(object: &Value) -> Value {
    mask::masked(object, false)
}

/// Says what to compare and what to show.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Shows what servers and controllers write, empty values against absent ones, and reorderings.
    pub show_noise: bool,
    /// The side that comes from a cluster, where fields that the other one does not set are defaults.
    pub live: Option<Side>,
    /// Compares lines too. Most of the time goes into writing objects as YAML: an overview asks for
    /// fields only, and for the lines of the objects that are looked at.
    pub lines: bool,
    /// How many equal lines stand around a change.
    pub context: usize,
    /// When comparing stops and whole blocks are shown as replaced.
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

/// Equal lines without end: what differs stands in the whole of its object.
pub const WHOLE: usize = usize::MAX;

/// One of the two things that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The older or left one.
    Before,
    /// The newer or right one.
    After,
}

/// What makes two objects the same one at two times.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Identity {
    /// The API group; empty for the core group.
    pub group: String,
    /// The kind.
    pub kind: String,
    /// The namespace; empty where there is none.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Identity {
    /// Reads the identity of an object; what is missing is empty.
    pub fn of(object: &Value) -> Self {
        Key::of(object).into()
    }
}

/// An identity by reference, to pair objects by.
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

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Change {
    /// It is only in the second set.
    Added,
    /// It is only in the first set.
    Removed,
    /// It is in both and differs.
    Changed,
    /// It is in both and does not differ, or only in noise that is hidden.
    Same,
}

/// One place inside an object that differs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldChange {
    /// Where: `spec.containers[name=app].image`; empty for the object itself.
    pub path: String,
    /// What stood there; secrets are masked.
    pub before: Option<Value>,
    /// What stands there now; secrets are masked.
    pub after: Option<Value>,
}

/// What changed in one object.
#[derive(Debug, Clone, PartialEq)]
pub struct ObjectDiff {
    /// Which object.
    pub identity: Identity,
    /// What happened to it.
    pub change: Change,
    /// The places that differ; none where the whole object came or went.
    pub fields: Vec<FieldChange>,
    /// The lines that differ, with their surroundings, where lines were asked for.
    pub hunks: Vec<Hunk>,
}

/// What changed between two sets of objects, in the order of their identities.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// Every object of both sets.
    pub objects: Vec<ObjectDiff>,
    /// Says when and why some part is shown coarser than it could be; nothing in it is wrong.
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

/// Pairs the objects of two sets, in the order of their identities. One that stands twice in a set is
/// paired in the order in which it stands there.
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

/// Compares one pair.
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
