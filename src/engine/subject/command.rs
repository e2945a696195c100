//! Commands on one subject: read the revisions, roll back, pin, unpin, undo. The command line and the terminal UI
//! use this module for every kind of subject that has no planner of its own.
//!
//! The folder of each kind provides the two functions in [`Actions`].

use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::Client;
use serde::Serialize;
use serde_json::Value;

use super::SubjectRef;
use crate::api::openchoreo::release::Verdict;
use crate::connect::explain;
use crate::engine::plan::{Asked, Plan};
use crate::engine::revisions::{NoRevision, Revisions};
use crate::engine::rights::Right;

/// The functions that plan the commands on one kind of subject.
pub struct Actions {
    pub revisions: for<'a> fn(&'a Client, &'a SubjectRef, Timestamp) -> Answer<'a, Found>,
    pub plan: for<'a> fn(&'a Client, &'a Command, &'a Asked) -> Answer<'a, Planned>,
    /// The rights that every verb needs which changes a subject.
    pub rights: &'static [Right],
}

/// The future that a function of a kind returns.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, SubjectError>>;

/// The revisions of a subject. Each has the content that a diff compares.
pub type Found = Revisions<Content>;

/// A verb on one subject, as the user gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub subject: SubjectRef,
    pub verb: Verb,
}

/// A verb on a subject, with the arguments of the verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Publish the content of an older revision again.
    Rollback {
        /// The revision to restore. None restores the default of the kind, such as the last good revision.
        to: Option<i64>,
        /// Whether the rollback also places a hold.
        hold: bool,
        /// Whether the user accepts that a GitOps tool may revert the rollback.
        force: bool,
    },
    /// Place a hold.
    Pin {
        until: Option<Timestamp>,
        /// Whether the pin also pauses the rollouts of the subject.
        freeze: bool,
    },
    /// Remove a hold.
    Unpin {
        /// The id of the hold to remove; None removes the only hold of the subject.
        hold: Option<String>,
    },
    /// Reverse the last action that bowline made on the subject.
    Undo,
    /// Mark a revision bad, so that no rollback restores it, or good again.
    Mark { revision: i64, verdict: Verdict },
}

/// The content of a revision, for lists and diffs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Content {
    /// A short text about the content for the user, such as the images.
    pub label: String,
    /// The objects of the content, which a diff compares.
    #[serde(skip)]
    pub objects: Vec<Value>,
}

/// A plan, with the notes and the objects that a front end shows with it.
#[derive(Clone, Debug)]
pub struct Planned {
    pub plan: Plan,
    /// Texts about the plan that the front end shows to the user.
    pub notes: Vec<String>,
    /// The line that says where bowline records the change; None if it writes an AuditEntry.
    pub record: Option<String>,
    /// The objects of each change before and after the change.
    pub objects: Vec<[Value; 2]>,
}

/// The reason why a command on a subject fails.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The subject does not exist.
    #[error("{subject} does not exist in namespace {namespace}")]
    Missing {
        /// The subject that does not exist, written as on the command line: `deploy/web`.
        subject: String,
        /// The namespace in which the subject does not exist.
        namespace: String,
    },
    /// A rule of the planner refuses the command.
    #[error("{why}")]
    Refused {
        /// The reason why the rule refuses the command.
        why: String,
        /// The next step for the user: a bowline command without the flags that select the target. None if there is
        /// none.
        hint: Option<String>,
    },
    /// The server denies the user the planned change. Contains the message of the server.
    #[error("{0}")]
    Denied(String),
    /// The requested revision does not exist or is unknown.
    #[error(transparent)]
    Revision(#[from] NoRevision),
    /// A request to the server failed.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

impl SubjectError {
    /// Creates the error for a command that a rule refuses. `why` is the reason, and `hint` the next step for the
    /// user.
    pub fn refused(why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Refused {
            why: why.into(),
            hint: Some(hint.into()),
        }
    }
}
