//! The kinds of a data plane: their API versions, the kinds that are always searched for stale objects, and
//! the kinds that have no status.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use kube::core::{ApiResource, GroupVersionKind, gvk::GroupVersion};
use kube::discovery::{self, Scope};

use crate::connect::{self, Failure, explain};

/// The kinds (group, version, kind) that the controller always searches for stale objects, even if the
/// inventory of the RenderedRelease does not name them. The role bowline-data-plane grants access to each of
/// them.
pub const WELL_KNOWN: &[(&str, &str, &str)] = &[
    ("", "v1", "ConfigMap"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Pod"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("batch", "v1", "CronJob"),
    ("batch", "v1", "Job"),
    ("gateway.networking.k8s.io", "v1", "GRPCRoute"),
    ("gateway.networking.k8s.io", "v1", "HTTPRoute"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("policy", "v1", "PodDisruptionBudget"),
];

/// Common Kubernetes kinds (group, kind) without a status. A watch of their metadata is therefore enough.
const WITHOUT_STATUS: &[(&str, &str)] = &[
    ("", "ConfigMap"),
    ("", "Endpoints"),
    ("", "LimitRange"),
    ("", "Secret"),
    ("", "ServiceAccount"),
    ("apps", "ControllerRevision"),
    ("coordination.k8s.io", "Lease"),
    ("discovery.k8s.io", "EndpointSlice"),
    ("networking.k8s.io", "IngressClass"),
    ("networking.k8s.io", "NetworkPolicy"),
    ("node.k8s.io", "RuntimeClass"),
    ("rbac.authorization.k8s.io", "ClusterRole"),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io", "Role"),
    ("rbac.authorization.k8s.io", "RoleBinding"),
    ("scheduling.k8s.io", "PriorityClass"),
    ("storage.k8s.io", "StorageClass"),
];

/// A kind that a data plane serves, as its discovery describes the kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Kind {
    pub resource: ApiResource,
    pub namespaced: bool,
}

impl Kind {
    /// Returns whether objects of this kind have a status.
    pub fn has_status(&self) -> bool {
        let (group, kind) = (self.resource.group.as_str(), self.resource.kind.as_str());
        !WITHOUT_STATUS.contains(&(group, kind))
    }

    pub fn name(&self) -> String {
        name(&self.resource.group, &self.resource.kind)
    }
}

/// Returns the display name of a kind, for example `Deployment of apps`.
pub fn name(group: &str, kind: &str) -> String {
    match group {
        "" => kind.to_owned(),
        group => format!("{kind} of {group}"),
    }
}

/// The reasons why the controller does not know the objects of a kind.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Blind {
    /// The data plane does not serve the kind.
    #[error("{kind} is not served by the data plane; install the kind, or remove the resource")]
    NotServed {
        /// The display name of the unserved kind.
        kind: String,
    },
    /// The data plane forbids the controller to list or watch the kind.
    #[error("{kind} cannot be read, access was denied: {why}; grant get, list and watch")]
    Forbidden {
        /// The display name of the forbidden kind.
        kind: String,
        /// The error message of the data plane.
        why: String,
    },
    /// The data plane does not answer the request for the kind, or answers with another error.
    #[error("{kind} cannot be read: {why}")]
    Unread {
        /// The display name of the kind that could not be read.
        kind: String,
        /// The text of the error, for the user.
        why: String,
        /// Whether the cause is a data plane that did not answer.
        unreachable: bool,
    },
}

impl Blind {
    /// Returns whether the cause is a data plane that did not answer.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unread { unreachable, .. } if *unreachable)
    }

    /// Converts the error of a request for the objects of a kind.
    pub fn of(kind: String, error: &kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 404 => Self::NotServed { kind },
            kube::Error::Api(status) if matches!(status.code, 401 | 403) => Self::Forbidden {
                kind,
                why: explain(error),
            },
            kube::Error::Discovery(_) => Self::NotServed { kind },
            error => Self::Unread {
                kind,
                why: explain(error),
                unreachable: connect::failure(error) == Failure::Unreachable,
            },
        }
    }
}

/// How long the cache keeps that a kind is served. A watch of the kind notices earlier that the kind is no
/// longer served.
const SERVED_FOR: Duration = Duration::from_secs(60);
/// How long the cache keeps that a kind is not served, or that discovery failed.
const UNSERVED_FOR: Duration = Duration::from_secs(2);

type Answer = Result<Vec<Kind>, Blind>;

/// The cache of a data plane's discovery, by group and version.
#[derive(Default)]
pub struct Kinds {
    asked: Mutex<HashMap<(String, String), (Instant, Answer)>>,
}

impl Kinds {
    /// Returns how the data plane serves a kind, from the cache or by discovery.
    pub async fn find(
        &self,
        client: &Client,
        wanted: &GroupVersionKind,
        deadline: Duration,
    ) -> Result<Kind, Blind> {
        let key = (wanted.group.clone(), wanted.version.clone());
        let name = name(&wanted.group, &wanted.kind);
        let find = |kinds: &[Kind]| {
            let found = kinds.iter().find(|kind| kind.resource.kind == wanted.kind);
            found.cloned()
        };
        let known = self.lock().get(&key).cloned();
        if let Some((since, answer)) = known {
            let found = answer.as_ref().ok().and_then(|kinds| find(kinds));
            let lasts = match found {
                Some(_) => SERVED_FOR,
                None => UNSERVED_FOR,
            };
            if since.elapsed() < lasts {
                return found.ok_or(match answer {
                    Ok(_) => Blind::NotServed { kind: name },
                    Err(blind) => blind,
                });
            }
        }
        let answer = match tokio::time::timeout(deadline, ask(client, wanted)).await {
            // If the data plane does not serve the group version, it does not serve the kind.
            Ok(answer) => answer.map_err(|error| Blind::of(name.clone(), &error)),
            Err(_elapsed) => Err(Blind::Unread {
                kind: name.clone(),
                why: format!("no answer within {deadline:?}"),
                unreachable: true,
            }),
        };
        self.lock().insert(key, (Instant::now(), answer.clone()));
        find(&answer?).ok_or(Blind::NotServed { kind: name })
    }

    /// Removes a kind from the cache, because the cached discovery was wrong.
    pub fn forget(&self, resource: &ApiResource) {
        let key = (resource.group.clone(), resource.version.clone());
        self.lock().remove(&key);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, String), (Instant, Answer)>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn ask(client: &Client, wanted: &GroupVersionKind) -> Result<Vec<Kind>, kube::Error> {
    let version = GroupVersion::gv(&wanted.group, &wanted.version);
    let group = discovery::pinned_group(client, &version).await?;
    let served = group.versioned_resources(&wanted.version);
    Ok(served
        .into_iter()
        .map(|(resource, capabilities)| Kind {
            resource,
            namespaced: capabilities.scope == Scope::Namespaced,
        })
        .collect())
}
