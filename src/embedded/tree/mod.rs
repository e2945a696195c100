//! A git work tree as what the API serves: the objects of our kinds come from its files and go to them.
//!
//! The store below is a cache that can be thrown away: it is filled from the files when it is opened, and
//! follows them as they change. Of a file that is as it was nothing is read but its stat; of one that
//! changed, its objects are read and those that differ are stored. What git's log knows (when a release came,
//! what a pin was, who moved it and why) is read once and then only as far as it grew; it is served as
//! AuditEntries, so that history, diff and audit read a repository as they read a cluster.
//!
//! A write edits the file that holds the object, and nothing else of it ([`crate::yaml::edit`]). Commits are
//! made above: what is here only says which bytes would change.

mod between;
mod births;
mod branch;
mod chronicle;
mod cores;
mod edits;
mod files;
mod fills;
mod hidden;
mod index;
mod kustomize;
mod logged;
mod look;
mod manifest;
mod moves;
mod object_text;
mod place;
mod read;
mod releases;
mod stat;
mod sync;
mod trailers;
mod write;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::task::JoinHandle;

use super::catalog::Catalog;
use super::status::Failure;
use super::{Embedded, OpenError};
use crate::git::{GitError, WorkTree};
use crate::text;
pub use between::{Between, Noted, Sides, between};
pub use edits::{EditsError, Wish};
pub use files::is_manifest;
use index::Index;
pub use index::LeftOutPin;
pub use logged::{Logged, logged};
pub use manifest::{Unreadable, is_a, mean_the_same, objects};
pub use moves::Change;
pub use place::{BadWord, Layout};
pub use releases::{Dealt, Deed};
pub use sync::Synced;
pub use trailers::Trailers;

/// Where a work tree is, and how it is looked at.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// The directory that the user named.
    pub directory: PathBuf,
    /// Where what was read is kept for the next process; nowhere where it is left out.
    pub cache: Option<PathBuf>,
    /// The namespace of objects that name none; that of the others where it is left out.
    pub namespace: Option<String>,
    /// The cluster that says how pins are doing, where there is one: what it says is kept apart from what
    /// others say.
    pub beside: Option<String>,
    /// Who one is.
    pub user: String,
    /// The variables that git runs with.
    pub variables: BTreeMap<OsString, OsString>,
    /// Where new objects go, where the user says so.
    pub layout: Layout,
}

/// Why a work tree cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Git did not answer as it should.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The store that caches it could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The files cannot be looked at.
    #[error("{} cannot be opened: {error}", directory.display())]
    Files {
        /// Where they are.
        directory: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The cache could not be made.
    #[error("{}: {error}", file.display())]
    Cache {
        /// Where.
        file: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The store refused what was read.
    #[error("cannot serve the files of the repository: {0}")]
    Store(String),
    /// The layout cannot be read.
    #[error("{}: {why}", file.display())]
    Layout {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

/// Something in the files that cannot be served as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file.
    pub path: String,
    /// What is wrong, and where.
    pub what: String,
}

/// Where an object lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, from the root of the work tree.
    pub path: String,
    /// Which document of it, from 0.
    pub document: usize,
    /// Its index in each `items` of the document, the outermost list first; empty where it is in no list.
    pub items: Vec<usize>,
    /// The line on which it begins.
    pub line: usize,
}

impl Place {
    fn of(path: &str, held: &index::Held) -> Self {
        Self {
            path: path.to_owned(),
            document: held.document,
            items: held.items.clone(),
            line: held.line,
        }
    }
}

impl std::fmt::Display for Place {
    /// Writes `path:line`, on one line whatever the path is made of.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", text::line(&self.path), self.line)
    }
}

