//! A plan: the changes of an action, and every fact that the planner used.
//!
//! Plans are data. Planners are pure functions of the read model, so that a rule can be tested as a
//! table. `apply` checks the facts again and writes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::claim::ClaimOn;
use super::subject::{Expected, HoldsIn, SubjectRef};
use super::world::{Key, World};
use crate::api::bowline::audit::{Action, ContentRef};
use crate::api::hold::Hold;

/// The user, time and reason of an action.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The id of the operation, chosen before the first request of the operation.
    pub operation: String,
    /// The current time.
    pub now: Timestamp,
    /// The user, as far as this machine knows.
    pub user: String,
    /// The reason that the user gave.
    pub reason: Option<String>,
    /// The namespace of the subjects.
    pub namespace: String,
}

impl Asked {
    /// Returns the id of the hold that the operation places: short, and the same if it is repeated.
    pub fn hold_id(&self) -> String {
        hold_id(&self.operation)
    }
}

/// Returns the id of the hold that an operation places.
pub fn hold_id(operation: &str) -> String {
    let id: String = operation.chars().take(8).collect();
    format!("hold-{id}")
}

/// The planned changes of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The action that the user asked for.
    pub action: Action,
    /// The id of the operation.
    pub operation: String,
    /// The time at which the plan was made.
    pub at: Timestamp,
    /// The reason that the user gave.
    pub reason: Option<String>,
    /// One change per subject.
    pub changes: Vec<Change>,
}

impl Plan {
    /// Returns the changes that write something.
    pub fn changing(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| !change.unchanged)
    }

    /// Returns an environment that requires a reason for every change, if the plan has none: such a plan
    /// can be shown, but not applied.
    pub fn lacks_reason(&self) -> Option<&str> {
        let given = self.reason.as_deref().unwrap_or_default();
        if !given.trim().is_empty() {
            return None;
        }
        let strict = self.changing().find(|change| change.requires_reason);
        strict.map(|change| change.environment.as_str())
    }

    /// Returns the first change in a production environment; None if there is none.
    pub fn production(&self) -> Option<&Change> {
        self.changing().find(|change| change.is_production)
    }

    /// Sets the reason of a plan, and of the holds that it places.
    pub fn because(&mut self, reason: Option<String>) {
        let placed = hold_id(&self.operation);
        let holds = self.changes.iter_mut().flat_map(|change| &mut change.holds);
        for hold in holds.filter(|hold| hold.id == placed) {
            hold.reason.clone_from(&reason);
        }
        self.reason = reason;
    }
}

/// The change of one subject, with its facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The subject that changes.
    pub subject: SubjectRef,
    /// The name of the subject's row in the matrix, such as the component.
    pub name: String,
    /// The name of the environment.
    pub environment: String,
    /// Whether the environment is a production environment.
    pub is_production: bool,
    /// Whether the change requires a reason.
    pub requires_reason: bool,
    /// The subject at plan time; None if the change creates it.
    pub expected: Option<Expected>,
    /// The fields of the subject after the change, except its holds.
    pub fields: Vec<Field>,
    /// The holds of the subject before the change.
    pub holds_before: Vec<Hold>,
    /// The holds of the subject after the change.
    pub holds: Vec<Hold>,
    /// The objects to claim before the write.
    pub claims: Vec<ClaimOn>,
    /// The content of the subject before the change.
    pub from: Option<ContentRef>,
    /// The content of the subject after the change.
    pub to: ContentRef,
    /// The revision that a rollback restores; None for any other action.
    pub restored_from: Option<i64>,
    /// The hash of the rendered change in the environment; None if it was not rendered.
    pub rendered_hash: Option<String>,
    /// Whether the subject already has the state after the change, so that nothing is written.
    pub unchanged: bool,
    /// The facts of the change; if one is no longer true, the change is not made.
    pub facts: Vec<Arc<dyn Fact>>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A field of an object after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The path from the root of the object.
    pub path: Vec<String>,
    /// The value; None if the field is removed.
    pub value: Option<Value>,
}

impl Field {
    /// Builds a field from its path and the value that it gets.
    pub fn set(path: &[&str], value: impl Into<Value>) -> Self {
        Self {
            path: path.iter().map(|step| (*step).to_owned()).collect(),
            value: Some(value.into()),
        }
    }

