//! `pin` and `unpin`: place and remove a hold on a ReleasePin.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{After, change, rollback};
use crate::api::bowline::audit::Action;
use crate::api::hold::Hold;
use crate::engine::plan::{Asked, Plan};
use crate::engine::world::World;
use crate::subjects::release_pin::facts::identity;
use crate::subjects::release_pin::rules::{self, Refusal, Rules};

/// The arguments of the command `pin`.
#[derive(Clone, Debug)]
pub struct PinHold {
    pub component: String,
    pub environment: String,
    /// The time at which the hold ends; None for a hold without an end.
    pub until: Option<Timestamp>,
    /// The release that the hold fixes; None if the hold fixes no release.
    pub release: Option<String>,
}

/// The arguments of the command `unpin`.
#[derive(Clone, Debug)]
pub struct Unpin {
    pub component: String,
    pub environment: String,
    /// The id of the hold to remove; None removes the only hold of the ReleasePin.
    pub hold: Option<String>,
}

/// Plans to place a hold on a ReleasePin.
pub fn plan_pin(world: &World, command: &PinHold, asked: &Asked) -> Result<Plan, Refusal> {
    let mut rules = Rules::new(world, asked);
    rules.current()?;
    rules.environment(&command.environment)?;
    let pin = rules.pinned(&command.component, &command.environment)?;
    let effective = pin.effective_release(asked.now).to_owned();
    // A hold may fix a release that is marked bad only if that release is already effective.
    let fixed = command.release.as_deref();
    let fixed = fixed.map(|said| rules.meant(&command.component, said));
    let row = match &fixed {
        Some(wanted) => rules.release(&command.component, wanted)?,
        None => rules.known_release(&command.component, &effective)?,
    };
    let endless = pin.gitops.filter(|_| fixed.is_some());
    let until = command.until.filter(|_| endless.is_none());
    let mut holds = pin.holds.to_vec();
    holds.push(Hold {
        id: asked.hold_id(),
        owner: asked.user.clone(),
        reason: asked.reason.clone(),
        since: rollback::since(pin, asked.now),
        until: until.map(Time),
        release: fixed,
    });
    let mut after = After::moved(&command.component, &command.environment, Some(pin), row);
    after.release_ref = pin.release.to_string();
    after.holds = holds;
    if let (Some(tool), Some(_)) = (endless, command.until) {
        after.warnings.push(format!(
            "{} owns this ReleasePin, so the hold has no end; bowline unpin removes it",
            tool.name()
        ));
    }
    if until.is_some_and(|until| until <= asked.now) {
        after
            .warnings
            .push("the hold ends in the past, so it has no effect".to_owned());
    }
    Ok(super::plan(Action::Pin, asked, vec![change(rules, after)]))
}

/// Plans to remove a hold from a ReleasePin. If another release becomes effective by that, adds a warning.
pub fn plan_unpin(world: &World, command: &Unpin, asked: &Asked) -> Result<Plan, Refusal> {
    let mut rules = Rules::new(world, asked);
    rules.current()?;
    rules.environment(&command.environment)?;
    let pin = rules.pinned(&command.component, &command.environment)?;
    let found = hold(command, &pin.holds)?;
    let mut holds = pin.holds.to_vec();
    holds.remove(found);
    let mut after = pin.clone();
    after.holds = holds.clone().into();
    let effective = after.effective_release(asked.now).to_owned();
    let row = world.release(&rules.key(&effective));
    let from = pin.effective_release(asked.now);
    let mut warnings = Vec::new();
    if effective != from {
        let by = match pin.gitops {
            Some(tool) => format!("{} restores the release in git", tool.name()),
            None => "the releaseRef becomes effective again".to_owned(),
        };
        warnings.push(format!("{by}: {effective} instead of {from}"));
    }
    if row.is_none() {
        warnings.push(format!(
            "release {effective} does not exist; the running resources stay"
        ));
    }
    let after = After {
        component: &command.component,
        environment: &command.environment,
        pin: Some(pin),
        release_ref: pin.release.to_string(),
        holds,
        to: identity(&effective, row),
        restored_from: None,
        skips_path: false,
        warnings,
    };
    Ok(super::plan(
        Action::Unpin,
        asked,
        vec![change(rules, after)],
    ))
}

/// Returns the index in `holds` of the hold that the command removes.
fn hold(command: &Unpin, holds: &[Hold]) -> Result<usize, Refusal> {
    let (component, environment) = (command.component.clone(), command.environment.clone());
    match (&command.hold, holds) {
        (Some(id), _) => {
            holds
                .iter()
                .position(|hold| hold.id == *id)
                .ok_or_else(|| Refusal::NoSuchHold {
                    component,
                    environment,
                    id: id.clone(),
                    known: holds.iter().map(|hold| hold.id.clone()).collect(),
                })
        }
        (None, [_]) => Ok(0),
        (None, []) => Err(Refusal::NoHold {
            component,
            environment,
        }),
        (None, _) => Err(Refusal::SeveralHolds {
            component,
            environment,
            holds: holds
                .iter()
                .map(|hold| format!("{}: {}", hold.id, rules::hold_words(hold)))
                .collect(),
        }),
    }
}
