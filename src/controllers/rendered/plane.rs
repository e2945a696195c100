//! One data plane: its client, what is known of it, and how much is asked of it at a time.
//!
//! Each data plane has its own permits, watches and deadlines, so that one which does not answer holds up
//! nobody but its own releases.

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
use super::wakes::Wakes;
use super::watch::{Sync, Watch};
use crate::api::labels;
use crate::connect::{self, Failure, explain};
use crate::engine::diff::Identity;

/// How a data plane is treated.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How many releases are worked on at a time.
    pub releases: usize,
    /// How many requests are made for one release at a time.
    pub requests: usize,
    /// How long a request may take.
    pub deadline: Duration,
    /// The first pause after a data plane did not answer; each further one is twice as long.
    pub first_pause: Duration,
    /// The longest such pause.
    pub longest_pause: Duration,
    /// How long a workload may be unready before its pods are looked at.
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

/// A request to a data plane that failed.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// It was answered with a failure, or not at all.
    #[error("{}", explain(.0))]
    Failed(#[from] kube::Error),
    /// It took too long.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
}

impl RequestError {
    /// Tells whether nobody answered.
    pub fn is_unreachable(&self) -> bool {
        match self {
            Self::Failed(error) => connect::failure(error) == Failure::Unreachable,
            Self::TimedOut(_) => true,
        }
    }

    /// Returns the code of the answer, where there is one.
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

/// A data plane that does not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("data plane {plane} does not answer: {why}")]
pub struct Unreachable {
    /// The data plane.
    pub plane: String,
    /// What went wrong.
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

/// A data plane.
pub struct Plane {
    /// How it is reached, as people and annotations say it.
    pub name: String,
    /// Its client.
    pub client: Client,
    /// How it is treated.
    pub settings: Settings,
    /// The way back to the releases.
    pub wakes: Arc<Wakes>,
    /// The namespaces that are known to be there.
    pub(super) namespaces: Mutex<HashSet<String>>,
    /// Why workloads are not ready.
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
    /// Makes a data plane of which nothing is known.
    pub fn new(name: String, client: Client, settings: Settings, wakes: Arc<Wakes>) -> Self {
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

    /// Waits for a turn, where the data plane answers. Whoever waits keeps nothing from other data planes.
    pub async fn turn(&self) -> Result<Option<SemaphorePermit<'_>>, Unreachable> {
        self.reachable().await?;
        // They are never closed.
        let turn = self.permits.acquire().await.ok();
        // It may have gone silent while many waited.
        self.reachable().await?;
        Ok(turn)
    }

    /// Sends a request and waits for its answer, not for ever.
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

    /// Tells whether the last answer of the data plane refused the credentials of the client.
    pub fn is_denied(&self) -> bool {
        self.denied.load(Ordering::Relaxed)
    }

    /// Says whether the data plane answers. One that did not is asked again after a pause, by one release
    /// for all.
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

    /// Finds out whether a request that was not answered says something about the whole data plane.
    pub async fn suspect(&self) -> Result<(), Unreachable> {
        match self.probing.try_lock() {
            Ok(_probing) => self.probe().await,
            // Somebody finds it out already.
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
            // A failure that was answered with is an answer.
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

    /// Asks how a kind is served.
    pub async fn kind(&self, wanted: &GroupVersionKind) -> Result<Kind, Blind> {
        let deadline = self.settings.deadline;
        let found = self.kinds.find(&self.client, wanted, deadline).await;
        if let Err(Blind::Forbidden { .. }) = &found {
            // A data plane lets every user that it knows read discovery.
            self.denied.store(true, Ordering::Relaxed);
        }
        found
    }

    /// Returns the watch of a kind; it begins with the first who asks.
    pub fn watch(&self, kind: &Kind) -> Arc<Watch> {
        let key = (kind.resource.group.clone(), kind.resource.kind.clone());
        let mut watches = lock(&self.watches);
        if let Some(watch) = watches.get(&key) {
            let is_gone = matches!(watch.sync(), Sync::Blind(Blind::NotServed { .. }));
            // The version that it was watched in is no longer served, another one is.
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

    /// Forgets what discovery said of a kind, for it was not so.
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

    /// Reads an object from the data plane itself.
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

    /// Applies an object, and returns what the data plane made of it.
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

    /// Deletes an object as it was seen: if it is another by now, or was changed, nothing happens and the
    /// answer is a conflict. Tells whether it is gone.
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
            // The answer is the object where it is still there.
            Ok(answer) => answer.is_right(),
            Err(error) if error.code() == Some(404) => true,
            Err(error) => return Err(error),
        };
        if gone {
            self.watch(kind).unlearn(namespace, name, &live.uid);
        }
        Ok(gone)
    }

    /// Asks the data plane itself whether anything of a kind carries the uid of a release.
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

    /// Returns what tells this cluster from others, however it is reached.
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
