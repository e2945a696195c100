//! Validates an object with its schema, with the CEL rules in the schema, and with those rules of kube-apiserver's Go
//! code on which clients depend.

use std::collections::BTreeSet;

use kube_values::{name, selector::Selector};
use serde_json::{Map, Value};

use super::super::catalog::{Custom, Resource};
use super::super::schema::{FieldError, Reason};
use super::super::status::Cause;
use super::super::{names, scale};
use super::meta;

/// Adds an error for each metadata field that was changed although it is immutable. Clients may leave out these
/// fields.
pub(super) fn causes_of_immutable(old: &Value, object: &Value, causes: &mut Vec<Cause>) {
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

/// Returns the errors of an object from its schema. If they are not serious, also returns the errors from its CEL
/// rules.
pub(super) fn broken(
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
    // A broken rule about an unchanged value causes a warning, not an error.
    warnings.extend(found.warnings.iter().map(ToString::to_string));
    causes.extend(found.violations.iter().map(|violation| Cause {
        reason: violation.reason.clone(),
        message: violation.body(),
        field: violation.field().to_owned(),
    }));
    causes
}

/// Returns an error if the replica count of a custom resource with the subresource `scale` is not an integer of at
/// least 0, because the schema may allow other values.
fn countless(custom: &Custom, object: &Value) -> Option<Cause> {
    let path = &custom.scale.as_ref()?.replicas;
    let value = scale::at(object, path);
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

/// Checks the names of finalizers. A name without a domain is an error in built-in kinds and a warning in custom
/// resources.
pub(super) fn plain_names(
    resource: &Resource,
    object: &Value,
    causes: &mut Vec<Cause>,
) -> Vec<String> {
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

pub(super) fn new_finalizers(old: &Value, object: &Value) -> Option<Cause> {
    if meta(old, "deletionTimestamp").is_empty() {
        return None;
    }
    let of = |object: &Value| -> Vec<String> {
        let list = object["metadata"]["finalizers"].as_array();
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(|text| format!("{text:?}")).collect()
    };
    let before: BTreeSet<String> = of(old).into_iter().collect();
    let mut added = of(object);
    added.retain(|finalizer| !before.contains(finalizer));
    (!added.is_empty()).then(|| Cause {
        reason: "FieldValueForbidden".into(),
        message: format!(
            "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            added.join(", ")
        ),
        field: "metadata.finalizers".into(),
    })
}

/// Returns the errors of an object by the rules that kube-apiserver has in Go code. Only rules on which clients
/// depend are included.
pub(super) fn own_rules(resource: &Resource, object: &Value) -> Vec<Cause> {
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
                if let Err(why) = name::config_key(key) {
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
        let selector = Selector::from_object(&object["spec"]["selector"]);
        let labels = &object["spec"]["template"]["metadata"]["labels"];
        if !selector.is_empty() && !selector.matches(labels) {
            let shown = labels.as_object().cloned().unwrap_or_default();
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

pub(super) fn unchangeable(resource: &Resource, old: &Value, object: &Value) -> Vec<Cause> {
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
