//! From a release to its data plane: the Environment, its DataPlane, the client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::reflector::{ObjectRef, Store};
use tokio::sync::OnceCell;
use tokio::sync::mpsc::UnboundedSender;

use super::plane::{Plane, Settings};
use super::wakes::Wakes;
use super::{Error, State};
use crate::api::RenderedRelease;
use crate::api::condition;
use crate::api::environment::Reach;
use crate::connect::DataPlanes;

/// How long a reconcile waits for the environments to be listed when the controller starts.
const LISTED_WITHIN: Duration = Duration::from_secs(15);

/// Why a release has no data plane.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Unplaced {
    /// The reason, for programs.
    pub reason: &'static str,
    /// The reason, for people.
    pub message: String,
}

/// Where a release goes.
pub struct Placed {
    /// The data plane.
    pub plane: Arc<Plane>,
    /// The namespace for resources that name none.
    pub namespace: String,
}

/// The data planes that were met so far.
pub struct Planes {
    ways: DataPlanes,
    settings: Settings,
    sender: UnboundedSender<ObjectRef<RenderedRelease>>,
    met: tokio::sync::Mutex<HashMap<String, Arc<OnceCell<Arc<Plane>>>>>,
}

impl Planes {
    /// Knows the ways, and has met none.
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

    /// Returns a data plane; DataPlanes that are reached alike are one.
    pub async fn get(&self, reach: Reach<'_>) -> Result<Arc<Plane>, Unplaced> {
        let name = reach.to_string();
        let cell = self
            .met
            .lock()
            .await
            .entry(name.clone())
            .or_default()
            .clone();
        // Making a client may take long where a plugin asks somebody; only those who wait for this one do.
        let plane = cell.get_or_try_init(|| async {
            let client = self.ways.client(reach).await.map_err(|error| {
                let hint = error.hint().map(|hint| format!("; {hint}"));
                Unplaced {
                    reason: condition::DATA_PLANE_UNUSABLE,
                    message: format!("data plane {name}: {error}{}", hint.unwrap_or_default()),
                }
            })?;
            let wakes = Arc::new(Wakes::new(self.sender.clone()));
            let plane = Plane::new(name.clone(), client, self.settings, wakes);
            Ok::<_, Unplaced>(Arc::new(plane))
        });
        plane.await.cloned()
    }

    /// Forgets a release that is no more.
    pub async fn forget(&self, uid: &str) {
        for plane in self.met.lock().await.values() {
            if let Some(plane) = plane.get() {
                plane.wakes.forget(uid);
            }
        }
    }
}

/// Finds the data plane of a release.
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

/// Returns the data planes that may hold resources of a release, or why there is no way to one.
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
        // Somebody took the list away; the Environment may still know.
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

/// Returns a data plane by how it is reached, or why there is no way to it.
pub async fn by_name(state: &State, name: &str) -> Result<Arc<Plane>, String> {
    match Reach::parse(name) {
        Some(reach) => state.planes.get(reach).await.map_err(|error| error.message),
        None => Err(format!(
            "data plane {name} has an unknown kind of connection"
        )),
    }
}
