//! `gc`: plans which releases and snapshots to delete, with the reasons to keep the others.
//!
//! The plan comes from the read model. Before gc deletes an object, it reads the object from the server again, and
//! may then find more reasons to keep the object.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::rollback;
use crate::api::openchoreo::environment::Retention;
use crate::engine::confirmation::Confirmation;
use crate::engine::ownership::GitOps;
use crate::engine::plan::Asked;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::rows::{Pin, ReleaseRow, SnapshotRow};
use crate::subjects::release_pin::rules::{Refusal, Rules};
use crate::text;

/// How long gc keeps a release after a claim on it. The claiming client writes its reference, or renews the claim,
/// within half of this time.
const CLAIM_LASTS: Duration = Duration::from_secs(10 * 60);

#[derive(Clone, Debug, Default)]
pub struct Gc {
    /// The components whose releases gc deletes; empty for all components.
    pub components: Vec<String>,
    /// How many of the newest releases of each component gc keeps. None takes the number from the retention of the
    /// pipeline.
    pub keep: Option<usize>,
    /// The age below which gc keeps a release. None takes the age from the retention of the pipeline.
    pub min_age: Option<Duration>,
}

/// The plan of gc: the releases and snapshots of the namespace, each with the reasons to keep it.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    pub operation: String,
    /// The time at which the planner made the plan.
    pub at: Timestamp,
    pub reason: Option<String>,
    pub namespace: String,
    /// How many of the newest releases of each component gc keeps.
    pub keep: usize,
    /// The age below which gc keeps a release.
    pub min_age: Duration,
    /// The releases that gc may delete or keep, sorted by component, newest first.
    pub releases: Vec<Candidate>,
    /// The snapshots that gc may delete or keep, sorted by component and environment, newest first.
    pub snapshots: Vec<Candidate>,
}

/// A release or snapshot, with the reasons for which gc keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    pub key: Key,
    /// The uid of the object, because a later object with the same name has another uid.
    pub uid: String,
    /// The component of the object; None if the object has no component label.
    pub component: Option<Arc<str>>,
    /// The environment of a snapshot; None for a release.
    pub environment: Option<Arc<str>>,
    /// The size of the object in bytes; None if it is not recorded.
    pub size: Option<u64>,
    /// The age of the object at plan time.
    pub age: Duration,
    /// The number of newer releases of the same component. For a snapshot, the number of newer snapshots of the same
    /// component and environment.
    pub newer: usize,
    /// Whether the release has the label that protects it from deletion without a need: no ReleasePin names the
    /// release, and no claim is active. Gc then removes the label.
    pub mislabelled: bool,
    /// The reasons for which gc keeps the object. If the list is empty, gc deletes the object.
    pub stays: Vec<KeepReason>,
}

/// A reason for which gc keeps a release or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeepReason {
    /// The ReleasePins of these environments name the release, in the releaseRef or in a hold.
    Pinned(Vec<String>),
    /// The release still runs in these environments, although their ReleasePins name another release.
    Runs(Vec<String>),
    /// The release is the last good release in these environments.
    LastGood(Vec<String>),
    /// The release is one of the newest of its component.
    Newest {
        /// The position of the release among the releases of its component; 1 is the newest.
        place: usize,
        /// How many of the newest releases of each component gc keeps.
        of: usize,
    },
    /// The object is younger than the minimum age that gc respects.
    Young {
        least: Duration,
    },
    /// The object has no component label.
    NoComponent,
    Owned(GitOps),
    /// An action claimed the release. The action may have ended since, because actions do not remove their claims.
    Claimed {
        /// The time since the release was claimed.
        ago: Duration,
    },
    /// Another client changed the object after the plan was made.
    Changed,
    /// The snapshot is the current snapshot of the ReleasePin in this environment.
    Current(String),
}

impl fmt::Display for KeepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned(environments) => {
                write!(f, "named by the ReleasePin in {}", environments.join(", "))
            }
            Self::Runs(environments) => write!(f, "runs in {}", environments.join(", ")),
            Self::LastGood(environments) => write!(f, "last good in {}", environments.join(", ")),
            Self::Newest { place, of } => write!(f, "number {place} of the newest {of}"),
            Self::Young { least } => write!(f, "younger than {}", age(*least)),
            Self::NoComponent => f.write_str("its component is not known"),
            Self::Owned(tool) => write!(f, "{} owns it: remove it in git", tool.name()),
            Self::Claimed { ago } => {
                let (ago, lasts) = (age(*ago), age(CLAIM_LASTS));
                write!(f, "claimed {ago} ago: a claim protects it for {lasts}")
            }
            Self::Changed => f.write_str("it changed in the meantime"),
            Self::Current(environment) => {
                write!(f, "the ReleasePin in {environment} was rendered from it")
            }
        }
    }
}

impl Candidate {
    /// Returns whether gc deletes the object.
    pub fn goes(&self) -> bool {
        self.stays.is_empty()
    }

