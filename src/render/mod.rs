//! Definitions and settings to manifests. Pure: the same inputs give the same bytes.

pub mod merge;
pub mod patch;
pub mod schema;
