//! Marks releases bad or good, and records it.
//!
//! The mark stands on the release with the operation that set it, and everything that its entry needs:
//! whoever finds the entry missing writes it before anything else is done to the release.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::json;

use super::actions::mark::Marking;
use super::audit::OnRelease;
use super::ledger::{Ledger, is_operation};
use super::repeat::{is_ambiguous, pause, repeat};
use super::whoami::Clock;
use crate::api::audit::{Action, ReleaseIdentity};
use crate::api::release::{Mark, Verdict};
use crate::api::{Release, labels};
use crate::connect::explain;

/// How often a mark is tried: claims write the same release.
const ATTEMPTS: u32 = 20;

/// Why a release is not marked.
#[derive(Debug, thiserror::Error)]
pub enum MarkError {
    /// It is not there any more.
    #[error("release {0} no longer exists, so nothing was changed")]
    Gone(String),
    /// Somebody took its mark away meanwhile.
    #[error("the mark of release {0} was removed in the meantime, so nothing was changed")]
    Removed(String),
    /// Somebody else marked it meanwhile.
    #[error("release {release} was marked {verdict} by {by} at {at}, so nothing was changed")]
    Stale {
        /// The release.
        release: String,
        /// How.
        verdict: &'static str,
        /// Who did.
        by: String,
        /// When.
        at: jiff::Timestamp,
    },
    /// The target did not answer as it should.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// What became of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Marked {
    /// It stands, and is on record.
    Done,
    /// It stands, and its audit entry could not be written; who marks or collects the release next does.
    Unrecorded(String),
}

/// Marks a release as planned; `by` is who the server takes us for.
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
        // What was said before has to be on record before something else is said.
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
            // Somebody wrote it meanwhile, or it is gone.
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

/// Says how a release is marked, as the read model does.
fn verdict(release: &Release) -> Option<Verdict> {
    let mark = release.annotations().get(labels::MARK);
    mark.map(|mark| Verdict::of_mark(mark))
}

/// Reads the mark of a release; what cannot be read was not written by an engine.
fn standing(release: &Release) -> Option<Mark> {
    let mark = release.annotations().get(labels::MARK)?;
    serde_json::from_str(mark).ok()
}

/// Writes the entry of a release's mark, where it is missing.
pub(super) async fn record(
    ledger: &mut Ledger,
    release: &Release,
    by: &str,
) -> Result<(), kube::Error> {
    // A mark without an operation was not set by an engine: nobody vouches for who did.
    let Some(mark) = standing(release) else {
        return Ok(());
    };
    let Some(operation) = mark.operation.as_deref().filter(|id| is_operation(id)) else {
        return Ok(());
    };
    let hash = release.annotations().get(labels::CONTENT_HASH);
    let done = OnRelease {
        release: ReleaseIdentity {
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
