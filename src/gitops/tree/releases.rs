//! Finds marks on releases, and removals of releases by gc, in git's log.
//!
//! Only the commits are read whose trailers name a mark or gc, because a release never changes except for its mark.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::branch::Told;
use super::manifest;
use super::moves::Blobs;
use super::trailers::{self, Trailers};
use crate::api::bowline::audit::{Action, AuditEntrySpec, COMPONENT, ContentRef, Subject};
use crate::api::labels;
use crate::api::openchoreo::release::Verdict;
use crate::git::GitError;
use crate::git::log::Commit;

/// A commit whose trailers name marks on releases or gc.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseCommit {
    /// The commit that has the author and the reason of the actions.
    pub commit: Arc<Commit>,
    /// The time when this commit came to the branch.
    pub at: Timestamp,
    /// The marks on releases and the removals of releases in this commit.
    pub deeds: Vec<Deed>,
}

/// A mark on a release, or the removal of a release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The namespace of the release in its file; empty if the file names none.
    pub namespace: String,
    /// The component that the release belongs to.
    pub component: String,
    /// The name of the marked or removed release.
    pub release: String,
    /// The action on the release: a bad mark, a good mark or gc.
    pub action: Action,
}

/// Returns the commits that marked releases, or that removed releases by gc.
pub(super) fn dealt(blobs: Blobs<'_>, commits: &[Told]) -> Result<Vec<ReleaseCommit>, GitError> {
    let mut found: Vec<ReleaseCommit> = Vec::new();
    let mut known: HashMap<String, Option<usize>> = HashMap::new();
    let mut note = |commit: &Arc<Commit>, at: Timestamp| -> Option<usize> {
        if let Some(number) = known.get(&commit.id) {
            return *number;
        }
        let number = says(commit).then(|| {
            found.push(ReleaseCommit {
                commit: commit.clone(),
                at,
                deeds: Vec::new(),
            });
            found.len() - 1
        });
        known.insert(commit.id.clone(), number);
        number
    };
    let mut files: Vec<(usize, Option<usize>, Option<usize>)> = Vec::new();
    let mut wanted: Vec<String> = Vec::new();
    for told in commits {
        let at = told.commit.at;
        // If the commit changes no release, record it too, because then its trailers are wrong.
        let own = note(&told.commit, at);
        for file in &told.commit.files {
            let teller = told.teller(file);
            let number = match Arc::ptr_eq(teller, &told.commit) {
                true => own,
                false => note(teller, at),
            };
            if let Some(number) = number {
                let mut read = |blob: &Option<String>| {
                    wanted.push(blob.clone()?);
                    Some(wanted.len() - 1)
                };
                files.push((number, read(&file.old), read(&file.blob)));
            }
        }
    }
    let mut states: Vec<Releases> = vec![Releases::new(); wanted.len()];
    blobs(&wanted, &mut |at, text| {
        if let (Some(state), Some(text)) = (states.get_mut(at), text) {
            *state = releases(&text);
        }
    })?;
    let none = Releases::new();
    let read = |at: Option<usize>| at.and_then(|at| states.get(at)).unwrap_or(&none);
    for (number, before, after) in files {
        if let Some(dealt) = found.get_mut(number) {
            dealt.deeds.extend(deeds(read(before), read(after)));
        }
    }
    Ok(found)
}

/// Returns whether the trailers of a commit name a mark or gc.
fn says(commit: &Commit) -> bool {
    let mut said = commit.trailers().into_iter();
    said.any(|(word, value)| word == Trailers::ACTION && trailers::deed(value).is_some())
}

/// The releases of a file, by namespace and name. The values are the component and the mark of the release.
type Releases = BTreeMap<(String, String), (String, Option<Verdict>)>;

fn releases(bytes: &[u8]) -> Releases {
    // A state of a file that cannot be parsed counts as a file without releases.
    let objects = manifest::objects(bytes).unwrap_or_default().into_iter();
    let releases = objects.filter(|value| manifest::is_a("Release", value));
    let read = releases.map(|value| {
        let meta = &value["metadata"];
        let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
        let component = value["spec"]["component"]["name"].as_str();
        let mark = meta["annotations"][labels::MARK].as_str();
        let component = component.unwrap_or_default().to_owned();
        (
            (text("namespace"), text("name")),
            (component, mark.map(Verdict::of_mark)),
        )
    });
    read.collect()
}

/// Compares two states of a file. Returns the releases that were marked, and the releases that were removed.
fn deeds(before: &Releases, after: &Releases) -> Vec<Deed> {
    let deed = |(namespace, release): &(String, String), component: &str, action| Deed {
        namespace: namespace.clone(),
        component: component.to_owned(),
        release: release.clone(),
        action,
    };
    let gone = before.iter().filter(|(key, _)| !after.contains_key(*key));
    let mut found: Vec<Deed> = gone
        .map(|(key, (component, _))| deed(key, component, Action::Collect))
        .collect();
    for (key, (component, verdict)) in after {
        let was = before.get(key).and_then(|(_, verdict)| *verdict);
        match verdict {
            Some(verdict) if was != Some(*verdict) => {
                let action = match verdict {
                    Verdict::Bad => Action::MarkBad,
                    Verdict::Good => Action::MarkGood,
                };
                found.push(deed(key, component, action));
            }
            _ => {}
        }
    }
    found
}

/// Returns the audit entry for a mark on a release or its removal. `number` is the number of the entry in the chain
/// of the component.
pub(super) fn spec(dealt: &ReleaseCommit, deed: &Deed, number: i64) -> AuditEntrySpec {
    let operation = Trailers::read(&dealt.commit);
    let mut operation = operation
        .into_iter()
        .filter(|said| said.deed() == Some(deed.action));
    let operation = operation.find_map(|said| said.operation);
    let body = dealt.commit.body();
    let release = ContentRef::named(&deed.release);
    let (from, to) = match deed.action {
        Action::Collect => (Some(release), None),
        _ => (None, Some(release)),
    };
    AuditEntrySpec {
        subject: Subject {
            kind: COMPONENT.to_owned(),
            namespace: None,
            name: deed.component.clone(),
            uid: None,
        },
        revision: number,
        operation,
        actor: Some(dealt.commit.author.clone()),
        recorded_by: dealt.commit.recorder(),
        action: deed.action,
        at: Time(dealt.at),
        reason: (!body.is_empty()).then_some(body),
        from,
        to,
        release_ref: None,
        holds: Vec::new(),
        restored_from: None,
        rendered_hash: None,
        previous: None,
        gap: None,
        checkpoint: None,
    }
}
