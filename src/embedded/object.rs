//! The life of one object: what the server adds, keeps and refuses when it is written.
//!
//! Pure: the object before, what was sent, who sent it and when go in; what is to be
//! stored comes out. Policies and the store come after.

use serde_json::{Map, Value, json};

use super::apply::{self, Manager, Operation};
use super::catalog::{Custom, Resource};
use super::names::{self, Form};
use super::route::{FieldValidation, Target};
use super::schema::{FieldError, Reason};
use super::status::{Cause, Failure};

/// Who writes, when, and how strictly.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The user as the server knows them.
    pub user: String,
    /// The name that fields will be owned by.
    pub manager: String,
    /// The time, as metadata shows it.
    pub now: String,
    /// What to do with unknown fields.
    pub field_validation: FieldValidation,
}

/// Which part of an object a write goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object itself.
    Main,
    /// Its status.
    Status,
    /// The part of a namespace that holds its finalizers.
    Finalize,
    /// Its number of replicas.
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

/// An object that is ready to be stored, and what to tell its sender.
#[derive(Debug)]
pub struct Draft {
    /// The object, without a new resourceVersion.
    pub object: Value,
    /// For the Warning headers.
    pub warnings: Vec<String>,
}

/// The annotation that says who last changed a pin's spec, by the server's word.
const CHANGED_BY: &str = "bowline.dev/changed-by";
/// Fields of metadata that only the server writes.
const SERVER_FIELDS: [&str; 5] = [
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];

/// Reads metadata that may be missing.
pub fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

/// The metadata of an object, made if it has none.
pub fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    match &mut object["metadata"] {
        Value::Object(meta) => meta,
        _ => unreachable!("BUG: metadata was just made an object"),
    }
}

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

/// Makes a new object ready: identity, defaults, checks, ownership of fields.
pub fn create(
    resource: &Resource,
    mut object: Value,
    writer: &Writer,
    uid: &str,
    applied: bool,
) -> Result<Draft, Failure> {
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
        Form::of(&resource.subject.group, &resource.subject.plural),
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
    // As a mutating policy's, the stamp belongs to no field manager.
    if is_pin(resource) {
        annotate(&mut object, CHANGED_BY, Some(&writer.user));
    }
    tidy(&mut object);
    warnings.dedup();
    Ok(Draft { object, warnings })
}

