//! CRD rules and admission policies, which apply to every writer.
//!
//! A real API server evaluates `x-kubernetes-validations` and ValidatingAdmissionPolicies itself. So does
//! this server, with the bounded CEL of [`bounded_cel`]: each rule is written once, and a write that a cluster
//! would refuse is refused here too, in the same words. `compile` reports a rule that it cannot compile, and
//! nothing enforces that rule; the service puts these reports into Warning headers.
//!
//! This module does not read the store: the caller passes the objects, the namespace and a function that
//! answers permission queries.
//!
//! Differences from a real server: expressions are not type-checked against the schema; a policy matches only
//! the version in the request, never an equivalent version; policies with parameters and audit annotations
//! are not supported.

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

/// The steps that all rules of one request may take together; [`bounded_cel::Limits`] bounds a single rule.
const REQUEST_STEPS: u64 = 4_000_000;

/// The time that all rules of one request may take together.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// The longest message, in bytes, that Kubernetes accepts from a `messageExpression`.
const MESSAGE_LENGTH: usize = 5 * 1024;

fn request_budget() -> bounded_cel::Budget {
    bounded_cel::Budget::new(REQUEST_STEPS, REQUEST_DEADLINE)
}

/// Compiles an expression that may use only the given variable names.
fn compile(source: &str, names: &[&str]) -> Result<bounded_cel::Program, String> {
    let program = bounded_cel::Program::compile(source, &bounded_cel::Limits::default())
        .map_err(|error| error.to_string())?;
    let foreign = program.names().find(|name| !names.contains(name));
    if let Some(name) = foreign {
        return Err(format!("undeclared reference to '{name}'"));
    }
    Ok(program)
}

/// Evaluates a `messageExpression`; None if Kubernetes would use the default message instead.
fn worded(
    program: &bounded_cel::Program,
    bindings: &bounded_cel::Bindings<'_>,
    budget: &mut bounded_cel::Budget,
) -> Option<String> {
    let value = program.evaluate_within(bindings, budget).ok()?;
    let message = value.as_str()?.trim();
    let fits = !message.is_empty() && message.len() <= MESSAGE_LENGTH && !message.contains('\n');
    fits.then(|| message.to_owned())
}

/// Returns the text of a CEL error as a real server writes it: with fewer types than the text of this crate.
fn real_words(error: &bounded_cel::CelError) -> String {
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
