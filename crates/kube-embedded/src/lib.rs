//! A Kubernetes API in this process: a `tower::Service` over one SQLite file.
//!
//! [`Embedded::client`] returns a `kube::Client` of this API. The API has one user and runs no pods. It has no RBAC,
//! so only the admission policies in the store refuse a write. The conformance suite runs the same test cases against
//! this API and against a kube-apiserver.
//!
//! The caller supplies its own kinds, admission policies, stamps and clock ([`Setup`]). The objects of some resources
//! can be outside the store, for example in files ([`Origin`]).

#![warn(missing_docs)]

pub mod admission;
pub mod apply;
pub mod builtin;
pub mod catalog;
mod collector;
mod convert;
mod definitions;
mod delete;
mod discovery;
mod duplicates;
pub mod encode;
mod list;
mod names;
pub mod object;
mod openapi;
mod origin;
pub mod patch;
mod protobuf;
mod reviews;
pub mod route;
mod scale;
pub mod schema;
pub mod select;
pub mod service;
mod setup;
pub mod sqlite;
pub mod status;
mod table;
mod watch;
mod write;

use std::path::Path;
use std::sync::{Arc, RwLock};

use serde_json::{Map, Value};

use catalog::{BINDINGS, Catalog, DEFINITIONS, POLICIES};
pub use origin::{NotStored, Origin};
pub use service::Body;
pub use setup::{Objects, Setup, Stamp, digest};
use sqlite::{Key, PageRequest, Scope, Store, StoreError};
pub use sqlite::{OpenError, long_waits};
use status::Failure;
pub use table::human_duration;

/// This item exists so that the documentation tests compile and run the example in README.md.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// A Kubernetes API over one store file, for one user. Clones share the store.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
    user: Arc<User>,
    clock: Clock,
}

/// A function that returns the current time, which the API writes to metadata.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// The user who sends requests to the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name of the user.
    pub name: String,
    /// The groups of the user.
    pub groups: Vec<String>,
}

/// The state that all clones of an [`Embedded`] share: the store and the catalog.
pub struct Shared {
    store: Store,
    catalog: RwLock<Arc<Catalog>>,
    /// A lock that is held while the catalog is built, so that several waiting requests do not build it several
    /// times.
    building: tokio::sync::Mutex<()>,
    /// Notified when a deletion has stored follow-up work for the collector.
    work: Arc<tokio::sync::Notify>,
    stamps: Arc<[Stamp]>,
    clock: Clock,
    /// The source of the objects that are not in the store; None if all objects are in the store.
    origin: Option<Arc<dyn Origin>>,
}

/// A store that is open, but may not contain the objects of its setup yet; see [`Embedded::begin`].
pub struct Opening {
    embedded: Embedded,
    setup: Setup,
    /// The objects of the setup that must be installed; None if they are already installed.
    missing: Option<Vec<Value>>,
}

impl Embedded {
    /// Opens or creates the store file, and installs the objects of the setup in it.
    pub async fn open(path: &Path, user: &str, setup: Setup) -> Result<Embedded, OpenError> {
        let opening = Self::begin(path, user, setup, None).await?;
        opening.finish().await?;
        Ok(opening.embedded)
    }

    /// Opens an existing store file for reading. Never creates or changes the file.
    pub async fn open_readonly(path: &Path, user: &str) -> Result<Embedded, OpenError> {
        Self::start(Store::open_readonly, path, user, &Setup::default(), None).await
    }

    /// Opens or creates the store file. Does not install the objects of the setup; for this, the caller calls
    /// [`Opening::finish`].
    pub async fn begin(
        path: &Path,
        user: &str,
        setup: Setup,
        origin: Option<Arc<dyn Origin>>,
    ) -> Result<Opening, OpenError> {
        let embedded = Self::start(Store::open, path, user, &setup, origin).await?;
        let missing = embedded.missing(&setup.objects).await;
        let missing = missing.map_err(|failure| embedded.not_set_up(failure))?;
        Ok(Opening {
            embedded,
            setup,
            missing,
        })
    }

