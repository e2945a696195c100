//! Prepares an object for a write: sets the fields that the API sets, keeps the fields that a client may not change,
//! and validates the result.
//!
//! The functions are pure: they take the old object, the object that the client sent, the user and the time, and
//! return the object to store. The callers then evaluate the admission policies and write to the store.

mod birth;
mod identity;
mod readable;
mod rules;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::Stamp;
use super::apply::{self, Manager, Operation};
use super::catalog::Resource;
use super::names;
use super::route::FieldValidation;
use super::status::Failure;
use birth::begin_life;
pub use identity::{check_applied, identify, same_place};
use readable::typed;
pub use readable::{Unreadable, bounded, cannot_be_handled, readable, readable_as};
use rules::{broken, causes_of_immutable, new_finalizers, own_rules, plain_names, unchangeable};

/// The properties of a write request: the user, the time and the options.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The name of the user who sends the request.
    pub user: String,
    /// The name of the request's field manager.
    pub manager: String,
    /// The time of the write, in the format of Kubernetes timestamps.
    pub now: String,
    /// What the API does with unknown and duplicate fields in the request body.
    pub field_validation: FieldValidation,
    /// The annotations that the API sets to the user's name.
    pub stamps: Arc<[Stamp]>,
}

impl Writer {
    /// Returns the keys of the annotations that the API sets to the user's name on objects of a resource.
    fn stamps_of(&self, resource: &Resource) -> impl Iterator<Item = &str> {
        let subject = &resource.subject;
        let stamps = self.stamps.iter();
        let own = stamps.filter(|it| it.group == subject.group && it.plural == subject.plural);
        own.map(|stamp| stamp.annotation.as_str())
    }
}

/// The part of an object that a write request may change: the object itself or a subresource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object itself.
    Main,
    /// The subresource `status`.
    Status,
    /// The subresource `finalize` of a namespace.
    Finalize,
    /// The subresource `scale`.
    Scale,
}

impl Part {
    fn subresource(self) -> Option<&'static str> {
        match self {
            Part::Main => None,
            Part::Status => Some("status"),
            Part::Finalize => Some("finalize"),
            Part::Scale => Some("scale"),
        }
    }
}

/// An object that is ready for the store, and the warnings for the client.
#[derive(Debug)]
pub struct PreparedObject {
    /// The object to store. Its resourceVersion is set later, by the write.
    pub object: Value,
    /// The texts of the Warning headers for the client.
    pub warnings: Vec<String>,
}

/// The metadata fields that only the API sets.
const SERVER_FIELDS: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

/// Returns a text field of an object's metadata; empty if the field does not exist or is not a text.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// Returns the fields of a JSON object. If the value is not an object, replaces it by an empty object first.
///
/// Use this before an assignment by index (`object["status"]["phase"] = ..`), which panics if a value on the path is
/// not an object. The store may contain any JSON, because other processes can write to the file.
pub fn map_of(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(fields) => fields,
        _ => unreachable!("BUG: the value was just made an object"),
    }
}

/// Returns the fields of the JSON object in the field `field`. If the field is not an object, replaces it by an empty
/// object first.
pub fn map_at<'o>(object: &'o mut Value, field: &str) -> &'o mut Map<String, Value> {
    map_of(map_of(object).entry(field).or_insert(Value::Null))
}

/// Returns the metadata of an object. If the object has none, inserts empty metadata first.
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    map_at(object, "metadata")
}

/// Prepares a new object: sets the server's fields and the defaults, validates the object, and records the
/// field owners.
pub fn create(
    resource: &Resource,
    mut object: Value,
    writer: &Writer,
    uid: &str,
    applied: bool,
) -> Result<PreparedObject, Failure> {
    let meta = meta_mut(&mut object);
    for field in SERVER_FIELDS {
        meta.remove(field);
    }
    meta.remove("resourceVersion");
    meta.insert("uid".into(), uid.into());
    meta.insert("creationTimestamp".into(), writer.now.as_str().into());
    match resource.counts_generations() {
        true => meta.insert("generation".into(), 1.into()),
        false => meta.remove("generation"),
    };
    if resource.has_status() {
        remove(&mut object, "status");
    }
    let mut warnings = shape(resource, &mut object, writer)?;
    begin_life(resource, &mut object);
    resource.schema.fill_defaults(&mut object);
    let name = self::meta(&object, "name").to_owned();
    let mut causes = names::check_metadata(
        &object["metadata"],
        names::form_of(&resource.subject.group, &resource.subject.plural),
    );
    causes.extend(own_rules(resource, &object));
    warnings.extend(plain_names(resource, &object, &mut causes));
    causes.extend(broken(resource, &object, None, &mut warnings));
    if !causes.is_empty() {
        return Err(Failure::invalid(&resource.subject, &name, causes));
    }
    if !applied {
        own(resource, None, &mut object, Part::Main, writer);
    }
    // No field manager owns this annotation, as if a mutating admission policy had set it.
    for annotation in writer.stamps_of(resource) {
        annotate(&mut object, annotation, Some(&writer.user));
    }
    tidy(&mut object);
    warnings.dedup();
    Ok(PreparedObject { object, warnings })
}

