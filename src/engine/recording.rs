//! Writes the audit entries of pins: that of a change after it, and whatever somebody left out before.
//!
//! Entries are named by pin and generation, so that two who write the same one write it once, and so that
//! one whose answer is lost is found by looking again.

use jiff::Timestamp;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};

use super::audit::{self, Recorder};
use super::repeat::{ATTEMPTS, is_ambiguous, pause, repeat};
use super::whoami;
use crate::api::audit::AuditEntry;
use crate::api::{ReleasePin, names};

/// How many entries one request asks for.
const PAGE: u32 = if cfg!(test) { 3 } else { 500 };

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
        let by = whoami::ask(client, &|| now).await?.user;
        Ok(Self::of(client, namespace, by, now))
    }

    /// Writes as somebody whom the server has named before.
    pub fn of(client: &Client, namespace: &str, by: String, now: Timestamp) -> Self {
        Self {
            entries: Api::namespaced(client.clone(), namespace),
            by,
            now,
        }
    }

    /// Returns who writes, by the server's word.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Writes what a pin lacks, and returns the newest entry of its chain.
    pub async fn record(&self, pin: &ReleasePin) -> Result<Option<AuditEntry>, kube::Error> {
        let recorder = Recorder {
            by: &self.by,
            now: self.now,
            releases: &[],
        };
        // Nobody else records the first edit of a pin: it is written without looking, and looked for where
        // somebody did all the same.
        let first = pin.metadata.generation == Some(1) && matches!(pin.operation(), Ok(None));
        let mut newest = match first {
            true => None,
            false => self.newest(pin).await?,
        };
        let mut attempt = 0;
        loop {
            // A pin that was not stored yet has no chain.
            let Ok(missing) = audit::missing(pin, newest.as_ref(), &recorder) else {
                return Ok(None);
            };
            attempt += 1;
            let failed = match self.write(missing, &mut newest).await {
                Ok(()) => return Ok(newest),
                Err(error) if attempt >= ATTEMPTS => return Err(error),
                Err(error) => error,
            };
            match &failed {
                // Somebody else wrote it first.
                kube::Error::Api(status) if status.code == 409 => {}
                error if is_ambiguous(error) => pause(attempt).await,
                _ => return Err(failed),
            }
            newest = self.newest(pin).await?;
        }
    }

    async fn write(
        &self,
        missing: Vec<AuditEntry>,
        newest: &mut Option<AuditEntry>,
    ) -> Result<(), kube::Error> {
        for entry in missing {
            *newest = Some(self.entries.create(&PostParams::default(), &entry).await?);
        }
        Ok(())
    }

    /// Finds the entry of one generation of a pin.
    pub async fn entry(
        &self,
        pin: &str,
        uid: &str,
        generation: i64,
    ) -> Result<Option<AuditEntry>, kube::Error> {
        let name = names::audit_entry(pin, uid, generation);
        let found = repeat(|| self.entries.get_opt(&name)).await?;
        Ok(found.filter(|entry| entry.spec.subject.uid.as_deref() == Some(uid)))
    }

    /// Finds the newest entry of a pin's chain: mostly that of its generation, or of the one before.
    async fn newest(&self, pin: &ReleasePin) -> Result<Option<AuditEntry>, kube::Error> {
        let (name, uid) = (pin.name_any(), pin.uid().unwrap_or_default());
        let generation = pin.metadata.generation.unwrap_or_default();
        for recent in [generation, generation - 1]
            .into_iter()
            .filter(|at| *at > 0)
        {
            if let Some(entry) = self.entry(&name, &uid, recent).await? {
                return Ok(Some(entry));
            }
        }
        match generation {
            // There is none before the first.
            ..=1 => Ok(None),
            _ => self.last(&name, &uid).await,
        }
    }

    /// Goes through a chain page by page and keeps its newest entry alone.
    async fn last(&self, name: &str, uid: &str) -> Result<Option<AuditEntry>, kube::Error> {
        let chain = ListParams::default().fields(&format!("spec.subject.name={name}"));
        let mut page = chain.clone().limit(PAGE);
        let mut newest: Option<AuditEntry> = None;
        loop {
            let list = match repeat(|| self.entries.list(&page)).await {
                // The pages took longer than the server keeps them.
                Err(kube::Error::Api(status))
                    if status.code == 410 && page.continue_token.is_some() =>
                {
                    page = chain.clone().limit(PAGE);
                    continue;
                }
                list => list?,
            };
            let own = list.items.into_iter();
            let own = own.filter(|entry| entry.spec.subject.uid.as_deref() == Some(uid));
            newest = newest.into_iter().chain(own).max_by_key(place);
            match list.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => page = page.continue_token(&token),
                None => return Ok(newest),
            }
        }
    }
}

/// A checkpoint comes after the entry of its revision, which it replaces.
fn place(entry: &AuditEntry) -> (i64, bool) {
    (entry.spec.revision, entry.spec.checkpoint.is_some())
}
