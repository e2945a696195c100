//! Compares two objects field by field. Collects the fields that differ, and the YAML of both objects.

use std::borrow::Cow;
use std::fmt::Write as _;

use bounded_yaml::Block;
use serde_json::{Map, Value};

use super::mask::{self, LAST_APPLIED, MASK, MASK_CHANGED, Secrecy};
use super::script::{At, Script, Sides, What};
use super::{FieldChange, Options, Side, pairing, quantity, sequence};
use crate::api::labels;

/// The metadata fields that the API server writes.
const GENERATED: &[&str] = &[
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "selfLink",
];
/// Annotations that bowline or kubectl computes from the rest of the object.
const DERIVED: &[&str] = &[
    LAST_APPLIED,
    labels::CONTENT_HASH,
    labels::REFERENCES_HASH,
    labels::RENDERED_HASH,
    labels::APPLIED_HASH,
    labels::AUDIT_HEAD,
];

/// Which part of an object a map is. This decides which fields of the map are noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Object,
    Metadata,
    Annotations,
    Inner,
}

impl Level {
    /// Returns the level of the map under `key`, if `self` is the level of the parent.
    fn under(self, key: &str) -> Self {
        match (self, key) {
            (Self::Object, "metadata") => Self::Metadata,
            (Self::Metadata, "annotations") => Self::Annotations,
            _ => Self::Inner,
        }
    }

    fn is_noise(self, key: &str) -> bool {
        match self {
            Self::Object => key == "status",
            Self::Metadata => GENERATED.contains(&key),
            Self::Annotations => DERIVED.contains(&key),
            Self::Inner => false,
        }
    }
}

/// One step of a field path. The path becomes text only for a field that differs, to save time.
#[derive(Debug, Clone)]
enum Step<'a> {
    Key(&'a str),
    Named(&'static str, Cow<'a, str>),
    Index(usize),
}

/// A running comparison of two objects.
pub(super) struct Walk<'a> {
    pub(super) options: &'a Options,
    path: Vec<Step<'a>>,
    pub(super) fields: Vec<FieldChange>,
    /// The YAML of both objects; empty if [`Options::lines`] is false.
    pub(super) script: Script<'a>,
    /// Whether each difference is as small as possible. False if the deadline passed during the comparison of a list
    /// or a text.
    pub(super) exact: bool,
}

type Maps<'a> = [Option<&'a Map<String, Value>>; 2];

