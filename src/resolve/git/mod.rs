//! Reads files at commits of git repositories. Each commit is fetched once into a cache on disk, which processes
//! share.
//!
//! A reference contains the full id of a commit, so the content of its file never changes, and a cached commit is
//! never fetched again. A fetch gets one commit without its history, and stops at its deadline and its limits,
//! whatever the server does. Neither a repository nor a server can start a program, because no work tree is checked
//! out in which a hook, a filter, a submodule or a link could act.
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
    /// The directory of the cache. The first fetch creates it.
    pub cache: PathBuf,
    /// The limits of each fetch, and of the whole cache.
    pub limits: Limits,
    /// The transports that git references may use, in addition to https and ssh.
    pub allowed: Allowed,
    /// The directory with token files: a file `HOST` or `HOST_PORT` contains `TOKEN` or `USER:TOKEN`. None if there
    /// are no token files.
    pub tokens: Option<PathBuf>,
    /// Whether git's credential helpers are asked for a host that has no token file.
    pub credential_helpers: bool,
    /// The path of the git program, which is only started to ask the credential helpers.
    pub git: PathBuf,
    /// The ssh program and its first arguments.
    pub ssh: Vec<OsString>,
    /// The environment variables for ssh and for the credential helpers, such as PATH, HOME and SSH_AUTH_SOCK.
    pub environment: BTreeMap<OsString, OsString>,
    /// A file with the certificates that bowline trusts for https. None for the certificates of the operating system.
    pub authorities: Option<PathBuf>,
    /// The address of the proxy for https; None for no proxy.
    pub proxy: Option<String>,
    /// The hosts to which bowline connects without the proxy, in the format of `NO_PROXY`.
    pub no_proxy: Option<String>,
}

/// The limits of one fetch, and of the whole cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time that a fetch may take, including the wait for the lock of the repository.
    pub deadline: Duration,
    /// The largest number of bytes that one fetch may receive.
    pub received_bytes: u64,
    /// The largest number of objects that a fetched commit may have.
    pub objects: u64,
    /// The largest total size of a fetched commit's objects, uncompressed, in bytes.
    pub object_bytes: u64,
    /// The largest size of a file that a reference may name, in bytes.
    pub file_bytes: u64,
    /// The largest size of the whole cache, in bytes. If the cache is larger, the commits that were not read for the
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
    /// Creates settings with the cache directory `cache`, without credentials and without environment variables, for
    /// https and ssh.
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
    /// Formats the settings without the fields that may contain secrets: the environment variables and the address of
    /// the proxy.
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

/// Reads the files that git references name. Clones share the cache and the counters.
#[derive(Clone, Debug)]
pub struct Git {
    settings: Arc<Settings>,
    cache: Cache,
    counted: Arc<Counted>,
    /// The user's work tree, in which commits are looked up first, because a commit that it has needs no fetch. None
    /// to use only the cache.
    local: Option<WorkTree>,
    /// Whether this reader only uses the cache and never fetches.
    offline: bool,
}

/// The counters of a [`Git`] reader and its clones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of references that were read, with or without a fetch.
    pub reads: u64,
    /// The number of references whose commit needed no fetch, because the cache or the local work tree had it.
    pub hits: u64,
    /// The number of fetches, including those that failed.
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

/// A git reference whose parts were parsed and checked.
struct Wanted<'a> {
    address: Address,
    commit: ObjectId,
    path: &'a str,
}

impl Git {
    /// Creates a reader. Nothing is read from disk or network before the first call of `read`.
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

    /// Returns this reader with a work tree in which it looks up commits first; None for no work tree.
    pub fn beside(self, work: Option<&WorkTree>) -> Self {
        Self {
            local: work.cloned(),
            ..self
        }
    }

    /// Returns a reader with the same cache that never fetches: it fails at once if the cache does not have the
    /// commit.
    pub fn offline(&self) -> Self {
        Self {
            offline: true,
            ..self.clone()
        }
    }

    /// Returns the counters, which this reader shares with its clones.
    pub fn counts(&self) -> Counts {
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Counts {
            reads: read(&self.counted.reads),
            hits: read(&self.counted.hits),
            fetches: read(&self.counted.fetches),
            failed_fetches: read(&self.counted.failed_fetches),
        }
    }

    /// Returns the content of the file that a reference names. Fetches the commit first if neither the work tree nor
    /// the cache has it.
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

    /// Returns the content of the referenced file from the local work tree. None if the work tree does not have it,
    /// if the reference is invalid, or if the file is larger than the limit.
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
        // The cache is read again, because another process may have fetched the commit while this one waited for the
        // lock.
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

    /// Reads a file from the cache. If the commit must be fetched first, the outer error says why.
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

    /// Fetches a commit into the cache. The fetch has its own thread, because gix may panic on invalid data, and the
    /// panic then ends only this thread.
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
                // An error is ignored, because the next fetch removes this directory too.
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

/// Adds the files that make a directory a bare repository, so that users can look at the fetched commit with git.
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

/// Formats an error of gix together with its causes, on one line.
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
