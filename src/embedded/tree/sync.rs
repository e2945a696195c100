//! Bringing what is served up to what the files and git's log say.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::births;
use super::chronicle::{self, Entry, News};
use super::cores::on_every_core;
use super::fills::{entry_fill, fill, uid};
use super::index::{Held, Index, Known};
use super::read::{self, Extent, LeftOut, Loaded, Looked, Read, Reader};
use super::stat::{Folder, Stat};
use super::{Tree, TreeError};
use crate::embedded::catalog::{Catalog, Resource};
use crate::embedded::sqlite::{Fill, Key};
use crate::embedded::status::Failure;
use crate::embedded::{Embedded, OpenError, Shared, encode};
use crate::git::GitError;

/// Where pins are stored.
pub(super) const PINS: &str = "openchoreo.dev/releasepins";
/// Where releases are stored.
pub(super) const RELEASES: &str = "openchoreo.dev/releases";
/// Where audit entries are stored.
pub(super) const ENTRIES: &str = "bowline.dev/auditentries";

/// What a look at the files came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Synced {
    /// How many files were looked at.
    pub files: usize,
    /// How many of them were read.
    pub read: usize,
    /// How many objects and entries were stored or removed.
    pub stored: usize,
}

/// A look at the files takes at most this part of a process's time.
const SHARE: u32 = 20;
/// Nobody sees faster than this.
const PAUSE: Duration = Duration::from_millis(200);

impl Embedded {
    /// Looks at the files and at the log, and serves what changed.
    pub async fn sync(&self, tree: &Arc<Tree>) -> Result<Synced, TreeError> {
        self.shared.sync(tree).await
    }

    /// Follows the files for as long as this store lives.
    pub fn follow(&self, tree: &Arc<Tree>) {
        let shared = Arc::downgrade(&self.shared);
        let tree = Arc::downgrade(tree);
        tokio::spawn(async move {
            let mut pause = PAUSE;
            loop {
                // Whoever asks once needs nobody who follows.
                tokio::time::sleep(pause).await;
                let begun = Instant::now();
                {
                    let (Some(shared), Some(tree)) = (shared.upgrade(), tree.upgrade()) else {
                        return;
                    };
                    if let Err(error) = shared.sync(&tree).await {
                        tracing::warn!(%error, "the files could not be followed; it is tried again");
                    }
                }
                pause = PAUSE.max(begun.elapsed() * SHARE);
            }
        });
    }

    /// Serves what a cluster says of pins beside what the files say.
    pub async fn observe(
        &self,
        tree: &Arc<Tree>,
        statuses: BTreeMap<(String, String), Value>,
    ) -> Result<(), TreeError> {
        let known = {
            let mut known = tree.statuses.lock().unwrap_or_else(PoisonError::into_inner);
            known.replace(statuses.clone())
        };
        let paths: BTreeSet<String> = match known {
            // What another process was told may be stored, of pins that the cluster has no more.
            None => tree.files_of_pins(),
            Some(known) => {
                let new = statuses.iter();
                let new = new.filter(|(key, said)| known.get(*key) != Some(*said));
                let gone = known.keys().filter(|key| !statuses.contains_key(*key));
                let moved = new.map(|(key, _)| key).chain(gone);
                moved
                    .filter_map(|(namespace, name)| tree.place(PINS, namespace, name))
                    .map(|place| place.path)
                    .collect()
            }
        };
        if paths.is_empty() {
            return Ok(());
        }
        let _turn = tree.syncing.lock().await;
        Arc::make_mut(&mut tree.locked()).forget(&paths);
        let extent = match tree.is_whole() {
            true => Extent::Whole,
            false => Extent::Pressing,
        };
        self.shared.take_in(tree, extent).await.map(drop)
    }
}

impl Index {
    /// Makes files be read again whatever their stat says.
    fn forget(&mut self, paths: &BTreeSet<String>) {
        for path in paths {
            if let Some(known) = self.files.get_mut(path) {
                known.stat = Stat::default();
                known.hash = String::new();
            }
        }
    }
}

impl Shared {
    pub(super) async fn sync(&self, tree: &Arc<Tree>) -> Result<Synced, TreeError> {
        let _turn = tree.syncing.lock().await;
        self.sync_now(tree).await
    }

    pub(super) async fn sync_now(&self, tree: &Arc<Tree>) -> Result<Synced, TreeError> {
        self.take_in(tree, Extent::Whole).await
    }

