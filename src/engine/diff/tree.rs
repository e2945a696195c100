//! Walks two objects side by side, collects what differs, and makes the two values that are shown.

use serde_json::{Map, Value};

use super::mask::{self, LAST_APPLIED, MASK, MASK_CHANGED};
use super::{FieldChange, Options, Side, pairing, sequence};
use crate::api::labels;

/// What servers write into metadata.
const GENERATED: &[&str] = &[
    "managedFields",
    "resourceVersion",
    "uid",
    "generation",
    "creationTimestamp",
    "selfLink",
];
/// Annotations that follow from the rest of their object.
const DERIVED: &[&str] = &[
    LAST_APPLIED,
    labels::CONTENT_HASH,
    labels::REFERENCES_HASH,
    labels::RENDERED_HASH,
    labels::AUDIT_HEAD,
];

/// One comparison of two objects.
pub(super) struct Walk<'a> {
    options: &'a Options,
    path: String,
    pub(super) fields: Vec<FieldChange>,
    /// False when the deadline passed and some list is compared coarser than it could be.
    pub(super) exact: bool,
}

impl<'a> Walk<'a> {
    pub(super) fn new(options: &'a Options) -> Self {
        Self {
            options,
            path: String::new(),
            fields: Vec::new(),
            exact: true,
        }
    }

    /// Compares two objects; returns them as they are shown, or anything where no lines are asked for.
    pub(super) fn objects(&mut self, before: &Value, after: &Value) -> (Value, Value) {
        self.both(before, after, false)
    }

