//! Fills the read model from watches.
//!
//! The feed starts one watch per kind as soon as discovery reports that the server has the kind. Until then the kind
//! is absent, which is no failure. If a watch fails, the feed reports the failure and retries the watch with backoff.
//! Each change increments a version number, so a reader that waits for a new version wakes up only once for a burst
//! of events.

use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::core::{ApiResource, NamespaceResourceScope};
use kube::runtime::WatchStreamExt;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Event, Freshness, Key, Source, Watched, World};
use crate::api::{DeploymentPipeline, Environment};
use crate::connect::kinds::{self, Discovery};
use crate::connect::{Failure, explain, failure};

/// Watches a server and keeps a read model up to date. Dropping the feed stops the watches.
pub struct Feed {
    world: Arc<RwLock<World>>,
    version: watch::Receiver<u64>,
    listeners: Arc<Mutex<Listeners>>,
    _watches: JoinSet<()>,
}

/// The notice that an object of the read model changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    pub source: Source,
    /// The key of the changed object; None if any object of the kind may have changed.
    pub key: Option<Key>,
    /// The name of the object's row in the matrix; None if it has no row. If the object moved to another row, a
    /// second notice has the name of the old row.
    pub component: Option<Arc<str>>,
}

/// A kind to watch, with the function that writes its events to the read model.
pub struct Watch {
    source: Source,
    kind: ApiResource,
    follow: Follow,
    row_of: RowOf,
    own: bool,
}

type Follow = Box<dyn FnOnce(&Client, Option<&str>, Followed) -> BoxFuture<'static, ()>>;

/// A function that returns the matrix row of an object; None if the object belongs to no row.
type RowOf = for<'w> fn(&'w World, Source, &Key) -> Option<&'w Arc<str>>;

impl Watch {
    /// Creates the watch of a kind. `apply` writes each event to the read model.
    pub fn new<K>(source: Source, apply: fn(&mut World, Event<K>)) -> Self
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        Self {
            source,
            kind: kinds::kind::<K>(),
            follow: Box::new(move |client, namespace, followed| {
                let api: Api<K> = match namespace {
                    Some(namespace) => Api::namespaced(client.clone(), namespace),
                    None => Api::all(client.clone()),
                };
                Box::pin(follow(api, followed, apply))
            }),
            row_of: |_, _, _| None,
            own: true,
        }
    }

    /// Marks the watched kind as defined by another program, so that it is no problem if the server does not have the
    /// kind.
    pub fn of_others(self) -> Self {
        Self { own: false, ..self }
    }

    /// Sets the function that finds the matrix row of an object. The notices of [`Feed::touched`] contain that row.
    pub fn of_row(mut self, row_of: RowOf) -> Self {
        self.row_of = row_of;
        self
    }

    /// Returns the watched kind in the form that the read model stores.
    pub fn kind(&self) -> Watched {
        Watched {
            source: self.source,
            kind: self.kind.clone(),
            own: self.own,
        }
    }

    /// Returns the watches for Environments and DeploymentPipelines, which all kinds of subjects need.
    pub fn shared() -> [Self; 2] {
        [
            Self::new::<Environment>(Source::ENVIRONMENTS, World::environments),
            Self::new::<DeploymentPipeline>(Source::PIPELINES, World::pipelines),
        ]
    }
}

/// A kind that a running watch follows.
struct Followed {
    source: Source,
    kind: ApiResource,
    row_of: RowOf,
    sink: Sink,
}

type Listeners = Vec<mpsc::UnboundedSender<Touched>>;

/// The values that all running watches of a feed share.
#[derive(Clone)]
struct Sink {
    world: Arc<RwLock<World>>,
    version: watch::Sender<u64>,
    listeners: Arc<Mutex<Listeners>>,
    served: Arc<Served>,
}

/// The last answer of discovery: which of the watched kinds the server has. All watches share it.
struct Served {
    client: Client,
    /// The watched kinds, which discovery is asked for.
    kinds: Vec<ApiResource>,
    /// The time of the last question to discovery, and the answer. The inner None means that discovery did not answer
    /// in time.
    asked: tokio::sync::Mutex<Option<(Instant, Option<Discovery>)>>,
}

impl Served {
    fn new(client: &Client, kinds: Vec<ApiResource>) -> Self {
        Self {
            client: client.clone(),
            kinds,
            asked: tokio::sync::Mutex::new(None),
        }
    }

