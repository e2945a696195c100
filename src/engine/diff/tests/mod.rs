//! Tests of the diff: single cases, and properties that must be true for every input.

mod importance;
mod shown;

use std::time::Instant;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn exact() -> Options {
    Options::default()
}

fn noisy() -> Options {
    Options {
        show_noise: true,
        ..Options::default()
    }
}

fn live(side: Side) -> Options {
    Options {
        live: Some(side),
        ..Options::default()
    }
}

fn late() -> Options {
    Options {
        deadline: Some(Instant::now()),
        ..Options::default()
    }
}

/// Returns a Deployment with a fixed name and the given fields.
fn object(fields: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "checkout", "namespace": "shop" },
    });
    merge(&mut object, fields);
    object
}

fn secret(fields: Value) -> Value {
    let mut secret =
        json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "token" } });
    merge(&mut secret, fields);
    secret
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Compares two versions of one object. Returns its changed fields, each as `path: before -> after`.
fn fields(before: Value, after: Value, options: &Options) -> Vec<String> {
    let found = diff(&[before], &[after], options);
    assert_eq!(found.objects.len(), 1, "{found:?}");
    let shown = |value: &Option<Value>| {
        value.as_ref().map_or("none".to_owned(), |value| {
            value.to_string().replace('"', "")
        })
    };
    let object = &found.objects[0];
    assert_eq!(object.fields.is_empty(), object.change == Change::Same);
    assert_eq!(object.fields.is_empty(), object.hunks.is_empty());
    object
        .fields
        .iter()
        .map(|field| {
            format!(
                "{}: {} -> {}",
                field.path,
                shown(&field.before),
                shown(&field.after)
            )
        })
        .collect()
}

