//! A git work tree as a target: reads its files as objects, and writes changes of objects as commits.
//!
//! A commit is both the write and its record: the files have the new state, and the trailers of the message say who
//! changed what and why. [`verify`] compares the two.

pub mod check;
pub mod facts;
pub mod propose;
pub mod tree;
pub mod verify;
