//! `deploy`: deploys a release to an environment without a promotion path into it.

use super::{After, change};
use crate::api::bowline::audit::Action;
use crate::engine::plan::{Asked, Plan};
use crate::engine::world::World;
use crate::subjects::release_pin::rows::ReleaseRow;
use crate::subjects::release_pin::rules::{Refusal, Rules};

/// The arguments of a deploy.
#[derive(Clone, Debug)]
pub struct Deploy {
    /// The component to deploy.
    pub component: String,
    /// The environment to deploy to.
    pub environment: String,
    /// The release to deploy.
    pub release: String,
    /// Whether the environment may have a promotion path into it.
    pub skip_path: bool,
}

/// Plans a deploy: creates or changes the ReleasePin.
pub fn plan(world: &World, command: &Deploy, asked: &Asked) -> Result<Plan, Refusal> {
    plan_with(world, None, command, asked)
}

/// Plans a deploy of a release that may not exist yet: the rules then use the row `supposed` for
/// it.
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
    // A plan that skips the path cannot be applied without a reason, so this rule is not needed for
    // it.
    if !skip_path {
        rules.first(environment)?;
    }
    let release = &rules.meant(component, release);
    let row = rules.release(component, release)?;
    let pin = rules.target(component, environment)?;
    if let Some(pin) = pin {
        rules.not_held(pin)?;
        rules.not_owned(pin, release)?;
    }
    let mut after = After::moved(component, environment, pin, row);
    after.skips_path = *skip_path;
    let change = change(rules, after);
    Ok(super::plan(Action::Deploy, asked, vec![change]))
}
