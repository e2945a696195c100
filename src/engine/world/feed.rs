//! Watches to the read model.
//!
//! Each kind is watched for itself and for as long as the feed lives: a watch that fails is told of, waits
//! with growing pauses and begins again. A watch begins when discovery says that the server has the kind;
//! until then the kind is absent, which is no failure. Readers are woken by a version number that only grows, so that a
//! burst of events wakes them once.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures::{Stream, StreamExt};
use jiff::Timestamp;
use kube::api::{ListParams, PartialObjectMeta};
use kube::core::NamespaceResourceScope;
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Event, Freshness, Key, Source, World};
use crate::api::{ComponentEnvSnapshot, DeploymentPipeline, Environment, Release, ReleasePin};
use crate::connect::kinds::Discovery;
use crate::connect::{Failure, explain, failure};

/// A read model that follows a server; dropping it ends its watches. Only the watches write it.
pub struct Feed {
    world: Arc<RwLock<World>>,
    version: watch::Receiver<u64>,
    listeners: Arc<Mutex<Listeners>>,
    _watches: JoinSet<()>,
}

/// What changed in the read model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// Of which kind.
    pub source: Source,
    /// Which object; any of them where a whole list came.
    pub key: Option<Key>,
    /// The component that the object is of, or was before it went.
    pub component: Option<Arc<str>>,
}

type Listeners = Vec<mpsc::UnboundedSender<Touched>>;

/// What the watches share.
#[derive(Clone)]
struct Sink {
    world: Arc<RwLock<World>>,
    version: watch::Sender<u64>,
    listeners: Arc<Mutex<Listeners>>,
    served: Arc<Served>,
}

/// The kinds that the server has, as discovery said last.
struct Served {
    client: Client,
    /// The time and the content of the last answer; no content if the answer did not come in time.
    asked: tokio::sync::Mutex<Option<(Instant, Option<Discovery>)>>,
}

impl Served {
    fn new(client: &Client) -> Self {
        Self {
            client: client.clone(),
            asked: tokio::sync::Mutex::new(None),
        }
    }

    /// Tells whether the server has a kind; `None` where it does not tell. The watches share an answer.
    async fn has(&self, source: Source) -> Option<bool> {
        let mut asked = self.asked.lock().await;
        let is_new = |at: &Instant| at.elapsed() < ABSENT_PAUSE / 2;
        if !asked.as_ref().is_some_and(|(at, _)| is_new(at)) {
            let kinds = Source::ALL.map(Source::kind);
            let answer = Discovery::ask(&self.client, &kinds);
            let answer = tokio::time::timeout(DISCOVERY, answer).await.ok();
            *asked = Some((Instant::now(), answer));
        }
        let (_, discovery) = asked.as_ref()?;
        discovery.as_ref()?.serves(&source.kind())
    }
}

impl Sink {
    /// Tells those who listen; what they look up is in the read model by now.
    fn touch(&self, touched: &Touched) {
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.retain(|listener| listener.send(touched.clone()).is_ok());
    }

    fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut self.world.write().unwrap_or_else(PoisonError::into_inner));
        self.version.send_modify(|version| *version += 1);
        changed
    }
}

impl Feed {
    /// Begins to watch a namespace, or all of them.
    pub fn start(client: &Client, namespace: Option<&str>) -> Self {
        let (version, seen) = watch::channel(0);
        let sink = Sink {
            world: Arc::new(RwLock::new(World::new())),
            version,
            listeners: Arc::default(),
            served: Arc::new(Served::new(client)),
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
        // Releases and snapshots are large; everything that is kept of them stands in their metadata.
        let releases: Api<PartialObjectMeta<Release>> = api(client, namespace);
        watches.spawn(follow(
            releases,
            Source::Releases,
            sink.clone(),
            World::releases,
        ));
        let snapshots: Api<PartialObjectMeta<ComponentEnvSnapshot>> = api(client, namespace);
        watches.spawn(follow(
            snapshots,
            Source::Snapshots,
            sink.clone(),
            World::snapshots,
        ));
        Self {
            world: sink.world,
            version: seen,
            listeners: sink.listeners,
            _watches: watches,
        }
    }

    /// Looks at the read model; whoever looks holds up the watches.
    pub fn world(&self) -> RwLockReadGuard<'_, World> {
        read(&self.world)
    }

    /// Listens to what changes from now on, object by object, each after the read model has it.
    pub fn touched(&self) -> impl Stream<Item = Touched> + Send + use<> {
        let (listener, heard) = mpsc::unbounded_channel();
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        listeners.push(listener);
        futures::stream::unfold(heard, |mut heard| async {
            let touched = heard.recv().await?;
            Some((touched, heard))
        })
    }

