//! The store: one log of changes in one SQLite file.
//!
//! A row is a change of one object; its id is the resourceVersion. Rows are never updated in place: the
//! newest row of a key is the current state, a deletion is a row too, and compaction removes replaced rows. A
//! read transaction lasts for one page at most, so SQLite can always checkpoint the write-ahead log; a
//! snapshot of an older revision is read from the log of changes instead.
//!
//! This module knows bytes, keys and revisions. The modules above it know objects, permissions and the
//! consequences of a deletion.

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

/// The resourceVersion: the id of a row of the log.
pub type Revision = u64;

/// The key of one object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// `{group}/{plural}`; the group is empty for core resources.
    pub resource: Arc<str>,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The object is new.
    Created,
    /// The object was replaced.
    Updated,
    /// The object is deleted; the row contains its last state.
    Deleted,
}

/// One change of one object, as stored.
#[derive(Clone, Debug)]
pub struct Row {
    /// The resourceVersion of this change.
    pub revision: Revision,
    /// The key of the object.
    pub key: Key,
    /// The kind of the change.
    pub event: Event,
    /// The revision of the state that this change replaced; 0 if there was none.
    pub previous: Revision,
    /// `metadata` as JSON, without the resourceVersion.
    pub meta: Vec<u8>,
    /// Everything except apiVersion, kind and metadata, as a JSON object; empty if the request does not ask
    /// for bodies.
    pub rest: Vec<u8>,
}

/// The reason why the store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The revision is older than the compacted history.
    #[error("revision {asked} is gone: the store keeps changes after {compacted}")]
    Compacted {
        /// The requested revision.
        asked: Revision,
        /// The newest compacted revision.
        compacted: Revision,
    },
    /// The revision does not exist yet.
    #[error("revision {asked} is in the future: the newest is {newest}")]
    Future {
        /// The requested revision.
        asked: Revision,
        /// The newest existing revision.
        newest: Revision,
    },
    /// Another writer changed the object; contains the current row, or None if the object does not exist.
    #[error("the object changed meanwhile")]
    Conflict(Option<Box<Row>>),
    /// The namespace of the object does not exist, or is being deleted.
    #[error("namespace is {}", if *.terminating { "being deleted" } else { "missing" })]
    Namespace {
        /// Whether the namespace is being deleted; otherwise it does not exist.
        terminating: bool,
    },
    /// The content of the file cannot be read.
    #[error(
        "the store {path} {damage}; restore it from a backup, or move it away (with its -wal and -shm files) to begin with an empty store"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        damage: Damage,
    },
    /// The disk has no space for a change.
    #[error(
        "cannot write the store {path}: {cause}; nothing is lost: free space on its disk, or raise the limit for the size of a file (ulimit -f)"
    )]
    NoSpace {
        /// The file.
        path: PathBuf,
        /// SQLite's reason.
        cause: Arc<rusqlite::Error>,
    },
    /// SQLite returned an error.
    #[error("the store {path}: {cause}")]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// SQLite's reason.
        cause: Arc<rusqlite::Error>,
    },
    /// The store was closed while the request waited.
    #[error("the store is closed")]
    Closed,
}

/// An open file; all users of the file in this process share it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// How connections use the file, and the state of the file at the time of this decision.
    access: Mutex<(open::Access, open::Outside)>,
    jobs: std::sync::mpsc::Sender<write::Job>,
    idle: Mutex<Vec<Connection>>,
    readers: Arc<Semaphore>,
    head: watch::Sender<Revision>,
    /// The newest change of each resource, so that a watch queries the file only if its resource changed.
    touched: RwLock<HashMap<Arc<str>, Revision>>,
    /// The newest revision that another process compacted before this process saw it.
    forgotten: AtomicU64,
    bounds: compact::Bounds,
}

/// The changes since a revision.
#[derive(Default)]
struct News {
    /// The newest change of each resource.
    changed: HashMap<Arc<str>, Revision>,
    /// Changes up to this revision may be missing from `changed`, because they were compacted; 0 if no changes are
    /// missing.
    forgotten: Revision,
    /// The revision up to which the changes are complete.
    newest: Revision,
}

/// The open files of this process. Each file is opened only once, because closing a second handle would drop
/// SQLite's locks.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Inner>>>> = Mutex::new(None);

impl Store {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the newest revision that this process knows, as a channel that reports later revisions.
    pub fn head(&self) -> watch::Receiver<Revision> {
        self.0.head.subscribe()
    }

    /// Returns the revision of the newest change of a resource that this process knows. Changes that were
    /// compacted before this process read them are taken as changes of every resource.
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

    /// Makes changes visible in this process: first the changed resources, then the head. A reader of the
    /// head relies on this order: `touched` contains all changes up to the head.
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
