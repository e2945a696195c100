//! The ReleasePin that a user names in a command, to read its revisions.

use jiff::Timestamp;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};

use super::{Pinned, read_pin};
use crate::api::{Environment, ReleasePin, names};
use crate::engine::revisions::Revisions;
use crate::subjects::release_pin::refusal::instead;
use crate::subjects::release_pin::rules::NAMES;

/// The ReleasePin whose revisions a user asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    pub name: String,
    /// The component and the environment that the user typed; None if the user typed the name of the ReleasePin.
    pub place: Option<(String, String)>,
}

/// The reason why the revisions of a ReleasePin cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NoSubject {
    /// The component is not deployed in the environment.
    #[error("{component} is not deployed in {environment}{}", instead(.known))]
    NotDeployed {
        component: String,
        environment: String,
        /// The names of the existing environments if the environment does not exist; otherwise empty.
        known: Vec<String>,
    },
    /// The ReleasePin does not exist.
    #[error("there is no ReleasePin {0}")]
    NoPin(String),
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

impl NoSubject {
    /// Returns the error for a component that is not deployed in an environment. If the environment does not exist,
    /// the error lists the existing ones.
    pub async fn not_deployed(
        client: &Client,
        namespace: &str,
        component: &str,
        environment: &str,
    ) -> Self {
        let environments: Api<Environment> = Api::namespaced(client.clone(), namespace);
        let found = environments.list_metadata(&ListParams::default()).await;
        let found = found.into_iter().flat_map(|list| list.items);
        let mut known: Vec<String> = found.map(|environment| environment.name_any()).collect();
        if known.iter().any(|known| known == environment) {
            known.clear();
        }
        known.truncate(NAMES);
        Self::NotDeployed {
            component: component.to_owned(),
            environment: environment.to_owned(),
            known,
        }
    }

    /// Returns the next step for the user; None if there is none.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotDeployed { .. } | Self::NoPin(_) => {
                Some("see where it is deployed: bowline status")
            }
            Self::Target(_) => None,
        }
    }
}

impl Subject {
    /// Names the ReleasePin of a component in an environment.
    pub fn of(component: &str, environment: &str) -> Self {
        Self {
            name: names::pin(component, environment),
            place: Some((component.to_owned(), environment.to_owned())),
        }
    }

    /// Reads the ReleasePin from the server and builds its revisions.
    pub async fn read(
        &self,
        client: &Client,
        namespace: &str,
        now: Timestamp,
    ) -> Result<(ReleasePin, Revisions<Pinned>), NoSubject> {
        let found = read_pin(client, namespace, &self.name, now).await?;
        // Different pairs of component and environment can give the same ReleasePin name, so the found ReleasePin may
        // be another one.
        let found = found.filter(|(pin, _)| {
            let own = (&pin.spec.component, &pin.spec.environment);
            let asked = self
                .place
                .as_ref()
                .map(|(component, place)| (component, place));
            asked.is_none_or(|asked| asked == own)
        });
        match (found, &self.place) {
            (Some(found), _) => Ok(found),
            (None, Some((component, environment))) => {
                Err(NoSubject::not_deployed(client, namespace, component, environment).await)
            }
            (None, None) => Err(NoSubject::NoPin(self.name.clone())),
        }
    }
}
