//! The verbs, one file each. Planners are pure.

pub mod release;
