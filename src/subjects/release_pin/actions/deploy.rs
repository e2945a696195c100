//! `deploy`: deploys a release to a first environment of the pipeline, or with `skip_path` to any
//! environment.

use super::{After, change};
use crate::api::bowline::audit::Action;
use crate::engine::plan::{Asked, Plan};
use crate::engine::world::World;
use crate::subjects::release_pin::rows::ReleaseRow;
use crate::subjects::release_pin::rules::{Refusal, Rules};

/// The arguments of a deploy.
#[derive(Clone, Debug)]
pub struct Deploy {
    pub component: String,
    pub environment: String,
    pub release: String,
    /// Whether the user accepts an environment that a promotion path leads to.
    pub skip_path: bool,
}

/// Plans a deploy: creates or changes the ReleasePin.
pub fn plan(world: &World, command: &Deploy, asked: &Asked) -> Result<Plan, Refusal> {
    plan_with(world, None, command, asked)
}

/// Plans a deploy. If the release does not exist yet, `supposed` is the row that it will have in the read
/// model.
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
    // A plan that skips the path needs a reason, so the rule is checked only for other plans.
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
