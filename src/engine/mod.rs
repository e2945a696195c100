//! What people and controllers do with releases, and the read model that they do it on.
//!
//! Nothing here knows that terminals exist: no module prints, asks or exits.

pub mod actions;
pub mod apply;
pub mod audit;
pub mod bodies;
pub mod catalog;
pub mod claim;
pub mod collect;
pub mod compare;
pub mod desk;
pub mod diff;
pub mod ledger;
pub mod live;
pub mod marking;
pub mod matrix;
pub mod moment;
pub mod ownership;
pub mod pages;
pub mod past;
pub mod plan;
pub mod presence;
pub mod preview;
pub mod recording;
mod repeat;
pub mod repository;
pub mod revisions;
pub mod rollout;
pub mod rules;
pub mod since;
pub mod stale;
pub mod whoami;
pub mod world;
