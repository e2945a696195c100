//! The store: a log of changes in one SQLite file.
//!
//! A row is one change of one object, and its id is the resourceVersion. Rows are never updated: the newest
//! row of a key is the current state, a deletion adds a row, and compaction removes replaced rows. A read
//! transaction lasts for one page at most, so that SQLite can always checkpoint the write-ahead log. A list
//! at an older revision is therefore read from the log of changes, not from a long transaction.
//!
//! This module handles bytes, keys and revisions. The modules above it handle objects, permissions and the
//! consequences of deletions.

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

/// A resourceVersion: the id of a row of the log.
pub type Revision = u64;

/// The key of an object in the store.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// The resource, as `{group}/{plural}`; the group is empty for core resources.
    pub resource: Arc<str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The object was created.
    Created,
    /// The object was replaced.
    Updated,
    /// The object was deleted; the row contains its last state.
    Deleted,
}

/// A row of the log: one change of one object.
#[derive(Clone, Debug)]
pub struct Row {
    /// The resourceVersion of this change.
    pub revision: Revision,
    /// The key of the object.
    pub key: Key,
    /// The kind of the change.
    pub event: Event,
    /// The revision of the state that this change replaced; 0 for a creation.
    pub previous: Revision,
    /// `metadata` as JSON, without the resourceVersion.
    pub meta: Vec<u8>,
    /// All fields except apiVersion, kind and metadata, as a JSON object; empty if the request did not ask
    /// for them.
    pub rest: Vec<u8>,
}

/// The reason why a request to the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The requested revision is older than the history that the store keeps.
    #[error("revision {asked} is gone: the store keeps changes after {compacted}")]
    Compacted {
        /// The requested revision.
        asked: Revision,
        /// The newest revision that was compacted.
        compacted: Revision,
    },
    /// The requested revision does not exist yet.
    #[error("revision {asked} is in the future: the newest is {newest}")]
    Future {
        /// The requested revision.
        asked: Revision,
        /// The newest existing revision.
        newest: Revision,
    },
    /// Another writer changed the object. The field has the current row, or None if the object does not
    /// exist.
    #[error("the object changed meanwhile")]
    Conflict(Option<Box<Row>>),
    /// The namespace of the object does not exist, or is being deleted.
    #[error("namespace is {}", if *.terminating { "being deleted" } else { "missing" })]
    Namespace {
        /// Whether the namespace is being deleted; otherwise it does not exist.
        terminating: bool,
    },
    /// The content of the file is damaged.
    #[error(
        "the store {path} {damage}; restore it from a backup, or move it away (with its -wal and -shm files) to begin with an empty store"
    )]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The kind of damage.
        damage: Damage,
    },
    /// The disk is full, or the file has reached a size limit.
    #[error(
        "cannot write the store {path}: {cause}; nothing is lost: free space on its disk, or raise the limit for the size of a file (ulimit -f)"
    )]
    NoSpace {
        /// The path of the file.
        path: PathBuf,
        /// SQLite's error.
        cause: Arc<rusqlite::Error>,
    },
    /// SQLite failed for another reason.
    #[error("the store {path}: {cause}")]
    Sqlite {
        /// The path of the file.
        path: PathBuf,
        /// SQLite's error.
        cause: Arc<rusqlite::Error>,
    },
    /// The store is read-only, or was closed while the request waited.
    #[error("the store is closed")]
    Closed,
}

/// An open store file. All users of the file in this process share one store.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// How connections access the file, and the state of the file when this was decided.
    access: Mutex<(open::Access, open::Outside)>,
    jobs: std::sync::mpsc::Sender<write::Job>,
    idle: Mutex<Vec<Connection>>,
    readers: Arc<Semaphore>,
    head: watch::Sender<Revision>,
    /// The newest known change of each resource. A watch queries the file only after a change of its
    /// resource.
    touched: RwLock<HashMap<Arc<str>, Revision>>,
    /// The newest revision that another process compacted before this process read it.
    forgotten: AtomicU64,
    bounds: compact::Bounds,
}

/// The changes after a revision, as far as other parts of this process must know them.
#[derive(Default)]
struct News {
    /// The revision of the newest change of each changed resource.
    changed: HashMap<Arc<str>, Revision>,
    /// Another process compacted changes up to this revision before this process read them; 0 if no changes
    /// are missing in `changed`.
    forgotten: Revision,
    /// The newest revision that these changes include.
    newest: Revision,
}

/// The open stores of this process. Each file is opened only once: closing a second file handle would release
/// the locks of the first one.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Inner>>>> = Mutex::new(None);

impl Store {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns a channel with the newest revision that this process knows.
    pub fn head(&self) -> watch::Receiver<Revision> {
        self.0.head.subscribe()
    }

    /// Returns the newest change of a resource that this process knows. A compacted change that this process
    /// never read counts as a change of every resource.
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

    /// Announces changes in this process: first the changed resources, then the new head. Readers of the head
    /// rely on this order: `touched` includes all changes up to the head.
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
