//! Bringing what is served up to what the files and git's log say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::chronicle::{self, Entry, News};
use super::index::{Held, Index, Known, Recorded, Stat};
use super::read::{self, Loaded, Read, Reader};
use super::{Tree, TreeError};
use crate::api::labels;
use crate::embedded::catalog::Catalog;
use crate::embedded::object::{map_of, meta_mut};
use crate::embedded::sqlite::{Fill, Key};
use crate::embedded::{Embedded, Shared, encode};

/// Where pins are stored.
pub(super) const PINS: &str = "openchoreo.dev/releasepins";
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
        let moved: BTreeSet<(String, String)> = {
            let mut known = tree.statuses.lock().unwrap_or_else(PoisonError::into_inner);
            let changed =
                |(key, value): &(&(String, String), &Value)| known.get(*key) != Some(*value);
            let new = statuses.iter().filter(changed).map(|(key, _)| key.clone());
            let gone = known
                .keys()
                .filter(|key| !statuses.contains_key(*key))
                .cloned();
            let moved = new.chain(gone).collect();
            *known = statuses;
            moved
        };
        let paths: BTreeSet<String> = moved
            .iter()
            .filter_map(|(namespace, name)| tree.place(PINS, namespace, name))
            .map(|place| place.path)
            .collect();
        if paths.is_empty() {
            return Ok(());
        }
        let _turn = tree.syncing.lock().await;
        Arc::make_mut(&mut tree.locked()).forget(&paths);
        self.shared.sync_now(tree).await.map(drop)
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
        let catalog = self.catalog().await?;
        let looked = tree.clone();
        let now = Timestamp::now();
        let looking = tokio::task::spawn_blocking(move || looked.look(&catalog, now)).await;
        let look = looking.map_err(|error| TreeError::Store(error.to_string()))??;
        let Some(look) = look else {
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
        let index = Arc::new(look.index);
        *tree.locked() = index.clone();
        let kept = tree.clone();
        let keeping = tokio::task::spawn_blocking(move || index.write(&kept.kept));
        let _ = keeping.await;
        Ok(Synced {
            stored,
            ..look.synced
        })
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

/// What a look at the files found.
struct Look {
    index: Index,
    fills: Vec<Fill>,
    namespaces: BTreeSet<String>,
    synced: Synced,
}

impl Tree {
    /// Looks at the files; None where nothing changed.
    fn look(&self, catalog: &Catalog, now: Timestamp) -> Result<Option<Look>, TreeError> {
        let before = self.index();
        let root = self.work.root();
        let reader = Reader { root, catalog, now };
        // The log is read while the files are.
        let (files, news) = std::thread::scope(|scope| {
            let log = scope.spawn(|| chronicle::news(&self.work, &before));
            let files = self.read_files(&reader, &before, &BTreeSet::new());
            let news = log.join().unwrap_or_else(|_| Ok(News::default()));
            (files, news)
        });
        let (paths, mut read) = files?;
        let news = news?;
        let known = paths
            .iter()
            .filter(|path| before.files.contains_key(*path))
            .count();
        if read.is_empty() && known == before.files.len() && news.is_nothing(&before) {
            return Ok(None);
        }
        let mut index = (*before).clone();
        for read in &read {
            index.files.insert(read.path.clone(), read.known.clone());
        }
        let again = news.touched(&before);
        let mut entries = Vec::new();
        chronicle::take(&self.work, &mut index, news, &mut entries)?;
        let known: BTreeSet<&str> = read.iter().map(|read| read.path.as_str()).collect();
        let again: BTreeSet<String> = again
            .into_iter()
            .filter(|path| !known.contains(path.as_str()))
            .collect();
        if !again.is_empty() {
            let mut once_more = (*before).clone();
            once_more.forget(&again);
            read.extend(self.read_files(&reader, &once_more, &again)?.1);
        }
        let gone: Vec<String> = {
            let there: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
            let known = index.files.keys();
            known
                .filter(|path| !there.contains(path.as_str()))
                .cloned()
                .collect()
        };
        for path in &gone {
            index.files.remove(path);
        }
        for read in &read {
            index.files.insert(read.path.clone(), read.known.clone());
        }
        let synced = Synced {
            files: paths.len(),
            read: read.len(),
            stored: 0,
        };
        if index.namespace.is_empty() {
            index.namespace = only_namespace(&index);
        }
        let mut fills = self.fills(&index, &before, read, catalog);
        fills.extend(entries.into_iter().map(|entry| entry_fill(&index, entry)));
        let namespaces = fills.iter().map(|fill| fill.key.namespace.clone());
        let mut namespaces: BTreeSet<String> = namespaces.filter(|name| !name.is_empty()).collect();
        namespaces.insert(index.namespace.clone());
        Ok(Some(Look {
            fills,
            namespaces,
            index,
            synced,
        }))
    }

    /// Reads the files whose stat changed, on every core; or those that are named.
    fn read_files(
        &self,
        reader: &Reader<'_>,
        index: &Index,
        only: &BTreeSet<String>,
    ) -> Result<(Vec<String>, Vec<Read>), TreeError> {
        let paths = match only.is_empty() {
            true => read::candidates(self.work.files()?),
            false => only.iter().cloned().collect(),
        };
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        let share = paths.len().div_ceil(workers).max(1);
        let read_some = |some: &[String]| -> (Vec<String>, Vec<Read>) {
            let mut there = Vec::with_capacity(some.len());
            let mut read = Vec::new();
            for path in some {
                let Some(stat) = Stat::of(&reader.root.join(path)) else {
                    continue;
                };
                let known = index.files.get(path);
                there.push(path.clone());
                if known.is_some_and(|known: &Known| known.stat.is_as(&stat)) {
                    continue;
                }
                read.extend(reader.read(path, stat, known));
            }
            (there, read)
        };
        let parts: Vec<(Vec<String>, Vec<Read>)> = std::thread::scope(|scope| {
            let parts = paths.chunks(share);
            let parts: Vec<_> = parts.map(|some| scope.spawn(|| read_some(some))).collect();
            parts
                .into_iter()
                .filter_map(|part| part.join().ok())
                .collect()
        });
        let (there, read): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((there.concat(), read.into_iter().flatten().collect()))
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
        let mut places: BTreeMap<(&str, &str, &str), (&str, usize)> = BTreeMap::new();
        for (path, known) in &index.files {
            if patches.contains(path.as_str()) {
                continue;
            }
            for held in &known.objects {
                let key = (
                    held.resource.as_str(),
                    index.namespace_of(held),
                    held.name.as_str(),
                );
                places.entry(key).or_insert((path, held.document));
            }
        }
        let statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fills = Vec::new();
        for Read {
            path,
            known,
            objects,
        } in read
        {
            for Loaded { held, object } in objects {
                let namespace = index.namespace_of(&held).to_owned();
                let key = (
                    held.resource.as_str(),
                    namespace.as_str(),
                    held.name.as_str(),
                );
                if places.get(&key) == Some(&(path.as_str(), held.document)) {
                    let born = index.births.get(&path).copied();
                    let born = born.unwrap_or_else(|| known.stat.written());
                    let status = statuses.get(&(namespace.clone(), held.name.clone()));
                    fills.push(fill(index, held, object, born, &namespace, status, catalog));
                }
            }
        }
        drop(statuses);
        // What was in a file and is in none any more.
        let mut gone: Vec<Fill> = Vec::new();
        for known in before.files.values() {
            for held in &known.objects {
                let namespace = before.namespace_of(held);
                let key = (held.resource.as_str(), namespace, held.name.as_str());
                if !places.contains_key(&key) {
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

/// What tells an object from others: the same in every clone.
pub(super) fn uid(resource: &str, namespace: &str, name: &str) -> String {
    let hash = read::hash(format!("{resource}\0{namespace}\0{name}").as_bytes());
    let part = |from: usize, to: usize| hash.get(from..to).unwrap_or_default().to_owned();
    format!(
        "{}-{}-4{}-8{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

fn fill(
    index: &Index,
    held: Held,
    mut object: Value,
    born: i64,
    namespace: &str,
    status: Option<&Value>,
    catalog: &Catalog,
) -> Fill {
    let resource = catalog.stored(&held.resource);
    let own_uid = uid(&held.resource, namespace, &held.name);
    let born = Timestamp::from_second(born).unwrap_or_default();
    let recorded = match held.resource == PINS {
        true => index
            .pins
            .get(&chronicle::pin_key(&held.namespace, &held.name)),
        false => None,
    };
    let meta = meta_mut(&mut object);
    meta.insert("namespace".into(), namespace.into());
    meta.insert("uid".into(), own_uid.as_str().into());
    meta.insert("creationTimestamp".into(), born.to_string().into());
    if held.resource == PINS {
        let generation = revision(recorded, &object["spec"]);
        let meta = meta_mut(&mut object);
        meta.insert("generation".into(), generation.into());
        if let Some(recorded) = recorded.filter(|recorded| !recorded.by.is_empty()) {
            let annotations = map_of(meta.entry("annotations").or_insert(Value::Null));
            annotations.insert(labels::CHANGED_BY.to_owned(), recorded.by.as_str().into());
        }
        if let Some(status) = status {
            let status = beside(status, &object["spec"], generation);
            map_of(&mut object).insert("status".into(), status);
        }
    }
    let (meta, rest) = match resource {
        Some(resource) => encode::split(resource, &object),
        None => (Vec::new(), Vec::new()),
    };
    Fill {
        key: Key {
            resource: held.resource.as_str().into(),
            namespace: namespace.to_owned(),
            name: held.name,
        },
        uid: own_uid,
        state: Some((meta, rest)),
    }
}

/// The revision of a pin: that of the log, or the next one where the file says something else.
fn revision(recorded: Option<&Recorded>, spec: &Value) -> i64 {
    match recorded {
        None => 1,
        Some(recorded) if recorded.spec == chronicle::spec(spec) => recorded.revisions.max(1),
        Some(recorded) => recorded.revisions + 1,
    }
}

/// What a cluster says of a pin, in the terms of the repository: it has observed what git wants only if it
/// wants the same.
fn beside(said: &Value, spec: &Value, generation: i64) -> Value {
    let mut status = said["status"].clone();
    let same = chronicle::spec(&said["spec"]) == chronicle::spec(spec);
    let current = said["status"]["observedGeneration"] == said["metadata"]["generation"];
    let fields = map_of(&mut status);
    match same && current {
        true => fields.insert("observedGeneration".into(), generation.into()),
        false => fields.remove("observedGeneration"),
    };
    // Its numbers are not ours: what ran is told, in its order, before what git wants.
    if let Some(outcomes) = fields.get_mut("outcomes").and_then(Value::as_array_mut) {
        let count = i64::try_from(outcomes.len()).unwrap_or_default();
        for (at, outcome) in (0..).zip(outcomes.iter_mut()) {
            map_of(outcome).insert("generation".into(), (generation - count + 1 + at).into());
        }
    }
    status
}

fn entry_fill(index: &Index, entry: Entry) -> Fill {
    let namespace = match entry.namespace.is_empty() {
        true => index.namespace.clone(),
        false => entry.namespace.clone(),
    };
    let key = |name: &str| Key {
        resource: ENTRIES.into(),
        namespace: namespace.clone(),
        name: name.to_owned(),
    };
    let (name, object) = chronicle::object(&entry, &namespace);
    let own = uid(ENTRIES, &namespace, &name);
    let state = object.map(|mut object| {
        let meta = meta_mut(&mut object);
        meta.insert("uid".into(), own.as_str().into());
        (
            encode::to_bytes(&object["metadata"]),
            encode::to_bytes(&json!({"spec": object["spec"]})),
        )
    });
    Fill {
        key: key(&name),
        uid: own,
        state,
    }
}