#[test]
fn fields_that_differ() {
    let named =
        |names: &[&str]| -> Value { names.iter().map(|name| json!({ "name": name })).collect() };
    for (what, before, after, expected) in [
        (
            "equal",
            json!({ "spec": { "a": 1 } }),
            json!({ "spec": { "a": 1 } }),
            vec![],
        ),
        (
            "a number",
            json!({ "spec": { "a": 1 } }),
            json!({ "spec": { "a": 2 } }),
            vec!["spec.a: 1 -> 2"],
        ),
        (
            "a type",
            json!({ "spec": { "a": 1 } }),
            json!({ "spec": { "a": "1" } }),
            vec!["spec.a: 1 -> 1"],
        ),
        (
            "a new field",
            json!({ "spec": {} }),
            json!({ "spec": { "a": 1 } }),
            vec!["spec.a: none -> 1"],
        ),
        (
            "a new map",
            json!({}),
            json!({ "spec": { "a": 1 } }),
            vec!["spec: none -> {a:1}"],
        ),
        (
            "a lost field",
            json!({ "spec": { "a": 1, "b": 2 } }),
            json!({ "spec": { "b": 2 } }),
            vec!["spec.a: 1 -> none"],
        ),
        (
            "false is no absence",
            json!({ "spec": {} }),
            json!({ "spec": { "a": false } }),
            vec!["spec.a: none -> false"],
        ),
        (
            "an empty text is no absence",
            json!({ "spec": {} }),
            json!({ "spec": { "a": "" } }),
            vec!["spec.a: none -> "],
        ),
        (
            "null is absence",
            json!({ "spec": { "b": 1 } }),
            json!({ "spec": { "b": 1, "a": null } }),
            vec![],
        ),
        (
            "an empty map is absence",
            json!({ "spec": { "b": 1 } }),
            json!({ "spec": { "b": 1, "a": { "c": {} } } }),
            vec![],
        ),
        (
            "an empty list is absence",
            json!({ "spec": { "b": 1, "a": [] } }),
            json!({ "spec": { "b": 1 } }),
            vec![],
        ),
        (
            "null and an empty map",
            json!({ "spec": { "a": null } }),
            json!({ "spec": { "a": {} } }),
            vec![],
        ),
        (
            "null and a number",
            json!({ "spec": { "a": null } }),
            json!({ "spec": { "a": 1 } }),
            vec!["spec.a: null -> 1"],
        ),
        (
            "a map and a number",
            json!({ "spec": { "a": { "b": 1 } } }),
            json!({ "spec": { "a": 1 } }),
            vec!["spec.a: {b:1} -> 1"],
        ),
        (
            "the version",
            json!({ "apiVersion": "apps/v1beta1" }),
            json!({}),
            vec!["apiVersion: apps/v1beta1 -> apps/v1"],
        ),
        (
            "a key with dots",
            json!({ "data": { "a.b": "1" } }),
            json!({ "data": { "a.b": "2" } }),
            vec!["data[\"a.b\"]: 1 -> 2"],
        ),
        (
            "items by name",
            json!({ "l": [{ "name": "a", "v": 1 }, { "name": "b", "v": 1 }] }),
            json!({ "l": [{ "name": "a", "v": 1 }, { "name": "b", "v": 2 }] }),
            vec!["l[name=b].v: 1 -> 2"],
        ),
        (
            "items in another order",
            json!({ "l": named(&["a", "b", "c"]) }),
            json!({ "l": named(&["c", "a", "b"]) }),
            vec![],
        ),
        (
            "another order and a change",
            json!({ "l": [{ "name": "a", "v": 1 }, { "name": "b" }] }),
            json!({ "l": [{ "name": "b" }, { "name": "a", "v": 2 }] }),
            vec!["l[name=a].v: 1 -> 2"],
        ),
        (
            "a new item",
            json!({ "l": named(&["a", "b"]) }),
            json!({ "l": named(&["a", "x", "b"]) }),
            vec!["l[name=x]: none -> {name:x}"],
        ),
        (
            "a lost item",
            json!({ "l": named(&["a", "b"]) }),
            json!({ "l": named(&["b"]) }),
            vec!["l[name=a]: {name:a} -> none"],
        ),
        (
            "init containers run in order",
            json!({ "initContainers": named(&["a", "b"]) }),
            json!({ "initContainers": named(&["b", "a"]) }),
            vec!["initContainers: [name=a,name=b] -> [name=b,name=a]"],
        ),
        (
            "ports by number and protocol",
            json!({ "l": [{ "containerPort": 53, "protocol": "UDP" }, { "containerPort": 53 }] }),
            json!({ "l": [{ "containerPort": 53, "protocol": "TCP" }, { "containerPort": 53, "protocol": "UDP", "x": 1 }] }),
            vec![
                "l[containerPort=53,protocol=UDP].x: none -> 1",
                "l[containerPort=53].protocol: none -> TCP",
            ],
        ),
        (
            "mounts by path",
            json!({ "l": [{ "mountPath": "/a", "v": 1 }] }),
            json!({ "l": [{ "mountPath": "/b" }, { "mountPath": "/a", "v": 2 }] }),
            vec![
                "l[mountPath=/b]: none -> {mountPath:/b}",
                "l[mountPath=/a].v: 1 -> 2",
            ],
        ),
        (
            "a name that stands twice names nothing",
            json!({ "l": [{ "name": "a", "v": 1 }, { "name": "a", "v": 2 }] }),
            json!({ "l": [{ "name": "a", "v": 1 }, { "name": "a", "v": 3 }] }),
            vec!["l[1].v: 2 -> 3"],
        ),
        (
            "texts by what they have in common",
            json!({ "l": ["a", "b", "c"] }),
            json!({ "l": ["x", "a", "b", "c"] }),
            vec!["l[0]: none -> x"],
        ),
        (
            "a text in the middle",
            json!({ "l": ["a", "b", "c"] }),
            json!({ "l": ["a", "y", "c"] }),
            vec!["l[1]: b -> y"],
        ),
        (
            "texts in another order",
            json!({ "l": ["a", "b"] }),
            json!({ "l": ["b", "a"] }),
            vec!["l[0]: a -> none", "l[1]: none -> a"],
        ),
        (
            "lists in lists",
            json!({ "l": [[1, 2], [3]] }),
            json!({ "l": [[1, 2], [4]] }),
            vec!["l[1][0]: 3 -> 4"],
        ),
        (
            "an item that is nothing",
            json!({ "l": ["a"] }),
            json!({ "l": ["a", null] }),
            vec!["l[1]: none -> null"],
        ),
        (
            "status",
            json!({ "status": { "ready": 1 } }),
            json!({ "status": { "ready": 2 } }),
            vec![],
        ),
        (
            "a status that is new",
            json!({}),
            json!({ "status": { "ready": 2 } }),
            vec![],
        ),
        (
            "what servers write",
            json!({ "metadata": { "uid": "1", "generation": 1 } }),
            json!({ "metadata": { "uid": "2", "resourceVersion": "7", "generation": 2, "creationTimestamp": "x", "selfLink": "x", "managedFields": [{}] } }),
            vec![],
        ),
        (
            "a field of that name elsewhere",
            json!({ "spec": { "uid": "1" } }),
            json!({ "spec": { "uid": "2" } }),
            vec!["spec.uid: 1 -> 2"],
        ),
        (
            "our own hashes",
            json!({}),
            json!({ "metadata": { "annotations": { "bowline.dev/content-hash": "x", "bowline.dev/rendered-hash": "y", mask::LAST_APPLIED: "{}" } } }),
            vec![],
        ),
        (
            "an annotation beside our own",
            json!({}),
            json!({ "metadata": { "annotations": { "bowline.dev/content-hash": "x", "team": "a" } } }),
            vec!["metadata.annotations.team: none -> a"],
        ),
    ] {
        assert_eq!(
            fields(object(before), object(after), &exact()),
            expected,
            "{what}"
        );
    }
}