/// Prepares the new state of an object: restores the fields that the client may not change, sets the
/// defaults, validates the object, and increments the generation.
pub fn update(
    resource: &Resource,
    old: &Value,
    mut object: Value,
    part: Part,
    writer: &Writer,
    applied: bool,
) -> Result<PreparedObject, Failure> {
    let mut warnings = shape(resource, &mut object, writer)?;
    let subject = &resource.subject;
    let name = meta(old, "name").to_owned();
    let mut causes = Vec::new();
    causes_of_immutable(old, &object, &mut causes);
    let generation = old["metadata"]["generation"].clone();
    let meta = meta_mut(&mut object);
    for field in
        SERVER_FIELDS
            .into_iter()
            .chain(["generation", "name", "namespace", "generateName"])
    {
        restore(meta, field, &old["metadata"]);
    }
    meta.remove("resourceVersion");
    match part {
        Part::Main | Part::Scale if resource.has_status() => copy(&mut object, old, "status"),
        Part::Main | Part::Scale => {}
        Part::Status => keep_all_but_status(resource, old, &mut object),
        Part::Finalize => {
            let finalizers = object["spec"]["finalizers"].clone();
            let sent = object["metadata"]["managedFields"].clone();
            object = old.clone();
            map_at(&mut object, "spec").insert("finalizers".into(), finalizers);
            meta_mut(&mut object).insert("managedFields".into(), sent);
        }
    }
    resource.schema.fill_defaults(&mut object);
    let changed =
        resource.counts_generations() && desired(resource, old) != desired(resource, &object);
    if changed {
        let next = generation.as_i64().unwrap_or_default().saturating_add(1);
        meta_mut(&mut object).insert("generation".into(), next.into());
    }
    causes.extend(names::check_metadata(
        &object["metadata"],
        kube_values::name::Form::PathSegment,
    ));
    causes.extend(new_finalizers(old, &object));
    causes.extend(own_rules(resource, &object));
    causes.extend(unchangeable(resource, old, &object));
    causes.extend(
        broken(resource, &object, Some(old), &mut warnings)
            .into_iter()
            .map(|mut cause| {
                if part == Part::Status && resource.custom.is_some() {
                    // The path of a status error begins at the status, because kube-apiserver validates the status
                    // separately.
                    cause.message = cause.message.replacen(": status.", ": ", 1);
                }
                cause
            }),
    );
    if !causes.is_empty() {
        return Err(Failure::invalid(subject, &name, causes));
    }
    if !applied {
        own(resource, Some(old), &mut object, part, writer);
    }
    for annotation in writer.stamps_of(resource) {
        match old["spec"] != object["spec"] {
            true => annotate(&mut object, annotation, Some(&writer.user)),
            false => {
                let before = old["metadata"]["annotations"][annotation].as_str();
                annotate(&mut object, annotation, before);
            }
        }
    }
    tidy(&mut object);
    Ok(PreparedObject { object, warnings })
}

/// Removes unknown fields from the object that a client sends. The client's field validation decides whether they are
/// an error, a warning, or ignored.
fn shape(resource: &Resource, object: &mut Value, writer: &Writer) -> Result<Vec<String>, Failure> {
    let kind = &resource.subject.kind;
    let refuse = |why: &str| {
        let begin = cannot_be_handled(kind, &resource.version);
        Failure::bad_request(format!("{begin}{why}"))
    };
    // The object may be the result of an apply or a patch, to which these checks were not applied yet.
    bounded(object)
        .and_then(|()| typed(&resource.schema, object))
        .map_err(|why| refuse(&why))?;
    let unknown: Vec<String> = resource
        .schema
        .prune(object)
        .iter()
        .map(|path| format!("unknown field {path:?}"))
        .collect();
    match writer.field_validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(unknown),
        FieldValidation::Strict if unknown.is_empty() => Ok(unknown),
        FieldValidation::Strict => Err(refuse(&format!(
            "strict decoding error: {}",
            unknown.join(", ")
        ))),
    }
}

