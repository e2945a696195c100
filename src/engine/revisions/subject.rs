//! What has revisions, by name: for now, a pin.

use jiff::Timestamp;
use kube::Client;

use super::{Pinned, Revisions, read_pin};
use crate::api::{ReleasePin, names};

/// Whose revisions are meant: for now, a pin's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The name of the pin.
    pub name: String,
    /// The component and the environment, where they were named.
    pub place: Option<(String, String)>,
}

/// Why there are no revisions.
#[derive(Debug, thiserror::Error)]
pub enum NoSubject {
    /// The component is not there.
    #[error("{component} is not deployed in {environment}")]
    NotDeployed {
        /// The component.
        component: String,
        /// The environment.
        environment: String,
    },
    /// There is no such pin.
    #[error("there is no ReleasePin {0}")]
    NoPin(String),
    /// The target did not answer as it should.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

impl NoSubject {
    /// Says what to do, where there is something.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotDeployed { .. } | Self::NoPin(_) => Some("bowline status shows the matrix"),
            Self::Target(_) => None,
        }
    }
}

impl Subject {
    /// Names the pin of a component in an environment.
    pub fn of(component: &str, environment: &str) -> Self {
        Self {
            name: names::pin(component, environment),
            place: Some((component.to_owned(), environment.to_owned())),
        }
    }

    /// Reads a pin and its revisions.
    pub async fn read(
        &self,
        client: &Client,
        namespace: &str,
        now: Timestamp,
    ) -> Result<(ReleasePin, Revisions<Pinned>), NoSubject> {
        let found = read_pin(client, namespace, &self.name, now).await?;
        // Two places can come to the same name.
        let found = found.filter(|(pin, _)| {
            let own = (&pin.spec.component, &pin.spec.environment);
            let asked = self
                .place
                .as_ref()
                .map(|(component, place)| (component, place));
            asked.is_none_or(|asked| asked == own)
        });
        found.ok_or_else(|| match &self.place {
            Some((component, environment)) => NoSubject::NotDeployed {
                component: component.clone(),
                environment: environment.clone(),
            },
            None => NoSubject::NoPin(self.name.clone()),
        })
    }
}
