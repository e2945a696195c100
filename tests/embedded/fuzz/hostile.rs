//! Sends requests that cost the server much: deep, long, or with many elements. The server must answer each
//! request, and must store no object that it cannot read again.

use super::shapes::{APPLY, JSON, JSON_PATCH, MERGE, STRATEGIC, Tally, sent};
use super::*;

const THINGS: &str = "/apis/fuzz.example/v1/namespaces/default/things";
const CONFIGS: &str = "/api/v1/namespaces/default/configmaps";

fn thing(name: &str, spec: Value) -> Value {
    let mut spec = spec;
    spec["color"] = json!("red");
    json!({"apiVersion": "fuzz.example/v1", "kind": "Thing", "metadata": {"name": name}, "spec": spec})
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({"a": inner}))
}

/// The server may refuse a deeply nested object. If it accepts the object, the object can be read, changed
/// and deleted.
#[test]
fn deep_objects() {
    let world = World::with(&seeds()[..1]);
    let mut tally = Tally::default();
    let mut codes = Vec::new();
    for depth in 80..130 {
        let name = format!("deep{depth}");
        let path = format!("{THINGS}/{name}");
        let object = thing(&name, json!({"any": nested(depth)}));
        let (code, _) = tally.ask(&world, &sent("POST", THINGS.into(), JSON, &object));
        codes.push(code);
        let applied = format!("{path}a?fieldManager=m");
        let named = thing(&format!("{name}a"), json!({"any": nested(depth)}));
        let (other, _) = tally.ask(&world, &sent("PATCH", applied, APPLY, &named));
        assert_eq!(code, other, "an apply of depth {depth}");
        if code != 201 {
            continue;
        }
        for (method, kind, body) in [
            ("GET", JSON, Value::Null),
            ("PATCH", MERGE, json!({"metadata": {"labels": {"a": "b"}}})),
            ("PATCH", MERGE, json!({"status": {"any": nested(depth)}})),
            ("DELETE", JSON, Value::Null),
        ] {
            let (code, said) = tally.ask(&world, &sent(method, path.clone(), kind, &body));
            assert_eq!(code, 200, "{method} at depth {depth}: {said}");
        }
    }
    assert!(codes.contains(&201) && codes.contains(&400), "{codes:?}");
    assert!(codes.is_sorted(), "{codes:?}");
    tally.end(&world, "deep");
}

/// A JSON patch copies an object into itself many times, so that the object grows.
#[test]
fn patches_that_grow() {
    let world = World::with(&seeds()[..1]);
    let mut tally = Tally::default();
    let object = thing("one", json!({"any": {"a": {}}}));
    tally.ask(&world, &sent("POST", THINGS.into(), JSON, &object));
    let path = format!("{THINGS}/one");
    let copies = |from: &str, to: &str, times: usize| {
        let one = json!({"op": "copy", "from": from, "path": to});
        Value::Array(vec![one; times])
    };
    let mut deeper = String::from("/spec/any");
    let mut moves = Vec::new();
    for _ in 0..2000 {
        moves.push(json!({"op": "add", "path": "/spec/next", "value": {}}));
        moves.push(json!({"op": "move", "from": "/spec/any", "path": "/spec/next/any"}));
        moves.push(json!({"op": "move", "from": "/spec/next", "path": "/spec/any"}));
    }
    let mut adds = Vec::new();
    for _ in 0..60 {
        adds.push(json!({"op": "add", "path": format!("{deeper}/a"), "value": nested(100)}));
        deeper.push_str(&"/a".repeat(100));
    }
    for operations in [
        copies("/spec/any", "/spec/any/a", 10_000),
        copies("/spec", "/spec/any/b", 10_000),
        copies("/metadata", "/metadata/labels", 10_000),
        Value::Array(moves),
        Value::Array(adds),
    ] {
        let (code, said) = tally.ask(
            &world,
            &sent("PATCH", path.clone(), JSON_PATCH, &operations),
        );
        assert!(matches!(code, 400 | 422), "{code} {said}");
    }
    tally.end(&world, "growing");
}

