//! `gc`: which releases and snapshots can go, and for every one why it stays or why it can go.
//!
//! The plan is made of the read model. What collects looks at the store again before anything goes, and
//! can only find more reasons to keep.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::rollback;
use crate::api::environment::Retention;
use crate::engine::ownership::GitOps;
use crate::engine::plan::Asked;
use crate::engine::rules::{Refusal, Rules};
use crate::engine::world::{Key, Pin, ReleaseRow, SnapshotRow, World};
use crate::text;

/// A release that was claimed less than this ago is about to be pinned: a pin moves within half of it, or
/// the claim is renewed.
const CLAIM_LASTS: Duration = Duration::from_secs(10 * 60);

/// What is collected.
#[derive(Clone, Debug, Default)]
pub struct Gc {
    /// Of which components; of all where there is none.
    pub components: Vec<String>,
    /// How many of the newest releases of a component stay; else as the pipeline says.
    pub keep: Option<usize>,
    /// How old a release must be before it can go; else as the pipeline says.
    pub min_age: Option<Duration>,
}

/// What can go, and what stays.
#[derive(Clone, Debug, PartialEq)]
pub struct Collection {
    /// The operation.
    pub operation: String,
    /// When it was planned.
    pub at: Timestamp,
    /// Why.
    pub reason: Option<String>,
    /// The namespace.
    pub namespace: String,
    /// How many of the newest releases of a component stay.
    pub keep: usize,
    /// How old a release must be before it can go.
    pub min_age: Duration,
    /// The releases, by component, newest first.
    pub releases: Vec<Candidate>,
    /// The snapshots, by component and environment, newest first.
    pub snapshots: Vec<Candidate>,
}

/// A release or a snapshot, and what keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Which.
    pub key: Key,
    /// What tells it from another one of the same name.
    pub uid: String,
    /// The component that it is of.
    pub component: Option<Arc<str>>,
    /// The environment of a snapshot.
    pub environment: Option<Arc<str>>,
    /// Its size in bytes, where it is known.
    pub size: Option<u64>,
    /// How old it is.
    pub age: Duration,
    /// How many newer ones there are.
    pub newer: usize,
    /// Whether it carries the label of a pinned release, and no pin names it or is about to.
    pub mislabelled: bool,
    /// What keeps it; it goes where nothing does.
    pub stays: Vec<Stays>,
}

/// Why something is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stays {
    /// Pins or holds name it, in these environments.
    Pinned(Vec<String>),
    /// It runs in these environments, although their pins name another.
    Runs(Vec<String>),
    /// A rollback in these environments would bring it back.
    LastGood(Vec<String>),
    /// It is among the newest of its component.
    Newest {
        /// Which it is, from 1 on.
        place: usize,
        /// How many stay.
        of: usize,
    },
    /// It is too young.
    Young {
        /// How old it has to be.
        least: Duration,
    },
    /// Which component it is of cannot be told.
    NoComponent,
    /// A GitOps tool owns it.
    Owned(GitOps),
    /// Somebody has just announced that a pin is about to name it.
    Claimed {
        /// How long ago.
        ago: Duration,
    },
    /// Somebody changed it meanwhile.
    Changed,
    /// The pin was rendered from it.
    Current,
}

impl fmt::Display for Stays {
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
                write!(f, "claimed {} ago by an action in progress", age(*ago))
            }
            Self::Changed => f.write_str("it changed in the meantime"),
            Self::Current => f.write_str("rendered from it"),
        }
    }
}

impl Candidate {
    /// Tells whether nothing keeps it.
    pub fn goes(&self) -> bool {
        self.stays.is_empty()
    }

    /// Says why it stays, or why it can go.
    pub fn why(&self) -> String {
        let stays: Vec<String> = self.stays.iter().map(ToString::to_string).collect();
        match (stays.is_empty(), self.environment.is_some()) {
            (false, _) => stays.join("; "),
            (true, false) => format!("no ReleasePin names it, {} newer", self.newer),
            (true, true) => format!("not current, {} newer", self.newer),
        }
    }
}

impl Collection {
    /// Returns what goes.
    pub fn going(&self) -> impl Iterator<Item = &Candidate> {
        let all = self.releases.iter().chain(&self.snapshots);
        all.filter(|candidate| candidate.goes())
    }

    /// Returns how many bytes that frees, as far as sizes are known.
    pub fn frees(&self) -> u64 {
        self.going().filter_map(|candidate| candidate.size).sum()
    }
}

/// Returns the retention of the namespace. Pipelines that disagree are no answer, unless the command gives
/// the limits itself.
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
    // No limit of the command is about snapshots: the most careful pipeline decides.
    let snapshots = pipelines.iter().filter_map(|(_, pipeline)| {
        let said = pipeline.retention.as_ref()?;
        Some(said.keep_snapshots)
    });
    retention.keep_snapshots = snapshots.max().unwrap_or(retention.keep_snapshots);
    Ok(retention)
}

/// Plans a collection. Refuses while a ReleasePin of the components names a release that is not there: whoever
/// lost one release may have lost ReleasePins too.
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

/// Says of every release and snapshot what keeps it, whatever the ReleasePins name.
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

/// What is kept whatever it is.
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
        // Whoever names it counts, also a pin of another component, which no rule allows.
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
            (named, Stays::Pinned as fn(Vec<String>) -> Stays),
            (runs, Stays::Runs),
            (good, Stays::LastGood),
        ] {
            if !environments.is_empty() {
                stays.push(why(environments));
            }
        }
        match row.component {
            None => stays.push(Stays::NoComponent),
            Some(_) if place < self.keep => stays.push(Stays::Newest {
                place: place + 1,
                of: self.keep,
            }),
            Some(_) => {}
        }
        let age = since(row.created, self.now);
        if age < self.min_age {
            stays.push(Stays::Young {
                least: self.min_age,
            });
        }
        stays.extend(claimed.map(|ago| Stays::Claimed { ago }));
        stays.extend(row.gitops.map(Stays::Owned));
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
            stays.push(Stays::Current);
        }
        if place < self.keep_snapshots {
            stays.push(Stays::Newest {
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

/// How long ago something was; what is of the future was just now.
fn since(then: Timestamp, now: Timestamp) -> Duration {
    let age = now.duration_since(then);
    Duration::try_from(age).unwrap_or_default()
}

fn age(span: Duration) -> String {
    text::age(i64::try_from(span.as_secs()).unwrap_or(i64::MAX))
}
