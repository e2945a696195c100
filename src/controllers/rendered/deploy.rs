//! One pass over the resources of a RenderedRelease: creates namespaces, applies resources, and deletes stale
//! objects. A failure does not stop the pass; the result contains all errors.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use kube::core::GroupVersionKind;

use super::apply::{ApplyError, apply};
use super::causes;
use super::desired::{self, Desired, Named, identity};
use super::kinds::{Blind, WELL_KNOWN};
use super::live::{Live, Owner};
use super::namespaces;
use super::plane::Plane;
use super::prune::{self, Held, is_namespace};
use crate::api::choreo::rendered::{Health, RenderedRelease, ResourceStatus};
use crate::engine::diff::Identity;
use crate::engine::health::Verdict;

/// The state of a desired resource after the pass.
#[derive(Clone, Debug)]
pub struct Found {
    /// The id of the resource in the RenderedRelease.
    pub id: String,
    pub identity: Identity,
    /// The API version that was applied.
    pub version: String,
    /// The live object and its health, if it exists and belongs to the RenderedRelease.
    pub live: Option<(Arc<Live>, Verdict)>,
    /// The hash of the applied fields, of this pass or of an earlier one.
    pub applied: Option<String>,
    /// The reason why the resource was not applied. None: there was no problem.
    pub problem: Option<String>,
}

/// The result of the deletion of stale objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pruned {
    /// No stale object is left.
    Done,
    /// The deletion waits until all resources are applied.
    Waiting,
    /// Nothing is deleted, because the objects of these kinds cannot be read.
    Blind(Vec<Blind>),
    /// Stale objects are being deleted.
    Removing,
    /// Some stale objects could not be deleted.
    Failed(Vec<String>),
}

/// The result of a pass.
#[derive(Debug)]
pub struct Deployed {
    /// The desired resources, in the order of the spec.
    pub found: Vec<Found>,
    /// The stale objects that still exist.
    pub left: Vec<Held>,
    /// The result of the deletion of the stale objects.
    pub pruned: Pruned,
    /// The kinds whose live objects are all known, by group and kind.
    pub seen: BTreeSet<(String, String)>,
    /// Whether the data plane did not answer at least one request.
    pub unanswered: bool,
}

/// Makes a data plane match a RenderedRelease. `namespace` is the default for namespaced objects whose
/// manifest names none.
pub async fn deploy(
    plane: &Plane,
    release: &RenderedRelease,
    owner: &Owner,
    namespace: &str,
) -> Deployed {
    let pass = Pass {
        plane,
        release,
        owner,
    };
    let (wanted, mut found, mut unanswered) = pass.wanted(namespace).await;
    // A namespace that is itself a resource of the RenderedRelease is applied like any other resource.
    let (brought, others): (Vec<_>, Vec<_>) = wanted
        .into_iter()
        .partition(|(_, desired)| is_namespace(&desired.identity));
    let spaces = pass.spaces(&brought, &others).await;
    let failures = spaces.failed.iter();
    unanswered |= failures.clone().any(|(_, error)| error.is_unreachable());
    let failed: BTreeMap<&str, String> = failures
        .map(|(name, error)| (name.as_str(), format!("namespace {name}: {error}")))
        .collect();
    for group in [brought, others] {
        for (at, outcome) in pass.apply(group, &spaces.made, &failed).await {
            unanswered |= outcome.unanswered;
            if let Some(found) = found.get_mut(at) {
                outcome.put_into(found);
            }
        }
    }
    let rest = match unanswered {
        // The data plane does not answer, so the pass sends no more requests.
        true => Rest::unseen(),
        false => pass.prune(&found).await,
    };
    Deployed {
        found,
        left: rest.left,
        pruned: rest.pruned,
        seen: rest.seen,
        unanswered: unanswered || rest.unanswered,
    }
}

/// The stale objects that still exist, and the result of their deletion.
struct Rest {
    left: Vec<Held>,
    pruned: Pruned,
    seen: BTreeSet<(String, String)>,
    unanswered: bool,
}

impl Rest {
    fn unseen() -> Self {
        Self {
            left: Vec::new(),
            pruned: Pruned::Waiting,
            seen: BTreeSet::new(),
            unanswered: false,
        }
    }
}

struct Pass<'a> {
    plane: &'a Plane,
    release: &'a RenderedRelease,
    owner: &'a Owner,
}

/// The result of applying one resource.
struct Outcome {
    live: Option<(Arc<Live>, Verdict)>,
    applied: Option<String>,
    problem: Option<String>,
    unanswered: bool,
}

impl Outcome {
    fn put_into(self, found: &mut Found) {
        found.live = self.live;
        found.applied = self.applied;
        found.problem = self.problem;
    }
}