/// Makes a changed object ready: keeps what the sender may not change, counts the generation.
pub fn update(
    resource: &Resource,
    old: &Value,
    mut object: Value,
    part: Part,
    writer: &Writer,
    applied: bool,
) -> Result<Draft, Failure> {
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
            object["spec"]["finalizers"] = finalizers;
            object["metadata"]["managedFields"] = sent;
        }
    }
    resource.schema.fill_defaults(&mut object);
    let changed =
        resource.counts_generations() && desired(resource, old) != desired(resource, &object);
    if changed {
        let next = generation.as_i64().unwrap_or_default() + 1;
        meta_mut(&mut object).insert("generation".into(), next.into());
    }
    causes.extend(names::check_metadata(
        &object["metadata"],
        Form::PathSegment,
    ));
    causes.extend(new_finalizers(old, &object));
    causes.extend(own_rules(resource, &object));
    causes.extend(unchangeable(resource, old, &object));
    causes.extend(
        broken(resource, &object, Some(old), &mut warnings)
            .into_iter()
            .map(|mut cause| {
                if part == Part::Status && resource.custom.is_some() {
                    // A real server checks the status by itself, and so words the place from there.
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
    if is_pin(resource) {
        match old["spec"] != object["spec"] {
            true => annotate(&mut object, CHANGED_BY, Some(&writer.user)),
            false => {
                let before = old["metadata"]["annotations"][CHANGED_BY].as_str();
                annotate(&mut object, CHANGED_BY, before);
            }
        }
    }
    tidy(&mut object);
    Ok(Draft { object, warnings })
}

/// Fields of metadata that a sender may leave out but not change.
fn causes_of_immutable(old: &Value, object: &Value, causes: &mut Vec<Cause>) {
    for field in ["uid", "deletionTimestamp"] {
        let (before, after) = (meta(old, field), meta(object, field));
        if !after.is_empty() && after != before {
            causes.push(Cause {
                reason: "FieldValueInvalid".into(),
                message: format!("Invalid value: {after:?}: field is immutable"),
                field: format!("metadata.{field}"),
            });
        }
    }
}

/// How the refusal of an object that cannot be read begins.
pub fn cannot_be_handled(resource: &Resource) -> String {
    let kind = &resource.subject.kind;
    format!(
        "{kind} in version {:?} cannot be handled as a {kind}: ",
        resource.version
    )
}

/// Drops what the schema does not know, and says what it dropped as strictly as was asked.
fn shape(resource: &Resource, object: &mut Value, writer: &Writer) -> Result<Vec<String>, Failure> {
    let refuse = |why: &str| Failure::bad_request(format!("{}{why}", cannot_be_handled(resource)));
    if resource.schema.is_built_in()
        && let Some(first) = resource.schema.type_errors(object).first()
    {
        return Err(refuse(&first.message));
    }
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

/// Checks the schema and, where it holds, the rules in it.
fn broken(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
    warnings: &mut Vec<String>,
) -> Vec<Cause> {
    let errors = match old {
        Some(old) => resource.schema.validate_update(object, old),
        None => resource.schema.validate(object),
    };
    let blocked = errors.iter().any(|error| {
        matches!(
            error.reason,
            Reason::FieldValueNotSupported
                | Reason::FieldValueRequired
                | Reason::FieldValueTooLong
                | Reason::FieldValueTooMany
                | Reason::FieldValueTypeInvalid
        )
    });
    let mut causes: Vec<Cause> = errors.into_iter().map(cause).collect();
    causes.extend(
        resource
            .custom
            .as_ref()
            .and_then(|custom| countless(custom, object)),
    );
    let Some(custom) = resource
        .custom
        .as_ref()
        .filter(|custom| !custom.rules().is_empty())
    else {
        return causes;
    };
    if blocked {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation".into(),
            field: "<nil>".into(),
        });
        return causes;
    }
    let found = custom.rules().findings(object, old);
    // What was wrong before and was not touched is said, not refused.
    warnings.extend(found.warnings.iter().map(ToString::to_string));
    causes.extend(found.violations.iter().map(|violation| Cause {
        reason: violation.reason.clone(),
        message: violation.body(),
        field: violation.field().to_owned(),
    }));
    causes
}

/// The number that a scalable kind keeps has to be one, whatever its schema says.
fn countless(custom: &Custom, object: &Value) -> Option<Cause> {
    let path = &custom.scale.as_ref()?.replicas;
    let value = super::scale::at(object, path);
    let message = match value {
        Value::Null => return None,
        Value::Number(number) => match number.as_i64()? {
            number if number < 0 => {
                format!("Invalid value: {number}: should be a non-negative integer")
            }
            _ => return None,
        },
        other => format!(
            "Invalid value: 0: {path} accessor error: {} is of the type {}, expected int64",
            other
                .as_str()
                .map_or_else(|| other.to_string(), str::to_owned),
            type_name(other)
        ),
    };
    Some(Cause {
        reason: "FieldValueInvalid".into(),
        message,
        field: path.clone(),
    })
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Bool(_) => "bool",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
        Value::Number(_) => "float64",
        Value::Null => "<nil>",
    }
}

fn cause(error: FieldError) -> Cause {
    Cause {
        reason: error.reason.as_str().into(),
        message: error.message,
        field: error.path,
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

/// Fields that a part of an object ignores, so that nobody comes to own them through it.
pub fn reset_fields(resource: &Resource, part: Part) -> &'static [&'static str] {
    match (part, resource.custom.is_some()) {
        (Part::Main | Part::Scale, _) if resource.has_status() => &["status"],
        (Part::Main | Part::Scale | Part::Finalize, _) => &[],
        (Part::Status, true) => &["metadata", "spec"],
        (Part::Status, false) => &["metadata.labels", "spec"],
    }
}

fn is_pin(resource: &Resource) -> bool {
    resource.subject.group == "openchoreo.dev" && resource.subject.plural == "releasepins"
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

/// A finalizer without a domain is refused for built-in kinds, and a warning for others.
fn plain_names(resource: &Resource, object: &Value, causes: &mut Vec<Cause>) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, finalizer) in names::plain_finalizers(&object["metadata"]) {
        if resource.custom.is_some() {
            warnings.push(format!(
                "metadata.finalizers: {finalizer:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers"
            ));
        } else {
            causes.push(Cause {
                reason: "FieldValueInvalid".into(),
                message: format!(
                    "Invalid value: {finalizer:?}: name is neither a standard finalizer name nor is it fully qualified"
                ),
                field: format!("metadata.finalizers[{index}]"),
            });
        }
    }
    warnings
}

/// Everything whose change counts as a new generation.
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

/// A status write leaves the rest alone; built-in kinds let annotations through.
fn keep_all_but_status(resource: &Resource, old: &Value, object: &mut Value) {
    let status = object.get("status").cloned();
    let managed = object["metadata"].get("managedFields").cloned();
    let annotations = object["metadata"].get("annotations").cloned();
    let finalizers = object["metadata"].get("finalizers").cloned();
    let mut kept = old.clone();
    match status {
        Some(status) => kept["status"] = status,
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

fn new_finalizers(old: &Value, object: &Value) -> Option<Cause> {
    if meta(old, "deletionTimestamp").is_empty() {
        return None;
    }
    let none = Vec::new();
    let before = old["metadata"]["finalizers"].as_array().unwrap_or(&none);
    let added: Vec<String> = object["metadata"]["finalizers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finalizer| !before.contains(finalizer))
        .filter_map(|finalizer| finalizer.as_str().map(|text| format!("{text:?}")))
        .collect();
    (!added.is_empty()).then(|| Cause {
        reason: "FieldValueForbidden".into(),
        message: format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        ),
        field: "metadata.finalizers".into(),
    })
}

/// Rules that a real server keeps in Go code and that clients lean on.
fn own_rules(resource: &Resource, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let workload = resource.subject.group == "apps"
        && matches!(
            resource.subject.plural.as_str(),
            "deployments" | "replicasets" | "statefulsets" | "daemonsets"
        );
    let template = &object["spec"]["template"]["spec"];
    if workload && template["containers"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause {
            reason: "FieldValueRequired".into(),
            message: "Required value".into(),
            field: "spec.template.spec.containers".into(),
        });
    }
    if let Some(replicas) = object["spec"]["replicas"].as_i64().filter(|n| *n < 0)
        && workload
    {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {replicas}: must be greater than or equal to 0"),
            field: "spec.replicas".into(),
        });
    }
    let core = resource.subject.group.is_empty();
    let plural = resource.subject.plural.as_str();
    let spec = &object["spec"];
    if core
        && plural == "services"
        && spec["type"] != "ExternalName"
        && spec["clusterIP"] != "None"
        && spec["ports"].as_array().is_none_or(Vec::is_empty)
    {
        causes.push(Cause {
            reason: "FieldValueRequired".into(),
            message: "Required value".into(),
            field: "spec.ports".into(),
        });
    }
    if core && matches!(plural, "configmaps" | "secrets") {
        for part in ["data", "binaryData"] {
            for key in object[part].as_object().into_iter().flat_map(Map::keys) {
                if let Err(why) = names::config_key(key) {
                    causes.push(Cause {
                        reason: "FieldValueInvalid".into(),
                        message: format!("Invalid value: {key:?}: {why}"),
                        field: format!("{part}[{key}]"),
                    });
                }
            }
        }
    }
    if workload {
        let selector = super::select::Labels::from_json(&object["spec"]["selector"]);
        let labels = &object["spec"]["template"]["metadata"];
        if !selector.is_empty() && !selector.matches(labels) {
            let shown = labels["labels"].as_object().cloned().unwrap_or_default();
            causes.push(Cause {
                reason: "FieldValueInvalid".into(),
                message: format!(
                    "Invalid value: {}: `selector` does not match template `labels`",
                    Value::Object(shown)
                ),
                field: "spec.template.metadata.labels".into(),
            });
        }
    }
    causes
}

