//! A plan: the ordered changes of an action, and the facts that each change depends on.
//!
//! A plan is data that a planner computes from the read model, so that tests can check a rule as a table.
//! `apply` reads the facts again and writes the changes.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::claim::ClaimOn;
use super::subject::{Expected, HoldsIn, SubjectRef};
use super::world::{Key, World};
use crate::api::bowline::audit::{Action, ContentRef};
use crate::api::hold::Hold;
use crate::api::openchoreo::release::Verdict;

/// The user's request that a planner turns into a plan.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The id of the operation. The front end chooses it before it sends the first request.
    pub operation: String,
    pub now: Timestamp,
    /// The user name on this machine; the API server may know the user by another name.
    pub user: String,
    /// The reason that the user gave.
    pub reason: Option<String>,
    pub namespace: String,
}

impl Asked {
    /// Returns the id of the hold that the operation places.
    pub fn hold_id(&self) -> String {
        hold_id(&self.operation)
    }
}

/// Returns the id of the hold that an operation places. It is short, and the same for every retry of the
/// operation.
pub fn hold_id(operation: &str) -> String {
    let id: String = operation.chars().take(8).collect();
    format!("hold-{id}")
}

/// The planned changes of an action.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub action: Action,
    pub operation: String,
    /// The time at which the planner made the plan.
    pub at: Timestamp,
    /// The reason that the user gave.
    pub reason: Option<String>,
    /// The changes in the order of their writes, one per subject.
    pub changes: Vec<Change>,
}

impl Plan {
    pub fn changing(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| !change.unchanged)
    }

    /// Returns the first change that requires a reason, if the plan has no reason. Front ends show such a plan;
    /// `apply` refuses it.
    pub fn lacks_reason(&self) -> Option<&Change> {
        let given = self.reason.as_deref().unwrap_or_default();
        if !given.trim().is_empty() {
            return None;
        }
        self.changing().find(|change| {
            change.requires_reason || change.mark.as_ref().is_some_and(MarkOn::needs_reason)
        })
    }

    /// Returns the first change in a production environment; None if the plan changes no production
    /// environment.
    pub fn production(&self) -> Option<&Change> {
        self.changing().find(|change| change.is_production)
    }

    /// Sets the reason of the plan and of the holds that the plan places.
    pub fn because(&mut self, reason: Option<String>) {
        let placed = hold_id(&self.operation);
        let holds = self.changes.iter_mut().flat_map(|change| &mut change.holds);
        for hold in holds.filter(|hold| hold.id == placed) {
            hold.reason.clone_from(&reason);
        }
        self.reason = reason;
    }
}

/// The planned write to one subject, with the facts that it depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The subject that changes.
    pub subject: SubjectRef,
    /// The name of the subject's row in the matrix.
    pub name: String,
    pub environment: String,
    /// Whether the change is in a production environment.
    pub is_production: bool,
    /// Whether the change requires a reason.
    pub requires_reason: bool,
    /// The uid and the revision of the subject at plan time; None if the change creates the subject.
    pub expected: Option<Expected>,
    /// The fields that the change sets or removes, except the holds.
    pub fields: Vec<Field>,
    /// The holds of the subject at plan time.
    pub holds_before: Vec<Hold>,
    /// The holds of the subject after the change.
    pub holds: Vec<Hold>,
    /// The objects that `apply` claims before the write.
    pub claims: Vec<ClaimOn>,
    /// The content of the subject at plan time; None if the subject does not exist.
    pub from: Option<ContentRef>,
    /// The content of the subject after the change.
    pub to: ContentRef,
    /// The revision that a rollback restores; None for any other action.
    pub restored_from: Option<i64>,
    /// The mark that the change sets on a revision of the subject; None for any other action.
    pub mark: Option<MarkOn>,
    /// The hash of the manifests that the change renders to; None if bowline did not render them.
    pub rendered_hash: Option<String>,
    /// Whether the subject already has the desired state, so that `apply` writes nothing.
    pub unchanged: bool,
    /// The facts that `apply` checks again. If one is no longer true, `apply` does not write the change.
    pub facts: Vec<Arc<dyn Fact>>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

