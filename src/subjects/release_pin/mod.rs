//! ReleasePins: which release of a component runs in an environment, and the actions that change this.

pub mod actions;
pub mod catalog;
pub mod check;
pub mod claim;
pub mod collect;
pub mod compare;
pub mod facts;
pub mod kind;
pub mod ledger;
mod lookups;
pub mod marking;
pub mod matrix;
pub mod ownership;
pub mod past;
pub mod planner;
pub mod preview;
mod refusal;
pub mod repository;
pub mod revisions;
pub mod rollout;
pub mod rows;
pub mod rules;
pub mod since;
pub mod sources;
pub mod stale;
pub mod tables;
#[cfg(test)]
mod tests;

pub use tables::{READ_BY_CHANGES, READ_BY_GC, watches};
