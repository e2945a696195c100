//! The index of a work tree: a file next to the store with the known state of every file. With it, bowline
//! reads only changed files again.
//!
//! The index can always be deleted. Without an index, or with one of another version, bowline reads
//! everything.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use kube_embedded::sqlite::Revision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::chronicle::Entry;
use super::identity::PINS;
use super::stat::Stat;
use crate::text;

/// The creation times of the objects of a file, in seconds, by the identity of the object.
pub(super) type Births = BTreeMap<String, i64>;

/// The version of the index. Increment it when the meaning of the content or the reading of files changes.
const VERSION: u32 = 8;

/// The known state of a work tree.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    version: u32,
    /// The known files, by path.
    pub(super) files: BTreeMap<String, Known>,
    /// The newest commit when bowline last read the log.
    pub(super) head: Option<String>,
    /// The commits at which the history of a shallow clone ended when bowline last read the log.
    pub(super) shallow: Option<String>,
    /// When files came to the branch, in seconds since 1970, by path.
    pub(super) births: HashMap<String, i64>,
    /// For files with several documents: when each object came to the branch, by path.
    pub(super) births_of_each: BTreeMap<String, Births>,
    /// The history of each ReleasePin, by namespace and name.
    pub(super) pins: BTreeMap<String, Recorded>,
    /// The files whose history was read for ReleasePins, by path, with the ReleasePins that they contained.
    pub(super) files_of_pins: BTreeMap<String, BTreeSet<String>>,
    /// The number of the newest audit entry about the releases of each component, by namespace and name.
    pub(super) components: BTreeMap<String, i64>,
    /// The namespace of objects that name none.
    pub(super) namespace: String,
    /// The newest revision of the store when the index was written.
    pub(super) revision: Revision,
    /// Whether the store may contain objects that are no longer in any file.
    #[serde(skip)]
    pub(super) unsure: bool,
    /// Audit entries that are not stored yet.
    #[serde(skip)]
    pub(super) late: Vec<Arc<Entry>>,
    /// Whether the store may contain audit entries of commits that are no longer on the branch.
    #[serde(skip)]
    pub(super) anew: bool,
    /// Whether some states of files in the log could not be read.
    #[serde(skip)]
    pub(super) short: bool,
    /// Whether the store contains all objects of the files and all entries of the log.
    #[serde(skip)]
    pub(super) whole: bool,
}

/// The history of a ReleasePin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Recorded {
    pub(super) revisions: i64,
    /// The spec in the last revision; null if the ReleasePin was removed.
    pub(super) spec: Value,
    /// The author of the last revision; empty if unknown.
    pub(super) by: String,
}

/// The known state of a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) stat: Stat,
    /// The SHA-256 of the content; for a file that is not checked out, its blob id.
    pub(super) hash: String,
    /// The number of documents in the file, with those of other tools; 0 if the file was not parsed.
    pub(super) documents: usize,
    /// The objects in the file.
    pub(super) objects: Vec<Held>,
    /// If the file is a kustomization: the files that it names as patches.
    pub(super) patches: Vec<String>,
    /// If the file is a kustomization: the files and directories that it names as resources.
    pub(super) resources: Vec<String>,
    /// If the file is a kustomization: whether it renames its resources.
    pub(super) renames: bool,
    /// The line of the first object that changes a ReleasePin if a tool applies the object as a patch; None
    /// if there is none.
    pub(super) changes_pin: Option<usize>,
    /// Whether the file is a template, so that it contains no objects.
    pub(super) template: bool,
    /// The ReleasePins that bowline cannot serve: those in a file that is not checked out, or those that
    /// cannot be parsed.
    pub(super) left_out: Vec<LeftOutPin>,
    /// Whether a sparse checkout leaves the file out.
    pub(super) not_checked_out: bool,
    /// The releases in the file, if a sparse checkout leaves the file out.
    pub(super) left_out_releases: Vec<String>,
    /// Whether the file may contain ReleasePins whose names bowline does not know.
    pub(super) may_hide_pins: bool,
    /// If the file is a kustomization: the namespace that it sets for its resources.
    pub(super) moves_to: Option<String>,
    /// The problems with the file, as texts for the user.
    pub(super) problems: Vec<String>,
}

/// A ReleasePin that bowline cannot serve: its file is not checked out (sparse checkout) or cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutPin {
    pub namespace: String,
    pub name: String,
    pub component: String,
    pub environment: String,
    /// The problem with the file, with its path; empty if the file is not checked out.
    #[serde(default)]
    pub problem: String,
}

impl LeftOutPin {
    /// Returns the reason why bowline does not know the release of the ReleasePin.
    pub fn why(&self) -> String {
        match self.problem.is_empty() {
            true => "its ReleasePin is not checked out".to_owned(),
            false => self.problem.clone(),
        }
    }
}

/// The reason why bowline does not know a ReleasePin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPin {
    /// The reason.
    pub why: String,
    /// The git command that checks the file out; None if the file is on disk and cannot be read.
    pub check_out: Option<String>,
}

/// Returns the git command that checks out the directory of a file that a sparse checkout leaves out.
pub(super) fn check_out(path: &str) -> String {
    let directory = path
        .rsplit_once('/')
        .map_or(path, |(directory, _)| directory);
    format!("git sparse-checkout add {}", text::quoted(directory))
}

impl Known {
    /// Returns whether the file contains a ReleasePin, even one that bowline cannot serve.
    pub(super) fn holds_pins(&self) -> bool {
        let held = || self.objects.iter().any(|held| held.resource == PINS);
        !self.left_out.is_empty() || held()
    }

    /// Returns whether the file contains an object and further documents, or an object in a list.
    pub(super) fn holds_several(&self) -> bool {
        let in_list = || self.objects.iter().any(|held| !held.items.is_empty());
        !self.objects.is_empty() && (self.documents > 1 || in_list())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Held {
    /// The resource of the object, as `{group}/{plural}`.
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The index of the document in the file, from 0.
    pub(super) document: usize,
    /// The place in nested lists: the index in each `items` field, the outermost list first. Empty if the
    /// object is not in a list.
    pub(super) items: Vec<usize>,
    /// The line on which the object begins, from 1.
    pub(super) line: usize,
    /// Whether the object has a namespace field in the file.
    pub(super) says_namespace: bool,
    /// If the object is a ReleasePin: the releases that it names.
    pub(super) releases: Vec<String>,
}

impl Index {
    /// Reads the saved index. Returns an empty index if it is missing, cannot be parsed or has another
    /// version.
    pub(super) fn read(file: &Path) -> Self {
        let kept = std::fs::read(file).ok();
        let kept = kept.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let kept = kept.filter(|index| index.version == VERSION);
        kept.unwrap_or_else(Self::blank)
    }

    /// Returns an empty index.
    pub(super) fn blank() -> Self {
        Self {
            version: VERSION,
            ..Self::default()
        }
    }

    /// Returns an empty index for a store whose content is unknown.
    pub(super) fn unsure(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            unsure: true,
            ..Self::blank()
        }
    }

    /// Saves the index for the next process. After an error, the next process reads everything.
    ///
    /// If some entries of the log are not stored yet or could not be read, the next process reads the log
    /// again.
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
