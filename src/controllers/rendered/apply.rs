//! Applies one resource, if the live object differs and does not belong to another owner.
//!
//! - A missing object is created.
//! - An object of this RenderedRelease is applied by force, so changes by other writers are overwritten.
//! - An object of another owner is reported and not changed, even if no field conflicts. Otherwise bowline
//!   would delete the object when the RenderedRelease no longer contains it. A user gives such an object to
//!   bowline with the annotation `bowline.dev/adopt`.
//! - An unchanged object costs no request: the hash of the applied fields is compared with the hash in the
//!   inventory.

use std::sync::Arc;

use super::desired::Desired;
use super::live::{Live, Owner, Standing};
use super::pause;
use super::plane::{Plane, RequestError, lock};
use super::watch::Sync;
use crate::api::choreo::rendered::{Health, ResourceStatus};
use crate::api::labels;

/// The reasons why a resource was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The request to the data plane failed, so the resource is not applied.
    #[error("{0}")]
    Request(#[from] RequestError),
    /// Another tool owns an object of the same kind and name as the resource.
    #[error(
        "an object that bowline does not own already has this name{}; rename one of them, delete the object, or give it to bowline with the annotation {}={}",
        by(.0), labels::ADOPT, labels::ADOPT_TRUE
    )]
    Foreign(Vec<String>),
    /// Another RenderedRelease (namespace, name) owns the live object of the resource.
    #[error("it belongs to the RenderedRelease {1} in namespace {0}; rename one of them")]
    OfAnother(String, String),
}

fn by(managers: &[String]) -> String {
    match managers {
        [] => String::new(),
        managers => format!(" (written by {})", managers.join(", ")),
    }
}

/// The action that applies one resource to its live object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Do nothing, because the live object is up to date or is still being deleted.
    Leave,
    /// Create the object without force, so that fields of another writer are not overwritten.
    Make,
    /// Apply the object by force, so that changes by other writers are overwritten.
    Force,
}

/// Chooses the action for a resource. The error says why the controller must not change the live object.
pub fn step(
    desired: &Desired,
    live: Option<&Live>,
    owner: &Owner,
    known: Option<&ResourceStatus>,
) -> Result<Step, ApplyError> {
    let Some(live) = live else {
        return Ok(Step::Make);
    };
    match live.standing(owner, known.is_some()) {
        Standing::OfAnother(namespace, name) => Err(ApplyError::OfAnother(namespace, name)),
        Standing::Foreign(managers) => Err(ApplyError::Foreign(managers)),
        _ if live.deleting => Ok(Step::Leave),
        Standing::Ours if desired.is_applied(live, known) => Ok(Step::Leave),
        Standing::Ours | Standing::Inherited | Standing::Adoptable => Ok(Step::Force),
    }
}

/// Applies a resource if its live object differs from the desired object, and returns the live object.
pub async fn apply(
    plane: &Plane,
    desired: &Desired,
    owner: &Owner,
    known: Option<&ResourceStatus>,
    is_namespace_new: bool,
) -> Result<Arc<Live>, ApplyError> {
    let live = match is_namespace_new {
        true => None,
        false => look(plane, desired).await?,
    };
    let force = match (step(desired, live.as_deref(), owner, known)?, live) {
        (Step::Leave, Some(live)) => return Ok(live),
        (Step::Force, _) => true,
        (Step::Leave | Step::Make, _) => false,
    };
    let (kind, identity) = (&desired.kind, &desired.identity);
    let answer = plane.apply(kind, identity, &desired.object, force).await;
    if let Err(error) = &answer
        && error.code() == Some(404)
    {
        // Forgets the namespace and the kind, because the data plane no longer has one of them.
        lock(&plane.namespaces).remove(&identity.namespace);
        plane.doubt(kind);
    }
    Ok(answer?)
}

/// Returns the live object from the watch, or else from the data plane; None if it does not exist.
async fn look(plane: &Plane, desired: &Desired) -> Result<Option<Arc<Live>>, RequestError> {
    let identity = &desired.identity;
    let watch = plane.watch(&desired.kind);
    if watch.sync() == Sync::Current
        && let Some((live, age)) = watch.get(&identity.namespace, &identity.name)
    {
        // A watch can stop without an error, so a progressing object without a recent event is read again.
        let is_doubtful = live.verdict.health == Health::Progressing && age >= pause::MOVING;
        if !is_doubtful {
            return Ok(Some(live));
        }
    }
    // The watch shows only objects with the labels of the controller. An object without the labels may have
    // this name too, so the data plane is asked.
    plane.read(&desired.kind, identity).await
}
