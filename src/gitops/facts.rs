//! The facts about a branch that must be true when bowline commits to it.
//!
//! A plan is computed from the files on disk. If a file is not committed, or if the branch has another version of it,
//! a new ReleasePin on the branch could name a release that does not exist there.

use std::collections::BTreeSet;

use serde_json::Value;

use super::tree::{CommittedPin, EditsError, Tree, committed_pins, objects};
use crate::git::{GitError, WorkTree};
use crate::text;

/// The facts that a commit depends on: objects that its branch must contain, and releases that no ReleasePin on the
/// branch may name.
#[derive(Clone, Debug, Default)]
pub struct CommitFacts {
    /// The objects that the branch must contain, each with the path of its file and its document.
    said: Vec<(String, Value)>,
    /// The namespaces and names of the releases that no ReleasePin on the branch may name.
    unnamed: BTreeSet<(String, String)>,
    /// The namespace of objects whose file names none.
    namespace: String,
}

/// The reason why a commit cannot be made on its branch: a fact is not true there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenFact {
    /// An object is in a file on disk, but is not committed on the current branch.
    #[error("{what} in {path} is not committed")]
    Uncommitted {
        /// The object that is not committed, as text for the user.
        what: String,
        path: String,
    },
    /// The branch is not the current one, and does not have an object, or has another version of the object.
    #[error("branch {branch} does not have {what} as it is in {path} here")]
    Elsewhere {
        /// The object that is missing or different, as text for the user.
        what: String,
        path: String,
        branch: String,
    },
    /// A ReleasePin on the branch names a release that the commit would remove.
    #[error("{pin} names {release}{}", on(.branch.as_deref()))]
    Named {
        /// The name of that ReleasePin.
        pin: String,
        release: String,
        /// The name of the branch with the ReleasePin; None for the current branch.
        branch: Option<String>,
    },
    /// A file on the branch cannot be parsed, so it may name a release that the commit would remove.
    #[error("{path} cannot be read{}, and may name a release that gc would remove", on(.branch.as_deref()))]
    Unread {
        path: String,
        /// The name of the branch with the file; None for the current branch.
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
    /// Returns the next step for the user as text.
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
    /// Returns the facts of a commit that depends on these objects in the files on disk. Each object is given by its
    /// resource (`{group}/{plural}`), namespace and name. An object without a file is left out, because the same
    /// commit creates it.
    pub fn of_objects<'o>(
        tree: &Tree,
        objects: impl IntoIterator<Item = (String, &'o str, &'o str)>,
    ) -> Result<Self, EditsError> {
        let objects: BTreeSet<(String, &str, &str)> = objects.into_iter().collect();
        let mut said = Vec::new();
        for (resource, namespace, name) in objects {
            if let Some(place) = tree.place(&resource, namespace, name) {
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

    /// Returns the facts of a commit that removes releases: no ReleasePin on the branch names one of them. Each
    /// release is given by its namespace and name.
    pub fn of_removal(tree: &Tree, releases: BTreeSet<(String, String)>) -> Self {
        Self {
            unnamed: releases,
            namespace: tree.namespace(),
            ..Self::default()
        }
    }

    /// Returns the first fact that is not true on the branch; None if all are true. If `branch` is None, checks the
    /// current branch.
    pub(super) fn broken(
        &self,
        work: &WorkTree,
        branch: Option<&str>,
    ) -> Result<Option<BrokenFact>, GitError> {
        let other = match branch {
            Some(branch) => work.commit_of(&format!("refs/heads/{branch}"))?,
            None => None,
        };
        // If the branch does not exist yet, the commit creates it at HEAD. So HEAD is checked.
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
            return Ok(Some(match branch {
                None => BrokenFact::Uncommitted { what, path },
                Some(branch) => BrokenFact::Elsewhere {
                    what,
                    path,
                    branch: branch.to_owned(),
                },
            }));
        }
        if self.unnamed.is_empty() {
            return Ok(None);
        }
        // Read the files from the commit, because git may hide that the files on disk differ from it.
        let Some(base) = work.commit_of(base)? else {
            return Ok(None);
        };
        let committed = committed_pins(work, &base)?;
        let branch = branch.map(str::to_owned);
        let mut pins = committed.pins.iter();
        if let Some((pin, release)) = pins.find_map(|pin| self.named(pin)) {
            return Ok(Some(BrokenFact::Named {
                pin,
                release,
                branch,
            }));
        }
        let unread = committed.unread.into_iter().next();
        Ok(unread.map(|path| BrokenFact::Unread { path, branch }))
    }

    /// Returns the names of the ReleasePin and the release if the ReleasePin names a release that the commit removes;
    /// otherwise None.
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

/// Parses the objects of a committed file. Returns none if the file is missing or is no YAML.
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
