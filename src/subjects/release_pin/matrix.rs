//! Computes the matrix of components and environments: its columns and its cells.
//!
//! All front ends and outputs use these functions. A cell borrows from the read model, so the terminal UI can build
//! the cells on the screen again for every frame. [`super::past`] builds the same cells for a past time.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;

use super::actions::rollback;
use crate::api::condition;
use crate::api::hold::Hold;
use crate::api::openchoreo::environment::PipelineFault;
use crate::api::openchoreo::release::Verdict;
use crate::engine::ownership::GitOps;
use crate::engine::production;
use crate::engine::world::{Freshness, Key, Source, World};
use crate::subjects::release_pin::rows::{Move, Pin};

/// The columns of the matrix, one per environment: first those of the pipeline in its order, then the others by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Columns {
    names: Vec<Arc<str>>,
    lanes: BTreeMap<Arc<str>, NamespaceColumns>,
}

/// The properties of each column in one namespace, such as whether it is production.
#[derive(Clone, Debug, Default, PartialEq)]
struct NamespaceColumns {
    /// For each column, the index of the first column with a promotion path to it; None if no path leads to the
    /// column.
    before: Vec<Option<usize>>,
    production: Vec<bool>,
    first: Vec<bool>,
    fault: Option<PipelineFault>,
}

impl Columns {
    /// Returns the columns of the matrix for one namespace; for all namespaces if `namespace` is None.
    ///
    /// If a pipeline has a cycle, its environments are sorted by name. If a namespace has several pipelines, the
    /// first by name is used. [`Columns::faults`] reports such a cycle and such a namespace.
    pub fn of(world: &World, namespace: Option<&str>) -> Self {
        Self::including(world, namespace, std::iter::empty())
    }

    /// Returns the columns like [`Columns::of`], and adds environments that the read model does not have.
    pub fn including<'n>(
        world: &World,
        namespace: Option<&str>,
        more: impl Iterator<Item = &'n str>,
    ) -> Self {
        let mut namespaces = world.namespaces();
        namespaces.retain(|known| namespace.is_none_or(|wanted| wanted == &***known));
        let mut columns = Self::default();
        let mut others = Vec::new();
        for namespace in &namespaces {
            let pipeline = world.pipeline(namespace);
            if let Some(Ok(order)) = pipeline.map(|pipeline| pipeline.order()) {
                columns.add(order.into_iter());
            }
            others.extend(world.environment_names(namespace));
            // A ReleasePin may name an environment that does not exist. It gets a column too, so that the matrix
            // shows the ReleasePin.
            let pinned = world.pinned_environments(namespace).into_iter();
            others.extend(pinned.map(|name| name.to_string()));
        }
        columns.add(others.iter().map(String::as_str));
        columns.add(more);
        for namespace in namespaces {
            let lane = columns.lane(world, namespace);
            columns.lanes.insert(Arc::clone(namespace), lane);
        }
        columns
    }

    fn add<'n>(&mut self, names: impl Iterator<Item = &'n str>) {
        for name in names {
            if self.position(name).is_none() {
                self.names.push(name.into());
            }
        }
    }

    fn lane(&self, world: &World, namespace: &Arc<str>) -> NamespaceColumns {
        let pipeline = world.pipeline(namespace);
        let firsts = pipeline.map(|pipeline| pipeline.first_environments());
        let before = self.names.iter().map(|to| {
            let pipeline = pipeline?;
            self.names
                .iter()
                .position(|from| pipeline.is_path(from, to))
        });
        let production = self.names.iter().map(|name| {
            let key = Key {
                namespace: Arc::clone(namespace),
                name: Arc::clone(name),
            };
            let environment = world.environment(&key);
            environment.map_or_else(
                || production::is_production(name),
                |environment| environment.spec.is_production,
            )
        });
        let first = self.names.iter().map(|name| {
            let firsts = firsts.as_ref();
            firsts.is_some_and(|firsts| firsts.contains(&&**name))
        });
        NamespaceColumns {
            before: before.collect(),
            production: production.collect(),
            first: first.collect(),
            fault: world.pipeline_fault(namespace),
        }
    }

    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// Returns the index of the column of an environment; None if no column shows it.
    pub fn position(&self, environment: &str) -> Option<usize> {
        self.names.iter().position(|name| **name == *environment)
    }

    /// Returns the column with a promotion path to `column` in a namespace. If there are several, returns the first;
    /// if there is none, None.
    pub fn before(&self, namespace: &str, column: usize) -> Option<usize> {
        *self.lanes.get(namespace)?.before.get(column)?
    }

    /// Returns whether a column is a production environment in a namespace.
    pub fn is_production(&self, namespace: &str, column: usize) -> bool {
        let lane = self.lanes.get(namespace);
        lane.is_some_and(|lane| lane.production.get(column) == Some(&true))
    }

    /// Returns whether a column is a first environment of the pipeline of a namespace.
    pub fn is_first(&self, namespace: &str, column: usize) -> bool {
        let lane = self.lanes.get(namespace);
        lane.is_some_and(|lane| lane.first.get(column) == Some(&true))
    }

    pub fn faults(&self) -> impl Iterator<Item = &PipelineFault> {
        self.lanes.values().filter_map(|lane| lane.fault.as_ref())
    }
}

