//! `deploy`: a release to an environment that nothing promotes to.

use super::{Moved, item};
use crate::api::audit::Action;
use crate::engine::plan::{Asked, Plan};
use crate::engine::rules::{Refusal, Rules};
use crate::engine::world::{ReleaseRow, World};

/// What is deployed where.
#[derive(Clone, Debug)]
pub struct Deploy {
    /// The component.
    pub component: String,
    /// The environment.
    pub environment: String,
    /// The release.
    pub release: String,
    /// Whether it may be an environment that is promoted to.
    pub skip_path: bool,
}

/// Plans a deployment: the pin is made or moved.
pub fn plan(world: &World, command: &Deploy, asked: &Asked) -> Result<Plan, Refusal> {
    plan_with(world, None, command, asked)
}

/// Plans a deployment of a release that may not be made yet: `supposed` is laid over the read model.
pub fn plan_with(
    world: &World,
    supposed: Option<&ReleaseRow>,
    command: &Deploy,
    asked: &Asked,
) -> Result<Plan, Refusal> {
    let Deploy {
        component,
        environment,
        release,
        skip_path,
    } = command;
    let mut rules = Rules::supposing(world, supposed, asked);
    rules.current()?;
    rules.environment(environment)?;
    // A plan that skips the path is not applied without a reason.
    if !skip_path {
        rules.first(environment)?;
    }
    let row = rules.release(component, release)?;
    let pin = rules.target(component, environment)?;
    if let Some(pin) = pin {
        rules.not_held(pin)?;
        rules.not_owned(pin, release)?;
    }
    let moved = Moved {
        component,
        environment,
        pin,
        release: row,
        holds: pin.map(|pin| pin.holds.to_vec()).unwrap_or_default(),
        keeps_reference: false,
        restored_from: None,
    };
    let mut item = item(rules, moved);
    item.skips_path = *skip_path;
    Ok(super::plan(Action::Deploy, asked, vec![item]))
}
