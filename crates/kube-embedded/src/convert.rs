//! Kinds that are served in two shapes and stored in one.
//!
//! The core group and events.k8s.io serve the same Event objects, and autoscaling serves two versions of an
//! autoscaler; the store uses the shape with more fields. All other kinds have one shape.

use serde_json::{Value, json};

use super::catalog::Resource;

/// The fields of an Event: (name in events.k8s.io, name in the core group). Events are stored with the second
/// name.
const EVENT: [(&str, &str); 8] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("deprecatedCount", "count"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedSource", "source"),
    ("reportingController", "reportingComponent"),
    ("reportingInstance", "reportingInstance"),
];

/// The shape in which a stored kind is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The stored shape.
    Stored,
    /// events.k8s.io/v1.
    Event,
    /// autoscaling/v1.
    Autoscaler,
}

impl Shape {
    /// Returns the shape in which a built-in resource is served.
    pub fn of(group: &str, version: &str, plural: &str) -> Shape {
        match (group, version, plural) {
            ("events.k8s.io", _, "events") => Shape::Event,
            ("autoscaling", "v1", "horizontalpodautoscalers") => Shape::Autoscaler,
            _ => Shape::Stored,
        }
    }

    /// Returns the storage name of a built-in resource.
    pub fn storage(group: &str, plural: &str) -> String {
        match (group, plural) {
            ("events.k8s.io", "events") => "/events".to_owned(),
            _ => format!("{group}/{plural}"),
        }
    }

    /// Converts a stored object to the served shape.
    pub fn serve(self, object: &mut Value) {
        match self {
            Shape::Stored => {}
            Shape::Event => EVENT
                .iter()
                .for_each(|(new, core)| rename(object, core, new)),
            Shape::Autoscaler => {
                let percent = cpu_target(&object["spec"]["metrics"]).cloned();
                if let Some(spec) = object["spec"].as_object_mut() {
                    spec.remove("metrics");
                    spec.remove("behavior");
                    if let Some(percent) = percent {
                        spec.insert("targetCPUUtilizationPercentage".into(), percent);
                    }
                }
            }
        }
    }

    /// Converts an object from a client to the stored shape.
    pub fn store(self, object: &mut Value) {
        match self {
            Shape::Stored => {}
            Shape::Event => EVENT
                .iter()
                .for_each(|(new, core)| rename(object, new, core)),
            Shape::Autoscaler => {
                let Some(spec) = object["spec"].as_object_mut() else {
                    return;
                };
                if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
                    let target = json!({"type": "Utilization", "averageUtilization": percent});
                    let metric =
                        json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
                    spec.insert("metrics".into(), json!([metric]));
                }
            }
        }
    }
}

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(map) = object.as_object_mut()
        && from != to
        && let Some(value) = map.remove(from)
    {
        map.insert(to.to_owned(), value);
    }
}

fn cpu_target(metrics: &Value) -> Option<&Value> {
    metrics
        .as_array()?
        .iter()
        .find(|metric| metric["resource"]["name"] == "cpu")
        .and_then(|metric| metric["resource"]["target"].get("averageUtilization"))
}

/// Returns whether a stored object has to be parsed before it can be served.
pub fn needs_parsing(resource: &Resource, revision: u64) -> bool {
    resource.shape != Shape::Stored
        || resource
            .custom
            .as_ref()
            .is_some_and(|custom| custom.since > revision)
}

/// Converts a stored object to the served shape, with the current defaults.
pub fn refresh(resource: &Resource, revision: u64, object: &mut Value) {
    resource.shape.serve(object);
    if let Some(custom) = &resource.custom
        && custom.since > revision
    {
        // The definition changed after the object was stored.
        resource.schema.prune(object);
        resource.schema.fill_defaults(object);
    }
}
