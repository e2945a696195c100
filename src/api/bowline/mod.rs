//! The API group bowline.dev: the audit trail.

pub mod audit;
