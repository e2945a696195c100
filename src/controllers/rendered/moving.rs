//! Prepares the inventory before an apply. Cleans up the old data plane after an environment got another one.

use std::sync::Arc;

use super::deploy::{Deployed, Pruned};
use super::finalize::{self, CleanupState};
use super::kinds::WELL_KNOWN;
use super::live::Owner;
use super::plane::Plane;
use super::{Error, State, desired, placing};
use crate::api::RenderedRelease;
use crate::api::choreo::rendered::{Health, ResourceStatus};

/// Adds resources of uncommon kinds to the inventory before the controller applies them. Without the entry, a
/// crash after the apply would leave an object that the controller never finds and deletes.
pub async fn announce(
    state: &State,
    release: Arc<RenderedRelease>,
) -> Result<Arc<RenderedRelease>, Error> {
    let mut status = release.status.clone().unwrap_or_default();
    for resource in &release.spec.resources {
        let Ok(named) = desired::named(resource) else {
            continue;
        };
        let kind = &named.kind;
        let is_looked_for = WELL_KNOWN
            .iter()
            .any(|(group, _, name)| *group == kind.group && *name == kind.kind)
            || status
                .resources
                .iter()
                .any(|entry| entry.group == kind.group && entry.kind == kind.kind);
        if !is_looked_for {
            status.resources.push(ResourceStatus {
                id: named.id.to_owned(),
                group: kind.group.clone(),
                version: kind.version.clone(),
                kind: kind.kind.clone(),
                name: named.name.to_owned(),
                namespace: named.namespace.map(str::to_owned),
                health: Health::Progressing,
                message: Some("will be applied".to_owned()),
                ..ResourceStatus::default()
            });
        }
    }
    state.write(&release, status).await
}

/// Deletes the objects of a RenderedRelease in data planes that its environment no longer uses, after the new
/// data plane has all resources. Returns the data planes that may still have objects.
pub async fn leave(
    state: &State,
    plane: &Arc<Plane>,
    release: &RenderedRelease,
    owner: &Owner,
    mut deployed: Deployed,
    listed: Vec<String>,
) -> (Deployed, Vec<String>) {
    let is_applied = deployed.found.iter().all(|found| found.problem.is_none());
    if listed.len() < 2 || !is_applied {
        return (deployed, listed);
    }
    let mut kept = Vec::new();
    for name in listed {
        if name == plane.name {
            kept.push(name);
            continue;
        }
        let left = match placing::by_name(state, &name).await {
            Ok(old) => match is_same_cluster(&old, plane).await {
                // The old connection leads to the same cluster as the new one, so there are no other objects
                // to delete.
                Ok(true) => Ok(true),
                Ok(false) => is_left(&old, release, owner).await,
                Err(why) => Err(why),
            },
            Err(why) => Err(why),
        };
        match left {
            Ok(true) => {}
            Ok(false) => kept.push(name),
            Err(why) => {
                deployed.pruned =
                    Pruned::Failed(vec![format!("previous data plane {name}: {why}")]);
                kept.push(name);
            }
        }
    }
    (deployed, kept)
}

async fn is_left(old: &Plane, release: &RenderedRelease, owner: &Owner) -> Result<bool, String> {
    match finalize::leave(old, release, owner).await {
        CleanupState::Nothing => Ok(true),
        CleanupState::Objects(_) => Ok(false),
        CleanupState::Trouble(why) => Err(super::status::listed(&why)),
    }
}

/// Returns whether two connections lead to the same cluster. Then a deletion through one connection would
/// delete the objects that the other one needs.
async fn is_same_cluster(one: &Plane, other: &Plane) -> Result<bool, String> {
    let one = one.identity().await.map_err(|error| error.to_string())?;
    let other = other.identity().await.map_err(|error| error.to_string())?;
    match one.is_empty() || other.is_empty() {
        true => Err("it is the same cluster as the current one".to_owned()),
        false => Ok(one == other),
    }
}