    /// Returns a number that grows with every change, for those who wait beside other things.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.clone()
    }

    /// Waits until the read model is as wanted, beside others who wait.
    pub async fn when(&self, wanted: impl Fn(&World) -> bool) {
        let mut version = self.version.clone();
        // The senders live as long as this.
        let _ = version.wait_for(|_| wanted(&self.world())).await;
    }

    /// Waits until kinds were listed, or could not be; whoever would wait longer is better told.
    pub async fn listed(&self, sources: &[Source]) {
        let listed = self.when(|world| {
            let mut found = sources.iter().map(|source| world.freshness(*source));
            found.all(|freshness| *freshness != Freshness::Loading)
        });
        let _ = tokio::time::timeout(LISTING, listed).await;
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

fn read(world: &RwLock<World>) -> RwLockReadGuard<'_, World> {
    world.read().unwrap_or_else(PoisonError::into_inner)
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

/// The pauses of a watch that fails grow, but a server that is back is seen within seconds: somebody waits.
#[derive(Default)]
struct Pauses(watcher::DefaultBackoff);

/// The longest of them.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The pause after which the feed asks discovery again for an absent kind.
const ABSENT_PAUSE: Duration = Duration::from_secs(1);

/// Discovery that takes longer is not waited for: the watch begins without it.
const DISCOVERY: Duration = Duration::from_secs(5);

/// A first list that takes longer is not waited for.
const LISTING: Duration = Duration::from_secs(10);

/// By then a watch that failed was tried again.
const TRIED_AGAIN: Duration = Duration::from_millis(2_500);

impl Iterator for Pauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|pause| pause.min(LONGEST_PAUSE))
    }
}

impl Backoff for Pauses {
    fn reset(&mut self) {
        self.0.reset();
    }
}

/// Follows one kind for ever, whenever the server has it.
async fn follow<K>(api: Api<K>, source: Source, sink: Sink, tell: fn(&mut World, Event<K>))
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    loop {
        // Where discovery does not tell, the watch does.
        if sink.served.has(source).await != Some(false) {
            watch_served(api.clone(), source, &sink, tell).await;
        }
        // The objects of a kind go with it. A reader that waits learns of the absence only once.
        if !read(&sink.world).is_absent(source) {
            sink.change(|world| {
                tell(world, Event::Listing);
                tell(world, Event::Listed);
                world.absent(source);
            });
            sink.touch(&Touched {
                source,
                key: None,
                component: None,
            });
        }
        tokio::time::sleep(ABSENT_PAUSE).await;
    }
}

/// Follows one kind until the server answers that it does not have the kind.
async fn watch_served<K>(api: Api<K>, source: Source, sink: &Sink, tell: fn(&mut World, Event<K>))
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher(api.clone(), watcher::Config::default()).backoff(Pauses::default());
    let mut events = std::pin::pin!(events);
    let mut listed = false;
    // When the watch failed last, until it is known to run again.
    let mut failed: Option<Instant> = None;
    loop {
        let next = match failed {
            None => Ok(events.next().await),
            Some(since) => tokio::time::timeout_at(since + TRIED_AGAIN, events.next()).await,
        };
        let event = match next {
            Ok(Some(event)) => event,
            Ok(None) => return,
            // It was tried again and did not fail. A watch that goes on where it was says nothing; whether
            // the server answers does.
            Err(_) => {
                let answers = api.list(&ListParams::default().limit(1)).await.is_ok();
                failed = (!answers || !listed).then(Instant::now);
                if failed.is_none() {
                    sink.change(|world| world.live(source));
                }
                continue;
            }
        };
        failed = event.is_err().then(Instant::now);
        let told = match event {
            Ok(watcher::Event::Init) => {
                listed = false;
                Event::Listing
            }
            Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
                Event::Applied(object)
            }
            Ok(watcher::Event::InitDone) => {
                listed = true;
                Event::Listed
            }
            Ok(watcher::Event::Delete(object)) => Event::Deleted(object),
            Err(error) if is_kind_absent(&error) => return,
            Err(error) => {
                let (why, denied) = explained(&error);
                sink.change(|world| world.cut_off(source, Timestamp::now(), why, denied));
                continue;
            }
        };
        let touched = match &told {
            // While a list is read, its end says it all.
            Event::Applied(object) | Event::Deleted(object) if listed => {
                let namespace = object.namespace().unwrap_or_default();
                Some(Some(Key::new(&namespace, &object.name_any())))
            }
            Event::Listed => Some(None),
            _ => None,
        };
        let component = |world: &World| {
            let key = touched.as_ref()?.as_ref()?;
            world.component_of(source, key).cloned()
        };
        let (was, is) = sink.change(|world| {
            // Only a list that came to its end says what there is.
            if listed {
                world.live(source);
            }
            let was = component(world);
            tell(world, told);
            (was, component(world))
        });
        let Some(key) = touched else {
            continue;
        };
        // What went over to another component is told of twice, once for each.
        let left = match (&was, &is) {
            (Some(was), Some(is)) if was != is => Some(was.clone()),
            _ => None,
        };
        for component in left.map(Some).into_iter().chain([is.or(was)]) {
            let key = key.clone();
            sink.touch(&Touched {
                source,
                key,
                component,
            });
        }
    }
}

/// Tells whether a watch failed because the server does not have the kind.
fn is_kind_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => failure(error) == Failure::NotInstalled,
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

/// Says what is wrong with a watch, and whether we may not have it.
fn explained(error: &watcher::Error) -> (String, bool) {
    let status = |code| matches!(code, 401 | 403);
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => {
            let denied = matches!(error, kube::Error::Api(answer) if status(answer.code));
            (explain(error), denied)
        }
        watcher::Error::WatchError(answer) => (answer.message.clone(), status(answer.code)),
        watcher::Error::NoResourceVersion => (error.to_string(), false),
    }
}
