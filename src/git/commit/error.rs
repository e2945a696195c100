//! The reasons why bowline did not make a commit, with hints for the user.

use std::io::ErrorKind;
use std::path::PathBuf;

use crate::git::GitError;
use crate::text::quoted;

/// The reason why bowline did not make a commit. Unless the variant says otherwise, no file is changed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// HEAD is detached, so there is no branch to commit to.
    #[error("HEAD is detached: a commit would belong to no branch")]
    Detached,
    /// A merge, a rebase or a similar operation is in progress in the work tree. Contains the name of the operation.
    #[error("{0} is in progress")]
    UnderWay(String),
    /// A file that the plan edits has uncommitted changes.
    #[error("{path} has changes that are not committed")]
    Dirty { path: String },
    /// A file that the plan edits was never committed.
    #[error("{path} is not committed yet")]
    Untracked { path: String },
    /// The user has told git not to check a file for changes, and the plan edits this file.
    #[error("git ignores changes of {path} (skip-worktree or assume-unchanged is set)")]
    Hidden { path: String },
    /// A file that the plan edits has changed since the plan was made.
    #[error("{path} has changed since the plan was made")]
    Changed { path: String },
    /// Another git process is running, or ended without removing its lock file.
    #[error("another git process is working here: {} exists", lock.display())]
    Busy {
        /// The path of the lock file of the index.
        lock: PathBuf,
    },
    /// A file that the plan edits differs between the branch of the commit and the checked out branch. The plan was
    /// made from the checked out branch.
    #[error("{path} on branch {branch} differs from the checked-out file")]
    Differs { branch: String, path: String },
    /// The branch of the commit is checked out in another work tree.
    #[error("branch {branch} is checked out in {place}")]
    CheckedOut {
        branch: String,
        /// The directory of that other work tree.
        place: String,
    },
    /// The branch that the user gave is no valid branch name. Contains the text.
    #[error("{0:?} is not a valid branch name")]
    NoBranchName(String),
    /// git or a hook refused the commit.
    #[error("git refused the commit; nothing was changed{}: {said}", but_for(.left, .new))]
    Refused {
        /// The output of git and of the hook.
        said: String,
        /// Existing files that still have changes, because a hook or a user changed them after bowline edited them.
        left: Vec<String>,
        /// New files that still exist, because a hook or a user changed them after bowline created them. No commit
        /// contains these files.
        new: Vec<String>,
    },
    /// git did not make the commit, and bowline could not restore a file.
    #[error(
        "{error}; and {path} could not be restored ({why}): it still has the planned change, and no commit has it"
    )]
    NotRestored {
        path: String,
        /// The error of restoring the file.
        why: GitError,
        /// The error of git for the commit, as text.
        error: String,
    },
    /// A hook or a filter changed the content or the message of the commit.
    #[error("a hook or a filter changed the commit: {what}; {}", became(.kept))]
    Altered {
        /// The differences between the planned commit and this commit, as text for the user.
        what: String,
        /// The id of the commit; empty if no branch has the commit.
        commit: String,
        /// The branch that still has the changed commit, and the parent of this commit. None if bowline removed the
        /// commit from the branch.
        kept: Option<(String, Option<String>)>,
    },
    /// git made the commit, but bowline could not read the commit to check it.
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
    /// Converts an error of git into the error of a commit that left no changes in the work tree.
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

    /// Returns whether a new plan could succeed: a fact of the plan is no longer true, or another git process is
    /// running.
    pub fn is_stale(&self) -> bool {
        matches!(
            self,
            Self::Changed { .. } | Self::Differs { .. } | Self::Busy { .. }
        )
    }

    /// Returns the next steps for the user; empty if there are none.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Detached => vec![
                "switch to a branch: git switch BRANCH".to_owned(),
                "or name the branch of the commit: --branch NAME".to_owned(),
            ],
            Self::UnderWay(_) => vec!["finish it or abort it, as this says: git status".to_owned()],
            Self::Dirty { path } => {
                let path = quoted(path);
                vec![
                    format!("look at the changes: git diff HEAD -- {path}"),
                    format!("commit them: git commit -- {path}"),
                    format!("or discard them: git restore --staged --worktree -- {path}"),
                ]
            }
            Self::Untracked { path } => {
                let path = quoted(path);
                vec![format!(
                    "commit it: git add -- {path} && git commit -- {path}"
                )]
            }
            Self::Hidden { path } => {
                let path = quoted(path);
                vec![
                    format!(
                        "let git see the changes: git update-index --no-skip-worktree --no-assume-unchanged -- {path}"
                    ),
                    format!("then look at them: git diff -- {path}"),
                ]
            }
            Self::NotRestored { path, .. } => restore(&quoted(path)),
            Self::Altered { commit, .. } if commit.is_empty() => vec![
                "find the commit: git reflog".to_owned(),
                "then change the hook or the filter".to_owned(),
            ],
            Self::Altered { commit, kept, .. } => {
                let short = commit.get(..12).unwrap_or(commit);
                let look = format!("look at the commit: git show {short}");
                let change = "then change the hook or the filter".to_owned();
                match kept {
                    Some((_, Some(before))) => {
                        let back = format!("to take it back: git reset --keep {before}");
                        vec![look, back, change]
                    }
                    _ => vec![look, change],
                }
            }
            Self::Unread(_) => vec!["look at the commit: git log -1 --stat".to_owned()],
            Self::Refused { left, .. } if !left.is_empty() => restore(&words(left)),
            Self::Refused { new, .. } if !new.is_empty() => {
                let new = new.join(", ");
                vec![format!(
                    "git has no other copy of {new}: read it, then remove it or commit it"
                )]
            }
            Self::Changed { .. } => vec!["repeat the command and check the new plan".to_owned()],
            Self::Busy { lock } => vec![
                "wait until it has ended".to_owned(),
                format!(
                    "or remove the lock, if no git process runs: rm {}",
                    quoted(&lock.display().to_string())
                ),
            ],
            Self::Differs { branch, .. } => vec![format!(
                "run the command on that branch, after: git switch {}",
                quoted(branch)
            )],
            Self::CheckedOut { place, .. } => {
                vec![format!("run the command there: --repo {}", quoted(place))]
            }
            Self::Git(GitError::File { file, error })
                if matches!(
                    error.kind(),
                    ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                let file = quoted(&file.display().to_string());
                vec![format!(
                    "make {file} and its directory writable, then repeat the command"
                )]
            }
            Self::NoBranchName(_) | Self::Refused { .. } | Self::Git(_) => Vec::new(),
        }
    }
}