/// The files behind an API.
pub struct Tree {
    work: WorkTree,
    layout: Layout,
    /// The namespace of objects that name none, where the user says so.
    given: Option<String>,
    kept: PathBuf,
    index: Mutex<Arc<Index>>,
    /// What a cluster says of pins, by namespace and name; nothing until it is asked.
    statuses: Mutex<Option<BTreeMap<(String, String), Value>>>,
    /// One at a time looks at the files.
    syncing: tokio::sync::Mutex<()>,
    /// The index, while it is being written.
    keeping: Mutex<Option<JoinHandle<()>>>,
    /// Keeps the directory of a cache that nobody shares.
    _own: Option<tempfile::TempDir>,
}

impl Tree {
    /// Returns the work tree.
    pub fn work(&self) -> &WorkTree {
        &self.work
    }

    /// Returns the namespace of objects that name none.
    pub fn namespace(&self) -> String {
        self.index().namespace.clone()
    }

    /// Finds where an object lies.
    pub fn place(&self, resource: &str, namespace: &str, name: &str) -> Option<Place> {
        let index = self.index();
        let (patches, _) = kustomize::named(&index.files);
        let files = index.files.iter();
        let mut files = files.filter(|(path, _)| !patches.contains(path.as_str()));
        files.find_map(|(path, known)| {
            let held = known.objects.iter().find(|held| {
                held.resource == resource
                    && held.name == name
                    && index.namespace_of(held) == namespace
            })?;
            Some(Place::of(path, held))
        })
    }

    /// Finds where all objects of a resource lie, by namespace and name.
    pub fn places(&self, resource: &str) -> BTreeMap<(String, String), Place> {
        let index = self.index();
        let (patches, _) = kustomize::named(&index.files);
        let mut found = BTreeMap::new();
        for (path, known) in &index.files {
            if patches.contains(path.as_str()) {
                continue;
            }
            for held in known
                .objects
                .iter()
                .filter(|held| held.resource == resource)
            {
                let key = (index.namespace_of(held).to_owned(), held.name.clone());
                found.entry(key).or_insert_with(|| Place::of(path, held));
            }
        }
        found
    }

    /// Tells whether neither the files nor the log have anything of our groups. Releases and the log may be
    /// read later, and then it is false.
    pub fn is_plain(&self) -> bool {
        let index = self.index();
        let is_plain = |known: &index::Known| {
            known.objects.is_empty() && known.problems.is_empty() && known.left_out.is_empty()
        };
        index.whole && index.pins.is_empty() && index.files.values().all(is_plain)
    }