    /// Looks at what a matrix needs while the store is made ready; the rest is read when somebody asks for it.
    pub(super) async fn begin(
        &self,
        tree: &Arc<Tree>,
        catalog: Arc<Catalog>,
        scan: impl Future<Output = Result<Scan, TreeError>>,
        ready: impl Future<Output = Result<(), OpenError>>,
    ) -> Result<Synced, TreeError> {
        let _turn = tree.syncing.lock().await;
        let look = async {
            let scan = scan.await?;
            // What was found on the grounds of an index that does not hold does not hold either.
            let scan = (!tree.index().unsure).then_some(scan);
            self.look(tree, catalog, Extent::Pressing, scan).await
        };
        let (look, ready) = tokio::join!(look, ready);
        ready?;
        self.keep(tree, look?, Extent::Pressing).await
    }

    /// Makes sure that everything is stored.
    pub(super) async fn complete(&self, tree: &Arc<Tree>) -> Result<(), TreeError> {
        if tree.is_whole() {
            return Ok(());
        }
        let _turn = tree.syncing.lock().await;
        // Whoever had the turn before may have done it.
        match tree.is_whole() {
            true => Ok(()),
            false => self.sync_now(tree).await.map(drop),
        }
    }

    /// Makes sure that what a request is about is stored: everything, where it writes.
    pub(in crate::embedded) async fn complete_for(
        &self,
        resource: &Resource,
        reads: bool,
    ) -> Result<(), TreeError> {
        let late = [RELEASES, ENTRIES].contains(&&*resource.storage);
        match self.tree_of(resource) {
            Some(tree) if late || !reads => self.complete(tree).await,
            _ => Ok(()),
        }
    }

    /// The caller holds the turn.
    async fn take_in(&self, tree: &Arc<Tree>, extent: Extent) -> Result<Synced, TreeError> {
        let catalog = self.catalog().await?;
        let look = self.look(tree, catalog, extent, None).await?;
        self.keep(tree, look, extent).await
    }

    /// Looks at the files and the log; None where nothing changed. The scan is one that was made just now,
    /// where there is one.
    async fn look(
        &self,
        tree: &Arc<Tree>,
        catalog: Arc<Catalog>,
        extent: Extent,
        scan: Option<Scan>,
    ) -> Result<Option<Look>, TreeError> {
        let before = tree.index();
        let look = self.look_from(tree, catalog.clone(), before.clone(), extent, scan);
        let look = look.await?;
        let namespace = look.as_ref().map(|look| &look.index.namespace);
        let decided = !before.namespace.is_empty() && !before.unsure;
        match namespace {
            // What names none is another object in another namespace, and so is its history.
            Some(now) if decided && *now != before.namespace => {
                let unsure = Arc::new(Index::unsure(now));
                self.look_from(tree, catalog, unsure, extent, None).await
            }
            _ => Ok(look),
        }
    }

    /// Looks at the files and the log, on the grounds of what is known of them.
    async fn look_from(
        &self,
        tree: &Arc<Tree>,
        catalog: Arc<Catalog>,
        before: Arc<Index>,
        extent: Extent,
        scan: Option<Scan>,
    ) -> Result<Option<Look>, TreeError> {
        let unsure = before.unsure;
        // Listed before the files are looked at: what these do not have then is gone.
        let (extent, stored) = match unsure {
            true => (Extent::Whole, self.stored(&catalog).await?),
            false => (extent, Vec::new()),
        };
        let looked = tree.clone();
        let looking = tokio::task::spawn_blocking(move || {
            let now = Timestamp::now();
            let scan = match scan {
                Some(scan) => scan,
                None => looked.scan(before.clone())?,
            };
            looked.look(&before, &catalog, now, extent, scan)
        });
        let looking = looking.await;
        let mut look = looking.map_err(|error| TreeError::Store(error.to_string()))??;
        if let Some(look) = &mut look {
            let stored = match look.replaces_entries && !unsure {
                true => self.stored_of(ENTRIES).await?,
                false => stored,
            };
            look.forget_all_but_known(stored);
        }
        Ok(look)
    }

