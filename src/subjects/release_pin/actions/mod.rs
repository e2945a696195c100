//! The verbs, one file each. Planners are pure: nothing here awaits, so a plan can be tested as a table.

pub mod deploy;
pub mod gc;
pub mod mark;
pub mod pin;
pub mod promote;
pub mod release;
pub mod rollback;
#[cfg(test)]
mod tests;
pub mod undo;

use super::plan::{Asked, Item, Plan, identity};
use super::rows::{Pin, ReleaseRow};
use super::rules::Rules;
use crate::api::audit::{Action, ContentRef};
use crate::api::names;
use crate::api::pin::Hold;
use crate::engine::world::Key;

/// A ReleasePin and its new release.
struct Moved<'a> {
    component: &'a str,
    environment: &'a str,
    pin: Option<&'a Pin>,
    release: &'a ReleaseRow,
    holds: Vec<Hold>,
    /// Whether the releaseRef stays, because a hold names the effective release.
    keeps_reference: bool,
    restored_from: Option<i64>,
}

fn plan(action: Action, asked: &Asked, items: Vec<Item>) -> Plan {
    Plan {
        action,
        operation: asked.operation.clone(),
        at: asked.now,
        reason: asked.reason.clone(),
        items,
    }
}

/// Builds a change that keeps the ReleasePin as it is, with the facts that the rules have used.
fn item_of(rules: Rules<'_>, component: &str, environment: &str, pin: Option<&Pin>) -> Item {
    let now = rules.asked.now;
    let counts = pin.map(|pin| pin.effective_release(now));
    let from = counts.map(|name| identity(name, rules.world.release(&rules.key(name))));
    let key = rules.key(&names::pin(component, environment));
    Item {
        component: component.to_owned(),
        environment: environment.to_owned(),
        pin: pin.map_or(key, |pin| pin.key.clone()),
        generation: pin.map(|pin| pin.generation),
        release_ref: pin.map(|pin| pin.release.to_string()).unwrap_or_default(),
        holds: pin.map(|pin| pin.holds.to_vec()).unwrap_or_default(),
        to: from.clone().unwrap_or(ContentRef::named("")),
        from,
        restored_from: None,
        rendered_hash: None,
        unchanged: false,
        skips_path: false,
        facts: rules.facts,
        warnings: Vec::new(),
    }
}

/// Builds the change of a ReleasePin to another release.
fn item(rules: Rules<'_>, moved: Moved<'_>) -> Item {
    let pin = moved.pin;
    let mut item = item_of(rules, moved.component, moved.environment, pin);
    if !moved.keeps_reference {
        item.release_ref = moved.release.key.name.to_string();
    }
    item.holds = moved.holds;
    item.to = identity(&moved.release.key.name, Some(moved.release));
    item.restored_from = moved.restored_from;
    item.unchanged = pin.is_some_and(|pin| {
        *pin.release == *item.release_ref && *pin.holds == *item.holds.as_slice()
    });
    item
}

/// Returns the key of an object in the same namespace.
fn beside(key: &Key, name: &str) -> Key {
    Key {
        namespace: key.namespace.clone(),
        name: name.into(),
    }
}
