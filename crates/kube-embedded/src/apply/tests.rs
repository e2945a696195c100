use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    ApplyError, FieldSet, Manager, Operation, Step, apply, conflict_message, track_update,
};
use crate::builtin;
use crate::patch::json_patch;
use crate::schema::Schema;

fn who<'a>(name: &'a str, operation: Operation, time: &'a str) -> Manager<'a> {
    Manager {
        name,
        operation,
        api_version: "x.dev/v1",
        subresource: None,
        time,
        reset_fields: &[],
    }
}

fn applier(name: &str) -> Manager<'_> {
    who(name, Operation::Apply, "2026-01-01T00:00:00Z")
}

fn writer(name: &str) -> Manager<'_> {
    who(name, Operation::Update, "2026-01-02T00:00:00Z")
}

fn schema() -> Schema {
    let text = json!({"type": "string"});
    Schema::from_openapi(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "replicas": {"type": "integer"}, "name": text,
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": text},
        "rows": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id", "kind"],
            "items": {"type": "object", "properties": {"id": text, "kind": {"type": "string", "default": "x"}, "value": text}}},
        "atoms": {"type": "array", "items": text},
        "whole": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "map": {"type": "object", "additionalProperties": text}}},
        "status": {"type": "object", "properties": {"phase": text}}}}))
    .unwrap()
}

fn config(spec: Value) -> Value {
    json!({"apiVersion": "x.dev/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
}

fn put(live: Option<&Value>, spec: Value, name: &str) -> Value {
    apply(&schema(), live, &config(spec), &applier(name), false).unwrap()
}

fn owned(object: &Value, name: &str) -> Value {
    let entries = object["metadata"]["managedFields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let entry = entries.into_iter().find(|e| e["manager"] == name);
    entry.map_or(Value::Null, |e| e["fieldsV1"].clone())
}

#[test]
fn an_applier_makes_an_object_and_owns_what_it_sent() {
    let made = put(
        None,
        json!({"replicas": 1, "rows": [{"id": "a", "value": "1"}], "tags": ["t"], "atoms": ["b"], "map": {"k": "v"}}),
        "ann",
    );
    assert_eq!(
        made["metadata"]["managedFields"],
        json!([{"manager": "ann", "operation": "Apply", "apiVersion": "x.dev/v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}, "f:atoms": {}, "f:map": {"f:k": {}}, "f:tags": {"v:\"t\"": {}},
                "f:rows": {"k:{\"id\":\"a\",\"kind\":\"x\"}": {".": {}, "f:id": {}, "f:value": {}}}}}}])
    );
    assert_eq!(made["spec"]["rows"], json!([{"id": "a", "value": "1"}]));
}

