//! The subjects: everything that has revisions, a folder per kind.
//!
//! A folder has the rows of its kind in the read model, its rules, its actions and its revisions. The engine
//! below has the parts that all subjects share.

pub mod matrix;
pub mod release_pin;
pub mod service;
pub mod workload;

use kube::Client;

use crate::engine::subject::Kind;

use crate::engine::world::World;
use crate::engine::world::feed::{Feed, Watch};

/// Returns all kinds of subjects.
pub fn kinds() -> impl Iterator<Item = &'static Kind> {
    let release_pin: &'static Kind = &release_pin::kind::KIND;
    std::iter::once(release_pin).chain(workload::KINDS)
}

/// Returns the words for a subject on the command line, such as `deploy/NAME`: one for each kind
/// whose subjects a user names with the kind.
pub fn words_of_kinds(name: &str) -> Vec<String> {
    let named = kinds().filter(|kind| kind.actions.is_some());
    named.map(|kind| kind.words(name)).collect()
}

/// Starts to watch the kinds of every subject in a namespace, or in all namespaces.
pub fn watch(client: &Client, namespace: Option<&str>) -> Feed {
    Feed::start(client, namespace, watches())
}

/// Starts to watch the kinds of every subject, and the workloads that exist without bowline: the rows of the
/// matrix.
pub fn watch_matrix(client: &Client, namespace: Option<&str>) -> Feed {
    Feed::start(client, namespace, matrix_watches())
}

/// Returns an empty read model of the kinds of every subject; for callers that fill it themselves.
pub fn read_model() -> World {
    World::watching(watches().iter().map(Watch::kind).collect())
}

fn watches() -> Vec<Watch> {
    let subjects = release_pin::watches().into_iter();
    subjects.chain(Watch::shared()).collect()
}

fn matrix_watches() -> Vec<Watch> {
    watches().into_iter().chain(workload::watches()).collect()
}
