//! Selects the entries of a chain that retention may delete, and builds the checkpoint that replaces them.

use kube::ResourceExt;

use super::chain::{Chain, first};
use super::record::{Recorder, blank};
use super::verify::check;
use super::{link, sealed};
use crate::api::bowline::audit::{Action, AuditEntry, Checkpoint};
use crate::api::bowline::verification::Finding;
use crate::api::labels;

/// A checkpoint, and the audit entries that it replaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Retired {
    /// The checkpoint. The caller must create it before it deletes an entry.
    pub checkpoint: AuditEntry,
    /// The names of the entries that the caller must delete after it created the checkpoint, oldest first.
    pub removed: Vec<String>,
}

/// Returns the checkpoint that replaces the entries of a chain up to revision `through`; None if retention may delete
/// no entry.
///
/// `head` is the audit head annotation of the subject; None if the subject does not exist. The result never replaces
/// the newest entry, nor the entry that `head` names and later ones, because they prove the chain. For a chain with
/// problems, the result is None, because a checkpoint would hide the problems.
pub fn checkpoint(
    chain: &Chain,
    through: i64,
    head: Option<&str>,
    recorder: &Recorder,
) -> Result<Option<Retired>, Finding> {
    if let Some(problem) = check(chain).0.into_iter().next() {
        return Err(problem);
    }
    let Some((_, older)) = chain.entries.split_last() else {
        return Ok(None);
    };
    let named = |entry: &&AuditEntry| head == Some(link(entry).as_str());
    let limit = match (head, chain.entries.iter().copied().find(named)) {
        (Some(_), Some(entry)) => entry.spec.revision,
        // The audit head names the checkpoint or an unknown entry, so all entries after the checkpoint must stay.
        (Some(_), None) => return Ok(None),
        (None, _) => through,
    };
    let goes = |entry: &&&AuditEntry| entry.spec.revision <= through.min(limit);
    let going: Vec<&AuditEntry> = older.iter().take_while(goes).copied().collect();
    let Some(last) = going.last().copied() else {
        return Ok(None);
    };
    let late = chain.late.iter().copied();
    let late = late.filter(|entry| first(entry) <= last.spec.revision);
    let mut removed: Vec<&AuditEntry> = chain.leftovers.clone();
    removed.extend(chain.root);
    removed.extend(going.iter().copied().chain(late.clone()));
    let before = chain.root.and_then(|root| root.spec.checkpoint.as_ref());
    let counted = i64::try_from(going.len() + late.count()).unwrap_or(i64::MAX);
    let mut spec = blank(
        chain.subject,
        last.spec.revision,
        Action::Checkpoint,
        None,
        recorder,
    );
    spec.to = last.spec.to.clone();
    spec.release_ref = last.spec.release_ref.clone();
    spec.holds = last.spec.holds.clone();
    spec.checkpoint = Some(Checkpoint {
        through: last.spec.revision,
        entries: before
            .map_or(0, |before| before.entries)
            .saturating_add(counted),
        hash: link(last),
    });
    let label = |name| last.labels().get(name).map(String::as_str);
    let component = label(labels::COMPONENT).unwrap_or_default();
    Ok(Some(Retired {
        checkpoint: sealed(spec, component, label(labels::ENVIRONMENT)),
        removed: removed.iter().map(|entry| entry.name_any()).collect(),
    }))
}
