//! One data plane: its client, its caches, and the limits of its requests.
//!
//! Each data plane has its own limits, watches and deadlines. So a data plane that does not answer delays
//! only its own RenderedReleases.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use tokio::task::JoinSet;

use super::causes::Causes;
use super::kinds::{Blind, Kind, Kinds};
use super::live::{Live, Owner, Seen, Slim, Whole};
use super::wakes::ReconcileTriggers;
use super::watch::{Sync, Watch};
use crate::api::labels;
use crate::connect::{self, Failure, explain};
use crate::engine::diff::Identity;

/// The limits and deadlines for the requests to each data plane.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many RenderedReleases of a data plane are reconciled at the same time.
    pub releases: usize,
    /// How many requests one RenderedRelease sends at the same time.
    pub requests: usize,
    /// The time limit of a request.
    pub deadline: Duration,
    /// The first wait after the data plane did not answer. Each further failure doubles the wait.
    pub first_pause: Duration,
    /// The longest wait after failures of the data plane.
    pub longest_pause: Duration,
    /// How long a workload must be unready before the controller reads its pods.
    pub pods_after: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            releases: 16,
            requests: 8,
            deadline: Duration::from_secs(15),
            first_pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(30),
            pods_after: Duration::from_secs(5),
        }
    }
}

/// The error of a request to a data plane.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The data plane answered with an error, or did not answer.
    #[error("{}", explain(.0))]
    Failed(#[from] kube::Error),
    /// The request exceeded its deadline, which the value contains.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

impl RequestError {
    /// Returns whether the data plane did not answer the request.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Failed(error) => connect::failure(error) == Failure::Unreachable,
            Self::TimedOut(_) => true,
        }
    }

    /// Returns the HTTP status code of the error; None if the data plane did not answer.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Failed(kube::Error::Api(status)) => Some(status.code),
            _ => None,
        }
    }

    fn blind(&self, kind: String) -> Blind {
        match self {
            Self::Failed(error) => Blind::of(kind, error),
            Self::TimedOut(_) => Blind::Unread {
                kind,
                why: self.to_string(),
                unreachable: true,
            },
        }
    }
}

/// The error if a data plane does not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("data plane {plane} does not answer: {why}")]
pub struct Unreachable {
    /// The name of the data plane that does not answer.
    pub plane: String,
    /// The text of the connection error.
    pub why: String,
}

#[derive(Default)]
enum Reachability {
    #[default]
    Up,
    Down {
        until: Instant,
        times: u32,
        why: String,
    },
}

/// A data plane: its client, caches, watches and limits.
pub struct Plane {
    /// The name of the connection, as in conditions and annotations.
    pub name: String,
    /// The client of the data plane.
    pub client: Client,
    pub settings: Settings,
    /// Starts passes over the RenderedReleases of this data plane.
    pub wakes: Arc<ReconcileTriggers>,
    /// The namespaces that certainly exist, so no request has to check them.
    pub(super) namespaces: Mutex<HashSet<String>>,
    pub(super) causes: Causes,
    kinds: Kinds,
    watches: Mutex<HashMap<(String, String), Arc<Watch>>>,
    tasks: Mutex<JoinSet<()>>,
    permits: Semaphore,
    reachability: Mutex<Reachability>,
    probing: tokio::sync::Mutex<()>,
    identity: OnceCell<String>,
    denied: AtomicBool,
}

impl Plane {
    /// Creates a data plane with empty caches.
    pub fn new(
        name: String,
        client: Client,
        settings: Settings,
        wakes: Arc<ReconcileTriggers>,
    ) -> Self {
        Self {
            name,
            client,
            settings,
            wakes,
            namespaces: Mutex::default(),
            causes: Causes::default(),
            kinds: Kinds::default(),
            watches: Mutex::default(),
            tasks: Mutex::default(),
            permits: Semaphore::new(settings.releases),
            reachability: Mutex::default(),
            probing: tokio::sync::Mutex::default(),
            identity: OnceCell::new(),
            denied: AtomicBool::new(false),
        }
    }

