//! Pieces of CRD schemas that the types themselves cannot say, and the one pass over generated CRDs.
//!
//! List kinds, map kinds and CEL rules stand beside the fields as `extend`; what is here is shared by
//! several kinds.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::Value;

/// Free-form JSON object, as a template, a parameter set or an embedded object has it.
pub type Object = serde_json::Map<String, Value>;

/// Returns the schema of a free-form object whose fields merge one by one.
pub(super) fn open_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// Returns the schema of a free-form object that is written as one piece.
pub(super) fn atomic_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// Returns the schema of a whole Kubernetes object that is written as one piece.
// Not an embedded resource: the server would rewrite the metadata of those.
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

/// Returns the schema of a value of any type, null included.
pub(super) fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "nullable": true,
        "x-kubernetes-preserve-unknown-fields": true
    })
}

/// Returns the schema of a moment.
pub(super) fn moment(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
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

/// Brings a generated CRD into the form that an API server wants, and marks it as ours.
///
/// Optional fields lose `nullable`: a null that is stored would count as present in a rule.
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

/// Joins the lines of each paragraph, for `kubectl explain` wraps them itself.
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
                // A property may have the name of a keyword.
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
