//! The verbs on ReleasePins and releases, one file each. The planners are pure functions, so that tests can check
//! them as tables.

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

use std::sync::Arc;

use serde_json::json;

use super::claim;
use super::facts::{PinFact, identity};
use super::kind::{KIND, RELEASE_REF};
use super::rows::{Pin, ReleaseRow};
use super::rules::Rules;
use crate::api::bowline::audit::{Action, ContentRef};
use crate::api::hold::Hold;
use crate::api::{labels, names};
use crate::engine::claim::ClaimOn;
use crate::engine::plan::{Asked, Change, Fact, Field, Plan};
use crate::engine::subject::{Expected, SubjectRef};
use crate::engine::world::Key;

/// The state of a ReleasePin after a change.
struct After<'a> {
    component: &'a str,
    environment: &'a str,
    /// The ReleasePin before the change; None if the change creates it.
    pin: Option<&'a Pin>,
    /// The release that the releaseRef names after the change.
    release_ref: String,
    holds: Vec<Hold>,
    /// The effective release after the change.
    to: ContentRef,
    restored_from: Option<i64>,
    /// Whether the change skips the promotion path, which requires a reason.
    skips_path: bool,
    warnings: Vec<String>,
}

impl<'a> After<'a> {
    /// Returns the state of a ReleasePin after a change of its releaseRef; the holds stay the same. If `pin` is None,
    /// the change creates the ReleasePin.
    fn moved(
        component: &'a str,
        environment: &'a str,
        pin: Option<&'a Pin>,
        release: &ReleaseRow,
    ) -> Self {
        Self {
            component,
            environment,
            pin,
            release_ref: release.key.name.to_string(),
            holds: pin.map(|pin| pin.holds.to_vec()).unwrap_or_default(),
            to: identity(&release.key.name, Some(release)),
            restored_from: None,
            skips_path: false,
            warnings: Vec::new(),
        }
    }
}

fn plan(action: Action, asked: &Asked, changes: Vec<Change>) -> Plan {
    Plan {
        action,
        operation: asked.operation.clone(),
        at: asked.now,
        reason: asked.reason.clone(),
        changes,
    }
}

/// Builds the planned change of a ReleasePin. The change depends on the facts that `rules` have read.
fn change(rules: Rules<'_>, after: After<'_>) -> Change {
    let After {
        component,
        environment,
        pin,
        ..
    } = after;
    let effective = pin.map(|pin| pin.effective_release(rules.asked.now));
    let from = effective.map(|name| identity(name, rules.world.release(&rules.key(name))));
    let key = rules.key(&names::pin(component, environment));
    let spec = rules.world.environment(&rules.key(environment));
    let spec = spec.map(|environment| &environment.spec);
    let mut fields = vec![
        Field::set(&["spec", "component"], component),
        Field::set(&["spec", "environment"], environment),
        Field::set(RELEASE_REF, after.release_ref.as_str()),
    ];
    if pin.is_none() {
        let own = json!({labels::COMPONENT: component, labels::ENVIRONMENT: environment});
        fields.push(Field::set(&["metadata", "labels"], own));
    }
    let unchanged = pin.is_some_and(|pin| {
        *pin.release == *after.release_ref && *pin.holds == *after.holds.as_slice()
    });
    let key = pin.map_or(key, |pin| pin.key.clone());
    let mut facts = rules.facts.clone();
    // If several facts are no longer true, only the first of them is described. So this fact comes last, because the
    // other facts give a better description.
    facts.push(PinFact::Effective {
        key: key.clone(),
        from: from.as_ref().map(|from| from.name.clone()),
        release_ref: after.release_ref.clone(),
        holds: after.holds.clone(),
        to: after.to.name.clone(),
    });
    Change {
        subject: SubjectRef::new(&KIND, key),
        name: component.to_owned(),
        environment: environment.to_owned(),
        is_production: spec.is_some_and(|spec| spec.is_production),
        requires_reason: after.skips_path || spec.is_some_and(|spec| spec.requires_reason()),
        expected: pin.map(|pin| Expected {
            uid: pin.uid.to_string(),
            number: pin.generation,
            fields: None,
        }),
        fields,
        claims: claims(&rules, &after),
        mark: None,
        holds_before: pin.map_or_else(Vec::new, |pin| pin.holds.to_vec()),
        holds: after.holds,
        from,
        to: after.to,
        restored_from: after.restored_from,
        rendered_hash: None,
        unchanged,
        facts: facts.into_iter().map(shared).collect(),
        warnings: after.warnings,
    }
}

fn shared(fact: PinFact) -> Arc<dyn Fact> {
    Arc::new(fact)
}

/// Returns claims on the releases that the ReleasePin names after the change and not before it.
fn claims(rules: &Rules<'_>, after: &After<'_>) -> Vec<ClaimOn> {
    let fixed = after
        .holds
        .iter()
        .filter_map(|hold| hold.release.as_deref());
    let named = std::iter::once(after.release_ref.as_str()).chain(fixed);
    let is_new = |name: &&str| {
        let mut known = after.pin.into_iter().flat_map(Pin::named_releases);
        known.all(|known| known != *name)
    };
    let on = |name| {
        let key = rules.key(name);
        let release = rules.world.release(&key);
        release.map_or_else(|| claim::on_name(key), claim::on)
    };
    named.filter(is_new).map(on).collect()
}

/// Returns a key with the same namespace and another name.
fn beside(key: &Key, name: &str) -> Key {
    Key {
        namespace: key.namespace.clone(),
        name: name.into(),
    }
}
