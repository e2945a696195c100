//! The API group core.choreo.dev: the rendered resources of a component in an environment.

pub mod rendered;
