//! Sorts audit entries into chains: one chain per subject, and one per component for the actions on its
//! releases.

use std::collections::BTreeMap;

use crate::api::bowline::audit::{AuditEntry, COMPONENT, Subject};

/// The audit entries of one subject, or the audit entries about all releases of one component.
#[derive(Clone, Debug)]
pub struct Chain<'a> {
    /// The subject that the entries describe. For a chain about releases, it is the component.
    pub subject: &'a Subject,
    /// The newest checkpoint of the chain, which replaces all entries up to its revision. None if retention has
    /// removed no entries.
    pub root: Option<&'a AuditEntry>,
    /// The entries after the checkpoint, sorted by revision.
    pub entries: Vec<&'a AuditEntry>,
    /// Entries that the checkpoint already replaces, but that retention has not deleted yet.
    pub leftovers: Vec<&'a AuditEntry>,
    /// Entries that were created after another writer had recorded a gap for their revisions.
    pub late: Vec<&'a AuditEntry>,
}

impl<'a> Chain<'a> {
    /// Returns the newest entry of the chain; None if the chain is empty. The next entry must contain the hash of
    /// this entry.
    pub fn newest(&self) -> Option<&'a AuditEntry> {
        self.entries.last().copied().or(self.root)
    }

    /// Returns all entries of the chain, sorted by revision. The result includes the checkpoint, the leftovers and
    /// the late entries.
    pub fn all(&self) -> Vec<&'a AuditEntry> {
        let mut all: Vec<&AuditEntry> = self.leftovers.clone();
        all.extend(self.root);
        all.extend(&self.entries);
        all.extend(&self.late);
        all.sort_by_key(|entry| place(entry));
        all
    }
}

/// Returns the sort key of an entry. A checkpoint comes after the entry with the same revision, because it
/// replaces that entry.
fn place(entry: &AuditEntry) -> (i64, bool, Option<&str>) {
    (
        entry.spec.revision,
        entry.spec.checkpoint.is_some(),
        entry.metadata.name.as_deref(),
    )
}

/// Returns the first revision that an audit entry is about. An entry is about one revision; only a gap entry is about
/// several.
pub(super) fn first(entry: &AuditEntry) -> i64 {
    let gap = entry.spec.gap.as_ref();
    gap.map_or(entry.spec.revision, |gap| gap.first)
}

/// Sorts entries into chains. Chains of subjects come first, by name and uid; then chains of components.
pub fn chains(entries: &[AuditEntry]) -> Vec<Chain<'_>> {
    let mut groups: BTreeMap<(bool, &str, Option<&str>), Vec<&AuditEntry>> = BTreeMap::new();
    for entry in entries {
        let subject = &entry.spec.subject;
        let component = subject.kind == COMPONENT;
        groups
            .entry((component, &subject.name, subject.uid.as_deref()))
            .or_default()
            .push(entry);
    }
    groups.into_values().filter_map(chain).collect()
}

fn chain(mut group: Vec<&AuditEntry>) -> Option<Chain<'_>> {
    group.sort_by_key(|entry| place(entry));
    let subject = &group.first()?.spec.subject;
    let root = group
        .iter()
        .copied()
        .rfind(|entry| entry.spec.checkpoint.is_some());
    let gaps: Vec<(i64, i64)> = group
        .iter()
        .filter_map(|entry| entry.spec.gap.as_ref())
        .map(|gap| (gap.first, gap.last))
        .collect();
    let mut chain = Chain {
        subject,
        root,
        entries: Vec::new(),
        leftovers: Vec::new(),
        late: Vec::new(),
    };
    for entry in group {
        let revision = entry.spec.revision;
        let is_late = |&(first, last): &(i64, i64)| first <= revision && revision < last;
        match root {
            Some(root) if std::ptr::eq(root, entry) => {}
            Some(root) if revision <= root.spec.revision => chain.leftovers.push(entry),
            _ if gaps.iter().any(is_late) => chain.late.push(entry),
            _ => chain.entries.push(entry),
        }
    }
    Some(chain)
}
