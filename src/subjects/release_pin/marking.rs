//! Marks releases bad or good, and writes the audit entry.
//!
//! The mark is an annotation of the release, with its operation and everything that the audit entry
//! needs. A client that finds the entry missing writes it before it changes the release.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::ledger::{Ledger, is_operation};
use super::rules::Refusal;
use crate::api::bowline::audit::{Action, ContentRef};
use crate::api::openchoreo::release::{Mark, Verdict};
use crate::api::{Release, labels};
use crate::connect::explain;
use crate::engine::audit::OnRelease;
use crate::engine::confirmation::{Confirmation, Reason};
use crate::engine::repeat::{is_ambiguous, pause, repeat};
use crate::engine::whoami::Clock;
use crate::engine::world::Key;

/// The number of attempts to write a mark. An attempt fails if a claim changes the release at the same time.
const ATTEMPTS: u32 = 20;

/// The plan of a mark.
#[derive(Clone, Debug, PartialEq)]
pub struct Marking {
    /// The id of the operation.
    pub operation: String,
    /// The reason that the user gave.
    pub reason: Option<String>,
    /// The user who marks the release.
    pub by: String,
    /// The time at which the plan was made.
    pub at: Timestamp,
    /// The namespace and the name of the release.
    pub release: Key,
    /// The uid, which differs from the uid of a later release of the same name.
    pub uid: String,
    /// The mark before the action; None if the release has no mark.
    pub was: Option<Verdict>,
    /// The mark after the action.
    pub verdict: Verdict,
    /// Whether the release already has this mark.
    pub unchanged: bool,
    /// The environments in which the release is the effective release.
    pub runs_in: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Marking {
    /// Returns whether the mark needs a reason: a bad mark does, and a good mark that replaces a bad one.
    pub fn needs_reason(&self) -> bool {
        !self.unchanged && [Some(self.verdict), self.was].contains(&Some(Verdict::Bad))
    }

    /// Returns the confirmation of the mark.
    pub fn confirmation(&self) -> Confirmation {
        Confirmation {
            reason: match self.noted() {
                Err(_) => Reason::Required,
                Ok(()) => Reason::Optional,
            },
            ..Confirmation::default()
        }
    }

    /// Returns an error if the mark needs a reason and has none: such a plan can be shown, but not
    /// applied.
    pub fn noted(&self) -> Result<(), Refusal> {
        let given = self.reason.as_deref().unwrap_or_default();
        match self.needs_reason() && given.trim().is_empty() {
            true => Err(Refusal::NoNote {
                release: self.release.name.to_string(),
                verdict: word(self.verdict),
            }),
            false => Ok(()),
        }
    }
}

/// The reason why a release is not marked.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// The release does not exist any more.
    #[error("release {0} no longer exists, so nothing was changed")]
    Gone(String),
    /// Somebody has removed the mark in the meantime.
    #[error("the mark of release {0} was removed in the meantime, so nothing was changed")]
    Removed(String),
    /// Somebody else has marked the release in the meantime.
    #[error("release {release} was marked {verdict} by {by} at {at}, so nothing was changed")]
    Stale {
        /// The name of the release.
        release: String,
        /// The other mark.
        verdict: &'static str,
        /// The other user.
        by: String,
        /// The time of the other mark.
        at: jiff::Timestamp,
    },
    /// A request failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// The result of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// The release is marked, and the audit entry is written.
    Done,
    /// The release is marked, but its audit entry could not be written; the next mark or collection of
    /// the release writes it.
    Unrecorded(String),
}

