//! Reads the discovery documents of a server to find out which kinds the server has.
//!
//! Without discovery, bowline could not tell a missing kind from a broken server, because a watch fails in the same
//! way on both. With discovery, bowline says "not installed" at once.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use kube::core::ApiResource;
use kube::{Client, Resource};

use super::error::is_lasting;
use super::{Error, Target};
use crate::text::quoted;

/// Returns the API resource of one of bowline's kinds.
pub fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// The result of discovery: the plural names of the kinds of a server, by API group and version.
pub struct Discovery {
    versions: BTreeMap<String, Result<BTreeSet<String>, kube::Error>>,
}

impl Discovery {
    /// Reads the discovery documents for the API groups and versions of the wanted kinds.
    pub async fn ask(client: &Client, wanted: &[ApiResource]) -> Self {
        let versions: BTreeSet<&str> = wanted
            .iter()
            .map(|kind| kind.api_version.as_str())
            .collect();
        let answers = versions.into_iter().map(|version| async move {
            let found = match client.list_api_group_resources(version).await {
                Ok(list) => Ok(list.resources.into_iter().map(|found| found.name).collect()),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(BTreeSet::new()),
                Err(error) => Err(error),
            };
            (version.to_owned(), found)
        });
        Self {
            versions: join_all(answers).await.into_iter().collect(),
        }
    }

    /// Returns whether the server has a kind. None if its discovery document could not be read, for example because
    /// the user may not read it.
    pub fn serves(&self, kind: &ApiResource) -> Option<bool> {
        let found = self.versions.get(&kind.api_version)?.as_ref().ok()?;
        Some(found.contains(&kind.plural))
    }

    /// Returns the first error of discovery that the next request would also have.
    fn lasting(self) -> Option<kube::Error> {
        let errors = self.versions.into_values().filter_map(Result::err);
        errors.into_iter().find(is_lasting)
    }
}

/// Fails if a cluster does not have all wanted kinds.
///
/// Most errors of discovery are ignored, because the later request for the kind fails with the message of the server.
/// Two errors are returned at once, so that the user does not wait twice: an exceeded deadline, and an answer that
/// does not come from a Kubernetes API server.
pub(super) async fn require(
    client: &Client,
    wanted: &[ApiResource],
    target: &Target,
) -> Result<(), Error> {
    if wanted.is_empty() {
        return Ok(());
    }
    let discovery = Discovery::ask(client, wanted).await;
    let absent = wanted
        .iter()
        .filter(|kind| discovery.serves(kind) == Some(false));
    let absent: Vec<ApiResource> = absent.cloned().collect();
    if !absent.is_empty() {
        return Err(Error::absent(target, &absent));
    }
    match discovery.lasting() {
        None => Ok(()),
        Some(error) => Err(Error::Unanswered {
            target: target.to_string(),
            error: Box::new(error),
        }),
    }
}

impl Error {
    /// Creates the error for a target that does not have the kinds `absent`.
    pub fn absent(target: &Target, absent: &[ApiResource]) -> Self {
        let flag = match target {
            Target::Context { name, .. } => format!(" --context {}", quoted(name)),
            Target::Embedded { file } => {
                return Error::StoreWithoutKinds {
                    file: file.clone(),
                    kinds: listed(absent),
                };
            }
            Target::Pod | Target::Repository { .. } => String::new(),
        };
        Error::KindsAbsent {
            target: target.to_string(),
            kinds: listed(absent),
            flag,
        }
    }
}

/// Formats a list of kinds by group and version: `Release, ReleasePin (openchoreo.dev/v1alpha1)`.
pub fn listed(kinds: &[ApiResource]) -> String {
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for kind in kinds {
        let names = versions.entry(&kind.api_version).or_default();
        names.push(&kind.kind);
    }
    let versions = versions.into_iter().rev();
    let versions = versions.map(|(version, names)| format!("{} ({version})", names.join(", ")));
    versions.collect::<Vec<_>>().join(", ")
}
