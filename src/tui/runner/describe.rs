//! Reads one object and formats it as YAML. Leaves out fields that the server maintains, masks Secrets, and unpacks
//! compressed content.

use kube::Api;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use serde_json::Value;

use super::Session;
use crate::api::bowline::audit::AuditEntry;
use crate::api::openchoreo::release::Content;
use crate::api::{ComponentEnvSnapshot, Release, ReleasePin, labels};
use crate::connect::explain;
use crate::effect::Object;
use crate::engine::diff;
use crate::resolve::content;

/// The annotation in which `kubectl apply` stores the last applied configuration.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Reads an object, and returns it as YAML. The error is a message for the user.
pub(super) async fn describe(session: &Session, object: &Object) -> Result<String, String> {
    let (resource, name) = match object {
        Object::Release(name) => (ApiResource::erase::<Release>(&()), name),
        Object::Pin(name) => (ApiResource::erase::<ReleasePin>(&()), name),
        Object::Snapshot(name) => (ApiResource::erase::<ComponentEnvSnapshot>(&()), name),
        Object::Entry(name) => (ApiResource::erase::<AuditEntry>(&()), name),
    };
    let connection = &session.connection;
    let api: Api<DynamicObject> =
        Api::namespaced_with(connection.client.clone(), &connection.namespace, &resource);
    let found = api.get(name).await.map_err(|error| explain(&error))?;
    let value = serde_json::to_value(found).map_err(|error| error.to_string())?;
    Ok(text(value))
}

/// Formats an object as YAML that is easy to read.
fn text(mut object: Value) -> String {
    unpack(&mut object);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut)
        {
            annotations.remove(LAST_APPLIED);
            annotations.remove(labels::COMPRESSION);
        }
    }
    bounded_yaml::write(&diff::masked(&object))
}

/// Replaces compressed content by the original content. Leaves the value unchanged if it cannot be unpacked.
fn unpack(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let packed = map.len() == 1 && map.get("compressed").is_some_and(Value::is_string);
            match packed.then(|| content::unpack(&Content(map.clone()))) {
                Some(Ok(plain)) => *value = Value::Object(plain),
                _ => map.values_mut().for_each(unpack),
            }
        }
        Value::Array(items) => items.iter_mut().for_each(unpack),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_shown_plain_and_keeps_its_secrets() {
        let secret = json!({"kind": "Secret", "data": {"password": "aHVudGVyMg=="}});
        let mut large = secret.as_object().cloned().unwrap();
        large.insert("filler".to_owned(), json!("x".repeat(30_000)));
        let packed = content::pack(&large);
        assert!(packed.compressed().is_some());
        let shown = text(json!({
            "metadata": {
                "name": "cart-v1",
                "managedFields": [{"manager": "kubectl"}],
                "annotations": {LAST_APPLIED: "{}", labels::COMPRESSION: "gzip", "kept": "yes"},
            },
            "spec": {
                "component": {"content": packed},
                "other": {"compressed": "no base64"},
                "secret": secret,
            },
        }));
        for (words, expected) in [
            ("name: cart-v1", true),
            ("kept:", true),
            ("managedFields", false),
            ("last-applied", false),
            ("openchoreo.dev/compression", false),
            ("xxxxxxxx", true),
            ("password:", true),
            ("aHVudGVyMg", false),
            ("compressed: no base64", true),
        ] {
            assert_eq!(shown.contains(words), expected, "{words}\n{:.400}", shown);
        }
    }
}
