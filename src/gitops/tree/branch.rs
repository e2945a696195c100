//! The commits of a branch in order, and the commit that gives author and reason of each change.
//!
//! The branch is read along its first parents, so that every state really existed on the branch. For a merge,
//! author and reason come from the commit of the merged side that made the same change.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::git::log::{Changed, Commit};

/// A commit of the branch, with the commits that it merged.
pub(super) struct Told {
    pub(super) commit: Arc<Commit>,
    /// The commits of the merged side, by the file change that they made.
    sides: HashMap<Made, Arc<Commit>>,
}

/// A change of a file: its path, and its new blob; None if the file was deleted.
type Made = (String, Option<String>);

fn made(file: &Changed) -> Made {
    (file.path.clone(), file.blob.clone())
}

impl Told {
    /// Returns the commit that names the author and the reason of a file's change.
    pub(super) fn teller(&self, file: &Changed) -> &Arc<Commit> {
        if self.sides.is_empty() {
            return &self.commit;
        }
        self.sides.get(&made(file)).unwrap_or(&self.commit)
    }
}

/// Sorts the commits of a branch, oldest first, and assigns to each merge the commits of its side. The input
/// has git's order: newest first, and no commit before its children.
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

/// Removes from `left` the commits that came to the branch with a merge, and returns those that made a file change
/// of the merge. Such a commit is reachable from the merge but not from its first parent. The commits of older
/// merges are already removed.
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
    // The last commit in this order is used: the newest one, and a merge only if no other commit made the same
    // change.
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

    /// A commit that changes one file to this blob; all commits have the same time.
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
            // The same state appears, disappears and appears again, each time by a merge.
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
            // The newest commit of a side wins, and a normal commit wins over a merge.
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
            // A change that no commit of the side made belongs to the merge itself.
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
