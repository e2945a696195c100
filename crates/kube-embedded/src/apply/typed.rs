//! Operations on values whose type is known from the schema: listing their fields, comparing, merging and removing
//! fields.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fieldset::{FieldSet, Step};
use crate::schema::{Kind, ListKind, Type};

/// The kind of a value, which determines how its fields can be owned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Atom {
    Map,
    List,
    Scalar,
    /// The value is null or missing, so it is treated like the value with which it is compared or merged.
    Unknown,
}

fn atom(value: Option<&Value>) -> Atom {
    match value {
        None | Some(Value::Null) => Atom::Unknown,
        Some(Value::Object(_)) => Atom::Map,
        Some(Value::Array(_)) => Atom::List,
        Some(_) => Atom::Scalar,
    }
}

/// Returns the kind that a null value of this type has.
fn atom_of_type(ty: Type<'_>) -> Atom {
    match ty.node().map(|n| n.kind) {
        None | Some(Kind::Object | Kind::Any | Kind::Opaque) => Atom::Map,
        Some(Kind::Array) => Atom::List,
        Some(_) => Atom::Scalar,
    }
}

pub(super) fn granular_list(ty: Type<'_>) -> bool {
    *ty.list_kind() != ListKind::Atomic
}

/// Returns the path step that identifies an item of a set or a list map. Fails for other lists, and for an item that
/// does not have the keys of the list map.
pub(super) fn element(ty: Type<'_>, item: &Value) -> Result<Step, String> {
    match (ty.list_kind(), item) {
        (ListKind::Atomic, _) => Err("invalid indexing of non-associative list".to_owned()),
        (ListKind::Map(keys), Value::Object(map)) => {
            let mut found = Map::new();
            for key in keys {
                let default = || {
                    ty.items()
                        .field(key)
                        .and_then(|t| t.slot())
                        .and_then(|s| s.default.clone())
                };
                if let Some(value) = map.get(key).cloned().or_else(default) {
                    found.insert(key.clone(), value);
                }
            }
            if found.is_empty() {
                let keys: Vec<String> = keys.iter().map(|k| format!("{k:?}")).collect();
                return Err(format!(
                    "associative list with keys has an element that omits all key fields [{}] (and doesn't have default values for any key fields)",
                    keys.join(" ")
                ));
            }
            Ok(Step::Key(Value::Object(found).to_string()))
        }
        (ListKind::Map(_), Value::Null) => {
            Err("associative list with keys may not have a null element".to_owned())
        }
        (ListKind::Map(_), _) => {
            Err("associative list with keys may not have non-map elements".to_owned())
        }
        (ListKind::Set, Value::Object(_)) => {
            Err("associative list without keys has an element that's a map type".to_owned())
        }
        (ListKind::Set, Value::Array(_)) => {
            Err("not supported: associative list with lists as elements".to_owned())
        }
        (ListKind::Set, Value::Null) => {
            Err("associative list without keys has an element that's an explicit null".to_owned())
        }
        (ListKind::Set, scalar) => Ok(Step::Value(scalar.to_string())),
    }
}

/// The items of a list, each with its path step, in the order of the list; and the same items by path step. A step
/// has several items if the list contains duplicates.
type Indexed<'a> = (Vec<(Step, &'a Value)>, BTreeMap<Step, Vec<&'a Value>>);

/// Finds the path step of each item of a list. Leaves out items that have no path step.
fn index<'a>(ty: Type<'_>, items: &'a [Value]) -> Indexed<'a> {
    let mut order = Vec::with_capacity(items.len());
    let mut by_step: BTreeMap<Step, Vec<&Value>> = BTreeMap::new();
    for item in items {
        if let Ok(step) = element(ty, item) {
            by_step.entry(step.clone()).or_default().push(item);
            order.push((step, item));
        }
    }
    (order, by_step)
}

/// Returns the paths of all fields in a value.
pub(super) fn field_set(ty: Type<'_>, value: &Value) -> FieldSet {
    let mut set = FieldSet::default();
    collect(ty, value, &mut Vec::new(), &mut set);
    set
}

