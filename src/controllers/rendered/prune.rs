//! Finds and deletes the stale objects of a RenderedRelease in a data plane.
//!
//! The controller deletes an object only if it can read the objects of every relevant kind, and if the object
//! certainly belongs to the RenderedRelease. Each deletion has the uid and the resourceVersion as
//! preconditions. The controller never deletes a namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use kube::core::GroupVersionKind;

use super::deploy::NamedKind;
use super::kinds::{Blind, Kind, WELL_KNOWN};
use super::live::{Live, Owner};
use super::plane::{Plane, RequestError};
use crate::engine::diff::Identity;

/// The maximum number of attempts to delete an object that other writers keep changing.
const ATTEMPTS: usize = 4;

/// A live object that belongs to a RenderedRelease.
#[derive(Clone, Debug)]
pub struct Held {
    pub kind: Kind,
    pub identity: Identity,
    /// The summary of the live object.
    pub live: Arc<Live>,
}

/// The live objects of a RenderedRelease in one data plane, and the kinds that could not be read.
#[derive(Debug, Default)]
pub struct OwnedObjects {
    /// The objects that certainly belong to the RenderedRelease.
    pub held: Vec<Held>,
    /// The kinds whose objects the controller cannot read.
    pub blind: Vec<Blind>,
    /// The kinds whose objects the controller has read.
    pub kinds: Vec<Kind>,
    /// The kinds (group, kind) that the data plane does not serve and that were never applied.
    pub absent: Vec<(String, String)>,
}

/// Finds the live objects of a RenderedRelease. Searches the kinds in `named` and the well-known kinds.
pub async fn holdings(
    plane: &Plane,
    owner: &Owner,
    named: &BTreeMap<(String, String), NamedKind>,
) -> OwnedObjects {
    let mut wanted = named.clone();
    for (group, version, kind) in WELL_KNOWN {
        let kind = ((*group).to_owned(), (*kind).to_owned());
        wanted.entry(kind).or_insert_with(|| NamedKind {
            version: (*version).to_owned(),
            may_have_objects: false,
        });
    }
    let asked = wanted.iter().map(|((group, kind), named)| async move {
        let wanted = GroupVersionKind::gvk(group, &named.version, kind);
        let served = plane.kind(&wanted).await?;
        let watch = plane.watch(&served);
        let settled = watch.settled(plane.settings.deadline).await;
        if let Err(Blind::NotServed { .. }) = settled {
            plane.doubt(&served);
        }
        settled.map(|()| watch)
    });
    let answers: Vec<_> = futures::future::join_all(asked).await;
    let mut holdings = OwnedObjects::default();
    for ((kind, named), answer) in wanted.iter().zip(answers) {
        match answer {
            // The data plane does not serve the kind, for example routes. No object of the kind was ever
            // applied, so it cannot have stale objects.
            Err(Blind::NotServed { .. }) if !named.may_have_objects => {
                holdings.absent.push(kind.clone());
            }
            Err(blind) => holdings.blind.push(blind),
            Ok(watch) => {
                let resource = &watch.kind.resource;
                for (namespace, name, live) in watch.labelled(&owner.uid) {
                    let identity = Identity {
                        group: resource.group.clone(),
                        kind: resource.kind.clone(),
                        namespace,
                        name,
                    };
                    let kind = watch.kind.clone();
                    holdings.held.push(Held {
                        kind,
                        identity,
                        live,
                    });
                }
                holdings.kinds.push(watch.kind.clone());
            }
        }
    }
    holdings.held.retain(|held| held.live.is_of(owner));
    holdings.held.sort_by(|a, b| a.identity.cmp(&b.identity));
    holdings
}

/// Lists the objects of a RenderedRelease by requests to the data plane, because a watch may be behind. The
/// controller deletes only objects that both the watch and this list contain.
pub async fn confirm(
    plane: &Plane,
    owner: &Owner,
    kinds: Vec<Kind>,
) -> Result<BTreeSet<Identity>, Vec<Blind>> {
    for kind in &kinds {
        plane.doubt(kind);
    }
    let mut blind = Vec::new();
    let mut served = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let resource = &kind.resource;
        let wanted = GroupVersionKind::gvk(&resource.group, &resource.version, &resource.kind);
        match plane.kind(&wanted).await {
            Ok(kind) => served.push(kind),
            Err(why) => blind.push(why),
        }
    }
    let lists = futures::stream::iter(served);
    let lists = lists.map(|kind| async move { plane.list(&kind, owner).await });
    let mut lists = lists.buffer_unordered(plane.settings.requests);
    let mut there = BTreeSet::new();
    while let Some(list) = lists.next().await {
        match list {
            Ok(found) => there.extend(found),
            Err(why) => blind.push(why),
        }
    }
    match blind.is_empty() {
        true => Ok(there),
        false => Err(blind),
    }
}

/// Returns the stale objects of `held`: those that are not in `wanted`. Leaves out namespaces.
pub fn stale(held: Vec<Held>, wanted: &BTreeSet<Identity>) -> Vec<Held> {
    held.into_iter()
        .filter(|held| !wanted.contains(&held.identity) && !is_namespace(&held.identity))
        .collect()
}

/// Returns whether an object is a namespace. The controller never deletes a namespace, because that would
/// delete everything in the namespace.
pub fn is_namespace(identity: &Identity) -> bool {
    identity.group.is_empty() && identity.kind == "Namespace"
}

/// The result of the deletion of one object.
pub struct Removal {
    pub held: Held,
    /// True if the object is gone, false if its deletion is still in progress.
    pub gone: Result<bool, RequestError>,
}

/// Deletes objects. An object that is already being deleted needs no request.
pub async fn remove(plane: &Plane, owner: &Owner, objects: Vec<Held>) -> Vec<Removal> {
    let removals = futures::stream::iter(objects).map(|held| async move {
        let gone = match held.live.deleting {
            true => Ok(false),
            false => remove_one(plane, owner, &held).await,
        };
        Removal { held, gone }
    });
    let removals = removals.buffer_unordered(plane.settings.requests);
    removals.collect().await
}

async fn remove_one(plane: &Plane, owner: &Owner, held: &Held) -> Result<bool, RequestError> {
    let (kind, identity) = (&held.kind, &held.identity);
    let mut live = held.live.clone();
    let mut attempt = 1;
    loop {
        match plane.delete(kind, identity, &live).await {
            // The object changed since the controller read it, so the owner is checked again.
            Err(error) if error.code() == Some(409) && attempt < ATTEMPTS => {}
            answer => return answer,
        }
        attempt += 1;
        match plane.read(kind, identity).await? {
            Some(now) if now.uid == live.uid && now.is_of(owner) => {
                if now.deleting {
                    return Ok(false);
                }
                live = now;
            }
            // The object is gone, was replaced, or now belongs to another owner.
            _ => {
                plane
                    .watch(kind)
                    .unlearn(&identity.namespace, &identity.name, &live.uid);
                return Ok(true);
            }
        }
    }
}
