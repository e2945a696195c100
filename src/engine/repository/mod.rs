//! Actions on a repository: the same plans, published as one commit.
//!
//! On a cluster a pin moves by compare-and-swap and its AuditEntry follows; here the commit is both. What a
//! plan wants becomes edits of files, which can be looked at before anything is written; the commit is made
//! only if every file is as it was then and every fact that the plan rests on still holds.

mod check;
mod message;
mod propose;
mod sources;
mod verify;

#[cfg(test)]
mod tests;

use similar::TextDiff;

use crate::connect::Repository;
use crate::embedded::tree::{EditsError, TreeError};
use crate::git::commit::{CommitError, FileEdit, Made, Wanted};

pub use check::{Checked, Promotion, check};
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
    #[error("{0} lies in no file of the repository")]
    NoFile(String),
}

/// Why no commit was made.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// Git, or the state of the work tree, does not let it.
    #[error(transparent)]
    Commit(#[from] CommitError),
    /// The files could not be read afterwards.
    #[error("the commit was made, and then: {0}")]
    After(#[from] TreeError),
    /// The work was given up while the program ends.
    #[error("interrupted: {0}")]
    Interrupted(String),
}

impl Proposal {
    /// Returns the first line of the message.
    pub fn subject(&self) -> &str {
        self.message.lines().next().unwrap_or_default()
    }

    /// Shows what changes in the files, as a patch; files that go are only named.
    pub fn diff(&self) -> String {
        let mut out = String::new();
        for edit in &self.edits {
            let side = |bytes: &Option<Vec<u8>>| {
                let bytes = bytes.as_deref().unwrap_or_default();
                String::from_utf8_lossy(bytes).into_owned()
            };
            let name = |there: bool, prefix: &str| match there {
                true => format!("{prefix}/{}", edit.path),
                false => "/dev/null".to_owned(),
            };
            if edit.after.is_none() {
                out += &format!("removed {}\n", edit.path);
                continue;
            }
            let (before, after) = (side(&edit.before), side(&edit.after));
            let diff = TextDiff::from_lines(&before, &after);
            let mut shown = diff.unified_diff();
            let header = (name(edit.before.is_some(), "a"), name(true, "b"));
            out += &shown.header(&header.0, &header.1).to_string();
        }
        out
    }
}

/// Makes the commit, and serves what the files say then. Says too what an interrupted commit had left.
pub async fn publish(
    repository: &Repository,
    proposal: &Proposal,
    branch: Option<&str>,
    say: &mut dyn FnMut(String),
) -> Result<Made, PublishError> {
    let (tree, own, branch) = (
        repository.tree.clone(),
        proposal.clone(),
        branch.map(str::to_owned),
    );
    let committing = tokio::task::spawn_blocking(move || {
        let (turn, interrupted) = tree.work().turn()?;
        let made = turn.commit(&Wanted {
            edits: &own.edits,
            message: &own.message,
            operation: &own.operation,
            branch: branch.as_deref(),
        });
        Ok::<_, CommitError>((made, interrupted))
    });
    let committed = committing.await;
    let committed = committed.map_err(|error| PublishError::Interrupted(error.to_string()))?;
    let (made, interrupted) = committed?;
    if let Some(interrupted) = interrupted {
        say(interrupted.to_string());
    }
    let made = made?;
    repository.sync().await?;
    Ok(made)
}
