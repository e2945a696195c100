//! What a real server writes into new objects of some kinds.

use serde_json::{Value, json};

use super::super::catalog::Resource;
use super::{meta, meta_mut};

/// What a real server writes into new objects of some kinds.
pub(super) fn begin_life(resource: &Resource, object: &mut Value) {
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
