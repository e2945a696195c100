use serde_json::{Value, json};

use super::{Reason, Schema, SchemaError};

fn widget() -> Schema {
    Schema::from_openapi(&json!({
        "type": "object",
        "required": ["spec"],
        "properties": {
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 5}}},
            "spec": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
                    "replicas": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 5, "default": 1},
                    "ratio": {"type": "number", "exclusiveMinimum": true, "minimum": 0.5},
                    "size": {"type": "string", "enum": ["S", "M"]},
                    "port": {"x-kubernetes-int-or-string": true},
                    "when": {"type": "string", "format": "date-time"},
                    "maybe": {"type": "string", "nullable": true, "default": "d"},
                    "tags": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 2, "items": {"type": "string"}},
                    "rows": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                             "items": {"type": "object", "required": ["id"], "properties": {
                                 "id": {"type": "string"}, "on": {"type": "boolean", "default": true}}}},
                    "labels": {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "string"}},
                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                             "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}},
                    "inner": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
                    "choice": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                               "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
                    "never": {"type": "string", "not": {"enum": ["x"]}},
                    "both": {"type": "string", "allOf": [{"minLength": 2}, {"pattern": "^a"}]},
                    "either": {"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]}
                }
            },
            "status": {"type": "object", "properties": {"phase": {"type": "string", "default": "New"}}}
        }
    }))
    .unwrap()
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "x.dev/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec})
}

#[test]
fn errors_are_worded_as_the_server_words_them() {
    let cases = [
        (
            json!({"name": "ab", "replicas": "x"}),
            r#"spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string""#,
        ),
        (
            json!({"name": "ab", "replicas": 9}),
            "spec.replicas: Invalid value: 9: spec.replicas in body should be less than or equal to 5",
        ),
        (
            json!({"name": "ab", "replicas": 0}),
            "spec.replicas: Invalid value: 0: spec.replicas in body should be greater than or equal to 1",
        ),
        (
            json!({"name": "ab", "ratio": 0.5}),
            "spec.ratio: Invalid value: 0.5: spec.ratio in body should be greater than 0.5",
        ),
        (json!({}), "spec.name: Required value"),
        (
            json!({"name": "abcde"}),
            "spec.name: Too long: may not be more than 4 bytes",
        ),
        (
            json!({"name": "a"}),
            r#"spec.name: Invalid value: "a": spec.name in body should be at least 2 chars long"#,
        ),
        (
            json!({"name": "A1"}),
            r#"spec.name: Invalid value: "A1": spec.name in body should match '^[a-z]+$'"#,
        ),
        (
            json!({"name": null}),
            r#"spec.name: Invalid value: "null": spec.name in body must be of type string: "null""#,
        ),
        (
            json!({"name": "ab", "size": "L"}),
            r#"spec.size: Unsupported value: "L": supported values: "S", "M""#,
        ),
        (
            json!({"name": "ab", "port": true}),
            r#"spec.port: Invalid value: "boolean": spec.port in body must be of type integer,string: "boolean""#,
        ),
        (
            json!({"name": "ab", "when": "now"}),
            r#"spec.when: Invalid value: "now": spec.when in body must be of type date-time: "now""#,
        ),
        (
            json!({"name": "ab", "tags": ["a", "a"]}),
            r#"spec.tags[1]: Duplicate value: "a""#,
        ),
        (
            json!({"name": "ab", "tags": ["a", "b", "c"]}),
            "spec.tags: Too many: 3: must have at most 2 items",
        ),
        (
            json!({"name": "ab", "rows": [{"id": "1"}, {"id": "1"}]}),
            r#"spec.rows[1]: Duplicate value: {"id":"1"}"#,
        ),
        (
            json!({"name": "ab", "rows": [{}]}),
            "spec.rows[0].id: Required value",
        ),
        (
            json!({"name": "ab", "labels": {"a": 1}}),
            r#"spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer""#,
        ),
        (
            json!({"name": "ab", "labels": {"a": "1", "b": "2"}}),
            "spec.labels: Too many: 2: must have at most 1 item",
        ),
        (
            json!({"name": "ab", "inner": {"kind": "X"}}),
            "spec.inner.apiVersion: Required value",
        ),
        (
            json!({"name": "ab", "never": "x"}),
            r#"<nil>: Invalid value: "": "spec.never" must not validate the schema (not)"#,
        ),
    ];
    for (spec, wanted) in cases {
        let errors: Vec<String> = widget()
            .validate(&object(spec.clone()))
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(errors, [wanted], "{spec}");
    }
}

