//! Validates the metadata of objects: names, labels, annotations, finalizers and owner references.

use kube_values::name::{Form, label_value, qualified_name};
use serde_json::Value;

use super::status::Cause;

/// The largest total size of an object's annotations, in bytes.
const ANNOTATION_BYTES: usize = 256 << 10;

/// Returns the rule for the names of a resource's objects.
pub fn form_of(group: &str, plural: &str) -> Form {
    match (group, plural) {
        ("", "namespaces") => Form::Label,
        ("", "services") => Form::Service,
        ("rbac.authorization.k8s.io", _) => Form::PathSegment,
        _ => Form::Subdomain,
    }
}

/// Returns the finalizers without a domain in their names, each with its index. Such a name is not unique, because
/// another controller could use it too.
pub fn plain_finalizers(metadata: &Value) -> impl Iterator<Item = (usize, &str)> {
    const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
    let list = metadata["finalizers"].as_array().into_iter().flatten();
    list.enumerate()
        .filter_map(|(index, finalizer)| Some((index, finalizer.as_str()?)))
        .filter(|(_, finalizer)| {
            !finalizer.contains('/') && !finalizer.contains('.') && !STANDARD.contains(finalizer)
        })
}

/// Returns the errors in the metadata of an object. `form` is the rule for the object's name.
pub fn check_metadata(metadata: &Value, form: Form) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut refuse = |field: String, value: &str, why: String| {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {value:?}: {why}"),
            field,
        });
    };
    let name = metadata["name"].as_str().unwrap_or_default();
    if let Err(why) = form.check(name) {
        refuse("metadata.name".into(), name, why);
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        if let Err(why) = qualified_name(key) {
            refuse("metadata.labels".into(), key, why);
        }
        let value = value.as_str().unwrap_or_default();
        if let Err(why) = label_value(value) {
            refuse("metadata.labels".into(), value, why);
        }
    }
    let mut bytes = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        if let Err(why) = qualified_name(&key.to_lowercase()) {
            refuse("metadata.annotations".into(), key, why);
        }
    }
    for finalizer in metadata["finalizers"].as_array().into_iter().flatten() {
        let finalizer = finalizer.as_str().unwrap_or_default();
        if let Err(why) = qualified_name(finalizer) {
            refuse("metadata.finalizers".into(), finalizer, why);
        }
    }
    let mut controllers = Vec::new();
    for (index, owner) in metadata["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().unwrap_or_default().is_empty() {
                refuse(
                    format!("metadata.ownerReferences.{field}"),
                    "",
                    "must not be empty".into(),
                );
            }
        }
        if owner["controller"] == true {
            controllers.push(index);
        }
    }
    if controllers.len() > 1 {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: {}: Only one reference can have Controller set to true.",
                metadata["ownerReferences"]
            ),
            field: "metadata.ownerReferences".into(),
        });
    }
    if bytes > ANNOTATION_BYTES {
        causes.push(Cause {
            reason: "FieldValueTooLong".into(),
            message: format!("Too long: may not be more than {ANNOTATION_BYTES} bytes"),
            field: "metadata.annotations".into(),
        });
    }
    causes
}
