//! `deploy`: deploys a release to a first environment of the pipeline. With `skip_path`, deploys it to any
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
    /// Whether the user accepts a deploy to an environment that is normally reached by a promotion.
    pub skip_path: bool,
}

/// Plans a deploy, which creates or changes a ReleasePin.
pub fn plan(world: &World, command: &Deploy, asked: &Asked) -> Result<Plan, Refusal> {
    plan_with(world, None, command, asked)
}

/// Plans a deploy of a release that may not exist yet. Then `supposed` is the row that the release will have in the
/// read model.
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
    // A plan that skips the promotion path needs a reason instead, so this rule is not checked for it.
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
