//! Rules that hold whoever writes: CRD rules and admission policies.
//!
//! A real API server evaluates `x-kubernetes-validations` and ValidatingAdmissionPolicies
//! itself; so does this one, with the bounded CEL of [`crate::cel`], so that a rule is
//! written once and a write that a cluster would refuse is refused here too, in the same
//! words. A rule that cannot be compiled is reported by `compile` and not enforced; the
//! service puts these reports into Warning headers.
//!
//! Nothing here reads the store: the caller brings the objects, the namespace and an answer
//! to questions of the authorizer.
//!
//! Differences from a real server: expressions are not type-checked against the schema; a
//! policy matches the version that was asked for, never an equivalent one; policies with
//! parameters and audit annotations are left out.

mod crd;
mod matching;
mod policy;
mod violation;
mod written;

#[cfg(test)]
mod tests;

pub use crd::{CrdRules, Findings};
pub use matching::{Admission, Operation};
pub use policy::{Denial, Policies, Verdict};
pub use violation::{Violation, ViolationValue};
pub use written::{unenforced, unreadable};

use std::time::Duration;

use crate::cel;

/// What all rules of one request may take together, in steps; a single one is bounded by
/// [`cel::Limits`].
const REQUEST_STEPS: u64 = 4_000_000;

/// How long all rules of one request may take together.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// Kubernetes takes no longer message from an expression.
const MESSAGE_LENGTH: usize = 5 * 1024;

fn request_budget() -> cel::Budget {
    cel::Budget::new(REQUEST_STEPS, REQUEST_DEADLINE)
}

/// Compiles an expression that may use only the given names.
fn compile(source: &str, names: &[&str]) -> Result<cel::Program, String> {
    let program = cel::Program::compile(source, &cel::Limits::default())
        .map_err(|error| error.to_string())?;
    let foreign = program.names().find(|name| !names.contains(name));
    if let Some(name) = foreign {
        return Err(format!("undeclared reference to '{name}'"));
    }
    Ok(program)
}

/// Evaluates an expression that words a message; None where Kubernetes falls back.
fn worded(
    program: &cel::Program,
    bindings: &cel::Bindings<'_>,
    budget: &mut cel::Budget,
) -> Option<String> {
    let value = program.evaluate_within(bindings, budget).ok()?;
    let message = value.as_str()?.trim();
    let fits = !message.is_empty() && message.len() <= MESSAGE_LENGTH && !message.contains('\n');
    fits.then(|| message.to_owned())
}

/// A failure in the words of a real server, which says less about types than ours.
fn real_words(error: &cel::CelError) -> String {
    if error.is_limit() {
        return "operation cancelled: actual cost limit exceeded".to_owned();
    }
    let words = error.to_string();
    match words.split_once("no such overload: ") {
        Some((before, call)) => {
            let function = call.split('(').next().unwrap_or_default();
            let is_function = !function.is_empty() && function.chars().all(|c| c.is_alphanumeric());
            match is_function {
                true => format!("{before}no such overload: {function}"),
                false => format!("{before}no such overload"),
            }
        }
        None => words,
    }
}
