//! An object of the target that a verb on objects reads or writes.

use kube::api::{Api, DynamicObject};

use super::connect::Connection;
use super::kinds::Kind;

/// Identifies an object: kind, namespace and name, with the API client for it.
pub struct TargetObject {
    pub kind: Kind,
    /// The namespace; None for a cluster-scoped kind.
    pub namespace: Option<String>,
    pub name: String,
    /// The API client for objects of the kind in the namespace.
    pub objects: Api<DynamicObject>,
}

impl TargetObject {
    /// Builds the identity of an object. Leaves out the namespace if the kind is cluster-scoped.
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
