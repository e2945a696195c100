use proptest::prelude::*;
use serde_json::{Value, json};

use super::{MAX_OPERATIONS, PatchError, json_patch, merge_patch, strategic_merge};
use crate::builtin;
use crate::schema::Schema;

fn deployment() -> std::sync::Arc<Schema> {
    builtin::schema("apps", "v1", "Deployment").unwrap()
}

#[test]
fn json_patches_do_what_the_server_does() {
    let target = json!({"data": {"a": "1"}, "list": ["x", "y"]});
    let cases = [
        (
            json!([{"op": "test", "path": "/data/zz", "value": null}]),
            target.clone(),
        ),
        (
            json!([{"op": "add", "path": "/data/b", "value": "2"}]),
            json!({"data": {"a": "1", "b": "2"}, "list": ["x", "y"]}),
        ),
        (
            json!([{"op": "add", "path": "/data/b"}]),
            json!({"data": {"a": "1", "b": null}, "list": ["x", "y"]}),
        ),
        (
            json!([{"op": "replace", "path": "/data/zz", "value": 1}]),
            json!({"data": {"a": "1", "zz": 1}, "list": ["x", "y"]}),
        ),
        (
            json!([{"op": "copy", "from": "/data/zz", "path": "/data/b"}]),
            json!({"data": {"a": "1", "b": null}, "list": ["x", "y"]}),
        ),
        (
            json!([{"op": "move", "from": "/data/a", "path": "/data/b"}]),
            json!({"data": {"b": "1"}, "list": ["x", "y"]}),
        ),
        (
            json!([{"op": "add", "path": "/list/-", "value": "z"}]),
            json!({"data": {"a": "1"}, "list": ["x", "y", "z"]}),
        ),
        (
            json!([{"op": "add", "path": "/list/-1", "value": "z"}]),
            json!({"data": {"a": "1"}, "list": ["x", "y", "z"]}),
        ),
        (
            json!([{"op": "add", "path": "/list/0", "value": "z"}]),
            json!({"data": {"a": "1"}, "list": ["z", "x", "y"]}),
        ),
        (
            json!([{"op": "remove", "path": "/list/-1"}]),
            json!({"data": {"a": "1"}, "list": ["x"]}),
        ),
        (
            json!([{"op": "add", "path": "data/b", "value": 1}]),
            json!({"b": 1, "data": {"a": "1"}, "list": ["x", "y"]}),
        ),
        (
            json!([{"op": "replace", "path": "", "value": {"whole": true}}]),
            json!({"whole": true}),
        ),
        (
            json!([{"op": "add", "path": "/data/a~1b~0c", "value": 1}]),
            json!({"data": {"a": "1", "a/b~c": 1}, "list": ["x", "y"]}),
        ),
        (json!([]), target.clone()),
    ];
    for (patch, wanted) in cases {
        assert_eq!(json_patch(&target, &patch), Ok(wanted), "{patch}");
    }
}

#[test]
fn json_patches_that_do_not_apply_are_unprocessable() {
    let target = json!({"data": {"a": "1"}, "list": ["x"]});
    for patch in [
        json!([{"op": "test", "path": "/data/a", "value": "2"}]),
        json!([{"op": "test", "path": "/data/a"}]),
        json!([{"op": "test", "path": "/nope/a", "value": null}]),
        json!([{"op": "test", "path": "/list/9", "value": null}]),
        json!([{"op": "remove", "path": "/data/zz"}]),
        json!([{"op": "add", "path": "/nope/zz", "value": 1}]),
        json!([{"op": "add", "path": "/list/5", "value": 1}]),
        json!([{"op": "add", "path": "/list/x", "value": 1}]),
        json!([{"op": "add", "path": "", "value": {}}]),
        json!([{"op": "remove", "path": "/list/-"}]),
        json!([{"op": "replace", "path": "/list/5", "value": 1}]),
        json!([{"op": "move", "from": "/data/zz", "path": "/data/b"}]),
        json!([{"op": "frob", "path": "/data/a"}]),
        json!([{"path": "/data/a"}]),
        json!([{"op": "add", "value": 1}]),
        json!([{"op": "add", "path": "/data/a/b", "value": 1}]),
    ] {
        let error = json_patch(&target, &patch).unwrap_err();
        assert_eq!(error.status(), (422, "Invalid"), "{patch}: {error}");
    }
    for patch in [json!({}), json!([1]), json!([{"op": 1}]), json!("x")] {
        assert_eq!(
            json_patch(&target, &patch).unwrap_err().status(),
            (400, "BadRequest"),
            "{patch}"
        );
    }
}

