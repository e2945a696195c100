//! What a commit is about to do to the work tree, written down before it does it.
//!
//! No system renames several files at once. Whoever is killed in between leaves a note in git's directory;
//! the next one who wants to commit puts back what was not committed, or finds that it was. A file that
//! somebody has changed since is left alone, and said.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::arguments::{Arguments, is_object_id, pathspecs};
use super::{GitError, WorkTree};

/// What is about to be done.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) operation: String,
    pub(super) subject: String,
    pub(super) head: Option<String>,
    pub(super) files: Vec<Noted>,
}

/// A file that is about to change.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Noted {
    pub(super) path: String,
    /// Whether it was not there before.
    pub(super) created: bool,
    /// The hash of what is about to stand there; None where it is about to go.
    pub(super) after: Option<String>,
}

/// What became of a commit that was interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// The commit was made.
    Committed {
        /// Its subject.
        subject: String,
    },
    /// It was not; these files were put back, and those were changed by somebody since.
    PutBack {
        /// Its subject.
        subject: String,
        /// How many files were put back.
        files: usize,
        /// The files that somebody changed, which were left alone.
        left: Vec<String>,
    },
    /// Somebody has committed something else since; nothing was touched.
    Overtaken {
        /// Its subject.
        subject: String,
    },
}

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Committed { subject } => {
                write!(f, "\"{subject}\" was interrupted after its commit was made")
            }
            Self::PutBack {
                subject,
                files,
                left,
            } => {
                write!(
                    f,
                    "\"{subject}\" was interrupted before its commit: {files} files were put back"
                )?;
                match left.is_empty() {
                    true => Ok(()),
                    false => write!(
                        f,
                        "; these files changed afterwards and were not touched: {}",
                        left.join(", ")
                    ),
                }
            }
            Self::Overtaken { subject } => write!(
                f,
                "\"{subject}\" was interrupted, and newer commits exist: see git status"
            ),
        }
    }
}

pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl WorkTree {
    /// Returns the directory for what bowline notes beside git.
    pub(super) fn notes(&self) -> PathBuf {
        self.git_dir().join("bowline")
    }

    fn journal_file(&self) -> PathBuf {
        self.notes().join("journal.json")
    }

    /// Says whether an action was interrupted in this work tree, and which.
    pub fn interrupted(&self) -> Option<String> {
        self.journal().map(|journal| journal.subject)
    }

    fn journal(&self) -> Option<Journal> {
        let text = std::fs::read(self.journal_file()).ok()?;
        serde_json::from_slice(&text).ok()
    }

    pub(super) fn write_journal(&self, journal: &Journal) -> Result<(), GitError> {
        let text = serde_json::to_vec(journal).expect("BUG: a journal is JSON");
        self.write_private(&self.journal_file(), &text)
    }

    pub(super) fn end_journal(&self) -> Result<(), GitError> {
        let file = self.journal_file();
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(GitError::File { file, error })
            }
            _ => Ok(()),
        }
    }

    /// Finishes or undoes what was interrupted; the caller holds the lock.
    pub(super) fn recover(&self) -> Result<Option<Interrupted>, GitError> {
        let Some(journal) = self.journal() else {
            // What was cut off while it was written announced nothing yet.
            self.end_journal()?;
            return Ok(None);
        };
        let head = self.commit_of("HEAD")?;
        let subject = journal.subject.clone();
        let became = if head == journal.head {
            let (files, left) = self.put_back(&journal)?;
            Interrupted::PutBack {
                subject,
                files,
                left,
            }
        } else if self.is_made(&journal)? {
            Interrupted::Committed { subject }
        } else {
            Interrupted::Overtaken { subject }
        };
        self.end_journal()?;
        Ok(Some(became))
    }

    /// Tells whether a commit of the operation is among those that came since.
    pub(super) fn is_made(&self, journal: &Journal) -> Result<bool, GitError> {
        let head = journal.head.as_deref().filter(|head| is_object_id(head));
        let commits = self.log("HEAD", head)?;
        let id = journal.operation.as_str();
        Ok(commits.iter().any(|commit| {
            let mut trailers = commit.trailers().into_iter();
            trailers.any(|(_, value)| value == id)
        }))
    }

    /// Puts back what is as the journal says it would be.
    pub(super) fn put_back(&self, journal: &Journal) -> Result<(usize, Vec<String>), GitError> {
        let (mut restored, mut left) = (Vec::new(), Vec::new());
        let mut removed = Vec::new();
        let dirty = self.state()?.dirty;
        for noted in &journal.files {
            let there = self.noted_now(noted)?;
            match (there == noted.after, noted.created) {
                (true, true) if noted.after.is_some() => removed.push(noted.path.as_str()),
                (true, _) => restored.push(noted.path.as_str()),
                // It was not begun with, or it is somebody else's by now.
                (false, true) if there.is_none() => removed.push(noted.path.as_str()),
                (false, true) => left.push(noted.path.clone()),
                (false, false) if dirty.contains(&noted.path) => left.push(noted.path.clone()),
                (false, false) => {}
            }
        }
        let stdin = |paths: &[&str]| pathspecs(paths.iter().copied());
        if !restored.is_empty() {
            let restore = Arguments::plain("restore", ["--source=HEAD", "--staged", "--worktree"]);
            self.on_paths(restore, &stdin(&restored))?;
        }
        if !removed.is_empty() {
            self.forget(&removed)?;
            for path in &removed {
                let file = self.root().join(path);
                match std::fs::remove_file(&file) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(GitError::File { file, error });
                    }
                    _ => {}
                }
            }
        }
        Ok((restored.len() + removed.len(), left))
    }

    /// Returns the hash of what a file is now; None where it is not there.
    fn noted_now(&self, noted: &Noted) -> Result<Option<String>, GitError> {
        let file = self.inside(&noted.path)?;
        Ok(std::fs::read(file).ok().map(|bytes| hash(&bytes)))
    }

    /// Tells whether a file is as the journal says that it is about to be.
    pub(super) fn is_as_noted(&self, noted: &Noted) -> Result<bool, GitError> {
        Ok(self.noted_now(noted)? == noted.after)
    }

    /// Takes files out of the index; on disk they stay as they are.
    pub(super) fn forget(&self, paths: &[&str]) -> Result<(), GitError> {
        let remove = Arguments::plain("rm", ["--cached", "--force", "--quiet", "--ignore-unmatch"]);
        let paths = pathspecs(paths.iter().copied());
        self.on_paths(remove, &paths).map(drop)
    }
}
