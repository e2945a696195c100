//! The log of the branch, as a verification needs it: what commits did, and what this clone does not have.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::branch::branch;
use super::moves::{Change, Standing, back, changes};
use super::releases::{Dealt, dealt};
use super::{Trailers, Tree};
use crate::git::log::Commit;
use crate::git::{GitError, WorkTree};

/// The log of the branch, with the facts that this clone lacks.
#[derive(Debug, Default)]
pub struct Logged {
    /// The changes of ReleasePins that the branch has, oldest first.
    pub changes: Vec<Change>,
    /// The marks and collections that the branch has, oldest first.
    pub dealt: Vec<Dealt>,
    /// Every commit whose trailers name an action or a component, also those that a merge brought; newest first.
    pub claims: Vec<Arc<Commit>>,
    /// The commits of which this clone does not have the parents: git lists their whole tree as added.
    pub cut: BTreeSet<String>,
    /// How many states of files this clone does not have and cannot fetch.
    pub lacking: usize,
}

/// Reads the log of HEAD. `replaced` lists commits that `git replace` or a graft gives other parents.
pub fn logged(
    tree: &Tree,
    work: &WorkTree,
    replaced: &BTreeSet<String>,
) -> Result<Logged, GitError> {
    let Some(head) = work.commit_of("HEAD")? else {
        return Ok(Logged::default());
    };
    let log = work.log(&head, None)?;
    let shallow = work.shallow().unwrap_or_default();
    let shallow: BTreeSet<&str> = shallow.lines().map(str::trim).collect();
    let is_cut = |commit: &&Commit| {
        shallow.contains(commit.id.as_str()) || replaced.contains(commit.id.as_str())
    };
    let cut = log.iter().filter(is_cut).map(|commit| commit.id.clone());
    let cut = cut.collect();
    let names_something = |commit: &&Commit| {
        let mut trailers = commit.trailers().into_iter();
        trailers.any(|(word, _)| [Trailers::ACTION, Trailers::COMPONENT].contains(&word))
    };
    let claims = log.iter().filter(names_something);
    let claims = claims.map(|commit| Arc::new(commit.clone())).collect();
    let commits = branch(log, Some(&head));
    let paths = tree.files_of_pins().into_iter().collect();
    let (states, _) = back(&commits, &paths);
    let mut lacking = 0;
    let mut blobs = |ids: &[String]| {
        let found = work.blobs_of_log(ids)?;
        lacking += found.iter().filter(|text| text.is_none()).count();
        Ok(found)
    };
    let changes = changes(
        &mut blobs,
        &commits,
        &states,
        &mut Standing::default(),
        &tree.namespace(),
        HashMap::new(),
    )?;
    let dealt = dealt(&mut blobs, &commits)?;
    Ok(Logged {
        changes,
        dealt,
        claims,
        cut,
        lacking,
    })
}
