//! Publishes a plan on a server: reads its facts again, places its claims, writes each subject by compare-and-swap,
//! and writes the audit entry.
//!
//! No change is made twice, and a change that was made is never reported as failed. If a fact has changed,
//! `apply` writes nothing and returns an error with that fact and the author of the change. A concurrent
//! write of the subject's status changes no fact.

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, DynamicObject};

use super::facts::Now;
use super::mark;
use super::swap::{Swap, Swapped};
use crate::connect::explain;
use crate::engine::audit::AuditWriter;
use crate::engine::claim::{ClaimError, Claims};
use crate::engine::plan::{Change, Plan};
use crate::engine::repeat::ATTEMPTS;
use crate::engine::subject::Kind;
use crate::engine::whoami::Clock;

/// The result of a change that was made or was not needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The change was made. Contains the new revision of the subject.
    Done(i64),
    /// The change was made, but its audit entry could not be written. The next change of the subject, or the
    /// controller, writes the entry. Contains the new revision and the error.
    Unrecorded(i64, String),
    /// The change was made, and afterwards somebody else changed the subject.
    Superseded {
        /// The revision that this change made.
        revision: i64,
        /// The later change, as text with author and time.
        by: String,
    },
    /// The subject already had the desired state, so nothing was written.
    Unchanged,
}

/// The reason why a change failed.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A fact of the plan is no longer true, so the change was not made.
    #[error("{what}, so nothing was changed")]
    Stale {
        /// The changed fact, as text with author and time.
        what: String,
    },
    /// The change was not started, because of another change of the plan or because the user aborted the
    /// plan.
    #[error("not started: {why}")]
    NotBegun { why: &'static str },
    /// A rule requires a reason, and the plan has none.
    #[error("{rule}, so nothing was changed")]
    NoReason { rule: String },
    /// The subject records a mark, but the revision could not be marked.
    #[error(
        "the record of the mark is written, but {revision} is not marked: {}; repeat the command",
        explain(.error)
    )]
    Unmarked {
        revision: String,
        error: kube::Error,
    },
    /// An object that the change refers to could not be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The server did not answer the write, so nobody knows whether the change was made.
    #[error(
        "the target did not answer {ATTEMPTS} times, so it is not known whether {subject} was changed: {}",
        explain(.error)
    )]
    Unknown {
        subject: String,
        /// The error of the last attempt.
        error: kube::Error,
    },
    /// The server did not answer the write, and a later change of the subject hides whether this change was
    /// made.
    #[error("{what}; it is not known whether this was before or after your change")]
    Overtaken {
        /// The later change, as text with author and time.
        what: String,
    },
    /// The server refused a request.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

impl ApplyError {
    /// Returns whether the change may have been made in spite of the error.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Overtaken { .. })
    }
}

/// Makes one change of a plan.
pub async fn apply(
    client: &Client,
    plan: &Plan,
    change: &Change,
    clock: Clock<'_>,
) -> Result<Applied, ApplyError> {
    if let Some(change) = plan.lacks_reason() {
        let rule = change.reason_rule();
        return Err(ApplyError::NoReason { rule });
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
        // If a retry runs the same plan, the first run may have made this change.
        let swapped = swap.settle(now.object(change).cloned(), false).await?;
        return finished(client, &swap, swapped).await;
    }
    if let Some(what) = now.broken(change, at) {
        return Err(ApplyError::Stale { what });
    }
    if let Some(mark) = &change.mark
        && let Some(what) = mark::changed(client, change, mark).await?
    {
        return Err(ApplyError::Stale { what });
    }
    let mut claims = Claims::place(client, &plan.operation, &change.claims, clock()).await?;
    let swapped = swap.write(&mut claims, clock).await?;
    finished(client, &swap, swapped).await
}

/// Marks the revision that a published change is about, and writes the audit entry of the change.
async fn finished(
    client: &Client,
    swap: &Swap<'_>,
    swapped: Swapped,
) -> Result<Applied, ApplyError> {
    if let Some(mark) = &swap.change.mark {
        let marked = mark::write(client, swap, mark).await;
        marked.map_err(|error| ApplyError::Unmarked {
            revision: swap.change.marked(),
            error,
        })?;
    }
    Ok(recorded(swap, swapped).await)
}

/// Makes the changes of a plan, one after the other. Each change has its own result.
///
/// First reads the facts of all changes: if one is no longer true, makes no change at all. Starts no further
/// change after `abort` is set.
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

/// Returns one item per change: the description of its first fact that is no longer true, or None if all are
/// true. The list is empty if the plan makes fewer than two changes.
async fn check(
    client: &Client,
    plan: &Plan,
    clock: Clock<'_>,
) -> Result<Vec<Option<String>>, kube::Error> {
    let changing: Vec<&Change> = plan.changing().collect();
    // `apply` checks the facts of a single change itself.
    if changing.len() < 2 {
        return Ok(Vec::new());
    }
    let now = Now::read(client, changing).await?;
    let at = clock();
    // If a first run of this plan has already made the change, `apply` finds that result later.
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

/// Writes the missing audit entries of a subject that already has the desired state. The writer of its last
/// change may have stopped before it wrote the entry.
async fn complete(client: &Client, kind: &'static Kind, object: &DynamicObject, at: Timestamp) {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    if let Ok(audit) = AuditWriter::for_kind(client, namespace, kind, at).await {
        // After an error here, the next change of the subject or the controller writes the entries.
        let _ = audit.record(kind, object).await;
    }
}

/// Writes the audit entry of a published change, and returns the result.
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
