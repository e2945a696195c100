//! The custom kinds of the cases: a namespaced Widget, whose schema uses every feature, and a cluster-scoped
//! Gadget without subresources.

use kube::Client;
use serde_json::{Value, json};

use crate::cluster::install_one;

pub const GROUP: &str = "conformance.bowline.dev";
pub const API_VERSION: &str = "conformance.bowline.dev/v1";

/// Returns a widget with this name and spec.
pub fn with_spec(name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": spec,
    })
}

/// Returns a gadget with this name.
pub fn gadget(name: &str) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "Gadget", "metadata": {"name": name}})
}

/// Installs both custom kinds, and waits until the server serves them.
pub async fn install(client: &Client) {
    for definition in [widgets(), gadgets()] {
        install_one(client, definition).await;
    }
}

fn widgets() -> Value {
    json!({
        "metadata": {"name": format!("widgets.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
                "shortNames": ["wd"], "categories": ["conformance"],
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "selectableFields": [{"jsonPath": ".spec.color"}],
                "additionalPrinterColumns": [
                    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
                    {"name": "Replicas", "type": "integer", "jsonPath": ".spec.replicas", "description": "How many there are."},
                    {"name": "Detail", "type": "string", "jsonPath": ".spec.detail", "priority": 1},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": schema()},
            }],
        },
    })
}

fn schema() -> Value {
    json!({
        "type": "object",
        "description": "A widget is what conformance cases are made of.",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    "color": {"type": "string", "default": "red", "enum": ["red", "green", "blue"]},
                    "replicas": {"type": "integer", "format": "int32", "minimum": 0, "maximum": 10},
                    "detail": {"type": "string", "maxLength": 20, "pattern": "^[a-z ]*$"},
                    "serial": {
                        "type": "string",
                        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "serial cannot be changed"}],
                    },
                    "low": {"type": "integer"},
                    "high": {"type": "integer"},
                    "limits": {
                        "type": "object",
                        "properties": {"cpu": {"type": "string", "default": "1"}, "memory": {"type": "string"}},
                    },
                    "size": {"x-kubernetes-int-or-string": true},
                    "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                    "order": {"type": "array", "items": {"type": "string"}},
                    "parts": {
                        "type": "array",
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["name"],
                        "items": {
                            "type": "object",
                            "required": ["name"],
                            "properties": {
                                "name": {"type": "string"},
                                "count": {"type": "integer", "default": 1},
                                "note": {"type": "string", "nullable": true},
                            },
                        },
                    },
                    "selector": {
                        "type": "object",
                        "additionalProperties": {"type": "string"},
                        "x-kubernetes-map-type": "atomic",
                    },
                    "options": {"type": "object", "additionalProperties": {"type": "string"}},
                },
                "x-kubernetes-validations": [
                    {
                        "rule": "!has(self.low) || !has(self.high) || self.low <= self.high",
                        "message": "low must not be above high",
                    },
                    {
                        "rule": "!has(self.low) || self.low >= 0",
                        "messageExpression": "self.low < -100 ? 'low is far below zero' : 'low is below zero'",
                        "reason": "FieldValueForbidden",
                        "fieldPath": ".low",
                    },
                ],
            },
            "status": {
                "type": "object",
                "properties": {
                    "phase": {"type": "string"},
                    "replicas": {"type": "integer"},
                    "selector": {"type": "string"},
                    "observed": {"type": "integer"},
                },
            },
        },
    })
}

fn gadgets() -> Value {
    json!({
        "metadata": {"name": format!("gadgets.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {"n": {"type": "integer"}}},
                        "status": {"type": "object", "properties": {"n": {"type": "integer"}}},
                    },
                }},
            }],
        },
    })
}
