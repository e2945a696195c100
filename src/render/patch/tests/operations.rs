//! Tests the results and the errors of patch operations.

use serde_json::{Value, json};

use super::super::PatchVerb;
use super::{at, run};

fn deployment() -> Value {
    json!({
        "kind": "Deployment",
        "metadata": {"name": "checkout", "labels": {"app.kubernetes.io/name": "checkout", "a~b": "c"}},
        "spec": {
            "replicas": 2,
            "paused": null,
            "containers": [
                {"name": "main", "image": "m:1", "ports": [{"containerPort": 80}], "tty": true, "env": []},
                {"name": "sidecar", "image": "s:1", "ports": [{"containerPort": 81}], "tty": false}
            ],
            "args": ["-v", "--flag", "-v"],
            "empty": []
        }
    })
}

#[test]
fn what_operations_do() {
    use PatchVerb::{Add, Merge, Replace};
    let c = "/spec/containers";
    for (verb, path, value, looked_at, expected) in [
        // These operations add keys.
        (Add, "/spec/replicas", json!(3), "/spec/replicas", json!(3)),
        (
            Add,
            "/spec/paused",
            json!(true),
            "/spec/paused",
            json!(true),
        ),
        (
            Add,
            "/spec/new",
            json!({"a": null}),
            "/spec/new",
            json!({"a": null}),
        ),
        (
            Add,
            "/spec/a/b/c",
            json!(1),
            "/spec/a",
            json!({"b": {"c": 1}}),
        ),
        (
            Add,
            "/spec/paused/b",
            json!(1),
            "/spec/paused",
            json!({"b": 1}),
        ),
        (
            Add,
            "/metadata/annotations/example.com~1x",
            json!("y"),
            "/metadata/annotations",
            json!({"example.com/x": "y"}),
        ),
        (
            Add,
            "/metadata/labels/a~0b",
            json!("d"),
            "/metadata/labels/a~0b",
            json!("d"),
        ),
        (
            Add,
            "/metadata/labels/-",
            json!("d"),
            "/metadata/labels/-",
            json!("d"),
        ),
        (
            Add,
            "/metadata/labels/0",
            json!("d"),
            "/metadata/labels/0",
            json!("d"),
        ),
        (
            Add,
            "",
            json!({"kind": "Other"}),
            "",
            json!({"kind": "Other"}),
        ),
        // These operations add items to lists.
        (
            Add,
            "/spec/args/-",
            json!("z"),
            "/spec/args",
            json!(["-v", "--flag", "-v", "z"]),
        ),
        (
            Add,
            "/spec/args/0",
            json!("z"),
            "/spec/args",
            json!(["z", "-v", "--flag", "-v"]),
        ),
        (
            Add,
            "/spec/args/3",
            json!("z"),
            "/spec/args",
            json!(["-v", "--flag", "-v", "z"]),
        ),
        (
            Add,
            "/spec/args[1]",
            json!("z"),
            "/spec/args",
            json!(["-v", "z", "--flag", "-v"]),
        ),
        (Add, "/spec/empty/-", json!(1), "/spec/empty", json!([1])),
        (
            Add,
            "/spec/volumes/-",
            json!(1),
            "/spec/volumes",
            json!([1]),
        ),
        (Add, "/spec/x/y/-", json!(1), "/spec/x", json!({"y": [1]})),
        // These operations add values that filters and wildcards select.
        (
            Add,
            "/spec/containers/[?(@.name=='main')]/env/-",
            json!({"name": "A"}),
            "/spec/containers/0/env",
            json!([{"name": "A"}]),
        ),
        (
            Add,
            "/spec/containers[?(@.name=='sidecar')]/env/-",
            json!(1),
            "/spec/containers/1/env",
            json!([1]),
        ),
        (
            Add,
            "/spec/containers[*]/image",
            json!("x"),
            "/spec/containers/1/image",
            json!("x"),
        ),
        (
            Add,
            "/spec/containers/[*]/deep/er",
            json!(1),
            "/spec/containers/0/deep",
            json!({"er": 1}),
        ),
        (
            Add,
            "/spec/containers/1/x",
            json!(1),
            "/spec/containers/1/x",
            json!(1),
        ),
        (
            Add,
            "/spec/containers[*]/ports[*]/protocol",
            json!("TCP"),
            "/spec/containers/1/ports/0",
            json!({"containerPort": 81, "protocol": "TCP"}),
        ),
        (
            Add,
            "/spec/containers[?(@.image!='m:1')]/x",
            json!(1),
            "/spec/containers/1/x",
            json!(1),
        ),
        (
            Add,
            "/spec/containers[?(@.tty==true)]/x",
            json!(1),
            "/spec/containers/0/x",
            json!(1),
        ),
        (
            Add,
            "/spec/containers[?(@.tty == false && @.name == \"sidecar\")]/x",
            json!(1),
            "/spec/containers/1/x",
            json!(1),
        ),
        (
            Add,
            "/spec/containers[?(@.nowhere!='x')]/x",
            json!(1),
            "/spec/containers/0/x",
            json!(1),
        ),
        (
            Add,
            "/spec/containers[*]/ports[?(@.containerPort!=81.5)]/x",
            json!(1),
            "/spec/containers/1/ports/0/x",
            json!(1),
        ),
        (
            Add,
            "/spec/containers[?(@['name']=='main')]/x",
            json!(1),
            "/spec/containers/0/x",
            json!(1),
        ),
        // These operations replace values.
        (
            Replace,
            "/spec/replicas",
            json!(5),
            "/spec/replicas",
            json!(5),
        ),
        (Replace, "/spec/paused", json!(5), "/spec/paused", json!(5)),
        (
            Replace,
            "/spec/args/1",
            json!("z"),
            "/spec/args",
            json!(["-v", "z", "-v"]),
        ),
        (
            Replace,
            "/spec/args[*]",
            json!("z"),
            "/spec/args",
            json!(["z", "z", "z"]),
        ),
        (
            Replace,
            "/spec/args/[?(@=='-v')]",
            json!("z"),
            "/spec/args",
            json!(["z", "--flag", "z"]),
        ),
        (
            Replace,
            "/metadata/labels[*]",
            json!("z"),
            "/metadata/labels",
            json!({"app.kubernetes.io/name": "z", "a~b": "z"}),
        ),
        (
            Replace,
            "/metadata/labels/app.kubernetes.io~1name",
            json!("z"),
            "/metadata/labels/app.kubernetes.io~1name",
            json!("z"),
        ),
        (Replace, "", json!({"a": 1}), "", json!({"a": 1})),
        // These operations merge maps.
        (
            Merge,
            "/spec",
            json!({"replicas": null, "a": {"b": null, "c": 1}}),
            "/spec/a",
            json!({"c": 1}),
        ),
        (
            Merge,
            "/spec",
            json!({"replicas": null}),
            "/spec/replicas",
            json!(null),
        ),
        (
            Merge,
            "",
            json!({"metadata": {"labels": {"x": "y", "a~b": null}}}),
            "/metadata/labels",
            json!({"app.kubernetes.io/name": "checkout", "x": "y"}),
        ),
        (
            Merge,
            "/spec/strategy/rollingUpdate",
            json!({"maxSurge": 1, "x": null}),
            "/spec/strategy",
            json!({"rollingUpdate": {"maxSurge": 1}}),
        ),
        (
            Merge,
            "/spec/paused",
            json!({"a": 1}),
            "/spec/paused",
            json!({"a": 1}),
        ),
        (
            Merge,
            "/spec/containers[?(@.name=='main')]",
            json!({"env": null, "x": [1]}),
            "/spec/containers/0",
            json!({"name": "main", "image": "m:1", "ports": [{"containerPort": 80}], "tty": true, "x": [1]}),
        ),
        (
            Merge,
            "/spec/containers[*]/resources",
            json!({"limits": {"cpu": 1}}),
            "/spec/containers/1/resources",
            json!({"limits": {"cpu": 1}}),
        ),
    ] {
        let patched = run(&deployment(), verb, path, Some(value));
        let found = patched.as_ref().map(|patched| at(patched, looked_at));
        assert_eq!(found, Ok(expected), "{verb:?} {path}: {patched:?}");
    }
    for (path, looked_at, expected) in [
        ("/spec/replicas", "/spec/replicas", json!(null)),
        ("/spec/args/1", "/spec/args", json!(["-v", "-v"])),
        ("/spec/args/[?(@=='-v')]", "/spec/args", json!(["--flag"])),
        ("/spec/args[*]", "/spec/args", json!([])),
        ("/metadata/labels[*]", "/metadata/labels", json!({})),
        (
            "/spec/containers[?(@.name=='main')]",
            c,
            json!([deployment()["spec"]["containers"][1]]),
        ),
        (
            "/spec/containers[*]/ports/0",
            "/spec/containers/1/ports",
            json!([]),
        ),
        (
            "/spec/containers[*]/tty",
            "/spec/containers/0/tty",
            json!(null),
        ),
        (
            "/metadata/labels/a~0b",
            "/metadata/labels",
            json!({"app.kubernetes.io/name": "checkout"}),
        ),
    ] {
        let patched = run(&deployment(), PatchVerb::Remove, path, None);
        let found = patched.as_ref().map(|patched| at(patched, looked_at));
        assert_eq!(found, Ok(expected), "remove {path}: {patched:?}");
    }
}

