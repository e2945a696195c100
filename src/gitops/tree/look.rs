//! Runs a pass: reads the changed files and the new commits of a work tree once, and computes which rows of the store
//! change.
//!
//! The functions may block the thread. They change neither the store nor the index, because [`super::sync`] does
//! that.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;

use jiff::Timestamp;
use kube_embedded::catalog::Catalog;
use kube_embedded::sqlite::{Fill, Key};

use super::chronicle::{self, Entry, News};
use super::cores::on_every_core;
use super::files::{self, Charts};
use super::fills::{entry_fill, fill};
use super::identity::uid;
use super::index::{Held, Index, Known};
use super::moves::blob_limits;
use super::read::{Extent, LeftOut, Loaded, Read, ReadResult, Reader};
use super::stat::{Folder, Stat};
use super::{Tree, TreeError, births, kustomize};
use crate::git::GitError;

/// The counts of one pass over the files of a work tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// The number of files that the pass checked for changes.
    pub files: usize,
    /// The number of files that the pass read.
    pub read: usize,
    /// The number of objects and audit entries that the pass stored or removed.
    pub stored: usize,
}

/// The list of files from git, and the thread that reads git's log at the same time.
pub(super) struct Scan {
    /// The paths of the files that can contain objects, sorted.
    paths: Vec<String>,
    /// The files that git has not checked out because of a sparse checkout, by path.
    left_out: BTreeMap<String, LeftOut>,
    /// The Helm charts among the files.
    charts: Charts,
    /// The paths among `paths` that are submodules.
    submodules: BTreeSet<String>,
    /// The new commits of the branch. A thread reads them while the pass reads the files.
    news: JoinHandle<Result<News, GitError>>,
}

impl Index {
    /// Marks files in the index as changed, so that the next pass reads them again.
    pub(super) fn forget(&mut self, paths: &BTreeSet<String>) {
        for path in paths {
            if let Some(known) = self.files.get_mut(path) {
                known.stat = Stat::default();
                known.hash = String::new();
            }
        }
    }
}

/// The paths of the files that exist, and the content of those that this pass has read.
#[derive(Default)]
struct Files<'p> {
    paths: Vec<&'p String>,
    read: Vec<Read>,
    /// Whether this pass skipped at least one file, which a later pass has to read.
    put_off: bool,
}

impl Files<'_> {
    /// Returns whether all objects have a namespace field, both in these files and in the index `before`.
    fn say_all_namespaces(&self, before: &Index) -> bool {
        let read = self.read.iter().map(|read| &read.known);
        let known = before.files.values().chain(read);
        let mut objects = known.flat_map(|known| &known.objects);
        objects.all(|held| held.says_namespace)
    }
}

/// The result of a pass: the new index, and the rows of the store that change.
pub(super) struct Look {
    pub(super) index: Index,
    pub(super) fills: Vec<Fill>,
    pub(super) namespaces: BTreeSet<String>,
    /// Whether the result contains all audit entries of git's log. Then the store has to delete all others.
    pub(super) replaces_entries: bool,
    pub(super) synced: Synced,
}

impl Look {
    /// Adds the deletion of all `stored` objects that are neither in a file nor in git's log.
    pub(super) fn forget_all_but_known(&mut self, stored: Vec<Key>) {
        if stored.is_empty() {
            return;
        }
        let held = |held: &Held| Key {
            resource: held.resource.as_str().into(),
            namespace: self.index.namespace_of(held).to_owned(),
            name: held.name.clone(),
        };
        let objects = self.index.files.values().flat_map(|known| &known.objects);
        let mut known: HashSet<Key> = objects.map(held).collect();
        known.extend(self.fills.iter().map(|fill| fill.key.clone()));
        let gone = stored.into_iter().filter(|key| !known.contains(key));
        let gone = gone.map(|key| Fill {
            uid: uid(&key.resource, &key.namespace, &key.name),
            key,
            state: None,
        });
        self.fills.extend(gone);
    }
}