/// The health of a ReleasePin, ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    Ready,
    /// The controller has not reported the health of the effective release.
    Unknown,
    /// The rollout has not ended.
    Progressing,
    /// The effective release does not exist.
    Missing,
    Degraded,
}

impl Health {
    /// All values of the health, from best to worst.
    pub const ALL: [Health; 5] = [
        Self::Ready,
        Self::Unknown,
        Self::Progressing,
        Self::Missing,
        Self::Degraded,
    ];

    /// Returns the health that the Ready condition of a ReleasePin reports. Returns Unknown if the condition is about
    /// another release than the one effective at `now`.
    pub fn told(pin: &Pin, now: Timestamp) -> Self {
        match pin.judged(now) {
            Some(ready) if &*ready.status == "True" => Self::Ready,
            Some(ready) if &*ready.reason == condition::PROGRESSING => Self::Progressing,
            Some(ready) if &*ready.status == "False" => Self::Degraded,
            _ => Self::Unknown,
        }
    }

    /// Returns the health as text for the user.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Unknown => "Unknown",
            Self::Progressing => "Progressing",
            Self::Missing => "Missing",
            Self::Degraded => "Degraded",
        }
    }

    /// Returns whether this health is a fault that somebody must repair.
    pub fn is_fault(self) -> bool {
        matches!(self, Self::Missing | Self::Degraded)
    }
}

/// How many replicas of a rollout are ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub ready: u32,
    pub of: u32,
}

impl Progress {
    /// Parses the progress from a message that contains a text like `2 of 5 ready`; None if there is no such text.
    pub fn find(message: &str) -> Option<Self> {
        message.match_indices(" of ").find_map(|(at, words)| {
            let before = message.get(..at)?;
            let figures = before.trim_end_matches(|c: char| c.is_ascii_digit());
            let ready = before.get(figures.len()..)?.parse().ok()?;
            let after = message.get(at + words.len()..)?;
            let (of, rest) = after.split_once(' ')?;
            let of = of.parse().ok()?;
            rest.starts_with("ready").then_some(Self { ready, of })
        })
    }
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ready, self.of)
    }
}

/// The last good release in an environment, which a rollback restores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Good<'a> {
    pub release: &'a str,
    /// The short name of the last good release, as the matrix shows it.
    pub label: &'a str,
    /// The revision of the ReleasePin that made this release effective.
    pub revision: i64,
    /// The time at which that revision became current.
    pub since: Timestamp,
    /// The time at which another revision replaced that revision; None if none has.
    pub until: Option<Timestamp>,
}

/// A cell of the matrix: the effective release of a component in an environment, with its health and holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell<'a> {
    /// The name of the effective release.
    pub release: &'a str,
    /// The version of the effective release. If the release has no version, its name.
    pub version: &'a str,
    /// The short name of the effective release: its version, or its name without the component.
    pub label: &'a str,
    /// The health of the effective release that the controller reports.
    pub told: Health,
    /// Whether the effective release does not exist.
    pub missing: bool,
    /// Whether a user marked the effective release bad.
    pub bad: bool,
    /// How many replicas are ready. None if the ReleasePin is ready, or if the controller reports no numbers.
    pub progress: Option<Progress>,
    /// The reason and the message of a failed Ready condition; None if the ReleasePin has not failed.
    pub reason: Option<(&'a str, &'a str)>,
    /// How many releases the previous environment is ahead. None if the component is not deployed there, or if one of
    /// the two releases does not exist.
    pub behind: Option<usize>,
    /// All holds of the ReleasePin, including the expired ones.
    pub holds: &'a [Hold],
    /// The number of active holds.
    pub held: usize,
    /// The time at which the release became effective; None if it is unknown.
    pub since: Option<Timestamp>,
    /// The time at which the Ready condition changed last; None if the condition is about another release.
    pub turned: Option<Timestamp>,
    /// The GitOps tool that owns the ReleasePin; None if no tool owns it.
    pub gitops: Option<GitOps>,
    /// The release that the releaseRef names, if a hold makes another release effective; otherwise None.
    pub wanted: Option<&'a str>,
    /// The last good release. None if there is none, or if [`glance`] built the cell, because it leaves this out.
    pub good: Option<Good<'a>>,
}

