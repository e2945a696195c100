//! Files at commits of git repositories, fetched once into a bare cache that processes share.
//!
//! A reference names a commit by its full id, so its content never changes, and a cached commit is never
//! fetched again. A fetch gets one commit without its history, and ends at its deadline or at its limits,
//! whatever the server does. Files come from the object database; there is no work tree, so no hook, filter,
//! submodule or link has anything to act on, and neither a repository's configuration nor a server's answer
//! can make a program run.
//!
//! All functions block: async callers use `spawn_blocking`. This module reads no environment variable;
//! [`Settings`] contains all settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gix::ObjectId;
use gix_transport::Protocol;
use gix_transport::client::blocking_io::http;

use crate::api::openchoreo::release::GitRef;
use crate::git::WorkTree;

mod address;
mod budget;
mod cache;
mod credentials;
mod error;
mod fetch;
mod file;
mod http_client;
mod objects;
mod pack;
mod process;
mod ssh;
mod work_tree;

pub use address::{
    Address, AddressError, Allowed, Origin, PathError, RevisionError, Transport, check_path, parse,
    parse_revision, shown,
};
pub use error::{Cause, GitError};
pub use work_tree::{WorkTreeError, work_tree};

use budget::Budget;
use cache::{Cache, Entry, Lock, failed};
use objects::{Missing, Objects};

/// The settings of the reader.
#[derive(Clone)]
pub struct Settings {
    /// The directory of the cache; it is created when it is needed.
    pub cache: PathBuf,
    /// The limits of a fetch.
    pub limits: Limits,
    /// The transports that are allowed in addition to https and ssh.
    pub allowed: Allowed,
    /// A directory with one file per host, named `HOST` or `HOST_PORT`. A file contains `TOKEN` or
    /// `USER:TOKEN`.
    pub tokens: Option<PathBuf>,
    /// Whether git's credential helpers are used if there is no token file.
    pub credential_helpers: bool,
    /// The git program that calls the credential helpers.
    pub git: PathBuf,
    /// The ssh program and its arguments.
    pub ssh: Vec<OsString>,
    /// The variables that ssh and credential helpers get: PATH, HOME, SSH_AUTH_SOCK and the like.
    pub environment: BTreeMap<OsString, OsString>,
    /// A file with the trusted certificates for https. None: the certificates of the system.
    pub authorities: Option<PathBuf>,
    /// The proxy for https.
    pub proxy: Option<String>,
    /// The hosts that are reached without the proxy, in the format of `NO_PROXY`.
    pub no_proxy: Option<String>,
}

/// The limits of one fetch, and of the whole cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time of a fetch, including the wait for a lock.
    pub deadline: Duration,
    /// The largest number of bytes that a server may send.
    pub received_bytes: u64,
    /// The largest number of objects of a commit.
    pub objects: u64,
    /// The largest uncompressed size of all objects of a commit, in bytes.
    pub object_bytes: u64,
    /// The largest size of the file that is read, in bytes.
    pub file_bytes: u64,
    /// The largest size of the whole cache in bytes; the least recently read commits are removed first.
    pub cache_bytes: u64,
}

const MIB: u64 = 1024 * 1024;

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(60),
            received_bytes: 128 * MIB,
            objects: 500_000,
            object_bytes: 512 * MIB,
            file_bytes: MIB,
            cache_bytes: 2048 * MIB,
        }
    }
}

impl Settings {
    /// Creates settings with https and ssh, no credentials and an empty environment.
    pub fn new(cache: impl Into<PathBuf>) -> Self {
        Self {
            cache: cache.into(),
            limits: Limits::default(),
            allowed: Allowed::default(),
            tokens: None,
            credential_helpers: false,
            git: "git".into(),
            ssh: vec!["ssh".into()],
            environment: BTreeMap::new(),
            authorities: None,
            proxy: None,
            no_proxy: None,
        }
    }
}

impl fmt::Debug for Settings {
    /// Leaves out fields that may contain secrets: the variables, and the address of the proxy.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("cache", &self.cache)
            .field("limits", &self.limits)
            .field("allowed", &self.allowed)
            .field("tokens", &self.tokens)
            .field("credential_helpers", &self.credential_helpers)
            .finish_non_exhaustive()
    }
}

