//! Sets the fields that kube-apiserver sets in new Jobs, Namespaces, Pods, PersistentVolumeClaims and Services.

use serde_json::{Value, json};

use super::super::catalog::Resource;
use super::{map_at, map_of, meta, meta_mut};

/// Sets the fields that kube-apiserver sets in a new object. Does nothing for a kind without such fields.
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
            set(object, "spec", json!({"finalizers": ["kubernetes"]}));
            set(object, "status", json!({"phase": "Active"}));
            let labels = meta_mut(object).entry("labels").or_insert(Value::Null);
            map_of(labels).insert("kubernetes.io/metadata.name".into(), name.into());
        }
        "pods" => set(
            object,
            "status",
            json!({"phase": "Pending", "qosClass": "BestEffort"}),
        ),
        "persistentvolumeclaims" => set(object, "status", json!({"phase": "Pending"})),
        "services" => set(object, "status", json!({"loadBalancer": {}})),
        _ => {}
    }
}

fn set(object: &mut Value, field: &str, value: Value) {
    map_of(object).insert(field.into(), value);
}

/// Sets the labels and the selector with which a Job finds its pods. Does nothing if the client has set the selector.
fn name_pods_of_job(object: &mut Value) {
    if object["spec"]["manualSelector"] == true || object["spec"]["selector"].is_object() {
        return;
    }
    let (uid, name) = (
        meta(object, "uid").to_owned(),
        meta(object, "name").to_owned(),
    );
    let spec = map_at(object, "spec");
    let template = spec.entry("template").or_insert(Value::Null);
    let labels = map_at(template, "metadata")
        .entry("labels")
        .or_insert(Value::Null);
    for (key, value) in [
        ("batch.kubernetes.io/controller-uid", &uid),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("job-name", &name),
    ] {
        map_of(labels).insert(key.into(), value.as_str().into());
    }
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    spec.insert("selector".into(), selector);
}
