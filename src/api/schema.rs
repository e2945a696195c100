//! The parts of CRD schemas that Rust types cannot express, and the conversion of generated CRDs.
//!
//! Each field declares its own list type, map type and CEL rules by `extend`. This module contains the parts
//! that several kinds share.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// A JSON object with any fields, for templates, parameters and embedded objects.
pub type Object = serde_json::Map<String, Value>;

/// Returns the schema of an object with any fields. An apply merges the fields one by one.
pub(super) fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// Returns the schema of an object with any fields. An apply replaces the object as a whole.
pub(super) fn atomic_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// Returns the schema of a Kubernetes object inside another object. An apply replaces the inner object as a
/// whole. The schema leaves out `x-kubernetes-embedded-resource`, because with it the server would rewrite
/// the inner metadata.
// The schema does not say `x-kubernetes-embedded-resource`, because the server would rewrite the metadata.
pub(super) fn kubernetes_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {
            "apiVersion": {"type": "string", "minLength": 1},
            "kind": {"type": "string", "minLength": 1}
        },
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// Returns the schema of a value of any type, including null.
pub(super) fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "nullable": true,
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// Returns the schema of a timestamp.
pub(super) fn moment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// Returns the schema of a reference to a Release.
pub(super) fn release_ref(_: &mut SchemaGenerator) -> Schema {
    name_ref("The name of the Release.")
}

/// Returns the schema of a reference to a DataPlane.
pub(super) fn data_plane_ref(_: &mut SchemaGenerator) -> Schema {
    name_ref("The name of the DataPlane.")
}

/// Returns the schema of a reference to a context of a kubeconfig.
pub(super) fn context_ref(_: &mut SchemaGenerator) -> Schema {
    name_ref("The name of the context.")
}

fn name_ref(description: &str) -> Schema {
    json_schema!({
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {
                "description": description,
                "type": "string", "minLength": 1, "maxLength": 253
            }
        }
    })
}

/// Returns the schema of a list of conditions, one per type.
pub(super) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "description": "The type of the condition, such as Ready.",
                    "type": "string", "minLength": 1, "maxLength": 316
                },
                "status": {
                    "description": "True, False or Unknown.",
                    "type": "string", "enum": ["True", "False", "Unknown"]
                },
                "observedGeneration": {
                    "description": "The generation that this condition was computed from.",
                    "type": "integer", "format": "int64", "minimum": 0
                },
                "lastTransitionTime": {
                    "description": "The time when the status last changed.",
                    "type": "string", "format": "date-time"
                },
                "reason": {
                    "description": "The reason as one word, for programs.",
                    "type": "string", "minLength": 1, "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
                },
                "message": {
                    "description": "The reason as a sentence, for people.",
                    "type": "string", "maxLength": 32768
                }
            }
        }
    })
}

/// Makes a generated CRD acceptable for an API server, and adds bowline's label.
///
/// Removes `nullable` from optional fields. Otherwise a server could store null, and validation rules would
/// treat the field as present.
pub(super) fn finish(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    crd.metadata.labels.get_or_insert_default().insert(
        super::labels::PART_OF.to_owned(),
        super::labels::PART_OF_BOWLINE.to_owned(),
    );
    for version in &mut crd.spec.versions {
        let Some(schema) = version
            .schema
            .as_mut()
            .and_then(|validation| validation.open_api_v3_schema.as_mut())
        else {
            continue;
        };
        let mut tree = serde_json::to_value(&*schema).expect("BUG: a schema is JSON");
        tidy(&mut tree);
        *schema = serde_json::from_value(tree).expect("BUG: a tidied schema is a schema");
    }
    crd
}

fn tidy(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if fields.contains_key("type") || fields.contains_key("x-kubernetes-int-or-string") {
        fields.remove("nullable");
    }
    fields.remove("title");
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = paragraphs(text);
    }
    if let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(tidy);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key) {
            tidy(inner);
        }
    }
}

/// Joins the lines of each paragraph, because `kubectl explain` wraps them itself.
fn paragraphs(text: &str) -> String {
    text.split("\n\n")
        .map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|paragraph| !paragraph.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_doc_comment_becomes_paragraphs() {
        for (text, expected) in [
            ("one", "one"),
            ("one\ntwo", "one two"),
            ("one\n\ntwo\nthree\n", "one\n\ntwo three"),
            ("", ""),
        ] {
            assert_eq!(paragraphs(text), expected);
        }
    }

    #[test]
    fn typed_fields_lose_nullable_and_untyped_keep_it() {
        let mut schema = json!({
            "type": "object",
            "title": "Thing",
            "properties": {
                // A property may have the same name as a keyword of JSON Schema.
                "nullable": {"type": "string", "nullable": true},
                "list": {"type": "array", "items": {"type": "string", "nullable": true}},
                "any": {"nullable": true}
            }
        });
        tidy(&mut schema);
        assert_eq!(
            schema,
            json!({
                "type": "object",
                "properties": {
                    "nullable": {"type": "string"},
                    "list": {"type": "array", "items": {"type": "string"}},
                    "any": {"nullable": true}
                }
            })
        );
    }
}
