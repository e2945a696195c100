//! Evaluates the CEL rules of CRDs and the admission policies for every write.
//!
//! kube-apiserver evaluates `x-kubernetes-validations` and ValidatingAdmissionPolicies itself. This module
//! evaluates them with [`bounded_cel`], so that this API refuses what a cluster refuses, with the same
//! messages. `compile` reports a rule that it cannot compile; such a rule is not enforced, and the service
//! sends the report in a Warning header.
//!
//! This module does not read the store: the caller supplies the objects, the namespace and a function that
//! answers permission queries.
//!
//! Differences from kube-apiserver: expressions are not type-checked against the schema; a policy matches
//! only the API version in the request, not equivalent versions; policies with parameters and audit
//! annotations are not supported.

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

/// The largest number of steps for all rules of one request. [`bounded_cel::Limits`] limits a single rule.
const REQUEST_STEPS: u64 = 4_000_000;

/// The longest time for all rules of one request.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// The longest message from a `messageExpression` that Kubernetes accepts, in bytes.
const MESSAGE_LENGTH: usize = 5 * 1024;

fn request_budget() -> bounded_cel::Budget {
    bounded_cel::Budget::new(REQUEST_STEPS, REQUEST_DEADLINE)
}

/// Compiles an expression that may use only the variables in `names`.
fn compile(source: &str, names: &[&str]) -> Result<bounded_cel::Program, String> {
    let program = bounded_cel::Program::compile(source, &bounded_cel::Limits::default())
        .map_err(|error| error.to_string())?;
    let foreign = program.names().find(|name| !names.contains(name));
    if let Some(name) = foreign {
        return Err(format!("undeclared reference to '{name}'"));
    }
    Ok(program)
}

/// Evaluates a `messageExpression`; None if Kubernetes would use the default message.
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

/// Converts a CEL error to the message of kube-apiserver, which contains fewer types.
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
