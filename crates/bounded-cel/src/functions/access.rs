//! The CEL authorizer: an expression builds a permission query, and the caller's authorizer answers it.

use std::rc::Rc;

use super::super::eval::Evaluation;
use super::super::value::Val;
use super::super::{AccessQuery, CelError};
use super::{Function, mismatch};

/// The part of a permission query that a function of the authorizer sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Field {
    Group,
    Name,
    Namespace,
    Path,
    Resource,
    Subresource,
    /// A selector for a list or watch. This crate ignores it, which is safe: without it, the query asks for a wider
    /// permission.
    Selector,
}

impl Field {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "group" => Self::Group,
            "name" => Self::Name,
            "namespace" => Self::Namespace,
            "path" => Self::Path,
            "resource" => Self::Resource,
            "subresource" => Self::Subresource,
            "fieldSelector" | "labelSelector" => Self::Selector,
            _ => return None,
        })
    }
}

/// Sets a part of a permission query, or reads the decision of the authorizer.
pub(super) fn call<'a>(function: Function, args: &[Val<'a>]) -> Result<Val<'a>, CelError> {
    match (function, args) {
        (Function::Ask(field), [Val::Access(query), Val::Text(text)]) => {
            let mut query = (**query).clone();
            let text = (**text).to_owned();
            match field {
                Field::Group => query.group = text,
                Field::Name => query.name = text,
                Field::Namespace => query.namespace = text,
                Field::Path => query.path = Some(text),
                Field::Resource => query.resource = text,
                Field::Subresource => query.subresource = text,
                Field::Selector => {}
            }
            Ok(Val::Access(Rc::new(query)))
        }
        (Function::ServiceAccount, [Val::Access(query), Val::Text(space), Val::Text(name)]) => {
            let service_account = Some(((**space).to_owned(), (**name).to_owned()));
            Ok(Val::Access(Rc::new(AccessQuery {
                service_account,
                ..(**query).clone()
            })))
        }
        (Function::Allowed, [Val::Decision(allowed)]) => Ok(Val::Bool(*allowed)),
        (Function::Errored, [Val::Decision(_)]) => Ok(Val::Bool(false)),
        (Function::DecisionText, [Val::Decision(_)]) => Ok(Val::text("")),
        _ => Err(mismatch("authorizer", args)),
    }
}

/// Sends a permission query to the authorizer and returns the decision.
pub(super) fn check<'a>(
    evaluation: &mut Evaluation<'a>,
    args: &[Val<'a>],
) -> Result<Val<'a>, CelError> {
    let ([Val::Access(query), Val::Text(verb)], Some(ask)) = (args, evaluation.bindings.authorizer)
    else {
        return Err(mismatch("check", args));
    };
    // A permission query costs as many steps as a network call, as in Kubernetes.
    evaluation.meter.step(10_000)?;
    let query = AccessQuery {
        verb: (**verb).to_owned(),
        ..(**query).clone()
    };
    Ok(Val::Decision(ask(&query)))
}
