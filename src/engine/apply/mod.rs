//! Applies a plan: its facts are read again, what it names is claimed, the pin is published by
//! compare-and-swap, and its audit entry follows.
//!
//! Nothing is done twice, nothing that was done is called failed, and nothing is done once a fact that the
//! plan rests on is no more: then the answer says who changed what. A write of the status between reading
//! and writing is no change.

mod facts;
mod publish;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use kube::Client;
use kube::api::Api;

use super::claim::{ClaimError, Claims};
use super::plan::{Item, Plan};
use super::recording::Scribe;
use super::repeat::ATTEMPTS;
use super::whoami::Clock;
use super::world::Key;
use crate::api::ReleasePin;
use crate::connect::explain;
use facts::Now;
use publish::{Publication, Published};

/// What became of the change of one pin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Applied {
    /// The pin has this generation now.
    Done(i64),
    /// The pin has this generation now, and its audit entry could not be written; whoever changes the pin
    /// next, or the controller, writes it.
    Unrecorded(i64, String),
    /// The pin had this generation, and somebody has changed it since.
    Superseded {
        /// The generation.
        revision: i64,
        /// What became of the pin then, and who did it when.
        by: String,
    },
    /// The pin was as wanted already.
    Unchanged,
}

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Something that the plan rests on is no more.
    #[error("{what}, so nothing was changed")]
    Stale {
        /// What, and who changed it when.
        what: String,
    },
    /// It was one of several, and not begun.
    #[error("not started: {why}")]
    NotBegun {
        /// Why.
        why: &'static str,
    },
    /// The environment wants to know why.
    #[error("{environment} requires a reason for every change, so nothing was changed")]
    NoReason {
        /// Which.
        environment: String,
    },
    /// A release that the pin would name cannot be claimed.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// Whether it was done could not be found out.
    #[error(
        "the target did not answer {ATTEMPTS} times, so it is not known whether {pin} was changed: {}",
        explain(.error)
    )]
    Unknown {
        /// The pin.
        pin: String,
        /// The last answer.
        error: kube::Error,
    },
    /// The answer was lost, and what became of the pin then hides whether it was done.
    #[error("{what}; it is not known whether this was before or after our change")]
    Overtaken {
        /// What became of the pin, and who did it when.
        what: String,
    },
    /// The target refused.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

impl ApplyError {
    /// Tells whether the change may have been made all the same.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Unknown { .. } | Self::Overtaken { .. })
    }
}

/// Makes the change of one pin.
pub async fn apply(
    client: &Client,
    plan: &Plan,
    item: &Item,
    clock: Clock<'_>,
) -> Result<Applied, ApplyError> {
    if let Some(environment) = plan.lacks_reason() {
        let environment = environment.to_owned();
        return Err(ApplyError::NoReason { environment });
    }
    let namespace = &item.pin.namespace;
    let now = Now::read(client, [item]).await?;
    let at = clock();
    if item.unchanged && !now.has_moved(item) {
        if let Some(pin) = now.pin(item) {
            complete(client, pin, at).await;
        }
        return Ok(Applied::Unchanged);
    }
    let publication = Publication {
        pins: Api::namespaced(client.clone(), namespace),
        scribe: Scribe::new(client, namespace, at).await?,
        plan,
        item,
        at,
    };
    if now.has_moved(item) {
        // That may have been this very plan, applied before.
        let published = publication.settle(now.pin(item).cloned(), false).await?;
        return Ok(recorded(&publication.scribe, published).await);
    }
    if let Some(what) = now.broken(item, at) {
        return Err(ApplyError::Stale { what });
    }
    let mut claims = Claims::place(client, &plan.operation, claimed(item, &now), clock()).await?;
    let published = publication.publish(&mut claims, clock).await?;
    Ok(recorded(&publication.scribe, published).await)
}

/// Makes the changes of a plan, one after the other, each with a result of its own.
///
/// The facts of all of them are read again before the first is written: where one is no more, none is
/// begun. Nor is what comes after `abort` was set.
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
        Ok(_) => Vec::with_capacity(plan.items.len()),
        Err(error) => vec![Err(error.into())],
    };
    let failed = !results.is_empty();
    for item in plan.items.iter().skip(results.len()) {
        results.push(match (failed, abort.load(Ordering::SeqCst)) {
            (true, _) => Err(ApplyError::NotBegun {
                why: "the facts of the set could not be read",
            }),
            (_, true) => Err(ApplyError::NotBegun {
                why: "the set was aborted before this change",
            }),
            _ => apply(client, plan, item, clock).await,
        });
    }
    results
}

/// Says for each change what is no more of what it rests on.
async fn check(
    client: &Client,
    plan: &Plan,
    clock: Clock<'_>,
) -> Result<Vec<Option<String>>, kube::Error> {
    let changing = plan.items.iter().filter(|item| !item.unchanged);
    let changing: Vec<&Item> = changing.collect();
    // One change is checked when it is made.
    if changing.len() < 2 {
        return Ok(Vec::new());
    }
    let now = Now::read(client, changing).await?;
    let at = clock();
    // What this very plan has changed before is settled when its turn comes.
    let broken = |item: &Item| match item.unchanged || now.is_of(plan, item) {
        true => None,
        false => now.broken(item, at),
    };
    Ok(plan.items.iter().map(broken).collect())
}

/// Says for each change of a plan what is no more of what it rests on, where something else publishes it.
pub async fn broken(
    client: &Client,
    plan: &Plan,
    clock: Clock<'_>,
) -> Result<Vec<String>, kube::Error> {
    let changing = plan.items.iter().filter(|item| !item.unchanged);
    let changing: Vec<&Item> = changing.collect();
    let now = Now::read(client, changing.clone()).await?;
    let at = clock();
    let broken = changing.iter().filter_map(|item| now.broken(item, at));
    Ok(broken.collect())
}

/// Writes what a pin that is left alone lacks in its record: whoever moved it may have died before.
async fn complete(client: &Client, pin: &ReleasePin, at: Timestamp) {
    let namespace = pin.metadata.namespace.as_deref().unwrap_or_default();
    if let Ok(scribe) = Scribe::new(client, namespace, at).await {
        // Where that fails, the next change of the pin or the controller does it.
        let _ = scribe.record(pin).await;
    }
}

/// Returns the releases that a change claims.
fn claimed(item: &Item, now: &Now) -> Vec<(Key, Option<String>)> {
    let claim = |name| {
        let key = Key::new(&item.pin.namespace, name);
        let uid = now.world.release(&key);
        let uid = uid.map(|release| release.uid.to_string());
        (key, uid)
    };
    item.claims(now.world.pin(&item.pin)).map(claim).collect()
}

/// Writes the audit entry of a change that was made.
async fn recorded(scribe: &Scribe, published: Published) -> Applied {
    let generation = |pin: &ReleasePin| pin.metadata.generation.unwrap_or_default();
    match published {
        Published::Ours(pin) => match scribe.record(&pin).await {
            Ok(_) => Applied::Done(generation(&pin)),
            Err(error) => Applied::Unrecorded(generation(&pin), explain(&error)),
        },
        Published::Overwritten { ours, by, pin } => {
            let mut written = scribe.record(&ours).await;
            if let (Ok(_), Some(pin)) = (&written, &pin) {
                written = scribe.record(pin).await;
            }
            match written {
                Ok(_) => Applied::Superseded {
                    revision: generation(&ours),
                    by,
                },
                Err(error) => {
                    Applied::Unrecorded(generation(&ours), format!("{by}; {}", explain(&error)))
                }
            }
        }
    }
}
