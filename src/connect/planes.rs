//! Creates the client for a DataPlane. The client connects to the control plane itself, or to a context in a
//! kubeconfig.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use kube::Client;

use super::address::kubeconfigs;
use super::{Connection, Environment, Error, Options, Target, connect};
use crate::api::openchoreo::environment::Reach;

/// The connections from a control plane to its data planes.
#[derive(Clone)]
pub struct DataPlanes {
    own: Client,
    is_embedded: bool,
    contexts: Contexts,
    around: Option<ClientWrapper>,
}

/// A function that wraps each client, for example with a fence.
type ClientWrapper = Arc<dyn Fn(&Client) -> Client + Send + Sync>;

/// The mtime and the size of each kubeconfig file that the connection to a data plane uses. None for a file
/// that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version(Vec<Option<(Option<SystemTime>, u64)>>);

#[derive(Clone)]
enum Contexts {
    Kubeconfig(Arc<(Options, Environment)>),
    Given(BTreeMap<String, Client>),
}

impl DataPlanes {
    /// Returns connections that use the contexts in the kubeconfig of the control plane.
    pub fn of(connection: &Connection, options: &Options, environment: &Environment) -> Self {
        // Other flags of the control plane (namespace, user, store) do not apply to data planes.
        let others = Options {
            kubeconfig: options.kubeconfig.clone(),
            request_timeout: options.request_timeout,
            readonly: options.readonly,
            ..Options::default()
        };
        Self {
            own: connection.client.clone(),
            is_embedded: matches!(connection.target, Target::Embedded { .. }),
            contexts: Contexts::Kubeconfig(Arc::new((others, environment.clone()))),
            around: None,
        }
    }

    /// Returns connections that use the contexts in the kubeconfig `file`. The file is read again for each
    /// client, so it may appear and change later.
    pub fn in_file(
        connection: &Connection,
        file: &Path,
        options: &Options,
        environment: &Environment,
    ) -> Self {
        let options = Options {
            kubeconfig: Some(file.to_owned()),
            ..options.clone()
        };
        Self::of(connection, &options, environment)
    }

    /// Returns connections that use given clients; the key is the name of the context.
    pub fn given(own: Client, is_embedded: bool, contexts: BTreeMap<String, Client>) -> Self {
        Self {
            own,
            is_embedded,
            contexts: Contexts::Given(contexts),
            around: None,
        }
    }

    /// Sets a function that wraps each client, for example with a fence.
    pub fn behind(mut self, around: impl Fn(&Client) -> Client + Send + Sync + 'static) -> Self {
        self.around = Some(Arc::new(around));
        self
    }

    /// Returns whether the control plane is an embedded store. Then no workload runs, and workloads are
    /// simulated.
    pub fn is_embedded(&self) -> bool {
        self.is_embedded
    }

    /// Returns the state of the kubeconfig files of a connection. If it has changed, the caller must create
    /// the client again. An update of a mounted Secret also changes the state, because it replaces the files.
    pub fn version(&self, reach: Reach<'_>) -> Version {
        let (Reach::Context(_), Contexts::Kubeconfig(place)) = (reach, &self.contexts) else {
            return Version::default();
        };
        let (options, environment) = &**place;
        let files = kubeconfigs(options, environment).into_iter();
        let seen = files.map(|file| {
            let found = std::fs::metadata(&file).ok();
            found.map(|found| (found.modified().ok(), found.len()))
        });
        Version(seen.collect())
    }

    /// Creates the client for a data plane.
    pub async fn client(&self, reach: Reach<'_>) -> Result<Client, Error> {
        let client = match reach {
            Reach::InCluster => self.own.clone(),
            Reach::Embedded if self.is_embedded => self.own.clone(),
            Reach::Embedded => return Err(Error::NoEmbeddedPlane),
            Reach::Context(name) => self.contexts.client(name).await?,
        };
        Ok(match &self.around {
            Some(around) => around(&client),
            None => client,
        })
    }
}

impl Contexts {
    async fn client(&self, name: &str) -> Result<Client, Error> {
        match self {
            Self::Kubeconfig(place) => {
                let (options, environment) = &**place;
                let options = Options {
                    context: Some(name.to_owned()),
                    ..options.clone()
                };
                match (&options.kubeconfig, connect(&options, environment).await) {
                    (_, Ok(connection)) => Ok(connection.client),
                    (Some(file), Err(_)) if !file.exists() => Err(Error::NoPlaneKubeconfig {
                        name: name.to_owned(),
                        file: file.clone(),
                    }),
                    (_, Err(error)) => Err(error),
                }
            }
            Self::Given(clients) => {
                let client = clients.get(name).cloned();
                client.ok_or_else(|| Error::NoSuchContext {
                    name: name.to_owned(),
                    known: clients.keys().cloned().collect(),
                })
            }
        }
    }
}
