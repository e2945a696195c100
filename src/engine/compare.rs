//! What can be compared: two environments, two revisions of a pin, what is rendered against what is there,
//! two releases.
//!
//! Each makes two sides of objects, for the diff to compare. Nothing is written; what should be known on
//! the way goes to `notes`, also that of the first side where the second cannot be had.

use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use kube::api::Api;
use serde_json::Value;

use super::bodies::BodyError;
use super::diff::Identity;
use super::live::{self, LiveError};
use super::ownership;
use super::preview::{self, PreviewError, Stage};
use super::revisions::{NoRevision, NoSubject, Pinned, Revision, Revisions, Subject};
use crate::api::audit::ReleaseIdentity;
use crate::api::environment::{EnvironmentSpec, Reach};
use crate::api::{self, DataPlane, Definitions, ReleasePin, names};
use crate::connect::{self, Connection};
use crate::resolve::git::Git;

/// One of the two things that are compared.
#[derive(Clone, Debug)]
pub struct Side {
    /// What it is.
    pub what: String,
    /// Its objects.
    pub objects: Vec<Value>,
    /// When it was read.
    pub read: Timestamp,
}

/// What is compared with what.
#[derive(Clone, Debug)]
pub struct Sides {
    /// The older or left one.
    pub before: Side,
    /// The newer or right one.
    pub after: Side,
    /// Whether the second side is what is there, with everything that servers fill in.
    pub is_live: bool,
}

/// Why something cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// What has revisions is not there.
    #[error(transparent)]
    Subject(#[from] NoSubject),
    /// There is no such revision.
    #[error(transparent)]
    Revision(#[from] NoRevision),
    /// What a revision was is not known.
    #[error("the release of revision {number} of {subject} is not recorded")]
    Unrecorded {
        /// Of what.
        subject: String,
        /// Which.
        number: i64,
    },
    /// The release of a revision is gone.
    #[error("revision {number} cannot be rendered: {error}")]
    Gone {
        /// Which.
        number: i64,
        /// Why.
        error: Arc<BodyError>,
    },
    /// A side cannot be rendered.
    #[error(transparent)]
    Preview(#[from] PreviewError),
    /// The data plane of an environment is not there.
    #[error("data plane {plane} of {environment} does not exist")]
    NoDataPlane {
        /// The environment.
        environment: String,
        /// The data plane that it names.
        plane: String,
    },
    /// No way leads to a data plane.
    #[error("data plane {0} has none of inCluster, context and embedded")]
    NoWay(String),
    /// A data plane cannot be reached.
    #[error(transparent)]
    Connect(#[from] connect::Error),
    /// An object of a data plane cannot be read.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The target did not answer as it should.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

impl CompareError {
    /// Says what to do, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Subject(error) => error.hint(),
            Self::Gone { .. } => Some(
                "bowline release list shows the existing releases; choose a revision of one of them",
            ),
            Self::NoDataPlane { .. } => Some("bowline get dataplanes"),
            _ => None,
        }
    }
}

/// Where both sides are read.
pub struct Comparer<'a, C: Fn() -> Timestamp> {
    connection: &'a Connection,
    stage: Stage<'a>,
    clock: C,
}

impl<'a, C: Fn() -> Timestamp> Comparer<'a, C> {
    /// Reads from a connection.
    pub fn new(connection: &'a Connection, git: &'a Git, clock: C) -> Self {
        Self {
            connection,
            stage: Stage::new(&connection.client, &connection.namespace, git),
            clock,
        }
    }

    /// Takes what was read just now.
    fn side(&self, what: String, objects: Vec<Value>) -> Side {
        Side {
            what,
            objects,
            read: (self.clock)(),
        }
    }

    /// Compares two revisions of a pin; by default the one before with the current one.
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

    /// Compares what counts in two environments, each with its own settings.
    pub async fn environments(
        &self,
        component: &str,
        [from, to]: [&str; 2],
        notes: &mut Vec<String>,
    ) -> Result<Sides, CompareError> {
        let (before, one) = self.without_namespace(component, from, notes).await?;
        let (after, other) = self.without_namespace(component, to, notes).await?;
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

    async fn without_namespace(
        &self,
        component: &str,
        environment: &str,
        notes: &mut Vec<String>,
    ) -> Result<(Side, String), CompareError> {
        let mut side = self.rendered(component, environment, notes).await?;
        let namespace = self.environment(environment).await?.namespace;
        leave_out(&namespace, &mut side.objects);
        Ok((side, namespace))
    }

    /// Compares what is rendered for an environment with what is there. `context` leads to a data plane
    /// behind a context of the kubeconfig, and says what it is called.
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
        let name = self.environment(environment).await?.data_plane_ref.name;
        let planes: Api<DataPlane> = Api::namespaced(client.clone(), namespace);
        let Some(plane) = planes.get_opt(&name).await? else {
            return Err(CompareError::NoDataPlane {
                environment: environment.to_owned(),
                plane: name,
            });
        };
        let (client, place) = match plane.spec.reach() {
            Some(Reach::InCluster | Reach::Embedded) => {
                (client.clone(), self.connection.target.to_string())
            }
            Some(Reach::Context(name)) => context(name.to_owned()).await?,
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

    /// Compares the definitions of two releases, however they are stored.
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
        let release = ReleaseIdentity::named(name);
        let mut warnings = Vec::new();
        let definitions = self.stage.definitions(&release, &mut warnings).await?;
        notes.append(&mut warnings);
        Ok(self.side(format!("release {name}"), objects(&definitions)))
    }

    async fn environment(&self, name: &str) -> Result<EnvironmentSpec, CompareError> {
        let (client, namespace) = (&self.connection.client, &self.connection.namespace);
        let environments: Api<api::Environment> = Api::namespaced(client.clone(), namespace);
        Ok(environments.get(name).await?.spec)
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
        // Two places can come to the same name.
        let found = found
            .filter(|pin| (pin.spec.component.as_str(), pin.spec.environment.as_str()) == asked);
        let pin = found.ok_or_else(|| NoSubject::NotDeployed {
            component: component.to_owned(),
            environment: environment.to_owned(),
        })?;
        let release = ReleaseIdentity::named(ownership::effective_release(&pin, (self.clock)()));
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

/// Says that the release of a revision is gone, which is no failure of the target.
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

/// Takes the namespace off the objects that are in it, so that those of two environments meet.
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

/// Returns definitions as objects; an addon that several instances use alike is there once.
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
