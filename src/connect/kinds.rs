//! Reads from the discovery documents of a server which kinds it has.
//!
//! A watch of a missing kind fails like a watch of a broken server. Discovery tells the two apart, so
//! that bowline can say "not installed" at once.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use kube::core::ApiResource;
use kube::{Client, Resource};

use super::error::is_lasting;
use super::{Error, Target};
use crate::text::quoted;

/// Returns the API resource of a kind of bowline.
pub fn kind<K: Resource<DynamicType = ()>>() -> ApiResource {
    ApiResource::erase::<K>(&())
}

/// The plural names of the kinds that a server has, by group and version.
pub struct Discovery {
    versions: BTreeMap<String, Result<BTreeSet<String>, kube::Error>>,
}

impl Discovery {
    /// Asks the server which kinds it has in the groups and versions of the wanted kinds.
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

    /// Returns whether the server has a kind. `None`: the discovery request failed, for example because the
    /// user has no right to read discovery.
    pub fn serves(&self, kind: &ApiResource) -> Option<bool> {
        let found = self.versions.get(&kind.api_version)?.as_ref().ok()?;
        Some(found.contains(&kind.plural))
    }

    /// Returns the first error of discovery that each later request would repeat.
    fn lasting(self) -> Option<kube::Error> {
        let errors = self.versions.into_values().filter_map(Result::err);
        errors.into_iter().find(is_lasting)
    }
}

/// Returns an error if a cluster does not have all of the wanted kinds.
///
/// Ignores most errors of discovery, because the later request of the kind fails with the message of the
/// server. Reports two errors at once, so that the user does not wait twice: an exceeded deadline, and an
/// answer that does not come from a Kubernetes API server.
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
    /// Returns the error for a target that does not have some kinds.
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

/// Lists kinds by group and version: `Release, ReleasePin (openchoreo.dev/v1alpha1)`.
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
