//! Builds commit messages: the action in the subject line, the reason in the body, and trailers for tools.

use crate::api::bowline::audit::Action;
use crate::engine::plan::{Change, Plan};
use crate::gitops::tree::Trailers;
use crate::text;

/// The largest length of a subject line in characters; many tools cut a longer line.
const SUBJECT: usize = 72;

/// Returns the commit message of a plan.
pub(super) fn of_plan(plan: &Plan) -> String {
    let changing: Vec<&Change> = plan
        .changes
        .iter()
        .filter(|change| !change.unchanged)
        .collect();
    let subject = match changing.as_slice() {
        [change] => of_item(plan.action, change),
        several => {
            let place = several
                .first()
                .map_or("", |change| change.environment.as_str());
            format!(
                "{} {} components in {place}",
                verb(plan.action),
                several.len()
            )
        }
    };
    let mut trailers = begin(&plan.operation, plan.action);
    for change in changing {
        trailers.push((Trailers::COMPONENT, change.name.clone()));
        trailers.push((Trailers::ENVIRONMENT, change.environment.clone()));
        if let Some(from) = &change.from {
            trailers.push((Trailers::FROM, from.name.clone()));
        }
        trailers.push((Trailers::TO, change.to.name.clone()));
        if let Some(revision) = change.restored_from {
            trailers.push((Trailers::RESTORED, revision.to_string()));
        }
    }
    message(&subject, plan.reason.as_deref(), &trailers)
}

/// Returns the trailers that every commit of bowline has: the operation and the action.
pub(super) fn begin(operation: &str, action: Action) -> Vec<(&'static str, String)> {
    vec![
        (Trailers::OPERATION, operation.to_owned()),
        (Trailers::ACTION, format!("{action:?}")),
    ]
}

/// Joins subject line, body and trailers to a commit message.
pub(super) fn message(
    subject: &str,
    reason: Option<&str>,
    trailers: &[(&'static str, String)],
) -> String {
    let mut out = text::fit(subject, SUBJECT);
    out.push('\n');
    if let Some(reason) = reason.map(str::trim).filter(|reason| !reason.is_empty()) {
        let lines: Vec<_> = reason.lines().map(text::line).collect();
        out += &format!("\n{}\n", lines.join("\n"));
    }
    if !trailers.is_empty() {
        out.push('\n');
    }
    for (word, value) in trailers {
        out += &format!("{word}: {}\n", text::line(value));
    }
    out
}

fn verb(action: Action) -> &'static str {
    match action {
        Action::Promote => "promote",
        Action::Deploy | Action::AutoDeploy => "deploy",
        Action::Rollback => "roll back",
        Action::Pin => "pin",
        Action::Unpin => "unpin",
        Action::Undo => "undo",
        _ => "change",
    }
}

fn of_item(action: Action, change: &Change) -> String {
    let Change {
        name: component,
        environment,
        to,
        ..
    } = change;
    // The name of a release usually begins with the name of its component, so the component is left out.
    let release = to.name.as_str();
    match action {
        Action::Promote => format!("promote {release} to {environment}"),
        Action::Deploy | Action::AutoDeploy => format!("deploy {release} to {environment}"),
        Action::Rollback => format!("roll back {component} in {environment} to {release}"),
        Action::Pin => format!("pin {component} in {environment} at {release}"),
        Action::Unpin => format!("unpin {component} in {environment}"),
        Action::Undo => format!("undo the last change of {component} in {environment}"),
        _ => format!("change {component} in {environment}"),
    }
}