    /// Returns the reasons for which gc keeps the object, as text for the user. If there are none, returns the reason
    /// why gc can delete the object.
    pub fn why(&self) -> String {
        let stays: Vec<String> = self.stays.iter().map(ToString::to_string).collect();
        match (stays.is_empty(), self.environment.is_some()) {
            (false, _) => stays.join("; "),
            (true, false) => format!("no ReleasePin refers to it, {} newer", self.newer),
            (true, true) => format!("not current, {} newer", self.newer),
        }
    }
}

impl Collection {
    /// Returns the releases and snapshots that gc deletes.
    pub fn going(&self) -> impl Iterator<Item = &Candidate> {
        let all = self.releases.iter().chain(&self.snapshots);
        all.filter(|candidate| candidate.goes())
    }

    /// Returns whether gc would change nothing: it deletes no object and corrects no label.
    pub fn is_idle(&self) -> bool {
        let mislabelled = self.releases.iter().any(|found| found.mislabelled);
        self.going().next().is_none() && !mislabelled
    }

    /// Returns the confirmation of gc: the user types the number of objects that gc deletes.
    pub fn confirmation(&self) -> Confirmation {
        let count = self.going().count();
        let risk = match count {
            0 => "the correction of labels".to_owned(),
            count => format!("the deletion of {}", text::counted(count, "objects")),
        };
        Confirmation::of_count(count, "objects", risk)
    }

    /// Returns the sum of the known sizes of the objects that gc deletes, in bytes.
    pub fn frees(&self) -> u64 {
        self.going().filter_map(|candidate| candidate.size).sum()
    }
}

/// Returns the limits of gc in the namespace. If pipelines have different limits, returns a refusal, unless the
/// command sets `keep` and `min_age`.
fn retention(world: &World, command: &Gc, asked: &Asked) -> Result<Retention, Refusal> {
    let pipelines = world.pipelines_in(&asked.namespace);
    let mut said = pipelines.iter().map(|(_, pipeline)| &pipeline.retention);
    let first = said.next().cloned().flatten();
    let agree = said.all(|other| *other == first);
    if !agree && (command.keep.is_none() || command.min_age.is_none()) {
        return Err(Refusal::RetentionDiffers {
            namespace: asked.namespace.clone(),
            pipelines: pipelines
                .iter()
                .map(|(key, _)| key.name.to_string())
                .collect(),
        });
    }
    let mut retention = first.unwrap_or_default();
    // The command has no option for snapshots. So if pipelines keep different numbers of snapshots, the largest
    // number is used.
    let snapshots = pipelines.iter().filter_map(|(_, pipeline)| {
        let said = pipeline.retention.as_ref()?;
        Some(said.keep_snapshots)
    });
    retention.keep_snapshots = snapshots.max().unwrap_or(retention.keep_snapshots);
    Ok(retention)
}

/// Plans gc. Refuses gc if a ReleasePin names a release that does not exist, because then ReleasePins may be lost
/// too.
pub fn plan(world: &World, command: &Gc, asked: &Asked) -> Result<Collection, Refusal> {
    let collection = judge(world, command, asked)?;
    let components = world
        .components()
        .filter(|key| *key.namespace == *asked.namespace && is_wanted(command, &key.name));
    for pin in components.flat_map(|component| world.pins_of(component)) {
        let lost = |name: &&str| world.release(&super::beside(&pin.key, name)).is_none();
        if let Some(release) = pin.named_releases().find(lost) {
            return Err(Refusal::ReleaseLost {
                pin: pin.key.name.to_string(),
                release: release.to_owned(),
            });
        }
    }
    Ok(collection)
}

/// Finds the reasons for which gc keeps each release and snapshot. Unlike [`plan`], it does not refuse gc if a
/// ReleasePin names a release that does not exist.
pub fn judge(world: &World, command: &Gc, asked: &Asked) -> Result<Collection, Refusal> {
    let rules = Rules::new(world, asked);
    rules.current()?;
    rules.current_snapshots()?;
    let retention = retention(world, command, asked)?;
    let limits = Limits::of(world, command, &retention, asked)?;
    let mut components: Vec<&Key> = world
        .components()
        .filter(|key| *key.namespace == *asked.namespace && is_wanted(command, &key.name))
        .collect();
    components.sort();
    for wanted in &command.components {
        if !components.iter().any(|known| *known.name == **wanted) {
            return Err(rules.no_component(wanted));
        }
    }
    let mut releases = Vec::new();
    let mut snapshots = Vec::new();
    for component in components {
        let rows = world.releases_of(component).enumerate();
        releases.extend(rows.map(|(place, row)| limits.release(world, row, place)));
        for (environment, rows) in world.snapshots_of(component) {
            let pin = world.pin_of(component, environment);
            let rows = rows.into_iter().enumerate();
            snapshots.extend(rows.map(|(place, row)| limits.snapshot(pin, row, place)));
        }
    }
    if command.components.is_empty() {
        let unclear = world.unowned_releases();
        let unclear = unclear.filter(|row| *row.key.namespace == *asked.namespace);
        releases.extend(unclear.map(|row| limits.release(world, row, 0)));
    }
    Ok(Collection {
        operation: asked.operation.clone(),
        at: asked.now,
        reason: asked.reason.clone(),
        namespace: asked.namespace.clone(),
        keep: limits.keep,
        min_age: limits.min_age,
        releases,
        snapshots,
    })
}

