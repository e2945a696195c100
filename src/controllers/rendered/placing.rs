//! Finds the data plane of a RenderedRelease through its Environment and DataPlane objects, and creates the
//! client of the data plane.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::OnceCell;
use tokio::sync::mpsc::UnboundedSender;

use super::plane::{Plane, Settings};
use super::wakes::ReconcileTriggers;
use super::{Error, State};
use crate::api::RenderedRelease;
use crate::api::condition;
use crate::api::openchoreo::environment::Reach;
use crate::connect::{DataPlanes, Version};

/// After a start of the controller, the longest wait for the list of environments.
const LISTED_WITHIN: Duration = Duration::from_secs(15);

/// Why the controller cannot find a data plane for a RenderedRelease.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Unplaced {
    /// The reason field of the condition Ready.
    pub reason: &'static str,
    /// The message field of the condition Ready.
    pub message: String,
}

/// The data plane and namespace of a RenderedRelease.
pub struct Placed {
    pub plane: Arc<Plane>,
    /// The namespace for resources whose manifest has no namespace.
    pub namespace: String,
}

/// All data planes that RenderedReleases use, with their clients.
pub struct Planes {
    ways: DataPlanes,
    settings: Settings,
    sender: UnboundedSender<ObjectRef<RenderedRelease>>,
    met: tokio::sync::Mutex<HashMap<String, Arc<ConnectedPlane>>>,
}

/// One data plane in use, with its client.
struct ConnectedPlane {
    /// The version of the connection settings from which the client was created.
    version: Version,
    since: Instant,
    /// Starts passes over the RenderedReleases of this data plane. A new client keeps the same triggers.
    wakes: Arc<ReconcileTriggers>,
    plane: OnceCell<Arc<Plane>>,
}

