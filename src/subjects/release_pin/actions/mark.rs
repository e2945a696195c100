//! `mark`: plans to mark a release bad, so that no action deploys it, or good again.

use crate::api::openchoreo::release::Verdict;
use crate::engine::plan::Asked;
use crate::engine::world::World;
use crate::subjects::release_pin::marking::Marking;
use crate::subjects::release_pin::rules::{Refusal, Rules};

/// The arguments of the command `mark`.
#[derive(Clone, Debug)]
pub struct Mark {
    pub release: String,
    /// The verdict to write on the release: bad or good.
    pub verdict: Verdict,
}

/// Plans to mark a release bad or good.
pub fn plan(world: &World, command: &Mark, asked: &Asked) -> Result<Marking, Refusal> {
    let rules = Rules::new(world, asked);
    rules.current()?;
    let Mark { release, verdict } = command;
    let key = rules.key(release);
    let row = world
        .release(&key)
        .ok_or_else(|| rules.no_release(release))?;
    let unchanged = row.mark == Some(*verdict);
    let pins = world.pins_naming(&key);
    let pins = pins.filter_map(|name| world.pin(&super::beside(&key, name)));
    let counts = pins.filter(|pin| pin.effective_release(asked.now) == release);
    let runs_in: Vec<String> = counts.map(|pin| pin.environment.to_string()).collect();
    let mut warnings = Vec::new();
    if *verdict == Verdict::Bad && !runs_in.is_empty() {
        warnings.push(format!(
            "{release} still runs in {}: a mark does not stop it; use bowline rollback",
            runs_in.join(", ")
        ));
    }
    Ok(Marking {
        operation: asked.operation.clone(),
        reason: asked.reason.clone(),
        by: asked.user.clone(),
        at: asked.now,
        uid: row.uid.to_string(),
        was: row.mark,
        verdict: *verdict,
        unchanged,
        release: key,
        runs_in,
        warnings,
    })
}
