//! Writes the audit entries of subjects: the entry for the newest change, and the missing entries for older changes.
//!
//! The name of an entry contains the subject and the revision. So two writers cannot both create an entry for the
//! same revision. A writer that got no answer looks up the entry by its name.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use serde_json::Value;

use super::{Recorder, event, missing};
use crate::api::bowline::audit::AuditEntry;
use crate::api::{names, operation};
use crate::engine::repeat::{ATTEMPTS, is_ambiguous, pause, repeat};
use crate::engine::subject::{Kind, Numbering};
use crate::engine::whoami;

/// The number of entries in one page of a list.
const PAGE: u32 = if cfg!(test) { 3 } else { 500 };

/// Writes audit entries in the name of one user.
pub struct AuditWriter {
    entries: Api<AuditEntry>,
    /// Set if the server does not have AuditEntries of the kind: then the writer records changes as Events instead.
    /// None if it writes audit entries.
    events: Option<Api<Event>>,
    by: String,
    now: Timestamp,
}

impl AuditWriter {
    /// Creates a writer for the user of the connection, whose name it asks the server for.
    pub async fn new(
        client: &Client,
        namespace: &str,
        now: Timestamp,
    ) -> Result<Self, kube::Error> {
        let by = whoami::ask(client, &|| now).await?.user;
        Ok(Self::of(client, namespace, by, now))
    }

    /// Creates a writer for a kind that exists without bowline, such as a workload. If the server does not have
    /// AuditEntries of this kind, the writer records changes as Events.
    pub async fn for_kind(
        client: &Client,
        namespace: &str,
        kind: &'static Kind,
        now: Timestamp,
    ) -> Result<Self, kube::Error> {
        let mut writer = Self::new(client, namespace, now).await?;
        if kind.numbering != Numbering::Generation
            && EntriesOf::ask(client, kind).await != EntriesOf::Kind
        {
            writer.events = Some(Api::namespaced(client.clone(), namespace));
        }
        Ok(writer)
    }

    /// Creates a writer for the user `by`. Sends no request, because the name is known.
    pub fn of(client: &Client, namespace: &str, by: String, now: Timestamp) -> Self {
        Self {
            entries: Api::namespaced(client.clone(), namespace),
            events: None,
            by,
            now,
        }
    }

    /// Returns the user name that the writer puts into audit entries.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Returns whether the writer records changes as Events.
    pub fn writes_events(&self) -> bool {
        self.events.is_some()
    }

