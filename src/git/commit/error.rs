//! Why a commit was not made, and what the person can do.

use std::path::PathBuf;

use crate::git::GitError;
use crate::text::quoted;

/// Why no commit was made. Nothing is left behind, unless the error says so.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// HEAD is detached.
    #[error("HEAD is detached: a commit would belong to no branch")]
    Detached,
    /// Something is under way.
    #[error("{0} is in progress")]
    UnderWay(String),
    /// A file that would be touched has changes that are not committed.
    #[error("{path} has changes that are not committed")]
    Dirty {
        /// Which.
        path: String,
    },
    /// A file that would be touched was never committed.
    #[error("{path} is not committed yet")]
    Untracked {
        /// Which.
        path: String,
    },
    /// Git does not see what a file that would be touched says.
    #[error("git ignores changes of {path} (skip-worktree or assume-unchanged is set)")]
    Hidden {
        /// Which.
        path: String,
    },
    /// A file has changed since the plan was made.
    #[error("{path} has changed since the plan was made")]
    Changed {
        /// Which.
        path: String,
    },
    /// Git is at work, or was killed at it.
    #[error("another git process is working here: {} exists", lock.display())]
    Busy {
        /// The file that says so.
        lock: PathBuf,
    },
    /// The branch has another state of the file than the one that was planned from.
    #[error("{path} on branch {branch} differs from the checked-out file")]
    Differs {
        /// The branch.
        branch: String,
        /// The file.
        path: String,
    },
    /// The branch is checked out somewhere else.
    #[error("branch {branch} is checked out in {place}")]
    CheckedOut {
        /// The branch.
        branch: String,
        /// Where.
        place: String,
    },
    /// The name is none for a branch.
    #[error("{0:?} is not a valid branch name")]
    NoBranchName(String),
    /// Git or one of its hooks refused the commit.
    #[error("git refused the commit; nothing was changed{}: {said}", but_for(.left, .new))]
    Refused {
        /// What they said.
        said: String,
        /// The files that a hook, or somebody, has changed meanwhile; they are left as they are.
        left: Vec<String>,
        /// New files that a hook, or somebody, has changed meanwhile; no commit has them.
        new: Vec<String>,
    },
    /// A hook or a filter changed the commit.
    #[error("a hook or a filter changed the commit: {what}; {}", became(.kept))]
    Altered {
        /// The differences, as text.
        what: String,
        /// The id of the commit.
        commit: String,
        /// The branch that still has it, and the commit that was there before; None where it was taken back.
        kept: Option<(String, Option<String>)>,
    },
    /// The commit was made and could not be read back.
    #[error("git made the commit, and then bowline could not read it back: {0}")]
    Unread(GitError),
    /// Git could not be asked.
    #[error(transparent)]
    Git(#[from] GitError),
}

fn became(kept: &Option<(String, Option<String>)>) -> String {
    match kept {
        None => "bowline took the commit back, and everything is as it was".to_owned(),
        Some((branch, _)) => format!("the commit is still on {branch}"),
    }
}

fn but_for(left: &[String], new: &[String]) -> String {
    let paths: Vec<&str> = left.iter().chain(new).map(String::as_str).collect();
    match paths.is_empty() {
        true => String::new(),
        false => format!(
            " except {}, which changed in the meantime",
            paths.join(", ")
        ),
    }
}

/// Writes paths as a shell reads them.
pub(in crate::git) fn words(paths: &[String]) -> String {
    let words: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
    words.join(" ")
}

impl CommitError {
    /// A refusal that left nothing behind.
    pub(in crate::git) fn refused(error: GitError) -> Self {
        match error {
            GitError::Refused { said, .. } => Self::Refused {
                said,
                left: Vec::new(),
                new: Vec::new(),
            },
            error => error.into(),
        }
    }

    /// Tells whether what was planned from is no more.
    pub fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::Changed { .. } | Self::Differs { .. } | Self::Busy { .. }
        )
    }

    /// Says what the person can do.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Detached => "git switch BRANCH first, or name one with --branch".to_owned(),
            Self::UnderWay(_) => "finish it or abort it first: git status says how".to_owned(),
            Self::Dirty { path } => {
                let path = quoted(path);
                format!(
                    "git diff HEAD -- {path} shows them; commit them, git stash them, or git restore --staged --worktree -- {path}"
                )
            }
            Self::Untracked { path } => {
                format!("git add -- {} and commit it first", quoted(path))
            }
            Self::Hidden { path } => {
                let path = quoted(path);
                format!(
                    "git update-index --no-skip-worktree --no-assume-unchanged -- {path}, and look at git diff -- {path}"
                )
            }
            Self::Altered { commit, kept, .. } => {
                let short = commit.get(..12).unwrap_or(commit);
                let back = match kept {
                    Some((_, Some(before))) => format!("git reset --keep {before} takes it back; "),
                    _ => String::new(),
                };
                format!("git show {short} shows the commit; {back}change the hook or the filter")
            }
            Self::Unread(_) => "git log -1 --stat shows the commit".to_owned(),
            Self::Refused { left, .. } if !left.is_empty() => {
                let left = words(left);
                format!(
                    "git diff HEAD -- {left} shows it; git restore --staged --worktree -- {left} puts it back"
                )
            }
            Self::Refused { new, .. } if !new.is_empty() => {
                let new = new.join(", ");
                format!("nothing else has {new}: look at it, then remove it or commit it")
            }
            Self::Changed { .. } => "run the command again and check the new plan".to_owned(),
            Self::Busy { lock } => format!(
                "wait for it; if no git process runs, remove {}",
                quoted(&lock.display().to_string())
            ),
            Self::Differs { branch, .. } => {
                format!("git switch {}, then run the command there", quoted(branch))
            }
            Self::CheckedOut { place, .. } => {
                format!("run the command there: --repo {}", quoted(place))
            }
            Self::NoBranchName(_) | Self::Refused { .. } | Self::Git(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_command_quotes_what_a_shell_would_read() {
        let path = || "a b/$(touch x).yaml".to_owned();
        let left = || vec![path(), "it's.yaml".to_owned()];
        for (error, words) in [
            (
                CommitError::Dirty { path: path() },
                "git diff HEAD -- 'a b/$(touch x).yaml' shows them",
            ),
            (
                CommitError::Dirty { path: path() },
                "git restore --staged --worktree -- 'a b/$(touch x).yaml'",
            ),
            (
                CommitError::Untracked { path: path() },
                "git add -- 'a b/$(touch x).yaml'",
            ),
            (
                CommitError::Hidden { path: path() },
                "git diff -- 'a b/$(touch x).yaml'",
            ),
            (
                CommitError::Refused {
                    said: String::new(),
                    left: left(),
                    new: Vec::new(),
                },
                r"-- 'a b/$(touch x).yaml' 'it'\''s.yaml' puts it back",
            ),
            (
                CommitError::Differs {
                    branch: "a;b".to_owned(),
                    path: path(),
                },
                "git switch 'a;b'",
            ),
            (
                CommitError::CheckedOut {
                    branch: "b".to_owned(),
                    place: "/a b".to_owned(),
                },
                "--repo '/a b'",
            ),
            (
                CommitError::Busy {
                    lock: "/a b/index.lock".into(),
                },
                "remove '/a b/index.lock'",
            ),
        ] {
            let hint = error.hint().unwrap();
            assert!(hint.contains(words), "{hint}");
        }
    }
}
