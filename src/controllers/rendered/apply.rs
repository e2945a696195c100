//! Applies one resource, where that is needed and where the object is ours to change.
//!
//! What is not there is made. What is ours is applied by force: what a RenderedRelease says of a field
//! counts, whoever changed it. What is somebody else's is left as it is and reported, even where not one
//! field would conflict, for what is applied is also deleted one day; the annotation `bowline.dev/adopt`
//! hands it over. Nothing is sent for an object that is as it was left: the hash of our fields, which
//! changes with each of them, is compared with the one that was written down.

use std::sync::Arc;

use super::desired::Desired;
use super::live::{Live, Owner, Standing};
use super::pause;
use super::plane::{Plane, RequestError, lock};
use super::watch::Sync;
use crate::api::labels;
use crate::api::rendered::{Health, ResourceStatus};

/// Why a resource was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The data plane did not take it.
    #[error("{0}")]
    Request(#[from] RequestError),
    /// Somebody else made it.
    #[error(
        "an object that bowline does not own already has this name{}; rename one of them, delete the object, or give it to bowline with the annotation {}={}",
        by(.0), labels::ADOPT, labels::ADOPT_TRUE
    )]
    Foreign(Vec<String>),
    /// Another RenderedRelease has it.
    #[error("it belongs to the RenderedRelease {1} in namespace {0}; rename one of them")]
    OfAnother(String, String),
}

fn by(managers: &[String]) -> String {
    match managers {
        [] => String::new(),
        managers => format!(" (written by {})", managers.join(", ")),
    }
}

/// What is done about an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is as it should be, or has to go before it can be made again.
    Leave,
    /// It is made, unless somebody is faster.
    Make,
    /// It is put right.
    Force,
}

/// Decides what is done about an object.
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

/// Makes a resource be as it should; returns the object as it is then.
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
        // The namespace is gone, or the kind: neither is what it was taken for.
        lock(&plane.namespaces).remove(&identity.namespace);
        plane.doubt(kind);
    }
    Ok(answer?)
}

/// Looks at an object: as the watch shows it, else as the data plane says.
async fn look(plane: &Plane, desired: &Desired) -> Result<Option<Arc<Live>>, RequestError> {
    let identity = &desired.identity;
    let watch = plane.watch(&desired.kind);
    if watch.sync() == Sync::Current
        && let Some((live, age)) = watch.get(&identity.namespace, &identity.name)
    {
        // A watch can die without a word. What should move and was not seen for long is asked for.
        let is_doubtful = live.verdict.health == Health::Progressing && age >= pause::MOVING;
        if !is_doubtful {
            return Ok(Some(live));
        }
    }
    // What the watch does not show may be there without our labels.
    plane.read(&desired.kind, identity).await
}
