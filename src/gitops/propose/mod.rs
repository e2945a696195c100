//! A proposed commit: the edits of files, the message, and the facts that must be true on the branch.
//!
//! bowline shows a proposal to the user before it writes anything. It makes the commit only if the files are
//! unchanged since the edits were computed and all facts are still true. Only [`Commits`] makes commits.

mod commits;
mod message;
mod objects;

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use similar::TextDiff;

use super::facts::CommitFacts;
use super::tree::{EditsError, blob_limits, mean_the_same};
use crate::git::commit::{CommitError, FileEdit, Wanted};

pub use commits::{BeforePlan, Commits, Committed, NotCommitted, Pushed};
pub use message::Message;
pub use objects::{NewObject, ObjectEdits};

/// A planned commit that bowline has not made yet.
#[derive(Clone, Debug)]
pub struct Proposal {
    pub operation: String,
    /// The commit message with its trailers.
    pub message: String,
    /// The files that the commit changes, each with its content before and after.
    pub edits: Vec<FileEdit>,
    /// The facts that must be true on the branch of the commit.
    pub facts: CommitFacts,
    pub warnings: Vec<String>,
}

/// The reason why a plan cannot be converted to a commit.
#[derive(Debug, thiserror::Error)]
pub enum ProposeError {
    /// The edits of a file cannot be computed.
    #[error(transparent)]
    Edits(#[from] EditsError),
    /// No file contains an object that the plan changes. Contains the name of the object.
    #[error("no file of the repository contains {0}")]
    NoFile(String),
    /// Some files cannot be parsed, so they may name releases that gc would remove. Contains the problems with these
    /// files.
    #[error("gc cannot know which releases some files name, so it removes nothing:\n{}", .0.join("\n"))]
    Unread(Vec<String>),
}

impl ProposeError {
    /// Returns the next step for the user; None if there is none.
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

    /// Returns the edits of the commit as a patch. For a removed file, the patch shows only the file name.
    pub fn diff(&self) -> String {
        self.edits.iter().map(patch).collect()
    }

    /// Returns the edits of the commit as JSON.
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

    /// Returns an error if a file has changed on disk since the user confirmed the proposal `shown`. If `shown` is
    /// None, returns no error.
    pub fn check_shown(&self, shown: Option<&Proposal>) -> Result<(), NotCommitted> {
        match shown.and_then(|shown| self.differs_from(shown)) {
            None => Ok(()),
            Some(path) => {
                let path = path.to_owned();
                Err(CommitError::Changed { path }.into())
            }
        }
    }

    /// Returns the path of the first file whose content on disk was another one for the proposal `shown`. None if all
    /// contents are the same.
    fn differs_from(&self, shown: &Proposal) -> Option<&str> {
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
