//! Subjects: the objects that have revisions. Each kind of subject has a folder in `src/subjects`, with a [`Kind`]
//! value that describes it.

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
use crate::api::bowline::audit::ContentRef;
use crate::api::digest;
use crate::api::hold::Hold;
use crate::api::operation::{self, Operation};

/// A kind of subject. The engine reads from this value how the kind differs from other kinds.
pub struct Kind {
    /// The Kubernetes kind, such as `Deployment`, as audit entries contain it.
    pub name: &'static str,
    /// The words before the slash on the command line, as in `deploy/web`. Messages use the first of them.
    pub prefixes: &'static [&'static str],
    /// Returns the API resource of the kind.
    pub resource: fn() -> ApiResource,
    /// The path of the field that contains the content of a subject, such as the pod template.
    pub main_field: &'static [&'static str],
    /// The field or the annotation in which an object keeps its holds.
    pub holds: HoldsIn,
    /// How the revisions of a subject get their numbers.
    pub numbering: Numbering,
    /// The functions for commands on a subject of this kind; None for a kind that has its own planner.
    pub actions: Option<Actions>,
    /// The verbs that users can apply to subjects of this kind.
    pub capabilities: &'static [Capability],
    /// Returns the content of an object at a time, for the audit entry of a change without an operation. The flag
    /// says whether a GitOps tool owns the object.
    pub content: fn(&DynamicObject, Timestamp, bool) -> ContentRef,
    /// Returns the release that the spec of an object names, for an audit entry. None if it is the content of the
    /// entry (the second argument), or if objects of this kind name no release.
    pub release_ref: fn(&DynamicObject, &ContentRef) -> Option<String>,
    /// Returns the row and the column of an object in the matrix. The column is None for an object that belongs to
    /// all columns.
    pub place: fn(&DynamicObject) -> (String, Option<String>),
}

/// The place in an object where its holds are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldsIn {
    /// The path of the field that contains the holds.
    Field(&'static [&'static str]),
    /// The name of the annotation that contains the holds as JSON.
    Annotation(&'static str),
}

/// How the revisions of a subject get their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// The generation is the number: every change of the spec is a revision.
    Generation,
    /// An annotation is the number. bowline increments it with each of its own changes. Changes by other programs do
    /// not count, because an autoscaler, for example, changes the replicas all the time. A plan conflicts only with a
    /// change of `fields`.
    Annotation {
        name: &'static str,
        /// The paths of the fields that a plan for this kind depends on.
        fields: &'static [&'static [&'static str]],
    },
}

/// The uid and the revision of a subject at plan time, which must not change until the write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The uid of the subject, because a later object with the same name has another uid.
    pub uid: String,
    /// The number of the subject's current revision.
    pub number: i64,
    /// The hash of the fields that a plan depends on. None if every change of the spec increases `number`, so that
    /// the hash is not needed.
    pub fields: Option<String>,
}

/// A verb that a kind of subject supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    Deploy,
    Promote,
    Rollback,
    Pin,
    Undo,
    /// Mark a revision bad or good.
    Mark,
}

impl Kind {
    /// Returns the API resource of the kind as `{group}/{plural}`.
    pub fn group_resource(&self) -> String {
        let resource = (self.resource)();
        format!("{}/{}", resource.group, resource.plural)
    }

    /// Returns why the annotation with the holds of an object cannot be parsed. None if it can, if it does not exist,
    /// or if the holds are in a field, which the schema of the kind protects.
    pub fn unreadable_holds(&self, object: &DynamicObject) -> Option<String> {
        let HoldsIn::Annotation(name) = self.holds else {
            return None;
        };
        let text = object.metadata.annotations.as_ref()?.get(name)?;
        let read = serde_json::from_str::<Vec<Hold>>(text);
        read.err()
            .map(|error| format!("cannot read the annotation {name}: {error}"))
    }

    /// Returns the holds of an object; an empty list if the holds cannot be parsed.
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

    /// Returns the current revision of an object; None if the server has not stored the object.
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

    /// Returns the uid and the revision that a plan for this object expects; None if the server has not stored the
    /// object.
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

    /// Returns the operation that made the newest change of an object. None if another program made that change, or
    /// if the operation annotation cannot be parsed.
    pub fn operation(&self, object: &DynamicObject) -> Option<Operation> {
        let operation = operation::of(object, self.name, self.number(object));
        operation.ok().flatten()
    }

    /// Returns a subject as users write it on the command line, such as `deploy/web`.
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
    pub kind: &'static Kind,
    pub key: Key,
}

impl SubjectRef {
    pub fn new(kind: &'static Kind, key: Key) -> Self {
        Self { kind, key }
    }

    /// Returns the subject as users write it on the command line, such as `deploy/web`.
    pub fn words(&self) -> String {
        self.kind.words(&self.key.name)
    }
}

/// Returns the value of an object at a path from the root; None if the object does not have it.
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
