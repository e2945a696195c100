//! Finds the values of an installed object that somebody else has set, so that `install` keeps them. The functions
//! are pure.
//!
//! A value that somebody changed has another field manager. The server reports it as a conflict, and `install` then
//! leaves the field out. A field that somebody removed has no field manager. So `install` also compares the live
//! object with the manifest of the last installation.

use serde_json::Value;

use crate::api::labels;

/// The fields that can identify an item of a list. The first that an item has is used.
const KEYS: [&str; 5] = ["name", "mountPath", "containerPort", "port", "topologyKey"];

/// A field that somebody else has set, so that the server refuses bowline's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The path of the field in the form of the server: `.spec.template.spec.containers[name="controller"].image`.
    pub field: String,
    /// The names of the field managers that have set the field.
    pub managers: Vec<String>,
}

/// Returns the fields that the server refused to change, because another field manager owns them. Empty for any other
/// error.
pub fn conflicts(error: &kube::Error) -> Vec<Conflict> {
    let kube::Error::Api(status) = error else {
        return Vec::new();
    };
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let mut found: Vec<Conflict> = Vec::new();
    for cause in causes.filter(|cause| cause.reason == "FieldManagerConflict") {
        let manager = cause.message.split('"').nth(1);
        let manager = manager.unwrap_or("somebody else").to_owned();
        // The server lists a field once for each field manager, so these entries are combined.
        match found.iter_mut().find(|it| it.field == cause.field) {
            Some(known) if known.managers.contains(&manager) => {}
            Some(known) => known.managers.push(manager),
            None => found.push(Conflict {
                field: cause.field.clone(),
                managers: vec![manager],
            }),
        }
    }
    found
}

/// Writes the manifest of an object into an annotation of the same object. The next installation compares with it.
pub fn record(object: &mut Value) {
    let text = object.to_string();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let annotations = metadata
            .entry("annotations")
            .or_insert_with(|| Value::Object(Default::default()));
        if let Some(annotations) = annotations.as_object_mut() {
            annotations.insert(labels::LAST_INSTALLED.to_owned(), text.into());
        }
    }
}

/// Returns the manifest of the last installation from the annotation of a live object; None if the annotation is
/// missing or cannot be parsed.
pub fn recorded(live: &Value) -> Option<Value> {
    let annotations = live.get("metadata")?.get("annotations")?;
    let text = annotations.get(labels::LAST_INSTALLED)?.as_str()?;
    serde_json::from_str(text).ok()
}

/// Removes those fields from the manifest `object` that the last installation applied and that somebody has removed
/// from the live object. Returns the paths of these fields.
pub fn without_removed(object: &mut Value, last: &Value, live: &Value) -> Vec<String> {
    let mut removed = Vec::new();
    compare(object, last, live, "", &mut removed);
    removed
}

fn compare(object: &mut Value, last: &Value, live: &Value, path: &str, removed: &mut Vec<String>) {
    match (object, last, live) {
        (Value::Object(fields), Value::Object(last), Value::Object(live)) => {
            fields.retain(|name, value| {
                let path = format!("{path}.{name}");
                match (last.get(name), live.get(name)) {
                    (Some(_), None) => {
                        removed.push(path);
                        return false;
                    }
                    (Some(last), Some(live)) => compare(value, last, live, &path, removed),
                    (None, _) => {}
                }
                true
            });
        }
        (Value::Array(items), Value::Array(last), Value::Array(live)) => {
            items.retain_mut(|item| {
                let Some((key, value)) = key(item) else {
                    return true;
                };
                let of =
                    |list: &[Value]| list.iter().find(|it| it.get(key) == Some(&value)).cloned();
                let path = format!("{path}[{key}={value}]");
                match (of(last), of(live)) {
                    (Some(_), None) => {
                        removed.push(path);
                        return false;
                    }
                    (Some(last), Some(live)) => compare(item, &last, &live, &path, removed),
                    (None, _) => {}
                }
                true
            });
        }
        _ => {}
    }
}

/// Returns the name and the value of the field that identifies an item of a list; None if the item has none of these
/// fields.
fn key(item: &Value) -> Option<(&'static str, Value)> {
    let mut keys = KEYS.iter();
    keys.find_map(|key| Some((*key, item.get(*key)?.clone())))
}

