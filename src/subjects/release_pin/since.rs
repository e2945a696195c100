//! The changes around the start of an incident, the likeliest cause first, with reasons.
//!
//! The rank is a number of points, not a probability: how shortly before the start the change happened,
//! its kind, whether it was in production, and whether the environment is degraded since. Each part is
//! also a text, so that the user can judge it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::matrix::{Columns, Health};
use super::past::{Change, Past};
use crate::api::audit::Action;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::rows::Pin;

/// How long before the start a change can be a suspect.
const BEFORE: SignedDuration = SignedDuration::from_hours(24);
/// The largest expected difference between the clocks of two machines.
const CLOCKS: SignedDuration = SignedDuration::from_mins(2);

/// A change that may have caused an incident.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    /// The time of the change.
    pub at: Timestamp,
    /// The component.
    pub component: Key,
    /// The environment; None for a release.
    pub environment: Option<Arc<str>>,
    /// The kind of the change.
    pub what: What,
    /// The points: more points mean more likely. The number has no other meaning.
    pub points: u32,
    /// The reasons for the points.
    pub why: String,
}

/// The kinds of changes.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// An action of a user or a controller.
    Did(Change),
    /// A ReleasePin is not ready since that time; its health.
    Turned(Health),
    /// A release was created; its name.
    Made(String),
}

/// The points of a suspect and their reasons.
#[derive(Default)]
struct Case {
    points: u32,
    why: Vec<String>,
}

impl Case {
    fn add(&mut self, points: u32, why: impl Into<String>) {
        self.points += points;
        self.why.push(why.into());
    }
}

/// Ranks the changes around the start of an incident, the likeliest cause first.
pub fn rank(
    past: &Past,
    world: &World,
    columns: &Columns,
    start: Timestamp,
    now: Timestamp,
) -> Vec<Suspect> {
    let first = start.checked_sub(BEFORE).unwrap_or(Timestamp::MIN);
    let is_near = |at: Timestamp| first <= at && at <= now;
    let incident = Incident {
        world,
        columns,
        start,
        now,
    };
    let mut suspects: Vec<Suspect> = Vec::new();
    let changes = past.changes().iter();
    suspects.extend(
        changes
            .filter(|change| is_near(change.at))
            .map(|change| incident.change(change)),
    );
    for pin in world.all_pins() {
        let turned = pin.ready.as_ref().map(|ready| ready.since);
        let health = Health::told(pin, now);
        if let Some(at) = turned.filter(|at| is_near(*at))
            && !matches!(health, Health::Ready | Health::Unknown)
        {
            suspects.push(incident.turned(pin, health, at));
        }
    }
    for release in world.all_releases() {
        if let Some(component) = &release.component
            && is_near(release.created)
        {
            suspects.push(incident.made(&release.key, component, release.created));
        }
    }
    suspects.sort_by(|one, other| {
        let place = |suspect: &Suspect| (suspect.component.clone(), suspect.environment.clone());
        let by = other.points.cmp(&one.points);
        let by = by.then_with(|| other.at.cmp(&one.at));
        by.then_with(|| place(one).cmp(&place(other)))
    });
    suspects
}

struct Incident<'w> {
    world: &'w World,
    columns: &'w Columns,
    start: Timestamp,
    now: Timestamp,
}

