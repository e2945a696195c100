//! The facts that the branch of a commit must contain.
//!
//! A plan uses the files on disk. If a file is not committed, or the branch of the commit has another version
//! of it, a ReleasePin on that branch could name a release that does not exist there.

use std::collections::BTreeSet;

use serde_json::Value;

use super::NotCommitted;
use super::propose::{PINS, RELEASES};
use crate::engine::plan::Plan;
use crate::engine::world::Key;
use crate::git::WorkTree;
use crate::gitops::tree::{CommittedPin, EditsError, Tree, committed_pins, objects};
use crate::subjects::release_pin::actions::gc::Candidate;
use crate::subjects::release_pin::facts::{self, PinFact};
use crate::text;

/// The objects that the branch of a commit must contain, and the releases that no ReleasePin on the branch
/// may name.
#[derive(Clone, Debug, Default)]
pub struct CommitFacts {
    /// The objects that the branch must contain: path of the file, and document.
    said: Vec<(String, Value)>,
    /// The releases that no ReleasePin may name: namespace and name.
    unnamed: BTreeSet<(String, String)>,
    /// The default namespace of the repository.
    namespace: String,
}

/// The branch of a commit does not have a fact that the commit depends on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenFact {
    /// An object is on disk, but not committed on the current branch.
    #[error("{what} in {path} is not committed")]
    Uncommitted {
        /// The object, as text for the user.
        what: String,
        path: String,
    },
    /// Another branch does not have an object, or has another version of it.
    #[error("branch {branch} does not have {what} as it is in {path} here")]
    Elsewhere {
        /// The object, as text for the user.
        what: String,
        path: String,
        branch: String,
    },
    /// A ReleasePin on the branch names a release that the commit would remove.
    #[error("{pin} names {release}{}", on(.branch.as_deref()))]
    Named {
        /// The name of the ReleasePin.
        pin: String,
        release: String,
        /// The name of the branch; None for the current branch.
        branch: Option<String>,
    },
    /// A file on the branch cannot be parsed, so it may name a release that the commit would remove.
    #[error("{path} cannot be read{}, and may name a release that gc would remove", on(.branch.as_deref()))]
    Unread {
        path: String,
        /// The name of the branch; None for the current branch.
        branch: Option<String>,
    },
}

fn on(branch: Option<&str>) -> String {
    match branch {
        Some(branch) => format!(" on branch {branch}"),
        None => " in the last commit".to_owned(),
    }
}

impl BrokenFact {
    /// Returns the next step for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Uncommitted { path, .. } => {
                let path = text::quoted(path);
                format!("commit it: git add -- {path} && git commit -- {path}")
            }
            Self::Unread { path, branch: None } => {
                format!("correct {path} and commit it; list the problems: bowline check")
            }
            Self::Unread {
                path,
                branch: Some(branch),
            } => format!(
                "correct {path} on that branch and commit it, after: git switch {}",
                text::quoted(branch)
            ),
            Self::Elsewhere { branch, .. }
            | Self::Named {
                branch: Some(branch),
                ..
            } => format!(
                "run the command on that branch, after: git switch {}",
                text::quoted(branch)
            ),
            Self::Named { branch: None, .. } => {
                "commit the change of the ReleasePin first".to_owned()
            }
        }
    }

    /// Returns whether the error is about another branch than the current one.
    pub fn is_elsewhere(&self) -> bool {
        match self {
            Self::Uncommitted { .. } | Self::Unread { .. } => false,
            Self::Elsewhere { .. } => true,
            Self::Named { branch, .. } => branch.is_some(),
        }
    }
}

impl CommitFacts {
    /// Returns the facts of a plan: the source ReleasePins of promotions, the releases that the changes name,
    /// and the ReleasePins that already have the desired state.
    pub(super) fn of_plan(tree: &Tree, plan: &Plan) -> Result<Self, EditsError> {
        let mut objects: BTreeSet<(&str, &Key)> = BTreeSet::new();
        for change in &plan.changes {
            if change.unchanged {
                objects.insert((PINS, change.key()));
                continue;
            }
            for fact in facts::of(change) {
                match fact {
                    PinFact::Source { key, .. } => objects.insert((PINS, key)),
                    PinFact::Release { key, .. } => objects.insert((RELEASES, key)),
                    _ => false,
                };
            }
        }
        let mut said = Vec::new();
        for (resource, key) in objects {
            // If the commit itself creates the release, there is no file yet.
            if let Some(place) = tree.place(resource, &key.namespace, &key.name) {
                let document = tree.document(&place)?;
                said.push((place.path, document));
            }
        }
        Ok(Self {
            said,
            namespace: tree.namespace(),
            ..Self::default()
        })
    }

