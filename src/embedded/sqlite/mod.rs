//! The store: one log of changes in one SQLite file.
//!
//! A row is a change of one object; its id is the resourceVersion. Nothing is
//! updated in place: the newest row of a key is its state, a deletion is a row
//! too, and compaction removes what newer rows replaced. Reads never hold a
//! transaction longer than one page, so the write-ahead log can always be
//! folded back; a snapshot of an older revision is read from the log instead.
//!
//! This module knows bytes, keys and revisions. What an object means, who may
//! write it and what a deletion drags along is decided above it.

mod compact;
mod damage;
mod open;
mod read;
#[cfg(test)]
mod tests;
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
pub use write::{Expect, Fill, Follow, FollowUp, Put, Remove, Write};

/// The resourceVersion: the id of a row of the log.
pub type Revision = u64;

/// Names one object of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    /// `{group}/{plural}`; the core group is empty.
    pub resource: Arc<str>,
    /// Empty for objects outside namespaces.
    pub namespace: String,
    /// The object's name.
    pub name: String,
}

/// What a row says happened to its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The object is new.
    Created,
    /// The object was replaced.
    Updated,
    /// The object is gone; the row holds its last state.
    Deleted,
}

/// One change of one object, as stored.
#[derive(Clone, Debug)]
pub struct Row {
    /// The resourceVersion of this change.
    pub revision: Revision,
    /// Which object changed.
    pub key: Key,
    /// What happened.
    pub event: Event,
    /// The row that this one replaced; 0 for none.
    pub previous: Revision,
    /// `metadata` as JSON, without the resourceVersion.
    pub meta: Vec<u8>,
    /// Everything but apiVersion, kind and metadata, as a JSON object; empty when it was not asked for.
    pub rest: Vec<u8>,
}

/// Why the store could not answer.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The revision is older than what compaction kept.
    #[error("revision {asked} is gone: the store keeps changes after {compacted}")]
    Compacted {
        /// What was asked for.
        asked: Revision,
        /// The newest revision whose past is gone.
        compacted: Revision,
    },
    /// A revision that nobody has written yet.
    #[error("revision {asked} is in the future: the newest is {newest}")]
    Future {
        /// What was asked for.
        asked: Revision,
        /// The newest that there is.
        newest: Revision,
    },
    /// Somebody else changed the object; this is the row that is there now.
    #[error("the object changed meanwhile")]
    Conflict(Option<Box<Row>>),
    /// The namespace of the object does not exist, or is going.
    #[error("namespace is {}", if *.terminating { "being deleted" } else { "missing" })]
    Namespace {
        /// The namespace is being deleted, rather than absent.
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
    /// SQLite refused.
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

/// One open file, shared by everybody in this process who opened it.
#[derive(Clone)]
pub struct Store(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// How connections use the file, and how the file looked when that was decided.
    access: Mutex<(open::Access, open::Outside)>,
    jobs: std::sync::mpsc::Sender<write::Job>,
    idle: Mutex<Vec<Connection>>,
    readers: Arc<Semaphore>,
    head: watch::Sender<Revision>,
    /// The newest change of each resource, so that a watcher asks the file only for its own.
    touched: RwLock<HashMap<Arc<str>, Revision>>,
    /// Up to here another process compacted changes before this one saw them.
    forgotten: AtomicU64,
    bounds: compact::Bounds,
}

/// What happened since a revision.
#[derive(Default)]
struct News {
    /// The newest change of each resource.
    changed: HashMap<Arc<str>, Revision>,
    /// Changes up to here may be missing above, because they were compacted; 0 for none.
    forgotten: Revision,
    /// The revision up to which all is told.
    newest: Revision,
}

/// Files open in this process: closing a second handle of its own would drop SQLite's locks.
static OPEN: Mutex<Option<HashMap<PathBuf, Weak<Inner>>>> = Mutex::new(None);

impl Store {
    /// The file behind this store.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The newest revision that this process knows, and news of later ones.
    pub fn head(&self) -> watch::Receiver<Revision> {
        self.0.head.subscribe()
    }

    /// The newest change of a resource that this process knows. What was compacted unseen
    /// counts as a change of every resource.
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
            None => StoreError::Sqlite {
                path,
                cause: Arc::new(cause),
            },
        }
    }

    /// Makes changes known to this process: first what changed, then how far. Whoever reads
    /// the head relies on it: all changes up to the head have been told before.
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
