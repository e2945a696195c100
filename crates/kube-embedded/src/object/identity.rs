//! Checks that the kind, namespace and name in an object are the same as in the request path.

use serde_json::Value;

use super::super::catalog::Resource;
use super::super::route::Target;
use super::super::status::Failure;
use super::{bounded, map_of, meta, meta_mut};

/// Checks that the namespace and name in an object are the same as in the request path. Then sets the object's
/// apiVersion, kind, namespace and name.
pub fn identify(resource: &Resource, target: &Target, object: &mut Value) -> Result<(), Failure> {
    let fields = map_of(object);
    fields.insert("apiVersion".into(), resource.api_version().into());
    fields.insert("kind".into(), resource.subject.kind.as_str().into());
    if resource.namespaced {
        same_place(target, object)?;
        let namespace = target.namespace.as_deref().unwrap_or_default();
        meta_mut(object).insert("namespace".into(), namespace.into());
    } else {
        meta_mut(object).remove("namespace");
        same_place(target, object)?;
    }
    Ok(())
}

/// Checks that the namespace and name in an object are the same as in the request path, or are not set.
pub fn same_place(target: &Target, object: &Value) -> Result<(), Failure> {
    let namespace = meta(object, "namespace");
    if !namespace.is_empty() && namespace != target.namespace.as_deref().unwrap_or_default() {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if let Some(name) = &target.name {
        let sent = meta(object, "name").to_owned();
        if sent.is_empty() {
            return Err(Failure::bad_request(format!(
                "the name of the object ({name} based on URL) was undeterminable: name must be provided"
            )));
        }
        if sent != *name {
            return Err(Failure::bad_request(format!(
                "the name of the object ({sent}) does not match the name on the URL ({name})"
            )));
        }
    }
    Ok(())
}

/// Checks that the kind and version in an applied configuration are the same as in the request path. The namespace
/// and name must be the same too, or not set.
pub fn check_applied(resource: &Resource, target: &Target, object: &Value) -> Result<(), Failure> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version != resource.api_version() || kind != resource.subject.kind {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        return Err(Failure::bad_request(format!(
            "invalid object type: {group}/{version}, Kind={kind}"
        )));
    }
    bounded(object).map_err(Failure::bad_request)?;
    let mut named = object.clone();
    if meta(&named, "name").is_empty() {
        let name = target.name.as_deref().unwrap_or_default();
        meta_mut(&mut named).insert("name".into(), name.into());
    }
    identify(resource, target, &mut named)
}
