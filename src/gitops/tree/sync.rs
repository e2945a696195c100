//! Updates the store when files of the work tree or git's log have changed. One such update is a pass.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use kube_embedded::catalog::{Catalog, NAMESPACES, Resource};
use kube_embedded::sqlite::{Fill, Key};
use kube_embedded::status::Failure;
use kube_embedded::{Embedded, OpenError, Shared, encode};
use serde_json::{Value, json};

use super::identity::{ENTRIES, PINS, RELEASES, uid};
use super::index::Index;
use super::look::{Look, Scan, Synced};
use super::read::Extent;
use super::{Tree, TreeError};
use crate::api::labels;

/// The pause between two passes over the files, as a multiple of the time that a pass needs.
const SHARE: u32 = 20;
/// The shortest pause between two passes over the files.
const PAUSE: Duration = Duration::from_millis(200);

impl Tree {
    /// Reads the changed files and the new commits, and updates the store, so that requests return the new state.
    pub async fn sync(self: &Arc<Self>, served: &Embedded) -> Result<Synced, TreeError> {
        self.sync_shared(served.shared()).await
    }

    /// Starts a task that updates the store when files change. The task ends when the store or the tree is dropped.
    pub fn follow(self: &Arc<Self>, served: &Embedded) {
        let shared = Arc::downgrade(served.shared());
        let tree = Arc::downgrade(self);
        tokio::spawn(async move {
            let mut pause = PAUSE;
            loop {
                // Opening the tree has already read the files, so the task begins with the pause.
                tokio::time::sleep(pause).await;
                let begun = Instant::now();
                {
                    let (Some(shared), Some(tree)) = (shared.upgrade(), tree.upgrade()) else {
                        return;
                    };
                    if let Err(error) = tree.sync_shared(&shared).await {
                        tracing::warn!(%error, "cannot watch the files; trying again");
                    }
                }
                pause = PAUSE.max(begun.elapsed() * SHARE);
            }
        });
    }

    /// Updates the statuses of ReleasePins in the store with those from a cluster.
    pub async fn observe(
        self: &Arc<Self>,
        served: &Embedded,
        statuses: BTreeMap<(String, String), Value>,
    ) -> Result<(), TreeError> {
        let known = {
            let mut known = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
            known.replace(statuses.clone())
        };
        let paths: BTreeSet<String> = match known {
            // The store may still have statuses that another process stored and that the cluster no longer has. So
            // all ReleasePins are updated.
            None => self.files_of_pins(),
            Some(known) => {
                let new = statuses.iter();
                let new = new.filter(|(key, said)| known.get(*key) != Some(*said));
                let gone = known.keys().filter(|key| !statuses.contains_key(*key));
                let moved = new.map(|(key, _)| key).chain(gone);
                moved
                    .filter_map(|(namespace, name)| self.place(PINS, namespace, name))
                    .map(|place| place.path)
                    .collect()
            }
        };
        if paths.is_empty() {
            return Ok(());
        }
        let _turn = self.syncing.lock().await;
        Arc::make_mut(&mut self.locked()).forget(&paths);
        let extent = match self.is_whole() {
            true => Extent::Whole,
            false => Extent::Pressing,
        };
        self.take_in(served.shared(), extent).await.map(drop)
    }

    /// Reads all files and the whole log into the store, unless this has already happened.
    pub async fn whole(self: &Arc<Self>, served: &Embedded) -> Result<(), TreeError> {
        self.complete(served.shared()).await
    }

    async fn sync_shared(self: &Arc<Self>, shared: &Shared) -> Result<Synced, TreeError> {
        let _turn = self.syncing.lock().await;
        self.sync_now(shared).await
    }

    /// Reads the changed files and the new commits, and updates the store. The caller must hold the lock `syncing`.
    pub(super) async fn sync_now(self: &Arc<Self>, shared: &Shared) -> Result<Synced, TreeError> {
        self.take_in(shared, Extent::Whole).await
    }

    /// Reads the files that the matrix needs, while the store is set up. Other files are read later, when a request
    /// needs them.
    pub(super) async fn begin(
        self: &Arc<Self>,
        shared: &Shared,
        catalog: Arc<Catalog>,
        scan: impl Future<Output = Result<Scan, TreeError>>,
        ready: impl Future<Output = Result<(), OpenError>>,
    ) -> Result<Synced, TreeError> {
        let _turn = self.syncing.lock().await;
        let look = async {
            let scan = scan.await?;
            // If the index may not match the store, the scan is useless, because it started from that index.
            let scan = (!self.index().unsure).then_some(scan);
            self.look_at(shared, catalog, Extent::Pressing, scan).await
        };
        let (look, ready) = tokio::join!(look, ready);
        ready?;
        self.keep(shared, look?, Extent::Pressing).await
    }

    /// Reads everything into the store that is not stored yet.
    pub(super) async fn complete(self: &Arc<Self>, shared: &Shared) -> Result<(), TreeError> {
        if self.is_whole() {
            return Ok(());
        }
        let _turn = self.syncing.lock().await;
        // While this task waited for the lock, another task may have stored everything.
        match self.is_whole() {
            true => Ok(()),
            false => self.sync_now(shared).await.map(drop),
        }
    }

