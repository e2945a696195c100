//! Writes the audit entries about the releases of one component: marks, deletions by gc, and releases that gc created
//! again.
//!
//! Each entry has the next number. If two writers use the same number, one of them gets a conflict, reads the chain
//! of entries again and retries. If the server does not answer, the writer looks for an entry of its own operation.
//! It finds the newest entry by a binary search over the numbers.

use jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};

use crate::api::bowline::audit::{Action, AuditEntry, AuditEntrySpec, COMPONENT, ContentRef};
use crate::api::names;
use crate::engine::audit::{self, OnRelease, Recorder};
use crate::engine::pages;
use crate::engine::repeat::{is_ambiguous, pause, repeat};

/// The largest number of attempts to write an audit entry. An attempt fails if another writer takes the next number.
const ATTEMPTS: u32 = 100;

/// Reads and writes the audit entries about the releases of one component.
pub struct Ledger {
    api: Api<AuditEntry>,
    component: String,
    by: String,
    /// The newest audit entry of the chain; None if the chain is empty or was not read yet.
    newest: Option<AuditEntry>,
}

impl Ledger {
    /// Opens the audit chain about the releases of a component. `by` is the user name that the server knows.
    pub fn of(client: &Client, namespace: &str, component: &str, by: &str) -> Self {
        Self {
            api: Api::namespaced(client.clone(), namespace),
            component: component.to_owned(),
            by: by.to_owned(),
            newest: None,
        }
    }

    /// Returns the actions on a release that audit entries of one operation record, oldest first.
    pub async fn recorded(
        &self,
        operation: &str,
        release: &ContentRef,
    ) -> Result<Vec<Action>, kube::Error> {
        if !is_operation(operation) {
            return Ok(Vec::new());
        }
        let of_operation = ListParams::default().fields(&format!("spec.operation={operation}"));
        let mut entries =
            repeat(|| pages::all(&self.api, of_operation.clone(), pages::PAGE)).await?;
        // The hash of the release is not compared, because an older entry may not contain it.
        let same = |other: &ContentRef| (&other.name, &other.uid) == (&release.name, &release.uid);
        entries.retain(|entry| self.is_ours(entry) && about(&entry.spec).is_some_and(same));
        entries.sort_by_key(|entry| entry.spec.revision);
        Ok(entries.iter().map(|entry| entry.spec.action).collect())
    }

    /// Writes an audit entry, unless the chain already has an entry of the same operation.
    pub async fn complete(
        &mut self,
        done: &OnRelease<'_>,
        now: Timestamp,
    ) -> Result<(), kube::Error> {
        match self.is_written(done).await? {
            true => Ok(()),
            false => self.write(done, now).await,
        }
    }

    async fn is_written(&self, done: &OnRelease<'_>) -> Result<bool, kube::Error> {
        let Some(operation) = done.operation else {
            return Ok(false);
        };
        let recorded = self.recorded(operation, &done.release).await?;
        Ok(recorded.last() == Some(&done.action))
    }

    /// Writes an audit entry exactly once. Retries until it is known whether the entry was written.
    pub async fn write(&mut self, done: &OnRelease<'_>, now: Timestamp) -> Result<(), kube::Error> {
        let mut attempt = 0;
        loop {
            // Only an earlier attempt can have written the entry, so the first attempt does not look for it.
            if attempt > 0 && self.is_written(done).await? {
                return Ok(());
            }
            let recorder = Recorder {
                by: &self.by,
                now,
                known: &[],
            };
            let newest = match self.newest.take() {
                Some(known) => Some(known),
                None => self.find_newest().await?,
            };
            let entry = audit::of_release(&self.component, done, newest.as_ref(), &recorder);
            attempt += 1;
            match self.api.create(&PostParams::default(), &entry).await {
                Ok(written) => {
                    self.newest = Some(written);
                    return Ok(());
                }
                Err(error) if attempt >= ATTEMPTS => return Err(error),
                // Another writer has taken this number, so the next attempt uses the next number.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) if is_ambiguous(&error) => pause(attempt).await,
                Err(error) => return Err(error),
            }
        }
    }

    fn is_ours(&self, entry: &AuditEntry) -> bool {
        let subject = &entry.spec.subject;
        subject.kind == COMPONENT && subject.name == self.component
    }

    /// Finds the newest audit entry by a binary search: doubles the step as long as entries exist, then halves it.
    async fn find_newest(&self) -> Result<Option<AuditEntry>, kube::Error> {
        let Some(mut last) = self.entry(1).await? else {
            return self.read_to_the_end().await;
        };
        let (mut known, mut step) = (1, 1);
        while let Some(found) = self.entry(known + step).await? {
            (last, known) = (found, known + step);
            step *= 2;
        }
        while step > 1 {
            step /= 2;
            if let Some(found) = self.entry(known + step).await? {
                (last, known) = (found, known + step);
            }
        }
        Ok(Some(last))
    }

    async fn entry(&self, number: i64) -> Result<Option<AuditEntry>, kube::Error> {
        let name = names::release_audit_entry(&self.component, number);
        let found = repeat(|| self.api.get_opt(&name)).await?;
        Ok(found.filter(|entry| self.is_ours(entry)))
    }

    /// Finds the newest audit entry if entry 1 does not exist, by reading all entries. Then the chain is empty, or
    /// retention has removed its first entries.
    async fn read_to_the_end(&self) -> Result<Option<AuditEntry>, kube::Error> {
        let chain = format!("spec.subject.name={}", self.component);
        let chain = ListParams::default().fields(&chain);
        let mut entries = pages::all(&self.api, chain, pages::PAGE).await?;
        // The list also contains the entries about a ReleasePin that has the same name as the component.
        entries.retain(|entry| self.is_ours(entry));
        let chains = audit::chains(&entries);
        let newest = chains.first().and_then(|chain| chain.newest());
        Ok(newest.cloned())
    }
}

/// Returns whether a text has the form of an operation id. The check is needed because users can write any text into
/// an annotation.
pub(super) fn is_operation(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=253).contains(&text.len()) && text.chars().all(plain)
}

/// Returns the release that an audit entry is about.
fn about(spec: &AuditEntrySpec) -> Option<&ContentRef> {
    match spec.action {
        Action::Collect => spec.from.as_ref(),
        _ => spec.to.as_ref(),
    }
}
