//! Audit entries in chains: builds the next entry of a chain, and verifies that nobody changed an entry.
//!
//! The functions are pure; [`AuditWriter`] writes to the API. A caller builds an entry with [`missing`] or
//! [`of_release`] and creates it under its name. If the name already exists, another writer was faster, and
//! the caller reads the chain again.

mod chain;
mod event;
mod record;
mod retention;
mod timeline;
mod verify;
mod writer;

pub use chain::{Chain, chains};
pub use record::{NotStored, OnRelease, Recorder, missing, of_release};
pub use retention::{Retired, checkpoint};
pub use timeline::{Row, Span, document, markdown, timeline};
pub use verify::{Live, flaws, read, verify};
pub use writer::{AuditWriter, EntriesOf};

pub use crate::api::bowline::verification::{ChainSummary, Finding, Severity, Verification};

use kube::ResourceExt;
use serde_json::json;

use crate::api::bowline::audit::{AuditEntry, AuditEntrySpec, COMPONENT, Subject};
use crate::api::{digest, labels, names};

/// Returns the hash of an audit entry. The hash covers the name of the entry, the two labels by which lists select
/// entries, and the spec.
pub fn hash(entry: &AuditEntry) -> String {
    let label = |name| entry.labels().get(name);
    digest::of(&json!({
        "name": entry.metadata.name,
        "component": label(labels::COMPONENT),
        "environment": label(labels::ENVIRONMENT),
        "spec": entry.spec,
    }))
}

/// Returns the hash that identifies an entry. The next entry of the chain contains it as `previous`, and the subject
/// contains it in the audit head annotation.
///
/// For a checkpoint, it is the hash of the last entry that the checkpoint replaced, because the next entry is older
/// than the checkpoint and already contains that hash.
pub fn link(entry: &AuditEntry) -> String {
    match &entry.spec.checkpoint {
        Some(checkpoint) => checkpoint.hash.clone(),
        None => hash(entry),
    }
}

/// Returns the name of the audit entry for a revision of a subject. A checkpoint has another name.
pub(crate) fn name_at(subject: &Subject, revision: i64) -> String {
    match subject.kind == COMPONENT {
        true => names::release_audit_entry(&subject.name, revision),
        false => {
            let uid = subject.uid.as_deref().unwrap_or_default();
            names::audit_entry(&subject.name, uid, revision)
        }
    }
}

/// Returns the only valid name of an audit entry.
///
/// For some time, a checkpoint and the last entry that it replaces both exist, so their names must differ. An
/// admission policy requires that every name ends with the revision.
fn name_of(spec: &AuditEntrySpec) -> String {
    let name = name_at(&spec.subject, spec.revision);
    let number = spec.revision.to_string();
    match (&spec.checkpoint, name.strip_suffix(&number)) {
        (Some(_), Some(stem)) => names::subdomain(&format!("{stem}checkpoint-{number}")),
        _ => name,
    }
}

/// Builds the AuditEntry object from a spec. Sets its name, the labels by which lists select entries, and the seal:
/// an annotation with the hash of the entry.
pub(crate) fn sealed(
    spec: AuditEntrySpec,
    component: &str,
    environment: Option<&str>,
) -> AuditEntry {
    let mut entry = AuditEntry::new(&name_of(&spec), spec);
    let environment = environment.map(|environment| (labels::ENVIRONMENT, environment));
    for (label, value) in [(labels::COMPONENT, component)]
        .into_iter()
        .chain(environment)
    {
        let value = names::label_value(value);
        entry.labels_mut().insert(label.to_owned(), value);
    }
    let seal = hash(&entry);
    entry
        .annotations_mut()
        .insert(labels::CONTENT_HASH.to_owned(), seal);
    entry
}
