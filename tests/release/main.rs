//! From a release to manifests: the worked example, real git servers on this machine, the verbs.

// Clippy allows it only in `#[test]` functions, not in shared code.
#![allow(clippy::unwrap_used)]

#[path = "../cluster/mod.rs"]
mod cluster;
mod example;
mod forms;
mod git;
mod repo;
mod verbs;
