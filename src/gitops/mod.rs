//! A git work tree as a target: reads its files as objects, and writes objects to its files.

pub mod tree;
