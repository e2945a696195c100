use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

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

fn run(
    resource: &Value,
    verb: PatchVerb,
    path: &str,
    value: Option<Value>,
) -> Result<Value, String> {
    let path = Path::parse(path).map_err(|error| format!("{path}: {error}"))?;
    let mut patched = resource.clone();
    let done = apply(&mut patched, verb, &path, value.as_ref());
    match done {
        Ok(()) => Ok(patched),
        Err(error) => {
            assert_eq!(&patched, resource, "{path} failed, so nothing may change");
            Err(error.to_string())
        }
    }
}

/// Looks a pointer up, null for what is not there.
fn at(value: &Value, pointer: &str) -> Value {
    value.pointer(pointer).cloned().unwrap_or_default()
}

#[test]
fn what_operations_do() {
    use PatchVerb::{Add, Merge, Replace};
    let c = "/spec/containers";
    for (verb, path, value, looked_at, expected) in [
        // add: keys
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
        // add: lists
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
        // add: through filters and wildcards
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
        // replace
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
        // merge
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
            "remove takes no value; take it away, or use replace",
        ),
        (
            Merge,
            "/spec",
            Some(json!([1])),
            "merge needs a map as its value, and this is a list; use replace or add",
        ),
        (
            Merge,
            "/spec",
            Some(json!("x\u{1b}y")),
            "merge needs a map as its value, and this is the text \"x\u{fffd}y\"; use replace or add",
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
            "add needs a key, an index or `-` at the end of its path; for what `[?(@.name=='main')]` finds use replace or merge",
        ),
        (
            Add,
            "/spec/containers[*]",
            Some(json!(1)),
            "add needs a key, an index or `-` at the end of its path; for what `[*]` finds use replace or merge",
        ),
    ] {
        assert_eq!(
            run(&deployment(), verb, path, value),
            Err(message.to_owned()),
            "{verb:?} {path}"
        );
    }
}

#[test]
fn paths_that_are_none() {
    for (text, column, message) in [
        (
            "spec",
            1,
            "expected a path that begins with `/`, found `spec`",
        ),
        (
            "[*]",
            1,
            "expected a path that begins with `/`, found `[*]`",
        ),
        (
            "/",
            2,
            "a segment is empty; the whole resource is the empty path, and a path does not end with `/`",
        ),
        (
            "/spec/",
            7,
            "a segment is empty; the whole resource is the empty path, and a path does not end with `/`",
        ),
        (
            "/spec//x",
            7,
            "a segment is empty; the whole resource is the empty path, and a path does not end with `/`",
        ),
        (
            "/a~x",
            3,
            "`~` begins an escape: ~0 is ~, ~1 is /, ~2 is [, ~3 is ' and ~4 is \"",
        ),
        (
            "/größe~",
            7,
            "`~` begins an escape: ~0 is ~, ~1 is /, ~2 is [, ~3 is ' and ~4 is \"",
        ),
        (
            "/a[",
            3,
            "a bracket holds `*`, an index or a filter as in `[?(@.name=='main')]`; write ~2 for a `[` in a key",
        ),
        (
            "/a[x]",
            3,
            "a bracket holds `*`, an index or a filter as in `[?(@.name=='main')]`; write ~2 for a `[` in a key",
        ),
        (
            "/a[1",
            3,
            "a bracket holds `*`, an index or a filter as in `[?(@.name=='main')]`; write ~2 for a `[` in a key",
        ),
        (
            "/a[*]b",
            6,
            "expected `/` or the end of the path, found `b`",
        ),
        (
            "/a[?@.b=='c']",
            5,
            "expected `(` after `[?`, found `@.b=='c']`",
        ),
        (
            "/a[?(b=='c')]",
            6,
            "expected `@`, which is the item, as in `@.name`, found `b=='c')]`",
        ),
        (
            "/a[?(@.=='c')]",
            8,
            "expected the name of a field, found `=='c')]`",
        ),
        ("/a[?(@.b)]", 9, "expected `==` or `!=`, found `)]`"),
        ("/a[?(@.b='c')]", 9, "expected `==` or `!=`, found `='c')]`"),
        ("/a[?(@.b<3)]", 9, "expected `==` or `!=`, found `<3)]`"),
        (
            "/a[?(@.b==c)]",
            11,
            "expected a text in quotes, a number, true or false, found `c)]`",
        ),
        (
            "/a[?(@.b==null)]",
            11,
            "expected a text in quotes, a number, true or false, found `null)]`",
        ),
        (
            "/a[?(@.b==)]",
            11,
            "expected a text in quotes, a number, true or false, found `)]`",
        ),
        ("/a[?(@.b=='c)]", 11, "the quote is not closed"),
        ("/a[?(@.b==\"c')]", 11, "the quote is not closed"),
        (
            "/a[?(@.b=='c'",
            14,
            "expected `&&` or `)]`, found the end of the path",
        ),
        (
            "/a[?(@.b=='c')",
            15,
            "expected `]` after the filter, found the end of the path",
        ),
        (
            "/a[?(@.b=='c' || @.d=='e')]",
            15,
            "expected `&&` or `)]`, found `|| @.d=='e')]`",
        ),
        (
            "/a[?(@.b=='c' && )]",
            18,
            "expected `@`, which is the item, as in `@.name`, found `)]`",
        ),
        (
            "/a[?(@[b]=='c')]",
            8,
            "expected a quoted name of a field, as in `@['a.b']`, found `b]=='c')]`",
        ),
        (
            "/a[?(@['b'=='c')]",
            11,
            "expected `]` after the name, found `=='c')]`",
        ),
    ] {
        let error = Path::parse(text).expect_err(text);
        assert_eq!(
            (error.column, error.message.as_str()),
            (column, message),
            "{text}"
        );
    }
}