fn unchangeable(resource: &Resource, old: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let forbid = |field: &str, message: &str| Cause {
        reason: "FieldValueForbidden".into(),
        message: format!("Forbidden: {message}"),
        field: field.into(),
    };
    let config = resource.subject.group.is_empty()
        && matches!(resource.subject.plural.as_str(), "configmaps" | "secrets");
    if config && old["immutable"] == true {
        for field in ["data", "binaryData", "immutable"] {
            if old[field] != object[field] {
                causes.push(forbid(field, "field is immutable when `immutable` is set"));
            }
        }
    }
    let workload = resource.subject.group == "apps"
        && matches!(
            resource.subject.plural.as_str(),
            "deployments" | "replicasets" | "statefulsets" | "daemonsets"
        );
    let secret = resource.subject.group.is_empty() && resource.subject.plural == "secrets";
    if secret && old["type"] != object["type"] {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!("Invalid value: {}: field is immutable", object["type"]),
            field: "type".into(),
        });
    }
    let binding = matches!(
        resource.subject.plural.as_str(),
        "rolebindings" | "clusterrolebindings"
    );
    if binding && old["roleRef"] != object["roleRef"] {
        let role = &object["roleRef"];
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: {{\"APIGroup\":{},\"Kind\":{},\"Name\":{}}}: cannot change roleRef",
                role["apiGroup"], role["kind"], role["name"]
            ),
            field: "roleRef".into(),
        });
    }
    if workload && old["spec"]["selector"] != object["spec"]["selector"] {
        causes.push(Cause {
            reason: "FieldValueInvalid".into(),
            message: format!(
                "Invalid value: {}: field is immutable",
                object["spec"]["selector"]
            ),
            field: "spec.selector".into(),
        });
    }
    causes
}

