//! Whether an object is what its path says it is.

use serde_json::Value;

use super::super::catalog::Resource;
use super::super::route::Target;
use super::super::status::Failure;
use super::{meta, meta_mut};

/// Checks that an object is what its path says, and fills in what the path knows.
pub fn identify(resource: &Resource, target: &Target, object: &mut Value) -> Result<(), Failure> {
    if !object.is_object() {
        // A patch may make anything of an object.
        return Err(Failure::bad_request(
            "json: cannot unmarshal the object into a struct with apiVersion and kind",
        ));
    }
    let expected = resource.api_version();
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    let version = object["apiVersion"].as_str().unwrap_or_default().to_owned();
    if kind.is_empty() && resource.custom.is_some() {
        return Err(Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): Object 'Kind' is missing in '{object}' ({object})",
            resource.subject.kind
        )));
    }
    if (!version.is_empty() && version != expected)
        || (!kind.is_empty() && kind != resource.subject.kind)
    {
        return Err(mismatch(resource, &version, &kind));
    }
    object["apiVersion"] = expected.into();
    object["kind"] = resource.subject.kind.as_str().into();
    let namespace = meta(object, "namespace").to_owned();
    let in_path = target.namespace.as_deref().unwrap_or_default();
    if resource.namespaced {
        if !namespace.is_empty() && namespace != in_path {
            return Err(Failure::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        meta_mut(object).insert("namespace".into(), in_path.into());
    } else {
        meta_mut(object).remove("namespace");
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

/// Checks what an applied configuration says about itself; what it leaves out the path knows.
pub fn check_applied(resource: &Resource, target: &Target, object: &Value) -> Result<(), Failure> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version.is_empty() || kind != resource.subject.kind {
        let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
        return Err(Failure::bad_request(format!(
            "invalid object type: {group}/{version}, Kind={kind}"
        )));
    }
    let mut named = object.clone();
    if meta(&named, "name").is_empty() {
        let name = target.name.as_deref().unwrap_or_default();
        meta_mut(&mut named).insert("name".into(), name.into());
    }
    identify(resource, target, &mut named)
}

fn mismatch(resource: &Resource, version: &str, kind: &str) -> Failure {
    let expected = &resource.subject;
    if kind == expected.kind || kind.is_empty() {
        return Failure::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({})",
            resource.api_version()
        ));
    }
    Failure::bad_request(format!(
        "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is registered for version {version:?}",
        version.rsplit('/').next().unwrap_or(version),
        expected.kind,
    ))
}
