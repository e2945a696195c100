//! Converts between the stored bytes of an object and JSON.
//!
//! A row of the store has one column for the metadata and one for the rest of the object. The columns leave out
//! apiVersion, kind and resourceVersion, because these follow from the key and the revision of the row. So an object
//! can be answered without parsing its bytes, and metadata can be read without the rest.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::catalog::Resource;
use super::convert::{self, Shape};
use super::sqlite::{Revision, Row};
use super::status::Failure;

/// Returns an object as JSON bytes, from a row of the store.
pub fn bytes(resource: &Resource, row: &Row) -> Vec<u8> {
    if convert::needs_parsing(resource, row.revision)
        && let Ok(object) = value(resource, row)
    {
        return to_bytes(&object);
    }
    let mut out = Vec::with_capacity(row.meta.len() + row.rest.len() + 128);
    out.extend_from_slice(b"{\"apiVersion\":\"");
    out.extend_from_slice(resource.api_version().as_bytes());
    out.extend_from_slice(b"\",\"kind\":\"");
    out.extend_from_slice(resource.subject.kind.as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    metadata(row, &mut out);
    append_rest(row, &mut out);
    out
}

/// Returns an object as the JSON bytes of a list item. An item of a built-in kind has no apiVersion and kind, as in
/// kube-apiserver.
pub fn item_bytes(resource: &Resource, row: &Row) -> Vec<u8> {
    if resource.custom.is_some() || convert::needs_parsing(resource, row.revision) {
        return bytes(resource, row);
    }
    let mut out = Vec::with_capacity(row.meta.len() + row.rest.len() + 64);
    out.extend_from_slice(b"{\"metadata\":");
    metadata(row, &mut out);
    append_rest(row, &mut out);
    out
}

fn append_rest(row: &Row, out: &mut Vec<u8>) {
    if row.rest.len() > 2 {
        out.push(b',');
        out.extend_from_slice(row.rest.get(1..).unwrap_or_default());
    } else {
        out.push(b'}');
    }
}

/// Returns the metadata of an object as the JSON bytes of a PartialObjectMetadata.
pub fn partial_bytes(row: &Row) -> Vec<u8> {
    let mut out = Vec::with_capacity(row.meta.len() + 128);
    out.extend_from_slice(
        b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":",
    );
    metadata(row, &mut out);
    out.push(b'}');
    out
}

fn metadata(row: &Row, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"resourceVersion\":\"{}\",", row.revision).as_bytes());
    out.extend_from_slice(row.meta.get(1..).unwrap_or_default());
}

/// Parses the object in a row of the store. Fails if the bytes in the row are damaged.
pub fn value(resource: &Resource, row: &Row) -> Result<Value, Failure> {
    let broken =
        |cause| Failure::internal(format!("{:?} is damaged in the store: {cause}", row.key));
    let mut object: Map<String, Value> = match row.rest.is_empty() {
        true => Map::new(),
        false => serde_json::from_slice(&row.rest).map_err(broken)?,
    };
    let mut meta: Map<String, Value> = serde_json::from_slice(&row.meta).map_err(broken)?;
    meta.insert("resourceVersion".into(), row.revision.to_string().into());
    object.insert("apiVersion".into(), resource.api_version().into());
    object.insert("kind".into(), resource.subject.kind.as_str().into());
    object.insert("metadata".into(), meta.into());
    let mut object = object.into();
    convert::refresh(resource, row.revision, &mut object);
    Ok(object)
}

/// Returns the bytes of an object's metadata, and the bytes of the rest of the object, for the two columns of the
/// store.
pub fn split(resource: &Resource, object: &Value) -> (Vec<u8>, Vec<u8>) {
    if resource.shape != Shape::Stored {
        let mut stored = object.clone();
        resource.shape.store(&mut stored);
        return apart(&stored);
    }
    apart(object)
}

fn apart(object: &Value) -> (Vec<u8>, Vec<u8>) {
    let without = |fields: Option<&Map<String, Value>>, names: &[&str]| {
        let fields = fields.into_iter().flatten();
        let fields = fields.filter(|(name, _)| !names.contains(&name.as_str()));
        to_bytes(&fields.collect::<BTreeMap<&String, &Value>>())
    };
    (
        without(object["metadata"].as_object(), &["resourceVersion"]),
        without(object.as_object(), &["apiVersion", "kind", "metadata"]),
    )
}

/// Sets the resourceVersion of an object to the revision of a write.
pub fn stamp(object: &mut Value, revision: Revision) {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.insert("resourceVersion".into(), revision.to_string().into());
    }
}

/// Serialises a value as JSON.
pub fn to_bytes(value: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("BUG: JSON values always serialise")
}