    /// Opens the store file with the function `open`.
    async fn start(
        open: fn(&Path) -> Result<Store, OpenError>,
        path: &Path,
        user: &str,
        setup: &Setup,
        origin: Option<Arc<dyn Origin>>,
    ) -> Result<Embedded, OpenError> {
        let file = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&file)).await;
        let store = opened.unwrap_or_else(|_| Err(OpenError::Foreign(path.to_owned())))?;
        let shared = Arc::new(Shared {
            store,
            catalog: RwLock::new(Arc::new(Catalog::of(&[]))),
            building: tokio::sync::Mutex::new(()),
            work: Arc::new(tokio::sync::Notify::new()),
            stamps: setup.stamps.as_slice().into(),
            clock: setup.clock.clone(),
            origin,
        });
        let embedded = Embedded {
            shared,
            user: Arc::new(User {
                name: user.to_owned(),
                groups: vec!["system:masters".into(), "system:authenticated".into()],
            }),
            clock: setup.clock.clone(),
        };
        let known = embedded.shared.refresh().await;
        known.map_err(|failure| embedded.not_set_up(failure))?;
        Ok(embedded)
    }

    fn not_set_up(&self, failure: Failure) -> OpenError {
        let message = failure.message.strip_prefix(status::INTERNAL);
        OpenError::SetUp {
            path: self.shared.store.path().to_owned(),
            message: message.unwrap_or(&failure.message).to_owned(),
        }
    }

    /// Returns a client of this API. `namespace` is the client's default namespace.
    pub fn client(&self, namespace: &str) -> kube::Client {
        kube::Client::new(self.clone(), namespace)
    }

    /// Returns the same API with requests of another user.
    pub fn as_user(&self, user: User) -> Embedded {
        Embedded {
            user: Arc::new(user),
            ..self.clone()
        }
    }

    /// Returns the same API with another clock, for example to write events of the past for a demo.
    pub fn at(&self, clock: Clock) -> Embedded {
        Embedded {
            clock,
            ..self.clone()
        }
    }

    /// Returns the store in which the API keeps its objects.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// Returns the state that all clones of this API share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

impl Opening {
    /// Returns the API. Until [`finish`](Self::finish) was called, it may not have the objects of the setup.
    pub fn embedded(&self) -> &Embedded {
        &self.embedded
    }

    /// Returns whether the store does not have the objects of this setup yet, so that `finish` will install them.
    pub fn is_outdated(&self) -> bool {
        self.missing.is_some()
    }

    /// Returns the catalog that the API has after [`finish`](Self::finish).
    pub async fn catalog(&self) -> Result<Arc<Catalog>, Failure> {
        match &self.missing {
            None => self.embedded.shared.catalog().await,
            Some(objects) => {
                let kinds = objects.iter().filter(setup::is_definition);
                Ok(Arc::new(Catalog::of(&kinds.cloned().collect::<Vec<_>>())))
            }
        }
    }

    /// Installs the objects of the setup if the store does not have them, and starts the collector.
    pub async fn finish(&self) -> Result<(), OpenError> {
        let embedded = &self.embedded;
        if let Some(objects) = &self.missing {
            let installed = embedded.install(&self.setup, objects).await;
            installed.map_err(|failure| embedded.not_set_up(failure))?;
        }
        collector::start(&embedded.shared);
        Ok(())
    }
}

impl Shared {
    /// Returns the store in which the API keeps its objects.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the origin that contains the objects of a resource; None if they are in the store.
    fn origin_of(&self, resource: &catalog::Resource) -> Option<&Arc<dyn Origin>> {
        self.origin.as_ref().filter(|origin| origin.has(resource))
    }

    /// Returns the current time of the clock, in the format of Kubernetes timestamps.
    fn now(&self) -> String {
        service::dated((self.clock)())
    }

    /// Returns the keys of all objects of a resource. `resource` is the resource's name in the store.
    pub async fn keys(&self, resource: &str) -> Result<Vec<Key>, Failure> {
        let mut found = Vec::new();
        self.each(resource, false, |row| found.push(row.key))
            .await?;
        Ok(found)
    }

