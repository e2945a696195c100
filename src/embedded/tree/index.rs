//! What is known of the files, kept beside the store: so that only what changed is read again.
//!
//! It can always be thrown away: whoever finds none, or one of another version, reads everything.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::births::Births;
use super::chronicle::Entry;
use super::stat::Stat;
use super::sync::PINS;
use crate::embedded::sqlite::Revision;

/// Raised when what is kept, or how files are read, changes its meaning.
const VERSION: u32 = 6;

/// Everything that is known of a work tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    version: u32,
    /// The files, by path.
    pub(super) files: BTreeMap<String, Known>,
    /// The commit up to which the log was read.
    pub(super) head: Option<String>,
    /// Where the log ended then, in a shallow clone.
    pub(super) shallow: Option<String>,
    /// When files came to the branch, in seconds.
    pub(super) births: HashMap<String, i64>,
    /// When each object came, of files with several documents, by path.
    pub(super) births_of_each: BTreeMap<String, Births>,
    /// What the log says of pins, by namespace and name.
    pub(super) pins: BTreeMap<String, Recorded>,
    /// The files whose log was read for pins, by path, and the pins that they hold by it.
    pub(super) files_of_pins: BTreeMap<String, BTreeSet<String>>,
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
    /// Whether the store may hold entries of a log that was read before, of commits that are gone.
    #[serde(skip)]
    pub(super) anew: bool,
    /// Whether something that the log names could not be read.
    #[serde(skip)]
    pub(super) short: bool,
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
    /// Whether it is a kustomization that renames its resources.
    pub(super) renames: bool,
    /// The line of the first object in it that, read as a patch, changes a ReleasePin.
    pub(super) changes_pin: Option<usize>,
    /// Whether it was read as a template, which holds no objects.
    pub(super) template: bool,
    /// The ReleasePins that it has in git, where it is not checked out.
    pub(super) left_out: Vec<LeftOutPin>,
    /// What is wrong with it.
    pub(super) problems: Vec<String>,
}

/// A ReleasePin whose file a sparse checkout leaves out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutPin {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its component.
    pub component: String,
    /// Its environment.
    pub environment: String,
}

impl Known {
    /// Tells whether the file holds a pin.
    pub(super) fn holds_pins(&self) -> bool {
        self.objects.iter().any(|held| held.resource == PINS)
    }

    /// Tells whether the file holds an object beside other documents, or in a list.
    pub(super) fn holds_several(&self) -> bool {
        let in_list = || self.objects.iter().any(|held| !held.items.is_empty());
        !self.objects.is_empty() && (self.documents > 1 || in_list())
    }
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
    /// Its index in each `items` of its document, the outermost list first; empty where it is in no list.
    pub(super) items: Vec<usize>,
    /// The line on which it begins.
    pub(super) line: usize,
    /// Whether its namespace is written in the file.
    pub(super) says_namespace: bool,
    /// The releases that it names, where it is a ReleasePin.
    pub(super) releases: Vec<String>,
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
    /// A log whose entries are not all stored, or that could not all be read, is read once more.
    pub(super) fn write(&self, file: &Path) {
        if !self.late.is_empty() || self.short {
            let unread = Self {
                head: None,
                late: Vec::new(),
                short: false,
                ..self.clone()
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
