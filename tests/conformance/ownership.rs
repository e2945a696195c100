//! Random writes on a real server, each repeated here: patches, apply and the owners of fields must agree.
//!
//! Every step starts from what the server holds, so one difference does not hide the next.

use bowline::embedded::apply::{self, Manager, Operation};
use bowline::embedded::builtin;
use bowline::embedded::patch;
use bowline::embedded::schema::Schema;
use kube::Client;
use serde_json::{Map, Value, json};

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn maybe(&mut self) -> bool {
        self.roll(2) == 0
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len() as u64) as usize]
    }
}

/// A kind to write to, and how to make something of it.
struct Subject {
    path: &'static str,
    api_version: &'static str,
    kind: &'static str,
    schema: std::sync::Arc<Schema>,
    strategic: bool,
    make: fn(&mut Dice) -> Map<String, Value>,
    must: fn() -> Map<String, Value>,
    /// What its status may be, and what writes of the object and of its status leave alone.
    status: Option<fn(&mut Dice) -> Value>,
    reset: (&'static [&'static str], &'static [&'static str]),
}

fn widget_schema() -> Value {
    let text = json!({"type": "string"});
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer", "default": 3}, "name": text,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "rows": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id", "kind"],
            "items": {"type": "object", "required": ["id"], "properties": {
                "id": text, "kind": {"type": "string", "default": "x"}, "value": text,
                "inner": {"type": "object", "additionalProperties": text}}}},
        "atoms": {"type": "array", "items": text},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"a": text, "b": text}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}},
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"},
            "conditions": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
                "items": {"type": "object", "required": ["type"], "properties": {"type": text, "status": text, "reason": text}}}}}}})
}

fn object(pairs: Vec<(&str, Option<Value>)>) -> Map<String, Value> {
    pairs
        .into_iter()
        .filter_map(|(k, v)| v.map(|v| (k.to_owned(), v)))
        .collect()
}

fn some(dice: &mut Dice, make: impl FnOnce(&mut Dice) -> Value) -> Option<Value> {
    dice.maybe().then(|| make(dice))
}

fn word(dice: &mut Dice) -> Value {
    json!(dice.pick(&["p", "q", "r"]))
}

fn words(dice: &mut Dice) -> Value {
    let mut all = vec!["p", "q", "r", "s"];
    let mut out = Vec::new();
    for _ in 0..dice.roll(4) {
        let at = dice.roll(all.len() as u64) as usize;
        out.push(all.remove(at));
    }
    json!(out)
}

fn texts(dice: &mut Dice) -> Value {
    let map = object(vec![
        ("a", some(dice, word)),
        ("b", some(dice, word)),
        ("c", some(dice, word)),
    ]);
    Value::Object(map)
}

fn widget(dice: &mut Dice) -> Map<String, Value> {
    let rows = |dice: &mut Dice| {
        let mut ids = vec![("1", None), ("1", Some("y")), ("2", None), ("3", Some("x"))];
        let mut out = Vec::new();
        for _ in 0..dice.roll(4) {
            let at = dice.roll(ids.len() as u64) as usize;
            let (id, kind) = ids.remove(at);
            out.push(Value::Object(object(vec![
                ("id", Some(json!(id))),
                ("kind", kind.map(|k| json!(k))),
                ("value", some(dice, word)),
                ("inner", some(dice, texts)),
            ])));
        }
        Value::Array(out)
    };
    let spec = object(vec![
        ("size", some(dice, |d| json!(d.roll(3)))),
        ("name", some(dice, word)),
        ("tags", some(dice, words)),
        ("rows", some(dice, rows)),
        ("atoms", some(dice, words)),
        ("whole", some(dice, texts)),
        (
            "map",
            some(dice, |d| {
                Value::Object(object(vec![("x", some(d, texts)), ("y", some(d, texts))]))
            }),
        ),
        (
            "free",
            some(dice, |d| {
                Value::Object(object(vec![
                    ("m", some(d, texts)),
                    ("l", some(d, words)),
                    ("s", some(d, word)),
                ]))
            }),
        ),
    ]);
    object(vec![("spec", Some(Value::Object(without_extra(spec))))])
}

/// The map's values declare only a and b.
fn without_extra(mut spec: Map<String, Value>) -> Map<String, Value> {
    for entry in spec
        .get_mut("map")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(|m| m.values_mut())
    {
        if let Some(entry) = entry.as_object_mut() {
            entry.remove("c");
        }
    }
    spec
}

fn config_map(dice: &mut Dice) -> Map<String, Value> {
    object(vec![("data", some(dice, texts)), ("immutable", None)])
}

