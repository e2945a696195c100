//! Evaluates the CEL rules of CRDs and the admission policies for every write.
//!
//! kube-apiserver evaluates `x-kubernetes-validations` and ValidatingAdmissionPolicies itself. So that this API
//! refuses the same objects as a cluster, with the same messages, this module evaluates them with [`bounded_cel`]. A
//! rule that cannot be compiled is not enforced; `compile` returns a warning about it, which clients get in a Warning
//! header.
//!
//! This module does not read the store: the caller supplies the objects, the namespace and a function that answers
//! permission queries.
//!
//! Differences from kube-apiserver: expressions are not type-checked against the schema; a policy matches only the
//! API version in the request, not equivalent versions; policies with parameters and audit annotations are not
//! supported.

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

/// The largest number of evaluation steps for all rules of one request together. [`bounded_cel::Limits`] limits each
/// rule.
const REQUEST_STEPS: u64 = 4_000_000;

/// The longest time for all rules of one request together.
const REQUEST_DEADLINE: Duration = Duration::from_secs(10);

/// The largest length of a message that a `messageExpression` computes, in bytes, as in Kubernetes.
const MESSAGE_LENGTH: usize = 5 * 1024;

fn request_budget() -> bounded_cel::Budget {
    bounded_cel::Budget::new(REQUEST_STEPS, REQUEST_DEADLINE)
}

/// Compiles a CEL expression. Fails if the expression uses a variable that is not in `names`.
fn compile(source: &str, names: &[&str]) -> Result<bounded_cel::Program, String> {
    let program = bounded_cel::Program::compile(source, &bounded_cel::Limits::default())
        .map_err(|error| error.to_string())?;
    let foreign = program.names().find(|name| !names.contains(name));
    if let Some(name) = foreign {
        return Err(format!("undeclared reference to '{name}'"));
    }
    Ok(program)
}

/// Evaluates a `messageExpression`. None if its result is not a valid message, so that the default message is used,
/// as in Kubernetes.
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

/// Converts a CEL error to the message that kube-apiserver has for it.
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
