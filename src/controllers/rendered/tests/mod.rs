//! Tests of the RenderedRelease controller on embedded stores.

mod ending;
mod guarding;
mod ownership;
mod passes;
mod planes;
mod pruning;
mod stage;
mod statuses;
mod thin;
