//! A git work tree as a target of bowline: reads objects from its files, and writes changed objects as commits.
//!
//! A commit contains the new state and also records who changed what and why, in the trailers of its message.
//! [`verify`] checks that the trailers match the changes.

pub mod check;
pub mod facts;
pub mod propose;
pub mod tree;
pub mod verify;