#[test]
fn other_values_conflict_and_force_takes_over() {
    let live = put(
        None,
        json!({"replicas": 1, "name": "n", "rows": [{"id": "a", "value": "1"}]}),
        "ann",
    );
    let wanted = config(json!({"replicas": 2, "rows": [{"id": "a", "value": "2"}]}));
    let Err(ApplyError::Conflict(conflicts)) =
        apply(&schema(), Some(&live), &wanted, &applier("bob"), false)
    else {
        panic!("no conflict");
    };
    let fields: Vec<&str> = conflicts.iter().map(|c| c.field.as_str()).collect();
    assert_eq!(
        fields,
        [".spec.replicas", r#".spec.rows[id="a",kind="x"].value"#]
    );
    assert_eq!(
        conflict_message(&conflicts),
        "Apply failed with 2 conflicts: conflicts with \"ann\":\n- .spec.replicas\n- .spec.rows[id=\"a\",kind=\"x\"].value"
    );
    let taken = apply(&schema(), Some(&live), &wanted, &applier("bob"), true).unwrap();
    assert_eq!(
        taken["spec"],
        json!({"replicas": 2, "name": "n", "rows": [{"id": "a", "value": "2"}]})
    );
    assert_eq!(
        owned(&taken, "ann"),
        json!({"f:spec": {"f:name": {}, "f:rows": {"k:{\"id\":\"a\",\"kind\":\"x\"}": {".": {}, "f:id": {}}}}})
    );
}

#[test]
fn a_writer_is_named_with_its_version_and_subresource() {
    let mut live = config(json!({"replicas": 1}));
    let mut manager = writer("kubectl-client-side-apply");
    manager.api_version = "apps/v1";
    track_update(&schema(), None, &mut live, &manager);
    let wanted = config(json!({"replicas": 2}));
    let error = apply(&schema(), Some(&live), &wanted, &applier("bob"), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" using apps/v1: .spec.replicas"
    );
    assert_eq!(error.status(), (409, "Conflict"));
    manager.subresource = Some("scale");
    let mut scaled = live.clone();
    scaled["spec"]["replicas"] = json!(3);
    track_update(&schema(), Some(&live), &mut scaled, &manager);
    let error = apply(&schema(), Some(&scaled), &wanted, &applier("bob"), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 1 conflict: conflict with \"kubectl-client-side-apply\" with subresource \"scale\" using apps/v1: .spec.replicas"
    );
}

#[test]
fn the_same_value_is_shared_and_goes_with_its_last_owner() {
    let first = put(None, json!({"name": "n", "tags": ["a", "b"]}), "ann");
    let shared = put(
        Some(&first),
        json!({"name": "n", "tags": ["b", "c"]}),
        "bob",
    );
    assert_eq!(
        shared["spec"],
        json!({"name": "n", "tags": ["a", "b", "c"]})
    );
    let one_left = put(Some(&shared), json!({}), "ann");
    assert_eq!(one_left["spec"], json!({"name": "n", "tags": ["b", "c"]}));
    assert_eq!(owned(&one_left, "ann"), json!({"f:spec": {}}));
    let none = put(Some(&one_left), json!({}), "bob");
    assert_eq!(none["spec"].get("tags"), None);
    assert_eq!(none["spec"].get("name"), None);
}

#[test]
fn atoms_are_owned_as_a_whole() {
    let first = put(
        None,
        json!({"atoms": ["a", "b"], "whole": {"x": "1"}}),
        "ann",
    );
    let error = apply(
        &schema(),
        Some(&first),
        &config(json!({"atoms": ["a"], "whole": {"y": "2"}})),
        &applier("bob"),
        false,
    )
    .unwrap_err();
    assert!(
        error.to_string().contains("- .spec.atoms\n- .spec.whole"),
        "{error}"
    );
}

#[test]
fn nothing_changed_is_the_same_object() {
    let first = put(None, json!({"name": "n", "rows": [{"id": "a"}]}), "ann");
    let mut later = applier("ann");
    later.time = "2030-01-01T00:00:00Z";
    let again = apply(
        &schema(),
        Some(&first),
        &config(json!({"name": "n", "rows": [{"id": "a"}]})),
        &later,
        false,
    )
    .unwrap();
    assert_eq!(again, first);
}

#[test]
fn a_configuration_must_fit_the_type() {
    for (spec, why) in [
        (json!({"foo": 1}), ".spec.foo: field not declared in schema"),
        (
            json!({"replicas": "x"}),
            ".spec.replicas: expected numeric (int or float), got string",
        ),
        (
            json!({"name": 3}),
            ".spec.name: expected string, got &value.valueUnstructured{Value:3}",
        ),
        (
            json!({"rows": {"a": 1}}),
            ".spec.rows: expected list, got &{map[a:1]}",
        ),
        (
            json!({"tags": ["a", "a"]}),
            ".spec.tags: duplicate entries for key [=\"a\"]",
        ),
    ] {
        let error = apply(&schema(), None, &config(spec), &applier("ann"), false).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("failed to create typed patch object (/w; x.dev/v1, Kind=Widget): {why}")
        );
        assert_eq!(error.status().0, 500);
    }
    let mut claims = config(json!({}));
    claims["metadata"]["managedFields"] = json!([]);
    assert_eq!(
        apply(&schema(), None, &claims, &applier("ann"), false),
        Err(ApplyError::ManagedFields)
    );
    assert_eq!(
        apply(&schema(), None, &json!([]), &applier("ann"), false),
        Err(ApplyError::NotAnObject)
    );
}

#[test]
fn a_write_owns_what_it_changes_and_takes_it_from_others() {
    let live = put(
        None,
        json!({"name": "n", "map": {"a": "1", "b": "2"}}),
        "ann",
    );
    let mut after = live.clone();
    after["spec"]["map"] = json!({"a": "9", "c": "3"});
    track_update(&schema(), Some(&live), &mut after, &writer("bob"));
    assert_eq!(owned(&after, "ann"), json!({"f:spec": {"f:name": {}}}));
    assert_eq!(
        owned(&after, "bob"),
        json!({"f:spec": {"f:map": {"f:a": {}, "f:c": {}}}})
    );
    let mut same = after.clone();
    let mut later = writer("bob");
    later.time = "2030-01-01T00:00:00Z";
    track_update(&schema(), Some(&after), &mut same, &later);
    assert_eq!(same, after);
}