#[test]
fn another_form_of_the_same_quantity_is_noise() {
    let with = |cpu: Value, memory: &str, limit: &str| {
        object(json!({"spec": {
            "replicas": 2,
            "template": {"spec": {
                "containers": [{"name": "web", "resources": {
                    "limits": {"cpu": cpu, "memory": memory}, "requests": {"cpu": "0.1"},
                }}],
                "volumes": [{"name": "tmp", "emptyDir": {"sizeLimit": limit}}],
            }},
        }}))
    };
    let before = with(json!("2000m"), "1Gi", "1024Mi");
    let after = with(json!("2"), "1024Mi", "1Gi");
    let [one, other] = [&before, &after].map(std::slice::from_ref);
    let found = diff(one, other, &Options::default());
    assert!(found.is_empty(), "{found:?}");
    assert_eq!(fields(before.clone(), after, &noisy()).len(), 3);
    let more = with(json!(3), "1Gi", "1024Mi");
    let path = "spec.template.spec.containers[name=web].resources.limits.cpu: 2000m -> 3";
    assert_eq!(fields(before, more, &Options::default()), [path]);
    // A version is no quantity, so `2000m` and `2` are different.
    let other = |value: &str| object(json!({"spec": {"version": value}}));
    let changed = fields(other("2000m"), other("2"), &Options::default());
    assert_eq!(changed, ["spec.version: 2000m -> 2"]);
}

#[test]
fn noise_is_shown_when_asked() {
    for (what, before, after, expected) in [
        (
            "status",
            json!({}),
            json!({ "status": { "a": 1 } }),
            "status: none -> {a:1}",
        ),
        (
            "metadata",
            json!({}),
            json!({ "metadata": { "uid": "1" } }),
            "metadata.uid: none -> 1",
        ),
        (
            "emptiness",
            json!({}),
            json!({ "spec": {} }),
            "spec: none -> {}",
        ),
        (
            "null",
            json!({ "a": null }),
            json!({ "a": [] }),
            "a: null -> []",
        ),
        (
            "order",
            json!({ "l": [{ "name": "a" }, { "name": "b" }] }),
            json!({ "l": [{ "name": "b" }, { "name": "a" }] }),
            "l: [name=a,name=b] -> [name=b,name=a]",
        ),
        (
            "hashes",
            json!({}),
            json!({ "metadata": { "annotations": { "bowline.dev/audit-head": "x" } } }),
            "metadata.annotations[\"bowline.dev/audit-head\"]: none -> x",
        ),
    ] {
        assert_eq!(
            fields(object(before), object(after), &noisy()),
            [expected],
            "{what}"
        );
    }
}

#[test]
fn defaults_of_the_live_side_are_hidden() {
    let rendered =
        || object(json!({ "spec": { "replicas": 2, "l": [{ "name": "app", "image": "a" }] } }));
    let running = || {
        object(json!({
            "metadata": { "labels": { "x": "y" } },
            "spec": { "replicas": 3, "strategy": { "type": "x" }, "l": [{ "name": "app", "image": "a", "tty": false }, { "name": "sidecar" }] },
        }))
    };
    assert_eq!(
        fields(rendered(), running(), &live(Side::After)),
        [
            "spec.l[name=sidecar]: none -> {name:sidecar}",
            "spec.replicas: 2 -> 3"
        ]
    );
    assert_eq!(
        fields(running(), rendered(), &live(Side::Before)),
        [
            "spec.l[name=sidecar]: {name:sidecar} -> none",
            "spec.replicas: 3 -> 2"
        ]
    );
    assert_eq!(
        fields(running(), rendered(), &live(Side::After)).len(),
        5,
        "what only the rendered side sets is shown"
    );
    assert_eq!(
        fields(
            object(json!({ "data": { "a": "1" } })),
            object(json!({ "data": { "a": "1", "b": "2" } })),
            &live(Side::After)
        ),
        ["data.b: none -> 2"],
        "content has no defaults"
    );
}

#[test]
fn objects_are_paired_by_identity() {
    let named = |version: &str, kind: &str, namespace: &str, name: &str| json!({ "apiVersion": version, "kind": kind, "metadata": { "namespace": namespace, "name": name } });
    let base = || named("apps/v1", "Deployment", "shop", "a");
    for (what, after, expected) in [
        ("nothing", base(), vec![Change::Same]),
        (
            "a version",
            named("apps/v2", "Deployment", "shop", "a"),
            vec![Change::Changed],
        ),
        (
            "a group",
            named("batch/v1", "Deployment", "shop", "a"),
            vec![Change::Removed, Change::Added],
        ),
        (
            "a kind",
            named("apps/v1", "StatefulSet", "shop", "a"),
            vec![Change::Removed, Change::Added],
        ),
        (
            "a namespace",
            named("apps/v1", "Deployment", "test", "a"),
            vec![Change::Removed, Change::Added],
        ),
        (
            "a name",
            named("apps/v1", "Deployment", "shop", "b"),
            vec![Change::Removed, Change::Added],
        ),
    ] {
        let found = diff(&[base()], &[after], &exact());
        let mut changes: Vec<Change> = found.objects.iter().map(|object| object.change).collect();
        changes.sort_by_key(|change| *change != Change::Removed);
        assert_eq!(changes, expected, "{what}");
    }
    let twice = diff(&[base(), base()], &[base()], &exact());
    assert_eq!(
        [twice.count(Change::Same), twice.count(Change::Removed)],
        [1, 1]
    );
}

