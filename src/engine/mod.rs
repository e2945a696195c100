//! The parts that all subjects share: the read model, the diff, and how to talk to the server.
//!
//! The engine knows no kind of subject and no terminal: no module prints, asks or exits.

pub mod bodies;
pub mod diff;
pub mod live;
pub mod moment;
pub mod ownership;
pub mod pages;
pub mod presence;
pub mod repeat;
pub mod whoami;
pub mod world;
