//! What people and controllers do with releases, and the read model that they do it on.
//!
//! Nothing here knows that terminals exist: no module prints, asks or exits.

pub mod actions;
pub mod apply;
pub mod audit;
pub mod catalog;
pub mod claim;
pub mod diff;
pub mod ownership;
pub mod plan;
pub mod preview;
pub mod recording;
pub mod rules;
pub mod world;