#[test]
fn values_of_secrets_are_masked() {
    let last = |text: &str| json!({ "metadata": { "annotations": { mask::LAST_APPLIED: text } } });
    for (what, before, after, expected) in [
        (
            "changed",
            secret(json!({ "data": { "k": "hunter1", "l": "x" } })),
            secret(json!({ "data": { "k": "hunter2", "l": "x" } })),
            "data.k: *** -> *** (changed)",
        ),
        (
            "new",
            secret(json!({ "data": {} })),
            secret(json!({ "data": { "k": "hunter2" } })),
            "data.k: none -> ***",
        ),
        (
            "lost",
            secret(json!({ "stringData": { "k": "hunter1", "l": "x" } })),
            secret(json!({ "stringData": { "l": "x" } })),
            "stringData.k: *** -> none",
        ),
        (
            "all new",
            secret(json!({})),
            secret(json!({ "data": { "k": "hunter2" } })),
            "data: none -> {k:***}",
        ),
        (
            "no map",
            secret(json!({ "data": "hunter1" })),
            secret(json!({ "data": ["hunter2"] })),
            "data: *** -> *** (changed)",
        ),
        (
            "applied",
            secret(last("{\"kind\":\"Secret\",\"data\":{\"k\":\"hunter1\"}}")),
            secret(last("{\"kind\":\"Secret\",\"data\":{\"k\":\"hunter2\"}}")),
            "metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"]: *** -> *** (changed)",
        ),
        (
            "applied, broken",
            secret(last("{\"data\":{\"k\":\"hunter1\"")),
            secret(json!({})),
            "metadata.annotations[\"kubectl.kubernetes.io/last-applied-configuration\"]: *** -> none",
        ),
        (
            "inside another",
            object(
                json!({ "spec": { "resources": [{ "id": "s", "object": secret(json!({ "data": { "k": "hunter1" } })) }] } }),
            ),
            object(
                json!({ "spec": { "resources": [{ "id": "s", "object": secret(json!({ "data": { "k": "hunter2" } })) }] } }),
            ),
            "spec.resources[id=s].object.data.k: *** -> *** (changed)",
        ),
        (
            "in a list of them",
            object(json!({ "l": { "kind": "SecretList", "items": [] } })),
            object(
                json!({ "l": { "kind": "SecretList", "items": [{ "data": { "k": "hunter2" } }] } }),
            ),
            "l.items[0]: none -> {data:{k:***}}",
        ),
        (
            "no Secret any more",
            object(json!({ "o": { "kind": "Secret", "data": { "k": "hunter1" } } })),
            object(json!({ "o": { "kind": "Secret", "data": { "k": "hunter1" }, "x": 1 } })),
            "o.x: none -> 1",
        ),
    ] {
        assert_eq!(
            fields(before.clone(), after.clone(), &noisy()),
            [expected],
            "{what}"
        );
        let found = diff(&[before], &[after], &noisy());
        for shown in [
            found.text(),
            found.unified(),
            found.json().to_string(),
            format!("{found:?}"),
        ] {
            assert!(!shown.contains("hunter"), "{what}: {shown}");
        }
    }
}

#[test]
fn environment_values_are_no_secrets() {
    let env = |value: &str| object(json!({ "env": [{ "name": "A", "value": value }] }));
    assert_eq!(
        fields(env("x"), env("y"), &exact()),
        ["env[name=A].value: x -> y"]
    );
}

fn texts() -> (Vec<Value>, Vec<Value>) {
    let spec = |replicas: u8, file: &str| {
        object(
            json!({ "data": { "file": file }, "spec": { "a": 1, "b": 2, "c": 3, "d": 4, "replicas": replicas, "z": "\u{1b}[31m" } }),
        )
    };
    let service =
        |name: &str| json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": name } });
    (
        vec![spec(2, "one\ntwo\nthree\n"), service("old")],
        vec![spec(3, "one\n2\nthree\n"), service("new")],
    )
}

