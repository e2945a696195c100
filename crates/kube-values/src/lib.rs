//! The texts and numbers inside Kubernetes objects, with one parser each: quantities, durations, times, names,
//! label selectors, string formats, and the limits of a schema.
//!
//! The functions are pure. They return no messages for users, except for the errors of [`name`], which are those
//! of the API server. Where two callers need different rules, the difference is a parameter.

#![warn(missing_docs)]

pub mod duration;
pub mod format;
pub mod limit;
pub mod name;
pub mod quantity;
pub mod selector;
pub mod time;
