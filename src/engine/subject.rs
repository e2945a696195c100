//! Subjects: the objects that have revisions. A folder of `subjects` describes each kind of them as data.

use std::fmt;

use jiff::Timestamp;
use kube::Resource;
use kube::api::{DynamicObject, TypeMeta};
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::Value;

use super::world::Key;
use crate::api::audit::{ContentRef, Detail};
use crate::api::pin::Hold;

/// A kind of subject: the values and functions that differ between kinds.
pub struct Kind {
    /// The kind of the object, such as `Deployment`. Audit entries contain it.
    pub name: &'static str,
    /// The words before the slash on the command line, as in `deploy/web`. Messages use the first one.
    pub prefixes: &'static [&'static str],
    /// Returns the API resource.
    pub resource: fn() -> ApiResource,
    /// The path of the field that a change of the content changes.
    pub main_field: &'static [&'static str],
    /// Where an object keeps its holds.
    pub holds: HoldsIn,
    /// The verbs that work on this kind.
    pub capabilities: &'static [Capability],
    /// Returns the content of an object at a time, for the audit entry of a change that no operation
    /// describes. The flag says that a GitOps tool owns the object.
    pub content: fn(&DynamicObject, Timestamp, bool) -> ContentRef,
    /// Returns the values of an audit entry that only this kind has; the second argument is the content
    /// of the entry.
    pub detail: fn(&DynamicObject, &ContentRef) -> Option<Detail>,
    /// Returns the row and the column of an object in the matrix; the column is None if the object belongs
    /// to all columns.
    pub place: fn(&DynamicObject) -> (String, Option<String>),
}

/// Where an object keeps its holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldsIn {
    /// In a field, by its path.
    Field(&'static [&'static str]),
    /// In an annotation, as JSON.
    Annotation(&'static str),
}

/// A verb that a kind of subject supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `deploy`.
    Deploy,
    /// `promote`.
    Promote,
    /// `rollback`.
    Rollback,
    /// `pin` and `unpin`.
    Pin,
    /// `undo`.
    Undo,
}

impl Kind {
    /// Returns the holds of an object; none if they are not readable.
    pub fn holds_of(&self, object: &DynamicObject) -> Vec<Hold> {
        let read = match self.holds {
            HoldsIn::Field(path) => {
                let mut value = Some(&object.data);
                for step in path {
                    value = value.and_then(|value| value.get(step));
                }
                value.and_then(|value| serde_json::from_value(value.clone()).ok())
            }
            HoldsIn::Annotation(name) => {
                let annotations = object.metadata.annotations.as_ref();
                let text = annotations.and_then(|all| all.get(name));
                text.and_then(|text| serde_json::from_str(text).ok())
            }
        };
        read.unwrap_or_default()
    }

    /// Returns the word for a subject of this kind on the command line, such as `deploy/web`.
    pub fn words(&self, name: &str) -> String {
        format!("{}/{name}", self.prefixes.first().unwrap_or(&self.name))
    }
}

impl fmt::Debug for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name)
    }
}

impl PartialEq for Kind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Kind {}

/// One subject: its kind, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubjectRef {
    /// The kind.
    pub kind: &'static Kind,
    /// The namespace and the name.
    pub key: Key,
}

impl SubjectRef {
    /// Names a subject.
    pub fn new(kind: &'static Kind, key: Key) -> Self {
        Self { kind, key }
    }
}

/// Returns an object with its type, without the Rust type of its kind.
pub fn dynamic<K>(object: &K) -> DynamicObject
where
    K: Resource<DynamicType = ()> + Serialize,
{
    let metadata = object.meta().clone();
    let data = serde_json::to_value(object).unwrap_or_default();
    let mut data = match data {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    data.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    DynamicObject {
        types: Some(TypeMeta::resource::<K>()),
        metadata,
        data: Value::Object(data),
    }
}
