//! `rollback`: back to a release that was good, and a hold so that nothing undoes it.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Moved, item};
use crate::api::audit::Action;
use crate::api::pin::Hold;
use crate::api::release::Verdict;
use crate::engine::plan::{Asked, Plan};
use crate::engine::rules::{Refusal, Rules};
use crate::engine::world::{Move, Pin, World};

/// What is rolled back, and to what.
#[derive(Clone, Debug)]
pub struct Rollback {
    /// The component.
    pub component: String,
    /// The environment.
    pub environment: String,
    /// Back to what.
    pub to: Target,
    /// Whether a hold keeps it there.
    pub hold: bool,
    /// Whether outcomes can be trusted: the controller runs.
    pub controller_runs: bool,
}

/// What a rollback goes back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The newest release that was healthy when it was replaced.
    LastGood,
    /// This one.
    Release(String),
    /// What ran in this revision.
    Revision(i64),
}

/// Plans a rollback. Holds do not stop it.
pub fn plan(world: &World, command: &Rollback, asked: &Asked) -> Result<Plan, Refusal> {
    let Rollback {
        component,
        environment,
        ..
    } = command;
    let mut rules = Rules::new(world, asked);
    rules.current()?;
    rules.environment(environment)?;
    let pin = rules.pinned(component, environment)?;
    let (release, restored_from) = target(world, command, pin, asked)?;
    let row = rules.release(component, &release)?;
    // What a tool owns it puts back; and what a hold fixes counts before any reference.
    let fixed = pin
        .active_holds(asked.now)
        .any(|hold| hold.release.is_some());
    let by_hold = pin.gitops.is_some() || fixed;
    if by_hold && !command.hold {
        rules.not_owned(pin, &release)?;
        rules.not_held(pin)?;
    }
    let mut holds = pin.holds.to_vec();
    if command.hold {
        holds.push(Hold {
            id: hold_id(&asked.operation),
            owner: asked.user.clone(),
            reason: asked.reason.clone(),
            since: Time(asked.now),
            until: None,
            release: by_hold.then(|| release.clone()),
        });
    }
    let moved = Moved {
        component,
        environment,
        pin: Some(pin),
        release: row,
        holds,
        keeps_reference: by_hold,
        restored_from,
    };
    let mut item = item(rules, moved);
    if let Some(tool) = pin.gitops {
        item.warnings.push(format!(
            "{} owns this pin: git still says {}, and a hold keeps {release} running over it",
            tool.name(),
            pin.release
        ));
    }
    Ok(super::plan(Action::Rollback, asked, vec![item]))
}

/// The id of a hold: short, and the same when the operation is repeated.
pub(super) fn hold_id(operation: &str) -> String {
    let id: String = operation.chars().take(8).collect();
    format!("hold-{id}")
}

fn target(
    world: &World,
    command: &Rollback,
    pin: &Pin,
    asked: &Asked,
) -> Result<(String, Option<i64>), Refusal> {
    let (component, environment) = (pin.component.to_string(), pin.environment.to_string());
    match &command.to {
        Target::Release(name) => {
            let ran = pin.moves.iter().rfind(|ran| *ran.release == **name);
            Ok((name.clone(), ran.map(|ran| ran.generation)))
        }
        Target::Revision(revision) => {
            let found = pin.moves.iter().find(|ran| ran.generation == *revision);
            let known = || {
                let newest = pin.moves.iter().rev().take(10);
                newest.map(|ran| ran.generation.to_string()).collect()
            };
            let found = found.ok_or_else(|| Refusal::NoRevision {
                component,
                environment,
                revision: *revision,
                known: known(),
            })?;
            Ok((found.release.to_string(), Some(*revision)))
        }
        Target::LastGood => {
            if !command.controller_runs || pin.observed != Some(pin.generation) {
                return Err(Refusal::NotObserved {
                    component,
                    environment,
                });
            }
            let current = pin.effective_release(asked.now);
            let good = |ran: &&Move| {
                let key = super::beside(&pin.key, &ran.release);
                let release = world.release(&key);
                *ran.release != *current
                    && ran.until.is_some()
                    && ran.healthy == Some(true)
                    && release.is_some_and(|release| release.mark != Some(Verdict::Bad))
            };
            let found = pin.moves.iter().rev().find(good);
            let found = found.ok_or(Refusal::NoLastGood {
                component,
                environment,
            })?;
            Ok((found.release.to_string(), Some(found.generation)))
        }
    }
}
