//! Cleans up a RenderedRelease that is being deleted: deletes its objects in every data plane that may have
//! such objects, verifies that they are gone, and removes the finalizer.
//!
//! The finalizer stays until every kind that the RenderedRelease ever named has been listed and has no object
//! left. If a whole kind or namespace is being deleted, [`deletion_guard`] stops the cleanup.

use std::sync::Arc;

use kube::runtime::controller::Action;

use super::deploy::kinds;
use super::desired::identity;
use super::kinds::{Blind, Kind};
use super::live::Standing;
use super::pause;
use super::plane::Plane;
use super::prune::{self, OwnedObjects};
use super::status::{self, Said};
use super::{Error, Owner, State, deletion_guard, finalizer, placing};
use crate::api::RenderedRelease;
use crate::api::condition::{self, Status};
use crate::engine::diff::Identity;

/// The progress of the cleanup in one data plane.
pub enum CleanupState {
    /// The cleanup has ended: requests have verified that all objects are gone.
    Nothing,
    /// The cleanup waits for these objects, which are being deleted.
    Objects(Vec<Identity>),
    /// The cleanup cannot go on: objects cannot be deleted, or kinds cannot be read. Contains the errors.
    Trouble(Vec<String>),
}

/// Takes the next step of the cleanup of a RenderedRelease.
pub async fn finalize(state: &State, release: Arc<RenderedRelease>) -> Result<Action, Error> {
    if !finalizer::is_claimed(&release) {
        return Ok(Action::await_change());
    }
    if let Some(why) = deletion_guard::objection(state, &release).await {
        let said = (Status::True, condition::CLEANUP_STOPPED, why.clone());
        say(state, &release, said).await?;
        return Err(Error::Finalize(why));
    }
    let owner = Owner::of(&release);
    let begun = (
        Status::True,
        condition::REMOVING,
        "its resources are being removed from the data plane".to_owned(),
    );
    let is_begun = release
        .status
        .as_ref()
        .is_some_and(|status| condition::is_true(&status.conditions, condition::FINALIZING, None));
    let release = match is_begun {
        true => release,
        false => say(state, &release, begun).await?,
    };
    let mut trouble = Vec::new();
    let mut objects = Vec::new();
    for plane in placing::claimed_planes(state, &release).await? {
        let remains = match plane {
            Ok(plane) => leave(&plane, &release, &owner).await,
            Err(why) => CleanupState::Trouble(vec![why]),
        };
        match remains {
            CleanupState::Nothing => {}
            CleanupState::Objects(left) => objects.extend(left),
            CleanupState::Trouble(why) => trouble.extend(why),
        }
    }
    if !trouble.is_empty() {
        let message = status::listed(&trouble);
        let said = (Status::True, condition::LIVE_STATE_UNKNOWN, message.clone());
        say(state, &release, said).await?;
        return Err(Error::Finalize(message));
    }
    if !objects.is_empty() {
        let names: Vec<String> = objects.iter().map(Identity::to_string).collect();
        let message = format!("waits until these are gone: {}", status::listed(&names));
        say(
            state,
            &release,
            (Status::True, condition::REMOVING, message),
        )
        .await?;
        return Ok(Action::requeue(pause::VERIFY));
    }
    finalizer::release(state, &release).await?;
    state.forget(&owner.uid).await;
    Ok(Action::await_change())
}

async fn say(
    state: &State,
    release: &Arc<RenderedRelease>,
    said: Said,
) -> Result<Arc<RenderedRelease>, Error> {
    let now = state.now();
    let mut status = release.status.clone().unwrap_or_default();
    let generation = release.metadata.generation;
    status.observed_generation = generation;
    let gone = (
        Status::False,
        said.1,
        "the release is being deleted".to_owned(),
    );
    let conditions = &mut status.conditions;
    status::set(conditions, condition::READY, gone, generation, now);
    status::set(conditions, condition::FINALIZING, said, generation, now);
    state.write(release, status).await
}

/// Deletes all objects of a RenderedRelease in one data plane, and returns the progress.
pub async fn leave(plane: &Plane, release: &RenderedRelease, owner: &Owner) -> CleanupState {
    let _turn = match plane.turn().await {
        Ok(turn) => turn,
        Err(unreachable) => {
            plane.wakes.troubled(&owner.uid, true);
            return CleanupState::Trouble(vec![unreachable.to_string()]);
        }
    };
    let OwnedObjects {
        held, blind, kinds, ..
    } = prune::holdings(plane, owner, &kinds(release)).await;
    let doomed = prune::stale(held, &Default::default());
    let mut left = Vec::new();
    let mut trouble: Vec<String> = blind.iter().map(Blind::to_string).collect();
    let mut unanswered = blind.iter().any(Blind::is_unreachable);
    for removal in prune::remove(plane, owner, doomed).await {
        match removal.gone {
            Ok(true) => {}
            Ok(false) => left.push(removal.held.identity),
            Err(error) => {
                unanswered |= error.is_unreachable();
                trouble.push(format!("{}: {error}", removal.held.identity));
            }
        }
    }
    if unanswered && let Err(unreachable) = plane.suspect().await {
        trouble.insert(0, unreachable.to_string());
    }
    plane.wakes.troubled(&owner.uid, !trouble.is_empty());
    if !trouble.is_empty() {
        return CleanupState::Trouble(trouble);
    }
    left.extend(inherited(plane, &kinds, release, owner));
    if !left.is_empty() {
        return CleanupState::Objects(left);
    }
    verify(plane, owner, kinds).await
}

/// Returns the objects of this RenderedRelease that are being deleted and still have the labels of a deleted
/// RenderedRelease of the same name. The controller could not apply these objects for this RenderedRelease,
/// so their labels do not name it.
fn inherited(
    plane: &Plane,
    kinds: &[Kind],
    release: &RenderedRelease,
    owner: &Owner,
) -> Vec<Identity> {
    let entries = release.status.iter().flat_map(|status| &status.resources);
    let found = entries.filter_map(|entry| {
        let identity = identity(entry);
        let is_it = |kind: &&Kind| {
            (&kind.resource.group, &kind.resource.kind) == (&identity.group, &identity.kind)
        };
        let watch = plane.watch(kinds.iter().find(is_it)?);
        let (live, _) = watch.get(&identity.namespace, &identity.name)?;
        let is_left = live.deleting && live.standing(owner, true) == Standing::Inherited;
        (is_left && !prune::is_namespace(&identity)).then_some(identity)
    });
    found.collect()
}

/// Lists the objects that still exist with requests to the data plane, because a watch may be behind.
async fn verify(plane: &Plane, owner: &Owner, kinds: Vec<Kind>) -> CleanupState {
    match prune::confirm(plane, owner, kinds).await {
        Ok(there) => {
            let left: Vec<Identity> = there
                .into_iter()
                .filter(|identity| !prune::is_namespace(identity))
                .collect();
            match left.is_empty() {
                true => CleanupState::Nothing,
                false => CleanupState::Objects(left),
            }
        }
        Err(blind) => CleanupState::Trouble(blind.iter().map(Blind::to_string).collect()),
    }
}
