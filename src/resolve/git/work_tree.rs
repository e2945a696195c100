//! Creates a git reference to a file in the user's work tree, for a release that names its definitions by reference.
//!
//! The work tree must be clean and the commit must be pushed, because other users must get the same content for this
//! reference. For the comparison, files are read without the filters of the repository.

use std::path::{Component, Path, PathBuf};

use gix::bstr::ByteSlice;

use crate::api::openchoreo::release::GitRef;

use super::address::{self, AddressError, Allowed, PathError};
use super::chain;

/// The reason why no git reference to a file in a work tree can be created.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum WorkTreeError {
    #[error("{} is in no git work tree ({why}); embed the definition instead (--embed)", file.display())]
    NoWorkTree { file: PathBuf, why: String },
    #[error("the repository of {} has no commit yet; commit and push first", file.display())]
    NoCommit { file: PathBuf },
    #[error("{} is not tracked by git; `git add`, commit and push it first", file.display())]
    Untracked { file: PathBuf },
    #[error(
        "the work tree is not clean: {changed} differs from the last commit; commit and push, or stash the change"
    )]
    Changed { changed: String },
    #[error("the repository of {} has no remote; `git remote add origin ADDRESS` and push first", file.display())]
    NoRemote { file: PathBuf },
    #[error(
        "the repository of {} has several remotes ({names}), none of them is origin, and the branch has no upstream; `git branch --set-upstream-to REMOTE/BRANCH` chooses one", file.display()
    )]
    SeveralRemotes { file: PathBuf, names: String },
    #[error(
        "no branch of {remote} that this work tree knows has the commit {commit}; `git push` it, or `git fetch {remote}` if it is there already"
    )]
    NotPushed { remote: String, commit: String },
    #[error("the remote {remote} ({shown}) cannot be referred to: {source}")]
    Address {
        remote: String,
        shown: String,
        source: AddressError,
    },
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("the repository of {} cannot be read: {why}", file.display())]
    Unreadable { file: PathBuf, why: String },
}

/// Returns the reference to a file in a work tree: its remote, its commit and its path. Fails if the work
/// tree is not clean or the commit is not pushed.
pub fn work_tree(file: &Path) -> Result<GitRef, WorkTreeError> {
    let absent = |why: String| WorkTreeError::NoWorkTree {
        file: file.to_owned(),
        why,
    };
    let unreadable = |error: gix::Error| WorkTreeError::Unreadable {
        file: file.to_owned(),
        why: chain(&error),
    };
    let place = file
        .canonicalize()
        .map_err(|error| absent(error.to_string()))?;
    let start = place.parent().unwrap_or(&place);
    let (found, _) = gix::discover::upwards(start).map_err(|error| absent(chain(&error)))?;
    let repository = gix::open_opts(found.as_ref(), gix::open::Options::isolated())
        .map_err(|error| absent(chain(&error)))?;
    let root = repository
        .workdir()
        .ok_or_else(|| absent("the repository is bare".to_owned()))?
        .canonicalize()
        .map_err(|error| absent(error.to_string()))?;
    let path =
        inside(&root, &place).ok_or_else(|| absent("it is outside of the work tree".to_owned()))?;
    address::check_path(&path)?;

    let head = repository
        .head_id()
        .map_err(|_| WorkTreeError::NoCommit {
            file: file.to_owned(),
        })?
        .detach();
    let remote = remote(&repository, file)?;
    clean(&repository, &root, head, &path, file)?;
    let address = address_of(&repository, &remote, file)?;
    if !is_pushed(&repository, &remote, head).map_err(unreadable)? {
        return Err(WorkTreeError::NotPushed {
            remote,
            commit: head.to_string(),
        });
    }
    Ok(GitRef {
        repository: address,
        revision: head.to_string(),
        path,
    })
}

fn inside(root: &Path, place: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = place
        .strip_prefix(root)
        .ok()?
        .components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    parts.map(|parts| parts.join("/"))
}

/// Checks that git tracks the file, and that no tracked file differs from the last commit.
fn clean(
    repository: &gix::Repository,
    root: &Path,
    head: gix::ObjectId,
    path: &str,
    file: &Path,
) -> Result<(), WorkTreeError> {
    let unreadable = |why: String| WorkTreeError::Unreadable {
        file: file.to_owned(),
        why,
    };
    let committed = repository
        .find_object(head)
        .map_err(|error| unreadable(error.to_string()))?
        .peel_to_tree()
        .map_err(|error| unreadable(error.to_string()))?
        .id;
    let committed = repository
        .index_from_tree(&committed)
        .map_err(|error| unreadable(error.to_string()))?;
    let index = repository
        .index_or_empty()
        .map_err(|error| unreadable(error.to_string()))?;
    let has = |state: &gix::index::State| state.entry_by_path(path.into()).is_some();
    if !has(&committed) || !has(&index) {
        return Err(WorkTreeError::Untracked {
            file: file.to_owned(),
        });
    }
    let changed = |name: &gix::bstr::BStr| WorkTreeError::Changed {
        changed: crate::text::fit(&name.to_str_lossy(), 200),
    };
    let (staged, committed_entries) = (index.entries(), committed.entries());
    for (at, entry) in staged.iter().enumerate() {
        let name = entry.path(&index);
        let as_committed = committed_entries.get(at).is_some_and(|before| {
            before.path(&committed) == name
                && (before.id, before.mode, before.stage_raw())
                    == (entry.id, entry.mode, entry.stage_raw())
        });
        if !as_committed {
            return Err(changed(name));
        }
        let relative = gix::path::from_bstr(name).map_err(|error| unreadable(chain(&error)))?;
        let on_disk = root.join(relative);
        // A file whose size and mtime are as in git's index is not read. The file to reference is always read, to be
        // safe.
        let noted = name != path.as_bytes() && is_as_noted(entry, &index, &on_disk);
        if !noted && !is_as_committed(entry, &on_disk).map_err(|error| unreadable(chain(&error)))? {
            return Err(changed(name));
        }
    }
    match committed_entries.get(staged.len()) {
        Some(removed) => Err(changed(removed.path(&committed))),
        None => Ok(()),
    }
}

