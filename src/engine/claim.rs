//! Claims: both who names a release and who would collect it write the release, so that no race leaves a
//! pin without one.
//!
//! A claim is one merge patch with the release's uid: the label that a policy protects from deletion, and
//! who claimed it when. It is placed before a pin moves, and refused where the release is bad or going.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use super::plan::Plan;
use super::world::Key;
use crate::api::release::{Claim, Verdict};
use crate::api::{Release, labels};

/// Why a release cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// It is not there any more.
    #[error("release {0} is gone")]
    Gone(String),
    /// It was marked bad meanwhile.
    #[error("release {0} was marked bad")]
    Bad(String),
    /// It is being deleted.
    #[error("release {0} is being deleted")]
    Deleting(String),
    /// The target did not answer as it should.
    #[error(transparent)]
    Target(#[from] kube::Error),
}

/// Claims a release for an operation; repeating it does no harm.
pub async fn claim(
    client: &Client,
    plan: &Plan,
    key: &Key,
    uid: Option<&str>,
) -> Result<(), ClaimError> {
    let api: Api<Release> = Api::namespaced(client.clone(), &key.namespace);
    let claim = Claim {
        at: Time(plan.at),
        operation: plan.operation.clone(),
    };
    let claimed_at = serde_json::to_string(&claim).unwrap_or_default();
    let mut metadata = json!({
        "labels": {labels::PINNED: labels::PINNED_TRUE},
        "annotations": {labels::CLAIMED_AT: claimed_at},
    });
    if let (Some(uid), Value::Object(fields)) = (uid, &mut metadata) {
        fields.insert("uid".to_owned(), uid.into());
    }
    let patch: Patch<Value> = Patch::Merge(json!({ "metadata": metadata }));
    let manager = PatchParams {
        field_manager: Some(labels::MANAGER_ENGINE.to_owned()),
        ..PatchParams::default()
    };
    let name = key.name.to_string();
    match api.patch_metadata(&key.name, &manager, &patch).await {
        Ok(release) => {
            let mark = release.metadata.annotations.as_ref();
            let mark = mark.and_then(|all| all.get(labels::MARK));
            let bad = mark.is_some_and(|mark| {
                serde_json::from_str::<crate::api::release::Mark>(mark)
                    .map_or(true, |mark| mark.verdict == Verdict::Bad)
            });
            match release.metadata.deletion_timestamp {
                Some(_) => Err(ClaimError::Deleting(name)),
                None if bad => Err(ClaimError::Bad(name)),
                None => Ok(()),
            }
        }
        // Another release of the same name has another uid, which a patch cannot change.
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409 | 422) => {
            Err(ClaimError::Gone(name))
        }
        Err(error) => Err(error.into()),
    }
}
