//! A git work tree as a target, and what a cluster beside it says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ListParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::config::Config;
use super::kinds::{Discovery, kind, listed};
use super::{Connection, Environment, Error, Failure, Options, connect, explain, failure};
use crate::api::ReleasePin;
use crate::embedded::Embedded;
use crate::embedded::tree::{Layout, Synced, Tree, TreeError, TreeOptions};
use crate::git::{GitError, State};

/// A work tree behind a client: who commits needs the files themselves.
#[derive(Clone)]
pub struct Repository {
    /// The files.
    pub tree: Arc<Tree>,
    served: Embedded,
    /// The cluster beside it.
    pub beside: Option<Client>,
    /// The branch that commits go to; the one that is checked out where it is absent.
    pub branch: Option<String>,
    /// Whether commits are pushed.
    pub push: bool,
    /// Where they are pushed to, instead of the branch's own remote.
    pub remote: Option<String>,
    /// Why what the cluster beside it says is not known, or not current.
    trouble: Trouble,
}

pub(super) type Trouble = Arc<Mutex<Option<String>>>;

impl Repository {
    /// Serves what the files say now.
    pub async fn sync(&self) -> Result<Synced, TreeError> {
        self.served.sync(&self.tree).await
    }

    /// Makes sure that everything is served that the files and the log say.
    pub async fn whole(&self) -> Result<(), TreeError> {
        self.served.whole(&self.tree).await
    }

    /// Looks where the work tree stands: branch, ahead and behind, what is changed. It asks git, and blocks.
    pub fn state(&self) -> Result<State, GitError> {
        self.tree.work().state()
    }

    /// Says where the log of a shallow clone ends; None where the log is whole.
    pub fn shallow_history(&self) -> Option<String> {
        let ends = self.tree.work().shallow()?;
        let short: Vec<&str> = ends.lines().filter_map(|id| id.get(..12)).collect();
        (!short.is_empty()).then(|| {
            format!(
                "this clone is shallow and ends at {}: older changes, and who made the first known state, are not known; git fetch --unshallow fetches the rest",
                short.join(", ")
            )
        })
    }

    /// Says why what the cluster beside it says is not known; `None` where it is current, or there is none.
    pub fn cluster_trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// Follows the files, and the cluster beside them, for as long as the client lives.
    fn follow(&self, context: Option<&str>) {
        self.served.follow(&self.tree);
        if let Some(cluster) = &self.beside {
            let (served, tree) = (self.served.clone(), self.tree.clone());
            let (trouble, context) = (self.trouble.clone(), context.unwrap_or_default().to_owned());
            tokio::spawn(mirror(cluster.clone(), context, served, tree, trouble));
        }
    }
}

/// Opens the work tree that the flags name, and asks the cluster that they name beside it.
pub(super) async fn open(
    directory: &Path,
    options: &Options,
    environment: &Environment,
    config: &Config,
) -> Result<(Embedded, Repository), Error> {
    let layout = config.layout(directory);
    let opened = Embedded::over(TreeOptions {
        directory: directory.to_owned(),
        cache: environment.cache_dir.clone(),
        namespace: options.namespace.clone(),
        beside: options.context.clone(),
        user: options
            .impersonate
            .clone()
            .unwrap_or_else(|| environment.user.clone()),
        variables: environment.variables.clone(),
        layout: Layout(layout),
    });
    let (served, tree) = opened.await.map_err(|source| Error::Repository {
        directory: directory.to_owned(),
        source: Box::new(source),
    })?;
    let beside = match &options.context {
        None => None,
        Some(_) => {
            let cluster = Options {
                repo: None,
                readonly: true,
                kinds: match options.asks_cluster_later {
                    true => Vec::new(),
                    false => vec![kind::<ReleasePin>()],
                },
                namespace: Some(
                    options
                        .namespace
                        .clone()
                        .unwrap_or_else(|| tree.namespace()),
                ),
                ..options.clone()
            };
            let connection: Connection = Box::pin(connect(&cluster, environment)).await?;
            let failed = |error: kube::Error| Error::Beside {
                context: options.context.clone().unwrap_or_default(),
                error: Box::new(error),
            };
            if !options.asks_cluster_later {
                let pins: Api<ReleasePin> =
                    Api::namespaced(connection.client.clone(), &connection.namespace);
                let pins = pins.list(&ListParams::default()).await.map_err(failed)?;
                let said = pins.items.iter().filter_map(said).collect();
                let observed = served.observe(&tree, said).await;
                observed.map_err(|source| Error::Repository {
                    directory: directory.to_owned(),
                    source: Box::new(source),
                })?;
            }
            Some(connection.client)
        }
    };
    let unread = beside.is_some() && options.asks_cluster_later;
    let repository = Repository {
        trouble: Arc::new(Mutex::new(
            unread.then(|| "the cluster is being read".to_owned()),
        )),
        tree,
        served: served.clone(),
        beside,
        branch: options.branch.clone(),
        push: options.push,
        remote: options.remote.clone(),
    };
    repository.follow(options.context.as_deref());
    Ok((served, repository))
}

