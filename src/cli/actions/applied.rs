//! Applies a plan and reports the result of each change. An interrupt ends a plan between two changes.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::cli::connect::{self, Address};
use crate::cli::error::Exit;
use crate::engine::claim::ClaimError;
use crate::engine::plan::Plan;
use crate::engine::publish::{Applied, ApplyError};
use crate::engine::whoami::Clock;
use crate::subjects::service::{self, Confirmed, NotApplied, Service};
use crate::text::quoted;

/// The result of a plan.
pub(in crate::cli) struct Became {
    /// The result of each change, in the order of the plan.
    pub(in crate::cli) results: Vec<Result>,
    /// The exit code of the program.
    pub(in crate::cli) exit: Exit,
    /// Whether the user interrupted the plan.
    pub(in crate::cli) interrupted: bool,
}

/// The result of one change.
pub(in crate::cli) enum Result {
    /// The change was made. The number is the new generation of the object.
    Done(i64),
    /// The change is a commit on a branch that is not checked out.
    Committed,
    /// The ReleasePin already had the desired state.
    Unchanged,
    /// The change was not started.
    NotBegun,
    /// The change failed.
    Failed,
    /// It is unknown whether the change was made.
    Unknown,
}

impl Result {
    pub(in crate::cli) fn is_done(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Committed | Self::Unchanged)
    }

    pub(in crate::cli) fn revision(&self) -> Option<i64> {
        match self {
            Self::Done(revision) => Some(*revision),
            _ => None,
        }
    }

    pub(in crate::cli) fn word(&self) -> &'static str {
        match self {
            Self::Done(_) | Self::Committed => "done",
            Self::Unchanged => "unchanged",
            Self::NotBegun => "not begun",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
        }
    }
}

/// Applies a confirmed plan. Returns the result, and whether the user interrupted the plan. On a server, an
/// interrupt ends the plan after the current write. In a repository, an interrupt ends the program at once.
pub(in crate::cli) async fn apply(
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
        // If the signal handler cannot be installed, an interrupt ends the program at once.
        Ok(()) = tokio::signal::ctrl_c(), if !commits => {
            abort.store(true, Ordering::SeqCst);
            say("interrupted: bowline finishes the current write, then stops".to_owned());
            applying.await
        }
    };
    (applied, abort.load(Ordering::SeqCst))
}

/// Prints the errors and warnings of applied changes, and returns the results.
pub(in crate::cli) fn became(
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
                    say(format!("hint: {history} lists the revisions of the {kind}"));
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
            say(format!(
                "warning: the next change of {pin} writes the audit entry of this one: {why}"
            ));
            Result::Done(*revision)
        }
        Applied::Superseded { revision, by } => {
            say(format!("this command changed {pin}; afterwards {by}"));
            Result::Done(*revision)
        }
    }
}

/// Returns the exit code of an error. Returns None for a change that was not started, because it decides the
/// exit code only if nothing else failed.
fn exit(error: &ApplyError) -> Option<Exit> {
    Some(match error {
        ApplyError::NotBegun { .. } => return None,
        ApplyError::Stale { .. }
        | ApplyError::Overtaken { .. }
        | ApplyError::Claim(ClaimError::Gone(_) | ClaimError::Deleting(_)) => Exit::Conflict,
        ApplyError::NoReason { .. } | ApplyError::Claim(ClaimError::Bad(_)) => Exit::Refused,
        ApplyError::Claim(ClaimError::Target(error)) | ApplyError::Target(error) => {
            connect::failure(error).into()
        }
        ApplyError::Unknown { .. } => Exit::Unreachable,
    })
}
