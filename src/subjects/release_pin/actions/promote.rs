//! `promote`: makes the effective release of one environment effective in another environment. Each environment keeps
//! its own settings.

use super::{After, change};
use crate::api::bowline::audit::Action;
use crate::engine::plan::{Asked, Change, Plan};
use crate::engine::world::World;
use crate::subjects::release_pin::rules::{Refusal, Rules};

/// The arguments of the command `promote`.
#[derive(Clone, Debug)]
pub struct Promote {
    /// The components to promote, all in one plan.
    pub components: Vec<String>,
    /// The source environment of the promotion.
    pub from: String,
    /// The target environment of the promotion, whose ReleasePins the plan changes.
    pub to: String,
    /// Whether the user accepts that the release is not ready in the source environment.
    pub unready: bool,
    /// Whether the user accepts that the pipeline has no path from the source to the target environment.
    pub skip_path: bool,
}

/// Plans a promotion. If rules refuse the promotion of some components, returns all their refusals.
pub fn plan(world: &World, command: &Promote, asked: &Asked) -> Result<Plan, Vec<Refusal>> {
    let mut changes = Vec::with_capacity(command.components.len());
    let mut refusals = Vec::new();
    if command.components.is_empty() {
        let rules = Rules::new(world, asked);
        let known = rules.known_environment(&command.from).err();
        return Err(vec![known.unwrap_or(Refusal::Nothing {
            environment: command.from.clone(),
        })]);
    }
    for component in &command.components {
        match promotion(world, command, component, asked) {
            Ok(change) => changes.push(change),
            // Several components may get the same refusal, which is listed only once.
            Err(refusal) if refusals.contains(&refusal) => {}
            Err(refusal) => refusals.push(refusal),
        }
    }
    match refusals.is_empty() {
        true => Ok(super::plan(Action::Promote, asked, changes)),
        false => Err(refusals),
    }
}

fn promotion(
    world: &World,
    command: &Promote,
    component: &str,
    asked: &Asked,
) -> Result<Change, Refusal> {
    let Promote { from, to, .. } = command;
    let mut rules = Rules::new(world, asked);
    rules.current()?;
    rules.known_environment(from)?;
    rules.environment(to)?;
    // A plan that skips the promotion path needs a reason instead, so this rule is not checked for it.
    match command.skip_path {
        true => rules.one_pipeline()?,
        false => rules.path(from, to)?,
    }
    let source = world.pin_of(&rules.key(component), from);
    let source = source.ok_or_else(|| rules.no_pin(component, from))?;
    let release = source.effective_release(asked.now).to_owned();
    let row = rules.release(component, &release)?;
    rules.source(source, !command.unready)?;
    let pin = rules.target(component, to)?;
    if let Some(pin) = pin {
        rules.not_held(pin)?;
        rules.not_owned(pin, &release)?;
    }
    let mut after = After::moved(component, to, pin, row);
    after.skips_path = command.skip_path;
    Ok(change(rules, after))
}
