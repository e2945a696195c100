//! What a commit rests on, and its branch has to have.
//!
//! A plan is made of the files as they are on disk. What of them is not committed, or is not so on the branch
//! that the commit goes to, would leave pins there that name nothing.

use std::collections::BTreeSet;

use serde_json::Value;

use super::NotCommitted;
use super::propose::{PINS, RELEASES};
use crate::api::pin::ReleasePinSpec;
use crate::embedded::tree::{EditsError, Tree, is_manifest, objects};
use crate::engine::actions::gc::Candidate;
use crate::engine::plan::{Fact, Plan};
use crate::engine::world::Key;
use crate::git::WorkTree;
use crate::text;

/// What the branch of a commit has to have.
#[derive(Clone, Debug, Default)]
pub struct Grounds {
    /// Objects as the files here say them, by path.
    said: Vec<(String, Value)>,
    /// Releases that no pin may name, by namespace and name.
    unnamed: BTreeSet<(String, String)>,
    /// The namespace of what names none.
    namespace: String,
}

/// A branch does not have what a commit rests on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfounded {
    /// The branch that is checked out.
    #[error("{what} in {path} is not committed")]
    Uncommitted {
        /// What is not there.
        what: String,
        /// Where it is here.
        path: String,
    },
    /// Another branch.
    #[error("branch {branch} does not have {what} as it is in {path} here")]
    Elsewhere {
        /// What is not there.
        what: String,
        /// Where it is here.
        path: String,
        /// The branch.
        branch: String,
    },
    /// A pin names what would go.
    #[error("{pin} names {release}{}", on(.branch.as_deref()))]
    Named {
        /// The pin.
        pin: String,
        /// The release.
        release: String,
        /// The branch, where it is not the one that is checked out.
        branch: Option<String>,
    },
}

fn on(branch: Option<&str>) -> String {
    match branch {
        Some(branch) => format!(" on branch {branch}"),
        None => " in the last commit".to_owned(),
    }
}

impl Unfounded {
    /// Says what the person can do.
    pub fn hint(&self) -> String {
        match self {
            Self::Uncommitted { path, .. } => format!("commit {path} first"),
            Self::Elsewhere { branch, .. }
            | Self::Named {
                branch: Some(branch),
                ..
            } => format!(
                "git switch {}, then run the command there",
                text::quoted(branch)
            ),
            Self::Named { branch: None, .. } => {
                "commit the change of the ReleasePin first".to_owned()
            }
        }
    }

    /// Tells whether it would hold on another branch.
    pub fn is_elsewhere(&self) -> bool {
        match self {
            Self::Uncommitted { .. } => false,
            Self::Elsewhere { .. } => true,
            Self::Named { branch, .. } => branch.is_some(),
        }
    }
}

impl Grounds {
    /// What a plan rests on: pins that are promoted from, releases that are named, pins that are as wanted.
    pub(super) fn of_plan(tree: &Tree, plan: &Plan) -> Result<Self, EditsError> {
        let mut objects: BTreeSet<(&str, &Key)> = BTreeSet::new();
        for item in &plan.items {
            if item.unchanged {
                objects.insert((PINS, &item.pin));
                continue;
            }
            for fact in &item.facts {
                match fact {
                    Fact::Source { key, .. } => objects.insert((PINS, key)),
                    Fact::Release { key, .. } => objects.insert((RELEASES, key)),
                    _ => false,
                };
            }
        }
        let mut said = Vec::new();
        for (resource, key) in objects {
            // A release that the same commit makes lies nowhere yet.
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

    /// What a collection rests on: nobody names what goes.
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

    /// Refuses where the branch, or the one that is checked out, does not have what it has to.
    pub(super) fn check(&self, work: &WorkTree, branch: Option<&str>) -> Result<(), NotCommitted> {
        let other = match branch {
            Some(branch) => work.commit_of(&format!("refs/heads/{branch}"))?,
            None => None,
        };
        // A branch that is not there yet begins where we are.
        let (base, branch) = match &other {
            Some(commit) => (commit.as_str(), branch),
            None => ("HEAD", None),
        };
        let blobs = |paths: &[&str]| {
            let names = paths.iter().map(|path| format!("{base}:{path}"));
            work.blobs(&names.collect::<Vec<String>>())
        };
        let paths: Vec<&str> = self.said.iter().map(|(path, _)| path.as_str()).collect();
        for ((path, wanted), blob) in self.said.iter().zip(blobs(&paths)?) {
            let there = documents(blob);
            if there.iter().any(|found| says_the_same(found, wanted)) {
                continue;
            }
            let (what, path) = (name(wanted), path.clone());
            return Err(match branch {
                None => Unfounded::Uncommitted { what, path },
                Some(branch) => Unfounded::Elsewhere {
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
        let mut changed = work.state()?.dirty;
        if branch.is_some() {
            changed.extend(work.changed_between("HEAD", base)?);
        }
        let paths = changed.iter().map(String::as_str);
        let paths: Vec<&str> = paths.filter(|path| is_manifest(path)).collect();
        for blob in blobs(&paths)? {
            let mut pins = documents(blob).into_iter();
            if let Some((pin, release)) = pins.find_map(|found| self.named(&found)) {
                let branch = branch.map(str::to_owned);
                return Err(Unfounded::Named {
                    pin,
                    release,
                    branch,
                }
                .into());
            }
        }
        Ok(())
    }

    /// Finds a release that has to be unnamed and that a document, where it is a pin, names.
    fn named(&self, document: &Value) -> Option<(String, String)> {
        if document["kind"] != "ReleasePin" {
            return None;
        }
        let spec: ReleasePinSpec = serde_json::from_value(document["spec"].clone()).ok()?;
        let namespace = document["metadata"]["namespace"].as_str();
        let namespace = namespace.unwrap_or(&self.namespace).to_owned();
        let mut named = spec.named_releases().map(str::to_owned);
        let release =
            named.find(|release| self.unnamed.contains(&(namespace.clone(), release.clone())))?;
        Some((name(document), release))
    }
}

/// Reads the objects that a commit has at a path; none where that is no YAML.
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