    /// Writes the missing entries of a subject. Returns the newest entry of its chain; None if there is no
    /// entry.
    pub async fn record(
        &self,
        kind: &'static Kind,
        object: &DynamicObject,
    ) -> Result<Option<AuditEntry>, kube::Error> {
        if let Some(events) = &self.events {
            event::record(events, kind, object, self.now).await?;
            return Ok(None);
        }
        let recorder = Recorder {
            by: &self.by,
            now: self.now,
            known: &[],
        };
        // The first revision of a subject usually has no audit entry yet, so the lookup of the newest entry is
        // skipped. If the entry exists, the server answers the creation with a conflict, and the next attempt looks
        // it up.
        let first = kind.number(object) == Some(1)
            && matches!(operation::of(object, kind.name, Some(1)), Ok(None));
        let mut newest = match first {
            true => None,
            false => self.newest(kind, object).await?,
        };
        let mut attempt = 0;
        loop {
            // An object that the server has not stored has no chain.
            let Ok(missing) = missing(kind, object, newest.as_ref(), &recorder) else {
                return Ok(None);
            };
            attempt += 1;
            let failed = match self.write(missing, &mut newest).await {
                Ok(()) => return Ok(newest),
                Err(error) if attempt >= ATTEMPTS => return Err(error),
                Err(error) => error,
            };
            match &failed {
                // Another writer created this entry first, so the next attempt looks it up.
                kube::Error::Api(status) if status.code == 409 => {}
                error if is_ambiguous(error) => pause(attempt).await,
                _ => return Err(failed),
            }
            newest = self.newest(kind, object).await?;
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

    /// Returns the audit entry for one revision of a subject; None if the entry does not exist.
    pub async fn entry(
        &self,
        subject: &str,
        uid: &str,
        generation: i64,
    ) -> Result<Option<AuditEntry>, kube::Error> {
        if self.events.is_some() {
            return Ok(None);
        }
        let name = names::audit_entry(subject, uid, generation);
        let found = repeat(|| self.entries.get_opt(&name)).await?;
        Ok(found.filter(|entry| entry.spec.subject.uid.as_deref() == Some(uid)))
    }

    /// Returns the newest audit entry of a subject. To avoid a list, it first looks for the entries of the current
    /// and the previous revision, because one of them usually exists.
    async fn newest(
        &self,
        kind: &'static Kind,
        object: &DynamicObject,
    ) -> Result<Option<AuditEntry>, kube::Error> {
        let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
        let number = kind.number(object).unwrap_or_default();
        for recent in [number, number - 1].into_iter().filter(|at| *at > 0) {
            if let Some(entry) = self.entry(&name, &uid, recent).await? {
                return Ok(Some(entry));
            }
        }
        match number {
            // Before its first change, a subject has no audit entry.
            ..=1 => Ok(None),
            _ => self.last(&name, &uid).await,
        }
    }

    /// Lists the audit entries of a subject page by page and returns the newest one. For subjects whose newest entry
    /// has an unexpected revision.
    async fn last(&self, name: &str, uid: &str) -> Result<Option<AuditEntry>, kube::Error> {
        let chain = ListParams::default().fields(&format!("spec.subject.name={name}"));
        let mut page = chain.clone().limit(PAGE);
        let mut newest: Option<AuditEntry> = None;
        loop {
            let list = match repeat(|| self.entries.list(&page)).await {
                // The continue token of the list has expired, so the list starts again with the first page.
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

/// For which kinds of subjects a server stores AuditEntries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntriesOf {
    /// The server stores AuditEntries for the requested kind.
    Kind,
    /// The server stores AuditEntries only for other kinds, because an older bowline installed their definition.
    OtherKinds,
    /// The server stores no AuditEntries, because the kind AuditEntry is not installed.
    Nothing,
}

impl EntriesOf {
    /// Reads from the OpenAPI document of the server for which kinds it stores AuditEntries. If the server does not
    /// answer, returns [`EntriesOf::Kind`], so that the next request reports the error.
    pub async fn ask(client: &Client, kind: &Kind) -> Self {
        let group = AuditEntry::api_version(&());
        let request = http::Request::get(format!("/openapi/v3/apis/{group}"))
            .header(http::header::ACCEPT, "application/json")
            .body(Vec::new());
        let Ok(request) = request else {
            return Self::Kind;
        };
        match client.request::<Value>(request).await {
            Ok(document) => Self::of(&document, kind),
            Err(kube::Error::Api(status)) if status.code == 404 => Self::Nothing,
            Err(_) => Self::Kind,
        }
    }

    /// Returns the line that says where bowline records a change; None if it writes an AuditEntry.
    pub fn note(self) -> Option<String> {
        let note = match self {
            Self::Kind => return None,
            Self::OtherKinds => {
                "the kind AuditEntry of this cluster is from an older bowline: annotations and Events record each change; bowline install updates the kinds"
            }
            Self::Nothing => {
                "this cluster has no AuditEntries: annotations and Events record each change"
            }
        };
        Some(note.to_owned())
    }

    fn of(document: &Value, kind: &Kind) -> Self {
        let schemas = document.pointer("/components/schemas");
        let mut schemas = schemas.and_then(Value::as_object).into_iter().flatten();
        let path = "/properties/spec/properties/subject/properties/kind";
        let Some(field) = schemas.find_map(|(_, schema)| schema.pointer(path)) else {
            return Self::Nothing;
        };
        match field["enum"].as_array() {
            Some(kinds) if !kinds.iter().any(|one| one == kind.name) => Self::OtherKinds,
            _ => Self::Kind,
        }
    }
}

/// Returns the sort key of an entry. A checkpoint comes after the entry with the same revision, because it
/// replaces that entry.
fn place(entry: &AuditEntry) -> (i64, bool) {
    (entry.spec.revision, entry.spec.checkpoint.is_some())
}
