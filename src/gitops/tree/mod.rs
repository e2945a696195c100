//! A git work tree as a Kubernetes API: requests read objects of bowline's kinds from its files, and write to its
//! files.
//!
//! The API reads from a store, which is only a cache and can be deleted. bowline fills the store when it opens the
//! work tree, and updates it when files change. It parses only files whose stat has changed. The history (creation
//! times, revisions of ReleasePins, authors, reasons) comes from git's log, of which bowline later reads only new
//! commits. AuditEntries contain this history, so history, diff and audit work as on a cluster.
//!
//! A write edits only the changed parts of the object's file ([`bounded_yaml::edit`]). This module computes the new
//! bytes; its callers make the commits.

mod between;
mod births;
mod branch;
mod chronicle;
mod committed;
mod cores;
mod edits;
mod files;
mod fills;
mod guess;
mod hidden;
mod identity;
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

use kube_embedded::status::Failure;
use kube_embedded::{Embedded, OpenError, Origin};
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::git::{GitError, WorkTree};
use crate::{api, text};
pub use between::{Between, Noted, Sides, between};
pub use committed::{CommittedPin, CommittedPins, committed_pins};
pub use edits::{EditsError, ObjectEdit};
pub use files::is_manifest;
pub use identity::{PINS, RELEASES};
use index::Index;
pub use index::{LeftOutPin, UnknownPin};
pub use logged::{Logged, TooLarge, logged};
pub use look::Synced;
pub use manifest::{Unreadable, is_a, mean_the_same, objects};
pub use moves::{Change, Removal, blob_limits};
pub use place::{BadWord, Layout};
pub use releases::{Deed, ReleaseCommit};
pub use trailers::Trailers;

/// The directory of a work tree, and the options for reading it.
#[derive(Clone, Debug)]
pub struct TreeOptions {
    /// The directory that the user named: the work tree or a directory in it.
    pub directory: PathBuf,
    /// The directory of the cache. If it is None, the cache is temporary and is deleted when this process ends.
    pub cache: Option<PathBuf>,
    /// The namespace of objects whose file names none. If it is None, bowline takes the namespace of the other
    /// objects.
    pub namespace: Option<String>,
    /// The cluster from which bowline reads the status of ReleasePins; None if the user named no cluster. Each
    /// cluster has its own cache.
    pub beside: Option<String>,
    /// The name of the user; None takes the author of commits from git's configuration.
    pub user: Option<String>,
    /// The name of the user if git's configuration has no author.
    pub account: String,
    /// The environment variables for git commands.
    pub variables: BTreeMap<OsString, OsString>,
    /// The layout from the user's own configuration: in which files new objects are stored.
    pub layout: Layout,
}

/// The reason why bowline cannot read a work tree.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The store with the cached objects could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A directory of the work tree cannot be read.
    #[error("{} cannot be opened: {error}", directory.display())]
    Files {
        directory: PathBuf,
        error: std::io::Error,
    },
    /// The file of the cache could not be created.
    #[error("{}: {error}", file.display())]
    Cache {
        file: PathBuf,
        error: std::io::Error,
    },
    /// The store with the cached objects failed. Contains the message.
    #[error("cannot serve the files of the repository: {0}")]
    Store(String),
    /// The layout file of the repository cannot be read or parsed.
    #[error("{}: {why}", file.display())]
    Layout {
        file: PathBuf,
        /// The error in the layout file, as text for the user.
        why: String,
    },
}

/// A problem with a file: bowline cannot read all of its content, or another tool changes objects because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub path: String,
    /// The description of the problem with the file and line, as text for the user.
    pub what: String,
}

/// The place of an object in the files of a work tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The path of the object's file, relative to the root of the work tree.
    pub path: String,
    /// The index in the file of the document that contains the object, from 0.
    pub document: usize,
    /// The position of the object in nested lists: its index in each `items` field, beginning with the outermost
    /// list. Empty if the object is in no list.
    pub items: Vec<usize>,
    /// The line of the file on which the object begins, from 1.
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
    /// Writes the place as `path:line`. Control characters in the path are replaced, so the text is one line.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", text::line(&self.path), self.line)
    }
}

/// A work tree whose objects bowline makes available as a Kubernetes API.
pub struct Tree {
    work: WorkTree,
    layout: Layout,
    /// The namespace that the user gave for objects whose file names none; None if the user gave none.
    given: Option<String>,
    kept: PathBuf,
    index: Mutex<Arc<Index>>,
    /// The statuses of ReleasePins in a cluster, by namespace and name. None if no cluster has answered yet.
    statuses: Mutex<Option<BTreeMap<(String, String), Value>>>,
    /// A lock that is held while the files are read or written, so that only one task does this at a time.
    syncing: tokio::sync::Mutex<()>,
    /// The task that saves the index in a file; None if no index was saved yet.
    keeping: Mutex<Option<JoinHandle<()>>>,
    /// The directory of a temporary cache; None for a permanent cache. Dropping this value deletes the directory.
    _own: Option<tempfile::TempDir>,
}

