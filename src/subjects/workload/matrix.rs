//! The cells of workloads in the matrix. A row is a kind and a name; a column is an environment or a namespace.

use std::sync::Arc;

use jiff::Timestamp;

use super::rows::{Revision, Row};
use crate::api;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::matrix::{Cell, Columns, Good, Health, Progress};
use crate::subjects::release_pin::rollout::Rollout;

/// Returns the column that shows the workloads of a namespace: the Environment that names the namespace, or else the
/// namespace itself.
pub fn column<'w>(world: &'w World, namespace: &'w Arc<str>) -> &'w str {
    let mut environments = world.environments_naming(namespace);
    environments.next().unwrap_or(namespace)
}

/// Returns the cell of a workload in a column; None if the namespace of the workload belongs to another
/// column.
pub fn cell<'w>(
    world: &'w World,
    columns: &Columns,
    key: &Key,
    at: usize,
    now: Timestamp,
) -> Option<Cell<'w>> {
    let row = world.workload(key)?;
    let name = columns.names().get(at)?;
    if column(world, &row.key.namespace) != &**name {
        return None;
    }
    let current = current(world, row);
    let health = health(row.health);
    let (ready, of) = row.pods;
    let fails = health != Health::Ready;
    Some(Cell {
        release: &row.images,
        version: &row.images,
        label: &row.images,
        told: health,
        missing: false,
        bad: current.is_some_and(|current| current.bad),
        progress: fails.then_some(Progress { ready, of }),
        reason: (fails && !row.why.is_empty()).then_some(("", &*row.why)),
        behind: None,
        holds: &row.holds,
        held: row.holds.iter().filter(|hold| hold.is_active(now)).count(),
        since: since(world, row),
        turned: None,
        gitops: row.gitops,
        wanted: None,
        good: good(world, row).map(|good| Good {
            release: &good.images,
            label: &good.label,
            revision: good.number,
            since: good.created,
            until: None,
        }),
    })
}

/// Returns the time since which a workload has its pod template: the time of bowline's record, or else the time that
/// Kubernetes knows. None if this time is unknown.
///
/// A time is wrong if another revision is later: then another program published the current revision again. Before
/// Kubernetes has given the current revision the highest number, its time is unknown.
fn since(world: &World, row: &Row) -> Option<Timestamp> {
    let current = current(world, row)?;
    let is_newest = |at: &Timestamp| {
        let mut all = world.workload_revisions(row);
        all.all(|revision| {
            let published = revision.published.unwrap_or(revision.created);
            let is_older = revision.number < current.number;
            revision.number == current.number || is_older && revision.created.max(published) <= *at
        })
    };
    let known = [row.published, current.published, row.rolled_out];
    known.into_iter().flatten().find(is_newest)
}

/// Returns the newest stored revision that has the workload's current template; None if it is not stored yet.
pub fn current<'w>(world: &'w World, row: &Row) -> Option<&'w Revision> {
    let mut newest = world.workload_revisions(row).rev();
    newest.find(|revision| revision.hash == row.hash)
}

/// Returns the revision that a rollback restores by default; None if there is none. It is the newest older revision
/// that has another template and is neither marked bad nor abandoned.
pub fn good<'w>(world: &'w World, row: &Row) -> Option<&'w Revision> {
    let newest = current(world, row).map_or(i64::MAX, |current| current.number);
    let mut older = world.workload_revisions(row).rev();
    older.find(|revision| {
        revision.number < newest
            && revision.hash != row.hash
            && !revision.bad
            && !row.abandoned.has(&revision.hash, revision.number)
    })
}

/// Returns the progress of a change that bowline made. `changes` is the number of that change in the annotation that
/// numbers bowline's changes.
pub fn rollout(row: &Row, changes: i64) -> Rollout {
    if row.changes < changes {
        return Rollout::Unseen;
    }
    if row.changes > changes {
        return Rollout::Replaced {
            by: row.changes,
            who: None,
            healthy: None,
        };
    }
    match health(row.health) {
        Health::Ready => Rollout::Ready,
        Health::Degraded | Health::Missing => Rollout::Failing(row.why.to_string()),
        Health::Progressing | Health::Unknown => Rollout::Moving(row.why.to_string()),
    }
}

fn health(health: api::choreo::rendered::Health) -> Health {
    match health {
        api::choreo::rendered::Health::Healthy | api::choreo::rendered::Health::Suspended => {
            Health::Ready
        }
        api::choreo::rendered::Health::Progressing => Health::Progressing,
        api::choreo::rendered::Health::Degraded => Health::Degraded,
        api::choreo::rendered::Health::Unknown => Health::Unknown,
    }
}
