//! The scale subresource: reads and sets the replica count of an object.

use kube_values::selector::Selector;
use serde_json::{Value, json};

use super::Shared;
use super::catalog::{Resource, Scale};
use super::object::{self, Part, meta};
use super::service::{Answer, Call};
use super::status::{Cause, Failure};

/// The largest number of fields in the dotted path of a replica count.
pub(super) const MOST_STEPS: usize = 32;

impl Shared {
    /// Answers a GET request for `/scale`.
    pub(super) async fn get_scale(
        &self,
        resource: &Resource,
        call: &Call,
    ) -> Result<Answer, Failure> {
        let object = self.existing(resource, call).await?;
        Ok(Answer::json(200, view(resource, &object)))
    }

    /// Answers a PUT or PATCH request for `/scale`.
    pub(super) async fn set_scale(
        &self,
        resource: &Resource,
        call: &Call,
    ) -> Result<Answer, Failure> {
        let sent: Value = serde_json::from_slice(&call.body)
            .map_err(|cause| Failure::bad_request(format!("error decoding Scale: {cause}")))?;
        let places = places(resource);
        let change = |old: &Value| {
            let before = view(resource, old);
            let after = match call.method == http::Method::PUT {
                true => sent.clone(),
                false => match call.content_type.as_str() {
                    "application/json-patch+json" => super::patch::json_patch(&before, &sent),
                    _ => super::patch::merge_patch(&before, &sent),
                }
                .map_err(|error| super::write::patch_failure(&error))?,
            };
            readable(call, &after)?;
            let version = meta(&after, "resourceVersion");
            if !version.is_empty() && version != meta(old, "resourceVersion") {
                return Err(Failure::stale(&resource.subject, meta(old, "name")));
            }
            let replicas = after["spec"]["replicas"].as_i64().unwrap_or_default();
            let mut object = old.clone();
            set(&mut object, &places.replicas, replicas.into());
            if replicas < 0 && resource.custom.is_none() {
                return Err(below_zero(resource, meta(old, "name"), replicas));
            }
            // If nobody owns the replica count, this write does not make its manager an owner, because the client's
            // Scale object has no managedFields.
            let untracked = !is_owned(old, &places.replicas);
            let draft = object::update(resource, old, object, Part::Scale, &call.writer, untracked);
            draft.map(|mut draft| {
                forget_time(&mut draft.object);
                draft
            })
        };
        let (object, warnings) = self.changed(resource, call, true, change).await?;
        Ok(Answer::json(200, view(resource, &object)).warning(warnings))
    }
}

/// Checks that a client's Scale object can be decoded, and that its namespace and name are the same as in the request
/// path.
fn readable(call: &Call, scale: &Value) -> Result<(), Failure> {
    object::readable_as("autoscaling", "v1", "Scale", scale).map_err(|why| {
        match call.method == http::Method::PUT {
            true => why.refuse("Scale", "v1"),
            false => super::write::unreadable(scale, &why.why()),
        }
    })?;
    object::same_place(&call.target, scale)
}

/// Removes the time from the managedFields entries of the subresource `scale`, as kube-apiserver does. Afterwards,
/// entries without a time come first.
fn forget_time(object: &mut Value) {
    let Some(Value::Array(entries)) = object.pointer_mut("/metadata/managedFields") else {
        return;
    };
    for entry in entries.iter_mut() {
        if entry["subresource"] == "scale"
            && let Some(entry) = entry.as_object_mut()
        {
            entry.remove("time");
        }
    }
    entries.sort_by_key(|entry| entry["operation"] != "Apply" && entry.get("time").is_some());
}

/// Returns whether a field manager owns the field at a dotted path.
fn is_owned(object: &Value, path: &str) -> bool {
    let names = path.split('.').filter(|part| !part.is_empty());
    let path: String = names.map(|name| format!("/f:{name}")).collect();
    let entries = object["metadata"]["managedFields"].as_array();
    entries
        .into_iter()
        .flatten()
        .any(|entry| entry["fieldsV1"].pointer(&path).is_some())
}

fn below_zero(resource: &Resource, name: &str, replicas: i64) -> Failure {
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {replicas}: must be greater than or equal to 0"),
        field: "spec.replicas".into(),
    };
    Failure::invalid(&resource.subject, name, vec![cause])
}

fn places(resource: &Resource) -> Scale {
    let declared = resource
        .custom
        .as_ref()
        .and_then(|custom| custom.scale.clone());
    declared.unwrap_or(Scale {
        replicas: ".spec.replicas".into(),
        status_replicas: ".status.replicas".into(),
        selector: None,
    })
}

fn view(resource: &Resource, object: &Value) -> Value {
    let places = places(resource);
    let number = |path: &str| at(object, path).as_i64().unwrap_or_default();
    let mut metadata = json!({});
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        if let Some(value) = object["metadata"].get(field) {
            object::map_of(&mut metadata).insert(field.into(), value.clone());
        }
    }
    let mut status = json!({"replicas": number(&places.status_replicas)});
    let selector = match &places.selector {
        Some(path) => at(object, path).as_str().unwrap_or_default().to_owned(),
        None => Selector::from_object(&object["spec"]["selector"]).to_string(),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let mut spec = json!({});
    if number(&places.replicas) != 0 {
        spec["replicas"] = number(&places.replicas).into();
    }
    json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    })
}

/// Returns whether a dotted path leads to a field inside the field `below`, and has at most [`MOST_STEPS`] fields.
pub(super) fn is_place(path: &str, below: &str) -> bool {
    let inner = path.strip_prefix('.').and_then(|p| p.strip_prefix(below));
    inner.is_some_and(|inner| inner.starts_with('.') && inner.len() > 1)
        && path.split('.').count() <= MOST_STEPS
}

/// Returns the value at a dotted path such as `.spec.replicas`; null if the path does not exist.
pub(super) fn at<'a>(object: &'a Value, path: &str) -> &'a Value {
    let mut value = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        value = &value[part];
    }
    value
}

fn set(object: &mut Value, path: &str, new: Value) {
    let mut value = object;
    for part in path.split('.').filter(|part| !part.is_empty()) {
        value = object::map_of(value).entry(part).or_insert(Value::Null);
    }
    *value = new;
}
