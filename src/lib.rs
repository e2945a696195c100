//! bowline: release promotion on Kubernetes.
//!
//! The modules, from the highest layer to the lowest. A module uses only lower layers; the test in
//! `architecture.rs` fails on any other dependency.
//!
//! | module       | purpose |
//! |--------------|----------------|
//! | [`cli`]      | the verbs: all code that reads arguments or prints |
//! | [`tui`]      | the terminal UI |
//! | [`fixture`]  | objects, read models and stores for tests, benchmarks and the demo |
//! | [`controllers`] | reconcile loops: from a ReleasePin to running resources |
//! | [`subjects`] | a folder per kind that has revisions: rows, rules, actions |
//! | [`engine`]   | the parts that all subjects share: the read model, the diff |
//! | [`render`]   | definitions and settings to manifests; pure |
//! | [`resolve`]  | references of a release to definitions: git, embedded, compressed |
//! | [`connect`]  | a target (cluster, embedded store) to a `kube::Client`; the only module that names a backend |
//! | [`gitops`]   | a git work tree as a target: its files as objects |
//! | [`api`]      | the kinds: types, labels, names; no I/O |
//! | [`git`]      | runs the user's git |
//! | [`text`]     | cleans foreign text for terminals |
//! | [`small_file`] | reads small files of settings, with a limit |
//! | [`child`]    | runs other programs, with limits |
//!
//! The crates in `crates/` are below all modules: `kube_embedded` is a Kubernetes API in the process,
//! `bounded_yaml` reads and edits foreign YAML, `bounded_cel` evaluates foreign expressions, `kube_values` reads
//! quantities, durations, names and label selectors.

#[cfg(test)]
mod architecture;
#[cfg(test)]
mod texts;

pub use bowline_cli as cli;
pub use bowline_controllers as controllers;
pub use bowline_core::{
    api, child, connect, engine, fixture, git, gitops, render, resolve, small_file, subjects, text,
};
pub use bowline_tui as tui;
