//! References from one object to another by name.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reference to an object of the same namespace.
///
/// It has no schema of its own: the schema of each field names the kind of the object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameRef {
    /// The name of the object.
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