#[test]
fn paths_are_bounded() {
    assert!(Path::parse(&"/a".repeat(MAX_SEGMENTS)).is_ok());
    for (text, message) in [
        ("/a".repeat(MAX_SEGMENTS + 1), "more than 64 segments"),
        (
            format!("/a{}", "[*]".repeat(4_000)),
            "more than 64 segments",
        ),
        (format!("/{}", "a".repeat(MAX_LENGTH)), "longer than"),
        (
            format!("/a[?({})]", ["@.b==1"; 17].join("&&")),
            "at most 16 conditions",
        ),
        (
            format!("/a[?(@{}==1)]", ".b".repeat(100)),
            "more than 64 parts",
        ),
    ] {
        let error = Path::parse(&text).expect_err(message);
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn one_form_of_many() {
    for (text, shown) in [
        ("", ""),
        ("/spec/containers/0", "/spec/containers/0"),
        ("/spec/containers[0]", "/spec/containers/0"),
        ("/a[*][*]/b", "/a/[*]/[*]/b"),
        ("/[*]/b", "/[*]/b"),
        ("/c[?( @.name == \"main\" )]", "/c/[?(@.name=='main')]"),
        (
            "/c/[?(@.a.b!='x'&&@.n==1.50)]",
            "/c/[?(@.a.b!='x' && @.n==1.5)]",
        ),
        ("/c[?(@=='a/b')]", "/c/[?(@=='a~1b')]"),
        ("/c[?(@['a.b/c']==true)]", "/c/[?(@['a.b~1c']==true)]"),
        ("/c[?(@.x==\"it's\")]/d", "/c/[?(@.x=='it~3s')]/d"),
        ("/a~1b/c~0d/e~2f", "/a~1b/c~0d/e~2f"),
        ("/it's", "/it~3s"),
    ] {
        let path = Path::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(path.to_string(), shown, "{text}");
        assert_eq!(Path::parse(shown), Ok(path), "{text}");
    }
}

#[test]
fn any_text_is_one_key() {
    for text in [
        "a/b",
        "a~1b",
        "[*]",
        "[?(@.x=='y')]",
        "'",
        "\"",
        "a b",
        "-",
        "é",
    ] {
        let key = Path::parse(&format!("/x/{}", escape(text))).unwrap();
        assert_eq!(
            key.segments,
            [Segment::Key("x".into()), Segment::Key(text.into())]
        );
        let resource = json!({"x": [{"name": text, "hit": 0}, {"name": "other"}]});
        for quote in ["'", "\""] {
            let path = format!("/x[?(@.name=={quote}{}{quote})]/hit", escape(text));
            let patched = run(&resource, PatchVerb::Replace, &path, Some(json!(1))).unwrap();
            assert_eq!(at(&patched, "/x/0/hit"), json!(1), "{path}");
        }
    }
}

#[test]
fn operations_are_bounded() {
    let many: Vec<Value> = (0..MAX_MATCHES + 1)
        .map(|n| json!({"n": n, "inner": [1, 2]}))
        .collect();
    let resource = json!({"many": many, "some": many[..MAX_MATCHES].to_vec()});
    let too_many = Err(PatchError::TooManyMatches.to_string());
    assert_eq!(
        run(&resource, PatchVerb::Add, "/many[*]/x", Some(json!(1))),
        too_many
    );
    assert_eq!(
        run(&resource, PatchVerb::Remove, "/many[*]", None),
        too_many
    );
    assert_eq!(
        run(
            &resource,
            PatchVerb::Replace,
            "/some[*]/inner[*]",
            Some(json!(1))
        ),
        too_many
    );
    assert_eq!(
        run(&resource, PatchVerb::Remove, "/some[*]/inner[*]", None),
        too_many
    );
    assert!(run(&resource, PatchVerb::Add, "/some[*]/x", Some(json!(1))).is_ok());
    let large = json!("x".repeat(MAX_ADDED / 100));
    assert_eq!(
        run(&resource, PatchVerb::Add, "/some[*]/x", Some(large.clone())),
        Err(PatchError::TooMuch.to_string())
    );
    assert!(run(&resource, PatchVerb::Add, "/some/0/x", Some(large)).is_ok());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..9i64).prop_map(Value::from),
        prop_oneof![Just("main"), Just("x"), Just("a/b")].prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 60, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(key(), inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn any_container() -> impl Strategy<Value = Value> {
    any_json().prop_map(|value| match value {
        Value::Array(_) | Value::Object(_) => value,
        other => json!([other]),
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop_oneof![Just("a"), Just("b"), Just("name"), Just("0"), Just("-"), Just("a/b"), Just("[*]")]
            .prop_map(str::to_owned),
        1 => "\\PC{1,4}",
    ]
}

fn any_path() -> impl Strategy<Value = Path> {
    let literal = prop_oneof![
        key().prop_map(|text| format!("'{}'", escape(&text))),
        (-2..9i64).prop_map(|number| number.to_string()),
        any::<bool>().prop_map(|flag| flag.to_string()),
        any::<f64>()
            .prop_filter("finite", |n| n.is_finite())
            .prop_map(|n| json!(n).to_string()),
    ];
    let fields = prop::collection::vec(key(), 0..3).prop_map(|fields| {
        fields
            .iter()
            .map(|field| format!("['{}']", escape(field)))
            .collect::<String>()
    });
    let condition = (fields, prop_oneof![Just("=="), Just("!=")], literal)
        .prop_map(|(fields, operator, literal)| format!("@{fields}{operator}{literal}"));
    let segment = prop_oneof![
        4 => key().prop_map(|key| escape(&key)),
        1 => Just("[*]".to_owned()),
        1 => prop::collection::vec(condition, 1..3).prop_map(|all| format!("[?({})]", all.join(" && "))),
    ];
    prop::collection::vec(segment, 0..5).prop_map(|segments| {
        let text: String = segments
            .iter()
            .map(|segment| format!("/{segment}"))
            .collect();
        Path::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
    })
}

/// Lists the paths at which something can be added that is not there: new keys and all indices.
fn additions(value: &Value, path: String, out: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            out.push(format!("{path}/fresh"));
            for (key, value) in map {
                additions(value, format!("{path}/{}", escape(key)), out);
            }
        }
        Value::Array(items) => {
            out.extend((0..=items.len()).map(|at| format!("{path}/{at}")));
            for (at, value) in items.iter().enumerate() {
                additions(value, format!("{path}/{at}"), out);
            }
        }
        _ => {}
    }
}

fn any_verb() -> impl Strategy<Value = PatchVerb> {
    prop_oneof![
        Just(PatchVerb::Add),
        Just(PatchVerb::Replace),
        Just(PatchVerb::Remove),
        Just(PatchVerb::Merge)
    ]
}

proptest! {
    #[test]
    fn paths_survive_being_written(path in any_path()) {
        prop_assert_eq!(Path::parse(&path.to_string()), Ok(path));
    }

    #[test]
    fn no_text_breaks_the_reader(text in "[/\\[\\]?()@.'\"=!&*~0-9a é-]{0,40}") {
        match Path::parse(&text) {
            Ok(path) => prop_assert_eq!(Path::parse(&path.to_string()), Ok(path)),
            Err(error) => prop_assert!((1..=text.chars().count() + 1).contains(&error.column)),
        }
    }

    #[test]
    fn all_or_nothing(resource in any_json(), verb in any_verb(), path in any_path(), value in prop::option::of(any_json())) {
        let mut patched = resource.clone();
        if apply(&mut patched, verb, &path, value.as_ref()).is_err() {
            prop_assert_eq!(patched, resource);
        }
    }

    #[test]
    fn removing_what_was_added_restores(
        resource in any_container(), place in any::<prop::sample::Index>(), value in any_json()
    ) {
        let mut places = Vec::new();
        additions(&resource, String::new(), &mut places);
        let path = Path::parse(place.get(places.as_slice()).as_str()).unwrap();
        let mut patched = resource.clone();
        prop_assert_eq!(apply(&mut patched, PatchVerb::Add, &path, Some(&value)), Ok(()));
        prop_assert_ne!(&patched, &resource);
        prop_assert_eq!(apply(&mut patched, PatchVerb::Remove, &path, None), Ok(()));
        prop_assert_eq!(patched, resource);
    }

    #[test]
    fn adding_twice_is_adding_once_to_maps(resource in any_json(), path in any_path(), value in any_json()) {
        let segments = path.segments.into_iter();
        let path = Path {
            segments: segments
                .filter(|segment| matches!(segment, Segment::Key(key) if key != "-" && parse_index(key).is_none()))
                .collect(),
        };
        let mut once = resource;
        if apply(&mut once, PatchVerb::Add, &path, Some(&value)).is_ok() {
            let mut twice = once.clone();
            prop_assert_eq!(apply(&mut twice, PatchVerb::Add, &path, Some(&value)), Ok(()));
            prop_assert_eq!(twice, once);
        }
    }
}