#[test]
fn text_reads_by_object_and_hunk() {
    let (before, after) = texts();
    let options = Options {
        context: 1,
        ..exact()
    };
    let found = diff(&before, &after, &options);
    assert_eq!(
        found.text(),
        "\
~ Deployment.apps shop/checkout: 2 fields changed
@@ -4,3 +4,3 @@
     one
-    two
+    2
     three
@@ -15,3 +15,3 @@
   d: 4
-  replicas: 2
+  replicas: 3
   z: \"\\x1b[31m\"

+ Service new: added
@@ -0,0 +1,4 @@
+apiVersion: v1
+kind: Service
+metadata:
+  name: new

- Service old: removed
@@ -1,4 +0,0 @@
-apiVersion: v1
-kind: Service
-metadata:
-  name: old

1 added, 1 removed, 1 changed, 0 unchanged
"
    );
    let unified = found.unified();
    assert!(
        unified.starts_with("--- /dev/null\n+++ b/core/Service/new\n@@ -0,0 +1,4 @@\n"),
        "{unified}"
    );
    assert!(
        unified.contains("--- a/core/Service/old\n+++ /dev/null\n"),
        "{unified}"
    );
    assert!(
        unified
            .contains("--- a/apps/Deployment/shop/checkout\n+++ b/apps/Deployment/shop/checkout\n"),
        "{unified}"
    );
    assert!(!unified.contains('\u{1b}') && !found.text().contains('\u{1b}'));
    let json = found.json();
    assert_eq!(
        json.pointer("/objects/2/fields/1/path"),
        Some(&json!("spec.replicas"))
    );
    assert_eq!(
        json.pointer("/objects/2/hunks/1/lines/1/words"),
        Some(&json!([[12, 13]]))
    );
    assert_eq!(json.pointer("/coarse"), Some(&Value::Null));
    assert_eq!(diff(&before, &before, &exact()).text(), "no changes\n");
}

#[test]
fn a_passed_deadline_is_said_and_nothing_is_wrong() {
    let (before, after) = texts();
    let found = diff(&before, &after, &late());
    assert_eq!(
        found.coarse.as_deref(),
        Some("deadline exceeded: 1 of 3 objects are compared as whole blocks")
    );
    assert!(
        found
            .text()
            .ends_with("note: deadline exceeded: 1 of 3 objects are compared as whole blocks\n")
    );
    assert_eq!(
        found.objects[2].fields,
        diff(&before, &after, &exact()).objects[2].fields
    );
    let list = |items: [u8; 5]| object(json!({ "l": items }));
    let found = diff(&[list([1, 2, 3, 4, 5])], &[list([9, 2, 3, 4, 8])], &late());
    assert!(found.coarse.is_some());
    assert_eq!(
        found.objects[0].fields.len(),
        2,
        "equal items of a block are no change"
    );
    let found = lines("a\nb\nc\n", "x\nb\ny\n", 3, late().deadline);
    assert_eq!(found.apply("a\nb\nc\n").as_deref(), Some("x\nb\ny\n"));
    assert!(found.coarse.is_some());
    assert!(
        lines("a\nb\n", "a\nc\nb\n", 3, late().deadline)
            .coarse
            .is_none(),
        "nothing was left to compare"
    );
}

#[test]
fn lines_of_texts() {
    for (what, before, after, expected) in [
        ("equal", "a\nb\n", "a\nb\n", ""),
        ("from nothing", "", "a\n", "@@ -0,0 +1,1 @@\n+a\n"),
        ("to nothing", "a\n", "", "@@ -1,1 +0,0 @@\n-a\n"),
        (
            "in the middle",
            "a\nb\nc\n",
            "a\nx\nc\n",
            "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n",
        ),
        ("in front", "b\n", "a\nb\n", "@@ -1,1 +1,2 @@\n+a\n b\n"),
        (
            "no line end",
            "a",
            "a\n",
            "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n",
        ),
        (
            "far apart",
            "a\n1\n2\n3\nb\n",
            "x\n1\n2\n3\ny\n",
            "@@ -1,2 +1,2 @@\n-a\n+x\n 1\n@@ -4,2 +4,2 @@\n 3\n-b\n+y\n",
        ),
        (
            "close together",
            "a\n1\n2\nb\n",
            "x\n1\n2\ny\n",
            "@@ -1,4 +1,4 @@\n-a\n+x\n 1\n 2\n-b\n+y\n",
        ),
        (
            "a block that moved",
            "1\n2\n3\n4\n5\n",
            "4\n5\n1\n2\n3\n",
            "@@ -1,1 +1,3 @@\n+4\n+5\n 1\n@@ -3,3 +5,1 @@\n 3\n-4\n-5\n",
        ),
        (
            "lines that repeat",
            "a\na\nb\na\na\n",
            "a\nb\na\na\na\n",
            "@@ -1,4 +1,4 @@\n a\n-a\n b\n+a\n a\n",
        ),
    ] {
        let found = lines(before, after, 1, None);
        let mut shown = String::new();
        output::write_hunks(&mut shown, &found.hunks);
        assert_eq!(shown, expected, "{what}");
        assert_eq!(found.apply(before).as_deref(), Some(after), "{what}");
    }
    assert_eq!(lines("a\nb\n", "a\nc\n", 1, None).apply("other\n"), None);
}

