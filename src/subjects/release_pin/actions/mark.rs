//! `mark`: marks a release bad, so that nothing deploys it, or good again.

use jiff::Timestamp;

use crate::api::openchoreo::release::Verdict;
use crate::engine::confirmation::{Confirmation, Reason};
use crate::engine::plan::Asked;
use crate::engine::world::{Key, World};
use crate::subjects::release_pin::marking;
use crate::subjects::release_pin::rules::{Refusal, Rules};

/// The arguments of a mark.
#[derive(Clone, Debug)]
pub struct Mark {
    pub release: String,
    /// The verdict to write: bad or good.
    pub verdict: Verdict,
}

/// The plan of a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Marking {
    pub operation: String,
    pub reason: Option<String>,
    pub by: String,
    /// The time at which the planner made the plan.
    pub at: Timestamp,
    pub release: Key,
    /// The uid. A later release with the same name has another uid.
    pub uid: String,
    /// The verdict before the mark; None if the release has no mark.
    pub was: Option<Verdict>,
    /// The verdict to write.
    pub verdict: Verdict,
    /// Whether the release already has this verdict, so that nothing is written.
    pub unchanged: bool,
    /// The environments where the release is effective.
    pub runs_in: Vec<String>,
    pub warnings: Vec<String>,
}

impl Marking {
    /// Returns whether the mark needs a reason: a bad mark does, and a good mark that replaces a bad mark.
    pub fn needs_reason(&self) -> bool {
        !self.unchanged && [Some(self.verdict), self.was].contains(&Some(Verdict::Bad))
    }

    /// Returns the confirmation that the mark needs.
    pub fn confirmation(&self) -> Confirmation {
        Confirmation {
            reason: match self.noted() {
                Err(_) => Reason::Required,
                Ok(()) => Reason::Optional,
            },
            ..Confirmation::default()
        }
    }

    /// Returns a refusal if the mark needs a reason and has none. Front ends show such a plan, but cannot
    /// apply it.
    pub fn noted(&self) -> Result<(), Refusal> {
        let given = self.reason.as_deref().unwrap_or_default();
        match self.needs_reason() && given.trim().is_empty() {
            true => Err(Refusal::NoNote {
                release: self.release.name.to_string(),
                verdict: marking::word(self.verdict),
            }),
            false => Ok(()),
        }
    }
}

/// Plans a mark on a release.
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