#[test]
fn why_operations_fail() {
    use PatchVerb::{Add, Merge, Remove, Replace};
    for (verb, path, value, message) in [
        (Add, "/spec/x", None, "add needs a value"),
        (Replace, "/spec/x", None, "replace needs a value"),
        (Merge, "/spec/x", None, "merge needs a value"),
        (
            Remove,
            "/spec/replicas",
            Some(json!(1)),
            "remove takes no value; delete the value, or use replace",
        ),
        (
            Merge,
            "/spec",
            Some(json!([1])),
            "merge needs a map as its value, not a list; use replace or add",
        ),
        (
            Merge,
            "/spec",
            Some(json!("x\u{1b}y")),
            "merge needs a map as its value, not the text \"x\u{fffd}y\"; use replace or add",
        ),
        (
            Remove,
            "",
            None,
            "remove needs a path: the whole resource cannot be removed",
        ),
        (
            Replace,
            "/spec/nowhere",
            Some(json!(1)),
            "/spec has no `nowhere`, it has args, containers, empty, paused, replicas",
        ),
        (
            Remove,
            "/spec/nowhere",
            None,
            "/spec has no `nowhere`, it has args, containers, empty, paused, replicas",
        ),
        (
            Replace,
            "/status/phase",
            Some(json!(1)),
            "the resource has no `status`, it has kind, metadata, spec",
        ),
        (
            Replace,
            "/spec/args/3",
            Some(json!(1)),
            "/spec/args has no `3`, the list has 3 items",
        ),
        (
            Remove,
            "/spec/args/3",
            None,
            "/spec/args has no `3`, the list has 3 items",
        ),
        (
            Remove,
            "/spec/containers/0/ports/1",
            None,
            "/spec/containers/0/ports has no `1`, the list has 1 item",
        ),
        (
            Add,
            "/spec/args/4",
            Some(json!(1)),
            "/spec/args has no `4`, the list has 3 items",
        ),
        (
            Add,
            "/spec/empty/0/x",
            Some(json!(1)),
            "/spec/empty has no `0`, the list is empty",
        ),
        (
            Add,
            "/spec/args/01",
            Some(json!(1)),
            "/spec/args has no `01`, the list has 3 items; an item of a list is found by index or filter",
        ),
        (
            Add,
            "/spec/args/main",
            Some(json!(1)),
            "/spec/args has no `main`, the list has 3 items; an item of a list is found by index or filter",
        ),
        (
            Remove,
            "/spec/args/99999999999999999999999",
            None,
            "/spec/args has no `99999999999999999999999`, the list has 3 items; an item of a list is found by index or filter",
        ),
        (
            Replace,
            "/spec/args/-",
            Some(json!(1)),
            "/spec/args has no `-`; only add takes `-`, and only at the end",
        ),
        (
            Add,
            "/spec/args/-/x",
            Some(json!(1)),
            "/spec/args has no `-`; only add takes `-`, and only at the end",
        ),
        (
            Merge,
            "/spec/containers/-",
            Some(json!({})),
            "/spec/containers has no `-`; only add takes `-`, and only at the end",
        ),
        (
            Remove,
            "/spec/args/-",
            None,
            "/spec/args has no `-`, the list has 3 items; an item of a list is found by index or filter",
        ),
        (
            Add,
            "/spec/volumes/0",
            Some(json!(1)),
            "/spec has no `volumes`, and `0` does not create it",
        ),
        (
            Add,
            "/spec/volumes/[*]/x",
            Some(json!(1)),
            "/spec has no `volumes`, and `[*]` does not create it",
        ),
        (
            Add,
            "/spec/volumes/[?(@.name=='a')]/x",
            Some(json!(1)),
            "/spec has no `volumes`, and `[?(@.name=='a')]` does not create it",
        ),
        (
            Merge,
            "/spec/volumes/-",
            Some(json!({})),
            "/spec has no `volumes`, and `-` does not create it",
        ),
        (
            Add,
            "/spec/containers/[?(@.name=='x')]/env/-",
            Some(json!(1)),
            "`[?(@.name=='x')]` (segment 3 of the path) matches nothing in /spec/containers, its items are main, sidecar",
        ),
        (
            Replace,
            "/spec/containers[?(@.name=='x')]/env",
            Some(json!(1)),
            "`[?(@.name=='x')]` (segment 3 of the path) matches nothing in /spec/containers, its items are main, sidecar",
        ),
        (
            Remove,
            "/spec/containers[?(@.name=='x')]",
            None,
            "`[?(@.name=='x')]` (segment 3 of the path) matches nothing in /spec/containers, its items are main, sidecar",
        ),
        (
            Remove,
            "/spec/args[?(@==1)]",
            None,
            "`[?(@==1)]` (segment 3 of the path) matches nothing in /spec/args, the list has 3 items",
        ),
        (
            Remove,
            "/spec/empty[*]",
            None,
            "`[*]` (segment 3 of the path) matches nothing in /spec/empty, the list is empty",
        ),
        (
            Add,
            "/spec/containers[*]/ports[?(@.containerPort==80)]/x",
            Some(json!(1)),
            "`[?(@.containerPort==80)]` (segment 5 of the path) matches nothing in /spec/containers/1/ports, the list has 1 item",
        ),
        (
            Remove,
            "/spec/containers[*]/env",
            None,
            "/spec/containers/1 has no `env`, it has image, name, ports, tty",
        ),
        (
            Add,
            "/spec/replicas/x",
            Some(json!(1)),
            "/spec/replicas is the number 2; `x` needs a map or a list",
        ),
        (
            Remove,
            "/spec/replicas/x",
            None,
            "/spec/replicas is the number 2; `x` needs a map or a list",
        ),
        (
            Replace,
            "/kind/x",
            Some(json!(1)),
            "/kind is the text \"Deployment\"; `x` needs a map or a list",
        ),
        (
            Replace,
            "/spec/paused/x",
            Some(json!(1)),
            "/spec/paused is null; `x` needs a map or a list",
        ),
        (
            Merge,
            "/spec/args",
            Some(json!({})),
            "/spec/args is a list; `merge` needs a map",
        ),
        (
            Merge,
            "/spec/replicas",
            Some(json!({})),
            "/spec/replicas is the number 2; `merge` needs a map",
        ),
        (
            Merge,
            "/spec/containers[*]/tty",
            Some(json!({})),
            "/spec/containers/0/tty is true; `merge` needs a map",
        ),
        (
            Replace,
            "/spec/replicas[*]",
            Some(json!(1)),
            "/spec/replicas is the number 2; `[*]` needs a map or a list",
        ),
        (
            Replace,
            "/metadata[?(@.name=='a')]",
            Some(json!(1)),
            "/metadata is a map; `[?(@.name=='a')]` needs a list",
        ),
        (
            Add,
            "/spec/containers[?(@.name=='main')]",
            Some(json!(1)),
            "add needs a key, an index or `-` at the end of its path; use replace or merge for the items that `[?(@.name=='main')]` finds",
        ),
        (
            Add,
            "/spec/containers[*]",
            Some(json!(1)),
            "add needs a key, an index or `-` at the end of its path; use replace or merge for the items that `[*]` finds",
        ),
    ] {
        assert_eq!(
            run(&deployment(), verb, path, value),
            Err(message.to_owned()),
            "{verb:?} {path}"
        );
    }
}