#[test]
fn common_metadata_is_nobodys() {
    let mut made = json!({"apiVersion": "x.dev/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "d", "uid": "1",
        "resourceVersion": "5", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {"a": "b"},
        "finalizers": ["x.dev/f"], "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]}});
    track_update(&schema(), None, &mut made, &writer("bob"));
    assert_eq!(
        owned(&made, "bob"),
        json!({"f:metadata": {"f:labels": {".": {}, "f:a": {}}, "f:finalizers": {".": {}, "v:\"x.dev/f\"": {}},
            "f:ownerReferences": {".": {}, "k:{\"uid\":\"u\"}": {}}}})
    );
}

#[test]
fn owners_can_be_reset_and_return_with_the_next_apply() {
    let live = put(None, json!({"name": "n"}), "ann");
    let mut after = live.clone();
    after["metadata"]["managedFields"] = json!([{}]);
    track_update(&schema(), Some(&live), &mut after, &writer("bob"));
    assert_eq!(after["metadata"].get("managedFields"), None);
    let mut untracked = after.clone();
    untracked["spec"]["replicas"] = json!(1);
    track_update(&schema(), Some(&after), &mut untracked, &writer("bob"));
    assert_eq!(untracked["metadata"].get("managedFields"), None);
    let error = apply(
        &schema(),
        Some(&untracked),
        &config(json!({"name": "m"})),
        &applier("ann"),
        false,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("\"before-first-apply\" using x.dev/v1: .spec.name"),
        "{error}"
    );
}

#[test]
fn a_status_is_tracked_apart() {
    let mut spec = applier("ann");
    spec.reset_fields = &["status"];
    let mut wanted = config(json!({"name": "n"}));
    wanted["status"] = json!({"phase": "ignored"});
    let live = apply(&schema(), None, &wanted, &spec, false).unwrap();
    assert_eq!(owned(&live, "ann"), json!({"f:spec": {"f:name": {}}}));
    let mut controller = writer("controller");
    controller.subresource = Some("status");
    controller.reset_fields = &["spec", "metadata"];
    let mut after = live.clone();
    after["status"] = json!({"phase": "Ready"});
    after["spec"]["name"] = json!("ignored");
    after["metadata"]["managedFields"] = json!([{}]);
    track_update(&schema(), Some(&live), &mut after, &controller);
    assert_eq!(
        owned(&after, "controller"),
        json!({"f:status": {"f:phase": {}}})
    );
    assert_eq!(owned(&after, "ann"), json!({"f:spec": {"f:name": {}}}));
    assert_eq!(
        after["metadata"]["managedFields"][1]["subresource"],
        "status"
    );
}

#[test]
fn many_writers_become_a_bucket() {
    let mut live = config(json!({"map": {}}));
    track_update(&schema(), None, &mut live, &writer("w00"));
    for index in 1..15 {
        let mut after = live.clone();
        after["spec"]["map"][format!("k{index}")] = json!("v");
        let (name, time) = (
            format!("w{index:02}"),
            format!("2026-02-01T00:00:{index:02}Z"),
        );
        track_update(
            &schema(),
            Some(&live),
            &mut after,
            &who(&name, Operation::Update, &time),
        );
        live = after;
    }
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 10);
    assert_eq!(entries[0]["manager"], "ancient-changes");
    let fields = owned(&live, "ancient-changes");
    assert_eq!(fields["f:spec"]["f:map"]["f:k1"], json!({}));
}

#[test]
fn kubectl_may_take_over_from_its_own_client_side_apply() {
    let last = r#"{"apiVersion":"x.dev/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"name":"n","replicas":1}}"#;
    let mut live = config(json!({"name": "n", "replicas": 1}));
    live["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": last});
    track_update(
        &schema(),
        None,
        &mut live,
        &writer("kubectl-client-side-apply"),
    );
    let wanted = config(json!({"name": "m", "replicas": 1}));
    assert!(apply(&schema(), Some(&live), &wanted, &applier("ann"), false).is_err());
    let after = apply(&schema(), Some(&live), &wanted, &applier("kubectl"), false).unwrap();
    assert_eq!(after["spec"]["name"], "m");
    let annotation =
        after["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]
            .as_str()
            .unwrap();
    assert_eq!(annotation, format!("{wanted}\n"));
    // kubectl must not take over this field, because another manager has changed it.
    let mut changed = live.clone();
    changed["spec"]["name"] = json!("other");
    track_update(&schema(), Some(&live), &mut changed, &writer("bob"));
    let error = apply(
        &schema(),
        Some(&changed),
        &wanted,
        &applier("kubectl"),
        false,
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("conflict with \"bob\" using x.dev/v1: .spec.name"),
        "{error}"
    );
}

#[test]
fn kubectl_migrates_its_owners_by_a_json_patch() {
    let mut live = config(json!({"name": "n", "replicas": 1}));
    track_update(
        &schema(),
        None,
        &mut live,
        &writer("kubectl-client-side-apply"),
    );
    let mut entry = live["metadata"]["managedFields"][0].clone();
    entry["manager"] = json!("kubectl");
    entry["operation"] = json!("Apply");
    let mut after = json_patch(
        &live,
        &json!([{"op": "replace", "path": "/metadata/managedFields", "value": [entry]}]),
    )
    .unwrap();
    track_update(&schema(), Some(&live), &mut after, &writer("kubectl"));
    let pruned = put(Some(&after), json!({"name": "n"}), "kubectl");
    assert_eq!(pruned["spec"], json!({"name": "n"}));
    assert_eq!(owned(&pruned, "kubectl-client-side-apply"), Value::Null);
}

#[test]
fn a_new_built_in_object_owns_no_empty_structs() {
    let deployment = builtin::schema("apps", "v1", "Deployment").unwrap();
    let mut made = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1,
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "ports": [{"containerPort": 80}]}]}}}});
    deployment.fill_defaults(&mut made);
    track_update(&deployment, None, &mut made, &writer("bob"));
    let fields = owned(&made, "bob");
    assert_eq!(fields.pointer("/f:spec/."), None);
    assert_eq!(
        fields["f:spec"]["f:template"]["f:metadata"],
        json!({"f:labels": {".": {}, "f:a": {}}})
    );
    let ports =
        &fields["f:spec"]["f:template"]["f:spec"]["f:containers"]["k:{\"name\":\"c\"}"]["f:ports"];
    assert_eq!(
        *ports,
        json!({".": {}, "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}})
    );
}

#[test]
fn field_sets_are_read_and_written() {
    let json = json!({"f:a": {".": {}, "k:{\"b\":\"2\",\"a\":1}": {}}, "f:b": {"v:\"x\"": {}, "i:3": {}}, "z:unknown": {}});
    let set = FieldSet::from_json(&json);
    assert!(set.has(&[Step::field("a")]) && !set.has(&[Step::field("b")]));
    assert_eq!(
        set.to_json(),
        json!({"f:a": {".": {}, "k:{\"a\":1,\"b\":\"2\"}": {}}, "f:b": {"v:\"x\"": {}, "i:3": {}}})
    );
    assert_eq!(FieldSet::from_json(&set.to_json()), set);
}

fn spec() -> impl Strategy<Value = Value> {
    let word = || prop::sample::select(vec!["p", "q", "r"]);
    let unique = |n| prop::sample::subsequence(vec!["p", "q", "r"], 0..=n).prop_shuffle();
    let rows = prop::sample::subsequence(
        vec![("1", None), ("1", Some("y")), ("2", None), ("3", Some("x"))],
        0..=4,
    )
    .prop_shuffle()
    .prop_flat_map(move |keys| {
        (
            Just(keys.clone()),
            prop::collection::vec(prop::option::of(word()), keys.len()),
        )
    })
    .prop_map(|(keys, values)| {
        let row = |((id, kind), value): ((&str, Option<&str>), Option<&str>)| {
            let mut row = json!({"id": id});
            if let Some(kind) = kind {
                row["kind"] = json!(kind);
            }
            if let Some(value) = value {
                row["value"] = json!(value);
            }
            row
        };
        Value::Array(keys.into_iter().zip(values).map(row).collect())
    });
    let map = || prop::collection::btree_map(word(), word(), 1..3);
    (
        prop::option::of(0..3),
        prop::option::of(word()),
        prop::option::of(unique(3)),
        prop::option::of(rows),
        prop::option::of(unique(2)),
        prop::option::of(map()),
        prop::option::of(map()),
    )
        .prop_map(|(replicas, name, tags, rows, atoms, whole, map)| {
            let all = json!({"replicas": replicas, "name": name, "tags": tags, "rows": rows, "atoms": atoms, "whole": whole, "map": map});
            let kept = all.as_object().cloned().unwrap_or_default().into_iter();
            Value::Object(kept.filter(|(_, v)| !v.is_null() && v.as_array().is_none_or(|a| !a.is_empty())).collect())
        })
}

fn force(live: Option<&Value>, spec: &Value, name: &str) -> Value {
    let mut after = apply(&schema(), live, &config(spec.clone()), &applier(name), true).unwrap();
    schema().fill_defaults(&mut after);
    after
}

/// Returns the spec with its unordered lists sorted and without null fields, for comparisons.
fn unordered(object: &Value) -> Value {
    let mut spec = object["spec"].as_object().cloned().unwrap_or_default();
    for key in ["tags", "rows"] {
        if let Some(items) = spec.get_mut(key).and_then(Value::as_array_mut) {
            items.sort_by_key(ToString::to_string);
        }
    }
    spec.retain(|_, value| !value.is_null());
    Value::Object(spec)
}

proptest! {
    #[test]
    fn applying_again_changes_nothing(a in spec(), b in spec()) {
        let once = force(Some(&force(None, &a, "ann")), &b, "bob");
        prop_assert_eq!(&force(Some(&once), &b, "bob"), &once);
    }

    #[test]
    fn withdrawing_leaves_what_others_own(a in spec(), b in spec()) {
        let alone = force(None, &a, "ann");
        // bob took no fields from ann, because he applied without force. So ann's fields must stay when bob removes
        // his.
        if let Ok(mut both) = apply(&schema(), Some(&alone), &config(b), &applier("bob"), false) {
            schema().fill_defaults(&mut both);
            let back = force(Some(&both), &json!({}), "bob");
            prop_assert_eq!(unordered(&back), unordered(&alone));
            prop_assert_eq!(owned(&back, "ann"), owned(&alone, "ann"));
        }
    }

    #[test]
    fn what_is_applied_is_there(a in spec(), b in spec()) {
        let after = force(Some(&force(None, &a, "ann")), &b, "bob");
        for key in ["replicas", "name", "atoms", "whole"] {
            if let Some(value) = b.get(key) {
                prop_assert_eq!(&after["spec"][key], value);
            }
        }
    }

    #[test]
    fn sets_follow_the_laws(a in spec(), b in spec()) {
        let ty = schema();
        let (a, b) = (super::typed::field_set(ty.root(), &config(a)), super::typed::field_set(ty.root(), &config(b)));
        prop_assert_eq!(a.union(&b), b.union(&a));
        prop_assert_eq!(a.intersection(&b), b.intersection(&a));
        prop_assert_eq!(a.difference(&b).union(&a.intersection(&b)), a.clone());
        prop_assert!(a.difference(&a).is_empty());
        prop_assert_eq!(FieldSet::from_json(&a.to_json()), a);
    }

    #[test]
    fn no_object_panics(a in any_value(), b in any_value()) {
        let _ = apply(&schema(), Some(&a), &b, &applier("ann"), true);
        let mut after = b;
        track_update(&schema(), Some(&a), &mut after, &writer("bob"));
        let deployment = builtin::schema("apps", "v1", "Deployment").unwrap();
        track_update(&deployment, None, &mut after, &writer("bob"));
        deployment.fill_defaults(&mut after);
        let _ = deployment.validate(&after);
        let _ = deployment.type_errors(&after);
        let _ = deployment.prune(&mut after);
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z\"{}:.~]{0,4}".prop_map(Value::from),
    ];
    let keys = prop::sample::select(vec![
        "spec",
        "metadata",
        "status",
        "rows",
        "tags",
        "map",
        "id",
        "name",
        "managedFields",
        "fieldsV1",
        "f:spec",
        "operation",
        "template",
        "containers",
        "ports",
        "strategy",
    ]);
    leaf.prop_recursive(5, 40, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(keys.clone(), inner, 0..4).prop_map(|m| json!(m)),
        ]
    })
}