impl Planes {
    /// Creates an empty list. [`Planes::get`] adds a data plane at its first use.
    pub fn new(
        ways: DataPlanes,
        settings: Settings,
        sender: UnboundedSender<ObjectRef<RenderedRelease>>,
    ) -> Self {
        Self {
            ways,
            settings,
            sender,
            met: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the data plane of a connection. DataPlane objects with the same connection share one client. A
    /// new client is created when the kubeconfig changes, and at intervals while the data plane refuses the
    /// credentials.
    pub async fn get(&self, reach: Reach<'_>) -> Result<Arc<Plane>, Unplaced> {
        let name = reach.to_string();
        let met = self.met(&name, self.ways.version(reach)).await;
        // A slow credential plugin can delay the creation of a client. Only the RenderedReleases of this data
        // plane wait.
        let plane = met.plane.get_or_try_init(|| async {
            let client = self.ways.client(reach).await.map_err(|error| {
                let hints = error.hints().into_iter();
                let hints: String = hints.map(|hint| format!("; {hint}")).collect();
                Unplaced {
                    reason: condition::DATA_PLANE_UNUSABLE,
                    message: format!("data plane {name}: {error}{hints}"),
                }
            })?;
            let plane = Plane::new(name.clone(), client, self.settings, met.wakes.clone());
            Ok::<_, Unplaced>(Arc::new(plane))
        });
        plane.await.cloned()
    }

    async fn met(&self, name: &str, version: Version) -> Arc<ConnectedPlane> {
        let mut all = self.met.lock().await;
        let known = all.get(name);
        if let Some(known) = known.filter(|known| known.is_usable(&version, &self.settings)) {
            return known.clone();
        }
        let wakes = match known {
            Some(known) => known.wakes.clone(),
            None => Arc::new(ReconcileTriggers::new(self.sender.clone())),
        };
        let met = Arc::new(ConnectedPlane {
            version,
            since: Instant::now(),
            wakes,
            plane: OnceCell::new(),
        });
        all.insert(name.to_owned(), met.clone());
        met
    }

    /// Removes a deleted RenderedRelease from all data planes, so that their changes start no more passes
    /// over this RenderedRelease.
    pub async fn forget(&self, uid: &str) {
        for met in self.met.lock().await.values() {
            met.wakes.forget(uid);
        }
    }
}

impl ConnectedPlane {
    /// Returns whether the client can be used again. A client is not used after its connection settings
    /// changed, or after the data plane refused its credentials for too long.
    fn is_usable(&self, version: &Version, settings: &Settings) -> bool {
        let is_denied = self.plane.get().is_some_and(|plane| plane.is_denied());
        self.version == *version && !(is_denied && self.since.elapsed() > settings.longest_pause)
    }
}

/// Returns the data plane and the namespace of a RenderedRelease.
pub async fn place(state: &State, release: &RenderedRelease) -> Result<Placed, Error> {
    let namespace = release.metadata.namespace.as_deref().unwrap_or_default();
    let name = &release.spec.environment_name;
    let Some(environment) = stored(&state.environments, namespace, name).await? else {
        return Err(Error::Unplaced(Unplaced {
            reason: condition::ENVIRONMENT_MISSING,
            message: format!("there is no Environment {name} in namespace {namespace}; create it"),
        }));
    };
    let name = &environment.spec.data_plane_ref.name;
    let Some(plane) = stored(&state.data_planes, namespace, name).await? else {
        return Err(Error::Unplaced(Unplaced {
            reason: condition::DATA_PLANE_MISSING,
            message: format!("there is no DataPlane {name} in namespace {namespace}; create it"),
        }));
    };
    let Some(reach) = plane.spec.reach() else {
        return Err(Error::Unplaced(Unplaced {
            reason: condition::DATA_PLANE_UNUSABLE,
            message: format!(
                "DataPlane {name} names no cluster; set exactly one of inCluster, context and embedded"
            ),
        }));
    };
    Ok(Placed {
        plane: state.planes.get(reach).await?,
        namespace: environment.spec.namespace.clone(),
    })
}

async fn stored<K>(store: &Store<K>, namespace: &str, name: &str) -> Result<Option<Arc<K>>, Error>
where
    K: kube::Resource<DynamicType = ()> + Clone + 'static,
{
    let ready = tokio::time::timeout(LISTED_WITHIN, store.wait_until_ready()).await;
    match ready {
        Ok(Ok(())) => Ok(store.get(&ObjectRef::new(name).within(namespace))),
        _ => Err(Error::NotListed(K::plural(&()).into_owned())),
    }
}

/// Returns the data planes that may have objects of a RenderedRelease. The error text of an entry says why
/// there is no connection to that data plane.
pub async fn claimed_planes(
    state: &State,
    release: &RenderedRelease,
) -> Result<Vec<Result<Arc<Plane>, String>>, Error> {
    let names = release.data_planes()?;
    let has_resources = release
        .status
        .as_ref()
        .is_some_and(|status| !status.resources.is_empty());
    if names.is_empty() && has_resources {
        // A user removed the annotation with the list of data planes, but the Environment may still name the
        // data plane.
        return match place(state, release).await {
            Ok(placed) => Ok(vec![Ok(placed.plane)]),
            Err(Error::Unplaced(unplaced)) => Ok(vec![Err(unplaced.message)]),
            Err(error) => Err(error),
        };
    }
    let mut planes = Vec::with_capacity(names.len());
    for name in &names {
        planes.push(by_name(state, name).await);
    }
    Ok(planes)
}

/// Returns the data plane whose connection has this name. The error is a text for the user.
pub async fn by_name(state: &State, name: &str) -> Result<Arc<Plane>, String> {
    match Reach::parse(name) {
        Some(reach) => state.planes.get(reach).await.map_err(|error| error.message),
        None => Err(format!(
            "data plane {name} has an unknown kind of connection"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connect::{Connection, Environment, Options, Target};

    fn kubeconfig(token: &str) -> String {
        format!(
            "{{apiVersion: v1, kind: Config, clusters: [{{name: c, cluster: {{server: 'http://127.0.0.1:1'}}}}], \
             users: [{{name: u, user: {{token: {token}}}}}], contexts: [{{name: far, context: {{cluster: c, user: u}}}}]}}"
        )
    }

    #[tokio::test]
    async fn a_changed_kubeconfig_and_refused_credentials_make_another_client() {
        let home = tempfile::tempdir().unwrap();
        let store = home.path().join("store.db");
        let embedded = crate::fixture::store::open(&store, "ana").await;
        let target = Target::Embedded { file: store };
        let connection = Connection::of(embedded.client("default"), target, "default");
        let file = home.path().join("config");
        std::fs::write(&file, kubeconfig("old")).unwrap();
        let environment = Environment::default();
        let ways = DataPlanes::in_file(&connection, &file, &Options::default(), &environment);
        let (sender, _woken) = tokio::sync::mpsc::unbounded_channel();
        let settings = Settings {
            longest_pause: Duration::ZERO,
            ..Settings::default()
        };
        let planes = Planes::new(ways, settings, sender);
        let get = async || planes.get(Reach::Context("far")).await.unwrap();
        let first = get().await;
        assert!(Arc::ptr_eq(&first, &get().await), "nothing changed");
        std::fs::write(&file, kubeconfig("newer")).unwrap();
        let second = get().await;
        assert!(!Arc::ptr_eq(&first, &second), "the file changed");
        assert!(Arc::ptr_eq(&first.wakes, &second.wakes));
        let denied = kube::core::Status::failure("Unauthorized", "Unauthorized").with_code(401);
        let denied = async { Err::<(), _>(kube::Error::Api(denied.boxed())) };
        second.ask(denied).await.unwrap_err();
        let third = get().await;
        assert!(!Arc::ptr_eq(&second, &third), "the token is refused");
        assert!(Arc::ptr_eq(&third, &get().await));
    }
}