/// What a cluster says of a pin.
fn said(pin: &ReleasePin) -> Option<((String, String), Value)> {
    let key = (pin.namespace().unwrap_or_default(), pin.name_any());
    Some((key, serde_json::to_value(pin).ok()?))
}

pub(super) fn locked(trouble: &Trouble) -> MutexGuard<'_, Option<String>> {
    trouble.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pause after which discovery is asked again for kinds that the cluster does not have.
const ABSENT_PAUSE: Duration = Duration::from_secs(1);

/// Takes over what a cluster says of pins as it changes. A cluster without bowline's kinds has no pins until
/// it gets the kinds.
pub(super) async fn mirror(
    cluster: Client,
    context: String,
    served: Embedded,
    tree: Arc<Tree>,
    trouble: Trouble,
) {
    loop {
        let wanted = kind::<ReleasePin>();
        let discovery = Discovery::ask(&cluster, std::slice::from_ref(&wanted)).await;
        // Where discovery does not tell, the watch does.
        if discovery.serves(&wanted) != Some(false) {
            watch(&cluster, &served, &tree, &trouble).await;
        }
        *locked(&trouble) = Some(format!(
            "context {context} does not have the kinds {}: bowline is not installed there",
            listed(&[wanted])
        ));
        if let Err(error) = served.observe(&tree, BTreeMap::new()).await {
            tracing::warn!(%error, "what the cluster says could not be served");
        }
        tokio::time::sleep(ABSENT_PAUSE).await;
    }
}

/// Watches pins for as long as the cluster has their kind.
async fn watch(cluster: &Client, served: &Embedded, tree: &Arc<Tree>, trouble: &Trouble) {
    let namespace = tree.namespace();
    let pins: Api<ReleasePin> = Api::namespaced(cluster.clone(), &namespace);
    let mut known: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut new: BTreeMap<(String, String), Value> = BTreeMap::new();
    let events = watcher(pins, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            // What was said before holds until the whole list is here.
            Ok(watcher::Event::Init) => {
                new.clear();
                continue;
            }
            Ok(watcher::Event::InitApply(pin)) => {
                new.extend(said(&pin));
                continue;
            }
            Ok(watcher::Event::InitDone) => known = std::mem::take(&mut new),
            Ok(watcher::Event::Apply(pin)) => known.extend(said(&pin)),
            Ok(watcher::Event::Delete(pin)) => {
                known.remove(&(pin.namespace().unwrap_or_default(), pin.name_any()));
            }
            Err(error) => {
                tracing::warn!(%error, "the cluster beside the repository");
                let failed = match &error {
                    watcher::Error::InitialListFailed(error)
                    | watcher::Error::WatchStartFailed(error)
                    | watcher::Error::WatchFailed(error) => Some(error),
                    _ => None,
                };
                if failed.is_some_and(|error| failure(error) == Failure::NotInstalled) {
                    return;
                }
                *locked(trouble) = Some(failed.map_or_else(|| error.to_string(), explain));
                continue;
            }
        }
        *locked(trouble) = None;
        if let Err(error) = served.observe(tree, known.clone()).await {
            tracing::warn!(%error, "what the cluster says could not be served");
        }
    }
}
