//! Plans commands on subjects that users name with their kind, such as `deploy/web`. The plan comes from the
//! functions of that kind.

use futures::future::try_join_all;

use super::super::matrix::named;
use super::super::release_pin::actions::rollback::Target;
use super::super::release_pin::planner::{ActionPlan, NotPlanned, Order};
use crate::connect::Connection;
use crate::engine::plan::Asked;
use crate::engine::subject::command::{Actions, Command, Planned, SubjectError, Verb};

/// Returns whether an order names a subject with its kind, such as `deploy/web`.
pub fn is_named(order: &Order) -> bool {
    match order {
        Order::Promote(promote) => promote.components.iter().any(|name| names_kind(name)),
        Order::Set(orders) => orders.iter().any(is_named),
        order => order.place().is_some_and(|(name, _)| names_kind(name)),
    }
}

/// Returns whether a name begins with the word of a kind, such as `deploy/`.
fn names_kind(name: &str) -> bool {
    named("", name).is_some()
}

/// Plans an order on subjects that are named with their kind.
pub async fn plan(
    connection: &Connection,
    order: &Order,
    asked: &Asked,
) -> Result<ActionPlan, NotPlanned> {
    let orders = match order {
        Order::Set(orders) => orders.as_slice(),
        one => std::slice::from_ref(one),
    };
    let commands: Result<Vec<_>, _> = orders.iter().map(|order| command(order, asked)).collect();
    let commands = commands?;
    let plans = commands.iter().map(|(actions, command)| async move {
        (actions.plan)(&connection.client, command, asked).await
    });
    let mut plans = try_join_all(plans).await?.into_iter();
    let Some(Planned {
        mut plan,
        mut notes,
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
    notes.sort();
    notes.dedup();
    Ok(ActionPlan::of_objects(plan, notes, objects))
}

/// Converts an order on one subject to a command for the functions of its kind.
fn command(order: &Order, asked: &Asked) -> Result<(&'static Actions, Command), SubjectError> {
    let name = order.place().map_or("", |(name, _)| name);
    let refused = |why: &str| SubjectError::Refused {
        why: why.to_owned(),
        hint: None,
    };
    let (subject, actions) = named(&asked.namespace, name).ok_or_else(|| {
        refused(
            "components and workloads cannot be changed in one set; unmark the one or the other",
        )
    })?;
    let verb = match order {
        Order::Rollback { to, hold, .. } => Verb::Rollback {
            to: match to {
                Target::LastGood => None,
                Target::Revision(number) => Some(*number),
                Target::Release(_) => return Err(refused("a workload has no releases")),
            },
            hold: *hold,
            force: false,
        },
        Order::Pin(pin) => Verb::Pin {
            until: pin.until,
            freeze: false,
        },
        Order::Unpin(unpin) => Verb::Unpin {
            hold: unpin.hold.clone(),
        },
        Order::Undo(_) => Verb::Undo,
        Order::Deploy { .. } | Order::Promote(_) | Order::Set(_) => {
            return Err(refused(
                "a workload is not deployed or promoted by bowline; it can be rolled back and pinned",
            ));
        }
    };
    Ok((actions, Command { subject, verb }))
}
