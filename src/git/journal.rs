//! The journal of a commit: a file with the planned changes, which bowline writes before it changes the work tree.
//!
//! bowline needs the journal because no operating system can rename several files atomically. If bowline is killed,
//! the journal stays in git's directory. The next commit reads the journal: it restores the files, or finds that git
//! had made the interrupted commit. A file that a user has changed since is reported and not restored.

use std::fs::TryLockError;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::arguments::{Arguments, is_object_id, pathspecs};
use super::{GitError, WorkTree};
use crate::text;

/// The planned changes of the work tree for one commit, as they are in the journal file.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) operation: String,
    pub(super) subject: String,
    pub(super) head: Option<String>,
    pub(super) files: Vec<Noted>,
}

/// A file that the commit of the journal changes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Noted {
    pub(super) path: String,
    /// Whether the commit creates the file.
    pub(super) created: bool,
    /// The hash of the file's content after the commit; None if the commit deletes the file.
    pub(super) after: Option<String>,
}

/// The result of cleaning up after an interrupted commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interrupted {
    /// git had made the interrupted commit, so bowline restored no file.
    Committed { subject: String },
    /// git had not made the interrupted commit, so bowline restored the files.
    PutBack {
        subject: String,
        /// The number of restored files.
        files: usize,
        /// The files that bowline did not restore, because a user changed them after the interruption.
        left: Vec<String>,
    },
    /// A user has made another commit after the interruption, so bowline restored no file.
    Overtaken {
        /// The first line of the message of the interrupted commit.
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
                    "\"{subject}\" was interrupted before its commit: {files} files were restored"
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

/// An interrupted commit: bowline edited the files, but git did not make the commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The first line of the message of the interrupted commit.
    pub subject: String,
    /// The paths of the files that still contain the edits of the interrupted commit.
    pub paths: Vec<String>,
}

impl std::fmt::Display for Pending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "\"{}\" was interrupted before its commit, and its change is still in {}",
            self.subject,
            self.paths.join(", ")
        )
    }
}

impl Pending {
    /// Returns what the user can do about the interrupted commit.
    pub fn hint(&self) -> String {
        let paths: Vec<_> = self.paths.iter().map(|path| text::quoted(path)).collect();
        format!(
            "repeat the command without --dry-run and --readonly: it restores these files first; look at the change: git diff -- {}",
            paths.join(" ")
        )
    }
}

pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl WorkTree {
    /// Returns the directory `bowline` in git's directory, in which bowline keeps its journal and temporary files.
    pub(super) fn notes(&self) -> PathBuf {
        self.git_dir().join("bowline")
    }

    fn journal_file(&self) -> PathBuf {
        self.notes().join("journal.json")
    }

    /// Returns the first line of the message of the interrupted commit; None if no commit was interrupted.
    pub fn interrupted(&self) -> Option<String> {
        self.journal().map(|journal| journal.subject)
    }

    /// Returns the interrupted commit whose edits are in files and in no commit, without changing anything. None if
    /// no commit was interrupted, or if another process is committing now.
    pub fn pending(&self) -> Result<Option<Pending>, GitError> {
        let Some(journal) = self.journal() else {
            return Ok(None);
        };
        if let Ok(lock) = std::fs::File::open(self.notes().join("lock"))
            && matches!(lock.try_lock(), Err(TryLockError::WouldBlock))
        {
            return Ok(None);
        }
        if self.commit_of("HEAD")? != journal.head {
            return Ok(None);
        }
        let mut paths = Vec::new();
        for noted in &journal.files {
            if self.is_as_noted(noted)? {
                paths.push(noted.path.clone());
            }
        }
        let subject = journal.subject;
        Ok((!paths.is_empty()).then_some(Pending { subject, paths }))
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

    /// Cleans up after an interrupted commit: restores its files, unless git had made the commit. Returns None if no
    /// commit was interrupted. The caller must hold the exclusive right to commit (`Turn`).
    pub(super) fn recover(&self) -> Result<Option<Interrupted>, GitError> {
        let Some(journal) = self.journal() else {
            // An incomplete journal means that no file was changed, because bowline writes the whole journal before
            // it changes files.
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

    /// Returns whether the branch has the commit of the journal: a commit since `journal.head` that names the
    /// operation of the journal in a trailer.
    pub(super) fn is_made(&self, journal: &Journal) -> Result<bool, GitError> {
        let head = journal.head.as_deref().filter(|head| is_object_id(head));
        let commits = self.log("HEAD", head)?;
        let id = journal.operation.as_str();
        Ok(commits.iter().any(|commit| {
            let mut trailers = commit.trailers().into_iter();
            trailers.any(|(_, value)| value == id)
        }))
    }

    /// Restores the files of the journal that still have the planned content. Returns the number of restored files,
    /// and the paths of the files that a user has changed since.
    pub(super) fn put_back(&self, journal: &Journal) -> Result<(usize, Vec<String>), GitError> {
        let (mut restored, mut left) = (Vec::new(), Vec::new());
        let mut removed = Vec::new();
        let dirty = self.state()?.dirty;
        for noted in &journal.files {
            let there = self.noted_now(noted)?;
            match (there == noted.after, noted.created) {
                (true, true) if noted.after.is_some() => removed.push(noted.path.as_str()),
                (true, _) => restored.push(noted.path.as_str()),
                // bowline had not created this file when it was interrupted. So if the file exists, a user created
                // it.
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

    /// Returns the hash of the current content of a file of the journal; None if the file does not exist.
    fn noted_now(&self, noted: &Noted) -> Result<Option<String>, GitError> {
        let file = self.inside(&noted.path)?;
        Ok(std::fs::read(file).ok().map(|bytes| hash(&bytes)))
    }

    /// Returns whether a file of the journal still has the planned content.
    pub(super) fn is_as_noted(&self, noted: &Noted) -> Result<bool, GitError> {
        Ok(self.noted_now(noted)? == noted.after)
    }

    /// Removes files from git's index, but not from disk.
    pub(super) fn forget(&self, paths: &[&str]) -> Result<(), GitError> {
        let remove = Arguments::plain("rm", ["--cached", "--force", "--quiet", "--ignore-unmatch"]);
        let paths = pathspecs(paths.iter().copied());
        self.on_paths(remove, &paths).map(drop)
    }
}