    /// Returns the current catalog. If a definition or a policy has changed, builds the catalog again.
    pub async fn catalog(&self) -> Result<Arc<Catalog>, Failure> {
        let newest = [DEFINITIONS, POLICIES, BINDINGS]
            .into_iter()
            .map(|resource| self.store.touched(resource))
            .max()
            .unwrap_or_default();
        self.catalog_since(newest).await
    }

    /// Returns a catalog that contains all changes up to a revision.
    async fn catalog_since(&self, revision: sqlite::Revision) -> Result<Arc<Catalog>, Failure> {
        let known = self.known();
        if known.revision >= revision {
            return Ok(known);
        }
        let _building = self.building.lock().await;
        let known = self.known();
        match known.revision >= revision {
            true => Ok(known),
            false => self.refresh().await,
        }
    }

    fn known(&self) -> Arc<Catalog> {
        let known = self.catalog.read().unwrap_or_else(|e| e.into_inner());
        known.clone()
    }

    /// Builds the catalog from the store.
    async fn refresh(&self) -> Result<Arc<Catalog>, Failure> {
        // The revision is read before the definitions, so that a change in between is newer than this catalog. Then
        // the next request builds the catalog again.
        let revision = self.store.newest().await.map_err(Failure::from)?;
        let definitions = self.all(DEFINITIONS).await?;
        let policies = self.all(POLICIES).await?;
        let bindings = self.all(BINDINGS).await?;
        let earlier = self.known();
        let built = tokio::task::spawn_blocking(move || {
            Arc::new(Catalog::build(
                Some(&earlier),
                &definitions,
                policies,
                bindings,
                revision,
            ))
        })
        .await
        .map_err(Failure::internal)?;
        let mut catalog = self.catalog.write().unwrap_or_else(|e| e.into_inner());
        if built.revision >= catalog.revision {
            *catalog = built.clone();
        }
        Ok(built)
    }

    /// Returns all objects of a resource in their stored version. All are in memory, so the resource must have few
    /// objects.
    async fn all(&self, resource: &str) -> Result<Vec<Value>, Failure> {
        let (mut found, mut is_damaged) = (Vec::new(), false);
        self.each(resource, true, |row| {
            let (Ok(meta), Ok(mut object)) = (
                serde_json::from_slice::<Map<String, Value>>(&row.meta),
                serde_json::from_slice::<Map<String, Value>>(&row.rest),
            ) else {
                // A JSON value that is not an object is skipped here, because a request for it reports the damage.
                let is_json =
                    |text: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
                is_damaged |= !is_json(&row.meta) || !is_json(&row.rest);
                return;
            };
            object.insert("metadata".into(), meta.into());
            let mut object = object.into();
            encode::stamp(&mut object, row.revision);
            found.push(object);
        })
        .await?;
        match is_damaged {
            // A damaged definition is an error here, because without it the catalog would not have its kind.
            true => Err(Failure::from(StoreError::Damaged {
                path: self.store.path().to_owned(),
                damage: sqlite::Damage::Corrupt,
            })),
            false => Ok(found),
        }
    }

    /// Calls `take` for each row of a resource, and reads the rows page by page to save memory.
    async fn each(
        &self,
        resource: &str,
        bodies: bool,
        mut take: impl FnMut(sqlite::Row),
    ) -> Result<(), Failure> {
        let mut after = None;
        loop {
            let request = PageRequest {
                scope: Scope {
                    resource: resource.into(),
                    namespace: None,
                },
                after: after.take(),
                at: None,
                rows: 256,
                bytes: 4 << 20,
                bodies,
            };
            let page = self.store.page(request).await?;
            if let Some(last) = page.rows.last() {
                after = Some((last.key.namespace.clone(), last.key.name.clone()));
            }
            page.rows.into_iter().for_each(&mut take);
            if !page.more || after.is_none() {
                return Ok(());
            }
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Failure {
        match error {
            StoreError::Compacted { .. } => {
                Failure::expired("The resourceVersion for the provided watch is too old.")
            }
            StoreError::Future { asked, newest } => Failure::too_large_revision(asked, newest),
            other => Failure::internal(other),
        }
    }
}
