//! The requests of the UI to the runner and to the event loop, and the answers to them.
//!
//! Effects are data: `update` returns them, the runner performs them in the background, and a test can inspect them.
//! A request that gets an answer carries a ticket. If the UI sends a newer request for the same data, the model
//! ignores the answer to the older one.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use crate::api::bowline::audit::AuditEntry;
use crate::engine::audit::Verification;
use crate::engine::diff::Diff;
use crate::engine::revisions::Revisions;
use crate::git::State;
use crate::gitops::propose::{Proposal, Pushed};
use crate::gitops::tree::LeftOutPin;
use crate::subjects::release_pin::revisions::Pinned;
use crate::subjects::release_pin::rules::Refusal;
use crate::subjects::service::{self, Command, Confirmed, PlannedCommand};
use crate::text::quoted;

/// The number of a request. The answer carries the same number, so that the UI can find the request.
pub type Ticket = u64;

/// A request of the UI to the runner or to the event loop.
#[derive(Debug)]
pub enum Effect {
    Quit,
    /// Suspend the program until the shell continues it.
    Suspend,
    /// Draw every cell of the terminal again.
    Redraw,
    /// Copy this text to the user's clipboard.
    Copy(String),
    /// Make a plan for this command, then compute the diffs that the plan causes.
    Plan(Ticket, Box<Command>),
    Apply(Ticket, Box<Confirmed>),
    /// Push the branch that receives the commits of bowline. The text is the name of the remote; None for the default
    /// remote of the branch.
    Push(Ticket, Option<String>),
    /// Cancel the request with this ticket. A request that reads stops at once; a request that applies a plan stops
    /// before the next object.
    Cancel(Ticket),
    /// Read the revisions of the ReleasePin of this cell.
    Revisions(Ticket, CellKey),
    Compare(Ticket, Box<Comparison>),
    /// Read the audit trail, and verify that nobody rewrote it.
    Record(Ticket),
    /// Ask the server in which of these environments the user is allowed to change ReleasePins.
    Rights(Ticket, Vec<String>),
    /// List the namespaces that the user can switch to.
    Namespaces(Ticket),
    /// Read an object, and return it as YAML.
    Describe(Ticket, Object),
    /// Write a text to a new file at this path.
    Export(Ticket, PathBuf, String),
    /// Connect to another context or namespace in the background.
    Connect(Ticket, Destination),
    /// Watch the newly connected target from now on, because the model has already switched to it.
    Switch,
    /// Load and use the theme with this name.
    Theme(String),
    /// Allow writes to a protected context for this duration; zero ends the permission at once.
    Arm(std::time::Duration),
}

/// A component in an environment: a cell of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    pub component: Arc<str>,
    pub environment: Arc<str>,
}

impl CellKey {
    pub fn new(component: &str, environment: &str) -> Self {
        Self {
            component: component.into(),
            environment: environment.into(),
        }
    }
}

/// A comparison that the user requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub what: Compared,
    /// Whether the comparison includes noise: fields that only servers and controllers write.
    pub noise: bool,
}

/// The two sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The manifests of one component in two environments.
    Environments {
        component: String,
        from: String,
        to: String,
    },
    /// The manifests of two revisions of one ReleasePin.
    Revisions {
        /// The cell of the ReleasePin.
        place: CellKey,
        from: i64,
        to: i64,
    },
    Releases {
        from: String,
        to: String,
    },
    /// The desired manifests and the live objects of a cell.
    Live(CellKey),
}

impl Compared {
    /// Returns the `bowline diff` command line that makes this comparison.
    pub fn command_line(&self) -> String {
        let number = |number: &i64| number.to_string();
        let words: Vec<String> = match self {
            Self::Environments {
                component,
                from,
                to,
            } => vec![
                component.clone(),
                "--from".to_owned(),
                from.clone(),
                "--to".to_owned(),
                to.clone(),
            ],
            Self::Revisions { place, from, to } if place.component.contains('/') => vec![
                place.component.to_string(),
                "--from".to_owned(),
                number(from),
                "--to".to_owned(),
                number(to),
            ],
            Self::Revisions { place, from, to } => vec![
                place.component.to_string(),
                "--environment".to_owned(),
                place.environment.to_string(),
                "--from-revision".to_owned(),
                number(from),
                "--to-revision".to_owned(),
                number(to),
            ],
            Self::Releases { from, to } => vec!["--release".to_owned(), from.clone(), to.clone()],
            Self::Live(place) => vec![
                place.component.to_string(),
                "--environment".to_owned(),
                place.environment.to_string(),
                "--live".to_owned(),
            ],
        };
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!("bowline diff {}", words.join(" "))
    }

