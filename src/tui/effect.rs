//! The requests of the UI to the runner and the event loop, and the answers to them.
//!
//! Effects are data: `update` returns them, the runner performs them in the background, and a test can
//! inspect them. A request that gets an answer has a ticket. The model drops an answer whose ticket nobody
//! waits for any more, so of several requests for the same data only the newest one is used.

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

/// The number of a request; its answer carries the same number.
pub type Ticket = u64;

/// A request of the UI to the outside.
#[derive(Debug)]
pub enum Effect {
    /// Leave the program.
    Quit,
    /// Suspend the program until the shell resumes it.
    Suspend,
    /// Draw the whole screen again.
    Redraw,
    /// Put text on the user's clipboard.
    Copy(String),
    /// Make a plan, then compute the differences that it causes.
    Plan(Ticket, Box<Command>),
    /// Apply a confirmed plan.
    Apply(Ticket, Box<Confirmed>),
    /// Push the branch that receives the commits: to the named remote, or else to the remote of the branch.
    Push(Ticket, Option<String>),
    /// Cancel the request with this ticket: reading stops at once, applying a plan stops before the next object.
    Cancel(Ticket),
    /// Read the revisions of a ReleasePin.
    Revisions(Ticket, CellKey),
    /// Compute a comparison.
    Compare(Ticket, Box<Comparison>),
    /// Read the audit trail and verify it.
    Record(Ticket),
    /// Ask the server in which environments the user may change ReleasePins.
    Rights(Ticket, Vec<String>),
    /// List the namespaces that the user can switch to.
    Namespaces(Ticket),
    /// Read an object as text.
    Describe(Ticket, Object),
    /// Write a text to a new file.
    Export(Ticket, PathBuf, String),
    /// Connect to another context or namespace.
    Connect(Ticket, Destination),
    /// Switch to the target that bowline has connected to. The model shows this target already.
    Switch,
    /// Use another theme.
    Theme(String),
    /// Allow writes on a protected context for this duration; zero ends the permission.
    Arm(std::time::Duration),
}

/// A component in an environment: a cell of the matrix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CellKey {
    /// The component.
    pub component: Arc<str>,
    /// The environment.
    pub environment: Arc<str>,
}

impl CellKey {
    /// Returns the cell of a component in an environment.
    pub fn new(component: &str, environment: &str) -> Self {
        Self {
            component: component.into(),
            environment: environment.into(),
        }
    }
}

/// A comparison that the user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// The two sides.
    pub what: Compared,
    /// Whether the comparison includes noise.
    pub noise: bool,
}

/// The two sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// The manifests of a component in two environments.
    Environments {
        /// The component.
        component: String,
        /// The environment of the left side.
        from: String,
        /// The environment of the right side.
        to: String,
    },
    /// The manifests of two revisions of a ReleasePin.
    Revisions {
        /// The component and its environment.
        place: CellKey,
        /// The older revision.
        from: i64,
        /// The newer revision.
        to: i64,
    },
    /// The contents of two releases.
    Releases {
        /// The release of the left side.
        from: String,
        /// The release of the right side.
        to: String,
    },
    /// The desired manifests and the live objects of a cell.
    Live(CellKey),
}

impl Compared {
    /// Returns the command line that makes the same comparison.
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

    /// Returns the cell of the newer side; None for two releases.
    pub fn place(&self) -> Option<CellKey> {
        match self {
            Self::Environments { component, to, .. } => Some(CellKey::new(component, to)),
            Self::Revisions { place, .. } | Self::Live(place) => Some(place.clone()),
            Self::Releases { .. } => None,
        }
    }
}

/// An object that a screen shows as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A release.
    Release(String),
    /// A ReleasePin.
    Pin(String),
    /// A snapshot.
    Snapshot(String),
    /// An audit entry.
    Entry(String),
}

/// The target to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// A context of the kubeconfig; None for the current one.
    pub context: Option<String>,
    /// A namespace; None for the namespace of the context.
    pub namespace: Option<String>,
}

impl Destination {
    /// Returns the destination in words.
    pub fn words(&self) -> String {
        match (&self.context, &self.namespace) {
            (Some(context), _) => format!("context {context}"),
            (None, Some(namespace)) => format!("namespace {namespace}"),
            (None, None) => "the same target".to_owned(),
        }
    }
}

/// The answer to a request.
#[derive(Debug)]
pub enum Answer {
    /// A plan, or the reason why there is none.
    Planned(Result<Box<Planned>, Refused>),
    /// The differences that the plan causes, one per change.
    Shown(Result<Previews, String>),
    /// The result of applying a plan, or the reason why nothing was applied.
    Applied(Result<service::Outcome, Refused>),
    /// The revisions of a ReleasePin.
    Revisions(Result<Box<Revisions<Pinned>>, String>),
    /// A comparison.
    Compared(Result<Box<Compare>, String>),
    /// The audit trail.
    Record(Result<Box<Record>, String>),
    /// The environments in which the user may change ReleasePins; the error is the reason why not.
    Rights(BTreeMap<String, Result<(), String>>),
    /// The namespaces that the user can switch to.
    Namespaces(Result<Vec<String>, String>),
    /// An object as text.
    Described(Result<String, String>),
    /// The path of the written file, or the error.
    Exported(Result<PathBuf, String>),
    /// The result of a push.
    Pushed(Result<Pushed, Refused>),
    /// The state of the work tree, if the target is a repository.
    WorkTree(Box<WorkTree>),
}

/// A plan, with the changed files if the target is a repository.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan of the command.
    pub prepared: Box<PlannedCommand>,
    /// The changed files; None if the target is a server.
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
    /// The branch, its distance from the upstream, the uncommitted files, and an unfinished merge or rebase.
    pub state: State,
    /// The remotes.
    pub remotes: Vec<String>,
    /// The ReleasePins that a sparse checkout leaves out.
    pub left_out: Vec<LeftOutPin>,
    /// Whether the repository has no object of bowline.
    pub plain: bool,
    /// The error from reading the cluster beside the repository; None if bowline read it, or if there is no
    /// cluster.
    pub cluster_trouble: Option<String>,
}

/// The reason why there is no plan, and hints.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refused {
    /// The reasons why there is no plan.
    pub why: Vec<String>,
    /// The rules that refuse the plan; their hints name keys.
    pub refusals: Vec<Refusal>,
    /// Hints that belong to no refusal.
    pub hints: Vec<String>,
    /// Whether the user can continue by choosing a revision.
    pub chooses_revision: bool,
}

/// The differences that a plan causes in its environments.
#[derive(Clone, Debug)]
pub struct Previews {
    /// The plan, with the facts that the comparison added.
    pub prepared: Box<PlannedCommand>,
    /// The difference of each change; None if the change makes no difference in its environment.
    pub diffs: Vec<Option<Diff>>,
}

/// Two sides and how they differ.
#[derive(Clone, Debug)]
pub struct Compare {
    /// The left side.
    pub before: Half,
    /// The right side.
    pub after: Half,
    /// The differences, with the full text of each object that differs.
    pub diff: Diff,
    /// Notes from reading the two sides.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    /// The title of the side.
    pub what: String,
    /// The time of the reading.
    pub read: Timestamp,
}

/// The audit trail and its verification.
#[derive(Clone, Debug)]
pub struct Record {
    /// All entries of the namespace.
    pub entries: Vec<AuditEntry>,
    /// The result of the verification: whether anybody rewrote an entry.
    pub verdict: Verification,
}
