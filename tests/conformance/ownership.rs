//! Sends random patches and applies to a real server, and repeats each one with the code of the embedded API.
//! Both must give the same object with the same field owners.
//!
//! Every step starts from the object on the real server, so that one difference does not hide the next one.

mod subjects;

use kube::Client;
use kube_embedded::apply::{self, Manager, Operation};
use kube_embedded::patch;
use serde_json::{Map, Value, json};

use self::subjects::{Dice, Subject, object, some, subjects, texts, widget_schema};

/// Returns a copy of the object, without the fields whose values only the server decides.
fn comparable(object: &Value) -> Value {
    let mut out = object.clone();
    if let Some(metadata) = out.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in [
            "creationTimestamp",
            "generation",
            "resourceVersion",
            "uid",
            "namespace",
        ] {
            metadata.remove(key);
        }
        let entries = metadata
            .get_mut("managedFields")
            .and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten() {
            if let Some(time) = entry.get_mut("time") {
                *time = json!("some time");
            }
        }
        // The entries are sorted, because entries of the same second have no fixed order.
        if let Some(entries) = metadata
            .get_mut("managedFields")
            .and_then(Value::as_array_mut)
        {
            entries.sort_by_key(ToString::to_string);
        }
    }
    out
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content: &str,
    body: &Value,
) -> Result<Value, String> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", content)
        .body(body.to_string().into_bytes())
        .map_err(|e| e.to_string())?;
    match client.request_text(request).await {
        Ok(text) => serde_json::from_str(&text).map_err(|e| e.to_string()),
        Err(kube::Error::Api(status)) => {
            Ok(json!({"kind": "Status", "code": status.code, "message": status.message}))
        }
        Err(e) => Err(e.to_string()),
    }
}