fn collect(ty: Type<'_>, value: &Value, path: &mut Vec<Step>, set: &mut FieldSet) {
    match value {
        Value::Object(map) if !ty.atomic_map() => {
            for (key, value) in map {
                path.push(Step::field(key));
                collect(ty.field(key).unwrap_or(Type::Opaque), value, path, set);
                let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
                if empty || !ty.declares(key) {
                    set.insert(path);
                }
                path.pop();
            }
        }
        Value::Array(items) if granular_list(ty) => {
            let (order, by_step) = index(ty, items);
            for (step, item) in order {
                path.push(step);
                // Duplicate items count as one path. The fields inside them are not listed.
                if path
                    .last()
                    .and_then(|s| by_step.get(s))
                    .is_some_and(|same| same.len() == 1)
                {
                    collect(ty.items(), item, path, set);
                }
                set.insert(path);
                path.pop();
            }
        }
        Value::Null if atom_of_type(ty) != Atom::Scalar && !ty.atomic_map() => {}
        _ => set.insert(path),
    }
}

/// The fields in which an old and a new value differ.
#[derive(Debug, Default)]
pub(super) struct Comparison {
    pub(super) removed: FieldSet,
    pub(super) modified: FieldSet,
    pub(super) added: FieldSet,
}

impl Comparison {
    pub(super) fn without(mut self, fields: &FieldSet) -> Comparison {
        self.removed = self.removed.without(fields);
        self.modified = self.modified.without(fields);
        self.added = self.added.without(fields);
        self
    }
}

/// Compares two values. Returns the fields that `new` removes, modifies and adds.
pub(super) fn compare(ty: Type<'_>, old: &Value, new: &Value) -> Comparison {
    let mut comparison = Comparison::default();
    compare_at(ty, Some(old), Some(new), &mut Vec::new(), &mut comparison);
    comparison
}

fn compare_at(
    ty: Type<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<Step>,
    out: &mut Comparison,
) {
    let (before, after) = (atom(old), atom(new));
    let mut leaf = false;
    if before != after && before != Atom::Unknown && after != Atom::Unknown {
        let mut first = false;
        compare_as(ty, before, old, new, path, out, &mut first);
        compare_as(ty, after, old, new, path, out, &mut leaf);
    } else {
        let shared = if after == Atom::Unknown {
            before
        } else {
            after
        };
        let shared = if shared == Atom::Unknown {
            atom_of_type(ty)
        } else {
            shared
        };
        compare_as(ty, shared, old, new, path, out, &mut leaf);
    }
    if !leaf {
        match (old, new) {
            (None, Some(_)) => out.added.insert(path),
            (Some(_), None) => out.removed.insert(path),
            _ => {}
        }
    }
}

fn compare_as(
    ty: Type<'_>,
    as_what: Atom,
    old: Option<&Value>,
    new: Option<&Value>,
    path: &mut Vec<Step>,
    out: &mut Comparison,
    leaf: &mut bool,
) {
    match as_what {
        Atom::Map => {
            let (a, b) = (
                old.and_then(Value::as_object),
                new.and_then(Value::as_object),
            );
            let empty = a.is_none_or(Map::is_empty) && b.is_none_or(Map::is_empty);
            if !ty.atomic_map() && !empty {
                let nothing = Map::new();
                let (a, b) = (a.unwrap_or(&nothing), b.unwrap_or(&nothing));
                for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
                    path.push(Step::field(key));
                    let field = ty.field(key).unwrap_or(Type::Opaque);
                    compare_at(field, a.get(key), b.get(key), path, out);
                    path.pop();
                }
                return;
            }
        }
        Atom::List => {
            let (a, b) = (old.and_then(Value::as_array), new.and_then(Value::as_array));
            let empty = a.is_none_or(Vec::is_empty) && b.is_none_or(Vec::is_empty);
            if granular_list(ty) && !empty {
                let (a, b) = (
                    a.map_or(&[][..], Vec::as_slice),
                    b.map_or(&[][..], Vec::as_slice),
                );
                compare_lists(ty, a, b, path, out);
                return;
            }
        }
        Atom::Scalar | Atom::Unknown => {}
    }
    *leaf = true;
    match (old, new) {
        (None, _) => out.added.insert(path),
        (_, None) => out.removed.insert(path),
        (Some(old), Some(new)) if !same(old, new) => out.modified.insert(path),
        _ => {}
    }
}