impl Pass<'_> {
    /// Reads the spec. Returns the resources that can be applied (each with its index), the state of all
    /// resources so far, and whether a request got no answer.
    async fn wanted(&self, namespace: &str) -> (Vec<(usize, Desired)>, Vec<Found>, bool) {
        let mut wanted = Vec::new();
        let mut all = Vec::new();
        let mut unanswered = false;
        let mut seen: BTreeMap<Identity, String> = BTreeMap::new();
        for (at, resource) in self.release.spec.resources.iter().enumerate() {
            let mut found = Found {
                id: resource.id.clone(),
                identity: Identity::default(),
                version: String::new(),
                live: None,
                applied: None,
                problem: None,
            };
            match desired::named(resource) {
                Err(why) => found.problem = Some(why),
                Ok(named) => {
                    found.version = named.kind.version.clone();
                    found.identity = said(&named);
                    match self.plane.kind(&named.kind).await {
                        Err(blind) => {
                            unanswered |= blind.is_unreachable();
                            found.problem = Some(blind.to_string());
                            let mut inventory = self.inventory();
                            let known = inventory.find(|(known, _)| *known == found.identity);
                            found.applied = known.and_then(|(_, known)| known.applied.clone());
                        }
                        Ok(kind) => {
                            let desired = desired::desired(&named, &kind, namespace, self.owner);
                            found.identity = desired.identity.clone();
                            match seen.insert(desired.identity.clone(), resource.id.clone()) {
                                None => wanted.push((at, desired)),
                                Some(first) => {
                                    let why = format!("resource {first} is the same object");
                                    found.problem = Some(why);
                                }
                            }
                        }
                    }
                }
            }
            all.push(found);
        }
        (wanted, all, unanswered)
    }

    /// Creates the namespaces of the resources, except those that are resources of the RenderedRelease
    /// themselves.
    async fn spaces(
        &self,
        brought: &[(usize, Desired)],
        others: &[(usize, Desired)],
    ) -> namespaces::Namespaces {
        let is_brought = |name: &str| {
            let mut brought = brought.iter();
            brought.any(|(_, desired)| desired.identity.name == name)
        };
        let used = others
            .iter()
            .map(|(_, desired)| desired.identity.namespace.clone())
            .filter(|name| !name.is_empty() && !is_brought(name))
            .collect();
        namespaces::ensure(self.plane, used, self.owner, &self.release.spec).await
    }

    async fn apply(
        &self,
        group: Vec<(usize, Desired)>,
        made: &BTreeSet<String>,
        failed: &BTreeMap<&str, String>,
    ) -> Vec<(usize, Outcome)> {
        let inventory: BTreeMap<Identity, &ResourceStatus> = self.inventory().collect();
        let inventory = &inventory;
        let applied = futures::stream::iter(group).map(|(at, desired)| async move {
            let known = inventory.get(&desired.identity).copied();
            let namespace = desired.identity.namespace.as_str();
            let outcome = match failed.get(namespace) {
                Some(why) => not_applied(known, why.clone(), false),
                None => {
                    let is_new = made.contains(namespace);
                    self.apply_one(&desired, known, is_new).await
                }
            };
            (at, outcome)
        });
        let applied = applied.buffer_unordered(self.plane.settings.requests);
        applied.collect().await
    }

    async fn apply_one(
        &self,
        desired: &Desired,
        known: Option<&ResourceStatus>,
        is_namespace_new: bool,
    ) -> Outcome {
        // After a start of the controller, waiting for one list is cheaper than one request per object.
        let watch = self.plane.watch(&desired.kind);
        let _ = watch.settled(self.plane.settings.deadline).await;
        match apply(self.plane, desired, self.owner, known, is_namespace_new).await {
            Ok(live) => Outcome {
                // An object that is being deleted was not applied.
                applied: match live.deleting {
                    true => None,
                    false => desired.applied(&live),
                },
                live: Some((
                    live.clone(),
                    causes::verdict(self.plane, desired, &live).await,
                )),
                problem: None,
                unanswered: false,
            },
            Err(error) => {
                let unanswered =
                    matches!(&error, ApplyError::Request(error) if error.is_unreachable());
                not_applied(known, error.to_string(), unanswered)
            }
        }
    }

    fn inventory(&self) -> impl Iterator<Item = (Identity, &ResourceStatus)> {
        let entries = self.release.status.iter();
        let entries = entries.flat_map(|status| &status.resources);
        entries.map(|entry| (identity(entry), entry))
    }

    /// Deletes stale objects, if the objects of all kinds can be read.
    async fn prune(&self, found: &[Found]) -> Rest {
        let (plane, owner) = (self.plane, self.owner);
        let mut named = kinds(self.release);
        for resource in &self.release.spec.resources {
            // The data plane may soon serve a kind that it does not serve now. So every kind of the spec
            // counts as a kind that may have objects.
            if let Ok(wanted) = desired::named(resource)
                && let Some(kind) = named.get_mut(&(wanted.kind.group, wanted.kind.kind))
            {
                kind.may_have_objects = true;
            }
        }
        let holdings = prune::holdings(plane, owner, &named).await;
        let wanted: BTreeSet<Identity> = found.iter().map(|found| found.identity.clone()).collect();
        let mut rest = Rest {
            left: prune::stale(holdings.held, &wanted),
            pruned: Pruned::Done,
            seen: holdings
                .kinds
                .iter()
                .map(|kind| (kind.resource.group.clone(), kind.resource.kind.clone()))
                .chain(holdings.absent)
                .collect(),
            unanswered: holdings.blind.iter().any(Blind::is_unreachable),
        };
        if !holdings.blind.is_empty() {
            rest.pruned = Pruned::Blind(holdings.blind);
            return rest;
        }
        // A stale object stays until all resources are applied, because its replacement may not exist yet.
        if !rest.left.is_empty() && found.iter().any(|found| found.problem.is_some()) {
            rest.pruned = Pruned::Waiting;
            return rest;
        }
        if rest.left.iter().any(|held| !held.live.deleting) {
            match prune::confirm(plane, owner, holdings.kinds).await {
                Ok(there) => rest.left.retain(|held| there.contains(&held.identity)),
                Err(blind) => {
                    rest.unanswered = blind.iter().any(Blind::is_unreachable);
                    rest.pruned = Pruned::Blind(blind);
                    return rest;
                }
            }
        }
        let stale = std::mem::take(&mut rest.left);
        let mut failed = Vec::new();
        for removal in prune::remove(plane, owner, stale).await {
            match removal.gone {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    rest.unanswered |= error.is_unreachable();
                    failed.push(format!("{}: {error}", removal.held.identity));
                }
            }
            rest.left.push(removal.held);
        }
        rest.pruned = match (rest.left.is_empty(), failed.is_empty()) {
            (true, _) => Pruned::Done,
            (false, true) => Pruned::Removing,
            (false, false) => Pruned::Failed(failed),
        };
        rest
    }
}