    /// Stores what a look found, and remembers it.
    async fn keep(
        &self,
        tree: &Arc<Tree>,
        look: Option<Look>,
        extent: Extent,
    ) -> Result<Synced, TreeError> {
        let Some(mut look) = look else {
            let mut index = tree.locked();
            if !index.whole {
                Arc::make_mut(&mut index).whole = true;
            }
            return Ok(Synced::default());
        };
        for namespace in &look.namespaces {
            self.make_namespace(namespace).await?;
        }
        let stored = match look.fills.is_empty() {
            true => 0,
            false => {
                let filled = self.store.fill(look.fills).await;
                filled.map_err(|error| TreeError::Store(error.to_string()))?
            }
        };
        look.index.revision = self.store.newest().await.map_err(Failure::from)?;
        let index = Arc::new(look.index);
        *tree.locked() = index.clone();
        // One after the other; what is only begun is kept behind the back of whoever waits.
        let earlier = tree.keeping().take();
        if let Some(earlier) = earlier {
            let _ = earlier.await;
        }
        let kept = tree.clone();
        let keeping = tokio::task::spawn_blocking(move || index.write(&kept.kept));
        match extent {
            Extent::Whole => drop(keeping.await),
            Extent::Pressing => *tree.keeping() = Some(keeping),
        }
        Ok(Synced {
            stored,
            ..look.synced
        })
    }

    /// Lists what is stored of what files and the log can say.
    async fn stored(&self, catalog: &Catalog) -> Result<Vec<Key>, TreeError> {
        let resources: BTreeSet<&Arc<str>> = catalog
            .resources()
            .filter(|resource| self.tree_of(resource).is_some())
            .map(|resource| &resource.storage)
            .collect();
        let mut found = Vec::new();
        for resource in resources {
            found.extend(self.stored_of(resource).await?);
        }
        Ok(found)
    }

    async fn stored_of(&self, resource: &str) -> Result<Vec<Key>, TreeError> {
        let mut found = Vec::new();
        self.each(resource, false, |row| found.push(row.key))
            .await?;
        Ok(found)
    }

    async fn make_namespace(&self, name: &str) -> Result<(), TreeError> {
        let key = Key {
            resource: crate::embedded::catalog::NAMESPACES.into(),
            namespace: String::new(),
            name: name.to_owned(),
        };
        let there = self.store.get(&key).await;
        if there
            .map_err(|error| TreeError::Store(error.to_string()))?
            .is_some()
        {
            return Ok(());
        }
        let object = json!({
            "metadata": {
                "name": name, "uid": uid("namespaces", "", name),
                "labels": {"kubernetes.io/metadata.name": name},
            },
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        let fill = Fill {
            uid: uid("namespaces", "", name),
            state: Some((
                encode::to_bytes(&object["metadata"]),
                encode::to_bytes(&json!({"spec": object["spec"], "status": object["status"]})),
            )),
            key,
        };
        let filled = self.store.fill(vec![fill]).await;
        filled.map_err(|error| TreeError::Store(error.to_string()))?;
        Ok(())
    }
}

/// What git says that there is.
pub(super) struct Scan {
    /// The files that can hold objects, in order.
    paths: Vec<String>,
    /// Those that a sparse checkout leaves out.
    left_out: BTreeMap<String, LeftOut>,
    /// What came to its log: it is still asked, and files can be read meanwhile.
    news: JoinHandle<Result<News, GitError>>,
}

/// The files that there are, and what was read of them.
#[derive(Default)]
struct Files<'p> {
    paths: Vec<&'p String>,
    read: Vec<Read>,
    /// Whether some were left for later.
    put_off: bool,
}

impl Files<'_> {
    /// Tells whether every object says which namespace it is in, those that were known before included.
    fn say_all_namespaces(&self, before: &Index) -> bool {
        let read = self.read.iter().map(|read| &read.known);
        let known = before.files.values().chain(read);
        let mut objects = known.flat_map(|known| &known.objects);
        objects.all(|held| held.says_namespace)
    }
}

/// What a look at the files found.
struct Look {
    index: Index,
    fills: Vec<Fill>,
    namespaces: BTreeSet<String>,
    /// Whether all entries of the log are among the fills: others that are stored are of none.
    replaces_entries: bool,
    synced: Synced,
}