    /// Lists the files that hold pins.
    pub fn files_of_pins(&self) -> BTreeSet<String> {
        let index = self.index();
        let (patches, _) = kustomize::named(&index.files);
        let files = index.files.iter();
        let files =
            files.filter(|(path, known)| known.holds_pins() && !patches.contains(path.as_str()));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// Finds the kustomization in the directory of a new file, where it names files one by one.
    pub fn kustomization_beside(&self, path: &str) -> Option<String> {
        let (folder, _) = path.rsplit_once('/').unwrap_or(("", path));
        let index = self.index();
        let mut files = index.files.iter();
        let found = files.find(|(file, known)| {
            let own = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            own == folder && !known.resources.is_empty()
        });
        let known = index.files.contains_key(path);
        found.filter(|_| !known).map(|(file, _)| file.clone())
    }

    /// Lists the files that kustomizations name: without them they could not be built.
    pub fn named_by_kustomizations(&self) -> BTreeSet<String> {
        let index = self.index();
        let (_, resources) = kustomize::named(&index.files);
        resources.into_iter().map(str::to_owned).collect()
    }

    /// Lists the ReleasePins whose files a sparse checkout leaves out.
    pub fn left_out_pins(&self) -> Vec<LeftOutPin> {
        let index = self.index();
        let (patches, _) = kustomize::named(&index.files);
        let files = index.files.iter();
        let files = files.filter(|(path, _)| !patches.contains(path.as_str()));
        let pins = files.flat_map(|(_, known)| &known.left_out);
        let with_namespace = |pin: &LeftOutPin| LeftOutPin {
            namespace: chronicle::or_else(&pin.namespace, &index.namespace).to_owned(),
            ..pin.clone()
        };
        pins.map(with_namespace).collect()
    }

    /// Lists what in the files cannot be served, and what changes objects behind bowline's back.
    pub fn problems(&self) -> Vec<Problem> {
        let index = self.index();
        let mut found: Vec<Problem> = Vec::new();
        let mut wrong = |path: &str, what: String| {
            found.push(Problem {
                path: path.to_owned(),
                what: text::line(&what).into_owned(),
            });
        };
        let (patches, resources) = kustomize::named(&index.files);
        let mut seen: BTreeMap<(&str, &str, &str), String> = BTreeMap::new();
        for (path, known) in &index.files {
            if patches.contains(path.as_str()) {
                if let Some(line) = known.changes_pin {
                    wrong(path, format!("{path}:{line}: {}", hidden::PATCHED));
                }
                continue;
            }
            known
                .problems
                .iter()
                .for_each(|what| wrong(path, what.clone()));
            for held in &known.objects {
                let key = index.identity(held);
                let place = format!("{path}:{}", held.line);
                if let Some(first) = seen.get(&key) {
                    let (kind, name) = (&held.resource, &held.name);
                    wrong(
                        path,
                        format!("{place}: {kind} {name} is in {first} already; remove one of them"),
                    );
                } else {
                    seen.insert(key, place);
                }
            }
        }
        for (path, file) in kustomize::renaming(&index) {
            wrong(
                path,
                format!(
                    "{path}: it gives other names to the objects of {file}, and bowline reads the names in the files; remove namePrefix and nameSuffix"
                ),
            );
        }
        for path in resources {
            if !index.files.contains_key(path) && self.is_unread_manifest(path) {
                wrong(
                    path,
                    format!(
                        "{path}: a kustomization names it, and bowline does not read a file with such a name; let its name end in .yaml"
                    ),
                );
            }
        }
        found
    }

    /// Lists the ReleasePins that name releases which no file has. A tool may put another name in its place.
    pub fn dangling(&self) -> Vec<Problem> {
        let releases = self.places(sync::RELEASES);
        let index = self.index();
        let (patches, _) = kustomize::named(&index.files);
        let mut found = Vec::new();
        for (path, known) in &index.files {
            if patches.contains(path.as_str()) {
                continue;
            }
            for held in &known.objects {
                let namespace = index.namespace_of(held);
                let is_missing = |release: &&String| {
                    !releases.contains_key(&(namespace.to_owned(), (*release).clone()))
                };
                let missing = held.releases.iter().filter(is_missing);
                found.extend(missing.map(|release| {
                    Problem {
                        path: path.clone(),
                        what: text::line(&format!(
                            "{}: ReleasePin {} names release {release}, which does not exist",
                            Place::of(path, held),
                            held.name
                        ))
                        .into_owned(),
                    }
                }));
            }
        }
        found
    }

    /// Tells whether a file that is not read by its name says something of ours.
    fn is_unread_manifest(&self, path: &str) -> bool {
        let file = self.work.inside(path).ok().filter(|file| file.is_file());
        let bytes = file.and_then(|file| std::fs::read(file).ok());
        bytes.is_some_and(|bytes| read::names_us(&bytes))
    }

    /// Tells whether everything that the files and the log say is served.
    fn is_whole(&self) -> bool {
        self.locked().whole
    }

    fn index(&self) -> Arc<Index> {
        self.locked().clone()
    }

    fn keeping(&self) -> MutexGuard<'_, Option<JoinHandle<()>>> {
        self.keeping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> MutexGuard<'_, Arc<Index>> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Index {
    fn namespace_of<'i>(&'i self, held: &'i index::Held) -> &'i str {
        match held.namespace.is_empty() {
            true => &self.namespace,
            false => &held.namespace,
        }
    }

    /// What tells an object from others: resource, namespace and name.
    fn identity<'i>(&'i self, held: &'i index::Held) -> (&'i str, &'i str, &'i str) {
        (&held.resource, self.namespace_of(held), &held.name)
    }
}