fn own(resource: &Resource, old: Option<&Value>, object: &mut Value, part: Part, writer: &Writer) {
    let api_version = resource.api_version();
    let manager = Manager {
        name: &writer.manager,
        operation: Operation::Update,
        api_version: &api_version,
        subresource: part.subresource(),
        time: &writer.now,
        reset_fields: reset_fields(resource, part),
    };
    apply::track_update(&resource.schema, old, object, &manager);
}

/// Returns the fields that a write to this part of an object ignores. The write's manager does not become their
/// owner.
pub fn reset_fields(resource: &Resource, part: Part) -> &'static [&'static str] {
    match (part, resource.custom.is_some()) {
        (Part::Main | Part::Scale, _) if resource.has_status() => &["status"],
        (Part::Main | Part::Scale | Part::Finalize, _) => &[],
        (Part::Status, true) => &["metadata", "spec"],
        (Part::Status, false) => &["metadata.labels", "spec"],
    }
}

fn annotate(object: &mut Value, key: &str, value: Option<&str>) {
    let meta = meta_mut(object);
    match value {
        Some(value) => {
            let annotations = meta.entry("annotations").or_insert_with(|| json!({}));
            if let Value::Object(annotations) = annotations {
                annotations.insert(key.into(), value.into());
            }
        }
        None => {
            if let Some(Value::Object(annotations)) = meta.get_mut("annotations") {
                annotations.remove(key);
            }
        }
    }
}

/// Returns the fields of an object that are its desired state: if one changes, the generation is incremented.
fn desired<'a>(resource: &Resource, object: &'a Value) -> Vec<(&'a String, &'a Value)> {
    object
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| match name.as_str() {
            "metadata" | "apiVersion" | "kind" => false,
            "status" => resource.custom.is_some() && !resource.has_status(),
            _ => true,
        })
        .collect()
}

/// Restores all fields of the old object except the status, because a write of the status must not change them. In
/// built-in kinds, such a write may also change annotations.
fn keep_all_but_status(resource: &Resource, old: &Value, object: &mut Value) {
    let status = object.get("status").cloned();
    let managed = object["metadata"].get("managedFields").cloned();
    let annotations = object["metadata"].get("annotations").cloned();
    let finalizers = object["metadata"].get("finalizers").cloned();
    let mut kept = old.clone();
    match status {
        Some(status) => drop(map_of(&mut kept).insert("status".into(), status)),
        None => remove(&mut kept, "status"),
    }
    let meta = meta_mut(&mut kept);
    let mut take = |field: &str, value: Option<Value>| match value {
        Some(value) => {
            meta.insert(field.into(), value);
        }
        None => {
            meta.remove(field);
        }
    };
    take("managedFields", managed);
    if resource.custom.is_none() {
        take("annotations", annotations);
        take("finalizers", finalizers);
    }
    meta.remove("resourceVersion");
    *object = kept;
}

/// Removes empty metadata fields, and moves the field `stringData` of a Secret to the field `data`.
fn tidy(object: &mut Value) {
    if object["kind"] == "Secret"
        && let Some(Value::Object(plain)) = object.get("stringData").cloned()
    {
        use base64::{Engine, prelude::BASE64_STANDARD};
        remove(object, "stringData");
        for (key, value) in plain {
            let encoded = BASE64_STANDARD.encode(value.as_str().unwrap_or_default());
            map_at(object, "data").insert(key, encoded.into());
        }
    }
    let meta = meta_mut(object);
    for field in ["labels", "annotations"] {
        if meta
            .get(field)
            .is_some_and(|map| map.as_object().is_none_or(Map::is_empty))
        {
            meta.remove(field);
        }
    }
    for field in ["finalizers", "ownerReferences", "managedFields"] {
        if meta
            .get(field)
            .is_some_and(|list| list.as_array().is_none_or(Vec::is_empty))
        {
            meta.remove(field);
        }
    }
    meta.retain(|_, value| !value.is_null());
}

fn restore(meta: &mut Map<String, Value>, field: &str, old: &Value) {
    match old.get(field) {
        Some(value) => {
            meta.insert(field.into(), value.clone());
        }
        None => {
            meta.remove(field);
        }
    }
}

fn copy(object: &mut Value, old: &Value, field: &str) {
    match old.get(field) {
        Some(value) => drop(map_of(object).insert(field.into(), value.clone())),
        None => remove(object, field),
    }
}

fn remove(object: &mut Value, field: &str) {
    if let Some(map) = object.as_object_mut() {
        map.remove(field);
    }
}
