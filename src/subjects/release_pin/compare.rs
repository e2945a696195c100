//! Builds comparisons: of two environments, of two revisions of a ReleasePin, of rendered with live objects, of two
//! releases.
//!
//! Each function returns the two sides for the diff, and writes nothing to the target. It adds warnings to `notes`,
//! even if the comparison fails.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use kube::api::Api;
use serde_json::Value;

use super::preview::{self, PreviewError, Stage};
use super::revisions::{NoSubject, Pinned, Subject};
use crate::api::bowline::audit::ContentRef;
use crate::api::openchoreo::environment::{EnvironmentSpec, Reach};
use crate::api::{self, DataPlane, Definitions, ReleasePin, names};
use crate::connect::{self, Connection, Target};
use crate::engine::bodies::BodyError;
use crate::engine::compare::{Side, Sides};
use crate::engine::diff::Identity;
use crate::engine::live::{self, LiveError};
use crate::engine::revisions::{NoRevision, Revision, Revisions};
use crate::resolve::git::Git;
use crate::subjects::release_pin::ownership;

/// The reason why a comparison fails.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Subject(#[from] NoSubject),
    #[error(transparent)]
    Revision(#[from] NoRevision),
    /// The audit trail does not contain the content of a revision.
    #[error("the release of revision {number} of {subject} is not recorded")]
    Unrecorded { subject: String, number: i64 },
    /// The release of a revision no longer exists.
    #[error("revision {number} cannot be rendered: {error}")]
    Gone {
        number: i64,
        /// The reason why the content of the release is not available.
        error: Arc<BodyError>,
    },
    /// The manifests of one side cannot be rendered.
    #[error(transparent)]
    Preview(#[from] PreviewError),
    /// The DataPlane that an environment names does not exist.
    #[error("data plane {plane} of {environment} does not exist")]
    NoDataPlane {
        environment: String,
        /// The name of the missing DataPlane.
        plane: String,
    },
    /// The configuration has no connection to the data plane. Contains the name of the data plane.
    #[error("data plane {0} has none of inCluster, context and embedded")]
    NoWay(String),
    /// The data plane is the cluster of a repository, and no flag says which cluster that is. Contains the name of
    /// the data plane.
    #[error(
        "data plane {0} is the cluster of this repository, and no flag names the cluster: add --context NAME"
    )]
    NoCluster(String),
    /// The connection to the data plane failed.
    #[error(transparent)]
    Connect(#[from] connect::Error),
    /// A live object cannot be read.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The revisions of a subject cannot be read, and the subject is no ReleasePin. Contains the reason.
    #[error("{0}")]
    Other(String),
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

impl CompareError {
    /// Returns the next step for the user; None if there is none.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Subject(error) => error.hint(),
            Self::Gone { .. } => {
                Some("choose a revision of an existing release, from: bowline release list")
            }
            Self::NoDataPlane { .. } => Some("list the data planes: bowline get dataplanes"),
            _ => None,
        }
    }
}

/// Reads the objects of both sides of a comparison.
pub struct Comparer<'a, C: Fn() -> Timestamp> {
    connection: &'a Connection,
    stage: Stage<'a>,
    clock: C,
}

impl<'a, C: Fn() -> Timestamp> Comparer<'a, C> {
    /// Creates a comparer that reads from the target of a connection.
    pub fn new(connection: &'a Connection, git: &'a Git, clock: C) -> Self {
        Self {
            connection,
            stage: Stage::new(&connection.client, &connection.namespace, git),
            clock,
        }
    }

    /// Builds one side of a comparison from a title and objects. The read time of the side is now.
    fn side(&self, what: String, objects: Vec<Value>) -> Side {
        Side {
            what,
            objects,
            read: (self.clock)(),
        }
    }