#[test]
fn combinations_name_the_schema_and_explain_the_best_alternative() {
    let say = |spec: Value| -> Vec<String> {
        widget()
            .validate(&object(spec))
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        say(json!({"name": "ab", "choice": {}})),
        [
            r#"<nil>: Invalid value: "": "spec.choice" must validate one and only one schema (oneOf). Found none valid"#,
            "spec.choice.a: Required value"
        ]
    );
    assert_eq!(
        say(json!({"name": "ab", "choice": {"a": "", "b": ""}})),
        [
            r#"<nil>: Invalid value: "": "spec.choice" must validate one and only one schema (oneOf). Found 2 valid alternatives"#
        ]
    );
    assert_eq!(
        say(json!({"name": "ab", "either": "c"})),
        [
            r#"<nil>: Invalid value: "": "spec.either" must validate at least one schema (anyOf)"#,
            r#"spec.either: Invalid value: "c": spec.either in body should match '^a'"#
        ]
    );
    assert_eq!(
        say(json!({"name": "ab", "both": "b"})),
        [
            r#"spec.both: Invalid value: "b": spec.both in body should be at least 2 chars long"#,
            r#"spec.both: Invalid value: "b": spec.both in body should match '^a'"#,
            r#"<nil>: Invalid value: "": "spec.both" must validate all the schemas (allOf). None validated"#
        ]
    );
}

#[test]
fn a_crd_can_ask_something_of_the_name() {
    let mut long = object(json!({"name": "ab"}));
    long["metadata"]["name"] = json!("abcdefgh");
    let errors = widget().validate(&long);
    assert_eq!(errors.len(), 1);
    assert_eq!(
        (errors[0].path.as_str(), errors[0].reason),
        ("metadata.name", Reason::FieldValueTooLong)
    );
}

#[test]
fn what_did_not_change_is_not_held_against_an_update() {
    let old = object(json!({"name": "ab", "size": "XL", "rows": [{"id": "1", "on": 3}]}));
    let mut new = old.clone();
    new["spec"]["replicas"] = json!(2);
    assert_eq!(widget().validate(&new).len(), 2);
    assert_eq!(widget().validate_update(&new, &old), []);
    new["spec"]["size"] = json!("XXL");
    assert_eq!(widget().validate_update(&new, &old).len(), 1);
}

#[test]
fn defaults_fill_and_nulls_vanish() {
    let mut found = object(
        json!({"name": "ab", "size": null, "maybe": null, "rows": [{"id": "1"}], "free": {"x": null}}),
    );
    found["status"] = json!({});
    widget().fill_defaults(&mut found);
    assert_eq!(found, {
        let mut wanted = object(
            json!({"name": "ab", "maybe": null, "replicas": 1, "rows": [{"id": "1", "on": true}], "free": {"x": null}}),
        );
        wanted["status"] = json!({"phase": "New"});
        wanted
    });
}

#[test]
fn pruning_drops_and_names_what_the_schema_does_not_know() {
    let mut found = json!({
        "apiVersion": "x.dev/v1", "kind": "Widget", "extra": 1,
        "metadata": {"name": "a", "labels": {"any": "thing"}, "nonsense": 1},
        "spec": {
            "name": "ab", "foo": 1, "labels": {"k": "v"}, "port": "http",
            "rows": [{"id": "1"}, {"id": "2", "bar": {"x": 1}}],
            "free": {"kept": {"deep": 1}, "known": {"a": "1", "b": 2}},
            "inner": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "odd": 1}, "spec": {"any": 1}}
        }
    });
    let dropped = widget().prune(&mut found);
    assert_eq!(
        dropped,
        [
            "extra",
            "metadata.nonsense",
            "spec.foo",
            "spec.free.known.b",
            "spec.inner.metadata.odd",
            "spec.rows[1].bar"
        ]
    );
    assert_eq!(widget().prune(&mut found), Vec::<String>::new());
    assert_eq!(found["spec"]["free"]["kept"]["deep"], 1);
    assert_eq!(found["spec"]["inner"]["spec"]["any"], 1);
}

#[test]
fn a_bad_schema_says_where() {
    let bad = |v: Value| Schema::from_openapi(&v).unwrap_err();
    assert!(matches!(
        bad(json!({"properties": {"spec": {"type": "thing"}}})),
        SchemaError::UnknownType { path, .. } if path == "spec"
    ));
    assert!(matches!(
        bad(json!({"properties": {"spec": {"type": "string", "pattern": "("}}})),
        SchemaError::Pattern { path, .. } if path == "spec"
    ));
    assert!(matches!(bad(json!([])), SchemaError::NotAnObject { .. }));
}

#[test]
fn an_open_schema_keeps_everything() {
    let mut found = json!({"spec": {"a": [1, {"b": null}]}, "other": 1});
    let before = found.clone();
    assert!(Schema::open().prune(&mut found).is_empty());
    Schema::open().fill_defaults(&mut found);
    assert_eq!(found, before);
    assert_eq!(Schema::open().validate(&found), []);
}

#[test]
fn metadata_of_custom_resources_is_that_of_the_server() {
    let theirs =
        crate::builtin::definitions()["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"]
            ["properties"]
            .clone();
    let ours = super::parse::object_meta()["properties"].clone();
    let (theirs, ours) = (theirs.as_object().unwrap(), ours.as_object().unwrap());
    assert!(theirs.keys().eq(ours.keys()));
    for (name, property) in theirs {
        for extension in [
            "type",
            "x-kubernetes-list-type",
            "x-kubernetes-list-map-keys",
            "x-kubernetes-patch-merge-key",
            "x-kubernetes-patch-strategy",
        ] {
            if let Some(wanted) = property.get(extension) {
                assert_eq!(
                    ours[name].get(extension),
                    Some(wanted),
                    "{name} {extension}"
                );
            }
        }
    }
}