impl Tree {
    pub fn work(&self) -> &WorkTree {
        &self.work
    }

    /// Returns the default namespace: that of objects whose file names none.
    pub fn namespace(&self) -> String {
        let namespace = self.index().namespace.clone();
        // In a repository without a commit, no file tells the namespace.
        match namespace.is_empty() {
            true => "default".to_owned(),
            false => namespace,
        }
    }

    /// Returns the place of an object in the files; None if no file contains the object.
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

    /// Returns the places of all objects of a resource, by namespace and name of the object.
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

    /// Returns whether neither the files nor git's log contain objects of bowline. Returns false as long as they are
    /// not completely read.
    pub fn is_plain(&self) -> bool {
        let index = self.index();
        let is_plain = |known: &index::Known| {
            known.objects.is_empty() && known.problems.is_empty() && known.left_out.is_empty()
        };
        index.whole && index.pins.is_empty() && index.files.values().all(is_plain)
    }

    /// Returns the paths of the files that contain ReleasePins.
    pub fn files_of_pins(&self) -> BTreeSet<String> {
        let index = self.index();
        let (patches, _) = kustomize::named(&index.files);
        let files = index.files.iter();
        let files =
            files.filter(|(path, known)| known.holds_pins() && !patches.contains(path.as_str()));
        files.map(|(path, _)| path.clone()).collect()
    }

    /// Returns the kustomization in the directory of a new file if it lists its resource files one by one. Then the
    /// user must add the new file to it. Otherwise returns None.
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

    /// Returns the paths of the files that kustomizations name as resources.
    pub fn named_by_kustomizations(&self) -> BTreeSet<String> {
        let index = self.index();
        let (_, resources) = kustomize::named(&index.files);
        resources.into_iter().map(str::to_owned).collect()
    }

    /// Returns whether a file may contain ReleasePins whose names are unknown: a template, a submodule or a link.
    pub fn may_hide_pins(&self) -> bool {
        self.index().files.values().any(|known| known.may_hide_pins)
    }

    /// Returns the reason why bowline does not know the ReleasePin of a component in an environment. None if bowline
    /// has read all files that may contain it.
    pub fn why_unknown(
        &self,
        namespace: &str,
        component: &str,
        environment: &str,
    ) -> Option<UnknownPin> {
        let mut pins = self.left_out_files().into_iter();
        let own = pins.find(|(_, pin)| {
            (&*pin.namespace, &*pin.component, &*pin.environment)
                == (namespace, component, environment)
        });
        if let Some((path, pin)) = own {
            return Some(UnknownPin {
                why: pin.why(),
                check_out: pin.problem.is_empty().then(|| index::check_out(&path)),
            });
        }
        let index = self.index();
        let mut files = index.files.values().filter(|known| known.may_hide_pins);
        let why = files.find_map(|known| known.problems.first().cloned())?;
        Some(UnknownPin {
            why,
            check_out: None,
        })
    }

    /// Returns the problems with files on disk that may hide ReleasePins, to warn the user.
    pub fn unread(&self) -> Vec<Problem> {
        let index = self.index();
        let is_left_out = |path: &str| {
            let known = index.files.get(path);
            known.is_some_and(|known| known.not_checked_out)
        };
        let mut problems = self.problems();
        problems.retain(|problem| !is_left_out(&problem.path));
        problems
    }

    /// Returns the names of the releases in files that git has not checked out (sparse checkout).
    pub fn left_out_releases(&self) -> BTreeSet<String> {
        let index = self.index();
        let files = index.files.values();
        files
            .flat_map(|known| known.left_out_releases.clone())
            .collect()
    }

    /// Returns the namespaces of all objects in the files.
    pub fn namespaces(&self) -> BTreeSet<String> {
        let index = self.index();
        let objects = index.files.values().flat_map(|known| &known.objects);
        objects
            .map(|held| index.namespace_of(held).to_owned())
            .collect()
    }

    /// Returns the ReleasePins that bowline cannot read, because their files are not checked out or cannot be parsed.
    pub fn left_out_pins(&self) -> Vec<LeftOutPin> {
        let pins = self.left_out_files().into_iter();
        pins.map(|(_, pin)| pin).collect()
    }

    /// Returns the ReleasePins that bowline cannot read, each with the path of its file.
    fn left_out_files(&self) -> Vec<(String, LeftOutPin)> {
        let index = self.index();
        let (patches, _) = kustomize::named(&index.files);
        let files = index.files.iter();
        let files = files.filter(|(path, _)| !patches.contains(path.as_str()));
        let with_namespace = |pin: &LeftOutPin| LeftOutPin {
            namespace: identity::or_else(&pin.namespace, &index.namespace).to_owned(),
            ..pin.clone()
        };
        let mut found = Vec::new();
        for (path, known) in files {
            let pins = known.left_out.iter();
            found.extend(pins.map(|pin| (path.clone(), with_namespace(pin))));
        }
        found
    }