/// Removes the field at a path from an object, and returns the value of the field. None if the object does not have
/// it.
pub fn take_out(object: &mut Value, field: &str) -> Option<Value> {
    match object {
        Value::Object(fields) => {
            // A field name may contain dots, so the longest field name that is a prefix of the path is used.
            let rest = field.strip_prefix('.')?;
            let fits = |name: &&String| {
                let rest = rest.strip_prefix(name.as_str());
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
            };
            let names = fields.keys().filter(fits);
            let name = names.max_by_key(|name| name.len())?.clone();
            match rest.get(name.len()..)? {
                "" => fields.remove(&name),
                rest => take_out(fields.get_mut(&name)?, rest),
            }
        }
        Value::Array(items) => {
            let (wanted, rest) = selector(field)?;
            let at = items.iter().position(|item| is_meant(item, &wanted))?;
            match rest {
                "" => Some(items.remove(at)),
                rest => take_out(items.get_mut(at)?, rest),
            }
        }
        _ => None,
    }
}

/// Returns whether a live value contains everything that a manifest contains. It may contain more, because the server
/// adds defaults.
pub fn is_covered(manifest: &Value, live: &Value) -> bool {
    match (manifest, live) {
        (Value::Object(manifest), Value::Object(live)) => manifest.iter().all(|(name, value)| {
            let live = live.get(name);
            live.is_some_and(|live| is_covered(value, live))
        }),
        (Value::Array(manifest), Value::Array(live)) => {
            let mut pairs = manifest.iter().zip(live);
            manifest.len() == live.len() && pairs.all(|(value, live)| is_covered(value, live))
        }
        (manifest, live) => manifest == live,
    }
}

/// Parses a selector such as `[name="a",protocol="TCP"]` or `[="a"]` at the start of a path. Returns the selector and
/// the rest of the path; None if the path has another form.
fn selector(field: &str) -> Option<(Vec<(String, Value)>, &str)> {
    let mut rest = field.strip_prefix('[')?;
    let mut wanted = Vec::new();
    loop {
        let (key, after) = rest.split_once('=')?;
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        let value = values.next()?.ok()?;
        wanted.push((key.to_owned(), value));
        let after = after.get(values.byte_offset()..)?;
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None => return Some((wanted, after.strip_prefix(']')?)),
        }
    }
}