#[test]
fn words_inside_lines() {
    for (before, after, left, right) in [
        ("image: shop:1.2", "image: shop:1.3", vec!["2"], vec!["3"]),
        ("a b c", "a c", vec!["b "], vec![]),
        (
            "value: größe one",
            "value: größe two",
            vec!["one"],
            vec!["two"],
        ),
        ("nothing", "alike", vec![], vec![]),
        ("", "x", vec![], vec![]),
        ("same", "same", vec![], vec![]),
        (
            "x: old-and-long",
            "x: new-and-long",
            vec!["old"],
            vec!["new"],
        ),
    ] {
        let (old, new) = words(before, after);
        let cut = |text: &'static str, ranges: &[std::ops::Range<usize>]| -> Vec<&str> {
            ranges.iter().map(|range| &text[range.clone()]).collect()
        };
        assert_eq!(cut(before, &old), left, "{before} | {after}");
        assert_eq!(cut(after, &new), right, "{before} | {after}");
    }
    let long = |end: &str| format!("{}{end}", "a ".repeat(5_000));
    let (old, new) = words(&long("x"), &long("y"));
    assert_eq!(old, new);
    assert_eq!(old.first(), Some(&(10_000..10_001)));
}

#[test]
fn lines_that_became_others_are_paired() {
    let found = lines("a: 1\nb: 2\n", "x: 9\nb: 3\na: 1\n", 0, None);
    let hunk = found.hunks.last().unwrap();
    let mut lines = hunk.lines.iter().map(|line| hunk.text(line));
    assert!(lines.any(|line| line == "b: 2"), "{hunk:?}");
    for (at, line) in found
        .hunks
        .iter()
        .flat_map(|hunk| hunk.lines.iter().enumerate())
    {
        if let Some(pair) = line.pair {
            assert_eq!(
                found
                    .hunks
                    .iter()
                    .filter_map(|hunk| hunk.lines.get(pair))
                    .filter(|other| other.pair == Some(at))
                    .count(),
                1
            );
        }
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..4i64).prop_map(Value::from),
        "[ab\n]{0,4}".prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        Just("name".to_owned()),
        Just("kind".to_owned()),
        Just("metadata".to_owned()),
        Just("annotations".to_owned()),
        Just("data".to_owned()),
        Just("status".to_owned()),
        Just("initContainers".to_owned()),
        Just(mask::LAST_APPLIED.to_owned()),
        "[a-c]",
        any::<String>(),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Generates nested lists whose items have names, because most Kubernetes objects contain such lists.
fn named_value() -> impl Strategy<Value = Value> {
    let item = proptest::collection::btree_map("[a-d]", json_value(), 0..3);
    let list = (proptest::collection::vec(item, 0..5), any::<bool>()).prop_map(|(items, named)| {
        let named_item = |(at, map): (usize, std::collections::BTreeMap<String, Value>)| {
            let mut map: serde_json::Map<String, Value> = map.into_iter().collect();
            map.insert("name".to_owned(), format!("n{at}").into());
            Value::Object(map)
        };
        match named {
            true => items.into_iter().enumerate().map(named_item).collect(),
            false => items.into_iter().map(|map| json!(map)).collect::<Value>(),
        }
    });
    let key = prop_oneof![Just("initContainers"), Just("l"), Just("metadata")];
    list.prop_recursive(3, 20, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 1..4).prop_map(Value::from),
            (key.clone(), inner.clone(), inner)
                .prop_map(|(key, one, other)| json!({ key: one, "z": other })),
        ]
    })
}

/// Changes, moves, adds and removes parts of a value at random, to get a value that is like a newer version of the
/// same object.
fn altered(value: &mut Value, seed: &mut u64) {
    let mut dice = |sides: u64| {
        *seed = seed
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (*seed >> 33) % sides
    };
    let dead = dice(12);
    match value {
        Value::Object(map) => {
            let first = map.keys().next().cloned();
            match (dead, first) {
                (0, Some(key)) => drop(map.remove(&key)),
                (1, _) => drop(map.insert("0".to_owned(), json!([[{ "a": 1 }]]))),
                _ => {}
            }
            map.values_mut().for_each(|value| altered(value, seed));
        }
        Value::Array(list) => {
            match dead {
                0 => list.reverse(),
                1 => drop(list.pop()),
                2 if !list.is_empty() => drop(list.remove(0)),
                3 => list.insert(0, json!({ "name": "new", "a": "x\ny\n" })),
                4 if list.len() > 1 => list.rotate_left(1),
                _ => {}
            }
            list.iter_mut().for_each(|value| altered(value, seed));
        }
        Value::String(text) if dead < 2 => text.push_str("\nmore"),
        leaf if dead < 2 => *leaf = json!({ "b": [] }),
        _ => {}
    }
}

