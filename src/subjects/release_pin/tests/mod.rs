//! Tests of the engine with ReleasePins: applied plans, audit chains and confirmations.

mod apply;
mod audit;
mod confirmation;