impl Cell<'_> {
    /// Returns the health to show: Missing if the effective release does not exist; otherwise the health that the
    /// controller reports.
    pub fn health(&self) -> Health {
        match self.missing {
            true => Health::Missing,
            false => self.told,
        }
    }

    pub fn expired(&self) -> usize {
        self.holds.len().saturating_sub(self.held)
    }

    /// Returns the time at which the effective release or its health changed last; None if it is unknown.
    pub fn changed(&self) -> Option<Timestamp> {
        self.since.max(self.turned)
    }
}

/// Returns the cell of a component in a column; None if the component is not deployed there.
pub fn cell<'w>(
    world: &'w World,
    columns: &Columns,
    component: &Key,
    column: usize,
    now: Timestamp,
) -> Option<Cell<'w>> {
    let environment = columns.names.get(column)?;
    let pin = world.pin_of(component, environment)?;
    let mut cell = glance(world, columns, component, column, pin, now);
    cell.good = good(world, pin, now);
    Some(cell)
}

/// Returns a cell without the last good release, because that release is slow to compute.
pub fn glance<'w>(
    world: &'w World,
    columns: &Columns,
    component: &Key,
    column: usize,
    pin: &'w Pin,
    now: Timestamp,
) -> Cell<'w> {
    let release = pin.effective_release(now);
    let named = Named::of(world, component, release);
    let before = columns.before(&component.namespace, column);
    let before = before.and_then(|before| columns.names.get(before));
    let ahead = before.and_then(|before| world.pin_of(component, before));
    let told = Health::told(pin, now);
    let ready = pin.judged(now);
    Cell {
        release,
        version: named.version.unwrap_or(release),
        label: named.label,
        told,
        missing: named.missing,
        bad: named.bad,
        progress: ready
            .filter(|_| told != Health::Ready)
            .and_then(|ready| Progress::find(&ready.message)),
        behind: ahead.and_then(|ahead| world.behind(pin, ahead, now)),
        holds: &pin.holds,
        held: pin.active_holds(now).count(),
        since: since(&pin.moves, release),
        reason: ready
            .filter(|_| told == Health::Degraded)
            .map(|ready| (&*ready.reason, &*ready.message)),
        turned: ready.map(|ready| ready.since),
        gitops: pin.gitops,
        wanted: (*pin.release != *release).then_some(&*pin.release),
        good: None,
    }
}

/// Returns the cells of a component, one per column. A cell is None if the component is not deployed there.
pub fn row<'w>(
    world: &'w World,
    columns: &Columns,
    component: &Key,
    now: Timestamp,
) -> Vec<Option<Cell<'w>>> {
    let all = 0..columns.names.len();
    all.map(|column| cell(world, columns, component, column, now))
        .collect()
}

/// Returns the last good release of a ReleasePin; None if there is none.
pub fn good<'w>(world: &'w World, pin: &'w Pin, now: Timestamp) -> Option<Good<'w>> {
    let found = rollback::last_good(world, pin, now)?;
    let component = Key {
        namespace: pin.key.namespace.clone(),
        name: pin.component.clone(),
    };
    Some(Good {
        release: &found.release,
        label: Named::of(world, &component, &found.release).label,
        revision: found.generation,
        since: found.since,
        until: found.until,
    })
}

/// Returns the short name of a release: its version, or its name without the component.
pub fn label<'w>(world: &'w World, component: &Key, release: &'w str) -> &'w str {
    Named::of(world, component, release).label
}

/// What the read model knows about a release name. The release itself may not exist.
pub(super) struct Named<'w> {
    pub(super) version: Option<&'w str>,
    pub(super) label: &'w str,
    pub(super) missing: bool,
    pub(super) bad: bool,
}

impl<'w> Named<'w> {
    pub(super) fn of(world: &'w World, component: &Key, release: &'w str) -> Self {
        let row = world.release(&Key {
            namespace: component.namespace.clone(),
            name: release.into(),
        });
        let version = row.and_then(|row| row.version.as_deref());
        // Until the first list of releases is complete, a release that is not in it does not count as missing.
        let listed = *world.freshness(Source::RELEASES) != Freshness::Loading;
        Self {
            version,
            label: version.unwrap_or_else(|| short(release, &component.name)),
            missing: row.is_none() && listed,
            bad: row.is_some_and(|row| row.mark == Some(Verdict::Bad)),
        }
    }
}

/// Returns the name of a release without the name of its component at the start.
fn short<'n>(release: &'n str, component: &str) -> &'n str {
    let rest = release.strip_prefix(component);
    let rest = rest.and_then(|rest| rest.strip_prefix('-'));
    rest.filter(|rest| !rest.is_empty()).unwrap_or(release)
}

/// Returns the time at which a release became effective; None if it is unknown. A later hold on the same release
/// makes a new revision, so the result is the start of the last run of revisions with this release.
fn since(moves: &[Move], release: &str) -> Option<Timestamp> {
    let last = moves.iter().rev();
    let run = last.take_while(|ran| *ran.release == *release);
    run.last().map(|ran| ran.since)
}

#[cfg(test)]
mod tests;
