//! What the UI asks of the world outside, and what comes back.
//!
//! Effects are data: `update` returns them, the runner carries them out beside the keyboard, and a test can
//! look at them. Each that is answered has a ticket; an answer to a ticket that nobody waits for any more
//! is dropped, so that of many requests for the same thing only the newest counts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;

use super::order::{Order, Prepared, quoted};
use crate::api::audit::AuditEntry;
use crate::embedded::tree::LeftOutPin;
use crate::engine::apply::{Applied, ApplyError};
use crate::engine::audit::Verdict;
use crate::engine::collect::Collected;
use crate::engine::diff::Diff;
use crate::engine::repository::{Committed, Proposal, Pushed};
use crate::engine::revisions::{Pinned, Revisions};
use crate::engine::rules::Refusal;
use crate::engine::world::Key;
use crate::git::State;

/// Names a request, so that its answer finds who asked.
pub type Ticket = u64;

/// Something that the UI wants done.
#[derive(Debug)]
pub enum Effect {
    /// Leave the program.
    Quit,
    /// Go to sleep until the shell wakes us.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// Put text on the clipboard of whoever sits at the terminal.
    Copy(String),
    /// Plan something, and then show what it changes.
    Plan(Ticket, Box<Order>),
    /// Carry out what was planned and confirmed.
    Apply(Ticket, Box<Confirmed>),
    /// Push the branch that commits go to, to its own remote or to the one that is named.
    Push(Ticket, Option<String>),
    /// Stop what a ticket asked for, between two of its steps.
    Cancel(Ticket),
    /// Read the revisions of a pin.
    Revisions(Ticket, Place),
    /// Compare.
    Compare(Ticket, Box<Comparison>),
    /// Read what is on record, and check it.
    Record(Ticket),
    /// Ask which environments we may move pins in.
    Rights(Ticket, Vec<String>),
    /// List the namespaces that one can go to.
    Namespaces(Ticket),
    /// Read an object as text.
    Describe(Ticket, Object),
    /// Write a file.
    Export(Ticket, PathBuf, String),
    /// Go to another context or namespace.
    Connect(Ticket, Destination),
    /// Show the target that was connected to; the model shows it already.
    Switch,
    /// Draw in the colours of a theme.
    Theme(String),
    /// Let writes pass on a protected context, for some time.
    Arm(std::time::Duration),
}

/// A component in an environment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The component.
    pub component: Arc<str>,
    /// The environment.
    pub environment: Arc<str>,
}

impl Place {
    /// Names a place.
    pub fn new(component: &str, environment: &str) -> Self {
        Self {
            component: component.into(),
            environment: environment.into(),
        }
    }
}

/// What is compared with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    /// What is asked for.
    pub what: Compared,
    /// Whether noise is shown.
    pub noise: bool,
}

/// The two sides of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// What two environments have of a component.
    Environments {
        /// The component.
        component: String,
        /// The one.
        from: String,
        /// The other.
        to: String,
    },
    /// What two revisions of a pin made.
    Revisions {
        /// Where.
        place: Place,
        /// The older.
        from: i64,
        /// The newer.
        to: i64,
    },
    /// What two releases are made of.
    Releases {
        /// The one.
        from: String,
        /// The other.
        to: String,
    },
    /// What should be there, with what is there.
    Live(Place),
}

impl Compared {
    /// Returns the command line that compares the same.
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

    /// Returns where the newer side is, where that is one place.
    pub fn place(&self) -> Option<Place> {
        match self {
            Self::Environments { component, to, .. } => Some(Place::new(component, to)),
            Self::Revisions { place, .. } | Self::Live(place) => Some(place.clone()),
            Self::Releases { .. } => None,
        }
    }
}

/// An object that is looked into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Object {
    /// A release.
    Release(String),
    /// A pin.
    Pin(String),
    /// A snapshot.
    Snapshot(String),
    /// An audit entry.
    Entry(String),
}

/// Where to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// A context of the kubeconfig; the one that we are in where it is absent.
    pub context: Option<String>,
    /// A namespace; that of the context where it is absent.
    pub namespace: Option<String>,
}

