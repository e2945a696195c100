//! `undo`: plans to reverse the last action on a ReleasePin.
//!
//! The planner restores the releaseRef and the holds from the audit entry before the last change. A second undo
//! reverses the first one.

use super::rollback::was_unhealthy;
use super::{After, change};
use crate::api::bowline::audit::{Action, AuditEntry, CLONE_ENDS};
use crate::api::hold::Hold;
use crate::engine::plan::{Asked, Plan};
use crate::engine::world::World;
use crate::subjects::release_pin::facts::identity;
use crate::subjects::release_pin::rows::Pin;
use crate::subjects::release_pin::rules::{Refusal, Rules};

/// The arguments of the command `undo`.
#[derive(Clone, Debug)]
pub struct Undo {
    pub component: String,
    pub environment: String,
}

/// Plans to reverse the last action on a ReleasePin. `entries` are its audit entries, in any order.
pub fn plan(
    world: &World,
    command: &Undo,
    entries: &[AuditEntry],
    asked: &Asked,
) -> Result<Plan, Refusal> {
    let Undo {
        component,
        environment,
    } = command;
    let mut rules = Rules::new(world, asked);
    rules.current()?;
    rules.environment(environment)?;
    let pin = rules.pinned(component, environment)?;
    let before = before(pin, entries)?;
    let (release_ref, holds) = state(before);
    let restored = Pin {
        release: release_ref.into(),
        holds: holds.into(),
        ..pin.clone()
    };
    let counts = restored.effective_release(asked.now).to_owned();
    let row = match counts == pin.effective_release(asked.now) {
        true => rules.known_release(component, &counts)?,
        false => rules.release(component, &counts)?,
    };
    if *restored.release != *pin.release {
        rules.not_owned(pin, release_ref)?;
    }
    let mut warnings = changed_holds(&pin.holds, holds);
    warnings.extend(was_unhealthy(pin, &counts, asked.now));
    let after = After {
        component,
        environment,
        pin: Some(pin),
        release_ref: release_ref.to_owned(),
        holds: holds.to_vec(),
        to: identity(&counts, Some(row)),
        restored_from: Some(before.spec.revision),
        skips_path: false,
        warnings,
    };
    Ok(super::plan(Action::Undo, asked, vec![change(rules, after)]))
}

/// Returns the audit entry of the revision before the current one. If the entry is missing, returns a refusal.
fn before<'e>(pin: &Pin, entries: &'e [AuditEntry]) -> Result<&'e AuditEntry, Refusal> {
    let (component, environment) = (pin.component.to_string(), pin.environment.to_string());
    let is_cut = |entry: &&AuditEntry| {
        entry.spec.revision == pin.generation
            && entry.spec.actor.is_none()
            && entry.spec.reason.as_deref() == Some(CLONE_ENDS)
    };
    if entries.iter().any(|entry| is_cut(&entry)) {
        return Err(Refusal::CloneEnds {
            component,
            environment,
        });
    }
    if pin.generation <= 1 {
        return Err(Refusal::NothingBefore {
            pin: pin.key.name.to_string(),
            component,
            environment,
        });
    }
    let revision = pin.generation - 1;
    let recorded = |entry: &&AuditEntry| {
        let spec = &entry.spec;
        spec.revision == revision
            && spec.subject.uid.as_deref() == Some(&*pin.uid)
            && spec.gap.is_none()
            && spec.to.is_some()
    };
    let found = entries.iter().find(recorded);
    found.ok_or(Refusal::NotOnRecord {
        component,
        environment,
        revision,
    })
}

/// Returns the releaseRef and the holds of a ReleasePin, as an audit entry records them.
fn state(entry: &AuditEntry) -> (&str, &[Hold]) {
    let spec = &entry.spec;
    let counted = spec.to.as_ref().map_or("", |to| to.name.as_str());
    let named = spec.release_ref.as_deref().unwrap_or(counted);
    (named, &spec.holds)
}

fn changed_holds(now: &[Hold], then: &[Hold]) -> Vec<String> {
    let missing = |hold: &&Hold, from: &[Hold]| from.iter().all(|other| other.id != hold.id);
    let lifted = now.iter().filter(|hold| missing(hold, then));
    let placed = then.iter().filter(|hold| missing(hold, now));
    let words = |what: &str, hold: &Hold| format!("{what} the hold {} of {}", hold.id, hold.owner);
    lifted
        .map(|hold| words("removes", hold))
        .chain(placed.map(|hold| words("places again", hold)))
        .collect()
}
