//! Notes about a commit that bowline made.

use std::fmt;

use super::words;

/// A note for the user about a commit that bowline made as planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitNote {
    /// A hook added changes of these files, which the plan does not edit, to the commit.
    Added(Vec<String>),
    /// A hook changed these files on disk after the commit, so no commit contains their changes.
    Uncommitted(Vec<String>),
    /// A hook removed the trailers of bowline from the commit message.
    NoTrailers,
    /// A hook made additional commits. Contains their number.
    MoreCommits(usize),
    /// The journal of the commit could not be deleted after the commit. Contains the reason.
    JournalLeft(String),
}

impl fmt::Display for CommitNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added(paths) => write!(f, "a hook added {} to the commit", paths.join(", ")),
            Self::Uncommitted(paths) => {
                let (all, words) = (paths.join(", "), words(paths));
                write!(
                    f,
                    "a hook changed {all} and did not stage the change: git diff -- {words} shows it"
                )
            }
            Self::NoTrailers => f.write_str(
                "a hook removed the trailers of the commit: history shows it as an edit by hand, and audit verify warns",
            ),
            Self::JournalLeft(why) => write!(
                f,
                "warning: the commit was made, and its journal could not be removed: {why}"
            ),
            Self::MoreCommits(1) => f.write_str("a hook made 1 more commit"),
            Self::MoreCommits(more) => write!(f, "a hook made {more} more commits"),
        }
    }
}
