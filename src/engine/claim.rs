//! Claims protect an object, such as a release, from gc. A writer claims the object before it writes a reference to
//! the object. Gc writes to the object before it deletes the object. So a race never leaves a reference to a deleted
//! object.
//!
//! A claim is a merge patch that sets a label, and an annotation with the operation and the time. An admission policy
//! forbids the deletion of an object with this label. A claim fails if the object is marked bad or is being deleted.
//! If the server does not answer, the claim is sent again, because a second claim changes nothing.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::ApiResource;
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use super::repeat::repeat;
use super::world::Key;
use crate::api::labels;
use crate::api::openchoreo::release::{Claim, Verdict};
use crate::connect::explain;

/// A claim that is older than this must be placed again before the subject is written. Gc respects a claim for twice
/// this time.
const LASTS: SignedDuration = SignedDuration::from_mins(5);

/// The reason why a claim failed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error("{0} no longer exists, so nothing was changed; choose another release")]
    Gone(String),
    /// A user marked the object bad.
    #[error("{0} was marked bad, so nothing was changed; choose another release")]
    Bad(String),
    #[error("{0} is being deleted, so nothing was changed; choose another release")]
    Deleting(String),
    /// A request to the server failed when the claim was placed.
    #[error("{}", explain(.0))]
    Target(#[from] kube::Error),
}

/// An object that an operation claims, to protect it from gc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimOn {
    /// The kind of the object.
    pub resource: ApiResource,
    /// The word for the kind of the claimed object in messages, such as `release`.
    pub word: &'static str,
    pub key: Key,
    /// The uid of the object to claim. None claims the object that has the name now.
    pub uid: Option<String>,
}

/// The claims that one operation has placed.
pub struct Claims<'a> {
    client: &'a Client,
    operation: &'a str,
    objects: &'a [ClaimOn],
    placed: Timestamp,
}

impl<'a> Claims<'a> {
    /// Claims the objects of one operation, one after the other, and stops at the first error. `now` becomes the time
    /// of the claims.
    pub async fn place(
        client: &'a Client,
        operation: &'a str,
        objects: &'a [ClaimOn],
        now: Timestamp,
    ) -> Result<Self, ClaimError> {
        let claims = Self {
            client,
            operation,
            objects,
            placed: now,
        };
        claims.write().await?;
        Ok(claims)
    }

    /// Places all claims again if they are older than five minutes; otherwise does nothing.
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
        for object in self.objects {
            place(self.client, &claim, object).await?;
        }
        Ok(())
    }
}

async fn place(client: &Client, claim: &Claim, object: &ClaimOn) -> Result<(), ClaimError> {
    let ClaimOn { key, uid, .. } = object;
    let uid = uid.as_deref();
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), &key.namespace, &object.resource);
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
    let name = format!("{} {}", object.word, key.name);
    match repeat(|| api.patch_metadata(&key.name, &manager, &patch)).await {
        Ok(claimed) => {
            let mark = claimed.metadata.annotations.as_ref();
            let mark = mark.and_then(|all| all.get(labels::MARK));
            let bad = mark.is_some_and(|mark| {
                serde_json::from_str::<crate::api::openchoreo::release::Mark>(mark)
                    .map_or(true, |mark| mark.verdict == Verdict::Bad)
            });
            match claimed.metadata.deletion_timestamp {
                Some(_) => Err(ClaimError::Deleting(name)),
                None if bad => Err(ClaimError::Bad(name)),
                None => Ok(()),
            }
        }
        // The patch contains the uid. If another object has the name now, the server answers with 409 or 422, because
        // a patch cannot change a uid.
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