/// A mark on the object that stores a revision. `apply` writes it after the subject, which records it.
#[derive(Clone, Debug, PartialEq)]
pub struct MarkOn {
    /// The kind of the object.
    pub resource: ApiResource,
    pub key: Key,
    /// The uid. A later object with the same name has another uid.
    pub uid: String,
    /// The hash of the content of the revision.
    pub hash: String,
    /// The verdict at plan time; None if the revision had no mark.
    pub was: Option<Verdict>,
    pub verdict: Verdict,
}

impl MarkOn {
    /// Returns whether the mark needs a reason: a bad mark does, and a good mark that replaces a bad mark.
    pub fn needs_reason(&self) -> bool {
        [Some(self.verdict), self.was].contains(&Some(Verdict::Bad))
    }
}

/// A field of an object, and the value that a change gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The path from the root of the object.
    pub path: Vec<String>,
    /// The new value; None removes the field.
    pub value: Option<Value>,
}

impl Field {
    /// Creates a field from its path and its new value.
    pub fn set(path: &[&str], value: impl Into<Value>) -> Self {
        Self {
            path: path.iter().map(|step| (*step).to_owned()).collect(),
            value: Some(value.into()),
        }
    }

    /// Returns the current value of the field in `object`; None if `object` does not have the field.
    pub fn of<'o>(&self, object: &'o Value) -> Option<&'o Value> {
        let mut path = self.path.iter();
        path.try_fold(object, |value, step| value.get(step))
    }

    /// Sets or removes the field in `object`. Creates the missing maps of the path.
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
    pub fn key(&self) -> &Key {
        &self.subject.key
    }

    /// Returns the revision that the change marks, as text for the user.
    pub fn marked(&self) -> String {
        format!("{} of {}", self.to.name, self.name)
    }

    /// Returns the rule by which the change requires a reason.
    pub fn reason_rule(&self) -> String {
        match &self.mark {
            Some(mark) if mark.needs_reason() => {
                format!(
                    "marking {} {} needs a reason",
                    self.marked(),
                    mark.verdict.word()
                )
            }
            _ => format!("{} requires a reason for every change", self.environment),
        }
    }

    /// Returns the bowline command for a verb on the subject, such as `bowline undo cart --environment
    /// staging`, without the flags that select the target. `quote` quotes a name for the shell.
    pub fn command_line(&self, verb: &str, quote: fn(&str) -> String) -> String {
        let name = quote(&self.name);
        match self.subject.kind.actions {
            None => format!(
                "bowline {verb} {name} --environment {}",
                quote(&self.environment)
            ),
            // The name already contains the kind, as in `deploy/web`, and the target selects the namespace.
            Some(_) => format!("bowline {verb} {name}"),
        }
    }

    /// Returns the key by which screens find the subject. For a kind with its own planner, it is the key of
    /// the object; for other kinds, the namespace of the object and the name of the matrix row.
    pub fn followed(&self) -> Key {
        match self.subject.kind.actions {
            None => self.key().clone(),
            Some(_) => self.key().beside(&self.name),
        }
    }

    /// Returns the revision of the subject at plan time; None if the change creates the subject.
    pub fn number(&self) -> Option<i64> {
        self.expected.as_ref().map(|expected| expected.number)
    }

    /// Returns the holds that the change removes.
    pub fn lifted(&self) -> impl Iterator<Item = &Hold> {
        let kept = |hold: &Hold| self.holds.iter().any(|kept| kept.id == hold.id);
        self.holds_before.iter().filter(move |hold| !kept(hold))
    }

    /// Returns the revision of the subject after the change.
    pub fn revision(&self) -> i64 {
        self.number().unwrap_or_default() + 1
    }

    /// Returns the fields that the change sets or removes, and the field of the holds.
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

    /// Returns an object that has only the fields of the change, such as the object that the change creates.
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

/// A value that a rule has read, and that must still be true when `apply` writes the change.
pub trait Fact: fmt::Debug + Any + Send + Sync {
    /// Returns the kind and the key of the object that the fact is about. If the fact is about all objects of
    /// a namespace, the name is empty.
    fn about(&self) -> (&'static str, Key);

    /// Reads the object of the fact from the server and puts it into the read model `into`.
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

    /// Describes how the object of the fact differs from plan time, and which user or tool changed it.
    fn describe(&self, world: &World, change: &Change, now: Timestamp) -> String;
}

impl PartialEq for dyn Fact {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}