fn is_wanted(command: &Gc, component: &str) -> bool {
    let wanted = &command.components;
    wanted.is_empty() || wanted.iter().any(|name| name == component)
}

/// The limits by which gc keeps releases and snapshots.
struct Limits {
    keep: usize,
    keep_snapshots: usize,
    min_age: Duration,
    now: Timestamp,
}

impl Limits {
    fn of(
        world: &World,
        command: &Gc,
        retention: &Retention,
        asked: &Asked,
    ) -> Result<Self, Refusal> {
        let environments = world.environment_names(&asked.namespace).len();
        let by_pipeline = |number: i32| usize::try_from(number).unwrap_or(usize::MAX);
        let keep = retention.keep_releases.map(by_pipeline);
        let min_age = match command.min_age {
            Some(age) => age,
            None => retention
                .min_age
                .duration()
                .map_err(|error| Refusal::BadRetention {
                    why: error.to_string(),
                })?,
        };
        Ok(Self {
            keep: command.keep.or(keep).unwrap_or(environments + 2),
            keep_snapshots: by_pipeline(retention.keep_snapshots),
            min_age,
            now: asked.now,
        })
    }

    fn release(&self, world: &World, row: &ReleaseRow, place: usize) -> Candidate {
        let mut stays = Vec::new();
        let pins: Vec<&Pin> = match &row.component {
            Some(component) => world.pins_of(&super::beside(&row.key, component)).collect(),
            None => Vec::new(),
        };
        let where_from = |found: &dyn Fn(&Pin) -> bool| -> Vec<String> {
            let found = pins.iter().filter(|pin| found(pin));
            found.map(|pin| pin.environment.to_string()).collect()
        };
        // A ReleasePin of another component may name the release too, although a rule forbids this. It also protects
        // the release.
        let named: Vec<String> = world
            .pins_naming(&row.key)
            .map(|name| match world.pin(&super::beside(&row.key, name)) {
                Some(pin) => pin.environment.to_string(),
                None => name.to_owned(),
            })
            .collect();
        let claimed = row.claimed.map(|at| since(at, self.now));
        let claimed = claimed.filter(|ago| *ago < CLAIM_LASTS);
        let mislabelled = row.pinned && named.is_empty() && claimed.is_none();
        let runs = where_from(&|pin| {
            pin.applied.as_deref() == Some(&*row.key.name)
                && !pin.named_releases().any(|name| name == &*row.key.name)
        });
        let good = where_from(&|pin| {
            rollback::last_good(world, pin, self.now)
                .is_some_and(|good| *good.release == *row.key.name)
        });
        for (environments, why) in [
            (named, KeepReason::Pinned as fn(Vec<String>) -> KeepReason),
            (runs, KeepReason::Runs),
            (good, KeepReason::LastGood),
        ] {
            if !environments.is_empty() {
                stays.push(why(environments));
            }
        }
        match row.component {
            None => stays.push(KeepReason::NoComponent),
            Some(_) if place < self.keep => stays.push(KeepReason::Newest {
                place: place + 1,
                of: self.keep,
            }),
            Some(_) => {}
        }
        let age = since(row.created, self.now);
        if age < self.min_age {
            stays.push(KeepReason::Young {
                least: self.min_age,
            });
        }
        stays.extend(claimed.map(|ago| KeepReason::Claimed { ago }));
        stays.extend(row.gitops.map(KeepReason::Owned));
        Candidate {
            key: row.key.clone(),
            uid: row.uid.to_string(),
            component: row.component.clone(),
            environment: None,
            size: row.size,
            age,
            newer: place,
            mislabelled,
            stays,
        }
    }

    fn snapshot(&self, pin: Option<&Pin>, row: &SnapshotRow, place: usize) -> Candidate {
        let mut stays = Vec::new();
        if pin.is_some_and(|pin| pin.snapshot.as_deref() == Some(&*row.key.name)) {
            stays.push(KeepReason::Current(row.environment.to_string()));
        }
        if place < self.keep_snapshots {
            stays.push(KeepReason::Newest {
                place: place + 1,
                of: self.keep_snapshots,
            });
        }
        Candidate {
            key: row.key.clone(),
            uid: row.uid.to_string(),
            component: Some(row.component.clone()),
            environment: Some(row.environment.clone()),
            size: row.size,
            age: since(row.created, self.now),
            newer: place,
            mislabelled: false,
            stays,
        }
    }
}

/// Returns the time from `then` to `now`; zero if `then` is later.
fn since(then: Timestamp, now: Timestamp) -> Duration {
    let age = now.duration_since(then);
    Duration::try_from(age).unwrap_or_default()
}

fn age(span: Duration) -> String {
    text::age(i64::try_from(span.as_secs()).unwrap_or(i64::MAX))
}
