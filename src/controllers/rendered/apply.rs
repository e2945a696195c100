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
    /// The request to the data plane failed.
    #[error("{0}")]
    Request(#[from] RequestError),
    /// Another tool owns an object of this name.
    #[error(
        "an object that bowline does not own already has this name{}; rename one of them, delete the object, or give it to bowline with the annotation {}={}",
        by(.0), labels::ADOPT, labels::ADOPT_TRUE
    )]
    Foreign(Vec<String>),
    /// Another RenderedRelease owns the object.
    #[error("it belongs to the RenderedRelease {1} in namespace {0}; rename one of them")]
    OfAnother(String, String),
}

fn by(managers: &[String]) -> String {
    match managers {
        [] => String::new(),
        managers => format!(" (written by {})", managers.join(", ")),
    }
}

/// What an apply does with one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Do nothing: the object is up to date, or is still being deleted.
    Leave,
    /// Create the object, without force.
    Make,
    /// Apply the object by force.
    Force,
}

/// Chooses the action for an object, or returns why it must not be changed.
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

/// Applies a resource if needed, and returns the live object.
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
        // The data plane no longer has the cached namespace or kind.
        lock(&plane.namespaces).remove(&identity.namespace);
        plane.doubt(kind);
    }
    Ok(answer?)
}

/// Returns the live object from the watch, or from the data plane if the watch does not have it.
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
    // The watch shows only objects with the labels of the controller, so another object may have this name.
    plane.read(&desired.kind, identity).await
}