fn deployment(dice: &mut Dice) -> Map<String, Value> {
    let containers = |dice: &mut Dice| {
        let mut out = vec![];
        for name in ["main", "side", "third"] {
            if name == "main" || dice.roll(3) == 0 {
                let ports = |dice: &mut Dice| {
                    let mut out = Vec::new();
                    for (port, protocol) in [(80, None), (80, Some("UDP")), (443, Some("TCP"))] {
                        if dice.maybe() {
                            out.push(Value::Object(object(vec![
                                ("containerPort", Some(json!(port))),
                                ("protocol", protocol.map(|p| json!(p))),
                                (
                                    "name",
                                    some(dice, |d| {
                                        json!(format!(
                                            "{}{port}{}",
                                            d.pick(&["p", "q"]),
                                            protocol.unwrap_or("x").to_lowercase()
                                        ))
                                    }),
                                ),
                            ])));
                        }
                    }
                    Value::Array(out)
                };
                let env = |dice: &mut Dice| {
                    let mut out = Vec::new();
                    for name in ["A", "B", "C"] {
                        if dice.maybe() {
                            out.push(json!({"name": name, "value": word(dice)}));
                        }
                    }
                    Value::Array(out)
                };
                out.push(Value::Object(object(vec![
                    ("name", Some(json!(name))),
                    ("image", Some(word(dice))),
                    ("args", some(dice, words)),
                    ("ports", some(dice, ports)),
                    ("env", some(dice, env)),
                    (
                        "resources",
                        some(dice, |d| json!({"limits": {"cpu": d.pick(&["1", "2"])}})),
                    ),
                ])));
            }
        }
        if dice.maybe() {
            out.reverse();
        }
        Value::Array(out)
    };
    let pod = object(vec![
        ("containers", Some(containers(dice))),
        ("nodeSelector", some(dice, texts)),
        (
            "terminationGracePeriodSeconds",
            some(dice, |d| json!(d.roll(50))),
        ),
    ]);
    let spec = object(vec![
        ("replicas", some(dice, |d| json!(d.roll(5)))),
        (
            "strategy",
            some(dice, |d| {
                d.pick(&[
                    json!({"type": "Recreate", "rollingUpdate": null}),
                    json!({"type": "RollingUpdate"}),
                    json!({"rollingUpdate": {"maxSurge": 2}, "type": "RollingUpdate"}),
                ])
                .clone()
            }),
        ),
        ("minReadySeconds", some(dice, |d| json!(d.roll(3)))),
        ("selector", Some(json!({"matchLabels": {"app": "x"}}))),
        (
            "template",
            Some(json!({"metadata": {"labels": {"app": "x"}}, "spec": pod})),
        ),
    ]);
    object(vec![("spec", Some(Value::Object(spec)))])
}

fn status(dice: &mut Dice) -> Value {
    let mut conditions = Vec::new();
    for kind in ["Ready", "Progressing"] {
        if dice.maybe() {
            conditions.push(json!({"type": kind, "status": dice.pick(&["True", "False"]), "reason": word(dice)}));
        }
    }
    Value::Object(object(vec![
        ("replicas", some(dice, |d| json!(d.roll(3)))),
        (
            "conditions",
            dice.maybe().then_some(Value::Array(conditions)),
        ),
    ]))
}

fn subjects() -> Vec<Subject> {
    vec![
        Subject {
            path: "/api/v1/namespaces/default/configmaps",
            api_version: "v1",
            kind: "ConfigMap",
            schema: builtin::schema("", "v1", "ConfigMap").expect("in the table"),
            strategic: true,
            make: config_map,
            must: Map::new,
            status: None,
            reset: (&[], &[]),
        },
        Subject {
            path: "/apis/apps/v1/namespaces/default/deployments",
            api_version: "apps/v1",
            kind: "Deployment",
            schema: builtin::schema("apps", "v1", "Deployment").expect("in the table"),
            strategic: true,
            make: deployment,
            must: || {
                object(vec![(
                    "spec",
                    Some(
                        json!({"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}},
                    "spec": {"containers": [{"name": "main", "image": "p"}]}}}),
                    ),
                )])
            },
            status: Some(status),
            reset: (&["status"], &["spec", "metadata.labels"]),
        },
        Subject {
            path: "/apis/ownership.bowline.dev/v1/namespaces/default/widgets",
            api_version: "ownership.bowline.dev/v1",
            kind: "Widget",
            schema: std::sync::Arc::new(
                Schema::from_openapi(&widget_schema()).expect("a good schema"),
            ),
            strategic: false,
            make: widget,
            must: Map::new,
            status: Some(status),
            reset: (&["status"], &["spec", "metadata"]),
        },
    ]
}

/// The parts of an object that the server alone decides.
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
        // Within one second the order of two runs differs.
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

/// Writes `steps` times to an object of every kind and compares each answer.
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
                // The server validates more than this part of the embedded one.
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

/// Writes a status, by merge patch or by apply; everything else stays as it is.
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

/// Adds directives to what else would be a plain strategic patch.
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
    finish: &dyn Fn(Value) -> Value,
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
