//! Tests of definitions by git reference. The tests use real repositories over file, http and ssh, servers
//! that hang or send wrong data, and hostile references. The installed git creates the repositories.

mod cache;
mod file;
mod hostile;
mod http;
mod lies;
pub mod repository;
pub mod server;
pub mod ssh;
mod tls;
mod work_tree;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bowline::api::openchoreo::release::GitRef;
use bowline::resolve::git::{Allowed, Cause, Git, GitError, Settings};
use tempfile::TempDir;

/// A text that every secret in these tests contains, because no message may contain a secret.
pub const CANARY: &str = "CANARY-7f3a";

/// The directory of one test. It contains the git cache and other files, which bowline must not change.
pub struct Place {
    pub directory: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self {
            directory: TempDir::new().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn settings(&self) -> Settings {
        let mut settings = Settings::new(self.path("cache"));
        settings.allowed = Allowed {
            file: true,
            loopback_http: true,
        };
        settings.environment = ["PATH", "HOME"]
            .into_iter()
            .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
            .collect();
        settings
    }

    pub fn git(&self) -> Git {
        Git::new(self.settings())
    }

    /// Returns a git reader with a short deadline, for servers that do not answer.
    pub fn impatient(&self) -> Git {
        let mut settings = self.settings();
        settings.limits.deadline = Duration::from_millis(300);
        Git::new(settings)
    }

    /// Returns all files in the directory of the test except the git cache.
    pub fn beside_the_cache(&self) -> BTreeSet<PathBuf> {
        let mut found = BTreeSet::new();
        list(self.directory.path(), &self.path("cache"), &mut found);
        found
    }

    /// Returns the temporary files that failed fetches left in the git cache.
    pub fn leftovers(&self) -> Vec<PathBuf> {
        let mut found = BTreeSet::new();
        list(&self.path("cache"), Path::new(""), &mut found);
        found
            .into_iter()
            .filter(|path| path.to_string_lossy().contains(".part"))
            .collect()
    }
}

fn list(directory: &Path, without: &Path, into: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path == without {
            continue;
        }
        if path.is_dir() {
            list(&path, without, into);
        }
        into.insert(path);
    }
}

pub fn reference(repository: impl Into<String>, revision: &str, path: &str) -> GitRef {
    GitRef {
        repository: repository.into(),
        revision: revision.to_owned(),
        path: path.to_owned(),
    }
}

/// Reads a git reference, and checks that the read fails. Also checks the rules that hold for all error
/// messages.
pub fn refused(git: &Git, reference: &GitRef) -> GitError {
    let error = match git.read(reference) {
        Err(error) => error,
        Ok(bytes) => panic!(
            "{reference:?} was read: {}",
            String::from_utf8_lossy(&bytes)
        ),
    };
    let message = error.to_string();
    let all = format!("{message} {error:?} {git:?}");
    assert!(!all.contains(CANARY), "a secret in {all}");
    assert!(!all.chars().any(|c| c.is_control() && c != '\n'), "{all:?}");
    assert!(message.contains(&error.repository), "{message}");
    assert!(message.contains(&error.revision), "{message}");
    assert!(message.contains(&error.path), "{message}");
    println!("{message}");
    error
}

/// Returns a short name for the kind of an error.
pub fn kind(error: &GitError) -> &'static str {
    match *error.cause {
        Cause::Address(_) => "address",
        Cause::Revision(_) => "revision",
        Cause::Path(_) => "path",
        Cause::Deadline { .. } => "deadline",
        Cause::TooLarge { .. } => "too large",
        Cause::Unreachable { .. } => "unreachable",
        Cause::Denied { .. } => "denied",
        Cause::NoRepository { .. } => "no repository",
        Cause::Redirect { .. } => "redirect",
        Cause::Server { .. } => "server",
        Cause::NoCommit { .. } => "no commit",
        Cause::OtherHash { .. } => "other hash",
        Cause::Broken { .. } => "broken",
        Cause::NoPath => "no path",
        Cause::Directory => "directory",
        Cause::SymbolicLink { .. } => "symbolic link",
        Cause::Submodule { .. } => "submodule",
        Cause::LfsPointer => "lfs pointer",
        Cause::Program { .. } => "program",
        Cause::Token { .. } => "token",
        Cause::Cache { .. } => "cache",
        Cause::NotFetched => "not fetched",
    }
}