fn compare_lists(
    ty: Type<'_>,
    old: &[Value],
    new: &[Value],
    path: &mut Vec<Step>,
    out: &mut Comparison,
) {
    let (_, before) = index(ty, old);
    let (_, after) = index(ty, new);
    let steps = before
        .keys()
        .chain(after.keys().filter(|s| !before.contains_key(*s)));
    for step in steps {
        let none = Vec::new();
        let a = before.get(step).unwrap_or(&none);
        let b = after.get(step).unwrap_or(&none);
        path.push(step.clone());
        match (a.as_slice(), b.as_slice()) {
            (a @ ([] | [_]), b @ ([] | [_])) => {
                compare_at(
                    ty.items(),
                    a.first().copied(),
                    b.first().copied(),
                    path,
                    out,
                );
            }
            (a @ [_, _, ..], b @ [_, _, ..]) => {
                if a != b {
                    out.modified.insert(path);
                }
            }
            ([_, _, ..], b) => {
                if let Some(new) = b.first() {
                    compare_at(ty.items(), None, Some(new), path, out);
                }
                out.removed.insert(path);
            }
            (a, _) => {
                if let Some(old) = a.first() {
                    compare_at(ty.items(), Some(old), None, path, out);
                }
                out.added.insert(path);
            }
        }
        path.pop();
    }
}

fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => a == b || x.as_f64() == y.as_f64(),
        _ => a == b,
    }
}

/// Merges an applied configuration into the stored value `live`.
pub(super) fn merge(ty: Type<'_>, live: &Value, config: &Value) -> Value {
    merge_at(ty, Some(live), Some(config)).unwrap_or_else(|| config.clone())
}

fn merge_at(ty: Type<'_>, live: Option<&Value>, config: Option<&Value>) -> Option<Value> {
    let as_what = match (atom(live), atom(config)) {
        (Atom::Unknown, Atom::Unknown) => atom_of_type(ty),
        (known, Atom::Unknown) => known,
        (_, known) => known,
    };
    match as_what {
        Atom::Map if !ty.atomic_map() => {
            let (a, b) = (
                live.and_then(Value::as_object),
                config.and_then(Value::as_object),
            );
            if !a.is_none_or(Map::is_empty) || !b.is_none_or(Map::is_empty) {
                let nothing = Map::new();
                let (a, b) = (a.unwrap_or(&nothing), b.unwrap_or(&nothing));
                let mut out = Map::new();
                for key in a.keys().chain(b.keys().filter(|k| !a.contains_key(*k))) {
                    let field = ty.field(key).unwrap_or(Type::Opaque);
                    if let Some(value) = merge_at(field, a.get(key), b.get(key)) {
                        out.insert(key.clone(), value);
                    }
                }
                return (!out.is_empty()).then_some(Value::Object(out));
            }
        }
        Atom::List if granular_list(ty) => {
            let (a, b) = (
                live.and_then(Value::as_array),
                config.and_then(Value::as_array),
            );
            if !a.is_none_or(Vec::is_empty) || !b.is_none_or(Vec::is_empty) {
                let (a, b) = (
                    a.map_or(&[][..], Vec::as_slice),
                    b.map_or(&[][..], Vec::as_slice),
                );
                let out = merge_lists(ty, a, b);
                return (!out.is_empty()).then_some(Value::Array(out));
            }
        }
        _ => {}
    }
    config.or(live).cloned()
}