impl Destination {
    /// Names the destination in words.
    pub fn words(&self) -> String {
        match (&self.context, &self.namespace) {
            (Some(context), _) => format!("context {context}"),
            (None, Some(namespace)) => format!("namespace {namespace}"),
            (None, None) => "the same place".to_owned(),
        }
    }
}

/// What a request brought.
#[derive(Debug)]
pub enum Answer {
    /// A plan, or why there is none.
    Planned(Result<Box<Planned>, Refused>),
    /// What the plan changes in its environments, item by item.
    Shown(Result<Previews, String>),
    /// What became of it.
    Applied(Became),
    /// The revisions of a pin.
    Revisions(Result<Box<Revisions<Pinned>>, String>),
    /// A comparison.
    Compared(Result<Box<Compare>, String>),
    /// What is on record.
    Record(Result<Box<Record>, String>),
    /// Which environments we may move pins in; why not, where not.
    Rights(BTreeMap<String, Result<(), String>>),
    /// The namespaces that one can go to.
    Namespaces(Result<Vec<String>, String>),
    /// An object as text.
    Described(Result<String, String>),
    /// A file was written, or not.
    Exported(Result<PathBuf, String>),
    /// A branch was pushed, or why not.
    Pushed(Result<Pushed, Refused>),
    /// Where the work tree of a repository stands.
    Stands(Box<Stands>),
}

/// A plan, and what it changes in the files where the target is a repository.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The plan.
    pub prepared: Box<Prepared>,
    /// The files.
    pub files: Option<Arc<Proposal>>,
}

impl From<Prepared> for Planned {
    fn from(prepared: Prepared) -> Self {
        Self {
            prepared: Box::new(prepared),
            files: None,
        }
    }
}

/// A plan that a person has confirmed, as it was shown.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The plan.
    pub prepared: Box<Prepared>,
    /// Why.
    pub reason: Option<String>,
    /// The files that were shown with it.
    pub files: Option<Arc<Proposal>>,
}

/// Where the work tree of a repository stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stands {
    /// The branch, how it compares with its upstream, what is changed and what is under way.
    pub state: State,
    /// What one can push to.
    pub remotes: Vec<String>,
    /// The ReleasePins that a sparse checkout leaves out.
    pub left_out: Vec<LeftOutPin>,
    /// Why what the cluster beside it says is not known; `None` where it is, or there is no cluster.
    pub cluster_trouble: Option<String>,
}

/// Why there is no plan, and what to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refused {
    /// Why.
    pub why: Vec<String>,
    /// The rules that refuse it; their hints name keys.
    pub refusals: Vec<Refusal>,
    /// Hints that no refusal gives.
    pub hints: Vec<String>,
    /// Whether a person can go on by choosing a revision.
    pub chooses_revision: bool,
}

/// What a plan changes in its environments.
#[derive(Clone, Debug)]
pub struct Previews {
    /// The plan with what was learned on the way.
    pub prepared: Box<Prepared>,
    /// The difference of each item; None where nothing changes there.
    pub diffs: Vec<Option<Diff>>,
}

/// What became of a plan.
#[derive(Debug)]
pub enum Became {
    /// Pins were moved or held, one result each.
    Moved(Vec<Result<Applied, ApplyError>>),
    /// A release was marked; a note where its record follows later.
    Marked(Result<Option<String>, String>),
    /// What was collected, one result each.
    Collected {
        /// By the name of the object.
        results: Vec<(Key, Collected)>,
        /// Why it ended before its end, if it did.
        ended: Option<String>,
    },
    /// It was committed.
    Committed(Box<Committed>),
    /// It could not be begun.
    Failed(Refused),
}

/// Two sides and how they differ.
#[derive(Clone, Debug)]
pub struct Compare {
    /// The left side.
    pub before: Half,
    /// The right side.
    pub after: Half,
    /// How they differ, with the whole of each object that does.
    pub diff: Diff,
    /// What was noticed on the way.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    /// What it is.
    pub what: String,
    /// When it was read.
    pub read: Timestamp,
}

/// What is on record, and whether it is whole.
#[derive(Clone, Debug)]
pub struct Record {
    /// Every entry.
    pub entries: Vec<AuditEntry>,
    /// Whether anybody rewrote it.
    pub verdict: Verdict,
}