/// Generates a value and a changed copy of it, or two unrelated values.
fn two_values() -> impl Strategy<Value = (Value, Value)> {
    let value = || prop_oneof![json_value(), named_value()];
    let next = (value(), any::<u64>()).prop_map(|(before, mut seed)| {
        let mut after = before.clone();
        altered(&mut after, &mut seed);
        (before, after)
    });
    prop_oneof![4 => next, 1 => (value(), value())]
}

/// Generates texts with many equal lines.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![3 => "[a-e]", 1 => "[a-e: ]{0,5}"];
    (proptest::collection::vec(line, 0..40), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.join("\n");
        if ended { text + "\n" } else { text }
    })
}

fn options() -> impl Strategy<Value = Options> {
    (any::<bool>(), 0..4usize, 0..3u8, any::<bool>()).prop_map(
        |(show_noise, context, side, is_late)| Options {
            show_noise,
            lines: true,
            context,
            live: match side {
                0 => None,
                1 => Some(Side::Before),
                _ => Some(Side::After),
            },
            deadline: is_late.then(Instant::now),
        },
    )
}

/// Returns whether the spans and line numbers of each hunk match the lines of the hunk, and whether the two lines of
/// each pair refer to each other.
fn is_consistent(found: &Lines) -> bool {
    found.hunks.iter().all(|hunk| {
        let numbers = |of: fn(&Line) -> Option<usize>| -> Vec<usize> {
            hunk.lines.iter().filter_map(of).collect()
        };
        let fits = |span: Span, numbers: Vec<usize>| {
            span.count == numbers.len()
                && numbers
                    .iter()
                    .enumerate()
                    .all(|(at, number)| *number == span.start + at)
        };
        let pairs = hunk.lines.iter().enumerate().all(|(at, line)| {
            line.pair
                .is_none_or(|pair| hunk.lines[pair].pair == Some(at))
        });
        fits(hunk.before, numbers(|line| line.before))
            && fits(hunk.after, numbers(|line| line.after))
            && pairs
    })
}

/// Returns a Secret, or an object around it, that contains a secret text. `place` selects where the text is.
fn hidden(text: &str, place: u8, extra: &Value) -> Value {
    let held = json!({ "kind": "Secret", "data": { "k": text }, "stringData": { "l": [text] }, "extra": extra });
    let last = json!({ "annotations": { mask::LAST_APPLIED: held.to_string() }, "name": "s" });
    match place {
        0 => {
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": last, "data": { "k": text } })
        }
        1 => json!({ "kind": "Secret", "metadata": { "name": "s" }, "data": text }),
        2 => json!({ "kind": "R", "metadata": last, "spec": { "l": [held, extra] } }),
        3 => {
            json!({ "kind": "R", "metadata": { "name": "s" }, "spec": { "l": [{ "id": "1", "object": held }] } })
        }
        _ => json!({ "kind": "SecretList", "items": [{ "data": { "k": text } }, extra] }),
    }
}

