//! Converts the kinds that two API versions serve in different forms.
//!
//! The core group and events.k8s.io serve the same Event objects. autoscaling has two versions of
//! HorizontalPodAutoscaler. The store keeps the form with more fields. All other kinds have one form.

use serde_json::{Value, json};

use super::catalog::Resource;

/// The names of the fields of an Event: (in events.k8s.io, in the core group). The store uses the names of
/// the core group.
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

/// The form in which the API serves the objects of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The form in which the objects are stored.
    Stored,
    /// An Event of events.k8s.io/v1.
    Event,
    /// A HorizontalPodAutoscaler of autoscaling/v1.
    Autoscaler,
}

impl Shape {
    /// Returns the form in which the API serves a built-in resource.
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

    /// Converts an object from the stored form to the served form.
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

    /// Converts an object from the served form to the stored form.
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

/// Returns whether a stored object must be parsed and converted before it is served. `revision` is the
/// revision of the object.
pub fn needs_parsing(resource: &Resource, revision: u64) -> bool {
    resource.shape != Shape::Stored
        || resource
            .custom
            .as_ref()
            .is_some_and(|custom| custom.since > revision)
}

/// Converts a stored object to the served form. Also applies a schema that has changed since the object was
/// stored.
pub fn refresh(resource: &Resource, revision: u64, object: &mut Value) {
    resource.shape.serve(object);
    if let Some(custom) = &resource.custom
        && custom.since > revision
    {
        // The definition has changed since the object was stored.
        resource.schema.prune(object);
        resource.schema.fill_defaults(object);
    }
}
