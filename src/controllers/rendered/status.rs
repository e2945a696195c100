//! Computes the status of a RenderedRelease after a pass: the inventory with the health of each resource, and
//! the conditions. Pure functions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::deploy::{Deployed, Found, Pruned};
use super::desired::identity;
use super::kinds::Blind;
use super::live::Live;
use super::prune::Held;
use crate::api::choreo::rendered::{Health, RenderedReleaseStatus, ResourceStatus};
use crate::api::condition::{self, Observation, Status};
use crate::engine::diff::Identity;

/// The maximum number of errors that a message names.
const LISTED: usize = 3;
/// The maximum length of one error text, in characters. Texts of a server can be much longer.
const CLIPPED: usize = 1_000;

/// The status, the reason and the message of a condition.
pub type Said = (Status, &'static str, String);

/// Computes the status of a RenderedRelease after a pass over the given generation of its spec.
pub fn after(
    before: &RenderedReleaseStatus,
    deployed: &Deployed,
    generation: Option<i64>,
    is_simulated: bool,
    now: Timestamp,
) -> RenderedReleaseStatus {
    let known: BTreeMap<Identity, &ResourceStatus> = before
        .resources
        .iter()
        .map(|entry| (identity(entry), entry))
        .collect();
    let wanted = deployed.found.iter().map(|found| {
        let known = known.get(&found.identity).copied();
        entry(found, known, now)
    });
    let left = deployed.left.iter().map(|held| {
        let known = known.get(&held.identity).copied();
        leaving(held, known, now)
    });
    // Keeps the entry of a resource that the pass did not read, because its object may still exist. Drops the
    // entry of a resource without a name or of a kind that the data plane never served, because that resource
    // was never applied.
    let is_unseen = |entry: &&ResourceStatus| {
        let identity = identity(entry);
        let kind = (entry.group.clone(), entry.kind.clone());
        !entry.name.is_empty()
            && !deployed.seen.contains(&kind)
            && !deployed
                .found
                .iter()
                .any(|found| found.identity == identity)
            && !deployed.left.iter().any(|held| held.identity == identity)
    };
    let unseen = before.resources.iter().filter(is_unseen).cloned();
    let mut status = RenderedReleaseStatus {
        observed_generation: generation,
        resources: wanted.chain(left).chain(unseen).collect(),
        conditions: before.conditions.clone(),
    };
    let wanted = deployed.found.len();
    let (current, _) = status.resources.split_at(wanted);
    let said = [
        (condition::APPLIED, applied(deployed)),
        (condition::PRUNED, pruned(&deployed.pruned, &deployed.left)),
        (condition::READY, ready(current, deployed)),
    ];
    for (type_, said) in said {
        set(&mut status.conditions, type_, said, generation, now);
    }
    let is_seen = |found: &Found| found.live.as_ref().is_some_and(|(live, _)| live.simulated);
    match is_simulated && deployed.found.iter().any(is_seen) {
        true => {
            let message = "an embedded data plane runs no pods; a simulator changes the status";
            let said = (
                Status::True,
                condition::EMBEDDED_DATA_PLANE,
                message.to_owned(),
            );
            let conditions = &mut status.conditions;
            set(conditions, condition::SIMULATED, said, generation, now);
        }
        false => status
            .conditions
            .retain(|condition| condition.type_ != condition::SIMULATED),
    }
    status
}

pub fn set(
    conditions: &mut Vec<Condition>,
    type_: &str,
    (status, reason, message): Said,
    generation: Option<i64>,
    now: Timestamp,
) {
    let observation = Observation {
        type_,
        status,
        reason,
        message,
        generation,
    };
    condition::set(conditions, observation, now);
}

/// Returns whether at least one resource has the health Progressing or Unknown.
pub fn is_moving(status: &RenderedReleaseStatus) -> bool {
    let moves =
        |entry: &ResourceStatus| matches!(entry.health, Health::Progressing | Health::Unknown);
    status.resources.iter().any(moves)
}

fn entry(found: &Found, known: Option<&ResourceStatus>, now: Timestamp) -> ResourceStatus {
    let (health, message) = match (&found.problem, &found.live) {
        // An older object of the resource may be healthy, but the failed apply is more important to the user.
        (Some(problem), _) => (Health::Unknown, Some(format!("was not applied: {problem}"))),
        (None, Some((_, verdict))) => (verdict.health, verdict.message.clone()),
        (None, None) => (Health::Unknown, None),
    };
    let before = || known.and_then(|known| known.status.clone());
    let status = match &found.live {
        Some((live, _)) => parsed(live),
        None => before(),
    };
    let Identity {
        group,
        kind,
        namespace,
        name,
    } = found.identity.clone();
    ResourceStatus {
        id: found.id.clone(),
        group,
        version: found.version.clone(),
        kind,
        name,
        namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
        last_observed_time: observed(&status, known, now),
        status,
        health,
        message,
        applied: found.applied.clone(),
    }
}

fn leaving(held: &Held, known: Option<&ResourceStatus>, now: Timestamp) -> ResourceStatus {
    let status = parsed(&held.live);
    let Identity {
        group,
        kind,
        namespace,
        name,
    } = held.identity.clone();
    let message = match held.live.deleting {
        true => "is stale and being deleted",
        false => "is stale",
    };
    ResourceStatus {
        id: known.map_or_else(|| held.live.labelled.id.clone(), |known| known.id.clone()),
        group,
        version: held.kind.resource.version.clone(),
        kind,
        name,
        namespace: Some(namespace).filter(|namespace| !namespace.is_empty()),
        last_observed_time: observed(&status, known, now),
        status,
        health: Health::Progressing,
        message: Some(message.to_owned()),
        applied: known.and_then(|known| known.applied.clone()),
    }
}

fn parsed(live: &Live) -> Option<crate::api::Object> {
    let text = live.status.as_deref()?;
    serde_json::from_str(text).ok()
}

/// Returns when the status of a resource was first seen: the time in the inventory entry `known` if the
/// status is unchanged, else `now`. Returns None if there is no status.
fn observed(
    status: &Option<crate::api::Object>,
    known: Option<&ResourceStatus>,
    now: Timestamp,
) -> Option<Time> {
    let same = known.filter(|known| known.status == *status);
    match same.and_then(|known| known.last_observed_time.clone()) {
        Some(time) => Some(time),
        None => status.is_some().then_some(Time(now)),
    }
}

fn applied(deployed: &Deployed) -> Said {
    let problems: Vec<String> = deployed
        .found
        .iter()
        .filter_map(|found| Some(format!("{}: {}", found.id, found.problem.as_ref()?)))
        .collect();
    let awaited: Vec<String> = deployed.found.iter().filter_map(awaited).collect();
    match problems.is_empty() {
        true if !awaited.is_empty() => (Status::False, condition::PROGRESSING, listed(&awaited)),
        true => {
            let message = match deployed.found.len() {
                0 => "no resources to apply".to_owned(),
                1 => "1 resource is applied".to_owned(),
                n => format!("{n} resources are applied"),
            };
            (Status::True, condition::RECONCILE_SUCCESS, message)
        }
        false => (Status::False, condition::APPLY_FAILED, listed(&problems)),
    }
}

/// Returns why a resource is not applied yet, although there was no error: its object is still being deleted.
/// Returns None if the resource is applied.
fn awaited(found: &Found) -> Option<String> {
    let (live, _) = found.live.as_ref()?;
    live.deleting.then(|| {
        format!(
            "{}: {} is being deleted; it is applied again when it is gone",
            found.id, found.identity
        )
    })
}

fn pruned(pruned: &Pruned, left: &[Held]) -> Said {
    let names = |left: &[Held]| {
        let names: Vec<String> = left.iter().map(|held| held.identity.to_string()).collect();
        listed(&names)
    };
    match pruned {
        Pruned::Done => {
            let message = "no stale resources".to_owned();
            (Status::True, condition::RECONCILE_SUCCESS, message)
        }
        Pruned::Waiting => {
            let message = match left {
                [] => "stale resources stay until all resources are applied".to_owned(),
                left => format!(
                    "these stale resources stay until all resources are applied: {}",
                    names(left)
                ),
            };
            (Status::False, condition::APPLY_FAILED, message)
        }
        Pruned::Blind(blind) => {
            let why: Vec<String> = blind.iter().map(Blind::to_string).collect();
            let message = format!("nothing is deleted: {}", listed(&why));
            (Status::Unknown, condition::LIVE_STATE_UNKNOWN, message)
        }
        Pruned::Removing => {
            let message = format!("being deleted: {}", names(left));
            (Status::False, condition::REMOVING, message)
        }
        Pruned::Failed(errors) => (Status::False, condition::DELETE_FAILED, listed(errors)),
    }
}

/// Returns the condition Ready. It is True if all resources of this generation are healthy. Stale objects do
/// not affect this condition.
fn ready(current: &[ResourceStatus], deployed: &Deployed) -> Said {
    if let (Status::False, reason, message) = applied(deployed) {
        return (Status::False, reason, message);
    }
    let worst = current.iter().map(|entry| entry.health).max();
    let of = |health: Health| {
        let such: Vec<&ResourceStatus> = current
            .iter()
            .filter(|entry| entry.health == health)
            .collect();
        let first = such.first().map(|entry| match &entry.message {
            Some(message) => format!("{}: {message}", entry.name),
            None => entry.name.clone(),
        });
        let first = first.unwrap_or_default();
        match such.len() {
            0 | 1 => first,
            n => format!("{first} (and {} more)", n - 1),
        }
    };
    match worst {
        Some(Health::Degraded) => (Status::False, condition::DEGRADED, of(Health::Degraded)),
        Some(Health::Unknown) => (
            Status::Unknown,
            condition::HEALTH_UNKNOWN,
            of(Health::Unknown),
        ),
        Some(Health::Progressing) => (
            Status::False,
            condition::PROGRESSING,
            of(Health::Progressing),
        ),
        worst => {
            let suspended = match worst {
                Some(Health::Suspended) => format!("; {}", of(Health::Suspended)),
                _ => String::new(),
            };
            let message = match current.len() {
                0 => "no resources to deploy".to_owned(),
                1 => format!("1 resource is healthy{suspended}"),
                n => format!("{n} resources are healthy{suspended}"),
            };
            (Status::True, condition::RECONCILE_SUCCESS, message)
        }
    }
}

/// Joins the first three errors to one text, and adds the number of the others.
pub fn listed(items: &[String]) -> String {
    let clipped = |item: &String| item.chars().take(CLIPPED).collect::<String>();
    let shown: Vec<String> = items.iter().take(LISTED).map(clipped).collect();
    let shown = shown.join("; ");
    match items.len().saturating_sub(LISTED) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