/// Returns whether a selector selects this item of a list. A field that the item does not have also matches, because
/// the server adds defaults.
fn is_meant(item: &Value, wanted: &[(String, Value)]) -> bool {
    wanted.iter().all(|(key, value)| match key.as_str() {
        "" => item == value,
        key => item.get(key).is_none_or(|found| found == value),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_field_is_taken_out_as_the_server_names_it() {
        let object = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "a", "app": "b"}, "finalizers": ["x", "y"]},
            "spec": {
                "replicas": 2,
                "containers": [{"name": "controller", "image": "a", "args": ["b"], "env": [
                    {"name": "HOME", "value": "/"}, {"name": "PATH", "value": "/bin"},
                ]}],
                "ports": [{"port": 8080, "name": "http"}],
            },
        });
        for (field, pointer, left) in [
            (".spec.replicas", "/spec/replicas", None),
            (
                ".metadata.labels.app.kubernetes.io/name",
                "/metadata/labels",
                Some(json!({"app": "b"})),
            ),
            (
                r#".spec.containers[name="controller"].image"#,
                "/spec/containers/0/image",
                None,
            ),
            (
                r#".spec.containers[name="controller"].args"#,
                "/spec/containers/0/args",
                None,
            ),
            (
                r#".spec.containers[name="controller"].env[name="PATH"].value"#,
                "/spec/containers/0/env/1",
                Some(json!({"name": "PATH"})),
            ),
            (
                r#".spec.ports[port=8080,protocol="TCP"].name"#,
                "/spec/ports/0",
                Some(json!({"port": 8080})),
            ),
            (
                r#".metadata.finalizers[="x"]"#,
                "/metadata/finalizers",
                Some(json!(["y"])),
            ),
        ] {
            let mut changed = object.clone();
            assert!(take_out(&mut changed, field).is_some(), "{field}");
            assert_eq!(changed.pointer(pointer), left.as_ref(), "{field}");
        }
        for field in [
            "",
            "spec",
            ".spec.rep",
            ".spec.replicas.more",
            ".spec.containers[name=\"other\"].image",
            ".spec.containers[0].image",
            ".spec.containers[name=",
            ".status",
        ] {
            let mut changed = object.clone();
            assert_eq!(take_out(&mut changed, field), None, "{field}");
            assert_eq!(changed, object, "{field}");
        }
    }

    #[test]
    fn a_field_of_two_managers_is_one_conflict() {
        let cause = |manager: &str, field: &str| {
            json!({"reason": "FieldManagerConflict", "field": field,
                "message": format!("conflict with \"{manager}\" using apps/v1")})
        };
        let status = json!({"status": "Failure", "code": 409, "message": "", "reason": "Conflict", "details": {"causes": [
            cause("kubectl", ".spec.replicas"), cause("helm", ".spec.replicas"), cause("helm", ".spec.replicas"),
            cause("helm", ".spec.paused"), {"reason": "Other", "field": ".spec", "message": ""},
        ]}});
        let status: kube::core::Status = serde_json::from_value(status).unwrap();
        let found = conflicts(&kube::Error::Api(status.boxed()));
        let conflict = |field: &str, managers: &[&str]| Conflict {
            field: field.to_owned(),
            managers: managers.iter().map(|it| (*it).to_owned()).collect(),
        };
        let expected = [
            conflict(".spec.replicas", &["kubectl", "helm"]),
            conflict(".spec.paused", &["helm"]),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_somebody_removed_stays_removed() {
        let object = |more: Value| {
            json!({
                "metadata": {"labels": {"a": "1", "b": "2"}},
                "spec": {
                    "limits": {"memory": "1Gi"}, "rules": [{"verbs": ["get"]}],
                    "env": [{"name": "HOME", "value": "/"}, {"name": "CACHE", "value": "/c"}],
                },
                "new": more,
            })
        };
        let last = {
            let mut last = object(json!(null));
            last.as_object_mut().unwrap().remove("new");
            last
        };
        let live = json!({
            "metadata": {"labels": {"b": "3"}, "annotations": {"c": "4"}},
            "spec": {"rules": [], "env": [{"name": "HOME", "value": "/home"}]},
        });
        let mut next = object(json!({"field": 1}));
        let removed = without_removed(&mut next, &last, &live);
        assert_eq!(
            removed,
            [
                ".metadata.labels.a",
                ".spec.env[name=\"CACHE\"]",
                ".spec.limits"
            ]
        );
        let expected = json!({
            "metadata": {"labels": {"b": "2"}},
            "spec": {"rules": [{"verbs": ["get"]}], "env": [{"name": "HOME", "value": "/"}]},
            // The manifest of the last installation did not have this field, so nobody can have removed it.
            "new": {"field": 1},
        });
        assert_eq!(next, expected);
    }

    #[test]
    fn defaults_of_the_server_are_no_difference() {
        let manifest = json!({"rules": [{"verbs": ["get"]}], "policy": {"a": 1}});
        for (live, is) in [
            (
                json!({"rules": [{"verbs": ["get"], "scope": "*"}], "policy": {"a": 1, "b": {}}}),
                true,
            ),
            (
                json!({"rules": [{"verbs": ["get", "list"]}], "policy": {"a": 1}}),
                false,
            ),
            (
                json!({"rules": [{"verbs": ["get"]}], "policy": {"a": 2}}),
                false,
            ),
            (json!({"rules": [{"verbs": ["get"]}]}), false),
            (json!(null), false),
        ] {
            assert_eq!(is_covered(&manifest, &live), is, "{live}");
        }
    }

    #[test]
    fn what_was_applied_is_read_again() {
        let object = json!({"kind": "Service", "metadata": {"name": "a"}, "spec": {"b": 1}});
        let mut applied = object.clone();
        record(&mut applied);
        assert_eq!(recorded(&applied), Some(object.clone()));
        assert_eq!(recorded(&object), None);
    }
}