    /// Returns whether the server has a kind; None if discovery does not answer. If the last answer is recent, uses
    /// it again.
    async fn has(&self, kind: &ApiResource) -> Option<bool> {
        let mut asked = self.asked.lock().await;
        let is_new = |at: &Instant| at.elapsed() < ABSENT_PAUSE / 2;
        if !asked.as_ref().is_some_and(|(at, _)| is_new(at)) {
            let answer = Discovery::ask(&self.client, &self.kinds);
            let answer = tokio::time::timeout(DISCOVERY, answer).await.ok();
            *asked = Some((Instant::now(), answer));
        }
        let (_, discovery) = asked.as_ref()?;
        discovery.as_ref()?.serves(kind)
    }
}

impl Sink {
    /// Changes the read model, sends the notices to the listeners, then increments the version. In this order, a
    /// reader that the new version wakes finds both the change and the notice.
    fn change(&self, change: impl FnOnce(&mut World) -> Vec<Touched>) {
        let changed = change(&mut self.world.write().unwrap_or_else(PoisonError::into_inner));
        let mut listeners = self
            .listeners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for touched in changed {
            listeners.retain(|listener| listener.send(touched.clone()).is_ok());
        }
        drop(listeners);
        self.version.send_modify(|version| *version += 1);
    }
}

impl Feed {
    /// Starts the watches in one namespace; in all namespaces if `namespace` is None.
    pub fn start(client: &Client, namespace: Option<&str>, watches: Vec<Watch>) -> Self {
        let (version, seen) = watch::channel(0);
        let watched: Vec<_> = watches.iter().map(Watch::kind).collect();
        let kinds = watched.iter().map(|watched| watched.kind.clone());
        let kinds = kinds.collect();
        let sink = Sink {
            world: Arc::new(RwLock::new(World::watching(watched))),
            version,
            listeners: Arc::default(),
            served: Arc::new(Served::new(client, kinds)),
        };
        let mut running = JoinSet::new();
        for watch in watches {
            let followed = Followed {
                source: watch.source,
                kind: watch.kind,
                row_of: watch.row_of,
                sink: sink.clone(),
            };
            running.spawn((watch.follow)(client, namespace, followed));
        }
        Self {
            world: sink.world,
            version: seen,
            listeners: sink.listeners,
            _watches: running,
        }
    }

    /// Locks the read model for reading. As long as the caller holds the lock, watch events wait.
    pub fn world(&self) -> RwLockReadGuard<'_, World> {
        read(&self.world)
    }

    /// Returns a stream with one notice per changed object, from now on. When a notice arrives, the read model
    /// already contains the change.
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

    /// Returns a channel with the version number of the read model. Callers use it to wait for a change and for other
    /// events at the same time.
    pub fn versions(&self) -> watch::Receiver<u64> {
        self.version.clone()
    }

    /// Waits until `wanted` is true for the read model. Several callers can wait at the same time.
    pub async fn when(&self, wanted: impl Fn(&World) -> bool) {
        let mut version = self.version.clone();
        // `wait_for` cannot fail, because the senders of the version live as long as this feed.
        let _ = version.wait_for(|_| wanted(&self.world())).await;
    }

    /// Waits until each of the kinds is listed, absent or failed, but at most ten seconds.
    pub async fn listed(&self, sources: &[Source]) {
        let listed = self.when(|world| {
            let mut found = sources.iter().map(|source| world.freshness(*source));
            found.all(|freshness| *freshness != Freshness::Loading)
        });
        let _ = tokio::time::timeout(LISTING, listed).await;
    }

    /// Waits for the first change of the read model since the previous call.
    pub async fn changed(&mut self) {
        // `changed` cannot fail: the feed owns the watches, and the watches own the senders of the version.
        let _ = self.version.changed().await;
    }

    /// Waits until `wanted` is true for the read model.
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

/// The pauses between the retries of a failed watch. They are short, because a user may wait for the server.
#[derive(Default)]
struct Pauses(watcher::DefaultBackoff);

/// The longest pause between two retries of a failed watch.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The pause before the feed asks discovery again for an absent kind.
const ABSENT_PAUSE: Duration = Duration::from_secs(1);

