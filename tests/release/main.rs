//! From a release to manifests, with real git servers on this machine.

// Clippy allows it in `#[test]` functions only, not in what they share.
#![allow(clippy::unwrap_used)]

mod git;