/// Returns whether the size and mtime of a file on disk are the same as in git's index.
fn is_as_noted(entry: &gix::index::Entry, index: &gix::index::File, on_disk: &Path) -> bool {
    let options = gix::index::entry::stat::Options::default();
    gix::index::fs::Metadata::from_path_no_follow(on_disk)
        .ok()
        .and_then(|found| gix::index::entry::Stat::from_fs(&found).ok())
        .is_some_and(|found| entry.stat.matches(&found, options))
        && !entry.stat.is_racy(index.timestamp(), options)
}

fn is_as_committed(entry: &gix::index::Entry, on_disk: &Path) -> gix::Result<bool> {
    use gix::index::entry::{Flags, Mode};
    // Submodules, and files that a sparse checkout left out, count as unchanged.
    if entry.mode == Mode::COMMIT || entry.flags.contains(Flags::SKIP_WORKTREE) {
        return Ok(true);
    }
    let bytes = if entry.mode == Mode::SYMLINK {
        std::fs::read_link(on_disk).map(|target| target.into_os_string().into_encoded_bytes())
    } else {
        std::fs::read(on_disk)
    };
    let Ok(bytes) = bytes else {
        return Ok(false);
    };
    let id = gix::objs::compute_hash(entry.id.kind(), gix::objs::Kind::Blob, &bytes)?;
    Ok(id == entry.id)
}

/// Returns the name of the remote of the checked out branch, or else `origin`, or else the only remote.
fn remote(repository: &gix::Repository, file: &Path) -> Result<String, WorkTreeError> {
    let names: Vec<String> = repository
        .remote_names()
        .into_iter()
        .map(|name| name.to_str_lossy().into_owned())
        .collect();
    let of_branch = repository
        .head_name()
        .ok()
        .flatten()
        .and_then(|branch| {
            repository.branch_remote_name(branch.shorten(), gix::remote::Direction::Fetch)
        })
        .map(|name| name.as_bstr().to_str_lossy().into_owned())
        .filter(|name| names.contains(name));
    let chosen = of_branch.or_else(|| names.iter().find(|name| *name == "origin").cloned());
    let file = file.to_owned();
    match (chosen, names.as_slice()) {
        (Some(chosen), _) => Ok(chosen),
        (None, [only]) => Ok(only.clone()),
        (None, []) => Err(WorkTreeError::NoRemote { file }),
        (None, several) => Err(WorkTreeError::SeveralRemotes {
            file,
            names: crate::text::fit(&several.join(", "), 200),
        }),
    }
}

fn address_of(
    repository: &gix::Repository,
    remote: &str,
    file: &Path,
) -> Result<String, WorkTreeError> {
    let unreadable = |why: String| WorkTreeError::Unreadable {
        file: file.to_owned(),
        why,
    };
    let found = repository
        .find_remote(remote)
        .map_err(|error| unreadable(error.to_string()))?;
    let url = found
        .url(gix::remote::Direction::Fetch)
        .ok_or_else(|| WorkTreeError::NoRemote {
            file: file.to_owned(),
        })?;
    let mut text = url.to_bstring().to_string();
    // Credentials are removed from the address of the remote, because they must not become part of a release.
    if let Some((scheme, rest)) = text.split_once("://")
        && scheme.starts_with("http")
        && let Some((authority, path)) = rest.split_once('/')
        && let Some((_, host)) = authority.rsplit_once('@')
    {
        text = format!("{scheme}://{host}/{path}");
    }
    let allowed = Allowed {
        file: true,
        loopback_http: true,
    };
    match address::parse(&text, allowed) {
        Ok(address) => Ok(address.as_str().to_owned()),
        Err(source) => Err(WorkTreeError::Address {
            remote: remote.to_owned(),
            shown: address::shown(&text),
            source,
        }),
    }
}

/// Returns whether a remote-tracking branch contains the commit, so that it was pushed.
fn is_pushed(
    repository: &gix::Repository,
    remote: &str,
    commit: gix::ObjectId,
) -> gix::Result<bool> {
    let references = repository.references()?;
    let prefix = format!("refs/remotes/{remote}/");
    let mut tips = Vec::new();
    for mut reference in references.prefixed(prefix.as_str())?.flatten() {
        if let Ok(id) = reference.peel_to_id() {
            tips.push(id.detach());
        }
    }
    for step in repository.rev_walk(tips).all()? {
        if step?.id == commit {
            return Ok(true);
        }
    }
    Ok(false)
}
