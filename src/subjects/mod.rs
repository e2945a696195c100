//! The subjects: all objects that have revisions. Each kind has a folder with its rows in the read model, its rules,
//! its actions and its revisions.
//!
//! The module `engine` has the code that all kinds share.

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

/// Returns the subject `name` as users write it with each kind, such as `deploy/NAME`. The list leaves out
/// ReleasePins, because users name them by component and environment.
pub fn words_of_kinds(name: &str) -> Vec<String> {
    let named = kinds().filter(|kind| kind.actions.is_some());
    named.map(|kind| kind.words(name)).collect()
}

/// Starts the watches that fill the read model of ReleasePins in one namespace; in all namespaces if `namespace` is
/// None.
pub fn watch(client: &Client, namespace: Option<&str>) -> Feed {
    Feed::start(client, namespace, watches())
}

/// Starts the watches that fill the whole matrix: those of [`watch`], and those of workloads.
pub fn watch_matrix(client: &Client, namespace: Option<&str>) -> Feed {
    Feed::start(client, namespace, matrix_watches())
}

/// Returns an empty read model without watches, for callers that fill it themselves.
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