/// A CRD names an unusual or an invalid path for its scale subresource.
#[test]
fn scales_of_odd_places() {
    let world = World::with(&[]);
    let mut tally = Tally::default();
    let (collection, definition) = seeds().remove(0);
    let deep = format!(".spec{}", ".a".repeat(500_000));
    for path in [
        deep.as_str(),
        ".spec",
        "",
        ".",
        ".metadata.name",
        "spec.replicas",
        ".spec.",
    ] {
        let mut odd = definition.clone();
        odd["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"] = json!(path);
        let (code, _) = tally.ask(&world, &sent("POST", collection.clone(), JSON, &odd));
        assert_eq!(code, 422, "{:.40}", path);
    }
    // The test writes an invalid CRD directly into the store, as another process could.
    let mut odd = definition.clone();
    odd["spec"]["versions"][0]["subresources"]["scale"]["specReplicasPath"] = json!(deep);
    let kind = super::shapes::subject(&collection, definition, &[]);
    let stored = super::shapes::store_row(&world, &kind, &kind.object, &odd);
    world.runtime.block_on(stored);
    let things = sent("POST", THINGS.into(), JSON, &thing("one", json!({})));
    assert_eq!(tally.ask(&world, &things).0, 201);
    let scale = json!({"spec": {"replicas": 2}});
    tally.ask(
        &world,
        &sent("PATCH", format!("{THINGS}/one/scale"), MERGE, &scale),
    );
    tally.end(&world, "scales");
}

/// For objects with long lists or many fields, the server compares each element with all others. It must
/// still answer.
#[test]
fn long_lists() {
    let world = World::with(&seeds()[..1]);
    let mut tally = Tally::default();
    let count = sized(3_000, 100_000);
    let parts = |from: usize| -> Value {
        (from..from + count)
            .map(|at| json!({"name": format!("p{at}")}))
            .collect()
    };
    let numbers: Value = (0..count).map(|at| json!(at)).collect();
    let finalizers: Value = (0..count).map(|at| json!(format!("a.b/c{at}"))).collect();
    let owners: Value = (0..count / 10)
        .map(|at| json!({"apiVersion": "v1", "kind": "K", "name": "n", "uid": format!("u{at}")}))
        .collect();
    let unknown: Map<String, Value> = (0..count).map(|at| (format!("u{at}"), json!(1))).collect();
    let long = json!({"k".repeat(1 << 20): (0..1000).map(|at| json!({format!("u{at}"): 1})).collect::<Value>()});
    let config =
        |metadata: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
    let one = format!("{CONFIGS}/one");
    let some = format!("{THINGS}/some");
    let applied = format!("{some}?fieldManager=m&force=true");
    for (method, path, kind, body) in [
        (
            "POST",
            THINGS,
            JSON,
            thing("wrong", json!({"tags": numbers, "parts": numbers})),
        ),
        (
            "POST",
            THINGS,
            JSON,
            thing("unknown", unknown.clone().into()),
        ),
        ("POST", THINGS, JSON, thing("long", json!({"any": long}))),
        (
            "POST",
            THINGS,
            JSON,
            thing("some", json!({"parts": parts(0)})),
        ),
        (
            "PATCH",
            some.as_str(),
            MERGE,
            json!({"spec": {"parts": parts(count / 2)}}),
        ),
        (
            "PATCH",
            applied.as_str(),
            APPLY,
            thing("some", json!({"parts": parts(count)})),
        ),
        (
            "PATCH",
            applied.as_str(),
            APPLY,
            thing("some", json!({"tags": numbers})),
        ),
        (
            "POST",
            CONFIGS,
            JSON,
            config(json!({"name": "one", "finalizers": finalizers})),
        ),
        (
            "PATCH",
            one.as_str(),
            STRATEGIC,
            json!({"metadata": {"finalizers": finalizers}}),
        ),
        (
            "PATCH",
            one.as_str(),
            STRATEGIC,
            json!({"metadata": {"ownerReferences": owners}}),
        ),
        (
            "PATCH",
            one.as_str(),
            STRATEGIC,
            json!({"metadata": {"ownerReferences": owners, "$setElementOrder/ownerReferences": owners}}),
        ),
        (
            "PATCH",
            one.as_str(),
            STRATEGIC,
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers}}),
        ),
        (
            "POST",
            CONFIGS,
            JSON,
            config(json!({"name": "two", "labels": unknown})),
        ),
        ("POST", CONFIGS, JSON, config(unknown.into())),
    ] {
        tally.ask(&world, &sent(method, path.into(), kind, &body));
    }
    tally.end(&world, "long");
}
