//! Identifies an object of the target that a verb reads or writes.

use kube::api::{Api, DynamicObject};

use super::connect::Connection;
use super::kinds::Kind;

/// The kind, namespace and name of an object on the target, with an API client for it.
pub struct TargetObject {
    pub kind: Kind,
    /// The namespace of the object; None if its kind is cluster-scoped.
    pub namespace: Option<String>,
    pub name: String,
    /// The API client for objects of this kind in this namespace.
    pub objects: Api<DynamicObject>,
}

impl TargetObject {
    /// Identifies an object on the target. Ignores `namespace` if the kind is cluster-scoped.
    pub fn new(connection: &Connection, kind: Kind, namespace: &str, name: &str) -> TargetObject {
        TargetObject {
            namespace: kind.namespaced.then(|| namespace.to_owned()),
            name: name.to_owned(),
            objects: kind.objects(&connection.client, Some(namespace)),
            kind,
        }
    }

    /// Returns the object as `kind/name`, for messages.
    pub fn label(&self) -> String {
        format!("{}/{}", self.kind.label(), self.name)
    }

    pub(super) fn key(&self) -> String {
        format!("{} {:?}", self.label(), self.namespace)
    }
}
