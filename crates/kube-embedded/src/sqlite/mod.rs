//! The store: a log of changes in one SQLite file.
//!
//! A row is one change of one object, and the id of the row is the resourceVersion. Rows are never updated: the
//! newest row of a key is the current state, a deletion adds a row, and compaction removes replaced rows. A read
//! transaction lasts for one page at most, so that SQLite can always checkpoint the write-ahead log. Therefore the
//! later pages of a list are read from the log of changes, at the revision of the first page.
//!
//! This module handles bytes, keys and revisions. Other modules handle objects, permissions and the consequences of
//! deletions.

mod compact;
mod damage;
mod open;
mod read;
#[cfg(test)]
mod tests;
mod waiting;
mod write;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, Weak};

use rusqlite::Connection;
use tokio::sync::{Semaphore, watch};

pub use damage::Damage;
pub use open::OpenError;
pub use read::{Changes, Page, PageRequest, Scope};
pub use waiting::long_waits;
pub use write::{Expect, Fill, Follow, FollowUp, Put, Remove, Write};

/// A resourceVersion: the id of a row in the log.
pub type Revision = u64;

/// The key of an object in the store: resource, namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The resource of the object, as `{group}/{plural}`; the group is empty for core resources.
    pub resource: Arc<str>,
    /// The namespace of the object; empty if it is cluster-scoped.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// The kind of a change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The object was created.
    Created,
    /// The object was replaced.
    Updated,
    /// The object was deleted. The row contains its last state.
    Deleted,
}

/// A row of the log: one change of one object.
#[derive(Clone, Debug)]
pub struct Row {
    /// The resourceVersion of this change.
    pub revision: Revision,
    /// The key of the changed object.
    pub key: Key,
    /// The kind of the change.
    pub event: Event,
    /// The revision of the object's state before this change; 0 for a creation.
    pub previous: Revision,
    /// The object's `metadata` as JSON, without the resourceVersion.
    pub meta: Vec<u8>,
    /// All fields of the object except apiVersion, kind and metadata, as JSON; empty if the caller did not ask for
    /// them.
    pub rest: Vec<u8>,
}

/// The reason why a request to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The requested revision is too old, because compaction has removed its history.
    #[error("revision {asked} is gone: the store keeps changes after {compacted}")]
    Compacted {
        /// The revision that was requested.
        asked: Revision,
        /// The newest revision whose history is removed.
        compacted: Revision,
    },
    /// The requested revision is newer than all revisions in the store.
    #[error("revision {asked} is in the future: the newest is {newest}")]
    Future {
        /// The revision that was requested.
        asked: Revision,
        /// The newest revision in the store.
        newest: Revision,
    },
    /// Another writer has changed the object. Contains the current row; None if the object does not exist.
    #[error("the object changed meanwhile")]
    Conflict(Option<Box<Row>>),
    /// The namespace of the object does not exist or is being deleted.
    #[error("namespace is {}", if *.terminating { "being deleted" } else { "missing" })]
    Namespace {
        /// Whether the namespace is being deleted; false if it does not exist.
        terminating: bool,
    },
    /// The store file is damaged.
    #[error(
        "the store {path} {damage}; restore it from a backup, or move it away (with its -wal and -shm files) to begin with an empty store"
    )]
    Damaged {
        /// The path of the store file.
        path: PathBuf,
        /// How the store file is damaged.
        damage: Damage,
    },
    /// The disk is full, or the store file has reached a size limit.
    #[error(
        "cannot write the store {path}: {cause}; nothing is lost: free space on its disk, or raise the limit for the size of a file (ulimit -f)"
    )]
    NoSpace {
        /// The path of the store file.
        path: PathBuf,
        /// The error of SQLite.
        cause: Arc<rusqlite::Error>,
    },
    /// SQLite failed for another reason.
    #[error("the store {path}: {cause}")]
    Sqlite {
        /// The path of the store file.
        path: PathBuf,
        /// The error of SQLite.
        cause: Arc<rusqlite::Error>,
    },
    /// The store was closed while the request waited, or it is read-only and the request is a write.
    #[error("the store is closed")]
    Closed,
}

/// An open store file. In one process, everybody who opens the same file gets the same store.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// How connections access the file, and the state of the file in the file system when this was decided.
    access: Mutex<(open::Access, open::Outside)>,
    jobs: std::sync::mpsc::Sender<write::Job>,
    idle: Mutex<Vec<Connection>>,
    readers: Arc<Semaphore>,
    head: watch::Sender<Revision>,
    /// The newest change of each resource that this process knows. A watch reads the file only if this has changed
    /// for its resource.
    touched: RwLock<HashMap<Arc<str>, Revision>>,
    /// The newest revision that another process compacted before this process had read it.
    forgotten: AtomicU64,
    bounds: compact::Bounds,
}

/// The changes after a revision, for the watches and the catalog in this process.
#[derive(Default)]
struct News {
    /// The newest revision of each resource that has changed.
    changed: HashMap<Arc<str>, Revision>,
    /// The newest revision that another process compacted before this process had read it, so that it is missing in
    /// `changed`; 0 if none is missing.
    forgotten: Revision,
    /// The newest revision up to which `changed` is complete.
    newest: Revision,
}

/// The open stores of this process. A file must be opened only once per process, because closing a second file handle
/// would release the locks of the first.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Inner>>>> = Mutex::new(None);

impl Store {
    /// Returns the path of the store file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns a channel that contains the newest revision that this process knows.
    pub fn head(&self) -> watch::Receiver<Revision> {
        self.0.head.subscribe()
    }

    /// Returns the revision of a resource's newest change that this process knows. If another process compacted
    /// changes before this process had read them, they count as changes of every resource.
    pub fn touched(&self, resource: &str) -> Revision {
        let touched = self.0.touched.read().unwrap_or_else(|e| e.into_inner());
        let known = touched.get(resource).copied().unwrap_or_default();
        known.max(self.0.forgotten.load(Ordering::Acquire))
    }

    fn failed(&self, cause: rusqlite::Error) -> StoreError {
        self.0.failed(cause)
    }
}

impl Inner {
    fn failed(&self, cause: rusqlite::Error) -> StoreError {
        let path = self.path.clone();
        match Damage::of(&path, &cause) {
            Some(damage) => StoreError::Damaged { path, damage },
            None if open::is_no_space(&cause) => StoreError::NoSpace {
                path,
                cause: Arc::new(cause),
            },
            None => StoreError::Sqlite {
                path,
                cause: Arc::new(cause),
            },
        }
    }

    /// Announces changes in this process: first the changed resources, then the newest revision. Readers rely on this
    /// order: when they see a revision, `touched` already includes all changes up to it.
    fn publish(&self, news: News) {
        let newest = news.newest;
        self.forgotten.fetch_max(news.forgotten, Ordering::AcqRel);
        {
            let mut touched = self.touched.write().unwrap_or_else(|e| e.into_inner());
            for (resource, revision) in news.changed {
                let known = touched.entry(resource).or_default();
                *known = revision.max(*known);
            }
        }
        self.head.send_if_modified(|head| {
            let moved = newest > *head;
            *head = newest.max(*head);
            moved
        });
    }
}
