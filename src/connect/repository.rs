//! A git work tree as a target, and what a cluster beside it says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use futures::StreamExt;
use kube::api::{Api, ListParams};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Client, ResourceExt};
use serde_json::Value;

use super::config::Config;
use super::{Connection, Environment, Error, Options, connect};
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
}

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

    /// Follows the files, and the cluster beside them, for as long as the client lives.
    fn follow(&self) {
        self.served.follow(&self.tree);
        if let Some(cluster) = &self.beside {
            let (served, tree) = (self.served.clone(), self.tree.clone());
            tokio::spawn(mirror(cluster.clone(), served, tree));
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
            let pins: Api<ReleasePin> =
                Api::namespaced(connection.client.clone(), &connection.namespace);
            let pins = pins.list(&ListParams::default()).await.map_err(failed)?;
            let said = pins.items.iter().filter_map(said).collect();
            let observed = served.observe(&tree, said).await;
            observed.map_err(|source| Error::Repository {
                directory: directory.to_owned(),
                source: Box::new(source),
            })?;
            Some(connection.client)
        }
    };
    let repository = Repository {
        tree,
        served: served.clone(),
        beside,
        branch: options.branch.clone(),
        push: options.push,
        remote: options.remote.clone(),
    };
    repository.follow();
    Ok((served, repository))
}

/// What a cluster says of a pin.
fn said(pin: &ReleasePin) -> Option<((String, String), Value)> {
    let key = (pin.namespace().unwrap_or_default(), pin.name_any());
    Some((key, serde_json::to_value(pin).ok()?))
}

/// Takes over what a cluster says of pins as it changes.
async fn mirror(cluster: Client, served: Embedded, tree: Arc<Tree>) {
    let namespace = tree.namespace();
    let pins: Api<ReleasePin> = Api::namespaced(cluster, &namespace);
    let mut known: BTreeMap<(String, String), Value> = BTreeMap::new();
    let mut listed: BTreeMap<(String, String), Value> = BTreeMap::new();
    let events = watcher(pins, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            // What was said before holds until the whole list is here.
            Ok(watcher::Event::Init) => {
                listed.clear();
                continue;
            }
            Ok(watcher::Event::InitApply(pin)) => {
                listed.extend(said(&pin));
                continue;
            }
            Ok(watcher::Event::InitDone) => known = std::mem::take(&mut listed),
            Ok(watcher::Event::Apply(pin)) => known.extend(said(&pin)),
            Ok(watcher::Event::Delete(pin)) => {
                known.remove(&(pin.namespace().unwrap_or_default(), pin.name_any()));
            }
            Err(error) => {
                tracing::warn!(%error, "the cluster beside the repository");
                continue;
            }
        }
        if let Err(error) = served.observe(&tree, known.clone()).await {
            tracing::warn!(%error, "what the cluster says could not be served");
        }
    }
}
