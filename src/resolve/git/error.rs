//! The errors of reading a file that a git reference names. Each contains the next step for the user.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::api::openchoreo::release::GitRef;
use crate::text;

use super::address::{self, AddressError, PathError, RevisionError};

/// The error of a git reference whose file could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path} at {revision} of {repository}: {cause}")]
pub struct GitError {
    /// The address of the repository, without credentials.
    pub repository: String,
    /// The revision in the git reference.
    pub revision: String,
    /// The path in the git reference.
    pub path: String,
    /// The reason, with the next step for the user.
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

    /// Returns whether reading the same reference again later may succeed.
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

/// The reason why the file of a git reference could not be read.
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
        "the fetch took longer than {allowed:?}; try again, or move the definitions to a smaller repository"
    )]
    Deadline { allowed: Duration },
    #[error(
        "{what} is larger than the limit of {limit} {unit}; move the definitions to a repository without large files"
    )]
    TooLarge {
        what: &'static str,
        limit: u64,
        unit: &'static str,
    },
    #[error("the server cannot be reached: {why}; check the address and the network")]
    Unreachable { why: String },
    #[error(
        "access was refused ({why}); for https, put a token for the host into the directory of --git-tokens or configure a credential helper of git; for ssh, check the key"
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
        "the server does not have the commit, or serves no commits by id ({why}); check the revision, and push the commit if it is new"
    )]
    NoCommit { why: String },
    #[error(
        "the revision is a {ours} id, and the repository uses {theirs} ids; write the {theirs} id of the commit"
    )]
    OtherHash { ours: &'static str, theirs: String },
    #[error("the server sent damaged data: {why}; try again, then check the repository: git fsck")]
    Broken { why: String },
    #[error(
        "the commit does not contain the path; list its paths: git ls-tree -r --name-only REVISION"
    )]
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
    #[error("cannot run {program}: {why}; install it")]
    Program { program: String, why: String },
    #[error(
        "the token for {host} cannot be read: {why}; a token file contains `TOKEN` or `USER:TOKEN` on one line"
    )]
    Token { host: String, why: String },
    #[error(
        "the commit is not in the cache of this machine, and this plan fetches nothing; fetch it: bowline release show RELEASE --resolve"
    )]
    NotFetched,
    #[error("cannot use the cache {}: {source}; check that the directory is writable and has space", path.display())]
    Cache { path: PathBuf, source: io::Error },
}
