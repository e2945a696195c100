//! Actions on a repository: the same plans, published as one commit.
//!
//! On a cluster a pin moves by compare-and-swap and its AuditEntry follows; here the commit is both. What a
//! plan wants becomes edits of files, which can be looked at before anything is written; the commit is made
//! only if every file is as it was then and every fact that the plan rests on still holds.

mod check;
mod commits;
mod content;
mod grounds;
mod message;
mod propose;
mod sources;
mod verify;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use similar::TextDiff;

use crate::embedded::tree::{EditsError, mean_the_same};
use crate::git::commit::{FileEdit, Wanted};

pub use check::{Checked, Promotion, check};
pub use commits::{BeforePlan, Commits, Committed, NotCommitted, Pushed};
pub use content::Content;
pub use grounds::{Grounds, Unfounded};
pub use propose::{Collected, collection, marking, plan, release};
pub use sources::{NoReference, references, sources};
pub use verify::verify;

/// A commit that would be made.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The operation.
    pub operation: String,
    /// The message, trailers included.
    pub message: String,
    /// The files.
    pub edits: Vec<FileEdit>,
    /// What its branch has to have.
    pub grounds: Grounds,
    /// What the person should know.
    pub warnings: Vec<String>,
}

/// Why an action cannot be made a commit.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// A file does not let itself be edited.
    #[error(transparent)]
    Edits(#[from] EditsError),
    /// The object lies in no file.
    #[error("no file of the repository contains {0}")]
    NoFile(String),
    /// Files may name releases that bowline does not know of.
    #[error("gc cannot know which releases some files name, so it removes nothing:\n{}", .0.join("\n"))]
    Unread(Vec<String>),
}

impl ProposeError {
    /// Says what the person can do.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Edits(error) => error.hint(),
            Self::NoFile(_) => None,
            Self::Unread(_) => Some("correct the files; bowline check lists them"),
        }
    }
}

impl Proposal {
    /// Returns the first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// Shows what changes in the files, as a patch; files that go are only named.
    pub fn diff(&self) -> String {
        self.edits.iter().map(patch).collect()
    }

    /// Says the same for programs, file by file.
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

    /// Tells whether a file is not as it was when another proposal was made, and which.
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