proptest! {
    #[test]
    fn applied_lines_give_the_other_text(before in text(), after in text(), context in 0..4usize, is_late: bool) {
        let found = lines(&before, &after, context, is_late.then(Instant::now));
        prop_assert_eq!(found.apply(&before), Some(after));
    }

    #[test]
    fn what_is_cut_down_is_what_would_have_been_made(
        before in proptest::collection::vec(json_value(), 0..3),
        after in proptest::collection::vec(json_value(), 0..3),
        options in options(),
    ) {
        let options = Options { deadline: None, ..options };
        let whole = diff(&before, &after, &Options { context: WHOLE, ..options });
        let cut = whole.narrowed(options.context);
        prop_assert_eq!(cut.unified(), diff(&before, &after, &options).unified());
        for object in cut.objects {
            let lines = Lines { hunks: object.hunks, coarse: None };
            prop_assert!(is_consistent(&lines));
        }
    }

    #[test]
    fn nothing_differs_from_itself(values in proptest::collection::vec(json_value(), 0..3), options in options()) {
        let found = diff(&values, &values, &options);
        prop_assert!(found.is_empty());
        prop_assert_eq!(found.coarse, None);
        for value in &values {
            let mut walk = tree::Walk::new(&options);
            walk.objects(value, value);
            prop_assert!(walk.fields.is_empty());
            prop_assert_eq!(walk.script.hunks(options.context), []);
        }
    }

    #[test]
    fn what_is_shown_differs_only_where_a_field_does((before, after) in two_values(), options in options()) {
        let mut walk = tree::Walk::new(&options);
        walk.objects(&before, &after);
        let hunks = walk.script.hunks(options.context);
        let (left, right) = shown::shown(&before, &after, &options);
        prop_assert_eq!(walk.fields.is_empty(), left == right);
        prop_assert_eq!(walk.fields.is_empty(), hunks.is_empty());
        let (old, new) = (bounded_yaml::write(&left), bounded_yaml::write(&right));
        let found = Lines { hunks, coarse: None };
        prop_assert_eq!(found.apply(&old), Some(new));
        prop_assert!(is_consistent(&found));
    }

    #[test]
    fn an_object_without_a_counterpart_is_shown_whole(object in json_value(), options in options(), is_new: bool) {
        let found = match is_new {
            true => diff(&[], std::slice::from_ref(&object), &options),
            false => diff(std::slice::from_ref(&object), &[], &options),
        };
        let text = bounded_yaml::write(&shown::alone(&object, &options));
        let hunks = found.objects[0].hunks.iter();
        let lines = hunks.flat_map(|hunk| hunk.lines.iter().map(|line| hunk.text(line)));
        let written: String = lines.map(|line| format!("{line}\n")).collect();
        prop_assert_eq!(written, text);
        prop_assert!(found.objects[0].fields.is_empty());
    }

    #[test]
    fn a_change_in_place_is_found_as_well_as_a_moved_one(
        items in proptest::collection::vec(0..30u8, 0..60),
        changes in proptest::collection::vec((0..60usize, 0..40u8), 0..6),
        moves: bool,
    ) {
        let mut after = items.clone();
        for (at, value) in changes {
            if let Some(item) = after.get_mut(at) {
                *item = value;
            }
        }
        if moves && after.len() > 2 {
            after.rotate_left(2);
        }
        let found = sequence::edits(&items, &after, None);
        prop_assert!(found.exact);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        let mut equal = true;
        sequence::each(&found.edits, items.len(), |a, b| {
            if let (Some(a), Some(b)) = (&a, &b) {
                equal &= items[a.clone()] == after[b.clone()];
            }
            old.extend(a.into_iter().flatten().map(|at| items[at]));
            new.extend(b.into_iter().flatten().map(|at| after[at]));
        });
        prop_assert!(equal);
        prop_assert_eq!((old, new), (items, after));
    }

    #[test]
    fn fields_are_the_same_without_lines((before, after) in two_values(), options in options()) {
        // A deadline that passes between the two calls would make their results differ.
        let options = Options { deadline: None, ..options };
        let with = diff(std::slice::from_ref(&before), std::slice::from_ref(&after), &options);
        let without = diff(&[before], &[after], &Options { lines: false, ..options });
        for (with, without) in with.objects.iter().zip(&without.objects) {
            prop_assert_eq!(&with.fields, &without.fields);
            prop_assert_eq!(with.change, without.change);
            prop_assert!(without.hunks.is_empty());
        }
        prop_assert!(!without.text().chars().any(crate::text::is_unsafe));
    }

    #[test]
    fn arbitrary_values_are_shown(before in proptest::collection::vec(json_value(), 0..3), after in proptest::collection::vec(json_value(), 0..3), options in options()) {
        let found = diff(&before, &after, &options);
        for shown in [found.text(), found.unified()] {
            prop_assert!(!shown.chars().any(crate::text::is_unsafe));
        }
        prop_assert!(found.json().is_object());
    }

    #[test]
    fn swapped_sets_swap_what_came_and_went(before in proptest::collection::vec(json_value(), 0..3), after in proptest::collection::vec(json_value(), 0..3), show_noise: bool) {
        let options = Options { show_noise, ..Options::default() };
        let one = diff(&before, &after, &options);
        let other = diff(&after, &before, &options);
        let swapped = |change| match change {
            Change::Added => Change::Removed,
            Change::Removed => Change::Added,
            same => same,
        };
        prop_assert_eq!(one.objects.len(), other.objects.len());
        for (one, other) in one.objects.iter().zip(&other.objects) {
            prop_assert_eq!(&one.identity, &other.identity);
            prop_assert_eq!(swapped(one.change), other.change);
        }
    }

    #[test]
    fn no_output_holds_a_secret(
        one in "[a-z]{12}", other in "[a-z]{12}", place in 0..5u8, other_place in 0..5u8,
        extra in json_value(), options in options(),
    ) {
        let (one, other) = (format!("hunter-{one}"), format!("hunter-{other}"));
        let before = [hidden(&one, place, &extra)];
        let after = [hidden(&other, other_place, &Value::Null)];
        for found in [diff(&before, &after, &options), diff(&before, &[], &options), diff(&[], &after, &options)] {
            for shown in [found.text(), found.unified(), found.json().to_string(), format!("{found:?}")] {
                prop_assert!(!shown.contains("hunter-"), "{}", shown);
            }
        }
    }
}