/// A reader of files by git reference. Clones share the cache and the counters.
#[derive(Clone, Debug)]
pub struct Git {
    settings: Arc<Settings>,
    cache: Cache,
    counted: Arc<Counted>,
    /// A work tree whose commits need not be fetched: a commit id identifies its content, whatever the
    /// repository.
    local: Option<WorkTree>,
    /// Whether the reader never connects to a repository.
    offline: bool,
}

/// The counters of a reader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of references that were read.
    pub reads: u64,
    /// The number of references that were answered from the cache or the local work tree.
    pub hits: u64,
    /// The number of fetches from repositories.
    pub fetches: u64,
    /// The number of fetches that failed.
    pub failed_fetches: u64,
}

#[derive(Debug, Default)]
struct Counted {
    reads: AtomicU64,
    hits: AtomicU64,
    fetches: AtomicU64,
    failed_fetches: AtomicU64,
}

/// Increments a counter.
fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

/// A reference that was checked.
struct Wanted<'a> {
    address: Address,
    commit: ObjectId,
    path: &'a str,
}

impl Git {
    /// Creates a reader. It uses neither disk nor network before the first read.
    pub fn new(settings: Settings) -> Self {
        let cache = Cache::new(settings.cache.clone());
        Self {
            settings: Arc::new(settings),
            cache,
            counted: Arc::default(),
            local: None,
            offline: false,
        }
    }

    /// Makes the reader look for commits in a work tree first.
    pub fn beside(self, work: Option<&WorkTree>) -> Self {
        Self {
            local: work.cloned(),
            ..self
        }
    }

    /// Returns a reader of the same cache that never connects to a repository: it fails at once if a commit
    /// is not in the cache.
    pub fn offline(&self) -> Self {
        Self {
            offline: true,
            ..self.clone()
        }
    }

    /// Returns the counters of all clones together.
    pub fn counts(&self) -> Counts {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Counts {
            reads: read(&self.counted.reads),
            hits: read(&self.counted.hits),
            fetches: read(&self.counted.fetches),
            failed_fetches: read(&self.counted.failed_fetches),
        }
    }

    /// Reads the file that a reference names, from the cache or else from its repository.
    pub fn read(&self, reference: &GitRef) -> Result<Vec<u8>, GitError> {
        if let Some(found) = self.look_locally(reference) {
            count(&self.counted.reads);
            count(&self.counted.hits);
            return Ok(found);
        }
        self.check(reference)
            .and_then(|wanted| self.find(&wanted))
            .map_err(|cause| GitError::new(reference, cause))
    }

    /// Reads a file of a commit in the work tree. None: the work tree does not have it, the reference is
    /// invalid, or the file is larger than the limit.
    fn look_locally(&self, reference: &GitRef) -> Option<Vec<u8>> {
        let work = self.local.as_ref()?;
        check_path(&reference.path).ok()?;
        parse_revision(&reference.revision).ok()?;
        let limit = usize::try_from(self.settings.limits.file_bytes).unwrap_or(usize::MAX);
        let found = work.blob(&reference.revision, &reference.path, limit);
        found.ok()?
    }

