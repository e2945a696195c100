//! What commits of ours did to releases: marks and collections, as git's log knows them.
//!
//! A pin is followed through every commit; a release never changes but for its mark, and so only commits
//! that say of themselves that they marked or collected are looked into.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::branch::Told;
use super::manifest;
use super::moves::Blobs;
use super::trailers::{self, Trailers};
use crate::api::audit::{Action, AuditEntrySpec, ReleaseIdentity, Subject, SubjectKind};
use crate::api::labels;
use crate::api::release::Verdict;
use crate::git::GitError;
use crate::git::log::Commit;

/// A commit that says that it marked or collected releases.
#[derive(Clone, Debug, PartialEq)]
pub struct Dealt {
    /// The commit that says who and why.
    pub commit: Arc<Commit>,
    /// When it came to the branch.
    pub at: Timestamp,
    /// What it did.
    pub deeds: Vec<Deed>,
}

/// What was done to one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The namespace, as the file says it.
    pub namespace: String,
    /// The component.
    pub component: String,
    /// The release.
    pub release: String,
    /// What was done.
    pub action: Action,
}

/// Lists the marks and collections that commits made.
pub(super) fn dealt(blobs: Blobs<'_>, commits: &[Told]) -> Result<Vec<Dealt>, GitError> {
    let mut found: Vec<Dealt> = Vec::new();
    let mut known: HashMap<String, Option<usize>> = HashMap::new();
    let mut note = |commit: &Arc<Commit>, at: Timestamp| -> Option<usize> {
        if let Some(number) = known.get(&commit.id) {
            return *number;
        }
        let number = says(commit).then(|| {
            found.push(Dealt {
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
        // One that did nothing is one that does not do what it says.
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
    let texts = blobs(&wanted)?;
    let read = |at: Option<usize>| {
        let text = at.and_then(|at| texts.get(at)?.as_deref());
        text.map(releases).unwrap_or_default()
    };
    for (number, before, after) in files {
        if let Some(dealt) = found.get_mut(number) {
            dealt.deeds.extend(deeds(&read(before), &read(after)));
        }
    }
    Ok(found)
}

/// Tells whether a commit says that it did something to releases.
fn says(commit: &Commit) -> bool {
    let mut said = commit.trailers().into_iter();
    said.any(|(word, value)| word == Trailers::ACTION && trailers::deed(value).is_some())
}

/// The releases of a file, by namespace and name: their component, and how they are marked.
type Releases = BTreeMap<(String, String), (String, Option<Verdict>)>;

fn releases(bytes: &[u8]) -> Releases {
    // What could not be read then is no state that anybody had.
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

/// Compares two states of a file: what was marked, and what went.
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

/// Writes the entry of a deed, the n-th of its component's.
pub(super) fn spec(dealt: &Dealt, deed: &Deed, number: i64) -> AuditEntrySpec {
    let operation = Trailers::read(&dealt.commit);
    let mut operation = operation
        .into_iter()
        .filter(|said| said.deed() == Some(deed.action));
    let operation = operation.find_map(|said| said.operation);
    let body = dealt.commit.body();
    let release = ReleaseIdentity::named(&deed.release);
    let (from, to) = match deed.action {
        Action::Collect => (Some(release), None),
        _ => (None, Some(release)),
    };
    AuditEntrySpec {
        subject: Subject {
            kind: SubjectKind::Component,
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
