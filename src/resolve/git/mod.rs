//! Reads files at commits of git repositories. Each commit is fetched once into a cache on disk that
//! processes share.
//!
//! A reference names a commit by its full id, so its content never changes, and a cached commit is never
//! fetched again. A fetch gets one commit without its history, and stops at its deadline and its limits,
//! whatever the server does. Files are read from the object database. There is no work tree in which a hook,
//! a filter, a submodule or a link could act, and neither the configuration of a repository nor the answer of
//! a server can start a program.
//!
//! All functions block, so async callers use `spawn_blocking`. This module reads no environment variables;
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

/// The settings of a [`Git`] reader.
#[derive(Clone)]
pub struct Settings {
    /// The directory of the cache, which is created at the first fetch.
    pub cache: PathBuf,
    /// The limits of a fetch and of the cache.
    pub limits: Limits,
    /// The transports that are allowed in addition to https and ssh.
    pub allowed: Allowed,
    /// A directory with a file per host, named `HOST` or `HOST_PORT`, that contains `TOKEN` or `USER:TOKEN`.
    /// None if there are no token files.
    pub tokens: Option<PathBuf>,
    /// Whether git's credential helpers are used if a host has no token file.
    pub credential_helpers: bool,
    /// The path of the git program, which calls the credential helpers.
    pub git: PathBuf,
    /// The ssh program and its arguments.
    pub ssh: Vec<OsString>,
    /// The environment variables for ssh and the credential helpers, such as PATH, HOME and SSH_AUTH_SOCK.
    pub environment: BTreeMap<OsString, OsString>,
    /// A file with the trusted certificates for https. None for the certificates of the system.
    pub authorities: Option<PathBuf>,
    /// The address of the proxy for https; None for no proxy.
    pub proxy: Option<String>,
    /// The hosts to which bowline connects without the proxy, in the format of `NO_PROXY`.
    pub no_proxy: Option<String>,
}

/// The limits of one fetch, and of the whole cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time of a fetch, including the wait for a lock.
    pub deadline: Duration,
    /// The largest number of bytes that bowline receives for a commit.
    pub received_bytes: u64,
    /// The largest number of objects in a commit.
    pub objects: u64,
    /// The largest uncompressed size of all objects in a commit, in bytes.
    pub object_bytes: u64,
    /// The largest size of a file that is read, in bytes.
    pub file_bytes: u64,
    /// The largest size of the whole cache, in bytes. Above it, the commits that were not read for the
    /// longest time are removed.
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
    /// Creates settings for https and ssh without credentials and without environment variables.
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
    /// Leaves out the fields that may contain secrets: the environment variables and the address of the
    /// proxy.
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

/// Reads files that git references name. Clones share the cache and the counters.
#[derive(Clone, Debug)]
pub struct Git {
    settings: Arc<Settings>,
    cache: Cache,
    counted: Arc<Counted>,
    /// A work tree whose commits need no fetch. A commit id identifies the content in any repository.
    local: Option<WorkTree>,
    /// Whether the reader never fetches.
    offline: bool,
}

/// The counters of a [`Git`] reader and its clones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of references that were read, from the cache or not.
    pub reads: u64,
    /// The number of references that were found in the cache or in the local work tree.
    pub hits: u64,
    /// The number of fetches, including failed ones.
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

fn count(number: &AtomicU64) {
    number.fetch_add(1, Ordering::Relaxed);
}

/// A git reference in parsed and checked form.
struct Wanted<'a> {
    address: Address,
    commit: ObjectId,
    path: &'a str,
}

impl Git {
    /// Creates a reader. It does not use disk or network before the first read.
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

    /// Returns the reader with a work tree in which it looks for commits first.
    pub fn beside(self, work: Option<&WorkTree>) -> Self {
        Self {
            local: work.cloned(),
            ..self
        }
    }

    /// Returns a reader with the same cache that never fetches. It fails at once if a commit is not in the
    /// cache.
    pub fn offline(&self) -> Self {
        Self {
            offline: true,
            ..self.clone()
        }
    }

    /// Returns the counters of this reader and its clones.
    pub fn counts(&self) -> Counts {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Counts {
            reads: read(&self.counted.reads),
            hits: read(&self.counted.hits),
            fetches: read(&self.counted.fetches),
            failed_fetches: read(&self.counted.failed_fetches),
        }
    }

    /// Returns the content of the file that a reference names. Fetches the commit if it is not in the cache.
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

    /// Returns the file from the local work tree. None if the work tree does not have it, if the reference is
    /// invalid, or if the file is larger than the limit.
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
        // Another process may have fetched the commit while this one waited for the lock.
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

    /// Reads a file from the cache. The outer error says why the commit must be fetched.
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

    /// Fetches a commit into the cache. The fetch runs on its own thread, so that a panic because of invalid
    /// data ends only that thread.
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
                // If this fails, the next fetch removes the directory.
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

/// Adds the files of a bare repository to a directory, so that users can inspect it with git.
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

/// Formats an error of gix with its causes, on one line.
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
