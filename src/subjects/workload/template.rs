//! Pod templates of workloads: their hash, their images as short text, and the form in which revisions store them.

use serde_json::{Map, Value};

use crate::api::digest;

/// The kind Deployment. Unlike the other workloads, it stores revisions as ReplicaSets and can be paused.
pub(super) const DEPLOYMENT_KIND: &str = "Deployment";
/// The path of the pod template in a workload.
pub(super) const TEMPLATE: &[&str] = &["spec", "template"];
/// The path of the field that pauses the rollouts of a Deployment.
pub(super) const PAUSED: &[&str] = &["spec", "paused"];
/// The label that Kubernetes adds to the template of each ReplicaSet.
const TEMPLATE_HASH: &str = "pod-template-hash";
/// The annotation in which `kubectl rollout restart` sets the time of the restart.
const RESTARTED: &str = "kubectl.kubernetes.io/restartedAt";
/// The largest number of images in a short text.
const NAMED: usize = 2;
/// The number of digits that a short text shows of an image digest.
const DIGEST: usize = 7;

/// Removes the parts that Kubernetes added to a stored template: the label of a ReplicaSet, or the patch directive of
/// a ControllerRevision.
pub fn plain(mut template: Value) -> Value {
    if let Some(fields) = template.as_object_mut() {
        fields.remove("$patch");
    }
    let labels = template.pointer_mut("/metadata/labels");
    if let Some(labels) = labels.and_then(Value::as_object_mut) {
        labels.remove(TEMPLATE_HASH);
    }
    // A template without labels or annotations has no map for them. So a map that is now empty is removed, to get the
    // original template.
    for path in ["labels", "annotations"] {
        let metadata = template.get_mut("metadata").and_then(Value::as_object_mut);
        if let Some(metadata) = metadata
            && metadata
                .get(path)
                .and_then(Value::as_object)
                .is_some_and(Map::is_empty)
        {
            metadata.remove(path);
        }
    }
    template
}

/// Returns the hash of a template. Two templates with the same hash create equal pods: the time of a restart does not
/// matter.
pub fn hash(template: &Value) -> String {
    let mut template = template.clone();
    let annotations = template.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove(RESTARTED);
    }
    let mut template = plain(template);
    // Kubernetes 1.36 writes `creationTimestamp: null` into some stored templates and not into others.
    let metadata = template.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.retain(|_, value| !value.is_null());
    }
    digest::of(&template)
}

/// Returns the images of a template as short text, such as `web:1.27.1` or `web:1.27.1 api@9f1c2e0 +1`.
pub fn images(template: &Value) -> String {
    let containers = template
        .pointer("/spec/containers")
        .and_then(Value::as_array);
    let images: Vec<String> = containers
        .into_iter()
        .flatten()
        .filter_map(|container| Some(short(container.get("image")?.as_str()?)))
        .collect();
    let mut words: Vec<String> = images.iter().take(NAMED).cloned().collect();
    if images.len() > NAMED {
        words.push(format!("+{}", images.len() - NAMED));
    }
    match words.is_empty() {
        true => "no image".to_owned(),
        false => words.join(" ").chars().take(200).collect(),
    }
}

/// Shortens an image to the last segment of its path, and a digest to its first digits.
fn short(image: &str) -> String {
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once('@') {
        // If an image has both a tag and a digest, the text shows the tag, because it tells the user more.
        Some((tagged, _)) if tagged.contains(':') => tagged.to_owned(),
        Some((name, digest)) => {
            let hex = digest.rsplit(':').next().unwrap_or(digest);
            format!("{name}@{}", hex.chars().take(DIGEST).collect::<String>())
        }
        None => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn images_are_short() {
        let digest = "sha256:9f1c2e0aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        for (images, expected) in [
            (
                vec!["registry.example.com:5000/shop/web:1.27.1".to_owned()],
                "web:1.27.1",
            ),
            (vec![format!("api@{digest}")], "api@9f1c2e0"),
            (vec![format!("example.com/api:v2@{digest}")], "api:v2"),
            (
                vec!["a".to_owned(), "b:1".to_owned(), "c:2".to_owned()],
                "a b:1 +1",
            ),
            (vec![], "no image"),
        ] {
            let containers: Vec<Value> = images
                .iter()
                .map(|image| json!({"name": "c", "image": image}))
                .collect();
            let template = json!({"spec": {"containers": containers}});
            assert_eq!(super::images(&template), expected);
        }
    }

    #[test]
    fn a_stored_template_has_the_hash_of_its_workload() {
        let own = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}});
        for stored in [
            json!({"metadata": {"labels": {"app": "web", "pod-template-hash": "5d"}}, "spec": {"containers": []}}),
            json!({"$patch": "replace", "metadata": {"creationTimestamp": null, "labels": {"app": "web"}}, "spec": {"containers": []}}),
            json!({"metadata": {"labels": {"app": "web"}, "annotations": {}}, "spec": {"containers": []}}),
            json!({"metadata": {"labels": {"app": "web"}, "annotations": {RESTARTED: "2026-01-06T08:00:00Z"}}, "spec": {"containers": []}}),
        ] {
            assert_eq!(hash(&stored), hash(&own), "{stored}");
        }
        let other = json!({"metadata": {"labels": {"app": "api"}}, "spec": {"containers": []}});
        assert_ne!(hash(&other), hash(&own));
    }
}
