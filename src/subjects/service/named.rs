//! Plans commands on subjects that users name together with the kind, such as `deploy/web`. The folder of that kind
//! has the planner.

use futures::future::try_join_all;

use super::super::matrix::named;
use super::super::release_pin::actions::rollback::Target;
use super::super::release_pin::planner::{ActionPlan, ActionRequest, NotPlanned};
use crate::connect::Connection;
use crate::engine::plan::Asked;
use crate::engine::subject::command::{Actions, Command, Planned, SubjectError, Verb};

/// Returns whether a request names a subject together with its kind, such as `deploy/web`.
pub fn is_named(request: &ActionRequest) -> bool {
    match request {
        ActionRequest::Promote(promote) => promote.components.iter().any(|name| names_kind(name)),
        ActionRequest::Set(requests) => requests.iter().any(is_named),
        request => request.place().is_some_and(|(name, _)| names_kind(name)),
    }
}

/// Returns whether a name begins with the word of a kind, such as `deploy/`.
fn names_kind(name: &str) -> bool {
    named("", name).is_some()
}

/// Plans a request on subjects such as `deploy/web`. The planner of each subject's kind makes the plan.
pub async fn plan(
    connection: &Connection,
    request: &ActionRequest,
    asked: &Asked,
) -> Result<ActionPlan, NotPlanned> {
    let requests = match request {
        ActionRequest::Set(requests) => requests.as_slice(),
        one => std::slice::from_ref(one),
    };
    let commands: Result<Vec<_>, _> = requests
        .iter()
        .map(|request| command(request, asked))
        .collect();
    let commands = commands?;
    let plans = commands.iter().map(|(actions, command)| async move {
        (actions.plan)(&connection.client, command, asked).await
    });
    let mut plans = try_join_all(plans).await?.into_iter();
    let Some(Planned {
        mut plan,
        mut notes,
        record,
        mut objects,
    }) = plans.next()
    else {
        return Err(NotPlanned::Refused(Vec::new()));
    };
    for more in plans {
        plan.changes.extend(more.plan.changes);
        notes.extend(more.notes);
        objects.extend(more.objects);
    }
    let warnings = plan.changes.iter().flat_map(|change| &change.warnings);
    notes.extend(warnings.cloned());
    notes.sort();
    notes.dedup();
    let mut action_plan = ActionPlan::of_objects(plan, notes, objects);
    action_plan.record = record;
    Ok(action_plan)
}

/// Converts a request on one subject to a command of the engine. Also returns the functions that plan commands on
/// this kind.
fn command(
    request: &ActionRequest,
    asked: &Asked,
) -> Result<(&'static Actions, Command), SubjectError> {
    let name = request.place().map_or("", |(name, _)| name);
    let refused = |why: &str| SubjectError::Refused {
        why: why.to_owned(),
        hint: None,
    };
    let (subject, actions) = named(&asked.namespace, name).ok_or_else(|| {
        refused(
            "components and workloads cannot be changed in one set; unmark the one or the other",
        )
    })?;
    let verb = match request {
        ActionRequest::Rollback { to, hold, .. } => Verb::Rollback {
            to: match to {
                Target::LastGood => None,
                Target::Revision(number) => Some(*number),
                Target::Release(_) => return Err(refused("a workload has no releases")),
            },
            hold: *hold,
            force: false,
        },
        ActionRequest::Pin(pin) => Verb::Pin {
            until: pin.until,
            freeze: false,
        },
        ActionRequest::Unpin(unpin) => Verb::Unpin {
            hold: unpin.hold.clone(),
        },
        ActionRequest::Undo(_) => Verb::Undo,
        ActionRequest::Mark {
            revision, verdict, ..
        } => Verb::Mark {
            revision: *revision,
            verdict: *verdict,
        },
        ActionRequest::Deploy { .. } | ActionRequest::Promote(_) | ActionRequest::Set(_) => {
            return Err(refused(
                "a workload is not deployed or promoted by bowline; it can be rolled back and pinned",
            ));
        }
    };
    Ok((actions, Command { subject, verb }))
}
