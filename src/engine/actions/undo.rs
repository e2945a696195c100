//! `undo`: the reverse of the last action on a pin, as a plan like any other.
//!
//! What a pin was before its last change is in the audit entry before that change. Undoing twice is doing
//! again.

use super::item_of;
use crate::api::audit::{Action, AuditEntry};
use crate::api::pin::Hold;
use crate::engine::plan::{Asked, Plan, identity};
use crate::engine::rules::{Refusal, Rules};
use crate::engine::world::{Pin, World};

/// Whose last action is reversed.
#[derive(Clone, Debug)]
pub struct Undo {
    /// The component.
    pub component: String,
    /// The environment.
    pub environment: String,
}

/// Plans the reverse of the last action; `entries` are the pin's audit entries, in any order.
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
    let mut item = item_of(rules, component, environment, Some(pin));
    item.warnings = changed_holds(&pin.holds, holds);
    item.release_ref = release_ref.to_owned();
    item.holds = holds.to_vec();
    item.to = identity(&counts, Some(row));
    item.restored_from = Some(before.spec.revision);
    Ok(super::plan(Action::Undo, asked, vec![item]))
}

/// Finds what was recorded of the revision before the present one.
fn before<'e>(pin: &Pin, entries: &'e [AuditEntry]) -> Result<&'e AuditEntry, Refusal> {
    let (component, environment) = (pin.component.to_string(), pin.environment.to_string());
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

/// Returns what the pin named and who held it after an entry.
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
        .map(|hold| words("lifts", hold))
        .chain(placed.map(|hold| words("places again", hold)))
        .collect()
}