async fn install(client: &Client) -> Result<(), String> {
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ownership.bowline.dev"},
        "spec": {"group": "ownership.bowline.dev", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": widget_schema()}}]}});
    send(
        client,
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "application/json",
        &crd,
    )
    .await?;
    let probe = json!({"apiVersion": "ownership.bowline.dev/v1", "kind": "Widget", "metadata": {"name": "probe"}});
    for _ in 0..200 {
        let answer = send(
            client,
            "POST",
            "/apis/ownership.bowline.dev/v1/namespaces/default/widgets?dryRun=All",
            "application/json",
            &probe,
        )
        .await;
        if matches!(&answer, Ok(found) if found["kind"] == "Widget") {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Err("the server does not serve the new kind".to_owned())
}

/// Writes `steps` times to one object of every kind, and compares each answer. The error contains the
/// differences.
pub async fn check(client: &Client, seed: u64, steps: usize) -> Result<(), String> {
    install(client).await?;
    let mut dice = Dice(seed.max(1));
    let mut wrong = Vec::new();
    for subject in subjects() {
        let name = format!("ownership-{seed}");
        let path = format!("{}/{name}", subject.path);
        send(client, "DELETE", &path, "application/json", &json!({})).await?;
        let mut live: Option<Value> = None;
        for step in 0..steps {
            let (description, ours, theirs) =
                one_step(client, &subject, &name, &path, live.as_ref(), &mut dice).await?;
            let refused = theirs["kind"] == "Status";
            match ours {
                Ok(ours) if !refused => {
                    let (ours, theirs) = (comparable(&ours), comparable(&theirs));
                    if ours != theirs {
                        let mut found = Vec::new();
                        crate::builtin::differences("", &ours, &theirs, &mut found);
                        wrong.push(format!(
                            "{} step {step}, {description}:\n  {}",
                            subject.kind,
                            found.join("\n  ")
                        ));
                    }
                }
                Err(message) if refused => {
                    if theirs["message"] != json!(message) {
                        wrong.push(format!(
                            "{} step {step}, {description}: here {message:?}, there {}",
                            subject.kind, theirs["message"]
                        ));
                    }
                }
                // The real server refused the write for a validation that this part of the embedded API does
                // not do.
                Ok(_) if theirs["code"] == 422 => {}
                Ok(_) => wrong.push(format!(
                    "{} step {step}, {description}: only there refused: {}",
                    subject.kind, theirs["message"]
                )),
                Err(message) => wrong.push(format!(
                    "{} step {step}, {description}: only here refused: {message}",
                    subject.kind
                )),
            }
            if !refused {
                live = Some(theirs);
            }
        }
        send(client, "DELETE", &path, "application/json", &json!({})).await?;
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

async fn one_step(
    client: &Client,
    subject: &Subject,
    name: &str,
    path: &str,
    live: Option<&Value>,
    dice: &mut Dice,
) -> Result<(String, Result<Value, String>, Value), String> {
    let mut body = (subject.make)(dice);
    let mut metadata = object(vec![("labels", some(dice, texts)), ("finalizers", None)]);
    metadata.insert("name".to_owned(), json!(name));
    body.insert("metadata".to_owned(), Value::Object(metadata));
    body.insert("apiVersion".to_owned(), json!(subject.api_version));
    body.insert("kind".to_owned(), json!(subject.kind));
    let manager_name = *dice.pick(&["ann", "bob", "kubectl"]);
    let mut manager = Manager {
        name: manager_name,
        operation: Operation::Update,
        api_version: subject.api_version,
        subresource: None,
        time: "2030-01-01T00:00:00Z",
        reset_fields: subject.reset.0,
    };
    let finish = |mut object: Value| {
        subject.schema.fill_defaults(&mut object);
        object
    };
    let track = |mut object: Value, manager: &Manager<'_>| {
        subject.schema.prune(&mut object);
        subject.schema.fill_defaults(&mut object);
        apply::track_update(&subject.schema, live, &mut object, manager);
        object
    };
    let how = dice.roll(if subject.strategic { 9 } else { 7 });
    let Some(current) = live else {
        if how < 3 {
            return apply_step(client, subject, path, None, body, manager, dice, &finish).await;
        }
        for (key, value) in (subject.must)() {
            body.entry(key).or_insert(value);
        }
        let body = Value::Object(body);
        let theirs = send(
            client,
            "POST",
            &format!("{}?fieldManager={manager_name}", subject.path),
            "application/json",
            &body,
        )
        .await?;
        return Ok((
            format!("create by {manager_name} {body}"),
            Ok(track(body, &manager)),
            theirs,
        ));
    };
    if let Some(status) = subject.status.filter(|_| dice.roll(4) == 0) {
        manager.subresource = Some("status");
        manager.reset_fields = subject.reset.1;
        let body = json!({"apiVersion": subject.api_version, "kind": subject.kind, "metadata": {"name": name},
            "spec": {}, "status": status(dice)});
        return status_step(client, subject, path, current, body, manager, dice).await;
    }
    match how {
        0..=3 => {
            manager.operation = Operation::Apply;
            if dice.roll(6) == 0 {
                body.retain(|k, _| matches!(k.as_str(), "apiVersion" | "kind" | "metadata"));
            }
            apply_step(client, subject, path, live, body, manager, dice, &finish).await
        }
        4 | 5 => {
            if dice.roll(8) == 0 {
                let empty = dice.pick(&[json!([]), json!([{}])]).clone();
                body.insert("metadata".to_owned(), json!({"managedFields": empty}));
            }
            let mut body = Value::Object(body);
            if dice.maybe() {
                body["metadata"]["labels"] = json!({"a": null});
            }
            let ours = patch::merge_patch(current, &body).map_err(|e| e.message());
            let content = "application/merge-patch+json";
            let theirs = send(
                client,
                "PATCH",
                &format!("{path}?fieldManager={manager_name}"),
                content,
                &body,
            )
            .await?;
            Ok((
                format!("merge patch by {manager_name} {body}"),
                ours.map(|o| track(o, &manager)),
                theirs,
            ))
        }
        6 => {
            let mut body = Value::Object(body);
            for key in ["resourceVersion", "uid", "creationTimestamp", "generation"] {
                body["metadata"][key] = current["metadata"][key].clone();
            }
            if dice.maybe() {
                body["metadata"]["managedFields"] = current["metadata"]["managedFields"].clone();
            }
            let theirs = send(
                client,
                "PUT",
                &format!("{path}?fieldManager={manager_name}"),
                "application/json",
                &body,
            )
            .await?;
            let mut ours = body.clone();
            if let Some(status) = current.get("status").filter(|_| subject.status.is_some()) {
                ours["status"] = status.clone();
            }
            Ok((
                format!("replace by {manager_name} {body}"),
                Ok(track(ours, &manager)),
                theirs,
            ))
        }
        _ => {
            let body = strategic_body(body, current, dice);
            let ours =
                patch::strategic_merge(&subject.schema, current, &body).map_err(|e| e.message());
            let content = "application/strategic-merge-patch+json";
            let theirs = send(
                client,
                "PATCH",
                &format!("{path}?fieldManager={manager_name}"),
                content,
                &body,
            )
            .await?;
            Ok((
                format!("strategic patch by {manager_name} {body}"),
                ours.map(|o| track(o, &manager)),
                theirs,
            ))
        }
    }
}

/// Writes a random status by merge patch or by apply, and compares the result. The write must change nothing
/// outside the status.
async fn status_step(
    client: &Client,
    subject: &Subject,
    path: &str,
    current: &Value,
    mut body: Value,
    mut manager: Manager<'_>,
    dice: &mut Dice,
) -> Result<(String, Result<Value, String>, Value), String> {
    let force = dice.roll(3) > 0;
    let applies = dice.maybe();
    let (content, query, ours) = if applies {
        manager.operation = Operation::Apply;
        if let Some(body) = body.as_object_mut() {
            body.remove("spec");
        }
        let ours = apply::apply(&subject.schema, Some(current), &body, &manager, force).map(
            |mut object| {
                subject.schema.fill_defaults(&mut object);
                object
            },
        );
        (
            "application/apply-patch+yaml",
            format!("&force={force}"),
            ours.map_err(|e| e.to_string()),
        )
    } else {
        let mut object = patch::merge_patch(current, &body).map_err(|e| e.message())?;
        subject.schema.fill_defaults(&mut object);
        apply::track_update(&subject.schema, Some(current), &mut object, &manager);
        ("application/merge-patch+json", String::new(), Ok(object))
    };
    let ours = ours.map(|written| {
        let mut object = current.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
            let owners = written.pointer("/metadata/managedFields").cloned();
            metadata.extend(owners.map(|o| ("managedFields".to_owned(), o)));
        }
        match written.get("status") {
            Some(status) => object["status"] = status.clone(),
            None => object
                .as_object_mut()
                .into_iter()
                .for_each(|o| drop(o.remove("status"))),
        }
        object
    });
    let theirs = send(
        client,
        "PATCH",
        &format!("{path}/status?fieldManager={}{query}", manager.name),
        content,
        &body,
    )
    .await?;
    Ok((
        format!(
            "status by {} (apply {applies}, force {force}) {body}",
            manager.name
        ),
        ours,
        theirs,
    ))
}

/// Adds random directives such as `$patch` to a strategic merge patch.
fn strategic_body(body: Map<String, Value>, current: &Value, dice: &mut Dice) -> Value {
    let mut body = Value::Object(body);
    let pod = "/spec/template/spec";
    if let Some(spec) = body.pointer_mut(pod).and_then(Value::as_object_mut) {
        match dice.roll(4) {
            0 => {
                let live = current
                    .pointer("/spec/template/spec/containers")
                    .and_then(Value::as_array);
                let gone = live
                    .and_then(|l| l.last())
                    .map_or(json!("none"), |c| c["name"].clone());
                spec.insert(
                    "containers".to_owned(),
                    json!([{"name": gone, "$patch": "delete"}, {"name": "new", "image": "n"}]),
                );
            }
            1 => {
                let order: Vec<Value> = spec["containers"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .map(|c| json!({"name": c["name"]}))
                    .collect();
                spec.insert(
                    "$setElementOrder/containers".to_owned(),
                    Value::Array(order),
                );
            }
            2 => {
                if let Some(containers) = spec.get_mut("containers").and_then(Value::as_array_mut) {
                    containers.insert(0, json!({"$patch": "replace"}));
                }
            }
            _ => {}
        }
    }
    if let Some(strategy) = body
        .pointer_mut("/spec/strategy")
        .and_then(Value::as_object_mut)
    {
        let keys: Vec<String> = strategy.keys().cloned().collect();
        strategy.insert("$retainKeys".to_owned(), json!(keys));
    }
    body
}

#[allow(clippy::too_many_arguments)]
async fn apply_step(
    client: &Client,
    subject: &Subject,
    path: &str,
    live: Option<&Value>,
    mut body: Map<String, Value>,
    mut manager: Manager<'_>,
    dice: &mut Dice,
    finish: &(dyn Fn(Value) -> Value + Sync),
) -> Result<(String, Result<Value, String>, Value), String> {
    manager.operation = Operation::Apply;
    if let Some(strategy) = body
        .get_mut("spec")
        .and_then(|s| s.get_mut("strategy"))
        .and_then(Value::as_object_mut)
    {
        strategy.retain(|_, v| !v.is_null());
    }
    let force = dice.roll(3) > 0;
    let body = Value::Object(body);
    let ours = apply::apply(&subject.schema, live, &body, &manager, force);
    let theirs = send(
        client,
        "PATCH",
        &format!("{path}?fieldManager={}&force={force}", manager.name),
        "application/apply-patch+yaml",
        &body,
    )
    .await?;
    let ours = ours.map_err(|e| e.to_string()).map(finish);
    Ok((
        format!("apply by {} (force {force}) {body}", manager.name),
        ours,
        theirs,
    ))
}
