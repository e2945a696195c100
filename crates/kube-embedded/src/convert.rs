//! Converts objects of the two built-in kinds that have different forms in different API versions.
//!
//! Event has one form in the core group and one in events.k8s.io. HorizontalPodAutoscaler has one form in
//! autoscaling/v1 and one in v2. The store contains the form with more fields. All other kinds have only one form.

use serde_json::{Value, json};

use super::catalog::Resource;

/// The fields of an Event whose names differ: the name in events.k8s.io, and the name in the core group. In the
/// store, they have the names of the core group.
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

/// The form of a resource's objects in requests and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The same form as in the store.
    Stored,
    /// The form of an Event in events.k8s.io/v1.
    Event,
    /// The form of a HorizontalPodAutoscaler in autoscaling/v1.
    Autoscaler,
}

impl Shape {
    /// Returns the form of a built-in resource's objects in requests and answers.
    pub fn of(group: &str, version: &str, plural: &str) -> Shape {
        match (group, version, plural) {
            ("events.k8s.io", _, "events") => Shape::Event,
            ("autoscaling", "v1", "horizontalpodautoscalers") => Shape::Autoscaler,
            _ => Shape::Stored,
        }
    }

    /// Returns the name under which a built-in resource is stored.
    pub fn storage(group: &str, plural: &str) -> String {
        match (group, plural) {
            ("events.k8s.io", "events") => "/events".to_owned(),
            _ => format!("{group}/{plural}"),
        }
    }

    /// Converts an object from the stored form to this form.
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

    /// Converts an object from this form to the stored form.
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

/// Returns whether an object cannot be answered as its stored bytes, because it must be converted. `revision` is the
/// object's revision.
pub fn needs_parsing(resource: &Resource, revision: u64) -> bool {
    resource.shape != Shape::Stored
        || resource
            .custom
            .as_ref()
            .is_some_and(|custom| custom.since > revision)
}

/// Converts a stored object to the form of answers. If the definition has changed since the object was stored, also
/// prunes the object and sets its defaults.
pub fn refresh(resource: &Resource, revision: u64, object: &mut Value) {
    resource.shape.serve(object);
    if let Some(custom) = &resource.custom
        && custom.since > revision
    {
        // The definition has changed since the object was stored, so the object is adapted to the current schema.
        resource.schema.prune(object);
        resource.schema.fill_defaults(object);
    }
}
