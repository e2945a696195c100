//! A git work tree as a target, and the cluster that reports the live state of its ReleasePins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::api::{Api, ListParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt};
use kube_embedded::Embedded;
use serde_json::Value;

use super::config::Config;
use super::kinds::{Discovery, kind, listed};
use super::{Connection, Environment, Error, Failure, Options, connect, explain, failure};
use crate::api::ReleasePin;
use crate::git::{GitError, State};
use crate::gitops::tree::{self, Layout, LeftOutPin, Synced, Tree, TreeError, TreeOptions};

/// The git work tree that is the target of a connection.
#[derive(Clone)]
pub struct Repository {
    /// The files of the work tree, and the objects in them.
    pub tree: Arc<Tree>,
    served: Embedded,
    /// The client of the cluster that reports the live state of the work tree's ReleasePins. None if the user named
    /// no such cluster.
    pub beside: Option<Client>,
    /// The branch that receives bowline's commits. None for the checked-out branch.
    pub branch: Option<String>,
    /// Whether bowline pushes its commits.
    pub push: bool,
    /// The git remote to which bowline pushes commits. None for the remote of the branch.
    pub remote: Option<String>,
    /// The reason why the live state from the cluster is unknown or stale; None if it is current.
    trouble: Trouble,
}

/// The objects of a repository that bowline cannot show, although they may exist.
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    /// The ReleasePins whose files are not checked out or cannot be read.
    pub pins: Vec<LeftOutPin>,
    /// The names of the releases whose files are not checked out.
    pub releases: BTreeSet<String>,
    /// Whether a file that bowline cannot read may contain ReleasePins whose names bowline does not know.
    pub may_hide_pins: bool,
}

/// The reason why bowline cannot wait for the rollout of a change.
#[derive(Debug, thiserror::Error)]
pub enum NotFollowed {
    /// The user named no cluster, which would report the state of the rollout.
    #[error("--wait needs a cluster: a repository does not know the state of a rollout")]
    NoCluster,
    /// The commit with the change is on a branch that is not checked out. Contains the branch.
    #[error("--wait cannot follow a commit on branch {0}: the cluster gets it only after a merge")]
    OtherBranch(String),
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

impl NotFollowed {
    /// Returns the next steps for the user, one per alternative; empty if there are none.
    pub fn hints(&self) -> &'static [&'static str] {
        match self {
            Self::NoCluster => &["add --context NAME to name the cluster of this repository"],
            Self::OtherBranch(_) => &[
                "leave out --wait",
                "or leave out --branch, after: git switch BRANCH",
            ],
            Self::Git(_) => &[],
        }
    }
}