/// Merges a list of the configuration into the stored list. The items in both lists get the order of the
/// configuration; the other stored items stay between them.
fn merge_lists(ty: Type<'_>, live: &[Value], config: &[Value]) -> Vec<Value> {
    let (left, live_by) = index(ty, live);
    let (right, config_by) = index(ty, config);
    let one = |by: &BTreeMap<Step, Vec<&Value>>, step: &Step| -> Option<Value> {
        match by.get(step).map(Vec::as_slice) {
            Some([only]) => Some((*only).clone()),
            // If the stored list contains an item twice, the item of the configuration replaces both.
            Some(_) => Some(Value::Null),
            None => None,
        }
    };
    let join = |step: &Step| {
        let config = config_by.get(step).and_then(|c| c.first()).copied();
        merge_at(ty.items(), one(&live_by, step).as_ref(), config)
    };
    let mut shared = right
        .iter()
        .map(|(s, _)| s)
        .filter(|s| live_by.contains_key(*s))
        .collect::<Vec<_>>()
        .into_iter();
    let mut next = shared.next();
    let mut done: BTreeSet<&Step> = BTreeSet::new();
    let mut out = Vec::new();
    let (mut l, mut r) = (left.iter().peekable(), right.iter().peekable());
    loop {
        match (l.peek(), r.peek()) {
            (None, None) => break,
            (Some((a, _)), Some((b, _))) => {
                if a == b {
                    done.insert(a);
                    out.extend(join(a));
                    l.next();
                    r.next();
                    next = shared.next();
                    continue;
                }
                if config_by.contains_key(a) && next.is_some_and(|n| n != a) {
                    l.next();
                    continue;
                }
            }
            _ => {}
        }
        if let Some((a, item)) = l.peek() {
            if !config_by.contains_key(a) {
                out.extend(merge_at(ty.items(), Some(item), None));
                l.next();
                continue;
            }
            if done.contains(a) {
                l.next();
            }
        }
        if let Some((b, _)) = r.next() {
            done.insert(b);
            out.extend(join(b));
            if next == Some(b) {
                next = shared.next();
            }
        }
    }
    out
}

/// Removes fields from a value. A map or list from which everything is removed becomes null.
pub(super) fn remove(ty: Type<'_>, value: &Value, fields: &FieldSet) -> Value {
    match value {
        Value::Object(map) if !map.is_empty() && !ty.atomic_map() => {
            let mut out = Map::new();
            for (key, value) in map {
                let step = Step::field(key);
                if fields.holds(&step) {
                    continue;
                }
                let kept = match fields.below(&step) {
                    Some(below) => remove(ty.field(key).unwrap_or(Type::Opaque), value, below),
                    None => value.clone(),
                };
                out.insert(key.clone(), kept);
            }
            if out.is_empty() {
                Value::Null
            } else {
                Value::Object(out)
            }
        }
        Value::Array(items) if !items.is_empty() && granular_list(ty) => {
            let mut out = Vec::new();
            for item in items {
                let step = element(ty, item).unwrap_or(Step::Index(-1));
                if fields.holds(&step) {
                    continue;
                }
                out.push(match fields.below(&step) {
                    Some(below) => remove(ty.items(), item, below),
                    None => item.clone(),
                });
            }
            if out.is_empty() {
                Value::Null
            } else {
                Value::Array(out)
            }
        }
        Value::Object(_) | Value::Array(_) => Value::Null,
        scalar => scalar.clone(),
    }
}

/// Returns the JSON of a Go value whose fields are not set: inner structs exist, and other required fields are null
/// or zero.
pub(super) fn zero(ty: Type<'_>) -> Value {
    let mut out = Map::new();
    if let Some(node) = ty.node() {
        for (name, field, required) in node.fields() {
            match &field.default {
                Some(Value::Object(_)) if field.fill.is_some() => {
                    let below = ty.field(name).map_or(Value::Null, zero);
                    out.insert(name.to_owned(), below);
                }
                Some(Value::Object(_)) => {}
                Some(scalar) if required => {
                    out.insert(name.to_owned(), scalar.clone());
                }
                None if field.fill.is_some() => {
                    out.extend(field.fill.clone().map(|zero| (name.to_owned(), zero)));
                }
                None if field.print_null => {
                    out.insert(name.to_owned(), Value::Null);
                }
                _ => {}
            }
        }
    }
    Value::Object(out)
}
