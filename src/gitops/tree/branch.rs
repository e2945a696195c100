//! Sorts the commits of a branch, and finds for each change the commit that has its author and reason.
//!
//! The branch is read along first parents, because only these states really existed on the branch. For a change in a
//! merge, author and reason come from the merged commit that made the same change.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::git::log::{Changed, Commit};

/// A commit on the branch. A merge also has the merged commits that made its changes.
pub(super) struct Told {
    pub(super) commit: Arc<Commit>,
    /// For a merge, the merged commit that made each change of a file. Empty for other commits.
    sides: HashMap<Made, Arc<Commit>>,
}

/// A change of a file: its path, and the id of its new blob. The id is None if the change deletes the file.
type Made = (String, Option<String>);

fn made(file: &Changed) -> Made {
    (file.path.clone(), file.blob.clone())
}

impl Told {
    /// Returns the commit that has the author and the reason for the change of a file.
    pub(super) fn teller(&self, file: &Changed) -> &Arc<Commit> {
        if self.sides.is_empty() {
            return &self.commit;
        }
        self.sides.get(&made(file)).unwrap_or(&self.commit)
    }
}

/// Returns the commits on the branch, oldest first. Each merge has the commits that it merged. `commits` must be in
/// the order of git: newest first, children before parents.
pub(super) fn branch(commits: Vec<Commit>, head: Option<&str>) -> Vec<Told> {
    let mut left: HashMap<String, (usize, Arc<Commit>)> = HashMap::with_capacity(commits.len());
    for (at, commit) in commits.into_iter().enumerate() {
        left.insert(commit.id.clone(), (at, Arc::new(commit)));
    }
    let mut chain = Vec::new();
    let mut next = head.map(str::to_owned);
    while let Some((_, commit)) = next.and_then(|id| left.remove(&id)) {
        next = commit.parents.first().cloned();
        chain.push(commit);
    }
    chain.reverse();
    let told = chain.into_iter().map(|commit| Told {
        sides: sides(&commit, &mut left),
        commit,
    });
    told.collect()
}

/// Finds the merged commits of a merge that made its changes, and removes all its merged commits from `left`. A
/// merged commit is an ancestor of the merge, but not of its first parent. So the caller must handle older merges
/// first.
fn sides(
    merge: &Commit,
    left: &mut HashMap<String, (usize, Arc<Commit>)>,
) -> HashMap<Made, Arc<Commit>> {
    let mut side = Vec::new();
    let mut next: Vec<String> = merge.parents.iter().skip(1).cloned().collect();
    while let Some(id) = next.pop() {
        if let Some((at, commit)) = left.remove(&id) {
            next.extend(commit.parents.iter().cloned());
            side.push((at, commit));
        }
    }
    // The map keeps the last commit for each change. So a normal commit replaces a merge, and a newer commit replaces
    // an older one.
    side.sort_by_key(|(at, commit)| (commit.parents.len() < 2, Reverse(*at)));
    let wanted: HashSet<Made> = match side.is_empty() {
        true => HashSet::new(),
        false => merge.files.iter().map(made).collect(),
    };
    let mut found = HashMap::new();
    for (_, commit) in side {
        let files = commit.files.iter().map(made);
        for made in files.filter(|made| wanted.contains(made)) {
            found.insert(made, commit.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// Returns a test commit that changes one file to `blob`. All test commits have the same time.
    fn commit(id: &str, parents: &[&str], blob: &str) -> Commit {
        Commit {
            id: id.to_owned(),
            parents: parents.iter().map(|&parent| parent.to_owned()).collect(),
            author: id.to_owned(),
            written: Timestamp::UNIX_EPOCH,
            at: Timestamp::UNIX_EPOCH,
            message: String::new(),
            files: vec![Changed {
                from: None,
                path: "pin.yaml".to_owned(),
                old: None,
                blob: Some(blob.to_owned()),
                added: false,
            }],
        }
    }

    #[test]
    fn a_merge_is_told_by_the_newest_commit_of_its_own_side() {
        for (commits, expected) in [
            // Merges bring the same state to the branch, remove it, and bring it back.
            (
                vec![
                    commit("merge-3", &["merge-2", "carol"], "b"),
                    commit("carol", &["merge-2"], "b"),
                    commit("merge-2", &["merge-1", "bob"], "a"),
                    commit("bob", &["merge-1"], "a"),
                    commit("merge-1", &["begin", "ana"], "b"),
                    commit("ana", &["begin"], "b"),
                    commit("begin", &[], "a"),
                ],
                vec!["begin", "ana", "bob", "carol"],
            ),
            // A normal commit has priority over a merge; among several, the newest is used.
            (
                vec![
                    commit("merge", &["begin", "within"], "b"),
                    commit("within", &["side", "again"], "b"),
                    commit("again", &["back"], "b"),
                    commit("back", &["side"], "a"),
                    commit("side", &["begin"], "b"),
                    commit("begin", &[], "a"),
                ],
                vec!["begin", "again"],
            ),
            // No merged commit made this change, so the merge has its author and reason.
            (
                vec![
                    commit("merge", &["begin", "side"], "c"),
                    commit("side", &["begin"], "b"),
                    commit("begin", &[], "a"),
                ],
                vec!["begin", "merge"],
            ),
        ] {
            let head = commits[0].id.clone();
            let told = branch(commits, Some(&head));
            let tellers: Vec<&str> = told
                .iter()
                .map(|told| told.teller(&told.commit.files[0]).id.as_str())
                .collect();
            assert_eq!(tellers, expected);
        }
    }
}
