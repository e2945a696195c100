//! The errors of reading a file by git reference. Each one contains the next step for the user.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::api::openchoreo::release::GitRef;
use crate::text;

use super::address::{self, AddressError, PathError, RevisionError};

/// The error of a git reference that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path} at {revision} of {repository}: {cause}")]
pub struct GitError {
    /// The address of the repository, without credentials.
    pub repository: String,
    /// The revision that the reference names.
    pub revision: String,
    /// The path that the reference names.
    pub path: String,
    /// The cause, with the next step for the user.
    pub cause: Box<Cause>,
}

impl GitError {
    pub(super) fn new(reference: &GitRef, cause: Cause) -> Self {
        Self {
            repository: address::shown(&reference.repository),
            revision: text::fit(&reference.revision, 80),
            path: text::fit(&reference.path, 256),
            cause: Box::new(cause),
        }
    }

    /// Returns whether reading the same reference again may succeed.
    pub fn may_pass(&self) -> bool {
        matches!(
            *self.cause,
            Cause::Deadline { .. }
                | Cause::Unreachable { .. }
                | Cause::Server { .. }
                | Cause::Broken { .. }
                | Cause::Cache { .. }
                | Cause::NotFetched
        )
    }
}

/// The reason why a git reference could not be read.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)]
pub enum Cause {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Revision(#[from] RevisionError),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(
        "the fetch took longer than {allowed:?}; try again, or raise the deadline if the repository is large"
    )]
    Deadline { allowed: Duration },
    #[error(
        "{what} is over the limit of {limit} {unit}; raise the limit, or move the definitions to a repository without large files"
    )]
    TooLarge {
        what: &'static str,
        limit: u64,
        unit: &'static str,
    },
    #[error("the server cannot be reached: {why}; check the address and the network")]
    Unreachable { why: String },
    #[error(
        "access was refused ({why}); give a token for the host, configure a credential helper, or check the ssh key"
    )]
    Denied { why: String },
    #[error(
        "the repository does not exist, or these credentials give no access to it ({why}); check the address and the credentials"
    )]
    NoRepository { why: String },
    #[error(
        "the server redirects to {to}, and bowline follows no redirect to another host; if that is the repository, write its address into the reference"
    )]
    Redirect { to: String },
    #[error("the server failed: {why}; try again later")]
    Server { why: String },
    #[error(
        "the repository has no such commit, or its server does not serve commits by id ({why}); check the revision, and push it if it is new"
    )]
    NoCommit { why: String },
    #[error(
        "the repository uses {theirs} ids, and the revision is a {ours} id; use the id from that repository"
    )]
    OtherHash { ours: &'static str, theirs: String },
    #[error(
        "the server sent damaged data: {why}; try again, and check the repository with `git fsck`"
    )]
    Broken { why: String },
    #[error("the commit has no such path; `git ls-tree -r --name-only REVISION` lists the paths")]
    NoPath,
    #[error("the path is a directory; name a file in it")]
    Directory,
    #[error(
        "{at} is a symbolic link, and bowline follows no links; name the file that it points to"
    )]
    SymbolicLink { at: String },
    #[error(
        "{at} is a submodule, and bowline follows no submodules; refer to the submodule's own repository"
    )]
    Submodule { at: String },
    #[error(
        "the file is a Git LFS pointer, and bowline runs no filters; store definitions in git itself"
    )]
    LfsPointer,
    #[error("cannot run {program}: {why}; install it, or name another program in the settings")]
    Program { program: String, why: String },
    #[error(
        "the token for {host} cannot be read: {why}; a token file contains `TOKEN` or `USER:TOKEN` on one line"
    )]
    Token { host: String, why: String },
    #[error("the commit is not in the cache of this machine, and this step fetches nothing")]
    NotFetched,
    #[error("cannot use the cache {}: {source}; check that the directory is writable and has space", path.display())]
    Cache { path: PathBuf, source: io::Error },
}
