//! Chains of audit entries: what comes next, and whether what is there was rewritten.
//!
//! Pure functions over values, so that every history can be tried as a table: nothing here reads or
//! writes the API. Who wants an entry asks [`missing`] or [`of_release`] and creates the answer under
//! its name; a name that is taken means that somebody else was first and the chain is read again.

mod chain;
mod record;
mod retention;
mod timeline;
mod verify;

#[cfg(test)]
mod tests;

pub use chain::{Chain, chains};
pub use record::{NotStored, OnRelease, Recorder, missing, of_release};
pub use retention::{Retired, checkpoint};
pub use timeline::{Row, Span, document, markdown, timeline};
pub use verify::{ChainSummary, Finding, Severity, Verdict, flaws, read, verify};

use kube::ResourceExt;
use serde_json::json;

use crate::api::audit::{AuditEntry, AuditEntrySpec, Subject, SubjectKind};
use crate::api::{digest, labels, names};

/// Returns the hash of an entry: of its name, the labels that it is found by, and its spec.
pub fn hash(entry: &AuditEntry) -> String {
    let label = |name| entry.labels().get(name);
    digest::of(&json!({
        "name": entry.metadata.name,
        "component": label(labels::COMPONENT),
        "environment": label(labels::ENVIRONMENT),
        "spec": entry.spec,
    }))
}

/// Returns what the entry after this one carries as `previous`, and what a move writes on its pin as
/// audit head.
///
/// That is the entry's hash; a checkpoint passes on the hash of the last entry that it replaced, for the
/// entry that follows was written long before it.
pub fn link(entry: &AuditEntry) -> String {
    match &entry.spec.checkpoint {
        Some(checkpoint) => checkpoint.hash.clone(),
        None => hash(entry),
    }
}

/// Returns the name of the entry at a place of a chain.
fn name_at(subject: &Subject, revision: i64) -> String {
    match subject.kind {
        SubjectKind::ReleasePin => {
            let uid = subject.uid.as_deref().unwrap_or_default();
            names::audit_entry(&subject.name, uid, revision)
        }
        SubjectKind::Component => names::release_audit_entry(&subject.name, revision),
    }
}

/// Returns the name that an entry has to have.
///
/// A checkpoint stands beside the last entry that it replaces until that is gone, so it has a name of its
/// own; a policy wants every name to end in the revision.
fn name_of(spec: &AuditEntrySpec) -> String {
    let name = name_at(&spec.subject, spec.revision);
    let number = spec.revision.to_string();
    match (&spec.checkpoint, name.strip_suffix(&number)) {
        (Some(_), Some(stem)) => names::subdomain(&format!("{stem}checkpoint-{number}")),
        _ => name,
    }
}

/// Makes the object of an entry: named by its place, labelled for lists, sealed with its own hash.
fn sealed(spec: AuditEntrySpec, component: &str, environment: Option<&str>) -> AuditEntry {
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