    /// Compares two revisions of a ReleasePin. If `to` is None, it is the current revision. If `from` is None, it is
    /// the revision before `to`.
    pub async fn revisions(
        &self,
        subject: &Subject,
        (from, to): (Option<i64>, Option<i64>),
        notes: &mut Vec<String>,
    ) -> Result<Sides, CompareError> {
        let Connection {
            client, namespace, ..
        } = self.connection;
        let (pin, found) = subject.read(client, namespace, (self.clock)()).await?;
        let after = match to {
            Some(number) => found.find(number)?,
            None => found.current()?,
        };
        let before = match from {
            Some(number) => found.find(number)?,
            None => found.before(after.number)?,
        };
        let before = self.revision(&pin, &found, before, notes).await?;
        let after = self.revision(&pin, &found, after, notes).await?;
        notes.push(format!(
            "both are rendered with the settings that {} has now",
            pin.spec.environment
        ));
        Ok(Sides {
            before,
            after,
            is_live: false,
        })
    }

    async fn revision(
        &self,
        pin: &ReleasePin,
        found: &Revisions<Pinned>,
        revision: &Revision<Pinned>,
        notes: &mut Vec<String>,
    ) -> Result<Side, CompareError> {
        let (component, environment) = (&pin.spec.component, &pin.spec.environment);
        let number = revision.number;
        let content = revision.content.as_ref();
        let Some(Pinned { release, .. }) = content else {
            return Err(CompareError::Unrecorded {
                subject: found.subject.clone(),
                number,
            });
        };
        let mut warnings = Vec::new();
        let rendered = self
            .stage
            .rendered(component, environment, release, &mut warnings)
            .await
            .map_err(|error| not_there(number, error))?;
        notes.append(&mut warnings);
        let what = format!(
            "{component} in {environment}, revision {number}, release {}",
            release.name
        );
        Ok(self.side(what, preview::objects(&rendered)))
    }

    /// Compares the effective releases of a component in two environments. Each release is rendered with the settings
    /// of its environment.
    pub async fn environments(
        &self,
        component: &str,
        [from, to]: [&str; 2],
        notes: &mut Vec<String>,
    ) -> Result<Sides, CompareError> {
        // Look up both environments first, so that a wrong name is reported before the slow rendering.
        let one = self.environment(component, from).await?.namespace;
        let other = self.environment(component, to).await?.namespace;
        let mut before = self.rendered(component, from, notes).await?;
        let mut after = self.rendered(component, to, notes).await?;
        leave_out(&one, &mut before.objects);
        leave_out(&other, &mut after.objects);
        if one != other {
            notes.push(format!(
                "the namespaces of the environments, {one} and {other}, are not compared"
            ));
        }
        Ok(Sides {
            before,
            after,
            is_live: false,
        })
    }

    /// Compares the rendered objects of a component in an environment with the live objects on the data plane.
    /// `context` gets the name of a kubeconfig context, and returns a client and a text that describes the
    /// connection.
    pub async fn live<F>(
        &self,
        component: &str,
        environment: &str,
        context: impl FnOnce(String) -> F,
        notes: &mut Vec<String>,
    ) -> Result<Sides, CompareError>
    where
        F: Future<Output = Result<(Client, String), connect::Error>>,
    {
        let before = self.rendered(component, environment, notes).await?;
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let spec = self.environment(component, environment).await?;
        let name = spec.data_plane_ref.name;
        let planes: Api<DataPlane> = Api::namespaced(client.clone(), namespace);
        let Some(plane) = planes.get_opt(&name).await? else {
            return Err(CompareError::NoDataPlane {
                environment: environment.to_owned(),
                plane: name,
            });
        };
        let (client, place) = match plane.spec.reach() {
            Some(Reach::Context(name)) => context(name.to_owned()).await?,
            Some(reach) => self.own_plane(reach, &name)?,
            None => return Err(CompareError::NoWay(name)),
        };
        let found = live::live(&client, &before.objects).await?;
        for kind in &found.unknown {
            notes.push(format!("data plane {name} has no kind {kind}"));
        }
        let what = format!("{component} in {environment}, live on data plane {name} ({place})");
        Ok(Sides {
            after: self.side(what, found.objects),
            before,
            is_live: true,
        })
    }

