//! Applies a plan and reports the result of each change. If the user interrupts bowline, it stops between two
//! changes.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::connect::{self, Address};
use crate::engine::claim::ClaimError;
use crate::engine::plan::Plan;
use crate::engine::publish::{Applied, ApplyError};
use crate::engine::whoami::Clock;
use crate::error::Exit;
use crate::subjects::service::{self, Confirmed, NotApplied, Service};
use crate::text::quoted;

/// The result of applying a plan.
pub(crate) struct Became {
    /// The result of each change, in the order of the plan.
    pub(crate) results: Vec<Result>,
    pub(crate) exit: Exit,
    /// Whether the user interrupted the plan.
    pub(crate) interrupted: bool,
}

/// The result of one change of a plan.
pub(crate) enum Result {
    /// bowline made the change. Contains the new revision of the subject.
    Done(i64),
    /// bowline committed the change on a branch that is not checked out.
    Committed,
    /// The subject already had the desired state, so bowline wrote nothing.
    Unchanged,
    /// bowline did not start the change.
    NotBegun,
    Failed,
    /// The server did not answer, so it is unknown whether the change was made.
    Unknown,
}

impl Result {
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Committed | Self::Unchanged)
    }

    pub(crate) fn revision(&self) -> Option<i64> {
        match self {
            Self::Done(revision) => Some(*revision),
            _ => None,
        }
    }

    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Done(_) | Self::Committed => "done",
            Self::Unchanged => "unchanged",
            Self::NotBegun => "not begun",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// Applies a confirmed plan, and returns its result. If the user interrupts bowline, a plan on a server stops after
/// the current write; in a repository, bowline ends at once.
pub(crate) async fn apply(
    service: &Service<'_>,
    confirmed: &mut Confirmed,
    user: &str,
    clock: Clock<'_>,
    say: &mut dyn FnMut(String),
) -> (std::result::Result<service::Outcome, NotApplied>, bool) {
    let abort = AtomicBool::new(false);
    let commits = confirmed.files.is_some();
    let mut applying = std::pin::pin!(service.apply(confirmed, user, clock, &abort));
    let applied = tokio::select! {
        applied = &mut applying => applied,
        // If bowline cannot install a handler for the signal, an interrupt ends the process at once.
        Ok(()) = tokio::signal::ctrl_c(), if !commits => {
            abort.store(true, Ordering::SeqCst);
            say("interrupted: bowline finishes the current write, then stops".to_owned());
            applying.await
        }
    };
    (applied, abort.load(Ordering::SeqCst))
}

/// Prints the errors and warnings of a plan's changes. Returns the result of each change.
pub(crate) fn became(
    plan: &Plan,
    answers: &[std::result::Result<Applied, ApplyError>],
    address: &Address,
    say: &mut dyn FnMut(String),
) -> Became {
    let mut results = Vec::with_capacity(answers.len());
    let mut first = None;
    for (change, answer) in plan.changes.iter().zip(answers) {
        results.push(match answer {
            Ok(applied) => done(&change.key().name, applied, say),
            Err(error) => {
                say(format!("error: {}: {error}", &change.key().name));
                if error.is_open() {
                    let history = change.command_line("history", quoted);
                    let history = address.bowline(&history);
                    let kind = change.subject.kind.name;
                    say(format!("hint: list the revisions of the {kind}: {history}"));
                }
                first = first.or(exit(error));
                match error {
                    ApplyError::NotBegun { .. } => Result::NotBegun,
                    error if error.is_open() => Result::Unknown,
                    _ => Result::Failed,
                }
            }
        });
    }
    let unbegun = results.iter().any(|result| !result.is_done());
    let exit = match (first, unbegun) {
        (Some(exit), _) => exit,
        (None, true) => Exit::Failed,
        (None, false) => Exit::Done,
    };
    Became {
        results,
        exit,
        interrupted: false,
    }
}

fn done(pin: &str, applied: &Applied, say: &mut dyn FnMut(String)) -> Result {
    match applied {
        Applied::Unchanged => Result::Unchanged,
        Applied::Done(revision) => Result::Done(*revision),
        Applied::Unrecorded(revision, why) => {
            say(format!("warning: {pin} was changed: {why}"));
            Result::Done(*revision)
        }
        Applied::Superseded { revision, by } => {
            say(format!("this command changed {pin}; afterwards {by}"));
            Result::Done(*revision)
        }
    }
}

/// Returns the exit code for the error of a change. None if the change was not started, because then the other
/// changes decide the exit code.
fn exit(error: &ApplyError) -> Option<Exit> {
    Some(match error {
        ApplyError::NotBegun { .. } => return None,
        ApplyError::Stale { .. }
        | ApplyError::Overtaken { .. }
        | ApplyError::Claim(ClaimError::Gone(_) | ClaimError::Deleting(_)) => Exit::Conflict,
        ApplyError::NoReason { .. } | ApplyError::Claim(ClaimError::Bad(_)) => Exit::Refused,
        ApplyError::Claim(ClaimError::Target(error))
        | ApplyError::Target(error)
        | ApplyError::Unmarked { error, .. } => connect::failure(error).into(),
        ApplyError::Unknown { .. } => Exit::Unreachable,
    })
}
