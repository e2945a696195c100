//! Publishes a plan on a server: reads its facts again, places its claims, writes each subject by compare-and-swap,
//! and writes the audit entry.
//!
//! This module makes no change twice, never reports a completed change as failed, and writes
//! nothing if a fact of the plan has changed: the error then names the changed fact and the author
//! of that change. A write of the subject's status between the read and the write of this module is
//! not such a change.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject};

use super::facts::Now;
use super::swap::{Swap, Swapped};
use crate::connect::explain;
use crate::engine::audit::AuditWriter;
use crate::engine::claim::{ClaimError, Claims};
use crate::engine::plan::{Change, Plan};
use crate::engine::repeat::ATTEMPTS;
use crate::engine::subject::Kind;
use crate::engine::whoami::Clock;

/// The result of the change of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The subject has this generation now.
    Done(i64),
    /// The subject has this generation now, but its audit entry could not be written. The next change of
    /// the subject, or the controller, writes the entry.
    Unrecorded(i64, String),
    /// Our change gave the subject this generation, and somebody has changed the subject since.
    Superseded {
        /// The generation of the subject after our change.
        revision: i64,
        /// The later change, with author and time.
        by: String,
    },
    /// The subject already had the desired state.
    Unchanged,
}

/// The reason why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A fact of the plan has changed.
    #[error("{what}, so nothing was changed")]
    Stale {
        /// The changed fact, with author and time.
        what: String,
    },
    /// The change is part of a set, and was not started.
    #[error("not started: {why}")]
    NotBegun {
        /// The reason why the change was not started.
        why: &'static str,
    },
    /// The environment requires a reason.
    #[error("{environment} requires a reason for every change, so nothing was changed")]
    NoReason {
        /// The name of the environment.
        environment: String,
    },
    /// An object of the change cannot be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// It is unknown whether the change was made.
    #[error(
        "the target did not answer {ATTEMPTS} times, so it is not known whether {subject} was changed: {}",
        explain(.error)
    )]
    Unknown {
        /// The name of the subject.
        subject: String,
        /// The error of the last attempt.
        error: kube::Error,
    },
    /// The answer was lost, and a later change of the subject hides whether the change was made.
    #[error("{what}; it is not known whether this was before or after our change")]
    Overtaken {
        /// The later change, with author and time.
        what: String,
    },
    /// The target refused the request.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

impl ApplyError {
    /// Returns whether the change may have been made in spite of the error.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Overtaken { .. })
    }
}

/// Makes the change of one subject.
pub async fn apply(
    client: &Client,
    plan: &Plan,
    change: &Change,
    clock: Clock<'_>,
) -> Result<Applied, ApplyError> {
    if let Some(environment) = plan.lacks_reason() {
        let environment = environment.to_owned();
        return Err(ApplyError::NoReason { environment });
    }
    let namespace = &change.key().namespace;
    let now = Now::read(client, [change]).await?;
    let at = clock();
    if change.unchanged && !now.has_moved(change) {
        if let Some(object) = now.object(change) {
            complete(client, change.subject.kind, object, at).await;
        }
        return Ok(Applied::Unchanged);
    }
    let resource = (change.subject.kind.resource)();
    let swap = Swap {
        api: Api::namespaced_with(client.clone(), namespace, &resource),
        audit: AuditWriter::for_kind(client, namespace, change.subject.kind, at).await?,
        plan,
        change,
        at,
    };
    if now.has_moved(change) {
        // An earlier run of the same plan may have made this change.
        let swapped = swap.settle(now.object(change).cloned(), false).await?;
        return Ok(recorded(&swap, swapped).await);
    }
    if let Some(what) = now.broken(change, at) {
        return Err(ApplyError::Stale { what });
    }
    let mut claims = Claims::place(client, &plan.operation, &change.claims, clock()).await?;
    let swapped = swap.write(&mut claims, clock).await?;
    Ok(recorded(&swap, swapped).await)
}