impl Connection {
    /// Returns an error if bowline cannot wait for the rollout of a change.
    pub fn check_follows(&self) -> Result<(), NotFollowed> {
        let Some(repository) = &self.repository else {
            return Ok(());
        };
        if repository.beside.is_none() {
            return Err(NotFollowed::NoCluster);
        }
        match &repository.branch {
            Some(branch) if repository.state()?.branch.as_ref() != Some(branch) => {
                Err(NotFollowed::OtherBranch(branch.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the objects that the connection cannot show although they may exist. For a cluster or a store, this is
    /// empty.
    pub fn left_out(&self) -> LeftOut {
        let repository = self.repository.as_ref();
        let left_out = repository.map(|repository| LeftOut {
            pins: repository.tree.left_out_pins(),
            releases: repository.tree.left_out_releases(),
            may_hide_pins: repository.tree.may_hide_pins(),
        });
        left_out.unwrap_or_default()
    }
}

pub(super) type Trouble = Arc<Mutex<Option<String>>>;

impl Repository {
    /// Reads the changed files again, so that the client returns their current objects.
    pub async fn sync(&self) -> Result<Synced, TreeError> {
        self.tree.sync(&self.served).await
    }

    /// Reads all files and the whole git log, unless this was already done.
    pub async fn whole(&self) -> Result<(), TreeError> {
        self.tree.whole(&self.served).await
    }

    /// Returns the state of the work tree: its branch, its upstream, its changed files. This blocks, because it runs
    /// git.
    pub fn state(&self) -> Result<State, GitError> {
        self.tree.work().state()
    }

    /// Returns a message about the commit at which the history of a shallow clone ends. None if the clone has the
    /// whole history.
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

    /// Returns why the live state from the cluster is unknown or stale. None if the state is current, or if the user
    /// named no cluster.
    pub fn cluster_trouble(&self) -> Option<String> {
        locked(&self.trouble).clone()
    }

    /// Starts the tasks that watch the files of the work tree, and the cluster that reports the live state.
    fn follow(&self, context: Option<&str>) {
        self.tree.follow(&self.served);
        if let Some(cluster) = &self.beside {
            let (served, tree) = (self.served.clone(), self.tree.clone());
            let (trouble, context) = (self.trouble.clone(), context.unwrap_or_default().to_owned());
            tokio::spawn(mirror(cluster.clone(), context, served, tree, trouble));
        }
    }
}

/// Opens a work tree as a target. Also connects to the cluster that reports the live state, if the options name one.
pub(super) async fn open(
    directory: &Path,
    options: &Options,
    environment: &Environment,
    config: &Config,
) -> Result<(Embedded, Repository), Error> {
    let layout = config.layout(directory);
    let opened = tree::open(TreeOptions {
        directory: directory.to_owned(),
        cache: environment.cache_dir.clone(),
        namespace: options.namespace.clone(),
        beside: options.context.clone(),
        user: options.impersonate.clone(),
        account: environment.user.clone(),
        variables: environment.variables.clone(),
        layout: Layout(layout),
    });
    let (served, tree) = opened.await.map_err(|source| Error::Repository {
        directory: directory.to_owned(),
        source: Box::new(source),
    })?;
    if let Some(timeout) = options.request_timeout {
        tree.work().set_remote_deadline(timeout);
    }
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
                let observed = tree.observe(&served, said).await;
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
            unread.then(|| "bowline is still reading it".to_owned()),
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

/// Returns the key (namespace, name) and the JSON of a ReleasePin in the cluster.
fn said(pin: &ReleasePin) -> Option<((String, String), Value)> {
    let key = (pin.namespace().unwrap_or_default(), pin.name_any());
    Some((key, serde_json::to_value(pin).ok()?))
}

pub(super) fn locked(trouble: &Trouble) -> MutexGuard<'_, Option<String>> {
    trouble.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pause between two discovery requests to a cluster that does not have bowline's kinds.
const ABSENT_PAUSE: Duration = Duration::from_secs(1);

/// Copies the status of each ReleasePin from the cluster to the objects of the work tree, whenever it changes. While
/// the cluster does not have the kind ReleasePin, it is treated as a cluster without ReleasePins.
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
        // If discovery failed, the watch is started anyway, because it reports the error.
        if discovery.serves(&wanted) != Some(false) {
            watch(&cluster, &served, &tree, &trouble).await;
        }
        *locked(&trouble) = Some(format!(
            "context {context} does not have the kinds {}: bowline is not installed there",
            listed(&[wanted])
        ));
        if let Err(error) = tree.observe(&served, BTreeMap::new()).await {
            tracing::warn!(%error, "cannot store the status that the cluster reports");
        }
        tokio::time::sleep(ABSENT_PAUSE).await;
    }
}

/// Copies the status of each ReleasePin from the cluster, whenever it changes. Returns when the cluster no longer has
/// the kind ReleasePin.
async fn watch(cluster: &Client, served: &Embedded, tree: &Arc<Tree>, trouble: &Trouble) {
    let namespace = tree.namespace();
    let pins: Api<ReleasePin> = Api::namespaced(cluster.clone(), &namespace);
    let mut known: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut new: BTreeMap<(String, String), Value> = BTreeMap::new();
    let events = watcher(pins, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            // The watch begins a new list. The objects of the last complete list stay until the new list is complete.
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
                tracing::warn!(%error, "cannot watch the cluster of this repository");
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
        if let Err(error) = tree.observe(served, known.clone()).await {
            tracing::warn!(%error, "cannot store the status that the cluster reports");
        }
    }
}
