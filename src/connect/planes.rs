//! Creates the client for a DataPlane. The DataPlane tells whether it is the control plane itself or a context in a
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

/// A function that wraps the client for a data plane, for example to stop its writes in a process that is no longer
/// the leader.
type ClientWrapper = Arc<dyn Fn(&Client) -> Client + Send + Sync>;

/// The state of the kubeconfig files that the client for a data plane was created from: mtime and size of each file,
/// or None for a file that does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Version(Vec<Option<(Option<SystemTime>, u64)>>);

#[derive(Clone)]
enum Contexts {
    Kubeconfig(Arc<(Options, Environment)>),
    Given(BTreeMap<String, Client>),
}

impl DataPlanes {
    /// Returns connections to the contexts in the kubeconfig of the control plane.
    pub fn of(connection: &Connection, options: &Options, environment: &Environment) -> Self {
        // The other flags (namespace, user, store) are for the control plane and not for its data planes.
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

    /// Returns connections to the contexts in the kubeconfig `file`. The file may appear and change later, because it
    /// is read again for each client.
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

    /// Returns connections with existing clients, by the name of their context.
    pub fn given(own: Client, is_embedded: bool, contexts: BTreeMap<String, Client>) -> Self {
        Self {
            own,
            is_embedded,
            contexts: Contexts::Given(contexts),
            around: None,
        }
    }

    /// Sets a function that wraps each client for a data plane.
    pub fn behind(mut self, around: impl Fn(&Client) -> Client + Send + Sync + 'static) -> Self {
        self.around = Some(Arc::new(around));
        self
    }

    /// Returns whether the control plane is an embedded store, so that its workloads do not run but are simulated.
    pub fn is_embedded(&self) -> bool {
        self.is_embedded
    }

    /// Returns the current state of the kubeconfig files for a data plane. If it has changed, the caller must create
    /// the client again. Updates of a mounted Secret are noticed too, because they replace the files.
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
