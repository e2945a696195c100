//! `rollback`: back to a release that was good, and a hold so that nothing undoes it.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::{Moved, item};
use crate::api::audit::Action;
use crate::api::pin::Hold;
use crate::api::release::Verdict;
use crate::engine::plan::{Asked, Plan};
use crate::engine::presence::Presence;
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
    /// What is on record of the pin: revisions and their releases.
    pub recorded: Vec<(i64, String)>,
    /// Whether outcomes can be trusted, because a controller runs.
    pub controller: Presence,
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
    let hold = Hold {
        id: hold_id(&asked.operation),
        owner: asked.user.clone(),
        reason: asked.reason.clone(),
        since: since(pin, asked.now),
        until: None,
        release: by_hold.then(|| release.clone()),
    };
    if command.hold && !is_held_already(pin, &hold, &release, asked) {
        holds.push(hold);
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
            "{} owns this ReleasePin: git still names {}, and the hold keeps {release} running",
            tool.name(),
            pin.release
        ));
    }
    Ok(super::plan(Action::Rollback, asked, vec![item]))
}

/// Tells whether the pin is where a rollback would leave it: who repeats one, because they did not see the
/// end of it, does not hold twice.
fn is_held_already(pin: &Pin, wanted: &Hold, release: &str, asked: &Asked) -> bool {
    let same = |hold: &Hold| {
        (&hold.owner, &hold.reason, &hold.release, &hold.until)
            == (
                &wanted.owner,
                &wanted.reason,
                &wanted.release,
                &wanted.until,
            )
    };
    pin.effective_release(asked.now) == release && pin.holds.iter().any(same)
}

/// The id of a hold: short, and the same when the operation is repeated.
pub(in crate::engine) fn hold_id(operation: &str) -> String {
    let id: String = operation.chars().take(8).collect();
    format!("hold-{id}")
}

/// When a hold begins: after every other, for the newest that fixes a release decides, and the API keeps
/// no fractions of a second.
pub(super) fn since(pin: &Pin, now: Timestamp) -> Time {
    let second = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
    let newest = pin.holds.iter().map(|hold| second(hold.since.0)).max();
    let after = newest.and_then(|newest| newest.checked_add(SignedDuration::from_secs(1)).ok());
    Time(after.map_or(second(now), |after| after.max(second(now))))
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
            let moves = pin.moves.iter();
            let mut known: BTreeMap<i64, &str> =
                moves.map(|ran| (ran.generation, &*ran.release)).collect();
            let recorded = command.recorded.iter();
            known.extend(recorded.map(|(revision, release)| (*revision, release.as_str())));
            match known.get(revision) {
                Some(release) => Ok(((*release).to_owned(), Some(*revision))),
                None => Err(Refusal::NoRevision {
                    component,
                    environment,
                    revision: *revision,
                    known: known.keys().rev().take(10).map(i64::to_string).collect(),
                }),
            }
        }
        Target::LastGood => {
            if let Presence::Absent(why) = &command.controller {
                return Err(Refusal::NoController {
                    component,
                    environment,
                    why: why.clone(),
                });
            }
            if pin.observed != Some(pin.generation) {
                return Err(Refusal::NotObserved {
                    component,
                    environment,
                });
            }
            let found = last_good(world, pin, asked.now);
            let found = found.ok_or(Refusal::NoLastGood {
                component,
                environment,
            })?;
            Ok((found.release.to_string(), Some(found.generation)))
        }
    }
}

/// Returns the newest move to another release than the one that counts, which was healthy when it was
/// replaced, is still there and is not marked bad.
pub fn last_good<'w>(world: &World, pin: &'w Pin, now: Timestamp) -> Option<&'w Move> {
    let current = pin.effective_release(now);
    pin.moves.iter().rfind(|ran| {
        let release = world.release(&super::beside(&pin.key, &ran.release));
        *ran.release != *current
            && ran.until.is_some()
            && ran.healthy == Some(true)
            && release.is_some_and(|release| release.mark != Some(Verdict::Bad))
    })
}
