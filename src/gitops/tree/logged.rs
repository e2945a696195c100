//! Reads the log of the branch for `audit verify`. Returns the changes in its commits, and says which content this
//! clone does not have.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::branch::{Told, branch};
use super::files::{Charts, is_manifest};
use super::moves::{Change, Removal, Standing, back, blob_limits, changes};
use super::releases::{ReleaseCommit, dealt};
use super::{Trailers, Tree, is_in, kustomize};
use crate::git::log::Commit;
use crate::git::{Blob, GitError, WorkTree};

/// The changes in the log of the branch, and the content that this clone does not have.
#[derive(Debug, Default)]
pub struct Logged {
    /// The changes of ReleasePins on the branch, oldest first.
    pub changes: Vec<Change>,
    /// The removals of ReleasePins on the branch, oldest first.
    pub removals: Vec<Removal>,
    /// The marks on releases and the removals of releases on the branch, oldest first.
    pub dealt: Vec<ReleaseCommit>,
    /// The commits whose trailers name an action or a component, newest first. The commits of merged branches are
    /// among them.
    pub claims: Vec<Arc<Commit>>,
    /// The commits whose parents this clone does not have. git lists all files of such a commit as added, even old
    /// ones.
    pub cut: BTreeSet<String>,
    /// The number of old file contents that this clone does not have and cannot fetch.
    pub lacking: usize,
    /// The old file contents that mention an API group of bowline and are too large to read.
    pub too_large: Vec<TooLarge>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The id of the commit with this file content.
    pub commit: String,
    pub path: String,
    /// The size of the file content in bytes.
    pub size: usize,
}

/// Reads the log from HEAD. `replaced` are the commits whose parents are changed by `git replace` or a graft.
pub fn logged(
    tree: &Tree,
    work: &WorkTree,
    replaced: &BTreeSet<String>,
) -> Result<Logged, GitError> {
    let Some(head) = work.commit_of("HEAD")? else {
        return Ok(Logged::default());
    };
    let mut log = work.log(&head, None)?;
    leave_out_templates(&mut log);
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
    let paths = files_of_pins(tree, &commits);
    let (states, _) = back(&commits, &paths);
    let mut lacking = 0;
    let mut large: HashMap<String, usize> = HashMap::new();
    let mut blobs = |ids: &[String], take: &mut dyn FnMut(usize, Option<Vec<u8>>)| {
        work.each_blob_of_log(ids, blob_limits(), &mut |at, blob| {
            match (&blob, ids.get(at)) {
                (Blob::Missing, _) => lacking += 1,
                (Blob::TooLarge { size, has_word }, Some(id)) if *has_word => {
                    large.insert(id.clone(), *size);
                }
                _ => {}
            }
            take(at, blob.whole());
        })
    };
    let mut standing = Standing::default();
    let changes = changes(
        &mut blobs,
        &commits,
        &states,
        &mut standing,
        &tree.namespace(),
        HashMap::new(),
    )?;
    let dealt = dealt(&mut blobs, &commits)?;
    let too_large = commits.iter().flat_map(|told| {
        let files = told.commit.files.iter();
        files.filter_map(|file| {
            Some(TooLarge {
                size: *large.get(file.blob.as_ref()?)?,
                commit: told.teller(file).id.clone(),
                path: file.path.clone(),
            })
        })
    });
    let too_large = too_large.collect();
    Ok(Logged {
        changes,
        removals: standing.removals,
        dealt,
        claims,
        cut,
        lacking,
        too_large,
    })
}

/// Removes Helm templates from the log. So if a file becomes a Helm template, its ReleasePin counts as removed.
fn leave_out_templates(log: &mut [Commit]) {
    let paths = log.iter().flat_map(|commit| &commit.files);
    let paths: Vec<String> = paths.map(|file| file.path.clone()).collect();
    let charts = Charts::of(&paths);
    for file in log.iter_mut().flat_map(|commit| &mut commit.files) {
        if charts.is_template(file.from.as_ref().unwrap_or(&file.path)) {
            file.old = None;
        }
        if charts.is_template(&file.path) {
            file.blob = None;
        }
    }
}

/// Returns the files that contain ReleasePins or may have contained some: files that no longer exist, that cannot be
/// read, or that have several documents.
fn files_of_pins(tree: &Tree, commits: &[Told]) -> HashSet<String> {
    let index = tree.index();
    let (patches, _) = kustomize::named(&index.files);
    let within = tree.work().within();
    let may_have = |path: &str| {
        let known = index.files.get(path);
        let single = known.is_some_and(|known| {
            known.documents == 1 && known.problems.is_empty() && !known.holds_several()
        });
        let holds = known.is_some_and(|known| known.holds_pins());
        let manifest = is_manifest(path) && is_in(&within, path) && !patches.contains(path);
        manifest && (holds || !single)
    };
    let files = commits.iter().flat_map(|told| &told.commit.files);
    let mut found: HashSet<String> = files
        .map(|file| &file.path)
        .filter(|path| may_have(path))
        .cloned()
        .collect();
    found.extend(tree.files_of_pins());
    found
}