    /// Returns the client and the description of a data plane that is the cluster of the control plane itself. If the
    /// target is a repository, this is the cluster that the user named with a flag, because a repository has no
    /// workloads.
    fn own_plane(&self, reach: Reach<'_>, name: &str) -> Result<(Client, String), CompareError> {
        let Connection {
            client,
            target,
            repository,
            ..
        } = self.connection;
        let (client, place) = match repository {
            None => (client, target.to_string()),
            Some(repository) => match &repository.beside {
                Some(cluster) => (cluster, format!("the cluster of {target}")),
                None => return Err(CompareError::NoCluster(name.to_owned())),
            },
        };
        match (reach, target) {
            (Reach::Embedded, Target::Embedded { .. }) | (Reach::InCluster, _) => {
                Ok((client.clone(), place))
            }
            _ => Err(connect::Error::NoEmbeddedPlane.into()),
        }
    }

    /// Compares the definitions of two releases.
    pub async fn releases(
        &self,
        [from, to]: [&str; 2],
        notes: &mut Vec<String>,
    ) -> Result<Sides, CompareError> {
        Ok(Sides {
            before: self.release(from, notes).await?,
            after: self.release(to, notes).await?,
            is_live: false,
        })
    }

    async fn release(&self, name: &str, notes: &mut Vec<String>) -> Result<Side, CompareError> {
        let release = ContentRef::named(name);
        let mut warnings = Vec::new();
        let definitions = self.stage.definitions(&release, &mut warnings).await?;
        notes.append(&mut warnings);
        Ok(self.side(format!("release {name}"), objects(&definitions)))
    }

    async fn environment(
        &self,
        component: &str,
        name: &str,
    ) -> Result<EnvironmentSpec, CompareError> {
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let environments: Api<api::Environment> = Api::namespaced(client.clone(), namespace);
        match environments.get_opt(name).await? {
            Some(environment) => Ok(environment.spec),
            None => Err(NoSubject::not_deployed(client, namespace, component, name)
                .await
                .into()),
        }
    }

    async fn rendered(
        &self,
        component: &str,
        environment: &str,
        notes: &mut Vec<String>,
    ) -> Result<Side, CompareError> {
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
        let found = pins.get_opt(&names::pin(component, environment)).await?;
        let asked = (component, environment);
        // Different pairs of component and environment can give the same ReleasePin name, so the names are compared.
        let found = found
            .filter(|pin| (pin.spec.component.as_str(), pin.spec.environment.as_str()) == asked);
        let Some(pin) = found else {
            let error = NoSubject::not_deployed(client, namespace, component, environment);
            return Err(error.await.into());
        };
        let release = ContentRef::named(ownership::effective_release(&pin, (self.clock)()));
        let mut warnings = Vec::new();
        let rendered = self
            .stage
            .rendered(component, environment, &release, &mut warnings)
            .await?;
        notes.append(&mut warnings);
        let what = format!("{component} in {environment}, release {}", release.name);
        Ok(self.side(what, preview::objects(&rendered)))
    }
}

/// Converts the error for a revision whose release no longer exists. The new error names the revision.
fn not_there(number: i64, error: PreviewError) -> CompareError {
    match error {
        PreviewError::Body(error)
            if matches!(*error, BodyError::Gone { .. } | BodyError::Replaced { .. }) =>
        {
            CompareError::Gone { number, error }
        }
        error => error.into(),
    }
}

/// Removes a namespace from the objects that have it. Otherwise the diff could not pair the objects of two
/// environments.
fn leave_out(namespace: &str, objects: &mut [Value]) {
    for object in objects {
        let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata
            && metadata.get("namespace").and_then(Value::as_str) == Some(namespace)
        {
            metadata.remove("namespace");
        }
    }
}

/// Returns the definitions of a release as objects. An addon with several instances appears once.
fn objects(definitions: &Definitions) -> Vec<Value> {
    let addons = definitions
        .addons
        .iter()
        .map(|addon| serde_json::to_value(&addon.addon));
    let mut objects = Vec::new();
    for object in [
        serde_json::to_value(&definitions.component),
        serde_json::to_value(&definitions.component_type_definition),
        serde_json::to_value(&definitions.workload),
    ]
    .into_iter()
    .chain(addons)
    .flatten()
    {
        let is_there = |known: &Value| Identity::of(known) == Identity::of(&object);
        if !objects
            .iter()
            .any(|known| is_there(known) && *known == object)
        {
            objects.push(object);
        }
    }
    objects
}
