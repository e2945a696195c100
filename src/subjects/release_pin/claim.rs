//! Claims: a writer that pins a release and a collector that deletes it both write the release first, so
//! that no race leaves a ReleasePin without its release.
//!
//! A claim is one merge patch with the release's uid: the label that a policy protects from deletion, and
//! the author and time of the claim. It is placed before the ReleasePin changes, and refused if the
//! release is bad or being deleted. It can be placed twice without harm, so a request without an answer
//! is simply repeated.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::api::release::{Claim, Verdict};
use crate::api::{Release, labels};
use crate::connect::explain;
use crate::engine::repeat::repeat;
use crate::engine::world::Key;

/// The largest age of a claim when the ReleasePin changes; a collector waits twice as long.
const LASTS: SignedDuration = SignedDuration::from_mins(5);

/// The reason why a release cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The release does not exist any more.
    #[error("release {0} no longer exists")]
    Gone(String),
    /// The release was marked bad.
    #[error("release {0} was marked bad")]
    Bad(String),
    /// The release is being deleted.
    #[error("release {0} is being deleted")]
    Deleting(String),
    /// A request failed.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// A release to claim, and its uid if known.
pub type Claimed = (Key, Option<String>);

/// The claims of one operation, and the time of the claims.
pub struct Claims<'a> {
    client: &'a Client,
    operation: &'a str,
    releases: Vec<Claimed>,
    placed: Timestamp,
}

impl<'a> Claims<'a> {
    /// Claims releases for an operation.
    pub async fn place(
        client: &'a Client,
        operation: &'a str,
        releases: Vec<Claimed>,
        now: Timestamp,
    ) -> Result<Self, ClaimError> {
        let claims = Self {
            client,
            operation,
            releases,
            placed: now,
        };
        claims.write().await?;
        Ok(claims)
    }

    /// Places the claims again if they are too old.
    pub async fn renew(&mut self, now: Timestamp) -> Result<(), ClaimError> {
        if now.duration_since(self.placed) > LASTS {
            self.placed = now;
            self.write().await?;
        }
        Ok(())
    }

    async fn write(&self) -> Result<(), ClaimError> {
        let claim = Claim {
            at: Time(self.placed),
            operation: self.operation.to_owned(),
        };
        for (key, uid) in &self.releases {
            place(self.client, &claim, key, uid.as_deref()).await?;
        }
        Ok(())
    }
}

async fn place(
    client: &Client,
    claim: &Claim,
    key: &Key,
    uid: Option<&str>,
) -> Result<(), ClaimError> {
    let api: Api<Release> = Api::namespaced(client.clone(), &key.namespace);
    let claimed_at = serde_json::to_string(claim).unwrap_or_default();
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
    match repeat(|| api.patch_metadata(&key.name, &manager, &patch)).await {
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
        // A newer release of the same name has another uid, and a patch cannot change a uid.
        Err(kube::Error::Api(status)) if status.code == 404 => Err(ClaimError::Gone(name)),
        Err(kube::Error::Api(status)) if matches!(status.code, 409 | 422) => {
            let found = repeat(|| api.get_metadata_opt(&key.name)).await?;
            let there = found.is_some_and(|found| uid.is_none() || found.uid().as_deref() == uid);
            match there {
                true => Err(kube::Error::Api(status).into()),
                false => Err(ClaimError::Gone(name)),
            }
        }
        Err(error) => Err(error.into()),
    }
}
