//! Marks a release bad or good, and writes the audit entry.
//!
//! The mark is an annotation of the release, which contains all values of the audit entry. So if the audit entry is
//! missing, the next client that changes the release writes it first.

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

/// The largest number of attempts to write a mark. An attempt fails if another client writes the release at the same
/// time, for example to claim it.
const ATTEMPTS: u32 = 20;

/// The plan to mark a release bad or good.
#[derive(Clone, Debug, PartialEq)]
pub struct Marking {
    pub operation: String,
    pub reason: Option<String>,
    pub by: String,
    /// The time at which the planner made the plan.
    pub at: Timestamp,
    pub release: Key,
    /// The uid of the release, because a later release with the same name has another uid.
    pub uid: String,
    /// The verdict that the release has before the new mark; None if the release has no mark.
    pub was: Option<Verdict>,
    /// The verdict to write on the release.
    pub verdict: Verdict,
    /// Whether the release already has this verdict, so that bowline writes nothing.
    pub unchanged: bool,
    /// The environments where the release is effective.
    pub runs_in: Vec<String>,
    pub warnings: Vec<String>,
}

impl Marking {
    /// Returns whether the mark needs a reason: if it marks the release bad, or replaces a bad mark by a good one.
    pub fn needs_reason(&self) -> bool {
        !self.unchanged && [Some(self.verdict), self.was].contains(&Some(Verdict::Bad))
    }

    /// Returns the confirmation that the mark needs from the user.
    pub fn confirmation(&self) -> Confirmation {
        Confirmation {
            reason: match self.noted() {
                Err(_) => Reason::Required,
                Ok(()) => Reason::Optional,
            },
            ..Confirmation::default()
        }
    }

    /// Returns a refusal if the mark needs a reason and has none. Front ends still show such a plan, but cannot apply
    /// it.
    pub fn noted(&self) -> Result<(), Refusal> {
        let given = self.reason.as_deref().unwrap_or_default();
        match self.needs_reason() && given.trim().is_empty() {
            true => Err(Refusal::NoNote {
                release: self.release.name.to_string(),
                verdict: self.verdict.word(),
            }),
            false => Ok(()),
        }
    }
}

/// The reason why bowline could not mark a release.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// The release no longer exists.
    #[error("release {0} no longer exists, so nothing was changed")]
    Gone(String),
    /// Another user removed the mark of the release after the plan was made.
    #[error("the mark of release {0} was removed in the meantime, so nothing was changed")]
    Removed(String),
    /// Another user marked the release after the plan was made.
    #[error("release {release} was marked {verdict} by {by} at {at}, so nothing was changed")]
    Stale {
        release: String,
        /// The verdict of the other user's mark: `bad` or `good`.
        verdict: &'static str,
        /// The user who made the other mark.
        by: String,
        /// The time at which the other mark was made.
        at: jiff::Timestamp,
    },
    /// A request to the server failed.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// The result of marking a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// The release is marked, and the audit entry exists.
    Done,
    /// The release is marked, but its audit entry could not be written. The next mark or gc of the release writes
    /// that entry. Contains the error.
    Unrecorded(String),
}

/// Writes the mark of a plan on its release. `by` is the user name that the server knows.
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
        hash: None,
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
        // Write the audit entry of the previous mark first, because the new mark overwrites the values for it.
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
            // Another client has written or deleted the release since it was read, so the next attempt reads it
            // again.
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
            verdict: mark.verdict.word(),
            by: mark.by,
            at: mark.at.0,
        },
        None => MarkError::Removed(name.to_owned()),
    }
}

/// Returns the verdict on a release, computed as in the read model.
fn verdict(release: &Release) -> Option<Verdict> {
    let mark = release.annotations().get(labels::MARK);
    mark.map(|mark| Verdict::of_mark(mark))
}

/// Parses the mark of a release. Returns None if there is no mark, or if another program wrote one that cannot be
/// parsed.
fn standing(release: &Release) -> Option<Mark> {
    let mark = release.annotations().get(labels::MARK)?;
    serde_json::from_str(mark).ok()
}

/// Writes the audit entry for the current mark of a release, if that entry is missing.
pub(super) async fn record(
    ledger: &mut Ledger,
    release: &Release,
    by: &str,
) -> Result<(), kube::Error> {
    // Another program wrote this mark, so its author is unknown, and no audit entry is written.
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