impl Tree {
    /// Runs a pass and returns its result; None if nothing has changed.
    pub(super) fn look(
        &self,
        before: &Index,
        catalog: &Catalog,
        now: Timestamp,
        extent: Extent,
        scan: Scan,
    ) -> Result<Option<Look>, TreeError> {
        let root = self.work.root();
        let folder = Folder::open(root).map_err(|error| TreeError::Files {
            directory: root.to_owned(),
            error,
        })?;
        let mut reader = Reader {
            folder: &folder,
            left_out: &scan.left_out,
            charts: &scan.charts,
            paths: &scan.paths,
            submodules: &scan.submodules,
            root,
            scope: self.work.scope(),
            catalog,
            now,
            extent,
        };
        let mut files = read_files(&reader, before, &scan.paths);
        // The default namespace depends on all objects. So the files that were skipped must be read now too.
        if files.put_off && before.namespace.is_empty() && !files.say_all_namespaces(before) {
            reader.extent = Extent::Whole;
            files = read_files(&reader, before, &scan.paths);
        }
        let news = scan.news.join();
        let news = news.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let known = files
            .paths
            .iter()
            .filter(|path| before.files.contains_key(**path))
            .count();
        let same = files.read.is_empty() && known == before.files.len() && news.is_nothing(before);
        if same && !files.put_off && before.late.is_empty() && !before.unsure {
            return Ok(None);
        }
        self.understand(&reader, before, files, news).map(Some)
    }

    /// Combines the content of the files with git's log. Returns the new index and the rows of the store that change.
    fn understand(
        &self,
        reader: &Reader<'_>,
        before: &Index,
        files: Files<'_>,
        mut news: News,
    ) -> Result<Look, TreeError> {
        let Files {
            paths,
            mut read,
            put_off,
        } = files;
        let mut index = before.clone();
        index.unsure = false;
        for read in &read {
            index.files.insert(read.path.clone(), read.known.clone());
        }
        index
            .files
            .retain(|path, _| paths.binary_search(&path).is_ok());
        index.namespace = match &self.given {
            Some(given) => given.clone(),
            None => only_namespace(&index),
        };
        let catalog = reader.catalog;
        let mut entries = chronicle::take(&self.work, catalog, &mut index, &mut news, &read)?;
        let mut again = news.touched(before, &index);
        // To free the memory of a long log takes time, so another thread does it.
        tokio::task::spawn_blocking(move || drop(news));
        again.extend(uncovered(before, &index));
        // If only the stat of a file changed, its objects were not parsed. So the file has to be read again.
        read.retain(|read| !again.contains(&read.path) || !read.objects.is_empty());
        for read in &read {
            again.remove(&read.path);
        }
        if !again.is_empty() {
            let mut once_more = before.clone();
            once_more.forget(&again);
            let again = read_files(reader, &once_more, &again).read;
            for read in &again {
                index.files.insert(read.path.clone(), read.known.clone());
            }
            read.extend(again);
        }
        let synced = Synced {
            files: paths.len(),
            read: read.len(),
            stored: 0,
        };
        let mut fills = self.fills(&index, before, read, catalog);
        let late = std::mem::take(&mut index.late);
        let mut replaces_entries = false;
        match reader.extent {
            Extent::Whole => {
                let entries = late.into_iter().chain(entries).collect();
                fills.extend(on_every_core(entries, |entry: Arc<Entry>| {
                    entry_fill(&entry)
                }));
                replaces_entries = std::mem::take(&mut index.anew);
            }
            Extent::Pressing => {
                index.late = late;
                index.late.append(&mut entries);
            }
        }
        index.whole = !put_off && index.late.is_empty();
        let namespaces = fills.iter().map(|fill| fill.key.namespace.clone());
        let mut namespaces: BTreeSet<String> = namespaces.filter(|name| !name.is_empty()).collect();
        namespaces.insert(index.namespace.clone());
        Ok(Look {
            fills,
            namespaces,
            replaces_entries,
            index,
            synced,
        })
    }