impl Embedded {
    /// Serves the files of a work tree. Releases and the entries of the log are read when somebody asks for
    /// them, or for [`whole`](Self::whole).
    pub async fn over(options: TreeOptions) -> Result<(Embedded, Arc<Tree>), TreeError> {
        let opened = tokio::task::spawn_blocking(move || prepare(options)).await;
        let (user, store, tree) = opened.map_err(|error| TreeError::Store(error.to_string()))??;
        let tree = Arc::new(tree);
        let is_new = !store.exists();
        // Git is asked while the store is opened, and the files are read while it is set up.
        let asking = tokio::task::spawn_blocking({
            let tree = tree.clone();
            move || tree.scan(tree.index())
        });
        let embedded = Embedded::start(&store, &user, Some(tree.clone())).await?;
        let missing = embedded.missing().await?;
        let newest = embedded.shared.store.newest().await;
        let newest = newest.map_err(Failure::from)?;
        if !is_new && (missing.is_some() || tree.index().revision != newest) {
            // Kinds may mean something else, or somebody was stopped between the store and the index: what
            // is known may not be what is stored.
            let mut index = tree.locked();
            *index = Arc::new(Index::unsure(&index.namespace));
        }
        // What the files are read by is what the store will have.
        let catalog = match &missing {
            Some(kinds) => Arc::new(Catalog::of(kinds)),
            None => embedded.shared.catalog().await?,
        };
        let scan = async {
            let scan = asking.await;
            scan.map_err(|error| TreeError::Store(error.to_string()))?
        };
        let ready = embedded.set_up(missing.as_deref());
        embedded.shared.begin(&tree, catalog, scan, ready).await?;
        Ok((embedded, tree))
    }

    /// Makes sure that everything is read that the files and the log say.
    pub async fn whole(&self, tree: &Arc<Tree>) -> Result<(), TreeError> {
        self.shared.complete(tree).await
    }
}

fn prepare(options: TreeOptions) -> Result<(String, PathBuf, Tree), TreeError> {
    let work = WorkTree::open(&options.directory, &options.variables)?;
    let layout = Layout::read(work.scope(), options.layout)?;
    let (folder, own) = match &options.cache {
        Some(cache) => {
            let [namespace, beside] = [&options.namespace, &options.beside]
                .map(|name| name.as_deref().unwrap_or_default());
            let name = format!("{}\0{namespace}\0{beside}", work.scope().display());
            let name: String = read::hash(name.as_bytes()).chars().take(16).collect();
            (cache.join("trees").join(name), None)
        }
        None => {
            let own = tempfile::tempdir().map_err(|error| TreeError::Cache {
                file: std::env::temp_dir(),
                error,
            })?;
            (own.path().to_owned(), Some(own))
        }
    };
    std::fs::create_dir_all(&folder).map_err(|error| TreeError::Cache {
        file: folder.clone(),
        error,
    })?;
    let kept = folder.join("index.json");
    let mut index = Index::read(&kept);
    let store = folder.join("store.db");
    if !store.exists() {
        index = Index::blank();
    }
    if let Some(namespace) = &options.namespace {
        index.namespace.clone_from(namespace);
    }
    let tree = Tree {
        work,
        layout,
        given: options.namespace,
        kept,
        index: Mutex::new(Arc::new(index)),
        statuses: Mutex::default(),
        syncing: tokio::sync::Mutex::new(()),
        keeping: Mutex::default(),
        _own: own,
    };
    Ok((options.user, store, tree))
}

impl From<Failure> for TreeError {
    fn from(failure: Failure) -> Self {
        Self::Store(failure.message)
    }
}