impl<'a> Walk<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        Self {
            options,
            path: Vec::new(),
            fields: Vec::new(),
            script: Script::default(),
            exact: true,
        }
    }

    /// Clears the results of the previous comparison. The allocated memory stays, because the next comparison uses it
    /// again.
    pub(super) fn begin(&mut self) {
        self.fields.clear();
        self.script.clear();
        self.exact = true;
    }

    /// Compares two objects and records the differences.
    pub(super) fn objects(&mut self, before: &'a Value, after: &'a Value) {
        self.both(At::default(), before, after, false);
    }

    /// Records an object that only one of the two sets contains.
    pub(super) fn alone(&mut self, side: Side, object: &'a Value) {
        let sides = match side {
            Side::Before => Sides::Before,
            Side::After => Sides::After,
        };
        let level = match self.options.show_noise {
            true => Level::Inner,
            false => Level::Object,
        };
        self.show_at(sides, At::default(), object, false, level);
    }

    fn both(&mut self, at: At<'a>, before: &'a Value, after: &'a Value, secret: bool) {
        match (before, after) {
            _ if !self.options.lines && before == after => {}
            (Value::Object(before), Value::Object(after)) => {
                self.maps(at, [Some(before), Some(after)], secret);
            }
            (Value::Array(old), Value::Array(new)) => match old == new {
                true => self.show(Sides::Both, at, before, secret),
                false => self.lists(at, old, new, secret),
            },
            _ if before == after => self.show(Sides::Both, at, before, secret),
            _ if !self.options.show_noise && is_empty(before) && is_empty(after) => {
                self.show(Sides::Both, at, before, false);
            }
            _ if !self.options.show_noise
                && self.is_quantity()
                && quantity::are_equal(before, after) =>
            {
                self.show(Sides::Both, at, before, secret);
            }
            _ => {
                let shown = [before, after].map(|value| Some(mask::masked(value, secret)));
                self.found(shown);
                self.replace(at, before, after, secret);
            }
        }
    }

    fn replace(&mut self, at: At<'a>, before: &'a Value, after: &'a Value, secret: bool) {
        if let (Value::String(before), Value::String(after)) = (before, after)
            && self.options.lines
            && !self.path.is_empty()
            && let (Some(before), Some(after)) = (Block::of(before), Block::of(after))
        {
            let deadline = self.options.deadline;
            self.exact &= self.script.texts(at, before, after, deadline);
            return;
        }
        self.show(Sides::Before, at, before, secret);
        self.show(Sides::After, at, after, secret);
    }

    fn found(&mut self, [before, after]: [Option<Value>; 2]) {
        let mut path = String::with_capacity(64);
        for step in &self.path {
            let _ = match step {
                Step::Key(key) => push_key(&mut path, key),
                Step::Named(key, name) => write!(path, "[{key}={name}]"),
                Step::Index(index) => write!(path, "[{index}]"),
            };
        }
        self.fields.push(FieldChange {
            path,
            before,
            after,
        });
    }

    /// Runs a comparison of a nested value. `step` leads from the current value to the nested value.
    fn within(&mut self, step: Step<'a>, run: impl FnOnce(&mut Self)) {
        self.path.push(step);
        run(self);
        self.path.pop();
    }

    fn level(&self) -> Level {
        match self.path.as_slice() {
            [] => Level::Object,
            [Step::Key("metadata")] => Level::Metadata,
            [Step::Key("metadata"), Step::Key("annotations")] => Level::Annotations,
            _ => Level::Inner,
        }
    }

    /// Returns whether the field at the current path contains a quantity.
    fn is_quantity(&self) -> bool {
        matches!(
            self.path.as_slice(),
            [
                ..,
                Step::Key("resources"),
                Step::Key("limits" | "requests"),
                Step::Key(_),
            ] | [
                Step::Key("spec"),
                Step::Key("capacity" | "hard"),
                Step::Key(_)
            ] | [.., Step::Key("sizeLimit" | "divisor")]
        )
    }

    /// Records a map or list: its key, then the pieces that `inside` adds. A side that gets no pieces shows the map
    /// or list as empty.
    fn hold(
        &mut self,
        sides: Sides,
        at: At<'a>,
        empty: &'static str,
        inside: impl FnOnce(&mut Self),
    ) {
        if !self.options.lines {
            return inside(self);
        }
        let mark = self.script.mark();
        if at.key.is_some() {
            self.script.push(sides, at, What::Open);
        }
        let begun = self.script.mark();
        inside(self);
        if let Some(silent) = self.script.silent(begun, sides) {
            match at.key {
                Some(_) => self.script.close(mark, silent, empty),
                None => self.script.push(silent, at, What::Nothing(empty)),
            }
        }
    }

    /// Records a map: its key, then the pieces that `inside` adds. If `inside` adds no pieces, the key is not
    /// recorded either.
    fn hold_unless_silent(&mut self, sides: Sides, at: At<'a>, inside: impl FnOnce(&mut Self)) {
        if !self.options.lines {
            return inside(self);
        }
        let mark = self.script.mark();
        self.script.push(sides, at, What::Open);
        let begun = self.script.mark();
        inside(self);
        if self.script.silent(begun, sides) == Some(sides) {
            self.script.take_back(mark);
        }
    }

    fn maps(&mut self, at: At<'a>, maps: Maps<'a>, secret: bool) {
        let [before, after] = maps;
        let Some(sides) = Sides::of(before.is_some(), after.is_some()) else {
            return;
        };
        let own = maps.map(|map| map.map_or(Secrecy::Open, Secrecy::of));
        let secret = secret || own.contains(&Secrecy::Secret);
        let list = own.contains(&Secrecy::List);
        let level = self.level();
        let inside = |walk: &mut Self| {
            for (key, old, new) in Merged::new(before, after) {
                let noise = !walk.options.show_noise;
                if noise && (level.is_noise(key) || walk.is_hidden(level, key, old, new)) {
                    continue;
                }
                let at = at.entry(key);
                // Most fields are unchanged scalars. They are neither noise nor masked, so this shortcut saves time.
                if let (Some(old), Some(new)) = (old, new)
                    && is_scalar(old)
                    && !secret
                    && key != LAST_APPLIED
                    && old == new
                {
                    walk.show(Sides::Both, at, old, false);
                    continue;
                }
                walk.within(Step::Key(key), |walk| match key {
                    field if secret && mask::is_secret_field(field) => walk.secrets(at, old, new),
                    LAST_APPLIED => walk.annotation(at, old, new),
                    field => walk.field(at, old, new, list && field == "items"),
                });
            }
        };
        match sides {
            Sides::Both => self.hold(sides, at, "{}", inside),
            _ => self.hold_unless_silent(sides, at, inside),
        }
    }

    /// Returns whether a field that only one side has is noise: its value is empty, or is a default that the server
    /// filled in.
    fn is_hidden(&self, level: Level, key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
        let (only, side) = match (old, new) {
            (Some(old), None) => (old, Side::Before),
            (None, Some(new)) => (new, Side::After),
            _ => return false,
        };
        // The server adds no defaults to the data of ConfigMaps and Secrets, so a new key in the data is a real
        // change.
        let is_content = |key: &str| matches!(key, "data" | "binaryData" | "stringData");
        let has_no_defaults = level == Level::Object && is_content(key)
            || matches!(self.path.as_slice(), [Step::Key(parent)] if is_content(parent));
        is_empty(only) || self.options.live == Some(side) && !has_no_defaults
    }

    fn field(&mut self, at: At<'a>, old: Option<&'a Value>, new: Option<&'a Value>, secret: bool) {
        // Metadata may contain noise, even if only one side has metadata at all.
        let is_metadata = matches!(self.level(), Level::Metadata | Level::Annotations);
        match (old, new) {
            (Some(old), Some(new)) => self.both(at, old, new, secret),
            (Some(Value::Object(old)), None) if is_metadata => {
                self.maps(at, [Some(old), None], secret);
            }
            (None, Some(Value::Object(new))) if is_metadata => {
                self.maps(at, [None, Some(new)], secret);
            }
            (old, new) => {
                self.found([old, new].map(|side| side.map(|value| mask::masked(value, secret))));
                self.each(old, new, |walk, sides, value| {
                    walk.show(sides, at, value, secret);
                });
            }
        }
    }

    /// Calls `run` once for each side that has a value, with that value.
    fn each(
        &mut self,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        run: impl Fn(&mut Self, Sides, &'a Value),
    ) {
        for (sides, value) in [(Sides::Before, old), (Sides::After, new)] {
            if let Some(value) = value {
                run(self, sides, value);
            }
        }
    }

    /// Compares the secret values of two versions of a Secret, and records only masks instead of the values.
    fn secrets(&mut self, at: At<'a>, old: Option<&'a Value>, new: Option<&'a Value>) {
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                self.hold(Sides::Both, at, "{}", |walk| {
                    for (key, old, new) in Merged::new(Some(old), Some(new)) {
                        let at = at.entry(key);
                        walk.within(Step::Key(key), |walk| walk.secret(at, old, new));
                    }
                });
            }
            (Some(_), Some(_)) => self.secret(at, old, new),
            _ => {
                self.found([old, new].map(|side| side.map(mask::values)));
                self.each(old, new, |walk, sides, value| {
                    walk.show_masked(sides, at, value);
                });
            }
        }
    }

    fn secret(&mut self, at: At<'a>, old: Option<&'a Value>, new: Option<&'a Value>) {
        if old == new {
            return self.instead(Sides::Both, at, MASK);
        }
        let changed = if old.is_some() { MASK_CHANGED } else { MASK };
        self.found([old.map(|_| MASK.into()), new.map(|_| changed.into())]);
        self.each(old, new, |walk, sides, _| match sides {
            Sides::After => walk.instead(sides, at, changed),
            _ => walk.instead(sides, at, MASK),
        });
    }

    /// Compares the annotation of `kubectl apply`. The annotation is masked if it may contain a Secret.
    fn annotation(&mut self, at: At<'a>, old: Option<&'a Value>, new: Option<&'a Value>) {
        let mut given = [old, new].into_iter().flatten();
        match given.all(mask::is_open_annotation) {
            true => self.field(at, old, new, false),
            false => self.secret(at, old, new),
        }
    }

    fn lists(&mut self, at: At<'a>, before: &'a [Value], after: &'a [Value], secret: bool) {
        self.hold(Sides::Both, at, "[]", |walk| {
            match pairing::names(before, after) {
                Some(names) => walk.named(at.item(), before, after, &names, secret),
                None => walk.unnamed(at.item(), before, after, secret),
            }
        });
    }

    fn named(
        &mut self,
        at: At<'a>,
        before: &'a [Value],
        after: &'a [Value],
        names: &pairing::Names<'a>,
        secret: bool,
    ) {
        let (pairs, reordered) = pairing::by_name(&names.before, &names.after);
        let is_ordered =
            matches!(self.path.last(), Some(Step::Key(key)) if pairing::is_ordered(key));
        let keeps_order = reordered && (self.options.show_noise || is_ordered);
        if keeps_order {
            let list = |side: &[Cow<'a, str>]| {
                let labels = side
                    .iter()
                    .map(|name| format!("{}={name}", names.key).into());
                Some(Value::Array(labels.collect()))
            };
            self.found([list(&names.before), list(&names.after)]);
        }
        // The items of the two lists have different orders. So each item gets its own script, and the scripts are
        // then put into the order of each side.
        let mut items: Vec<(pairing::Pair, Script<'a>)> = Vec::new();
        for (at_old, at_new) in pairs {
            let name = at_old.and_then(|place| names.before.get(place));
            let name = name.or_else(|| at_new.and_then(|place| names.after.get(place)));
            let (old, new) = (
                at_old.and_then(|place| before.get(place)),
                at_new.and_then(|place| after.get(place)),
            );
            let outer = keeps_order.then(|| std::mem::take(&mut self.script));
            let step = Step::Named(names.key, name.cloned().unwrap_or_default());
            self.item(step, at, old, new, secret);
            if let Some(outer) = outer {
                let item = std::mem::replace(&mut self.script, outer);
                items.push(((at_old, at_new), item));
            }
        }
        if keeps_order && self.options.lines {
            let mut new: Vec<_> = items.iter().filter(|((_, at), _)| at.is_some()).collect();
            new.sort_by_key(|((_, at), _)| *at);
            let old = items.iter().filter(|((at, _), _)| at.is_some());
            let sides = [
                old.map(|(_, script)| script).collect(),
                new.into_iter().map(|(_, script)| script).collect(),
            ];
            let deadline = self.options.deadline;
            self.exact &= self.script.reordered(at, sides, deadline);
        }
    }

    fn item(
        &mut self,
        step: Step<'a>,
        at: At<'a>,
        old: Option<&'a Value>,
        new: Option<&'a Value>,
        secret: bool,
    ) {
        if let Some(sides) = Sides::of(old.is_some(), new.is_some()) {
            self.script.dash(sides);
        }
        match (old, new) {
            (Some(old), Some(new)) if old == new => self.show(Sides::Both, at, old, secret),
            _ => self.within(step, |walk| walk.field(at, old, new, secret)),
        }
    }

    fn unnamed(&mut self, at: At<'a>, before: &'a [Value], after: &'a [Value], secret: bool) {
        let found = sequence::edits(before, after, self.options.deadline);
        self.exact &= found.exact;
        let mut place = 0;
        for edit in &found.edits {
            self.items(at, &before[place..edit.before.start], secret);
            for step in 0..edit.before.len().max(edit.after.len()) {
                let (old, new) = (edit.before.start + step, edit.after.start + step);
                let a = before.get(old).filter(|_| old < edit.before.end);
                let b = after.get(new).filter(|_| new < edit.after.end);
                let index = if a.is_some() { old } else { new };
                self.item(Step::Index(index), at, a, b, secret);
            }
            place = edit.before.end;
        }
        self.items(at, &before[place..], secret);
    }

    /// Records list items that are equal on both sides.
    fn items(&mut self, at: At<'a>, items: &'a [Value], secret: bool) {
        for item in items.iter().filter(|_| self.options.lines) {
            self.script.dash(Sides::Both);
            self.show(Sides::Both, at, item, secret);
        }
    }

    /// Records a value and masks the values of all Secrets in it. `secret` says whether the value itself is part of a
    /// Secret.
    fn show(&mut self, sides: Sides, at: At<'a>, value: &'a Value, secret: bool) {
        self.show_at(sides, at, value, secret, Level::Inner);
    }

    fn show_at(&mut self, sides: Sides, at: At<'a>, value: &'a Value, secret: bool, level: Level) {
        if !self.options.lines {
            return;
        }
        match value {
            Value::Object(map) => {
                let inside = |walk: &mut Self| walk.show_entries(sides, at, map, secret, level);
                match level {
                    Level::Annotations => self.hold_unless_silent(sides, at, inside),
                    _ => self.hold(sides, at, "{}", inside),
                }
            }
            Value::Array(list) => self.hold(sides, at, "[]", |walk| {
                for item in list {
                    walk.script.dash(sides);
                    walk.show(sides, at.item(), item, secret);
                }
            }),
            scalar => self.script.push(sides, at, What::Leaf(scalar)),
        }
    }

    fn show_entries(
        &mut self,
        sides: Sides,
        at: At<'a>,
        map: &'a Map<String, Value>,
        secret: bool,
        level: Level,
    ) {
        let own = Secrecy::of(map);
        let (secret, list) = (secret || own == Secrecy::Secret, own == Secrecy::List);
        for (key, value) in map.iter().filter(|(key, _)| !level.is_noise(key)) {
            let at = at.entry(key);
            match key.as_str() {
                field if secret && mask::is_secret_field(field) => {
                    self.show_masked(sides, at, value);
                }
                LAST_APPLIED if !mask::is_open_annotation(value) => self.instead(sides, at, MASK),
                field => {
                    let secret = list && field == "items";
                    self.show_at(sides, at, value, secret, level.under(field));
                }
            }
        }
    }

    /// Records the `data` or `stringData` map of a Secret: the keys, with masks instead of the values.
    fn show_masked(&mut self, sides: Sides, at: At<'a>, value: &'a Value) {
        match value {
            Value::Object(map) => self.hold(sides, at, "{}", |walk| {
                for key in map.keys() {
                    walk.instead(sides, at.entry(key), MASK);
                }
            }),
            Value::Null => self.show(sides, at, value, false),
            _ => self.instead(sides, at, MASK),
        }
    }

    fn instead(&mut self, sides: Sides, at: At<'a>, text: &'static str) {
        if self.options.lines {
            self.script.push(sides, at, What::Instead(text));
        }
    }
}

