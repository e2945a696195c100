//! The parameters that a definition takes: the shorthand and OpenAPI v3, with defaults.
