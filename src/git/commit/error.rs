//! The reasons why bowline did not make a commit, with hints for the user.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::git::GitError;
use crate::text::quoted;

/// The reason why bowline did not make a commit. All changes are undone, unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// HEAD is detached, so there is no branch to commit to.
    #[error("HEAD is detached: a commit would belong to no branch")]
    Detached,
    /// A merge, a rebase or a similar operation is in progress. Contains its name.
    #[error("{0} is in progress")]
    UnderWay(String),
    /// A file of the plan has uncommitted changes.
    #[error("{path} has changes that are not committed")]
    Dirty { path: String },
    /// A file of the plan was never committed.
    #[error("{path} is not committed yet")]
    Untracked { path: String },
    /// git does not check a file of the plan for changes.
    #[error("git ignores changes of {path} (skip-worktree or assume-unchanged is set)")]
    Hidden { path: String },
    /// A file of the plan has changed since plan time.
    #[error("{path} has changed since the plan was made")]
    Changed { path: String },
    /// Another git process is running, or died and left its lock.
    #[error("another git process is working here: {} exists", lock.display())]
    Busy {
        /// The path of the lock file.
        lock: PathBuf,
    },
    /// A file on the branch differs from the checked out file, from which the plan was made.
    #[error("{path} on branch {branch} differs from the checked-out file")]
    Differs { branch: String, path: String },
    /// The branch is checked out in another work tree.
    #[error("branch {branch} is checked out in {place}")]
    CheckedOut {
        branch: String,
        /// The directory of the other work tree.
        place: String,
    },
    /// This text is no valid branch name.
    #[error("{0:?} is not a valid branch name")]
    NoBranchName(String),
    /// git or a hook refused the commit.
    #[error("git refused the commit; nothing was changed{}: {said}", but_for(.left, .new))]
    Refused {
        /// The output of git and of the hook.
        said: String,
        /// Existing files that are not restored, because a hook or a user changed them after the planned
        /// edit.
        left: Vec<String>,
        /// New files that are not removed, because a hook or a user changed them after the planned edit. No
        /// commit contains them.
        new: Vec<String>,
    },
    /// git did not make the commit, and a file could not be restored.
    #[error(
        "{error}; and {path} could not be restored ({why}): it still has the planned change, and no commit has it"
    )]
    NotRestored {
        path: String,
        /// The error of the restore.
        why: GitError,
        /// The error of the commit, as text.
        error: String,
    },
    /// A hook or a filter changed the content or the message of the commit.
    #[error("a hook or a filter changed the commit: {what}; {}", became(.kept))]
    Altered {
        /// The differences, as text for the user.
        what: String,
        /// The id of the commit; empty if no branch has the commit.
        commit: String,
        /// The branch that still has the commit, and the commit before it; None if bowline took the commit
        /// back.
        kept: Option<(String, Option<String>)>,
    },
    /// The commit was made, but could not be read back.
    #[error("git made the commit, and then bowline could not read it back: {0}")]
    Unread(GitError),
    /// A git command failed.
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

/// Quotes paths for a shell and joins them with spaces.
pub(in crate::git) fn words(paths: &[String]) -> String {
    let words: Vec<String> = paths.iter().map(|path| quoted(path)).collect();
    words.join(" ")
}

impl CommitError {
    /// Converts an error of git, for a commit that left no changes in the work tree.
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

    /// Returns whether a fact of the plan is no longer true, or may be because another git process runs.
    pub fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::Changed { .. } | Self::Differs { .. } | Self::Busy { .. }
        )
    }

    /// Returns the next step for the user, if there is one.
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
            Self::NotRestored { path, .. } => {
                let path = quoted(path);
                format!(
                    "git diff HEAD -- {path} shows it; git restore --staged --worktree -- {path} restores the old content"
                )
            }
            Self::Altered { commit, .. } if commit.is_empty() => {
                "git reflog lists the commit; change the hook or the filter".to_owned()
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
                    "git diff HEAD -- {left} shows it; git restore --staged --worktree -- {left} restores the old content"
                )
            }
            Self::Refused { new, .. } if !new.is_empty() => {
                let new = new.join(", ");
                format!("git has no other copy of {new}: read it, then remove it or commit it")
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
            Self::Git(GitError::File { file, error })
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                let file = quoted(&file.display().to_string());
                format!("make {file} and its directory writable, then run the command again")
            }
            Self::NoBranchName(_) | Self::Refused { .. } | Self::Git(_) => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_has_a_next_step() {
        let failed = |kind: ErrorKind| {
            let error = CommitError::from(GitError::File {
                file: "a b.yaml".into(),
                error: kind.into(),
            });
            error.hint()
        };
        let hint = failed(ErrorKind::PermissionDenied).unwrap();
        assert!(
            hint.starts_with("make 'a b.yaml' and its directory writable"),
            "{hint}"
        );
        assert_eq!(failed(ErrorKind::NotFound), None);
    }

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
                r"-- 'a b/$(touch x).yaml' 'it'\''s.yaml' restores the old content",
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
