//! The subjects: everything that has revisions. Each kind has a folder with its rows in the read model, its
//! rules, its actions and its revisions.
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

/// Returns the ways to write a subject with its kind, such as `deploy/NAME`. Leaves out the ReleasePin, which
/// users name by component and environment.
pub fn words_of_kinds(name: &str) -> Vec<String> {
    let named = kinds().filter(|kind| kind.actions.is_some());
    named.map(|kind| kind.words(name)).collect()
}

/// Starts the watches that fill the read model of ReleasePins, for one namespace or for all.
pub fn watch(client: &Client, namespace: Option<&str>) -> Feed {
    Feed::start(client, namespace, watches())
}

/// Starts the watches that fill the whole matrix: those of [`watch`], and those of workloads that exist
/// without bowline.
pub fn watch_matrix(client: &Client, namespace: Option<&str>) -> Feed {
    Feed::start(client, namespace, matrix_watches())
}

/// Returns an empty read model that the caller fills itself, without watches.
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
