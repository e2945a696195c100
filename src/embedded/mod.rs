//! A Kubernetes API in this process: a `tower::Service` over one SQLite file.

pub mod admission;
pub mod apply;
pub mod object;
pub mod patch;
pub mod route;
pub mod schema;
pub mod select;
pub mod service;
pub mod sqlite;
pub mod status;
pub mod table;
pub mod watch;

pub use service::{Body, Embedded, OpenError};