    /// Lists the files of the work tree with git, and starts the thread that reads the new commits.
    pub(super) fn scan(self: &Arc<Self>, before: Arc<Index>) -> Result<Scan, TreeError> {
        let (asked, known) = (self.clone(), before.clone());
        let news = std::thread::spawn(move || chronicle::news(&asked.work, &known));
        let files = self.work.files()?;
        let charts = Charts::of(&files.paths);
        let mut paths = files::candidates(files.paths);
        // A link to a directory can have any name, so it cannot be found by its extension.
        let root = self.work.root();
        let mut links = files.links;
        links.retain(|link| root.join(link).is_symlink() && root.join(link).is_dir());
        paths.extend(links);
        paths.extend(files.submodules.iter().cloned());
        paths.sort();
        paths.dedup();
        let left_out = self.left_out(&before, &paths, &charts, files.left_out)?;
        Ok(Scan {
            paths,
            left_out,
            charts,
            submodules: files.submodules,
            news,
        })
    }

    /// Finds out which files that are not checked out can contain objects of bowline. Reads files that the index does
    /// not know from git.
    fn left_out(
        &self,
        index: &Index,
        candidates: &[String],
        charts: &Charts,
        mut listed: Vec<(String, String)>,
    ) -> Result<BTreeMap<String, LeftOut>, GitError> {
        let root = self.work.root();
        listed.retain(|(path, _)| {
            candidates.binary_search(path).is_ok() && root.join(path).symlink_metadata().is_err()
        });
        let known = |(path, blob): &(String, String)| {
            let known = index.files.get(path);
            let known = known.filter(|known| known.hash == *blob)?;
            Some(LeftOut {
                blob: blob.clone(),
                ours: !known.problems.is_empty(),
                pins: known.left_out.clone(),
                releases: known.left_out_releases.clone(),
            })
        };
        let new = listed.iter().filter(|file| known(file).is_none());
        let new: Vec<&(String, String)> = new.collect();
        let mut found = BTreeMap::new();
        let ids: Vec<String> = new.iter().map(|(_, blob)| blob.clone()).collect();
        self.work
            .each_blob(&ids, blob_limits(), &mut |at, content| {
                if let Some((path, blob)) = new.get(at) {
                    let template = charts.is_template(path);
                    let left_out = LeftOut::read(blob.clone(), &content, template);
                    found.insert(path.clone(), left_out);
                }
            })?;
        let known = listed
            .iter()
            .filter_map(|file| Some((file.0.clone(), known(file)?)));
        found.extend(known);
        Ok(found)
    }

    /// Computes the rows of the store that change because of the files that this pass has read.
    fn fills(
        &self,
        index: &Index,
        before: &Index,
        read: Vec<Read>,
        catalog: &Catalog,
    ) -> Vec<Fill> {
        // Two files may contain the same object. Then the store gets the object of the first file, by path.
        let (patches, _) = kustomize::named(&index.files);
        let mut places = HashMap::with_capacity(index.files.len());
        for (path, known) in &index.files {
            if patches.contains(path.as_str()) {
                continue;
            }
            for held in &known.objects {
                let place = (path.as_str(), held.document, held.items.as_slice());
                places.entry(index.identity(held)).or_insert(place);
            }
        }
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let statuses = &*statuses;
        let mut counting = Vec::new();
        for read in read {
            for Loaded { held, object } in read.objects {
                let namespace = index.namespace_of(&held).to_owned();
                let key = (
                    held.resource.as_str(),
                    namespace.as_str(),
                    held.name.as_str(),
                );
                let place = (read.path.as_str(), held.document, held.items.as_slice());
                if places.get(&key) == Some(&place) {
                    let born = births::born(index, &read.path, &read.known, &held, &namespace);
                    let born = born.unwrap_or_else(|| read.known.stat.written());
                    counting.push((held, object, born, namespace));
                }
            }
        }
        let fills = on_every_core(counting, |(held, object, born, namespace)| {
            let key = (namespace.clone(), held.name.clone());
            let status = statuses.as_ref().and_then(|said| said.get(&key));
            fill(index, held, object, born, &namespace, status, catalog)
        });
        // Delete the stored objects that were in a file before and are in no file now.
        let mut gone: Vec<Fill> = Vec::new();
        for known in before.files.values() {
            for held in &known.objects {
                let identity = before.identity(held);
                if !places.contains_key(&identity) {
                    let (_, namespace, _) = identity;
                    gone.push(Fill {
                        key: Key {
                            resource: held.resource.as_str().into(),
                            namespace: namespace.to_owned(),
                            name: held.name.clone(),
                        },
                        uid: uid(&held.resource, namespace, &held.name),
                        state: None,
                    });
                }
            }
        }
        gone.extend(fills);
        gone
    }
}