/// Marks a release as planned; `by` is our user name, according to the server.
pub async fn mark(
    client: &Client,
    plan: &Marking,
    by: &str,
    clock: Clock<'_>,
) -> Result<Marked, MarkError> {
    let releases: Api<Release> = Api::namespaced(client.clone(), &plan.release.namespace);
    let name = &*plan.release.name;
    let wanted = Mark {
        verdict: plan.verdict,
        by: by.to_owned(),
        at: Time(clock()),
        note: plan.reason.clone(),
        operation: Some(plan.operation.clone()),
    };
    let mut attempt = 0;
    loop {
        let found = repeat(|| releases.get_opt(name)).await?;
        let found = found.filter(|found| found.uid().as_deref() == Some(&*plan.uid));
        let Some(mut found) = found else {
            return Err(MarkError::Gone(name.to_owned()));
        };
        let (namespace, component) = (&plan.release.namespace, found.spec.component.name.clone());
        let mut ledger = Ledger::of(client, namespace, &component, by);
        let standing = standing(&found);
        if standing.as_ref().and_then(|mark| mark.operation.as_ref()) == Some(&plan.operation) {
            return Ok(recorded(&mut ledger, &found, by).await);
        }
        if verdict(&found) != plan.was {
            return Err(stale(name, standing));
        }
        // The previous mark needs its audit entry before the next mark.
        record(&mut ledger, &found, by).await?;
        let patch = Patch::Merge(json!({"metadata": {
            "uid": found.metadata.uid,
            "resourceVersion": found.metadata.resource_version,
            "annotations": {labels::MARK: serde_json::to_string(&wanted).unwrap_or_default()},
        }}));
        let manager = PatchParams::apply(labels::MANAGER_ENGINE);
        attempt += 1;
        match releases.patch_metadata(name, &manager, &patch).await {
            Ok(written) => {
                found.metadata = written.metadata;
                return Ok(recorded(&mut ledger, &found, by).await);
            }
            Err(error) if attempt >= ATTEMPTS => return Err(error.into()),
            // Another client wrote the release in the meantime, or it is deleted.
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => {}
            Err(error) if is_ambiguous(&error) => pause(attempt).await,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn recorded(ledger: &mut Ledger, release: &Release, by: &str) -> Marked {
    match record(ledger, release, by).await {
        Ok(()) => Marked::Done,
        Err(error) => Marked::Unrecorded(explain(&error)),
    }
}

fn stale(name: &str, standing: Option<Mark>) -> MarkError {
    match standing {
        Some(mark) => MarkError::Stale {
            release: name.to_owned(),
            verdict: word(mark.verdict),
            by: mark.by,
            at: mark.at.0,
        },
        None => MarkError::Removed(name.to_owned()),
    }
}

/// Returns the word for a verdict.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Bad => "bad",
        Verdict::Good => "good",
    }
}

/// Returns the mark of a release, as in the read model.
fn verdict(release: &Release) -> Option<Verdict> {
    let mark = release.annotations().get(labels::MARK);
    mark.map(|mark| Verdict::of_mark(mark))
}

/// Parses the mark of a release; None if it is unreadable, because then the engine did not write it.
fn standing(release: &Release) -> Option<Mark> {
    let mark = release.annotations().get(labels::MARK)?;
    serde_json::from_str(mark).ok()
}

/// Writes the audit entry of a release's mark, if it is missing.
pub(super) async fn record(
    ledger: &mut Ledger,
    release: &Release,
    by: &str,
) -> Result<(), kube::Error> {
    // A mark without an operation was not set by the engine, so its author is not certain.
    let Some(mark) = standing(release) else {
        return Ok(());
    };
    let Some(operation) = mark.operation.as_deref().filter(|id| is_operation(id)) else {
        return Ok(());
    };
    let hash = release.annotations().get(labels::CONTENT_HASH);
    let done = OnRelease {
        release: ContentRef {
            name: release.name_any(),
            uid: release.uid(),
            hash: hash.cloned(),
        },
        action: match mark.verdict {
            Verdict::Bad => Action::MarkBad,
            Verdict::Good => Action::MarkGood,
        },
        operation: Some(operation),
        actor: (mark.by == by).then_some(by),
        reason: mark.note.as_deref(),
    };
    ledger.complete(&done, mark.at.0).await
}
