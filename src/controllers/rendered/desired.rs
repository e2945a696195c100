//! Makes the desired objects of a data plane from the resources of a RenderedRelease. Adds labels that name
//! the RenderedRelease as the owner. Pure functions.

use kube::core::GroupVersionKind;
use serde_json::{Map, Value};

use super::kinds::Kind;
use super::live::{Live, Owner, short};
use crate::api::choreo::rendered::{RenderedResource, ResourceStatus};
use crate::api::{Object, digest, labels, names};
use crate::engine::diff::Identity;

/// The metadata fields that only the API server sets, so the controller removes them from a manifest.
const NOT_OURS_TO_SAY: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// The identity of a resource, as its manifest states it.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<'a> {
    /// The id of the resource in the spec of the RenderedRelease.
    pub id: &'a str,
    pub kind: GroupVersionKind,
    /// The namespace in the manifest; None if the manifest has no namespace.
    pub namespace: Option<&'a str>,
    pub name: &'a str,
    object: &'a Object,
}

/// A desired object, ready to be applied to the data plane.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// The id of the resource in the spec of the RenderedRelease.
    pub id: String,
    /// The kind of the object, as the data plane serves it.
    pub kind: Kind,
    pub identity: Identity,
    /// The manifest to apply, with the labels that name its RenderedRelease.
    pub object: Value,
    hash: String,
}

/// Reads the identity from the manifest of a resource. The error says why the manifest is invalid.
pub fn named(resource: &RenderedResource) -> Result<Named<'_>, String> {
    let object = &resource.object;
    let said = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or("");
    let metadata = object.get("metadata");
    let of = |field: &str| {
        let found = metadata.and_then(|metadata| metadata.get(field));
        found.and_then(Value::as_str).unwrap_or("")
    };
    let (version, kind, name) = (said("apiVersion"), said("kind"), of("name"));
    for (field, value) in [("apiVersion", version), ("kind", kind)] {
        if value.is_empty() {
            return Err(format!("it has no {field}"));
        }
    }
    // The name and the namespace become parts of request paths, so characters such as `/` are refused.
    for (field, value) in [("name", name), ("namespace", of("namespace"))] {
        let fits = |c: char| c.is_ascii_alphanumeric() || "-._:".contains(c);
        if !value.chars().all(fits) || matches!(value, "." | "..") {
            return Err(format!("its metadata.{field} {value:?} is not a name"));
        }
    }
    if name.is_empty() {
        return Err("it has no metadata.name".to_owned());
    }
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    Ok(Named {
        id: &resource.id,
        kind: GroupVersionKind::gvk(group, version, kind),
        namespace: Some(of("namespace")).filter(|namespace| !namespace.is_empty()),
        name,
        object,
    })
}

/// Makes the desired object of a resource. `namespace` is for a namespaced kind whose manifest has no
/// namespace.
pub fn desired(named: &Named<'_>, kind: &Kind, namespace: &str, owner: &Owner) -> Desired {
    let namespace = match kind.namespaced {
        true => named.namespace.unwrap_or(namespace),
        false => "",
    };
    let mut object = named.object.clone();
    // Only the controllers of the data plane write the status.
    object.remove("status");
    let metadata = object.entry("metadata").or_insert_with(empty);
    if let Value::Object(metadata) = metadata {
        metadata.retain(|field, _| !NOT_OURS_TO_SAY.contains(&field.as_str()));
        metadata.remove("namespace");
        if !namespace.is_empty() {
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }
    // The hash is computed without the owner labels, so equal content has an equal hash for every owner.
    let hash = digest::of(&(named.id, &object));
    put(&mut object, "labels", tracking(named.id, owner));
    let applied = (labels::APPLIED_HASH.to_owned(), short(&hash).into());
    put(&mut object, "annotations", [applied]);
    Desired {
        id: named.id.to_owned(),
        kind: kind.clone(),
        identity: Identity {
            group: named.kind.group.clone(),
            kind: named.kind.kind.clone(),
            namespace: namespace.to_owned(),
            name: named.name.to_owned(),
        },
        hash,
        object: Value::Object(object),
    }
}

fn empty() -> Value {
    Value::Object(Map::new())
}

/// Adds entries to `map`, which is the labels or the annotations of an object.
fn put(object: &mut Object, map: &str, entries: impl IntoIterator<Item = (String, Value)>) {
    let Some(Value::Object(metadata)) = object.get_mut("metadata") else {
        return;
    };
    let own = metadata.entry(map).or_insert_with(empty);
    if !own.is_object() {
        *own = empty();
    }
    if let Value::Object(own) = own {
        own.extend(entries);
    }
}

fn tracking(id: &str, owner: &Owner) -> [(String, Value); 5] {
    [
        (labels::MANAGED_BY, labels::RELEASE_CONTROLLER.to_owned()),
        (labels::RELEASE_RESOURCE_ID, names::label_value(id)),
        (labels::RELEASE_UID, owner.uid.clone()),
        (labels::RELEASE_NAME, names::label_value(&owner.name)),
        (labels::RELEASE_NAMESPACE, owner.namespace.clone()),
    ]
    .map(|(label, value)| (label.to_owned(), value.into()))
}

impl Desired {
    /// Returns a hash over the desired object, the uid of the live object, and the fields that the controller
    /// owns in it; None if the controller owns no field. The status stores this hash.
    pub fn applied(&self, live: &Live) -> Option<String> {
        let fields = live.applied_fields.as_ref()?;
        Some(short(&digest::of(&(&self.hash, &live.uid, fields))))
    }

    /// Returns whether the fields that the controller applied are unchanged since the last apply. `known` is
    /// the inventory entry of the resource.
    pub fn is_applied(&self, live: &Live, known: Option<&ResourceStatus>) -> bool {
        let before = known.and_then(|known| known.applied.as_ref());
        before.is_some() && self.applied(live).as_ref() == before
    }
}

/// Returns the identity of the object that an inventory entry describes.
pub fn identity(entry: &ResourceStatus) -> Identity {
    Identity {
        group: entry.group.clone(),
        kind: entry.kind.clone(),
        namespace: entry.namespace.clone().unwrap_or_default(),
        name: entry.name.clone(),
    }
}
