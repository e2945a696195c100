//! Workloads: the Deployments, StatefulSets and DaemonSets of any cluster. They need no installation.
//!
//! The revisions of a workload are its ReplicaSets or ControllerRevisions. A rollback publishes the old
//! template as a new revision, and keeps the replicas. A hold is an annotation.

mod abandoned;
pub mod actions;
pub mod kind;
pub mod matrix;
pub mod revisions;
pub mod rows;
mod template;
#[cfg(test)]
mod tests;

pub use kind::KINDS;
pub use rows::{WORKLOADS, watches};