/// What a real server writes into new objects of some kinds.
fn begin_life(resource: &Resource, object: &mut Value) {
    if resource.subject.group == "batch" && resource.subject.plural == "jobs" {
        name_pods_of_job(object);
    }
    if !resource.subject.group.is_empty() {
        return;
    }
    match resource.subject.plural.as_str() {
        "namespaces" => {
            let name = meta(object, "name").to_owned();
            object["spec"] = json!({"finalizers": ["kubernetes"]});
            object["status"] = json!({"phase": "Active"});
            let labels = meta_mut(object)
                .entry("labels")
                .or_insert_with(|| json!({}));
            if let Value::Object(labels) = labels {
                labels.insert("kubernetes.io/metadata.name".into(), name.into());
            }
        }
        "pods" => object["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"}),
        "persistentvolumeclaims" => object["status"] = json!({"phase": "Pending"}),
        "services" => object["status"] = json!({"loadBalancer": {}}),
        _ => {}
    }
}

/// A job finds its pods by its uid unless somebody chose another way.
fn name_pods_of_job(object: &mut Value) {
    if object["spec"]["manualSelector"] == true || object["spec"]["selector"].is_object() {
        return;
    }
    let (uid, name) = (
        meta(object, "uid").to_owned(),
        meta(object, "name").to_owned(),
    );
    let labels = &mut object["spec"]["template"]["metadata"]["labels"];
    if !labels.is_object() {
        *labels = json!({});
    }
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        labels[key] = value.as_str().into();
    }
    object["spec"]["selector"] =
        json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
}

/// Leaves out what an empty value says as well.
fn tidy(object: &mut Value) {
    if object["kind"] == "Secret"
        && let Some(Value::Object(plain)) = object.get("stringData").cloned()
    {
        use base64::{Engine, prelude::BASE64_STANDARD};
        remove(object, "stringData");
        for (key, value) in plain {
            let encoded = BASE64_STANDARD.encode(value.as_str().unwrap_or_default());
            if !object["data"].is_object() {
                object["data"] = json!({});
            }
            object["data"][key] = encoded.into();
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
        Some(value) => object[field] = value.clone(),
        None => remove(object, field),
    }
}

fn remove(object: &mut Value, field: &str) {
    if let Some(map) = object.as_object_mut() {
        map.remove(field);
    }
}
