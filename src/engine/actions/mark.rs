//! `mark`: says that a release is bad, so that nothing moves to it, or that it is good again.

use jiff::Timestamp;

use crate::api::release::Verdict;
use crate::engine::marking;
use crate::engine::plan::Asked;
use crate::engine::rules::{Refusal, Rules};
use crate::engine::world::{Key, World};

/// What is marked, and how.
#[derive(Clone, Debug)]
pub struct Mark {
    /// The release.
    pub release: String,
    /// Bad or good.
    pub verdict: Verdict,
}

/// A mark that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Marking {
    /// The operation.
    pub operation: String,
    /// Why.
    pub reason: Option<String>,
    /// Who marks it.
    pub by: String,
    /// When it was planned.
    pub at: Timestamp,
    /// The release.
    pub release: Key,
    /// What tells it from another release of the same name.
    pub uid: String,
    /// How it is marked now.
    pub was: Option<Verdict>,
    /// How it is marked afterwards.
    pub verdict: Verdict,
    /// Whether it is marked so already.
    pub unchanged: bool,
    /// The environments where it counts.
    pub runs_in: Vec<String>,
    /// What the person should know.
    pub warnings: Vec<String>,
}

impl Marking {
    /// Tells whether the mark needs a reason: a bad mark does, and a good mark that replaces a bad one.
    pub fn needs_reason(&self) -> bool {
        !self.unchanged && [Some(self.verdict), self.was].contains(&Some(Verdict::Bad))
    }

    /// Refuses a mark without the reason that it needs: such a plan can be looked at and not applied.
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

/// Plans a mark.
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