/// Reads the files whose stat differs from the index.
fn read_files<'p>(
    reader: &Reader<'_>,
    index: &Index,
    paths: impl IntoIterator<Item = &'p String>,
) -> Files<'p> {
    let paths = paths.into_iter().collect();
    let looked = on_every_core(paths, |path: &String| {
        let known = index.files.get(path);
        let is_as_read = |known: &&Known| known.template == reader.charts.is_template(path);
        if let Some(known) = known.filter(is_as_read) {
            match reader.folder.stat(path) {
                Ok(Some(stat)) if known.stat.is_as(&stat) => return Some((path, None)),
                Ok(None)
                    if !reader.left_out.contains_key(path) && reader.unfollowed(path).is_none() =>
                {
                    return None;
                }
                // An error of the stat is ignored here, because the read of the file reports it.
                Ok(_) | Err(_) => {}
            }
        }
        Some((path, Some(reader.read(path, known))))
    });
    let mut files = Files::default();
    for (path, looked) in looked.into_iter().flatten() {
        match looked {
            Some(ReadResult::At(read)) => files.read.push(*read),
            Some(ReadResult::PutOff) => files.put_off = true,
            Some(ReadResult::Gone) => continue,
            Some(ReadResult::Same) | None => {}
        }
        files.paths.push(path);
    }
    files
}

/// Returns unchanged files whose objects must now be stored. Until now another file contained the same objects, or a
/// kustomization named the file as a patch.
fn uncovered(before: &Index, index: &Index) -> BTreeSet<String> {
    let (were, _) = kustomize::named(&before.files);
    let (are, _) = kustomize::named(&index.files);
    let mut lost = HashSet::new();
    for (path, known) in &before.files {
        let now = index.files.get(path);
        let now = now.filter(|_| !are.contains(path.as_str()));
        if now.is_some_and(|now| now.hash == known.hash) {
            continue;
        }
        let kept: HashSet<_> = now
            .iter()
            .flat_map(|now| &now.objects)
            .map(|held| index.identity(held))
            .collect();
        let held = known.objects.iter().map(|held| before.identity(held));
        lost.extend(held.filter(|held| !kept.contains(held)));
    }
    let takes_over = |path: &str, known: &Known| {
        let mut held = known.objects.iter().map(|held| index.identity(held));
        !are.contains(path) && (were.contains(path) || held.any(|held| lost.contains(&held)))
    };
    let files = index.files.iter();
    let files = files.filter(|(path, known)| takes_over(path, known));
    files.map(|(path, _)| path.clone()).collect()
}

/// Returns the default namespace, for objects whose file names none. It is the namespace of all other objects if they
/// have the same one, otherwise `default`.
fn only_namespace(index: &Index) -> String {
    let all = index.files.values().flat_map(|known| &known.objects);
    let named: BTreeSet<&str> = all
        .map(|held| held.namespace.as_str())
        .filter(|namespace| !namespace.is_empty())
        .collect();
    let mut named = named.into_iter();
    match (named.next(), named.next()) {
        (Some(only), None) => only.to_owned(),
        _ => "default".to_owned(),
    }
}
