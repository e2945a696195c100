//! Tests of the engine with ReleasePins: applying plans, and audit chains.

mod apply;
mod audit;
mod confirmation;