    /// Returns the facts of a gc plan: no ReleasePin names a release that the commit removes.
    pub(super) fn of_collection(tree: &Tree, going: &[&Candidate]) -> Self {
        let going = going.iter().map(|found| &found.key);
        Self {
            unnamed: going
                .map(|key| (key.namespace.to_string(), key.name.to_string()))
                .collect(),
            namespace: tree.namespace(),
            ..Self::default()
        }
    }

    /// Returns an error if the branch does not contain a fact. If `branch` is None, checks the current
    /// branch.
    pub(super) fn check(&self, work: &WorkTree, branch: Option<&str>) -> Result<(), NotCommitted> {
        let other = match branch {
            Some(branch) => work.commit_of(&format!("refs/heads/{branch}"))?,
            None => None,
        };
        // If the branch does not exist yet, it will start at the current commit.
        let (base, branch) = match &other {
            Some(commit) => (commit.as_str(), branch),
            None => ("HEAD", None),
        };
        let blobs = |paths: &[&str]| {
            let names = paths.iter().map(|path| format!("{base}:{path}"));
            let limit = bounded_yaml::Limits::default().bytes;
            work.blobs(&names.collect::<Vec<String>>(), limit)
        };
        let paths: Vec<&str> = self.said.iter().map(|(path, _)| path.as_str()).collect();
        for ((path, wanted), blob) in self.said.iter().zip(blobs(&paths)?) {
            let there = documents(blob);
            if there.iter().any(|found| says_the_same(found, wanted)) {
                continue;
            }
            let (what, path) = (name(wanted), path.clone());
            return Err(match branch {
                None => BrokenFact::Uncommitted { what, path },
                Some(branch) => BrokenFact::Elsewhere {
                    what,
                    path,
                    branch: branch.to_owned(),
                },
            }
            .into());
        }
        if self.unnamed.is_empty() {
            return Ok(());
        }
        // Files on disk can differ from the commit without a notice by git, so the check reads the commit.
        let Some(base) = work.commit_of(base)? else {
            return Ok(());
        };
        let committed = committed_pins(work, &base)?;
        let branch = branch.map(str::to_owned);
        let mut pins = committed.pins.iter();
        if let Some((pin, release)) = pins.find_map(|pin| self.named(pin)) {
            return Err(BrokenFact::Named {
                pin,
                release,
                branch,
            }
            .into());
        }
        match committed.unread.into_iter().next() {
            Some(path) => Err(BrokenFact::Unread { path, branch }.into()),
            None => Ok(()),
        }
    }

    /// If a ReleasePin names a release that the commit removes, returns the names of both.
    fn named(&self, pin: &CommittedPin) -> Option<(String, String)> {
        let namespace = match pin.namespace.as_str() {
            "" => &self.namespace,
            own => own,
        };
        let is_going = |text: &&String| {
            self.unnamed
                .contains(&(namespace.to_owned(), (*text).clone()))
        };
        let release = pin.texts.iter().find(is_going)?;
        Some((format!("pin {}", pin.name), release.clone()))
    }
}

/// Parses the objects of a committed file; empty if the file is no YAML.
fn documents(blob: Option<Vec<u8>>) -> Vec<Value> {
    let read = blob.and_then(|bytes| objects(&bytes).ok());
    read.unwrap_or_default()
}

fn says_the_same(one: &Value, other: &Value) -> bool {
    let same = |at: &str| one.pointer(at) == other.pointer(at);
    ["/apiVersion", "/kind", "/metadata/name", "/spec"]
        .into_iter()
        .all(same)
}

fn name(document: &Value) -> String {
    let said = |at: &str| document.pointer(at).and_then(Value::as_str);
    let kind = match said("/kind") {
        Some("ReleasePin") => "pin",
        _ => "release",
    };
    let name = said("/metadata/name").unwrap_or_default();
    format!("{kind} {name}")
}
