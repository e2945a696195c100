//! Claims: both who names a release and who would collect it write the release, so that no race leaves a
//! pin without one.
//!
//! A claim is one merge patch with the release's uid: the label that a policy protects from deletion, and
//! who claimed it when. It is placed before a pin moves, and refused where the release is bad or going.
//! Placing it twice does no harm, so an answer that is lost is asked for again.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::repeat::repeat;
use super::world::Key;
use crate::api::release::{Claim, Verdict};
use crate::api::{Release, labels};
use crate::connect::explain;

/// How old a claim may be when the pin moves; who collects waits for twice as long.
const LASTS: SignedDuration = SignedDuration::from_mins(5);

/// Why a release cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// It is not there any more.
    #[error("release {0} no longer exists")]
    Gone(String),
    /// It was marked bad meanwhile.
    #[error("release {0} was marked bad")]
    Bad(String),
    /// It is being deleted.
    #[error("release {0} is being deleted")]
    Deleting(String),
    /// The target did not answer as it should.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// A release that is to be claimed, and its uid where that is known.
pub type Claimed = (Key, Option<String>);

/// The claims of one operation, and when they were placed.
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

    /// Places the claims again where they have become old.
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
        // Another release of the same name has another uid, which a patch cannot change.
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
