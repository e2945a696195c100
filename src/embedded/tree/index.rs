//! What is known of the files, kept beside the store: so that only what changed is read again.
//!
//! It can always be thrown away: whoever finds none, or one of another version, reads everything.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, Metadata};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chronicle::Entry;
use crate::embedded::sqlite::Revision;

/// Raised when what is kept, or how files are read, changes its meaning.
const VERSION: u32 = 3;
/// A file that was written less than this before it was read may have been written again within the same
/// tick of the file system's clock.
const TICK: i128 = 100_000_000;

/// Everything that is known of a work tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    version: u32,
    /// The files, by path.
    pub(super) files: BTreeMap<String, Known>,
    /// The commit up to which the log was read.
    pub(super) head: Option<String>,
    /// When files came to the branch, in seconds.
    pub(super) births: HashMap<String, i64>,
    /// What the log says of pins, by namespace and name; nothing for the namespace that a file leaves out.
    pub(super) pins: BTreeMap<String, Recorded>,
    /// The number of the newest entry of each component's releases, by namespace and name.
    pub(super) components: BTreeMap<String, i64>,
    /// The namespace of objects that name none.
    pub(super) namespace: String,
    /// The newest revision of the store when this was written.
    pub(super) revision: Revision,
    /// Whether the store may hold what is in no file any more.
    #[serde(skip)]
    pub(super) unsure: bool,
    /// Entries of the log that are known and not stored yet.
    #[serde(skip)]
    pub(super) late: Vec<Arc<Entry>>,
    /// Whether everything that the files and the log say is stored.
    #[serde(skip)]
    pub(super) whole: bool,
}

/// What the log says of a pin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Recorded {
    /// How many revisions it had.
    pub(super) revisions: i64,
    /// Its spec in the last of them; null where it was removed.
    pub(super) spec: Value,
    /// The release that counted in the last of them.
    pub(super) release: Option<String>,
    /// Who made the last of them.
    pub(super) by: String,
}

/// What is known of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) stat: Stat,
    /// The SHA-256 of what it said.
    pub(super) hash: String,
    /// How many documents it has, ours and others; 0 where it was not looked into.
    pub(super) documents: usize,
    /// The objects that it holds.
    pub(super) objects: Vec<Held>,
    /// The files that it names as patches, where it is a kustomization.
    pub(super) patches: Vec<String>,
    /// The files and directories that it names as resources, where it is a kustomization.
    pub(super) resources: Vec<String>,
    /// What is wrong with it.
    pub(super) problems: Vec<String>,
}

/// An object that a file holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    /// `{group}/{plural}`.
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// Which document of the file it is, from 0.
    pub(super) document: usize,
    /// The line on which it begins.
    pub(super) line: usize,
    /// Whether its namespace is written in the file.
    pub(super) says_namespace: bool,
}

/// What the file system says of a file without opening it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stat {
    size: u64,
    modified: i128,
    changed: i128,
    inode: u64,
    /// Whether it was read too soon after it was written to be sure.
    racy: bool,
}

impl Stat {
    /// Looks at a file; None where it is none, or a link.
    pub(super) fn of(file: &Path) -> Option<Self> {
        Self::told(&std::fs::symlink_metadata(file).ok()?)
    }

    /// Opens a file and looks at it; None where it is none, or a link.
    pub(super) fn open(file: &Path) -> Option<(File, Self)> {
        let mut options = File::options();
        options.read(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;

            use rustix::fs::OFlags;
            // Nobody waits for whoever writes into a pipe.
            let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
            options.custom_flags(i32::try_from(flags.bits()).unwrap_or_default());
        }
        #[cfg(not(unix))]
        Self::of(file)?;
        let opened = options.open(file).ok()?;
        let stat = Self::told(&opened.metadata().ok()?)?;
        Some((opened, stat))
    }

    fn told(found: &Metadata) -> Option<Self> {
        if !found.is_file() {
            return None;
        }
        let nanos = |time: std::io::Result<std::time::SystemTime>| {
            let since = time.ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
            i128::try_from(since.as_nanos()).ok()
        };
        let modified = nanos(found.modified()).unwrap_or_default();
        #[cfg(unix)]
        let (changed, inode) = {
            use std::os::unix::fs::MetadataExt;
            let changed =
                i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
            (changed, found.ino())
        };
        #[cfg(not(unix))]
        let (changed, inode) = (modified, 0);
        Some(Self {
            size: found.len(),
            modified,
            changed,
            inode,
            racy: false,
        })
    }

    /// Notes that the file was read at a time.
    pub(super) fn read_at(mut self, now: jiff::Timestamp) -> Self {
        let written = self.modified.max(self.changed);
        self.racy = now.as_nanosecond() - written < TICK;
        self
    }

    /// Returns how long the file was.
    pub(super) fn size(&self) -> usize {
        usize::try_from(self.size).unwrap_or_default()
    }

    /// Returns when the file was written, in seconds.
    pub(super) fn written(&self) -> i64 {
        i64::try_from(self.modified / 1_000_000_000).unwrap_or_default()
    }

    /// Tells whether a file that was read is as it was.
    pub(super) fn is_as(&self, now: &Stat) -> bool {
        !self.racy
            && (self.size, self.modified, self.changed, self.inode)
                == (now.size, now.modified, now.changed, now.inode)
    }
}

impl Index {
    /// Reads what was kept; nothing where that cannot be used.
    pub(super) fn read(file: &Path) -> Self {
        let kept = std::fs::read(file).ok();
        let kept = kept.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let kept = kept.filter(|index| index.version == VERSION);
        kept.unwrap_or_else(Self::blank)
    }

    /// Knows nothing.
    pub(super) fn blank() -> Self {
        Self {
            version: VERSION,
            ..Self::default()
        }
    }

    /// Knows nothing of what a store has.
    pub(super) fn unsure(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            unsure: true,
            ..Self::blank()
        }
    }

    /// Keeps it for the next process; where that fails, the next one reads everything.
    ///
    /// Of a log whose entries are not all stored nothing is kept: it is read once more.
    pub(super) fn write(&self, file: &Path) {
        if !self.late.is_empty() {
            let unread = Self {
                files: self.files.clone(),
                namespace: self.namespace.clone(),
                revision: self.revision,
                ..Self::blank()
            };
            return unread.write(file);
        }
        let new = file.with_extension(format!("{}.new", std::process::id()));
        let written = serde_json::to_vec(self)
            .map_err(std::io::Error::other)
            .and_then(|bytes| std::fs::write(&new, bytes))
            .and_then(|()| std::fs::rename(&new, file));
        if let Err(error) = written {
            tracing::debug!(%error, file = %file.display(), "the index was not kept");
        }
    }
}