    /// Returns the value of the field in an object.
    pub fn of<'o>(&self, object: &'o Value) -> Option<&'o Value> {
        let mut path = self.path.iter();
        path.try_fold(object, |value, step| value.get(step))
    }

    /// Writes the field to an object, or removes it if the value is None. Creates missing maps of
    /// the path.
    pub fn write(&self, object: &mut Value) {
        let Some((last, above)) = self.path.split_last() else {
            return;
        };
        let mut at = object;
        for step in above {
            if !at.is_object() {
                *at = json!({});
            }
            at = &mut at[step];
        }
        match (&self.value, at.as_object_mut()) {
            (Some(value), Some(map)) => drop(map.insert(last.clone(), value.clone())),
            (Some(value), None) => *at = json!({ last: value }),
            (None, Some(map)) => drop(map.remove(last)),
            (None, None) => {}
        }
    }
}

impl Change {
    /// Returns the namespace and the name of the subject.
    pub fn key(&self) -> &Key {
        &self.subject.key
    }

    /// Returns the command line of bowline for a verb on the subject, without the flags that select
    /// the target. `quote` quotes the names.
    pub fn command_line(&self, verb: &str, quote: fn(&str) -> String) -> String {
        let name = quote(&self.name);
        match self.subject.kind.actions {
            None => format!(
                "bowline {verb} {name} --environment {}",
                quote(&self.environment)
            ),
            // The name contains the kind, such as `deploy/web`, and the subject is in the namespace
            // of the target.
            Some(_) => format!("bowline {verb} {name}"),
        }
    }

    /// Returns the key by which screens find the subject: the key of the object for a kind with its
    /// own planner, or else the key of its row in the matrix.
    pub fn followed(&self) -> Key {
        match self.subject.kind.actions {
            None => self.key().clone(),
            Some(_) => self.key().beside(&self.name),
        }
    }

    /// Returns the number of the subject's newest change at plan time; None if the change creates the subject.
    pub fn number(&self) -> Option<i64> {
        self.expected.as_ref().map(|expected| expected.number)
    }

    /// Returns the holds that the change removes.
    pub fn lifted(&self) -> impl Iterator<Item = &Hold> {
        let kept = |hold: &Hold| self.holds.iter().any(|kept| kept.id == hold.id);
        self.holds_before.iter().filter(move |hold| !kept(hold))
    }

    /// Returns the revision that the change makes.
    pub fn revision(&self) -> i64 {
        self.number().unwrap_or_default() + 1
    }

    /// Returns every field that the subject has after the change, with its holds.
    pub fn all_fields(&self) -> Vec<Field> {
        let mut fields = self.fields.clone();
        let holds = (!self.holds.is_empty()).then(|| json!(self.holds));
        fields.push(match self.subject.kind.holds {
            HoldsIn::Field(path) => Field {
                path: path.iter().map(|step| (*step).to_owned()).collect(),
                value: holds,
            },
            HoldsIn::Annotation(name) => Field {
                path: ["metadata", "annotations", name].map(str::to_owned).into(),
                value: holds.map(|holds| holds.to_string().into()),
            },
        });
        fields
    }

    /// Returns an object that has the fields of the change and no others.
    pub fn object(&self) -> DynamicObject {
        let blank = DynamicObject::new(&self.key().name, &(self.subject.kind.resource)());
        let mut value = serde_json::to_value(&blank).unwrap_or_default();
        for field in self.all_fields() {
            field.write(&mut value);
        }
        serde_json::from_value(value).unwrap_or(blank)
    }

    /// Returns the value of a field after the change; None if the change does not set it.
    pub fn field(&self, path: &[&str]) -> Option<&Value> {
        let found = self.fields.iter().find(|field| field.path == path);
        found.and_then(|field| field.value.as_ref())
    }
}

/// A value that a rule has read and that must still be true when the change is written.
pub trait Fact: fmt::Debug + Any + Send + Sync {
    /// Returns the object that the fact is about: its kind, and its key. A fact about all objects of a
    /// namespace has an empty name.
    fn about(&self) -> (&'static str, Key);

    /// Reads the object from the server into a read model.
    fn read<'a>(
        &'a self,
        client: &'a Client,
        into: &'a mut World,
    ) -> BoxFuture<'a, Result<(), kube::Error>>;

    /// Returns the object that the branch of a commit has to contain as it is in the files: its resource, as
    /// `{group}/{plural}`, and its key. None if the commit does not depend on such an object.
    fn in_files(&self) -> Option<(String, Key)> {
        None
    }

    /// Returns whether the fact is still true.
    fn holds(&self, world: &World, now: Timestamp) -> bool;

    /// Describes the difference, and the tool or the user that made it.
    fn describe(&self, world: &World, change: &Change, now: Timestamp) -> String;
}

impl PartialEq for dyn Fact {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}
