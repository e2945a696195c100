//! Tests of the engine with ReleasePins: plans that are applied, and audit chains.

mod apply;
mod audit;
mod confirmation;
