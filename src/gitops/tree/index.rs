//! The index of a work tree: the known state of every file, saved in a file next to the store. Because of it, bowline
//! reads only changed files again.
//!
//! Users can always delete the index. Without an index, or with one of another version, bowline reads everything.

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

/// The creation times of the objects in a file, in seconds since 1970, by the identity of the object.
pub(super) type CreationTimes = BTreeMap<String, i64>;

/// The version of the index format. Increment it when the meaning of a field or the parsing of files changes.
const VERSION: u32 = 8;

/// What bowline knows about a work tree from the last time it read the files and git's log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Index {
    version: u32,
    /// The known state of each file, by path.
    pub(super) files: BTreeMap<String, Known>,
    /// The checked out commit when bowline last read git's log; None if the log was not read.
    pub(super) head: Option<String>,
    /// The commits at which the history of a shallow clone ended when bowline last read git's log.
    pub(super) shallow: Option<String>,
    /// The time when each file came to the branch, in seconds since 1970, by path.
    pub(super) births: HashMap<String, i64>,
    /// The time when each object came to the branch, by the path of its file. Only for files with several documents.
    pub(super) births_of_each: BTreeMap<String, CreationTimes>,
    /// The history of each ReleasePin, by namespace and name.
    pub(super) pins: BTreeMap<String, Recorded>,
    /// The files whose history was read to find changes of ReleasePins, by path, each with the ReleasePins that it
    /// contained.
    pub(super) files_of_pins: BTreeMap<String, BTreeSet<String>>,
    /// The number of the newest audit entry about the releases of each component, by namespace and name of the
    /// component.
    pub(super) components: BTreeMap<String, i64>,
    /// The namespace of objects whose file names none.
    pub(super) namespace: String,
    /// The newest revision of the store at the time when the index was written.
    pub(super) revision: Revision,
    /// Whether the store may contain objects that no file contains any more.
    #[serde(skip)]
    pub(super) unsure: bool,
    /// Audit entries that have to be stored later.
    #[serde(skip)]
    pub(super) late: Vec<Arc<Entry>>,
    /// Whether the store may contain audit entries of commits that the branch no longer has.
    #[serde(skip)]
    pub(super) anew: bool,
    /// Whether at least one old state of a file in git's log could not be read.
    #[serde(skip)]
    pub(super) short: bool,
    /// Whether the store contains all objects of the files and all audit entries of the log.
    #[serde(skip)]
    pub(super) whole: bool,
}

/// The history of a ReleasePin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Recorded {
    pub(super) revisions: i64,
    /// The spec of the ReleasePin in its last revision; null if that revision removed it.
    pub(super) spec: Value,
    /// The author of the last revision of the ReleasePin; empty if unknown.
    pub(super) by: String,
}

/// What bowline knows about a file from the last time it read the file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Known {
    pub(super) stat: Stat,
    /// The SHA-256 of the file's content. For a file that is not checked out, its blob id.
    pub(super) hash: String,
    /// The number of documents in the file, including those of other tools; 0 if the file was not parsed.
    pub(super) documents: usize,
    /// The objects of bowline's kinds in the file.
    pub(super) objects: Vec<Held>,
    /// The files that this file names as patches. Empty if this file is no kustomization.
    pub(super) patches: Vec<String>,
    /// The files and directories that this file names as resources. Empty if this file is no kustomization.
    pub(super) resources: Vec<String>,
    /// Whether this file is a kustomization that renames its resources.
    pub(super) renames: bool,
    /// The line of the first object in this file that would change a ReleasePin as a patch; None if there is none.
    pub(super) changes_pin: Option<usize>,
    /// Whether the file is a template. Then it contains no objects.
    pub(super) template: bool,
    /// The ReleasePins of this file that bowline cannot read, because the file is not checked out or the ReleasePins
    /// cannot be parsed.
    pub(super) left_out: Vec<LeftOutPin>,
    /// Whether git has not checked out the file, because of a sparse checkout.
    pub(super) not_checked_out: bool,
    /// The names of the releases in a file that git has not checked out; empty for other files.
    pub(super) left_out_releases: Vec<String>,
    /// Whether the file may contain ReleasePins whose names are unknown.
    pub(super) may_hide_pins: bool,
    /// The namespace that this file sets for its resources. None if this file is no kustomization or sets none.
    pub(super) moves_to: Option<String>,
    /// The problems with the file, as texts for the user.
    pub(super) problems: Vec<String>,
}

/// A ReleasePin that bowline cannot read, because its file is not checked out (sparse checkout) or cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutPin {
    pub namespace: String,
    pub name: String,
    pub component: String,
    pub environment: String,
    /// The problem with the ReleasePin's file, with the path; empty if the file is not checked out.
    #[serde(default)]
    pub problem: String,
}

impl LeftOutPin {
    /// Returns the reason why bowline does not know the release of this ReleasePin.
    pub fn why(&self) -> String {
        match self.problem.is_empty() {
            true => "its ReleasePin is not checked out".to_owned(),
            false => self.problem.clone(),
        }
    }
}

/// The reason why bowline does not know a ReleasePin, and what the user can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownPin {
    /// The reason why bowline does not know the ReleasePin.
    pub why: String,
    /// The git command that checks out the ReleasePin's file. None if the file is on disk but cannot be read.
    pub check_out: Option<String>,
}

/// Returns the git command that checks out the directory of a file. For a file that a sparse checkout leaves out.
pub(super) fn check_out(path: &str) -> String {
    let directory = path
        .rsplit_once('/')
        .map_or(path, |(directory, _)| directory);
    format!("git sparse-checkout add {}", text::quoted(directory))
}

impl Known {
    /// Returns whether the file contains a ReleasePin, including ReleasePins that bowline cannot read.
    pub(super) fn holds_pins(&self) -> bool {
        let held = || self.objects.iter().any(|held| held.resource == PINS);
        !self.left_out.is_empty() || held()
    }

    /// Returns whether the file contains an object and other documents, or an object inside a list.
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
    /// The index in the file of the document that contains the object, from 0.
    pub(super) document: usize,
    /// The position of the object in nested lists: its index in each `items` field, beginning with the outermost
    /// list. Empty if the object is in no list.
    pub(super) items: Vec<usize>,
    /// The line of the file on which the object begins, from 1.
    pub(super) line: usize,
    /// Whether the object has a namespace field in its file.
    pub(super) says_namespace: bool,
    /// The releases that the object names if it is a ReleasePin; empty for other kinds.
    pub(super) releases: Vec<String>,
}

impl Index {
    /// Reads the saved index from a file. If the file is missing, cannot be parsed or has another version, returns an
    /// empty index.
    pub(super) fn read(file: &Path) -> Self {
        let kept = std::fs::read(file).ok();
        let kept = kept.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        let kept = kept.filter(|index| index.version == VERSION);
        kept.unwrap_or_else(Self::blank)
    }

    /// Returns an empty index, for a new store.
    pub(super) fn blank() -> Self {
        Self {
            version: VERSION,
            ..Self::default()
        }
    }

    /// Returns an empty index for a store that may contain any objects.
    pub(super) fn unsure(namespace: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            unsure: true,
            ..Self::blank()
        }
    }

    /// Saves the index in a file for the next process. If this fails, the next process reads everything again.
    ///
    /// If an audit entry is not stored yet, or a state of a file in git's log could not be read, the saved index makes
    /// the next process read the log again.
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