impl Look {
    /// Removes from the store what neither the files nor the log have.
    fn forget_all_but_known(&mut self, stored: Vec<Key>) {
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
    /// Looks at the files; None where nothing changed.
    fn look(
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
            catalog,
            now,
            extent,
        };
        let mut files = read_files(&reader, before, &scan.paths);
        // The namespace of objects that name none is that of all the others, late ones included.
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

    /// Says what becomes of what was read, with what git says of it.
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
        // A long log takes a while to be forgotten, and nobody has to wait for that.
        tokio::task::spawn_blocking(move || drop(news));
        again.extend(uncovered(before, &index));
        // What was just read says everything, unless only its stat had changed.
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

    /// Asks git which files there are, and begins to ask what came to its log.
    pub(super) fn scan(self: &Arc<Self>, before: Arc<Index>) -> Result<Scan, TreeError> {
        let (asked, known) = (self.clone(), before.clone());
        let news = std::thread::spawn(move || chronicle::news(&asked.work, &known));
        let files = self.work.files()?;
        let paths = read::candidates(files.paths);
        let left_out = self.left_out(&before, &paths, files.left_out)?;
        Ok(Scan {
            paths,
            left_out,
            news,
        })
    }

    /// Says of the files that a sparse checkout leaves out whether they can have objects of ours; what is not
    /// known of them is read from git.
    fn left_out(
        &self,
        index: &Index,
        candidates: &[String],
        mut listed: Vec<(String, String)>,
    ) -> Result<BTreeMap<String, LeftOut>, GitError> {
        let root = self.work.root();
        listed.retain(|(path, _)| {
            candidates.binary_search(path).is_ok() && root.join(path).symlink_metadata().is_err()
        });
        let known = |(path, blob): &(String, String)| {
            let known = index.files.get(path);
            let known = known.filter(|known| known.hash == *blob)?;
            Some(!known.problems.is_empty())
        };
        let new = listed.iter().filter(|file| known(file).is_none());
        let new: Vec<String> = new.map(|(_, blob)| blob.clone()).collect();
        let mut new = self.work.blobs(&new)?.into_iter();
        let mut found = BTreeMap::new();
        for file in listed {
            let ours = known(&file).unwrap_or_else(|| {
                // What git does not have here may say anything.
                let text = new.next().flatten();
                text.is_none_or(|text| read::names_us(&text))
            });
            let (path, blob) = file;
            found.insert(path, LeftOut { blob, ours });
        }
        Ok(found)
    }

    /// Says what of the objects of the files that were read is to be stored.
    fn fills(
        &self,
        index: &Index,
        before: &Index,
        read: Vec<Read>,
        catalog: &Catalog,
    ) -> Vec<Fill> {
        // Of two files that hold the same object the first counts.
        let (patches, _) = read::named(&index.files);
        let mut places: HashMap<(&str, &str, &str), (&str, usize)> =
            HashMap::with_capacity(index.files.len());
        for (path, known) in &index.files {
            if patches.contains(path.as_str()) {
                continue;
            }
            for held in &known.objects {
                let place = (path.as_str(), held.document);
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
                if places.get(&key) == Some(&(read.path.as_str(), held.document)) {
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
        // What was in a file and is in none any more.
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

/// Reads the files whose stat changed.
fn read_files<'p>(
    reader: &Reader<'_>,
    index: &Index,
    paths: impl IntoIterator<Item = &'p String>,
) -> Files<'p> {
    let paths = paths.into_iter().collect();
    let looked = on_every_core(paths, |path: &String| {
        let known = index.files.get(path);
        if let Some(known) = known {
            match reader.folder.stat(path) {
                Ok(Some(stat)) if known.stat.is_as(&stat) => return Some((path, None)),
                Ok(None) if !reader.left_out.contains_key(path) => return None,
                // Who reads it says what is wrong.
                Ok(_) | Err(_) => {}
            }
        }
        Some((path, Some(reader.read(path, known))))
    });
    let mut files = Files::default();
    for (path, looked) in looked.into_iter().flatten() {
        match looked {
            Some(Looked::At(read)) => files.read.push(*read),
            Some(Looked::PutOff) => files.put_off = true,
            Some(Looked::Gone) => continue,
            Some(Looked::Same) | None => {}
        }
        files.paths.push(path);
    }
    files
}

/// Returns the files that say something new though they did not change: what they hold was another file's
/// until now, or a kustomization named them as patches.
fn uncovered(before: &Index, index: &Index) -> BTreeSet<String> {
    let (were, _) = read::named(&before.files);
    let (are, _) = read::named(&index.files);
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

/// The namespace that objects without one are in: that of the others, where they agree.
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