    fn check<'a>(&self, reference: &'a GitRef) -> Result<Wanted<'a>, Cause> {
        check_path(&reference.path)?;
        Ok(Wanted {
            commit: parse_revision(&reference.revision)?,
            address: parse(&reference.repository, self.settings.allowed)?,
            path: &reference.path,
        })
    }

    fn find(&self, wanted: &Wanted<'_>) -> Result<Vec<u8>, Cause> {
        count(&self.counted.reads);
        let key = wanted.address.key();
        let entry = self.cache.entry(&key, &wanted.commit);
        if let Ok(found) = self.look(&entry, wanted) {
            count(&self.counted.hits);
            return found;
        }
        if self.offline {
            return Err(Cause::NotFetched);
        }
        let limits = &self.settings.limits;
        let budget = Budget::new(limits.deadline, limits.received_bytes);
        let lock = self.cache.lock(&key, &budget)?;
        // The previous holder of the lock may have fetched the same commit.
        if let Ok(found) = self.look(&entry, wanted) {
            count(&self.counted.hits);
            return found;
        }
        count(&self.counted.fetches);
        let fetched = self.fetch(&entry, wanted, &lock, &budget);
        fetched.inspect_err(|_| count(&self.counted.failed_fetches))?;
        let found = self.look(&entry, wanted);
        drop(lock);
        if let Err(cause) = self.cache.evict(limits.cache_bytes, &entry) {
            tracing::warn!(%cause, "cannot remove old commits from the git cache; it is over its limit");
        }
        found.map_err(|why| Cause::Broken { why })?
    }

    /// Reads from the cache. The outer error says why the cache has no answer.
    fn look(&self, entry: &Entry, wanted: &Wanted<'_>) -> Result<Result<Vec<u8>, Cause>, String> {
        if !entry.is_published() {
            return Err("the commit is not in the cache".to_owned());
        }
        let limits = &self.settings.limits;
        let mut objects = Objects::open(&entry.directory, wanted.commit.kind(), limits)?;
        match objects.file(&wanted.commit, wanted.path, limits.file_bytes) {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(Missing::Cause(cause)) => Ok(Err(cause)),
            Err(Missing::Damage(why)) => Err(why),
        }
    }

    /// Fetches a commit into the cache, on its own thread: invalid data of a server can at worst end that
    /// thread.
    fn fetch(
        &self,
        entry: &Entry,
        wanted: &Wanted<'_>,
        lock: &Lock,
        budget: &Budget,
    ) -> Result<(), Cause> {
        let part = entry.stage(lock)?;
        let made = std::thread::scope(|scope| {
            let make = || self.make(&part, wanted, budget);
            match std::thread::Builder::new()
                .name("git-fetch".to_owned())
                .spawn_scoped(scope, make)
            {
                Ok(thread) => thread.join().unwrap_or_else(|_| {
                    Err(Cause::Broken {
                        why: "bowline could not process it".to_owned(),
                    })
                }),
                Err(source) => Err(failed(&part)(source)),
            }
        });
        match made {
            Ok(()) => entry.publish(&part, lock),
            Err(cause) => {
                // If this removal fails, the next fetch removes the directory.
                let _ = fs::remove_dir_all(&part);
                Err(cause)
            }
        }
    }

    fn make(&self, part: &Path, wanted: &Wanted<'_>, budget: &Budget) -> Result<(), Cause> {
        let (settings, commit) = (&*self.settings, wanted.commit);
        let limits = &settings.limits;
        match &wanted.address.transport {
            Transport::Http { origin, path } => {
                let client = http_client::Client::new(settings, origin, path, budget)?;
                let url = gix::url::parse(wanted.address.as_str())
                    .map_err(|error| Cause::Broken { why: chain(&error) })?;
                let transport = http::Transport::new_http(client, url, Protocol::V2, false);
                fetch::receive(transport, commit, part, limits, budget)?;
            }
            ssh @ Transport::Ssh { .. } => ssh::receive(settings, ssh, commit, part, budget)?,
            Transport::File(source) => file::receive(source, commit, part, limits, budget)?,
        }
        pack::unpack(part, commit.kind(), limits, budget)?;
        let mut objects =
            Objects::open(part, commit.kind(), limits).map_err(|why| Cause::Broken { why })?;
        objects.check(&commit, budget)?;
        bare(part, &commit)
    }
}

/// Adds the files that make the directory a bare repository, so that users can inspect the cache with git.
fn bare(directory: &Path, commit: &ObjectId) -> Result<(), Cause> {
    let config = match commit.kind() {
        gix::hash::Kind::Sha256 => {
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectformat = sha256\n"
        }
        _ => "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    };
    let refs = directory.join("refs");
    fs::create_dir_all(&refs).map_err(failed(&refs))?;
    for (name, text) in [
        ("HEAD", format!("{commit}\n")),
        ("config", config.to_owned()),
        ("shallow", format!("{commit}\n")),
    ] {
        let path = directory.join(name);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(())
}

/// Formats an error of gix and its causes on one line.
fn chain(error: &gix::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let next = cause.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        source = cause.source();
    }
    text
}
