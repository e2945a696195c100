//! A Kubernetes API in this process: a `tower::Service` over one SQLite file.
//!
//! A `kube::Client` on top of it cannot tell it from a server: the conformance suite runs
//! the same cases against both. It serves one user and runs no pods; who may do what is
//! decided by the policies in the store alone.

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
mod encode;
mod install;
mod list;
mod names;
pub mod object;
mod openapi;
pub mod patch;
mod protobuf;
mod reviews;
pub mod route;
mod scale;
pub mod schema;
pub mod select;
pub mod service;
pub mod sqlite;
pub mod status;
mod table;
pub mod tree;
mod watch;
mod write;

use std::path::Path;
use std::sync::{Arc, RwLock};

use serde_json::{Map, Value};

use catalog::{BINDINGS, Catalog, DEFINITIONS, POLICIES};
pub use service::Body;
pub use sqlite::OpenError;
use sqlite::{PageRequest, Scope, Store, StoreError};
use status::Failure;

/// The API over one file, as one user. Clones share everything.
#[derive(Clone)]
pub struct Embedded {
    shared: Arc<Shared>,
    user: Arc<User>,
    clock: Clock,
}

/// What time it is, for what is written.
pub type Clock = Arc<dyn Fn() -> jiff::Timestamp + Send + Sync>;

/// Who the server takes the caller for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The groups.
    pub groups: Vec<String>,
}

struct Shared {
    store: Store,
    catalog: RwLock<Arc<Catalog>>,
    /// Held by whoever builds the catalog, so that many who need it wait for one.
    building: tokio::sync::Mutex<()>,
    /// Woken when a deletion left work.
    work: Arc<tokio::sync::Notify>,
    /// The files that objects of our kinds lie in, where the store is a cache of them.
    tree: Option<Arc<tree::Tree>>,
}

impl Embedded {
    /// Opens or creates the file and makes sure that it holds bowline's kinds and rules.
    pub async fn open(path: &Path, user: &str) -> Result<Embedded, OpenError> {
        let embedded = Self::start(path, user, None).await?;
        let missing = embedded.missing().await;
        let missing = missing.map_err(|failure| embedded.not_set_up(failure))?;
        embedded.set_up(missing.as_deref()).await?;
        Ok(embedded)
    }

    /// Opens an existing file for reading; neither creates the file nor adds kinds that it lacks.
    pub async fn open_readonly(path: &Path, user: &str) -> Result<Embedded, OpenError> {
        Self::start_by(Store::open_readonly, path, user, None).await
    }

    /// Opens or creates the file, and takes it as it is.
    async fn start(
        path: &Path,
        user: &str,
        tree: Option<Arc<tree::Tree>>,
    ) -> Result<Embedded, OpenError> {
        Self::start_by(Store::open, path, user, tree).await
    }

    /// Opens the file with one of the store's functions.
    async fn start_by(
        open: fn(&Path) -> Result<Store, OpenError>,
        path: &Path,
        user: &str,
        tree: Option<Arc<tree::Tree>>,
    ) -> Result<Embedded, OpenError> {
        let file = path.to_owned();
        let opened = tokio::task::spawn_blocking(move || open(&file)).await;
        let store = opened.unwrap_or_else(|_| Err(OpenError::Foreign(path.to_owned())))?;
        let shared = Arc::new(Shared {
            store,
            catalog: RwLock::new(Arc::new(Catalog::of(&[]))),
            building: tokio::sync::Mutex::new(()),
            work: Arc::new(tokio::sync::Notify::new()),
            tree,
        });
        let embedded = Embedded {
            shared,
            user: Arc::new(User {
                name: user.to_owned(),
                groups: vec!["system:masters".into(), "system:authenticated".into()],
            }),
            clock: Arc::new(jiff::Timestamp::now),
        };
        let known = embedded.shared.refresh().await;
        known.map_err(|failure| embedded.not_set_up(failure))?;
        Ok(embedded)
    }

    /// Installs the kinds that are missing, and begins to work.
    async fn set_up(&self, missing: Option<&[Value]>) -> Result<(), OpenError> {
        if let Some(kinds) = missing {
            let installed = self.install(kinds).await;
            installed.map_err(|failure| self.not_set_up(failure))?;
        }
        collector::start(&self.shared);
        Ok(())
    }

    fn not_set_up(&self, failure: Failure) -> OpenError {
        OpenError::SetUp {
            path: self.shared.store.path().to_owned(),
            message: failure.message,
        }
    }

    /// A client that speaks to this store from within the process.
    pub fn client(&self, namespace: &str) -> kube::Client {
        kube::Client::new(self.clone(), namespace)
    }

    /// The same store, as another user.
    pub fn as_user(&self, user: User) -> Embedded {
        Embedded {
            user: Arc::new(user),
            ..self.clone()
        }
    }

    /// The same store by another clock, which dates what is written: a past can be written down with it.
    pub fn at(&self, clock: Clock) -> Embedded {
        Embedded {
            clock,
            ..self.clone()
        }
    }

    /// The store below, for tests and measurements.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }
}

impl Shared {
    /// What is served now; read again when a definition or a policy changed.
    async fn catalog(&self) -> Result<Arc<Catalog>, Failure> {
        let newest = [DEFINITIONS, POLICIES, BINDINGS]
            .into_iter()
            .map(|resource| self.store.touched(resource))
            .max()
            .unwrap_or_default();
        self.catalog_since(newest).await
    }

    /// What is served as of a revision or later.
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
        // The head is read first: what changes meanwhile is seen by the next request.
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

    /// All objects of a small resource, whatever version they are served in.
    async fn all(&self, resource: &str) -> Result<Vec<Value>, Failure> {
        let mut found = Vec::new();
        self.each(resource, true, |row| {
            // A damaged row takes nothing else with it; whoever reads it is told.
            let (Ok(meta), Ok(mut object)) = (
                serde_json::from_slice::<Map<String, Value>>(&row.meta),
                serde_json::from_slice::<Map<String, Value>>(&row.rest),
            ) else {
                return;
            };
            object.insert("metadata".into(), meta.into());
            let mut object = object.into();
            encode::stamp(&mut object, row.revision);
            found.push(object);
        })
        .await?;
        Ok(found)
    }

    /// Reads the rows of a resource, page by page.
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
