//! Lists the changes around the start of an incident. First come those before the start, the newest first; then those
//! after the start, the oldest first.
//!
//! A change after the start cannot be the cause of the incident, but it may be the repair. The order depends only on
//! the time, so that users can check it. A text for each change says whether the environment is degraded since that
//! change, and whether the release still runs.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::matrix::Health;
use super::past::{Change, Past};
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::rows::Pin;

/// The list contains changes from this long before the start of the incident.
const BEFORE: SignedDuration = SignedDuration::from_hours(24);
/// The largest expected difference between the clocks of two machines. So a change shortly after the start of the
/// incident still counts as before the start.
const CLOCKS: SignedDuration = SignedDuration::from_mins(2);

/// A change before or after the start of an incident.
#[derive(Clone, Debug, PartialEq)]
pub struct Suspect {
    pub at: Timestamp,
    pub component: Key,
    /// The environment of the change; None for the creation of a release.
    pub environment: Option<Arc<str>>,
    /// The change itself: an action, a change of health, or a new release.
    pub what: What,
    /// Whether the change happened after the start of the incident.
    pub is_after: bool,
    /// The time between the change and the start of the incident, and the effects of the change, as text for the
    /// user.
    pub details: String,
}

/// The kind of a change around an incident.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A user or a controller made this change.
    Did(Change),
    /// A ReleasePin stopped being ready. Contains its health now.
    Turned(Health),
    /// Somebody created a release. Contains its name.
    Made(String),
}

/// Returns the changes around the start of an incident: first those before the start, the newest first; then those
/// after the start, the oldest first.
pub fn rank(past: &Past, world: &World, start: Timestamp, now: Timestamp) -> Vec<Suspect> {
    let first = start.checked_sub(BEFORE).unwrap_or(Timestamp::MIN);
    let is_near = |at: Timestamp| first <= at && at <= now;
    let incident = Incident { world, start, now };
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
        let by = one.is_after.cmp(&other.is_after);
        let by = by.then_with(|| match one.is_after {
            true => one.at.cmp(&other.at),
            false => other.at.cmp(&one.at),
        });
        by.then_with(|| place(one).cmp(&place(other)))
    });
    suspects
}

struct Incident<'w> {
    world: &'w World,
    start: Timestamp,
    now: Timestamp,
}

impl Incident<'_> {
    fn change(&self, change: &Change) -> Suspect {
        let mut details = Vec::new();
        if let Some(environment) = &change.environment {
            self.aftermath(&mut details, change, environment);
        }
        self.suspect(
            details,
            change.at,
            &change.component,
            change.environment.as_ref(),
            What::Did(change.clone()),
        )
    }

    fn turned(&self, pin: &Pin, health: Health, at: Timestamp) -> Suspect {
        let component = Key {
            namespace: pin.key.namespace.clone(),
            name: pin.component.clone(),
        };
        let message = pin.ready.as_ref().map(|ready| ready.message.to_string());
        let message = message.filter(|message| !message.is_empty());
        self.suspect(
            message.into_iter().collect(),
            at,
            &component,
            Some(&pin.environment),
            What::Turned(health),
        )
    }

    fn made(&self, release: &Key, component: &Arc<str>, at: Timestamp) -> Suspect {
        let pins = self.world.pins_naming(release).count();
        let details = (pins == 0).then(|| "runs nowhere".to_owned());
        let component = Key {
            namespace: release.namespace.clone(),
            name: component.clone(),
        };
        self.suspect(
            details.into_iter().collect(),
            at,
            &component,
            None,
            What::Made(release.name.to_string()),
        )
    }

    fn suspect(
        &self,
        mut details: Vec<String>,
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
            is_after: self.is_after(at),
            details: {
                details.insert(0, self.when(at));
                details.join(", ")
            },
        }
    }

    fn is_after(&self, at: Timestamp) -> bool {
        self.start.duration_until(at) > CLOCKS
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

    /// Adds texts about the effect of a change to `details`: whether the environment is degraded now, and whether the
    /// same release is degraded in other environments.
    fn aftermath(&self, details: &mut Vec<String>, change: &Change, environment: &str) {
        let Some(pin) = self.world.pin_of(&change.component, environment) else {
            details.push("the ReleasePin was deleted".to_owned());
            return;
        };
        let runs = pin.effective_release(self.now);
        if change.moves() && change.to.as_deref() != Some(runs) {
            details.push("no longer runs there".to_owned());
        } else if Health::told(pin, self.now) == Health::Degraded
            && let Some(ready) = &pin.ready
        {
            match change.at.duration_until(ready.since) {
                after if after >= SignedDuration::ZERO => {
                    details.push(format!("degraded {} later and since", span(after)));
                }
                before => details.push(format!("degraded since {} before it", span(before))),
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
            details.push(format!("degraded in {} too", other.environment));
        }
    }
}

/// Formats a duration for the user.
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