#[test]
fn a_json_patch_is_bounded() {
    let test = json!({"op": "test", "path": "/zz", "value": null});
    let many = Value::Array(vec![test; MAX_OPERATIONS + 1]);
    let error = json_patch(&json!({}), &many).unwrap_err();
    assert_eq!(error.status().0, 413);
    assert_eq!(
        error.message(),
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    // Each operation doubles the object, so without a limit 30 operations would create a gigabyte.
    let bomb: Vec<Value> = (0..30)
        .map(|i| json!({"op": "copy", "from": "/a", "path": format!("/a/{i}")}))
        .collect();
    let error = json_patch(&json!({"a": {"x": "y"}}), &Value::Array(bomb)).unwrap_err();
    assert!(matches!(error, PatchError::DoesNotApply { .. }), "{error}");
}

#[test]
fn merge_patches_follow_the_rfc() {
    for (target, patch, wanted) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (
            json!({"a": ["b"]}),
            json!({"a": ["c", null]}),
            json!({"a": ["c", null]}),
        ),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (
            json!({"a": [1]}),
            json!({"a": {"b": {"c": null}}}),
            json!({"a": {"b": {}}}),
        ),
        (
            json!({}),
            json!({"a": [{"b": null, "c": 1}]}),
            json!({"a": [{"c": 1}]}),
        ),
    ] {
        assert_eq!(merge_patch(&target, &patch), Ok(wanted), "{patch}");
    }
    assert_eq!(
        merge_patch(&json!({}), &json!([])).unwrap_err().status().0,
        400
    );
    assert_eq!(
        merge_patch(&json!({}), &Value::Null).unwrap_err().message(),
        "Invalid JSON Patch"
    );
}

fn pods(containers: Value) -> Value {
    json!({"spec": {"template": {"spec": {"containers": containers}}}})
}

#[test]
fn strategic_patches_merge_lists_by_their_key() {
    let live =
        pods(json!([{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "2"}]));
    let cases = [
        (
            json!([{"name": "b", "image": "3"}]),
            json!([{"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "3"}]),
        ),
        (
            json!([{"name": "c", "image": "3"}]),
            json!([{"name": "c", "image": "3"}, {"name": "a", "image": "1", "args": ["x"]}, {"name": "b", "image": "2"}]),
        ),
        (
            json!([{"name": "a", "$patch": "delete"}]),
            json!([{"name": "b", "image": "2"}]),
        ),
        (
            json!([{"$patch": "replace"}, {"name": "z"}]),
            json!([{"name": "z"}]),
        ),
        (
            json!([{"name": "a", "args": ["y"]}]),
            json!([{"name": "a", "image": "1", "args": ["y"]}, {"name": "b", "image": "2"}]),
        ),
        (
            json!([{"name": "a", "args": null}]),
            json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]),
        ),
        (
            json!([{"name": "b", "$patch": "delete"}, {"name": "a", "image": "9"}]),
            json!([{"name": "a", "image": "9", "args": ["x"]}]),
        ),
    ];
    for (patch, wanted) in cases {
        let merged = strategic_merge(&deployment(), &live, &pods(patch.clone())).unwrap();
        assert_eq!(merged, pods(wanted), "{patch}");
    }
}

#[test]
fn strategic_directives() {
    let merge = |live: Value, patch: Value| strategic_merge(&deployment(), &live, &patch).unwrap();
    assert_eq!(
        merge(
            json!({"metadata": {"finalizers": ["a", "b", "c"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"], "finalizers": ["d"]}})
        ),
        json!({"metadata": {"finalizers": ["d", "a", "c"]}})
    );
    assert_eq!(
        merge(
            json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}),
            json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}})
        ),
        json!({"spec": {"strategy": {"type": "Recreate"}}})
    );
    assert_eq!(
        merge(
            pods(json!([{"name": "a"}, {"name": "b"}, {"name": "c"}])),
            json!({"spec": {"template": {"spec": {"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}],
                "containers": [{"name": "a", "image": "x"}]}}}})
        ),
        pods(json!([{"name": "b"}, {"name": "c"}, {"name": "a", "image": "x"}]))
    );
    assert_eq!(
        merge(
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}}})
        ),
        json!({"metadata": {"labels": {"b": "2"}}})
    );
    assert_eq!(
        merge(
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": null, "annotations": {"x": null, "y": "1"}}})
        ),
        json!({"metadata": {"annotations": {"y": "1"}}})
    );
}