    /// Returns all problems with the files: content that bowline cannot read, and content because of which tools such
    /// as kustomize change objects.
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
        for (path, file, namespace) in kustomize::moving(&index) {
            wrong(
                path,
                format!(
                    "{path}: it moves the objects of {file} to the namespace {namespace}, and bowline reads the namespaces in the files; write the same namespace in both"
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

    /// Returns a problem for each ReleasePin that names a release without a file. It is only a warning, because
    /// another tool may replace the release name later.
    pub fn dangling(&self) -> Vec<Problem> {
        let releases = self.places(identity::RELEASES);
        let left_out = self.left_out_releases();
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
                    let key = (namespace.to_owned(), (*release).clone());
                    !releases.contains_key(&key) && !left_out.contains(*release)
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

    /// Returns whether a file mentions an API group of bowline, although bowline does not read the file because of
    /// its name.
    fn is_unread_manifest(&self, path: &str) -> bool {
        let file = self.work.inside(path).ok().filter(|file| file.is_file());
        file.is_some_and(|file| read::names_us_in(&file))
    }

    /// Returns whether the store contains all objects of the files and all audit entries of git's log.
    pub fn is_whole(&self) -> bool {
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

/// Returns whether a path is in a directory. Both paths are relative to the root of the work tree. An empty directory
/// stands for the root.
fn is_in(directory: &str, path: &str) -> bool {
    let rest = path.strip_prefix(directory);
    directory.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Index {
    fn namespace_of<'i>(&'i self, held: &'i index::Held) -> &'i str {
        match held.namespace.is_empty() {
            true => &self.namespace,
            false => &held.namespace,
        }
    }

    /// Returns the resource, the namespace and the name of an object.
    fn identity<'i>(&'i self, held: &'i index::Held) -> (&'i str, &'i str, &'i str) {
        (&held.resource, self.namespace_of(held), &held.name)
    }
}

/// Opens a work tree as a Kubernetes API. To start fast, it reads releases and git's log only when a request needs
/// them or [`Tree::whole`] is called.
pub async fn open(options: TreeOptions) -> Result<(Embedded, Arc<Tree>), TreeError> {
    let opened = tokio::task::spawn_blocking(move || prepare(options)).await;
    let (user, store, tree) = opened.map_err(|error| TreeError::Store(error.to_string()))??;
    let tree = Arc::new(tree);
    let is_new = !store.exists();
    // To save time, two things run at the same time: git lists the files while the store is opened, and the files are
    // read while the store is set up.
    let asking = tokio::task::spawn_blocking({
        let tree = tree.clone();
        move || tree.scan(tree.index())
    });
    let origin: Arc<dyn Origin> = Arc::new(write::Files(tree.clone()));
    let opening = Embedded::begin(&store, &user, api::store_setup(), Some(origin)).await?;
    let embedded = opening.embedded().clone();
    let newest = embedded.store().newest().await;
    let newest = newest.map_err(Failure::from)?;
    if !is_new && (opening.is_outdated() || tree.index().revision != newest) {
        // The index may not match the store: the CRDs may have changed, or a process may have stopped after it wrote
        // the store and before it wrote the index. So the index is not trusted.
        let mut index = tree.locked();
        *index = Arc::new(Index::unsure(&index.namespace));
    }
    let catalog = opening.catalog().await?;
    let scan = async {
        let scan = asking.await;
        scan.map_err(|error| TreeError::Store(error.to_string()))?
    };
    let shared = embedded.shared();
    tree.begin(shared, catalog, scan, opening.finish()).await?;
    Ok((embedded, tree))
}

fn prepare(options: TreeOptions) -> Result<(String, PathBuf, Tree), TreeError> {
    let work = WorkTree::open(&options.directory, &options.variables)?;
    let layout = Layout::read(work.scope(), options.layout)?;
    // By default, the user is the author of commits. So a hold and the commit that places it name the same person.
    let user = options.user.or_else(|| work.author());
    let user = user.unwrap_or(options.account);
    let (folder, own) = match &options.cache {
        Some(cache) => {
            let [namespace, beside] = [&options.namespace, &options.beside]
                .map(|name| name.as_deref().unwrap_or_default());
            let name = format!("{}\0{namespace}\0{beside}", work.scope().display());
            let name: String = identity::hash(name.as_bytes()).chars().take(16).collect();
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
    Ok((user, store, tree))
}

impl From<Failure> for TreeError {
    fn from(failure: Failure) -> Self {
        Self::Store(failure.message)
    }
}
