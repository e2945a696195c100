//! Watches to the read model.
//!
//! Each kind is watched for itself and for as long as the feed lives: a watch that fails is told of, waits
//! with growing pauses and begins again. Readers are woken by a version number that only grows, so that a
//! burst of events wakes them once.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use futures::StreamExt;
use jiff::Timestamp;
use kube::api::{ListParams, PartialObjectMeta};
use kube::core::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Event, Source, World};
use crate::api::{DeploymentPipeline, Environment, Release, ReleasePin};

/// A read model that follows a server; dropping it ends its watches.
pub struct Feed {
    world: Arc<RwLock<World>>,
    version: watch::Receiver<u64>,
    _watches: JoinSet<()>,
}

/// What the watches share.
#[derive(Clone)]
struct Sink {
    world: Arc<RwLock<World>>,
    version: watch::Sender<u64>,
}

impl Sink {
    fn change(&self, change: impl FnOnce(&mut World)) {
        change(&mut self.world.write().unwrap_or_else(PoisonError::into_inner));
        self.version.send_modify(|version| *version += 1);
    }
}

impl Feed {
    /// Begins to watch a namespace, or all of them.
    pub fn start(client: &Client, namespace: Option<&str>) -> Self {
        let (version, seen) = watch::channel(0);
        let sink = Sink {
            world: Arc::new(RwLock::new(World::new())),
            version,
        };
        let mut watches = JoinSet::new();
        let pins: Api<ReleasePin> = api(client, namespace);
        watches.spawn(follow(pins, Source::Pins, sink.clone(), World::pins));
        let environments: Api<Environment> = api(client, namespace);
        watches.spawn(follow(
            environments,
            Source::Environments,
            sink.clone(),
            World::environments,
        ));
        let pipelines: Api<DeploymentPipeline> = api(client, namespace);
        watches.spawn(follow(
            pipelines,
            Source::Pipelines,
            sink.clone(),
            World::pipelines,
        ));
        // Releases are large; everything that is kept of them stands in their metadata.
        let releases: Api<PartialObjectMeta<Release>> = api(client, namespace);
        watches.spawn(follow(
            releases,
            Source::Releases,
            sink.clone(),
            World::releases,
        ));
        Self {
            world: sink.world,
            version: seen,
            _watches: watches,
        }
    }

    /// Looks at the read model; whoever looks holds up the watches.
    pub fn world(&self) -> RwLockReadGuard<'_, World> {
        self.world.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until something changed since the last time that it was asked.
    pub async fn changed(&mut self) {
        // The senders live as long as the watches, which live as long as this.
        let _ = self.version.changed().await;
    }

    /// Waits until the read model is as wanted.
    pub async fn until(&mut self, wanted: impl Fn(&World) -> bool) {
        loop {
            self.version.borrow_and_update();
            if wanted(&self.world()) {
                return;
            }
            self.changed().await;
        }
    }
}

fn api<K>(client: &Client, namespace: Option<&str>) -> Api<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
{
    match namespace {
        Some(namespace) => Api::namespaced(client.clone(), namespace),
        None => Api::all(client.clone()),
    }
}

/// Follows one kind for ever.
async fn follow<K>(api: Api<K>, source: Source, sink: Sink, tell: fn(&mut World, Event<K>))
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher(api.clone(), watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let told = match event {
            Ok(watcher::Event::Init) => Event::Listing,
            Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                Event::Applied(object)
            }
            Ok(watcher::Event::InitDone) => Event::Listed,
            Ok(watcher::Event::Delete(object)) => Event::Deleted(object),
            Err(error) => {
                let why = error.to_string();
                sink.change(|world| world.cut_off(source, Timestamp::now(), why));
                // A watch that goes on where it was says nothing; whether the server answers does.
                if api.list(&ListParams::default().limit(1)).await.is_ok() {
                    sink.change(|world| world.live(source));
                }
                continue;
            }
        };
        sink.change(|world| {
            world.live(source);
            tell(world, told);
        });
    }
}
