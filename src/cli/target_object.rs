//! An object of the target that a verb on objects reads or writes.

use kube::api::{Api, DynamicObject};

use super::connect::Connection;
use super::kinds::Kind;

/// The identity of an object: kind, namespace and name, with the API that reads and writes it.
pub struct TargetObject {
    /// The kind.
    pub kind: Kind,
    /// The namespace; None for a cluster-scoped kind.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The API client of the kind in the namespace.
    pub objects: Api<DynamicObject>,
}

impl TargetObject {
    /// Builds the identity of an object in a namespace.
    pub fn new(connection: &Connection, kind: Kind, namespace: &str, name: &str) -> TargetObject {
        TargetObject {
            namespace: kind.namespaced.then(|| namespace.to_owned()),
            name: name.to_owned(),
            objects: kind.objects(&connection.client, Some(namespace)),
            kind,
        }
    }

    /// Returns `kind/name` for messages.
    pub fn label(&self) -> String {
        format!("{}/{}", self.kind.label(), self.name)
    }

    pub(super) fn key(&self) -> String {
        format!("{} {:?}", self.label(), self.namespace)
    }
}
