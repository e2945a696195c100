//! References from one object to another by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reference to an object of the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NameRef {
    /// The name of the referenced object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

impl NameRef {
    /// Makes a reference to `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// The component that an object belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentOwner {
    /// The name of the component.
    #[schemars(length(min = 1, max = 63))]
    pub component_name: String,
}
