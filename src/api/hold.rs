//! The hold: the record on a subject that pinning the subject creates.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// Stops promotions, deployments and automation from moving a ReleasePin. A rollback is still allowed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// The id of the hold, unique on its ReleasePin.
    #[schemars(length(min = 1, max = 63))]
    pub id: String,
    /// The user who placed the hold.
    #[schemars(length(min = 1, max = 253))]
    pub owner: String,
    /// The reason for the hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub reason: Option<String>,
    /// The start of the hold.
    #[schemars(schema_with = "schema::moment")]
    pub since: Time,
    /// The end of the hold. The default is no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::moment")]
    pub until: Option<Time>,
    /// The Release that runs while the hold is active, instead of releaseRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub release: Option<String>,
}

impl Hold {
    /// Returns a description of the hold for users, such as `the hold of ana: sale weekend`.
    pub fn words(&self) -> String {
        let reason = self.reason.as_deref().filter(|reason| !reason.is_empty());
        format!(
            "the hold of {}: {}",
            self.owner,
            reason.unwrap_or("no reason was given")
        )
    }

    /// Returns whether the hold has not ended at `now`.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.until.as_ref().is_none_or(|until| now < until.0)
    }

    /// Returns whether the hold has an effect at `now`. `owned` tells whether a GitOps tool owns the
    /// ReleasePin.
    ///
    /// If a tool owns the ReleasePin, a hold that names a release has an effect even after its end. Otherwise
    /// the tool would restore the release in git within seconds after the end.
    pub fn is_effective(&self, now: Timestamp, owned: bool) -> bool {
        (owned && self.release.is_some()) || self.is_active(now)
    }
}
