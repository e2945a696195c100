//! `deploy`: a release to an environment that nothing promotes to.

use super::{Moved, item};
use crate::api::audit::Action;
use crate::engine::plan::{Asked, Plan};
use crate::engine::rules::{Refusal, Rules};
use crate::engine::world::World;

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
    let Deploy {
        component,
        environment,
        release,
        skip_path,
    } = command;
    let mut rules = Rules::new(world, asked);
    rules.current()?;
    rules.environment(environment)?;
    super::path_or_reason(&mut rules, *skip_path, environment, |rules| {
        rules.first(environment)
    })?;
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
    Ok(super::plan(Action::Deploy, asked, vec![item(rules, moved)]))
}
