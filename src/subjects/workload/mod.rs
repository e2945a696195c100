//! Workloads: the Deployments, StatefulSets and DaemonSets of any cluster. bowline need not be installed on the
//! cluster.
//!
//! The revisions of a workload are its ReplicaSets or ControllerRevisions. A rollback publishes an old pod template
//! as a new revision, and does not change the number of replicas. A hold is stored in an annotation of the workload.

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
