//! From a release to manifests: the worked example, real git servers on this machine, the verbs.

// Clippy allows it in `#[test]` functions only, not in what they share.
#![allow(clippy::unwrap_used)]

#[path = "../cluster/mod.rs"]
mod cluster;
mod example;
mod forms;
mod git;
mod repo;
mod verbs;
