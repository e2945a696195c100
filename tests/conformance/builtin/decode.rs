//! Sends built-in kinds with values of wrong types. The embedded API must report the same field with the same
//! message as the real server.

use kube::Client;
use kube_embedded::builtin;
use serde_json::{Value, json};

fn cases() -> Vec<(&'static str, Value)> {
    let container = "/spec/template/spec/containers/0";
    let mut cases = vec![
        ("/metadata", json!("x")),
        ("/metadata/creationTimestamp", json!("x")),
        ("/metadata/creationTimestamp", json!(5)),
        ("/metadata/finalizers", json!("x")),
        ("/metadata/finalizers", json!([1])),
        ("/metadata/generation", json!("5")),
        ("/metadata/labels", json!({"a": 1})),
        ("/metadata/labels", json!(["a"])),
        ("/metadata/name", json!(1)),
        ("/metadata/ownerReferences", json!([{"controller": "x"}])),
        ("/spec", json!("x")),
        ("/spec", json!([])),
        ("/spec/paused", json!("x")),
        ("/spec/paused", json!(1)),
        ("/spec/replicas", json!("x")),
        ("/spec/replicas", json!(1.5)),
        ("/spec/replicas", json!(true)),
        ("/spec/replicas", json!({})),
        ("/spec/replicas", json!(5_000_000_000_i64)),
        ("/spec/selector", json!("x")),
        ("/spec/selector/matchLabels", json!({"a": true})),
        (
            "/spec/strategy",
            json!({"rollingUpdate": {"maxSurge": true}}),
        ),
        ("/spec/strategy", json!({"rollingUpdate": {"maxSurge": {}}})),
        (
            "/spec/strategy",
            json!({"rollingUpdate": {"maxSurge": 1.5}}),
        ),
        ("/spec/template", json!(1)),
        ("/spec/template/spec/containers", json!({})),
        ("/spec/template/spec/containers", json!("x")),
        ("/spec/template/spec/containers", json!(["x"])),
        ("/spec/template/spec/nodeSelector", json!({"a": {}})),
        (
            "/spec/template/spec/terminationGracePeriodSeconds",
            json!("x"),
        ),
    ];
    for (field, value) in [
        ("image", json!(3)),
        ("ports", json!([{"containerPort": "x"}])),
        ("resources", json!({"limits": {"cpu": "abc"}})),
        ("resources", json!({"limits": {"cpu": true}})),
        ("resources", json!({"limits": ["x"]})),
        ("env", json!([{"name": 1}])),
        ("args", json!([1])),
        ("args", json!("x")),
    ] {
        cases.push((container, json!({"name": "c", field: value})));
    }
    cases
}

/// Sends every case to the real server as a dry run. Compares the message with the message of the embedded
/// API.
pub async fn check(client: &Client) -> Result<(), String> {
    let schema =
        builtin::schema("apps", "v1", "Deployment").ok_or("Deployment is not in the table")?;
    let mut wrong = Vec::new();
    for (pointer, value) in cases() {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "decode"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        let (parent, key) = pointer.rsplit_once('/').unwrap_or_default();
        match object.pointer_mut(parent) {
            Some(Value::Array(items)) => items[0] = value.clone(),
            Some(holder) => holder[key] = value.clone(),
            None => return Err(format!("{pointer} leads nowhere")),
        }
        let request =
            http::Request::post("/apis/apps/v1/namespaces/default/deployments?dryRun=All")
                .header("Content-Type", "application/json")
                .body(object.to_string().into_bytes())
                .map_err(|e| e.to_string())?;
        let theirs = match client.request_text(request).await {
            Ok(_) => "accepted".to_owned(),
            Err(kube::Error::Api(status)) => status.message,
            Err(e) => return Err(e.to_string()),
        };
        let ours = schema
            .type_errors(&object)
            .first()
            .map_or("accepted".to_owned(), |e| {
                format!(
                    "Deployment in version \"v1\" cannot be handled as a Deployment: {}",
                    e.message
                )
            });
        if ours != theirs {
            wrong.push(format!(
                "{pointer} {value}:\n  here {ours}\n  there {theirs}"
            ));
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}
