//! A git work tree as a target: reads the objects in its files, and writes objects to its files.

pub mod tree;