/// Iterates over the keys that at least one of two maps has, in sorted order. Each key comes with its value in the
/// first and in the second map.
struct Merged<'a> {
    before: std::iter::Peekable<Entries<'a>>,
    after: std::iter::Peekable<Entries<'a>>,
}

type Entries<'a> = std::iter::Flatten<std::option::IntoIter<&'a Map<String, Value>>>;

impl<'a> Merged<'a> {
    fn new(before: Option<&'a Map<String, Value>>, after: Option<&'a Map<String, Value>>) -> Self {
        Self {
            before: before.into_iter().flatten().peekable(),
            after: after.into_iter().flatten().peekable(),
        }
    }
}

impl<'a> Iterator for Merged<'a> {
    type Item = (&'a str, Option<&'a Value>, Option<&'a Value>);

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.before.peek(), self.after.peek()) {
            (Some((old, _)), Some((new, _))) => old.cmp(new),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => return None,
        };
        let old = if order.is_le() {
            self.before.next()
        } else {
            None
        };
        let new = if order.is_ge() {
            self.after.next()
        } else {
            None
        };
        let key = old.or(new).map(|(key, _)| key.as_str())?;
        Some((
            key,
            old.map(|(_, value)| value),
            new.map(|(_, value)| value),
        ))
    }
}

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Object(_) | Value::Array(_))
}

/// Returns whether an API server treats a value as absent: null, an empty list, or a map that is empty or has only
/// such values.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn push_key(path: &mut String, key: &str) -> std::fmt::Result {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'$');
    if key.is_empty() || !key.bytes().all(is_plain) {
        return write!(path, "[{}]", Value::from(key));
    }
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(key);
    Ok(())
}
