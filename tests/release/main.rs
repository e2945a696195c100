//! Tests the way from a release to manifests. They use the example of deploy/examples, real git servers on
//! loopback, the verbs of the program, and a git repository as target.

// Clippy allows unwrap only in `#[test]` functions, not in their helpers.
#![allow(clippy::unwrap_used)]

#[path = "../cluster/mod.rs"]
mod cluster;
mod example;
mod forms;
mod git;
mod repo;
mod verbs;
