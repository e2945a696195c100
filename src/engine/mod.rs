//! The code that all kinds of subjects share: the read model, plans, their application, the audit, the diff and
//! requests to the server.
//!
//! The engine contains no code for a single kind of subject. It does not print, ask the user or exit.

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
pub mod rights;
pub mod subject;
pub mod time_input;
pub mod whoami;
pub mod world;
