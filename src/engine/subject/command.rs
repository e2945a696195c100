//! Commands on one subject, for every kind that plans through the engine: read the revisions of the
//! subject, roll the subject back, pin and unpin it, undo the last action on it.
//!
//! The folder of a kind provides two functions, and both front ends call them through [`Actions`].

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;
use serde_json::Value;

use super::SubjectRef;
use crate::connect::explain;
use crate::engine::plan::{Asked, Plan};
use crate::engine::revisions::{NoRevision, Revisions};

/// The functions of a kind that plans through the engine.
pub struct Actions {
    /// Reads the revisions of a subject.
    pub revisions: for<'a> fn(&'a Client, &'a SubjectRef, Timestamp) -> Answer<'a, Found>,
    /// Plans a command.
    pub plan: for<'a> fn(&'a Client, &'a Command, &'a Asked) -> Answer<'a, Planned>,
}

/// The answer of a function of a kind.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, SubjectError>>;

/// The revisions of a subject.
pub type Found = Revisions<Content>;

/// A command on one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// The subject of the command.
    pub subject: SubjectRef,
    /// The verb with its arguments.
    pub verb: Verb,
}

/// A verb with its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Publish the content of an older revision again.
    Rollback {
        /// The revision; None for the default of the kind.
        to: Option<i64>,
        /// Whether to place a hold.
        hold: bool,
        /// Whether the user accepts that a GitOps tool may undo the change.
        force: bool,
    },
    /// Place a hold.
    Pin {
        /// The end of the hold; None for a hold without an end.
        until: Option<Timestamp>,
        /// Whether to pause the rollouts of the subject too.
        freeze: bool,
    },
    /// Remove a hold.
    Unpin {
        /// The id of the hold; None for the only hold.
        hold: Option<String>,
    },
    /// Reverse the last action of bowline.
    Undo,
}

/// The content of a revision.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Content {
    /// A short description, such as the images.
    pub label: String,
    /// The objects that a diff compares.
    #[serde(skip)]
    pub objects: Vec<Value>,
}

/// A plan, with notes for the user.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The planned changes.
    pub plan: Plan,
    /// Notes for the user.
    pub notes: Vec<String>,
    /// The object of each change, before and after the change.
    pub objects: Vec<[Value; 2]>,
}

/// The reason why a command on a subject is not possible.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The subject does not exist.
    #[error("{subject} does not exist in namespace {namespace}")]
    Missing {
        /// The subject, as on the command line.
        subject: String,
        /// The namespace that does not have the subject.
        namespace: String,
    },
    /// A rule refuses the command.
    #[error("{why}")]
    Refused {
        /// The reason why the rule refuses the command.
        why: String,
        /// The next step; a command of bowline without the flags of the target.
        hint: Option<String>,
    },
    /// The user does not have the permission for the change.
    #[error("{0}")]
    Denied(String),
    /// A revision does not exist.
    #[error(transparent)]
    Revision(#[from] NoRevision),
    /// A request failed.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

impl SubjectError {
    /// Builds the error of a rule, with the next step.
    pub fn refused(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused {
            why: why.into(),
            hint: Some(hint.into()),
        }
    }
}