impl Incident<'_> {
    fn change(&self, change: &Change) -> Suspect {
        let mut case = Case::default();
        let (points, verb) = weight(change);
        case.add(
            points + self.closeness(change.at),
            format!("{verb} {}", self.when(change.at)),
        );
        if let Some(environment) = &change.environment {
            self.place(&mut case, &change.component, environment);
            self.aftermath(&mut case, change, environment);
        }
        self.suspect(
            case,
            change.at,
            &change.component,
            change.environment.as_ref(),
            What::Did(change.clone()),
        )
    }

    fn turned(&self, pin: &Pin, health: Health, at: Timestamp) -> Suspect {
        let mut case = Case::default();
        let word = health.word().to_lowercase();
        case.add(
            15 + self.closeness(at),
            format!("{word} since {}", self.when(at)),
        );
        let component = Key {
            namespace: pin.key.namespace.clone(),
            name: pin.component.clone(),
        };
        self.place(&mut case, &component, &pin.environment);
        let message = pin.ready.as_ref().map(|ready| ready.message.to_string());
        if let Some(message) = message.filter(|message| !message.is_empty()) {
            case.add(0, message);
        }
        self.suspect(
            case,
            at,
            &component,
            Some(&pin.environment),
            What::Turned(health),
        )
    }

    fn made(&self, release: &Key, component: &Arc<str>, at: Timestamp) -> Suspect {
        let mut case = Case::default();
        case.add(
            3 + self.closeness(at) / 4,
            format!("made {}", self.when(at)),
        );
        let pins = self.world.pins_naming(release).count();
        if pins == 0 {
            case.add(0, "runs nowhere");
        }
        let component = Key {
            namespace: release.namespace.clone(),
            name: component.clone(),
        };
        self.suspect(
            case,
            at,
            &component,
            None,
            What::Made(release.name.to_string()),
        )
    }

    fn suspect(
        &self,
        case: Case,
        at: Timestamp,
        component: &Key,
        environment: Option<&Arc<str>>,
        what: What,
    ) -> Suspect {
        Suspect {
            at,
            component: component.clone(),
            environment: environment.cloned(),
            what,
            points: case.points,
            why: case.why.join(", "),
        }
    }

    /// Returns more points for a change that is closer to the start, and few points for a change after
    /// the start, which cannot be the cause.
    fn closeness(&self, at: Timestamp) -> u32 {
        let distance = at.duration_until(self.start);
        let minutes = distance.abs().as_mins().unsigned_abs();
        let near = |most: u64| u32::try_from(10 * most / (10 + minutes)).unwrap_or_default();
        match distance {
            before if before >= SignedDuration::ZERO => near(60),
            after if after.abs() <= CLOCKS => near(40),
            _ => near(10),
        }
    }

    fn when(&self, at: Timestamp) -> String {
        let distance = at.duration_until(self.start);
        let side = match distance >= SignedDuration::ZERO {
            true => "before",
            false => "after",
        };
        match distance.abs() < SignedDuration::from_secs(1) {
            true => "at the start".to_owned(),
            false => format!("{} {side}", span(distance)),
        }
    }

    fn place(&self, case: &mut Case, component: &Key, environment: &str) {
        let column = self.columns.position(environment);
        if column.is_some_and(|column| self.columns.is_production(&component.namespace, column)) {
            case.add(20, "production");
        }
    }

    /// Adds points if the environment is degraded now, and if the same release is degraded elsewhere.
    fn aftermath(&self, case: &mut Case, change: &Change, environment: &str) {
        let Some(pin) = self.world.pin_of(&change.component, environment) else {
            case.add(0, "the ReleasePin was deleted");
            return;
        };
        let runs = pin.effective_release(self.now);
        if change.moves() && change.to.as_deref() != Some(runs) {
            case.add(0, "no longer runs there");
        } else if Health::told(pin, self.now) == Health::Degraded
            && let Some(ready) = &pin.ready
        {
            match change.at.duration_until(ready.since) {
                after if after >= SignedDuration::ZERO => {
                    case.add(25, format!("degraded {} later and since", span(after)));
                }
                before => case.add(10, format!("degraded since {} before it", span(before))),
            }
        }
        let Some(to) = change.to.as_deref().filter(|_| change.moves()) else {
            return;
        };
        let others = self.world.pins_of(&change.component);
        let mut others = others.filter(|other| {
            *other.environment != *environment
                && other.effective_release(self.now) == to
                && Health::told(other, self.now) == Health::Degraded
        });
        if let Some(other) = others.next() {
            case.add(10, format!("degraded in {} too", other.environment));
        }
    }
}

/// Returns the points of an action, and its word.
fn weight(change: &Change) -> (u32, &'static str) {
    match change.action {
        Some(Action::Deploy) => (30, "deployed"),
        Some(Action::AutoDeploy) => (30, "deployed automatically"),
        Some(Action::Promote) => (30, "promoted"),
        Some(Action::Rollback) => (30, "rolled back"),
        Some(Action::Undo) => (30, "undone"),
        Some(Action::Edit) => (35, "edited by something other than bowline"),
        Some(Action::Gap) => (20, "changed (not observed)"),
        Some(Action::Pin) if change.moves() => (30, "changed by a hold"),
        Some(Action::Unpin) if change.moves() => (30, "changed by the end of a hold"),
        Some(Action::Pin) => (5, "pinned"),
        Some(Action::Unpin) => (8, "unpinned"),
        Some(Action::MarkBad) => (5, "marked bad"),
        Some(Action::MarkGood) => (5, "marked good"),
        Some(Action::Collect) => (4, "collected"),
        Some(Action::Restore) => (4, "restored"),
        Some(Action::Checkpoint) => (0, "retired"),
        None => (25, "changed by an unrecorded user,"),
    }
}

/// Formats a duration for people.
fn span(duration: SignedDuration) -> String {
    let seconds = duration.abs().as_secs();
    match seconds {
        0..=90 => format!("{seconds} s"),
        91..=5_400 => format!("{} min", (seconds + 30) / 60),
        5_401..=172_800 => format!("{} h", (seconds + 1_800) / 3_600),
        _ => format!("{} d", (seconds + 43_200) / 86_400),
    }
}

#[cfg(test)]
mod tests;