/// Makes the changes of a plan, one after the other, each with its own result.
///
/// Reads the facts of all changes again before the first write: if one has changed, it makes no change.
/// It also starts no change after `abort` is set.
pub async fn apply_all(
    client: &Client,
    plan: &Plan,
    clock: Clock<'_>,
    abort: &AtomicBool,
) -> Vec<Result<Applied, ApplyError>> {
    let mut results = match check(client, plan, clock).await {
        Ok(broken) if broken.iter().any(Option::is_some) => {
            let stale = |what: Option<String>| match what {
                Some(what) => Err(ApplyError::Stale { what }),
                None => Err(ApplyError::NotBegun {
                    why: "another change of the set depends on a fact that changed",
                }),
            };
            return broken.into_iter().map(stale).collect();
        }
        Ok(_) => Vec::with_capacity(plan.changes.len()),
        Err(error) => vec![Err(error.into())],
    };
    let failed = !results.is_empty();
    for change in plan.changes.iter().skip(results.len()) {
        results.push(match (failed, abort.load(Ordering::SeqCst)) {
            (true, _) => Err(ApplyError::NotBegun {
                why: "the facts of the set could not be read",
            }),
            (_, true) => Err(ApplyError::NotBegun {
                why: "the set was aborted before this change",
            }),
            _ => apply(client, plan, change, clock).await,
        });
    }
    results
}

/// Describes for each change its first fact that is no longer true; None for a change without such
/// a fact. The list is empty if the plan makes fewer than two changes.
async fn check(
    client: &Client,
    plan: &Plan,
    clock: Clock<'_>,
) -> Result<Vec<Option<String>>, kube::Error> {
    let changing: Vec<&Change> = plan.changing().collect();
    // If the plan makes a single change, `apply` checks its facts.
    if changing.len() < 2 {
        return Ok(Vec::new());
    }
    let now = Now::read(client, changing).await?;
    let at = clock();
    // If an earlier run of this plan has made the change already, `apply` finds out the result
    // later.
    let broken = |change: &Change| match change.unchanged || now.is_of(plan, change) {
        true => None,
        false => now.broken(change, at),
    };
    Ok(plan.changes.iter().map(broken).collect())
}

/// Describes the changed facts of a plan, at most one per change.
pub(super) async fn broken(
    client: &Client,
    plan: &Plan,
    clock: Clock<'_>,
) -> Result<Vec<String>, kube::Error> {
    let changing: Vec<&Change> = plan.changing().collect();
    let now = Now::read(client, changing.clone()).await?;
    let at = clock();
    let broken = changing.iter().filter_map(|change| now.broken(change, at));
    Ok(broken.collect())
}

/// Writes the missing audit entries of a subject that the plan does not change: the last writer of
/// the subject may have stopped before it wrote the entry.
async fn complete(client: &Client, kind: &'static Kind, object: &DynamicObject, at: Timestamp) {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    if let Ok(audit) = AuditWriter::for_kind(client, namespace, kind, at).await {
        // If this fails, the next change of the subject or the controller writes the entries.
        let _ = audit.record(kind, object).await;
    }
}

/// Writes the audit entry of a published change.
async fn recorded(swap: &Swap<'_>, swapped: Swapped) -> Applied {
    let (audit, kind) = (&swap.audit, swap.change.subject.kind);
    let number = |object: &DynamicObject| kind.number(object).unwrap_or_default();
    match swapped {
        Swapped::Ours(object) => match audit.record(kind, &object).await {
            Ok(_) => Applied::Done(number(&object)),
            Err(error) => Applied::Unrecorded(number(&object), explain(&error)),
        },
        Swapped::Overwritten { ours, by, object } => {
            let mut written = audit.record(kind, &ours).await;
            if let (Ok(_), Some(object)) = (&written, &object) {
                written = audit.record(kind, object).await;
            }
            match written {
                Ok(_) => Applied::Superseded {
                    revision: number(&ours),
                    by,
                },
                Err(error) => {
                    Applied::Unrecorded(number(&ours), format!("{by}; {}", explain(&error)))
                }
            }
        }
    }
}