    /// Returns an object that has no counterpart as it is shown.
    pub(super) fn alone(&self, object: &Value) -> Value {
        let mut shown = mask::masked(object, false);
        if !self.options.show_noise
            && let Some(map) = shown.as_object_mut()
        {
            map.remove("status");
            if let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|key, _| !is_noise("metadata", key));
                let annotations = metadata.get_mut("annotations");
                if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
                    annotations.retain(|key, _| !is_noise("metadata.annotations", key));
                    if annotations.is_empty() {
                        metadata.remove("annotations");
                    }
                }
            }
        }
        shown
    }

    fn both(&mut self, before: &Value, after: &Value, secret: bool) -> (Value, Value) {
        match (before, after) {
            _ if !self.options.lines && before == after => (Value::Null, Value::Null),
            (Value::Object(before), Value::Object(after)) => {
                let (before, after) = self.maps(before, after, secret);
                (before.into(), after.into())
            }
            (Value::Array(before), Value::Array(after)) => {
                let (before, after) = self.lists(before, after, secret);
                (before.into(), after.into())
            }
            _ if before == after => (before.clone(), after.clone()),
            _ if !self.options.show_noise && is_empty(before) && is_empty(after) => {
                (before.clone(), before.clone())
            }
            _ => {
                let before = mask::masked(before, secret);
                let after = mask::masked(after, secret);
                self.found(Some(&before), Some(&after));
                (before, after)
            }
        }
    }

    fn found(&mut self, before: Option<&Value>, after: Option<&Value>) {
        self.fields.push(FieldChange {
            path: self.path.clone(),
            before: before.cloned(),
            after: after.cloned(),
        });
    }

    /// Runs a step one key or item deeper.
    fn within<T>(&mut self, push: impl FnOnce(&mut String), run: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        push(&mut self.path);
        let result = run(self);
        self.path.truncate(length);
        result
    }

    fn maps(
        &mut self,
        before: &Map<String, Value>,
        after: &Map<String, Value>,
        secret: bool,
    ) -> (Map<String, Value>, Map<String, Value>) {
        let secret = secret || mask::is_secret(before) || mask::is_secret(after);
        let list = mask::is_secret_list(before) || mask::is_secret_list(after);
        let (mut left, mut right) = (Map::new(), Map::new());
        let new = after.keys().filter(|key| !before.contains_key(*key));
        for key in before.keys().chain(new) {
            if !self.options.show_noise && is_noise(&self.path, key) {
                continue;
            }
            let (old, new) = (before.get(key), after.get(key));
            let is_hidden = self.is_hidden(key, old, new);
            let (old, new) = self.within(
                |path| push_key(path, key),
                |walk| match key.as_str() {
                    _ if is_hidden => (None, None),
                    field if secret && mask::is_secret_field(field) => walk.secrets(old, new),
                    LAST_APPLIED => walk.annotation(old, new),
                    field => walk.field(old, new, list && field == "items"),
                },
            );
            if self.options.lines {
                left.extend(old.map(|value| (key.clone(), value)));
                right.extend(new.map(|value| (key.clone(), value)));
            }
        }
        (left, right)
    }

    /// Tells whether a field that one side does not have says nothing.
    fn is_hidden(&self, key: &str, old: Option<&Value>, new: Option<&Value>) -> bool {
        let (only, side) = match (old, new) {
            (Some(old), None) => (old, Side::Before),
            (None, Some(new)) => (new, Side::After),
            _ => return false,
        };
        // What stands in a ConfigMap or Secret has no defaults.
        let is_content = self.path.is_empty()
            && matches!(key, "data" | "binaryData" | "stringData")
            || matches!(self.path.as_str(), "data" | "binaryData" | "stringData");
        !self.options.show_noise
            && (is_empty(only) || self.options.live == Some(side) && !is_content)
    }

    fn field(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
        secret: bool,
    ) -> (Option<Value>, Option<Value>) {
        // Noise inside these is told from the rest even where the whole map is new.
        let is_metadata = matches!(self.path.as_str(), "metadata" | "metadata.annotations");
        let nothing = Value::Object(Map::new());
        let filled = |value: Value| Some(value).filter(|value| !is_empty(value));
        match (old, new) {
            (Some(old), Some(new)) => {
                let (old, new) = self.both(old, new, secret);
                (Some(old), Some(new))
            }
            (Some(old), None) if is_metadata && old.is_object() => {
                let (old, _) = self.both(old, &nothing, secret);
                (filled(old), None)
            }
            (None, Some(new)) if is_metadata && new.is_object() => {
                let (_, new) = self.both(&nothing, new, secret);
                (None, filled(new))
            }
            (old, new) => {
                let old = old.map(|value| mask::masked(value, secret));
                let new = new.map(|value| mask::masked(value, secret));
                self.found(old.as_ref(), new.as_ref());
                (old, new)
            }
        }
    }

    /// Compares the values of a Secret without showing one.
    fn secrets(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> (Option<Value>, Option<Value>) {
        match (old, new) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let (mut left, mut right) = (Map::new(), Map::new());
                let added = new.keys().filter(|key| !old.contains_key(*key));
                for key in old.keys().chain(added) {
                    let (old, new) = self.within(
                        |path| push_key(path, key),
                        |walk| walk.secret(old.get(key), new.get(key)),
                    );
                    left.extend(old.map(|value| (key.clone(), value)));
                    right.extend(new.map(|value| (key.clone(), value)));
                }
                (Some(left.into()), Some(right.into()))
            }
            (Some(_), Some(_)) => self.secret(old, new),
            _ => {
                let (old, new) = (old.map(mask::values), new.map(mask::values));
                self.found(old.as_ref(), new.as_ref());
                (old, new)
            }
        }
    }

    fn secret(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> (Option<Value>, Option<Value>) {
        let shown = |value: Option<&Value>, text: &str| value.map(|_| Value::from(text));
        if old == new {
            return (shown(old, MASK), shown(new, MASK));
        }
        let changed = if old.is_some() { MASK_CHANGED } else { MASK };
        let (old, new) = (shown(old, MASK), shown(new, changed));
        self.found(old.as_ref(), new.as_ref());
        (old, new)
    }

    /// Compares what `kubectl apply` kept; it may hold a whole Secret.
    fn annotation(
        &mut self,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> (Option<Value>, Option<Value>) {
        match [old, new]
            .into_iter()
            .flatten()
            .all(mask::is_open_annotation)
        {
            true => self.field(old, new, false),
            false => self.secret(old, new),
        }
    }

    fn lists(
        &mut self,
        before: &[Value],
        after: &[Value],
        secret: bool,
    ) -> (Vec<Value>, Vec<Value>) {
        if before == after {
            let shown = self.shown(before, secret);
            return (shown.clone(), shown);
        }
        match pairing::names(before, after) {
            Some([old, new]) => self.named(before, after, &old, &new, secret),
            None => self.unnamed(before, after, secret),
        }
    }

    /// Copies the items that both lists have as they are shown.
    fn shown(&self, equal: &[Value], secret: bool) -> Vec<Value> {
        let items = equal.iter().filter(|_| self.options.lines);
        items.map(|item| mask::masked(item, secret)).collect()
    }

    fn named(
        &mut self,
        before: &[Value],
        after: &[Value],
        old: &[String],
        new: &[String],
        secret: bool,
    ) -> (Vec<Value>, Vec<Value>) {
        let (pairs, reordered) = pairing::by_name(old, new);
        let key = self.path.rsplit('.').next().unwrap_or_default();
        let keeps_order = reordered && (self.options.show_noise || pairing::is_ordered(key));
        if keeps_order {
            let names = |names: &[String]| names.iter().cloned().map(Value::from).collect();
            self.found(Some(&names(old)), Some(&names(new)));
        }
        let (mut left, mut right) = (Vec::new(), Vec::new());
        for (at_old, at_new) in pairs {
            let name = at_old.and_then(|at| old.get(at));
            let name = name.or_else(|| at_new.and_then(|at| new.get(at)));
            let (a, b) = self.within(
                |path| push_item(path, name.map_or("", String::as_str)),
                |walk| {
                    let (a, b) = (
                        at_old.and_then(|at| before.get(at)),
                        at_new.and_then(|at| after.get(at)),
                    );
                    walk.field(a, b, secret)
                },
            );
            left.extend(a);
            right.extend(b.map(|value| (at_new, value)));
        }
        if keeps_order {
            right.sort_by_key(|(at, _)| *at);
        }
        (left, right.into_iter().map(|(_, value)| value).collect())
    }

    fn unnamed(
        &mut self,
        before: &[Value],
        after: &[Value],
        secret: bool,
    ) -> (Vec<Value>, Vec<Value>) {
        let texts = |list: &[Value]| -> Vec<String> { list.iter().map(Value::to_string).collect() };
        let found = sequence::edits(&texts(before), &texts(after), self.options.deadline);
        self.exact &= found.exact;
        let (mut left, mut right) = (Vec::new(), Vec::new());
        let mut at = 0;
        for edit in &found.edits {
            let equal = self.shown(
                before.get(at..edit.before.start).unwrap_or_default(),
                secret,
            );
            left.extend(equal.iter().cloned());
            right.extend(equal);
            for step in 0..edit.before.len().max(edit.after.len()) {
                let (old, new) = (edit.before.start + step, edit.after.start + step);
                let a = before.get(old).filter(|_| old < edit.before.end);
                let b = after.get(new).filter(|_| new < edit.after.end);
                let index = if a.is_some() { old } else { new };
                let (a, b) = self.within(
                    |path| push_item(path, &index.to_string()),
                    |walk| walk.field(a, b, secret),
                );
                left.extend(a);
                right.extend(b);
            }
            at = edit.before.end;
        }
        let equal = self.shown(before.get(at..).unwrap_or_default(), secret);
        left.extend(equal.iter().cloned());
        right.extend(equal);
        (left, right)
    }
}

fn is_noise(parent: &str, key: &str) -> bool {
    match parent {
        "" => key == "status",
        "metadata" => GENERATED.contains(&key),
        "metadata.annotations" => DERIVED.contains(&key),
        _ => false,
    }
}

/// Tells whether a value says no more than its absence.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.values().all(is_empty),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn push_key(path: &mut String, key: &str) {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '$');
    if !key.is_empty() && key.chars().all(is_plain) {
        if !path.is_empty() {
            path.push('.');
        }
        path.push_str(key);
    } else {
        path.push_str(&format!("[{}]", Value::from(key)));
    }
}

fn push_item(path: &mut String, name: &str) {
    path.push('[');
    path.push_str(name);
    path.push(']');
}
