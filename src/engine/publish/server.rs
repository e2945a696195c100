//! Publishes a plan on a server: reads its facts again, claims objects, writes each subject by compare-and-swap, and
//! writes the audit entries.
//!
//! A change is made at most once, and a change that was made is never reported as failed. If a fact is no longer
//! true, `apply` writes nothing, and its error names the fact and who changed it. A concurrent write of the subject's
//! status makes no fact false.

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

/// The result of a change that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// bowline made the change. Contains the new revision of the subject.
    Done(i64),
    /// bowline made the change, but could not write its audit entry. The controller writes the missing entry, or else
    /// bowline writes it before the next change of the subject. Contains the new revision of the subject, and the
    /// error.
    Unrecorded(i64, String),
    /// bowline made the change, and then another user or tool changed the subject again.
    Superseded {
        /// The revision of the subject that this change made.
        revision: i64,
        /// The later change by another user or tool, as text with author and time.
        by: String,
    },
    /// The subject already had the desired state, so bowline wrote nothing.
    Unchanged,
}

/// The reason why a change was not made, or may not have been made.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// A fact of the plan is no longer true, so bowline did not make the change.
    #[error("{what}, so nothing was changed")]
    Stale {
        /// The description of the fact that is no longer true, with author and time.
        what: String,
    },
    /// bowline did not start the change, because another change of the plan failed or the user aborted the plan.
    #[error("not started: {why}")]
    NotBegun { why: &'static str },
    /// A rule requires a reason, and the plan has none.
    #[error("{rule}, so nothing was changed")]
    NoReason { rule: String },
    /// bowline has changed the subject, and this change records the mark of a revision. But then bowline could not
    /// write the mark to the object that stores the revision.
    #[error(
        "the record of the mark is written, but {revision} is not marked: {}; repeat the command",
        explain(.error)
    )]
    Unmarked {
        revision: String,
        error: kube::Error,
    },
    /// bowline could not claim an object that the change refers to.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// The server did not answer the write, so it is unknown whether the change was made.
    #[error(
        "the target did not answer {ATTEMPTS} times, so it is not known whether {subject} was changed: {}",
        explain(.error)
    )]
    Unknown {
        subject: String,
        /// The error of the last attempt to write.
        error: kube::Error,
    },
    /// The server did not answer the write. Then another user or tool changed the subject, so it is unknown whether
    /// this change was made.
    #[error("{what}; it is not known whether this was before or after your change")]
    Overtaken {
        /// The change by another user or tool, as text with author and time.
        what: String,
    },
    /// The server refused a request.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

impl ApplyError {
    /// Returns whether it is unknown whether the change was made.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Overtaken { .. })
    }
}

/// Makes one change of a plan, after a check of its facts.
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
        // This may be a second run of the same plan. Then the first run may already have made the change.
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

/// Makes the changes of a plan, one after the other. Returns one result per change.
///
/// First reads the facts of all changes. If a fact is no longer true, the function makes no change at all. After
/// `abort` is set, it starts no further change.
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

/// Checks the facts of all changes. Returns one item per change: the description of the first fact that is no longer
/// true, or None. The list is empty for a plan with fewer than two changes, because `apply` checks a single change.
async fn check(
    client: &Client,
    plan: &Plan,
    clock: Clock<'_>,
) -> Result<Vec<Option<String>>, kube::Error> {
    let changing: Vec<&Change> = plan.changing().collect();
    // `apply` checks the facts of a single change itself, so no check is needed here.
    if changing.len() < 2 {
        return Ok(Vec::new());
    }
    let now = Now::read(client, changing).await?;
    let at = clock();
    // An earlier run of this plan may have made the change. Then its facts are no longer true, but this is no error.
    let broken = |change: &Change| match change.unchanged || now.is_of(plan, change) {
        true => None,
        false => now.broken(change, at),
    };
    Ok(plan.changes.iter().map(broken).collect())
}

/// Describes the facts of a plan that are no longer true, at most one per change.
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

/// Writes missing audit entries of a subject that needs no change. They are missing if the client that made the last
/// change stopped before it wrote its entry.
async fn complete(client: &Client, kind: &'static Kind, object: &DynamicObject, at: Timestamp) {
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    if let Ok(audit) = AuditWriter::for_kind(client, namespace, kind, at).await {
        // An error here is ignored, because the controller writes the missing entries, or else bowline writes them
        // before the next change of the subject.
        let _ = audit.record(kind, object).await;
    }
}

/// Writes the audit entry of a change that was made, and returns the result of the change.
async fn recorded(swap: &Swap<'_>, swapped: Swapped) -> Applied {
    let (audit, kind) = (&swap.audit, swap.change.subject.kind);
    let number = |object: &DynamicObject| kind.number(object).unwrap_or_default();
    match swapped {
        Swapped::Ours(object) => match audit.record(kind, &object).await {
            Ok(_) => Applied::Done(number(&object)),
            Err(error) => Applied::Unrecorded(number(&object), not_recorded(audit, &error)),
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
                Err(error) => Applied::Unrecorded(
                    number(&ours),
                    format!("{by}; {}", not_recorded(audit, &error)),
                ),
            }
        }
    }
}

/// Says what records a change whose audit entry or Event could not be written.
fn not_recorded(audit: &AuditWriter, error: &kube::Error) -> String {
    let error = explain(error);
    match audit.writes_events() {
        true => format!(
            "its Event is not written, so only the annotations of the object record it: {error}"
        ),
        false => {
            format!("its audit entry is not written yet, the next change writes it: {error}")
        }
    }
}
