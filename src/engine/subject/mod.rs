//! Subjects: the objects that have revisions. Each kind of subject has a folder in `subjects`,
//! which describes the kind as data.

pub mod command;

use std::fmt;

use jiff::Timestamp;
use kube::Resource;
use kube::api::{DynamicObject, TypeMeta};
use kube::core::ApiResource;
use serde::Serialize;
use serde_json::Value;

use self::command::Actions;
use super::world::Key;
use crate::api::bowline::audit::{ContentRef, Detail};
use crate::api::digest;
use crate::api::hold::Hold;
use crate::api::operation::{self, Operation};

/// A kind of subject: the values and functions that differ between kinds.
pub struct Kind {
    /// The kind of the object, such as `Deployment`. Audit entries contain it.
    pub name: &'static str,
    /// The words before the slash on the command line, as in `deploy/web`. Messages use the first
    /// of them.
    pub prefixes: &'static [&'static str],
    /// Returns the API resource of the kind.
    pub resource: fn() -> ApiResource,
    /// The path of the field that contains the content.
    pub main_field: &'static [&'static str],
    /// Where an object keeps its holds.
    pub holds: HoldsIn,
    /// How the changes of an object are numbered.
    pub numbering: Numbering,
    /// The functions of a kind that plans through the engine; None for a kind with its own planner.
    pub actions: Option<Actions>,
    /// The verbs that work on this kind.
    pub capabilities: &'static [Capability],
    /// Returns the content of an object at a time, for the audit entry of a change that no
    /// operation describes. The flag is true if a GitOps tool owns the object.
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

/// How the changes of an object are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// By the generation: every change of the spec is a revision.
    Generation,
    /// By an annotation that bowline increments with each of its own changes. Other programs change
    /// such an object all the time, for example an autoscaler changes the replicas. Only a change
    /// of `fields` conflicts with a plan.
    Annotation {
        /// The name of the annotation.
        name: &'static str,
        /// The paths of the fields that a plan depends on.
        fields: &'static [&'static [&'static str]],
    },
}

/// The identity and the state of a subject at plan time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The uid, which differs from the uid of a later subject of the same name.
    pub uid: String,
    /// The number of the newest change.
    pub number: i64,
    /// The hash of the fields that a plan depends on; None if the number covers every change.
    pub fields: Option<String>,
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
    /// Returns the resource as `{group}/{plural}`.
    pub fn group_resource(&self) -> String {
        let resource = (self.resource)();
        format!("{}/{}", resource.group, resource.plural)
    }

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

    /// Returns the number of the newest change of an object; None if the object is not stored.
    pub fn number(&self, object: &DynamicObject) -> Option<i64> {
        let generation = object.metadata.generation?;
        Some(match self.numbering {
            Numbering::Generation => generation,
            Numbering::Annotation { name, .. } => {
                let annotations = object.metadata.annotations.as_ref();
                let number = annotations.and_then(|all| all.get(name));
                number.and_then(|number| number.parse().ok()).unwrap_or(0)
            }
        })
    }

    /// Returns the state that a plan expects of an object; None if the object is not stored.
    pub fn expected(&self, object: &DynamicObject) -> Option<Expected> {
        let fields = match self.numbering {
            Numbering::Generation => None,
            Numbering::Annotation { fields, .. } => {
                let values = fields.iter().map(|path| field(object, path));
                Some(digest::of(&Value::Array(
                    values.map(Option::unwrap_or_default).collect(),
                )))
            }
        };
        Some(Expected {
            uid: object.metadata.uid.clone()?,
            number: self.number(object)?,
            fields,
        })
    }

    /// Returns the operation that made the newest change of an object; None if it was another program, or if
    /// the record is not readable.
    pub fn operation(&self, object: &DynamicObject) -> Option<Operation> {
        let operation = operation::of(object, self.name, self.number(object));
        operation.ok().flatten()
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
    /// The kind of the subject.
    pub kind: &'static Kind,
    /// The namespace and the name.
    pub key: Key,
}

impl SubjectRef {
    /// Creates a reference to a subject.
    pub fn new(kind: &'static Kind, key: Key) -> Self {
        Self { kind, key }
    }

    /// Returns the subject as on the command line, such as `deploy/web`.
    pub fn words(&self) -> String {
        self.kind.words(&self.key.name)
    }
}

/// Returns the value of a field of an object, by its path from the root.
pub fn field(object: &DynamicObject, path: &[&str]) -> Option<Value> {
    let mut path = path.iter();
    let found = path.try_fold(&object.data, |value, step| value.get(step));
    found.cloned()
}

/// Converts a typed object to a dynamic object with its API version and kind.
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
