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
    /// The name of the release.
    pub release: String,
    /// The mark: bad or good.
    pub verdict: Verdict,
}

/// The plan of a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Marking {
    /// The id of the operation.
    pub operation: String,
    /// The reason that the user gave.
    pub reason: Option<String>,
    /// The user who marks the release.
    pub by: String,
    /// The time at which the plan was made.
    pub at: Timestamp,
    /// The namespace and the name of the release.
    pub release: Key,
    /// The uid, which differs from the uid of a later release of the same name.
    pub uid: String,
    /// The mark before the action; None if the release has no mark.
    pub was: Option<Verdict>,
    /// The mark after the action.
    pub verdict: Verdict,
    /// Whether the release already has this mark.
    pub unchanged: bool,
    /// The environments in which the release is the effective release.
    pub runs_in: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Marking {
    /// Returns whether the mark needs a reason: a bad mark does, and a good mark that replaces a bad one.
    pub fn needs_reason(&self) -> bool {
        !self.unchanged && [Some(self.verdict), self.was].contains(&Some(Verdict::Bad))
    }

    /// Returns the confirmation of the mark.
    pub fn confirmation(&self) -> Confirmation {
        Confirmation {
            reason: match self.noted() {
                Err(_) => Reason::Required,
                Ok(()) => Reason::Optional,
            },
            ..Confirmation::default()
        }
    }

    /// Returns an error if the mark needs a reason and has none: such a plan can be shown, but not
    /// applied.
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
