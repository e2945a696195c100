//! The parts that all subjects share: the read model, the diff, and how to talk to the server.
//!
//! The engine knows no kind of subject and no terminal: no module prints, asks or exits.

pub mod audit;
pub mod bodies;
pub mod claim;
pub mod compare;
pub mod confirmation;
pub mod controller_status;
pub mod diff;
pub mod health;
pub mod live;
pub mod ownership;
pub mod pages;
pub mod plan;
pub mod production;
pub mod publish;
pub mod repeat;
pub mod revisions;
pub mod subject;
pub mod time_input;
pub mod whoami;
pub mod world;
