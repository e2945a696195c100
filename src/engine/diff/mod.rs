//! What changed between two sets of objects: by identity, then by field, then by line and word.
//!
//! Objects are paired by group, kind, namespace and name, and their trees are walked first, with
//! list items paired by their own identity: a reordered list is then no change, and little text is
//! left to compare. Noise (what servers and controllers write) is hidden unless it is asked for;
//! values of Secrets are masked before anything is kept, so that no output can hold one.
//!
//! The lines are those of the objects written as YAML after noise and masks, with list items of
//! `after` in the order of `before`. Nothing here reads a cluster, colours or prints.

mod lines;
mod mask;
mod output;
mod pairing;
mod sequence;
mod tree;
mod words;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;

pub use lines::{Hunk, Kind, Line, Lines, Span, lines};
pub use words::words;

use crate::yaml;

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
        let text = |at: &str| {
            let found = object.pointer(at).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let version = text("/apiVersion");
        Self {
            group: version
                .split_once('/')
                .map_or(String::new(), |(group, _)| group.to_owned()),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
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
    // An identity that stands twice in a set is paired in the order in which it stands there.
    let mut pairs: BTreeMap<(Identity, usize), [Option<&Value>; 2]> = BTreeMap::new();
    for (side, set) in [before, after].into_iter().enumerate() {
        let mut seen: BTreeMap<Identity, usize> = BTreeMap::new();
        for object in set {
            let identity = Identity::of(object);
            let count = seen.entry(identity.clone()).or_default();
            let pair = pairs.entry((identity, *count)).or_default();
            if let Some(place) = pair.get_mut(side) {
                *place = Some(object);
            }
            *count += 1;
        }
    }
    let mut coarse = 0;
    let objects: Vec<ObjectDiff> = pairs
        .into_iter()
        .map(|((identity, _), [before, after])| {
            let (object, exact) = compare(identity, before, after, options);
            coarse += usize::from(!exact);
            object
        })
        .collect();
    let coarse = (coarse > 0).then(|| {
        format!(
            "the deadline passed: {coarse} of {} objects are compared in whole blocks",
            objects.len()
        )
    });
    Diff { objects, coarse }
}

/// Compares one pair; tells too whether there was time to do it exactly.
fn compare(
    identity: Identity,
    before: Option<&Value>,
    after: Option<&Value>,
    options: &Options,
) -> (ObjectDiff, bool) {
    let mut walk = tree::Walk::new(options);
    let (change, before, after) = match (before, after) {
        (Some(before), Some(after)) if before == after => (Change::Same, None, None),
        (Some(before), Some(after)) => {
            let (before, after) = walk.objects(before, after);
            match walk.fields.is_empty() {
                true => (Change::Same, None, None),
                false => (Change::Changed, Some(before), Some(after)),
            }
        }
        (Some(_), None) if !options.lines => (Change::Removed, None, None),
        (None, Some(_)) if !options.lines => (Change::Added, None, None),
        (Some(before), None) => (Change::Removed, Some(walk.alone(before)), None),
        (None, Some(after)) => (Change::Added, None, Some(walk.alone(after))),
        (None, None) => (Change::Same, None, None),
    };
    let written = |value: Option<Value>| {
        let shown = value.filter(|_| options.lines);
        shown.map_or(String::new(), |value| yaml::write(&value))
    };
    let found = lines(
        &written(before),
        &written(after),
        options.context,
        options.deadline,
    );
    let exact = walk.exact && found.coarse.is_none();
    let object = ObjectDiff {
        identity,
        change,
        fields: walk.fields,
        hunks: found.hunks,
    };
    (object, exact)
}
