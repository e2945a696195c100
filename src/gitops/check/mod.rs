//! Checks the files of a repository, and finds the changes since a commit.
//!
//! For pull requests: manual edits have to follow the rules of the actions. The rules about ReleasePins are with
//! their subject.

mod content;

use std::collections::BTreeSet;

use super::tree::{Change, LeftOutPin, Noted, RELEASES, Trailers, Tree, between, logged};
use crate::api::bowline::audit::Action;
use crate::api::openchoreo::pin::ReleasePinSpec;
use crate::api::openchoreo::release::Verdict;
use crate::git::{GitError, WorkTree};

pub use content::{Content, faults};

/// The changes of a branch since a commit.
#[derive(Clone, Debug, Default)]
pub struct ChangesSince {
    /// Errors in files and objects.
    pub problems: Vec<String>,
    /// Changes of marks that a rule refuses.
    pub refused: Vec<String>,
    /// The ReleasePins that differ.
    pub pins: Vec<EditedPin>,
}

/// A ReleasePin that a branch adds, changes or removes.
#[derive(Clone, Debug, PartialEq)]
pub struct EditedPin {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The spec before the change; None if the ReleasePin is new.
    pub before: Option<ReleasePinSpec>,
    /// The spec after the change; None if the ReleasePin is removed.
    pub after: Option<ReleasePinSpec>,
    /// Whether the change exactly reverts a rollback, and says so in its trailers.
    pub reverts_rollback: bool,
}

/// The reason why a commit cannot be the base of a check.
#[derive(Debug, thiserror::Error)]
pub enum BaseError {
    /// The name is not a commit of this clone.
    #[error("{0} is not a commit")]
    NoCommit(String),
    /// The histories are unrelated, or this clone lacks the common part.
    #[error("{0} and HEAD have no common commit")]
    NoCommonCommit(String),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Returns the merge base of HEAD and the base branch. Later commits on the base branch are not part of the
/// change.
pub fn merge_base(work: &WorkTree, base: &str) -> Result<String, BaseError> {
    let commit = work.commit_of(base)?;
    let commit = commit.ok_or_else(|| BaseError::NoCommit(base.to_owned()))?;
    let common = work.merge_base(&commit)?;
    common.ok_or_else(|| BaseError::NoCommonCommit(base.to_owned()))
}

/// Lists the problems of the files on disk, with an interrupted action if there is one.
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
        // A ReleasePin that cannot be read is not removed; a problem names its file.
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

/// Lists the changes that revert a rollback, from the trailers of the commits since the base commit.
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

/// Returns the error if a change removes the bad mark of a release, or replaces it with a good mark without a
/// note.
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