fn not_applied(known: Option<&ResourceStatus>, why: String, unanswered: bool) -> Outcome {
    Outcome {
        live: None,
        applied: known.and_then(|known| known.applied.clone()),
        problem: Some(why),
        unanswered,
    }
}

/// Returns the identity of a resource from its manifest, without discovery.
fn said(named: &Named<'_>) -> Identity {
    Identity {
        group: named.kind.group.clone(),
        kind: named.kind.kind.clone(),
        namespace: named.namespace.unwrap_or_default().to_owned(),
        name: named.name.to_owned(),
    }
}

/// A kind that a RenderedRelease uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKind {
    /// The API version that the RenderedRelease uses.
    pub version: String,
    /// Whether the data plane may have objects of the kind although it does not serve the kind at the moment.
    /// False: by the inventory, no object of the kind was ever applied.
    pub may_have_objects: bool,
}

/// Returns the kinds in the spec and the inventory of a RenderedRelease, by group and kind. If the two name
/// different API versions of a kind, the version of the spec is used: the data plane may no longer serve the
/// old one.
pub fn kinds(release: &RenderedRelease) -> BTreeMap<(String, String), NamedKind> {
    let mut named: BTreeMap<(String, String), NamedKind> = BTreeMap::new();
    for entry in release.status.iter().flat_map(|status| &status.resources) {
        let kind = (entry.group.clone(), entry.kind.clone());
        let mut well_known = WELL_KNOWN.iter();
        let known = well_known.find(|(group, _, name)| (*group, *name) == (&kind.0, &kind.1));
        let version = known.map_or(entry.version.as_str(), |(_, version, _)| version);
        if version.is_empty() {
            continue;
        }
        // An inventory entry of a resource that was never applied has no hash and unknown health.
        let may_have_objects = entry.applied.is_some() || entry.health != Health::Unknown;
        let found = named.entry(kind).or_insert_with(|| NamedKind {
            version: String::new(),
            may_have_objects: false,
        });
        found.version = version.to_owned();
        found.may_have_objects |= may_have_objects;
    }
    for resource in &release.spec.resources {
        if let Ok(found) = desired::named(resource) {
            let GroupVersionKind {
                group,
                version,
                kind,
            } = found.kind;
            let entry = named.entry((group, kind)).or_insert_with(|| NamedKind {
                version: String::new(),
                may_have_objects: false,
            });
            entry.version = version;
        }
    }
    named
}
