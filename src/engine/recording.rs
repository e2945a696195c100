//! Writes the audit entries of pins: that of a change after it, and whatever somebody left out before.
//!
//! Entries are named by pin and generation, so that two who write the same one write it once.

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};

use super::audit::{self, Recorder};
use crate::api::audit::AuditEntry;
use crate::api::{ReleasePin, names};

/// How often a chain is read again because somebody else wrote to it.
const ATTEMPTS: usize = 10;

/// Writes audit entries as whom the server takes us for.
pub struct Scribe {
    entries: Api<AuditEntry>,
    by: String,
    now: Timestamp,
}

impl Scribe {
    /// Asks the server who writes.
    pub async fn new(
        client: &Client,
        namespace: &str,
        now: Timestamp,
    ) -> Result<Self, kube::Error> {
        let reviews: Api<SelfSubjectReview> = Api::all(client.clone());
        let review = reviews
            .create(&PostParams::default(), &SelfSubjectReview::default())
            .await?;
        let user = review.status.and_then(|status| status.user_info);
        Ok(Self {
            entries: Api::namespaced(client.clone(), namespace),
            by: user.and_then(|user| user.username).unwrap_or_default(),
            now,
        })
    }

    /// Writes what a pin lacks, and returns the newest entry of its chain.
    pub async fn record(&self, pin: &ReleasePin) -> Result<Option<AuditEntry>, kube::Error> {
        let recorder = Recorder {
            by: &self.by,
            now: self.now,
            releases: &[],
        };
        let mut newest = self.newest(pin).await?;
        for _ in 0..ATTEMPTS {
            // A pin that was not stored yet has no chain.
            let Ok(missing) = audit::missing(pin, newest.as_ref(), &recorder) else {
                return Ok(None);
            };
            let mut taken = false;
            for entry in missing {
                match self.entries.create(&PostParams::default(), &entry).await {
                    Ok(written) => newest = Some(written),
                    Err(kube::Error::Api(status)) if status.code == 409 => taken = true,
                    Err(error) => return Err(error),
                }
            }
            if !taken {
                break;
            }
            newest = self.newest(pin).await?;
        }
        Ok(newest)
    }

    /// Finds the newest entry of a pin's chain: mostly that of its generation.
    async fn newest(&self, pin: &ReleasePin) -> Result<Option<AuditEntry>, kube::Error> {
        let (name, uid) = (pin.name_any(), pin.uid().unwrap_or_default());
        let generation = pin.metadata.generation.unwrap_or_default();
        let present = names::audit_entry(&name, &uid, generation);
        if let Some(entry) = self.entries.get_opt(&present).await? {
            return Ok(Some(entry));
        }
        let chain = ListParams::default().fields(&format!("spec.subject.name={name}"));
        let entries = self.entries.list(&chain).await?.items;
        let chains = audit::chains(&entries);
        let own = chains
            .iter()
            .find(|chain| chain.subject.uid.as_deref() == Some(uid.as_str()));
        Ok(own.and_then(|chain| chain.newest()).cloned())
    }
}