    /// Reads the objects into the store that a request needs. A write needs all objects.
    pub(super) async fn complete_for(
        self: &Arc<Self>,
        shared: &Shared,
        resource: &Resource,
        reads: bool,
    ) -> Result<(), TreeError> {
        let late = [RELEASES, ENTRIES].contains(&&*resource.storage);
        match late || !reads {
            true => self.complete(shared).await,
            false => Ok(()),
        }
    }

    /// Reads the changed files and the new commits, and updates the store. `extent` says how much is read. The caller
    /// must hold the lock `syncing`.
    async fn take_in(
        self: &Arc<Self>,
        shared: &Shared,
        extent: Extent,
    ) -> Result<Synced, TreeError> {
        let catalog = shared.catalog().await?;
        let look = self.look_at(shared, catalog, extent, None).await?;
        self.keep(shared, look, extent).await
    }

    /// Runs a pass over the files and returns its result; None if nothing has changed. `scan` is the list of files;
    /// None if the pass has to make it.
    async fn look_at(
        self: &Arc<Self>,
        shared: &Shared,
        catalog: Arc<Catalog>,
        extent: Extent,
        scan: Option<Scan>,
    ) -> Result<Option<Look>, TreeError> {
        let before = self.index();
        let look = self.look_from(shared, catalog.clone(), before.clone(), extent, scan);
        let look = look.await?;
        let namespace = look.as_ref().map(|look| &look.index.namespace);
        let decided = !before.namespace.is_empty() && !before.unsure;
        match namespace {
            // The default namespace has changed. So objects whose file names no namespace are now other objects, and
            // everything is read again.
            Some(now) if decided && *now != before.namespace => {
                let unsure = Arc::new(Index::unsure(now));
                self.look_from(shared, catalog, unsure, extent, None).await
            }
            _ => Ok(look),
        }
    }

    /// Runs a pass over the files that compares them with the index `before`.
    async fn look_from(
        self: &Arc<Self>,
        shared: &Shared,
        catalog: Arc<Catalog>,
        before: Arc<Index>,
        extent: Extent,
        scan: Option<Scan>,
    ) -> Result<Option<Look>, TreeError> {
        let unsure = before.unsure;
        // List the stored objects before the files are read. A stored object that is in no file then is deleted.
        let (extent, stored) = match unsure {
            true => (Extent::Whole, stored(shared, &catalog).await?),
            false => (extent, Vec::new()),
        };
        let looked = self.clone();
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
                true => shared.keys(ENTRIES).await?,
                false => stored,
            };
            look.forget_all_but_known(stored);
        }
        Ok(look)
    }

    /// Writes the result of a pass to the store, and saves its index in a file.
    async fn keep(
        self: &Arc<Self>,
        shared: &Shared,
        look: Option<Look>,
        extent: Extent,
    ) -> Result<Synced, TreeError> {
        let Some(mut look) = look else {
            let mut index = self.locked();
            if !index.whole {
                Arc::make_mut(&mut index).whole = true;
            }
            return Ok(Synced::default());
        };
        for namespace in &look.namespaces {
            make_namespace(shared, namespace).await?;
        }
        let stored = match look.fills.is_empty() {
            true => 0,
            false => {
                let filled = shared.store().fill(look.fills).await;
                filled.map_err(|error| TreeError::Store(error.to_string()))?
            }
        };
        look.index.revision = shared.store().newest().await.map_err(Failure::from)?;
        let index = Arc::new(look.index);
        *self.locked() = index.clone();
        // Only one task writes the index file at a time, so wait for the earlier one. A pass with `Extent::Pressing`
        // does not wait for its own write.
        let earlier = self.keeping().take();
        if let Some(earlier) = earlier {
            let _ = earlier.await;
        }
        let kept = self.clone();
        let keeping = tokio::task::spawn_blocking(move || index.write(&kept.kept));
        match extent {
            Extent::Whole => drop(keeping.await),
            Extent::Pressing => *self.keeping() = Some(keeping),
        }
        Ok(Synced {
            stored,
            ..look.synced
        })
    }
}

/// Returns whether the objects of a resource come from files or from git's log.
pub(super) fn is_in_files(resource: &Resource) -> bool {
    let ours = [
        labels::OPENCHOREO_GROUP,
        labels::CORE_CHOREO_GROUP,
        labels::BOWLINE_GROUP,
    ];
    ours.contains(&resource.subject.group.as_str())
}

/// Returns the keys of the stored objects that come from files or from git's log.
async fn stored(shared: &Shared, catalog: &Catalog) -> Result<Vec<Key>, TreeError> {
    let resources: BTreeSet<&Arc<str>> = catalog
        .resources()
        .filter(|resource| is_in_files(resource))
        .map(|resource| &resource.storage)
        .collect();
    let mut found = Vec::new();
    for resource in resources {
        found.extend(shared.keys(resource).await?);
    }
    Ok(found)
}

async fn make_namespace(shared: &Shared, name: &str) -> Result<(), TreeError> {
    let key = Key {
        resource: NAMESPACES.into(),
        namespace: String::new(),
        name: name.to_owned(),
    };
    let there = shared.store().get(&key).await;
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
    let filled = shared.store().fill(vec![fill]).await;
    filled.map_err(|error| TreeError::Store(error.to_string()))?;
    Ok(())
}
