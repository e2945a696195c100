//! Bringing what is served up to what the files and git's log say.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::fills::uid;
use super::index::Index;
use super::look::{Look, Scan};
use super::read::Extent;
use super::{Tree, TreeError};
use crate::embedded::catalog::{Catalog, Resource};
use crate::embedded::sqlite::{Fill, Key};
use crate::embedded::status::Failure;
use crate::embedded::{Embedded, OpenError, Shared, encode};

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
                        tracing::warn!(%error, "cannot watch the files; trying again");
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
