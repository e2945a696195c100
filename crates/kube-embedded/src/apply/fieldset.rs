//! Sets of field paths, which record the fields that a manager owns. Their JSON format in `metadata.managedFields` is
//! FieldsV1.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::schema::Type;

/// One step of the path from an object to a field or list item.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field of an object, identified by its name.
    Field(String),
    /// An item of a list map, identified by the values of its keys: a JSON object with sorted keys, as text.
    Key(String),
    /// An item of a set, identified by its value: a JSON value, as text.
    Value(String),
    /// An item of any other list, identified by its index.
    Index(i64),
}

impl Step {
    /// Returns the step for a field name.
    pub fn field(name: &str) -> Step {
        Step::Field(name.to_owned())
    }

    fn parse(text: &str) -> Option<Step> {
        let (kind, rest) = text.split_once(':')?;
        match kind {
            "f" => Some(Step::field(rest)),
            "k" => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                Some(Step::Key(Value::Object(keys).to_string()))
            }
            "v" => Some(Step::Value(
                serde_json::from_str::<Value>(rest).ok()?.to_string(),
            )),
            "i" => rest.parse().ok().map(Step::Index),
            _ => None,
        }
    }

    fn encode(&self) -> String {
        match self {
            Step::Field(name) => format!("f:{name}"),
            Step::Key(keys) => format!("k:{keys}"),
            Step::Value(value) => format!("v:{value}"),
            Step::Index(index) => format!("i:{index}"),
        }
    }
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Value(value) => write!(f, "[={value}]"),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(keys) => {
                let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
                let keys: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                write!(f, "[{}]", keys.join(","))
            }
        }
    }
}

/// A set of field paths, such as the fields that a manager owns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    entries: BTreeMap<Step, Entry>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Entry {
    /// Whether the set contains the path that ends with this step. If false, it contains only longer paths.
    member: bool,
    below: FieldSet,
}

impl Entry {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// Parses the JSON format FieldsV1. Unknown parts are ignored.
    pub fn from_json(value: &Value) -> FieldSet {
        let mut set = FieldSet::default();
        for (key, below) in value.as_object().into_iter().flatten() {
            let Some(step) = Step::parse(key) else {
                continue;
            };
            let own = below
                .as_object()
                .is_none_or(|m| m.is_empty() || m.contains_key("."));
            let entry = Entry {
                member: own,
                below: FieldSet::from_json(below),
            };
            set.entries.insert(step, entry);
        }
        set
    }

    /// Converts the set to the JSON format FieldsV1.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        for (step, entry) in &self.entries {
            let mut below = entry.below.to_json();
            if entry.member
                && !entry.below.is_empty()
                && let Some(map) = below.as_object_mut()
            {
                map.insert(".".to_owned(), Value::Object(Map::new()));
            }
            out.insert(step.encode(), below);
        }
        Value::Object(out)
    }

    /// Returns whether the set contains no paths.
    pub fn is_empty(&self) -> bool {
        self.entries.values().all(Entry::is_empty)
    }

    /// Adds a path to the set. An empty path is ignored.
    pub fn insert(&mut self, path: &[Step]) {
        if let Some((first, rest)) = path.split_first() {
            let entry = self.entries.entry(first.clone()).or_default();
            if rest.is_empty() {
                entry.member = true;
            } else {
                entry.below.insert(rest);
            }
        }
    }

    /// Returns whether the set contains exactly this path.
    pub fn has(&self, path: &[Step]) -> bool {
        match path.split_first() {
            None => false,
            Some((first, [])) => self.entries.get(first).is_some_and(|e| e.member),
            Some((first, rest)) => self.entries.get(first).is_some_and(|e| e.below.has(rest)),
        }
    }

    pub(super) fn holds(&self, step: &Step) -> bool {
        self.entries.get(step).is_some_and(|e| e.member)
    }

    pub(super) fn below(&self, step: &Step) -> Option<&FieldSet> {
        self.entries
            .get(step)
            .map(|e| &e.below)
            .filter(|b| !b.is_empty())
    }

    /// Returns the paths that are in this set or in the other set.
    pub fn union(&self, other: &FieldSet) -> FieldSet {
        let mut out = self.clone();
        for (step, entry) in &other.entries {
            let own = out.entries.entry(step.clone()).or_default();
            own.member |= entry.member;
            own.below = own.below.union(&entry.below);
        }
        out
    }

    /// Returns the paths that are in both sets.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, |mine, theirs| match theirs {
            None => Entry::default(),
            Some(theirs) => Entry {
                member: mine.member && theirs.member,
                below: mine.below.intersection(&theirs.below),
            },
        })
    }

    /// Returns the paths of this set that are not in the other set.
    pub fn difference(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, |mine, theirs| match theirs {
            None => mine.clone(),
            Some(theirs) => Entry {
                member: mine.member && !theirs.member,
                below: mine.below.difference(&theirs.below),
            },
        })
    }

    /// Returns the paths of this set, except those that are in the other set or begin with a path of the other set.
    pub fn without(&self, other: &FieldSet) -> FieldSet {
        self.combine(other, |mine, theirs| match theirs {
            None => mine.clone(),
            Some(theirs) if theirs.member => Entry::default(),
            Some(theirs) => Entry {
                member: mine.member,
                below: mine.below.without(&theirs.below),
            },
        })
    }

    fn combine(
        &self,
        other: &FieldSet,
        with: impl Fn(&Entry, Option<&Entry>) -> Entry,
    ) -> FieldSet {
        let mut entries = BTreeMap::new();
        for (step, mine) in &self.entries {
            let entry = with(mine, other.entries.get(step));
            if !entry.is_empty() {
                entries.insert(step.clone(), entry);
            }
        }
        FieldSet { entries }
    }

    /// Calls `visit` for each path of the set. A path comes before the longer paths that begin with it.
    pub fn for_each(&self, visit: &mut dyn FnMut(&[Step])) {
        self.walk(&mut Vec::new(), visit);
    }

    fn walk(&self, path: &mut Vec<Step>, visit: &mut dyn FnMut(&[Step])) {
        for (step, _) in self.entries.iter().filter(|(_, e)| e.member) {
            path.push(step.clone());
            visit(path);
            path.pop();
        }
        for (step, entry) in &self.entries {
            path.push(step.clone());
            entry.below.walk(path, visit);
            path.pop();
        }
    }

    /// Returns this set together with the declared fields around each path, because an object that has a field also
    /// has the fields around it.
    pub(super) fn with_named_fields(&self, ty: Type<'_>) -> FieldSet {
        let mut out = FieldSet::default();
        for (step, entry) in &self.entries {
            let (declared, below) = match step {
                Step::Field(name) => (ty.declares(name), ty.field(name).unwrap_or(Type::Opaque)),
                _ => (false, ty.items()),
            };
            let passes = declared && !entry.below.is_empty();
            let entry = Entry {
                member: entry.member || passes,
                below: entry.below.with_named_fields(below),
            };
            out.entries.insert(step.clone(), entry);
        }
        out
    }
}