#[test]
fn strategic_patches_that_make_no_sense() {
    let mut live = pods(json!([{"name": "a", "image": "x"}]));
    live["spec"]["strategy"] = json!({"type": "Recreate"});
    live["metadata"] = json!({"name": "d"});
    for (patch, status, message) in [
        (
            pods(json!([{"image": "z"}])),
            500,
            "map: map[image:z] does not contain declared merge key: name",
        ),
        (
            pods(json!([{"name": "a", "$patch": "merge"}])),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            pods(json!([{"name": "a", "$patch": "frob"}])),
            500,
            "unknown patch type: frob in map: map[$patch:frob name:a]",
        ),
        (
            json!({"spec": {"strategy": {"$retainKeys": "x"}}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"spec": {"strategy": {"$retainKeys": ["x"], "type": "y"}}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"metadata": {"$deleteFromPrimitiveList": []}}),
            400,
            "invalid patch format of primitive list",
        ),
        (
            json!([]),
            400,
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            json!({"$patch": "x"}),
            500,
            "unknown patch type: x in map: map[$patch:x]",
        ),
    ] {
        let error = strategic_merge(&deployment(), &live, &patch).unwrap_err();
        assert_eq!(
            (error.status().0, error.message().as_str()),
            (status, message),
            "{patch}"
        );
    }
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..5i64).prop_map(Value::from),
        "[ab]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc/~$]{1,2}", inner, 0..3).prop_map(|m| json!(m)),
        ]
    })
}

fn root() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", tree(), 0..4).prop_map(|m| json!(m))
}

/// Returns the merge patch that changes the object `from` to the object `to`.
fn difference(from: &Value, to: &Value) -> Value {
    let (Some(a), Some(b)) = (from.as_object(), to.as_object()) else {
        return to.clone();
    };
    let mut patch = serde_json::Map::new();
    for key in a.keys().filter(|k| !b.contains_key(*k)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in b {
        match a.get(key) {
            Some(old) if old == value => {}
            Some(old) if old.is_object() && value.is_object() => {
                patch.insert(key.clone(), difference(old, value));
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

proptest! {
    #[test]
    fn a_difference_leads_there(a in root(), b in root()) {
        prop_assert_eq!(merge_patch(&a, &difference(&a, &b)).unwrap(), b.clone());
        // The lists of this schema have no merge key, so both patch types replace them and must give the same result.
        let replaced = strategic_merge(&Schema::open(), &a, &difference(&a, &b));
        if !difference(&a, &b).to_string().contains('$') {
            prop_assert_eq!(replaced.unwrap(), b);
        }
    }

    #[test]
    fn merging_twice_is_merging_once(a in root(), b in root()) {
        let once = merge_patch(&a, &b).unwrap();
        prop_assert_eq!(&merge_patch(&once, &b).unwrap(), &once);
        prop_assert_eq!(&merge_patch(&a, &json!({})).unwrap(), &a);
    }

    #[test]
    fn no_patch_panics(a in root(), b in tree()) {
        let _ = json_patch(&a, &b);
        let _ = merge_patch(&a, &b);
        let _ = strategic_merge(&deployment(), &a, &b);
        let _ = strategic_merge(&deployment(), &json!({"spec": b.clone()}), &json!({"spec": a}));
    }

    #[test]
    fn a_whole_json_patch_replaces(a in root(), b in root()) {
        prop_assert_eq!(json_patch(&a, &json!([{"op": "replace", "path": "", "value": b}])).unwrap(), b);
    }
}
