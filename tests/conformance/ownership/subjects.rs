//! The kinds to which the ownership test writes, with functions that make random objects of them.

use kube_embedded::builtin;
use kube_embedded::schema::Schema;
use serde_json::{Map, Value, json};

/// A generator of pseudo-random numbers. The same seed gives the same numbers in every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    pub fn maybe(&mut self) -> bool {
        self.roll(2) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.roll(from.len() as u64) as usize]
    }
}

/// A kind to which the test writes, with functions that make random objects of this kind.
pub struct Subject {
    pub path: &'static str,
    pub api_version: &'static str,
    pub kind: &'static str,
    pub schema: std::sync::Arc<Schema>,
    pub strategic: bool,
    pub make: fn(&mut Dice) -> Map<String, Value>,
    pub must: fn() -> Map<String, Value>,
    /// Makes a random status; None if the kind has no status. `reset` contains two lists: the fields that a
    /// write of the object ignores, and the fields that a write of the status ignores.
    pub status: Option<fn(&mut Dice) -> Value>,
    pub reset: (&'static [&'static str], &'static [&'static str]),
}

pub fn widget_schema() -> Value {
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

pub fn object(pairs: Vec<(&str, Option<Value>)>) -> Map<String, Value> {
    pairs
        .into_iter()
        .filter_map(|(k, v)| v.map(|v| (k.to_owned(), v)))
        .collect()
}

pub fn some(dice: &mut Dice, make: impl FnOnce(&mut Dice) -> Value) -> Option<Value> {
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

pub fn texts(dice: &mut Dice) -> Value {
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

/// Removes the fields of the map's values other than a and b, because the schema declares only these two.
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

pub fn subjects() -> Vec<Subject> {
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