/// Returns the next steps for the user after a failed commit whose edits are still in files. `paths` are the paths of
/// these files, quoted for a shell.
fn restore(paths: &str) -> Vec<String> {
    vec![
        format!("look at the change: git diff HEAD -- {paths}"),
        format!("restore the old content: git restore --staged --worktree -- {paths}"),
    ]
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
            error.hints()
        };
        let hints = failed(ErrorKind::PermissionDenied);
        assert!(
            hints[0].starts_with("make 'a b.yaml' and its directory writable"),
            "{hints:?}"
        );
        assert_eq!(failed(ErrorKind::NotFound), [""; 0]);
    }

    #[test]
    fn a_printed_command_quotes_what_a_shell_would_read() {
        let path = || "a b/$(touch x).yaml".to_owned();
        let left = || vec![path(), "it's.yaml".to_owned()];
        for (error, words) in [
            (
                CommitError::Dirty { path: path() },
                "git diff HEAD -- 'a b/$(touch x).yaml'",
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
                r"git restore --staged --worktree -- 'a b/$(touch x).yaml' 'it'\''s.yaml'",
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
                "rm '/a b/index.lock'",
            ),
        ] {
            let hints = error.hints();
            assert!(hints.iter().any(|hint| hint.contains(words)), "{hints:?}");
        }
    }
}