    /// Returns the cell of the right (newer) side; None if two releases are compared.
    pub fn place(&self) -> Option<CellKey> {
        match self {
            Self::Environments { component, to, .. } => Some(CellKey::new(component, to)),
            Self::Revisions { place, .. } | Self::Live(place) => Some(place.clone()),
            Self::Releases { .. } => None,
        }
    }
}

/// An object that the describe screen shows as text, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    Release(String),
    Pin(String),
    Snapshot(String),
    Entry(String),
}

/// The context and the namespace to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// A context of the kubeconfig; None for the current context.
    pub context: Option<String>,
    /// A namespace; None for the default namespace of the context.
    pub namespace: Option<String>,
}

impl Destination {
    /// Describes the destination for messages.
    pub fn words(&self) -> String {
        match (&self.context, &self.namespace) {
            (Some(context), _) => format!("context {context}"),
            (None, Some(namespace)) => format!("namespace {namespace}"),
            (None, None) => "the same target".to_owned(),
        }
    }
}

/// The answer of the runner to a request.
#[derive(Debug)]
pub enum Answer {
    /// The finished plan, or the reason why there is no plan.
    Planned(Result<Box<Planned>, Refused>),
    /// The diffs that the plan causes, or the error from computing the diffs.
    Shown(Result<Previews, String>),
    /// The result of applying a plan, or the reason why bowline applied nothing.
    Applied(Result<service::Outcome, Refused>),
    Revisions(Result<Box<Revisions<Pinned>>, String>),
    Compared(Result<Box<Compare>, String>),
    Record(Result<Box<Record>, String>),
    /// By environment: Ok if the user is allowed to change ReleasePins there, otherwise the reason why not.
    Rights(BTreeMap<String, Result<(), String>>),
    /// The kinds of workloads that the user may not change, each with the reason.
    Lacking(BTreeMap<&'static str, String>),
    Namespaces(Result<Vec<String>, String>),
    /// The text of an object, or the error from reading it.
    Described(Result<String, String>),
    /// The path of the written file, or the error from writing it.
    Exported(Result<PathBuf, String>),
    Pushed(Result<Pushed, Refused>),
    /// The state of the work tree; sent only if the target is a repository.
    WorkTree(Box<WorkTree>),
}

/// A finished plan, and the files that it changes if the target is a repository.
#[derive(Clone, Debug)]
pub struct Planned {
    pub prepared: Box<PlannedCommand>,
    /// The files that the plan changes in the repository; None if the target is a server.
    pub files: Option<Arc<Proposal>>,
}

impl From<PlannedCommand> for Planned {
    fn from(prepared: PlannedCommand) -> Self {
        Self {
            prepared: Box::new(prepared),
            files: None,
        }
    }
}

/// The state of the work tree of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkTree {
    /// The branch, its distance from the upstream, the uncommitted files, and whether a merge or
    /// rebase is unfinished.
    pub state: State,
    /// The names of the remotes.
    pub remotes: Vec<String>,
    /// The ReleasePins that bowline does not know, because a sparse checkout leaves them out or because bowline
    /// cannot read them.
    pub left_out: Vec<LeftOutPin>,
    /// Whether the repository contains no object of bowline.
    pub plain: bool,
    /// The error from reading the cluster that belongs to the repository. None if there was no error, or if the
    /// repository has no such cluster.
    pub cluster_trouble: Option<String>,
}

/// The reasons why bowline made no plan, with hints for the user.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refused {
    pub why: Vec<String>,
    /// The rules that the requested action violates.
    pub refusals: Vec<Refusal>,
    /// Further hints for the user, which belong to none of the violated rules.
    pub hints: Vec<String>,
    /// Whether the user can continue by choosing the revision of a rollback.
    pub chooses_revision: bool,
}

/// The diffs that a plan causes in its environments.
#[derive(Clone, Debug)]
pub struct Previews {
    /// The plan, with the facts that bowline read to compute the diffs.
    pub prepared: Box<PlannedCommand>,
    /// The diff of each change of the plan, in the order of the changes; None if a change makes no difference.
    pub diffs: Vec<Option<Diff>>,
}

/// Two sides of a comparison, and their differences.
#[derive(Clone, Debug)]
pub struct Compare {
    pub before: Half,
    pub after: Half,
    /// The differences, with the full text of each object that differs.
    pub diff: Diff,
    /// Warnings and remarks for the user from reading the two sides.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    pub what: String,
    /// The time at which bowline read this side of the comparison.
    pub read: Timestamp,
}

/// The audit trail and the result of its verification.
#[derive(Clone, Debug)]
pub struct Record {
    /// All audit entries of the namespace.
    pub entries: Vec<AuditEntry>,
    /// The result of the verification: whether somebody rewrote an entry.
    pub verdict: Verification,
}
