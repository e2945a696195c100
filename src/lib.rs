//! bowline: release promotion on Kubernetes.
//!
//! The map of modules, lowest last. An arrow of dependency points down only, and
//! the test in `architecture.rs` fails on one that points up.
//!
//! | module       | what it is for |
//! |--------------|----------------|
//! | [`cli`]      | the verbs: everything that reads arguments or prints |
//! | [`tui`]      | the terminal UI |
//! | [`controllers`] | reconcile loops: from a pin to running resources |
//! | [`engine`]   | actions on releases, and what they read |
//! | [`render`]   | definitions and settings to manifests; pure |
//! | [`resolve`]  | references of a release to definitions: git, embedded, compressed |
//! | [`connect`]  | a target (cluster, embedded store) to a `kube::Client`; the only file that names a backend |
//! | [`embedded`] | the in-process Kubernetes API over one SQLite file |
//! | [`api`]      | the kinds: types, labels, names; no I/O |
//! | [`yaml`], [`text`], [`cel`], [`git`] | the doors: foreign YAML, text for terminals, bounded expressions, the user's git |

pub mod api;
#[cfg(test)]
mod architecture;
pub mod cel;
pub mod cli;
pub mod connect;
pub mod controllers;
pub mod embedded;
pub mod engine;
pub mod git;
pub mod render;
pub mod resolve;
pub mod text;
#[cfg(test)]
mod texts;
pub mod tui;
pub mod yaml;

/// Here and not in `main.rs`, so that tests and benchmarks run with what users run.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;