    /// Waits until one more RenderedRelease of this data plane may be reconciled. Fails if the data plane
    /// does not answer. Other data planes do not wait.
    pub async fn turn(&self) -> Result<Option<SemaphorePermit<'_>>, Unreachable> {
        self.reachable().await?;
        // `acquire` fails only on a closed semaphore, and this one is never closed.
        let turn = self.permits.acquire().await.ok();
        // The data plane may have stopped answering while this RenderedRelease waited.
        self.reachable().await?;
        Ok(turn)
    }

    /// Sends a request to the data plane, with its deadline.
    pub async fn ask<T>(
        &self,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, RequestError> {
        let deadline = self.settings.deadline;
        match tokio::time::timeout(deadline, request).await {
            Ok(answer) => {
                let denied = matches!(&answer, Err(kube::Error::Api(status)) if status.code == 401);
                self.denied.store(denied, Ordering::Relaxed);
                Ok(answer?)
            }
            Err(_elapsed) => Err(RequestError::TimedOut(deadline)),
        }
    }

    /// Returns whether the last answer of the data plane refused the client's credentials.
    pub fn is_denied(&self) -> bool {
        self.denied.load(Ordering::Relaxed)
    }

    /// Fails if the data plane does not answer. After a failure and a wait, one RenderedRelease tests the
    /// connection for all others.
    async fn reachable(&self) -> Result<(), Unreachable> {
        if let Some(answer) = self.known_reachability() {
            return answer;
        }
        let _probing = self.probing.lock().await;
        match self.known_reachability() {
            Some(answer) => answer,
            None => self.probe().await,
        }
    }

    fn known_reachability(&self) -> Option<Result<(), Unreachable>> {
        match &*lock(&self.reachability) {
            Reachability::Up => Some(Ok(())),
            Reachability::Down { until, why, .. } => {
                (Instant::now() < *until).then(|| Err(self.unreachable(why)))
            }
        }
    }

    /// Tests whether the data plane answers at all. A caller uses this test after one of its requests got no
    /// answer.
    pub async fn suspect(&self) -> Result<(), Unreachable> {
        match self.probing.try_lock() {
            Ok(_probing) => self.probe().await,
            // Another RenderedRelease already tests the data plane.
            Err(_) => {
                let _found = self.probing.lock().await;
                self.known_reachability().unwrap_or(Ok(()))
            }
        }
    }

    async fn probe(&self) -> Result<(), Unreachable> {
        let answer = self.ask(self.client.apiserver_version()).await;
        let mut reachability = lock(&self.reachability);
        let error = match answer {
            // An HTTP error is also an answer.
            Err(error) if error.is_unreachable() => error,
            _ => {
                *reachability = Reachability::Up;
                return Ok(());
            }
        };
        let times = match &*reachability {
            Reachability::Up => 0,
            Reachability::Down { times, .. } => times.saturating_add(1),
        };
        let pause = self.settings.first_pause * 2_u32.saturating_pow(times.min(16));
        let why = error.to_string();
        let unreachable = self.unreachable(&why);
        tracing::warn!(plane = %self.name, error = %why, "data plane does not answer");
        *reachability = Reachability::Down {
            until: Instant::now() + pause.min(self.settings.longest_pause),
            times,
            why,
        };
        Err(unreachable)
    }

    fn unreachable(&self, why: &str) -> Unreachable {
        Unreachable {
            plane: self.name.clone(),
            why: why.to_owned(),
        }
    }

    /// Returns how the data plane serves a kind, from the cache or by discovery.
    pub async fn kind(&self, wanted: &GroupVersionKind) -> Result<Kind, Blind> {
        let deadline = self.settings.deadline;
        let found = self.kinds.find(&self.client, wanted, deadline).await;
        if let Err(Blind::Forbidden { .. }) = &found {
            // Every authenticated user may read discovery, so this error means that the data plane refused
            // the credentials.
            self.denied.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Returns the watch of a kind. The first call for a kind starts the watch.
    pub fn watch(&self, kind: &Kind) -> Arc<Watch> {
        let key = (kind.resource.group.clone(), kind.resource.kind.clone());
        let mut watches = lock(&self.watches);
        if let Some(watch) = watches.get(&key) {
            let is_gone = matches!(watch.sync(), Sync::Blind(Blind::NotServed { .. }));
            // If the data plane serves another version of the kind instead of the watched one, a new watch
            // replaces this watch.
            if !is_gone || watch.kind == *kind {
                return watch.clone();
            }
        }
        let watch = Arc::new(Watch::new(kind.clone(), self.wakes.clone()));
        watches.insert(key, watch.clone());
        let mut tasks = lock(&self.tasks);
        match kind.has_status() {
            true => tasks.spawn(watch.clone().follow(self.every::<false>(kind))),
            false => tasks.spawn(watch.clone().follow(self.every::<true>(kind))),
        };
        watch
    }

    /// Removes a kind from the discovery cache, because the cached discovery was wrong.
    pub fn doubt(&self, kind: &Kind) {
        self.kinds.forget(&kind.resource);
    }

    fn every<const METADATA: bool>(&self, kind: &Kind) -> Api<Seen<METADATA>> {
        Api::all_with(self.client.clone(), &kind.resource)
    }

    fn api<const METADATA: bool>(&self, kind: &Kind, namespace: &str) -> Api<Seen<METADATA>> {
        match kind.namespaced {
            true => Api::namespaced_with(self.client.clone(), namespace, &kind.resource),
            false => self.every(kind),
        }
    }

    /// Reads an object from the data plane, not from the watch. Returns None if the object does not exist.
    pub async fn read(
        &self,
        kind: &Kind,
        identity: &Identity,
    ) -> Result<Option<Arc<Live>>, RequestError> {
        let (namespace, name) = (&identity.namespace, &identity.name);
        let live = match kind.has_status() {
            true => {
                let api = self.api::<false>(kind, namespace);
                let seen: Option<Whole> = self.ask(api.get_opt(name)).await?;
                seen.map(|seen| seen.keep(&identity.group, &identity.kind))
            }
            false => {
                let api = self.api::<true>(kind, namespace);
                let seen: Option<Slim> = self.ask(api.get_opt(name)).await?;
                seen.map(|seen| seen.keep(&identity.group, &identity.kind))
            }
        };
        let live = live.map(Arc::new);
        if let Some(live) = live.as_ref().filter(|live| live.labelled.managed) {
            self.watch(kind).learn(namespace, name, live.clone());
        }
        Ok(live)
    }

    /// Applies an object to the data plane, and returns the summary of the live object.
    pub async fn apply(
        &self,
        kind: &Kind,
        identity: &Identity,
        object: &Value,
        force: bool,
    ) -> Result<Arc<Live>, RequestError> {
        let (namespace, name) = (&identity.namespace, &identity.name);
        let mut params = PatchParams::apply(labels::MANAGER_DATAPLANE);
        params.force = force;
        let patch = Patch::Apply(object);
        let live = match kind.has_status() {
            true => {
                let api = self.api::<false>(kind, namespace);
                let seen = self.ask(api.patch(name, &params, &patch)).await?;
                seen.keep(&identity.group, &identity.kind)
            }
            false => {
                let api = self.api::<true>(kind, namespace);
                let seen = self.ask(api.patch(name, &params, &patch)).await?;
                seen.keep(&identity.group, &identity.kind)
            }
        };
        let live = Arc::new(live);
        self.watch(kind).learn(namespace, name, live.clone());
        Ok(live)
    }

    /// Deletes an object with uid and resourceVersion as preconditions: if the object changed or was
    /// replaced, the error is a conflict. Returns whether the object is gone; false while a finalizer keeps
    /// it.
    pub async fn delete(
        &self,
        kind: &Kind,
        identity: &Identity,
        live: &Live,
    ) -> Result<bool, RequestError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(live.uid.clone()),
                resource_version: Some(live.resource_version.clone()),
            }),
            ..DeleteParams::background()
        };
        let (namespace, name) = (&identity.namespace, &identity.name);
        let api = self.api::<true>(kind, namespace);
        let answer = self.ask(api.delete(name, &params)).await;
        let gone = match answer {
            // The server answers with the object if a finalizer keeps it.
            Ok(answer) => answer.is_right(),
            Err(error) if error.code() == Some(404) => true,
            Err(error) => return Err(error),
        };
        if gone {
            self.watch(kind).unlearn(namespace, name, &live.uid);
        }
        Ok(gone)
    }

    /// Lists the objects of a kind that have the label of a RenderedRelease. Asks the data plane, not the
    /// watch.
    pub async fn list(&self, kind: &Kind, owner: &Owner) -> Result<Vec<Identity>, Blind> {
        let selector = format!("{}={}", labels::RELEASE_UID, owner.uid);
        let api = self.every::<true>(kind);
        let params = ListParams::default().labels(&selector);
        let list = self.ask(api.list(&params)).await;
        let list = list.map_err(|error| error.blind(kind.name()))?;
        let (group, kind) = (&kind.resource.group, &kind.resource.kind);
        let found = list.items.into_iter().filter_map(|seen| {
            let metadata = kube::Resource::meta(&seen).clone();
            let live = seen.keep(group, kind);
            live.is_of(owner).then(|| Identity {
                group: group.clone(),
                kind: kind.clone(),
                namespace: metadata.namespace.unwrap_or_default(),
                name: metadata.name.unwrap_or_default(),
            })
        });
        Ok(found.collect())
    }

    /// Returns the uid of the namespace kube-system, which is equal for all connections to the same cluster.
    /// The text may be empty.
    pub async fn identity(&self) -> Result<&str, RequestError> {
        let identity = self.identity.get_or_try_init(|| async {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            let system = self.ask(namespaces.get_metadata("kube-system")).await?;
            Ok(system.metadata.uid.unwrap_or_default())
        });
        identity.await.map(String::as_str)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
