//! References of a release to definitions: git, embedded and compressed content.
//!
//! A reference is resolved by commit id alone, so the answer never changes and is worth keeping. What
//! comes out is the same whichever way a definition came in.

pub mod git;
