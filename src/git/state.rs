//! Reads the state of a work tree: branch, upstream, changed files, operation in progress.

use std::collections::BTreeSet;
use std::ffi::OsStr;

use serde::Serialize;

use super::arguments::Arguments;
use super::{GitError, WorkTree};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct State {
    /// The id of the checked out commit; None if the branch has no commit yet.
    pub head: Option<String>,
    /// The checked out branch; None if HEAD is detached.
    pub branch: Option<String>,
    /// The upstream of the checked out branch, such as `origin/main`; None if the branch has no upstream.
    pub upstream: Option<String>,
    /// The number of commits that the checked out branch has and its upstream did not have at the last fetch.
    pub ahead: u64,
    /// The number of commits that the upstream had at the last fetch and the checked out branch does not have.
    pub behind: u64,
    /// The tracked files that differ from the checked out commit, in the index or on disk.
    pub dirty: BTreeSet<String>,
    /// The git operation in progress, such as `a merge`; None if no operation is in progress.
    pub under_way: Option<&'static str>,
}

/// The files in git's directory that show which operation is in progress, each with the name of the operation.
const UNDER_WAY: [(&str, &str); 6] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("BISECT_LOG", "a bisection"),
];

impl WorkTree {
    pub fn state(&self) -> Result<State, GitError> {
        let question = Arguments::plain(
            "status",
            [
                "--porcelain=v2",
                "--branch",
                "-z",
                "--untracked-files=no",
                "--no-renames",
            ],
        );
        // With this variable, git does not lock the index to read the state, because another git process may need the
        // lock.
        let variables: [(&str, &OsStr); 1] = [("GIT_OPTIONAL_LOCKS", "0".as_ref())];
        let said = self.output(self.root(), &question, &variables, b"")?;
        let mut state = read(&super::told("status", said)?);
        state.under_way = UNDER_WAY
            .into_iter()
            .find(|(file, _)| self.git_dir().join(file).exists())
            .map(|(_, words)| words);
        Ok(state)
    }
}

fn read(porcelain: &str) -> State {
    let mut state = State::default();
    for line in porcelain.split('\0') {
        if let Some(header) = line.strip_prefix("# branch.") {
            let (name, value) = header.split_once(' ').unwrap_or((header, ""));
            match name {
                "oid" if value != "(initial)" => state.head = Some(value.to_owned()),
                "head" if value != "(detached)" => state.branch = Some(value.to_owned()),
                "upstream" => state.upstream = Some(value.to_owned()),
                "ab" => {
                    let number = |word: Option<&str>| {
                        let digits = word?.trim_start_matches(['+', '-']);
                        digits.parse::<u64>().ok()
                    };
                    let mut words = value.split(' ');
                    state.ahead = number(words.next()).unwrap_or_default();
                    state.behind = number(words.next()).unwrap_or_default();
                }
                _ => {}
            }
            continue;
        }
        // For a changed file, git prints `1 XY sub mH mI mW hH hI path`. For a file with a conflict, the line begins
        // with `u` and has one more mode and one more id.
        let fields = match line.split_once(' ') {
            Some(("1", _)) => 8,
            Some(("u", _)) => 10,
            _ => continue,
        };
        if let Some(path) = line.splitn(fields + 1, ' ').nth(fields) {
            state.dirty.insert(path.to_owned());
        }
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_prints_is_read() {
        let text = "# branch.oid 0123\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0\
                    1 .M N... 100644 100644 100644 aa aa pins/a b.yaml\0\
                    u UU N... 100644 100644 100644 100644 aa bb cc pins/c.yaml\0";
        let state = read(text);
        assert_eq!(state.head.as_deref(), Some("0123"));
        assert_eq!(state.branch.as_deref(), Some("main"));
        assert_eq!((state.ahead, state.behind), (2, 1));
        let dirty: Vec<&str> = state.dirty.iter().map(String::as_str).collect();
        assert_eq!(dirty, ["pins/a b.yaml", "pins/c.yaml"]);
        let detached = read("# branch.oid (initial)\0# branch.head (detached)\0");
        assert_eq!(detached, State::default());
    }
}
