//! What retention may remove from a chain, and the checkpoint that it leaves.

use kube::ResourceExt;

use super::chain::{Chain, first};
use super::record::{Recorder, blank};
use super::verify::{Finding, check};
use super::{link, sealed};
use crate::api::audit::{Action, AuditEntry, Checkpoint};
use crate::api::labels;

/// A checkpoint, and what it stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Retired {
    /// The entry to create before anything is deleted.
    pub checkpoint: AuditEntry,
    /// The names of the entries to delete after that, oldest first.
    pub removed: Vec<String>,
}

/// Returns what can go of a chain, up to a revision; nothing where nothing can.
///
/// `head` is the audit head on the pin, where the pin is still there. The newest entry stays, and so does
/// everything after the one that the head names, for a head that names nothing proves nothing. A chain
/// that does not verify is left as it is: a checkpoint would wipe the traces.
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
        // The head names the root, or nothing: whatever it is, nothing after the root may go.
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