/// How long a watch waits for discovery before it starts without an answer.
const DISCOVERY: Duration = Duration::from_secs(5);

/// The longest time that [`Feed::listed`] waits for the kinds.
const LISTING: Duration = Duration::from_secs(10);

/// If a failed watch reports no new error for this time, the watch counts as working again.
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

/// Watches one kind until the feed is dropped. While the server does not have the kind, asks again after a pause.
async fn follow<K>(api: Api<K>, followed: Followed, apply: fn(&mut World, Event<K>))
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let Followed { source, sink, .. } = &followed;
    let source = *source;
    loop {
        // If discovery does not answer, start the watch: its first request shows whether the server has the kind.
        if sink.served.has(&followed.kind).await != Some(false) {
            watch_served(api.clone(), &followed, apply).await;
        }
        // The server has removed the kind and all its objects, so readers get one notice for the whole kind.
        if !read(&sink.world).is_absent(source) {
            sink.change(|world| {
                apply(world, Event::Listing);
                apply(world, Event::Listed);
                world.absent(source);
                vec![Touched {
                    source,
                    key: None,
                    component: None,
                }]
            });
        }
        tokio::time::sleep(ABSENT_PAUSE).await;
    }
}

/// Watches one kind until the server answers that it does not have the kind.
async fn watch_served<K>(api: Api<K>, followed: &Followed, apply: fn(&mut World, Event<K>))
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let Followed {
        source,
        row_of,
        sink,
        ..
    } = followed;
    let source = *source;
    let events = watcher(api.clone(), watcher::Config::default()).backoff(Pauses::default());
    let mut events = std::pin::pin!(events);
    let mut listed = false;
    // The time at which the watch failed; None while the watch works.
    let mut failed: Option<Instant> = None;
    loop {
        let next = match failed {
            None => Ok(events.next().await),
            Some(since) => tokio::time::timeout_at(since + TRIED_AGAIN, events.next()).await,
        };
        let event = match next {
            Ok(Some(event)) => event,
            Ok(None) => return,
            // The retry reported no error. But a resumed watch may send no event for a long time, so a list of one
            // object tests whether the server answers.
            Err(_) => {
                let answers = api.list(&ListParams::default().limit(1)).await.is_ok();
                failed = (!answers || !listed).then(Instant::now);
                if failed.is_none() {
                    sink.change(|world| {
                        world.live(source);
                        Vec::new()
                    });
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
                sink.change(|world| {
                    world.cut_off(source, Timestamp::now(), why, denied);
                    Vec::new()
                });
                if is_impossible(&error) {
                    // A retry would send the same invalid request. So the watch sends no more requests and waits
                    // forever.
                    return std::future::pending().await;
                }
                continue;
            }
        };
        let touched = match &told {
            // During a list, readers get no notice for each object, because they get one at the end of the list.
            Event::Applied(object) | Event::Deleted(object) if listed => {
                let namespace = object.namespace().unwrap_or_default();
                Some(Some(Key::new(&namespace, &object.name_any())))
            }
            Event::Listed => Some(None),
            _ => None,
        };
        let object = touched.clone().flatten();
        let component = |world: &World| row_of(world, source, object.as_ref()?).cloned();
        sink.change(|world| {
            // Rows are up to date only after a complete list, so the watch must have been listed.
            if listed {
                world.live(source);
            }
            let was = component(world);
            apply(world, told);
            let is = component(world);
            let Some(key) = touched else {
                return Vec::new();
            };
            // If the object moved to another row, listeners get two notices: one for the old row and one for the new
            // row.
            let left = match (&was, &is) {
                (Some(was), Some(is)) if was != is => Some(was.clone()),
                _ => None,
            };
            let components = left.map(Some).into_iter().chain([is.or(was)]);
            components
                .map(|component| Touched {
                    source,
                    key: key.clone(),
                    component,
                })
                .collect()
        });
    }
}

/// Returns whether a watch failed because the server does not have the kind.
fn is_kind_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => failure(error) == Failure::NotInstalled,
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

/// Returns whether a watch failed because its request cannot be built, for example with an invalid namespace.
fn is_impossible(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => matches!(error, kube::Error::BuildRequest(_)),
        watcher::Error::WatchError(_) | watcher::Error::NoResourceVersion => false,
    }
}

/// Returns the error of a watch as text, and whether the server denied the user this watch.
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
