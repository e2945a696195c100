//! Actions on a git repository: the same plans as on a cluster, published as one commit.
//!
//! On a cluster, bowline changes a ReleasePin by compare-and-swap and then writes an AuditEntry. In a
//! repository, the commit replaces both. bowline converts a plan to edits of files, and the front end shows
//! them. bowline commits only if no edited file has changed since then, and if every fact of the plan is
//! still true.

mod check;
mod commits;
mod content;
mod facts;
mod message;
mod propose;
mod sources;
mod verify;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use similar::TextDiff;

use crate::git::commit::{FileEdit, Wanted};
use crate::gitops::tree::{EditsError, blob_limits, mean_the_same};

pub use check::{Checked, Promotion, check};
pub use commits::{BeforePlan, Commits, Committed, NotCommitted, Pushed};
pub use content::Content;
pub use facts::{BrokenFact, CommitFacts};
pub use propose::{Collected, collection, marking, plan, release};
pub use sources::{NoReference, Sourced, references, sources, uncommitted};
pub use verify::verify;

/// A planned commit.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub operation: String,
    /// The commit message with its trailers.
    pub message: String,
    /// The edited files, before and after the commit.
    pub edits: Vec<FileEdit>,
    /// The facts that the branch of the commit must contain.
    pub facts: CommitFacts,
    pub warnings: Vec<String>,
}

/// The reason why a plan cannot be converted to a commit.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// A file cannot be edited.
    #[error(transparent)]
    Edits(#[from] EditsError),
    /// No file contains this object.
    #[error("no file of the repository contains {0}")]
    NoFile(String),
    /// These files cannot be parsed, so they may name releases that gc would remove.
    #[error("gc cannot know which releases some files name, so it removes nothing:\n{}", .0.join("\n"))]
    Unread(Vec<String>),
}

impl ProposeError {
    /// Returns the next step for the user, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Edits(error) => error.hint(),
            Self::NoFile(_) => None,
            Self::Unread(_) => Some("correct the files; list them: bowline check".to_owned()),
        }
    }
}

impl Proposal {
    /// Returns the subject line of the commit message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// Returns the edits as a patch. For a removed file, the patch has only its name.
    pub fn diff(&self) -> String {
        self.edits.iter().map(patch).collect()
    }

    /// Returns the edits as JSON.
    pub fn json(&self) -> Value {
        let file = |edit: &FileEdit| {
            let change = match (&edit.before, &edit.after) {
                (None, _) => "added",
                (_, None) => "removed",
                _ => "changed",
            };
            json!({"path": edit.path, "change": change, "diff": patch(edit)})
        };
        self.edits.iter().map(file).collect()
    }

    /// Returns the path of the first file that changed on disk between the proposals `shown` and `self`; None
    /// if none changed.
    pub fn differs_from(&self, shown: &Proposal) -> Option<&str> {
        let before = |edit: &FileEdit| {
            let same = shown.edits.iter().find(|known| known.path == edit.path);
            same.map(|known| known.before.clone())
        };
        let changed = self
            .edits
            .iter()
            .find(|edit| before(edit).as_ref() != Some(&edit.before));
        changed.map(|edit| edit.path.as_str())
    }

    fn wanted<'a>(&'a self, branch: Option<&'a str>) -> Wanted<'a> {
        Wanted {
            edits: &self.edits,
            message: &self.message,
            operation: &self.operation,
            branch,
            means_the_same: mean_the_same,
            limits: blob_limits(),
        }
    }
}

fn patch(edit: &FileEdit) -> String {
    if edit.after.is_none() {
        return format!("removed {}\n", edit.path);
    }
    let side = |bytes: &Option<Vec<u8>>| {
        let bytes = bytes.as_deref().unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    let (before, after) = (side(&edit.before), side(&edit.after));
    let old = match edit.before {
        Some(_) => format!("a/{}", edit.path),
        None => "/dev/null".to_owned(),
    };
    let diff = TextDiff::from_lines(&before, &after);
    let mut shown = diff.unified_diff();
    shown.header(&old, &format!("b/{}", edit.path)).to_string()
}
