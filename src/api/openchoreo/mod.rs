//! The API group openchoreo.dev: components, their definitions, releases and environments.

pub mod component;
pub mod definitions;
pub mod environment;
pub mod pin;
pub mod reference;
pub mod release;
pub mod settings;
pub mod snapshot;
