//! Checks the files of a repository, and finds the changes since a base commit.
//!
//! For pull requests: manual edits must follow the same rules as actions of bowline. The rules for ReleasePins are in
//! `subjects/release_pin/check.rs`.

mod content;

use std::collections::BTreeSet;

use super::tree::{Change, LeftOutPin, Noted, RELEASES, Trailers, Tree, between, logged};
use crate::api::bowline::audit::Action;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::openchoreo::release::Verdict;
use crate::git::{GitError, WorkTree};

pub use content::{Content, faults};

/// The changes of a branch since a base commit, as far as the check needs them.
#[derive(Clone, Debug, Default)]
pub struct ChangesSince {
    /// Errors in files and objects, as text for the user.
    pub problems: Vec<String>,
    /// Changes of marks that a rule refuses, as text for the user.
    pub refused: Vec<String>,
    /// The ReleasePins that differ between the base commit and the files on disk.
    pub pins: Vec<EditedPin>,
}

/// A ReleasePin that a branch adds, changes or removes.
#[derive(Clone, Debug, PartialEq)]
pub struct EditedPin {
    /// The namespace of the edited ReleasePin.
    pub namespace: String,
    /// The name of the edited ReleasePin.
    pub name: String,
    /// The spec of the ReleasePin in the base commit; None if the branch adds the ReleasePin.
    pub before: Option<ReleasePinSpec>,
    /// The spec of the ReleasePin now; None if the branch removes it.
    pub after: Option<ReleasePinSpec>,
    /// Whether the branch exactly reverts a rollback of the ReleasePin, according to the trailers of a commit.
    pub reverts_rollback: bool,
}

/// The reason why a commit cannot be the base of a check.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// The given name is no commit of this clone. Contains the name.
    #[error("{0} is not a commit")]
    NoCommit(String),
    /// HEAD and the base have no common commit, or this clone does not have it. Contains the base.
    #[error("{0} and HEAD have no common commit")]
    NoCommonCommit(String),
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Returns the merge base of HEAD and the base branch. A check compares with it, because later commits on the base
/// branch are not part of the pull request.
pub fn merge_base(work: &WorkTree, base: &str) -> Result<String, BaseError> {
    let commit = work.commit_of(base)?;
    let commit = commit.ok_or_else(|| BaseError::NoCommit(base.to_owned()))?;
    let common = work.merge_base(&commit)?;
    common.ok_or_else(|| BaseError::NoCommonCommit(base.to_owned()))
}

/// Lists the problems with the files on disk. If an action of bowline was interrupted, lists that too.
pub fn problems(tree: &Tree) -> Result<Vec<String>, GitError> {
    let problems = tree.problems().into_iter();
    let mut problems: Vec<String> = problems.map(|problem| problem.what).collect();
    if let Some(pending) = tree.work().pending()? {
        problems.push(format!("{pending}; {}", pending.hint()));
    }
    Ok(problems)
}

/// Finds the changes between a commit and the files on disk.
pub fn changes_since(tree: &Tree, base: &str) -> Result<ChangesSince, GitError> {
    let changes = between(tree, base)?;
    let mut found = ChangesSince {
        problems: changes.unread,
        ..ChangesSince::default()
    };
    for ((namespace, name), sides) in changes.releases {
        if let (Some(_), Some(_)) = sides
            && let Some(place) = tree.place(RELEASES, &namespace, &name)
        {
            found.problems.push(format!(
                "{place}: release {name} was edited, but a release never changes; restore the file and create another release"
            ));
        }
    }
    for ((namespace, name), (before, after)) in changes.marks {
        let stays = tree.place(RELEASES, &namespace, &name).is_some();
        if let Some(why) = unmarked(&name, before.as_ref(), after.as_ref()).filter(|_| stays) {
            found.refused.push(why);
        }
    }
    let is_held =
        |spec: &Option<ReleasePinSpec>| spec.as_ref().is_some_and(|spec| !spec.holds.is_empty());
    let undone = match changes.pins.values().any(|(before, _)| is_held(before)) {
        true => undone_rollbacks(tree, base)?,
        false => Vec::new(),
    };
    let unread = tree.left_out_pins();
    for ((namespace, name), (before, after)) in changes.pins {
        // The ReleasePin was not removed, but its file cannot be read. Another problem names that file.
        let is_unread = |pin: &LeftOutPin| pin.namespace == namespace && pin.name == name;
        if after.is_none() && unread.iter().any(is_unread) {
            continue;
        }
        let is_reverted = |change: &&Change| {
            (&change.before, Some(&change.after)) == (&after, before.as_ref())
                && (&*change.namespace, &*change.name) == (&*namespace, &*name)
        };
        let reverts_rollback = after.is_some() && undone.iter().find(is_reverted).is_some();
        found.pins.push(EditedPin {
            namespace,
            name,
            before,
            after,
            reverts_rollback,
        });
    }
    Ok(found)
}

/// Returns the changes since the base commit that revert a rollback, according to the trailers of their commits.
fn undone_rollbacks(tree: &Tree, base: &str) -> Result<Vec<Change>, GitError> {
    let work = tree.work();
    let mut undone: BTreeSet<(String, String)> = BTreeSet::new();
    for commit in work.log("HEAD", Some(base))? {
        let said = Trailers::read(&commit).into_iter();
        let said = said.filter(|said| is_action(said, Action::Undo));
        undone.extend(said.filter_map(|said| Some((said.component?, said.environment?))));
    }
    if undone.is_empty() {
        return Ok(Vec::new());
    }
    let log = logged(tree, work, &BTreeSet::new())?;
    let rollbacks = log.changes.into_iter().filter(|change| {
        let spec = &change.after;
        let said = Trailers::of(&change.commit, spec);
        let pin = (spec.component.clone(), spec.environment.clone());
        said.is_some_and(|said| is_action(&said, Action::Rollback)) && undone.contains(&pin)
    });
    Ok(rollbacks.collect())
}

fn is_action(said: &Trailers, action: Action) -> bool {
    said.action == Some(format!("{action:?}"))
}

/// Returns the error text if a change removes a release's bad mark, or replaces it by a good mark without a note.
/// Otherwise returns None.
fn unmarked(release: &str, before: Option<&Noted>, after: Option<&Noted>) -> Option<String> {
    let was_bad = before.is_some_and(|mark| mark.verdict == Verdict::Bad);
    let is_explained = |mark: &Noted| mark.verdict == Verdict::Bad || !mark.note.trim().is_empty();
    (was_bad && !after.is_some_and(is_explained)).then(|| {
        format!(
            "release {release} loses its bad mark without a reason; bowline mark good {release} --reason TEXT records the reason"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_mark_is_replaced_with_a_note_and_not_removed() {
        let mark = |verdict, note: &str| Noted {
            verdict,
            note: note.to_owned(),
        };
        let (bad, good) = (mark(Verdict::Bad, "leaks"), mark(Verdict::Good, "mended"));
        let (unreadable, silent) = (mark(Verdict::Bad, ""), mark(Verdict::Good, " "));
        for (before, after, refused) in [
            (Some(&bad), None, true),
            (Some(&bad), Some(&good), false),
            (Some(&bad), Some(&silent), true),
            (Some(&bad), Some(&unreadable), false),
            (Some(&unreadable), None, true),
            (Some(&unreadable), Some(&silent), true),
            (Some(&good), None, false),
            (Some(&good), Some(&silent), false),
            (None, Some(&bad), false),
            (None, Some(&silent), false),
        ] {
            let found = unmarked("cart-1", before, after);
            assert_eq!(found.is_some(), refused, "{before:?} {after:?}");
        }
    }
}
