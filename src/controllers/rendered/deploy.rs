//! Makes the objects of a data plane equal to the resources of a RenderedRelease: creates namespaces, applies
//! resources, and deletes stale objects. One such run is a pass. A failure does not stop the pass, so the
//! result contains all errors.

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

/// The state of one desired resource after the pass.
#[derive(Clone, Debug)]
pub struct Found {
    /// The id of the resource in the spec of the RenderedRelease.
    pub id: String,
    pub identity: Identity,
    /// The API version of the applied object.
    pub version: String,
    /// The live object and its health. None: it does not exist, or does not belong to the RenderedRelease.
    pub live: Option<(Arc<Live>, Verdict)>,
    /// The hash of the fields that this pass or an earlier one applied. None: the resource was never applied,
    /// or its object is being deleted.
    pub applied: Option<String>,
    /// The reason why the resource was not applied. None: there was no error.
    pub problem: Option<String>,
}

/// The result of deleting the stale objects of a RenderedRelease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pruned {
    /// The data plane has no stale objects any more.
    Done,
    /// The stale objects stay until all resources are applied.
    Waiting,
    /// The controller deletes nothing, because it cannot read the objects of these kinds.
    Blind(Vec<Blind>),
    /// The data plane is deleting the stale objects.
    Removing,
    /// Some stale objects could not be deleted. Contains the errors.
    Failed(Vec<String>),
}

/// The result of one pass over a RenderedRelease.
#[derive(Debug)]
pub struct Deployed {
    /// The state of each desired resource, in the order of the spec.
    pub found: Vec<Found>,
    /// The stale objects that the data plane still has.
    pub left: Vec<Held>,
    /// The result of deleting the stale objects.
    pub pruned: Pruned,
    /// The kinds (group, kind) whose live objects the controller knows completely.
    pub seen: BTreeSet<(String, String)>,
    /// Whether at least one request to the data plane got no answer.
    pub unanswered: bool,
}

/// Makes a data plane match a RenderedRelease. `namespace` is for namespaced resources whose manifest names
/// no namespace.
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
    // The RenderedRelease itself contains these namespaces, so they are applied like any other resource.
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

/// The stale objects that the data plane still has, and the result of deleting them.
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
    /// Reads the resources of the spec. Returns three values: the resources that can be applied, each with
    /// its index in the spec; the state of all resources so far; and whether a request got no answer.
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

    /// Creates the namespaces that the resources need. Leaves out a namespace that is itself a resource of
    /// the RenderedRelease, because the pass applies that namespace anyway.
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
        // After a start of the controller, one list of the kind is cheaper than one request per object.
        let watch = self.plane.watch(&desired.kind);
        let _ = watch.settled(self.plane.settings.deadline).await;
        match apply(self.plane, desired, self.owner, known, is_namespace_new).await {
            Ok(live) => Outcome {
                // While an object is being deleted, the controller does not apply it.
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

    /// Deletes the stale objects, if the controller can read the objects of all kinds.
    async fn prune(&self, found: &[Found]) -> Rest {
        let (plane, owner) = (self.plane, self.owner);
        let mut named = kinds(self.release);
        for resource in &self.release.spec.resources {
            // A kind of the spec that the data plane does not serve now may be served soon, so it may have
            // objects too.
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

/// Returns the identity of a resource, from its manifest and without discovery.
fn said(named: &Named<'_>) -> Identity {
    Identity {
        group: named.kind.group.clone(),
        kind: named.kind.kind.clone(),
        namespace: named.namespace.unwrap_or_default().to_owned(),
        name: named.name.to_owned(),
    }
}

/// A kind that the spec or the inventory of a RenderedRelease names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedKind {
    /// The API version of the kind that the RenderedRelease names.
    pub version: String,
    /// Whether the data plane may have objects of the kind, even if it does not serve the kind at the moment.
    /// False: by the inventory, no object of the kind was ever applied.
    pub may_have_objects: bool,
}

/// Returns the kinds that the spec and the inventory of a RenderedRelease name, by group and kind. If the
/// spec names another API version of a kind than the inventory, the result has the version of the spec,
/// because the data plane may no longer serve the old version.
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
        // An inventory entry without a hash and with unknown health is of a resource that was never applied.
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
