//! Parsers and checks for texts and numbers inside Kubernetes objects: quantities, durations, times, names, label
//! selectors, string formats, and the limits of a schema.
//!
//! All functions are pure. None of them returns a message for users, except those in [`name`], which return the
//! messages of the API server. If callers need different rules, a parameter selects the rule.

#![warn(missing_docs)]

pub mod duration;
pub mod format;
pub mod limit;
pub mod name;
pub mod quantity;
pub mod selector;
pub mod time;
