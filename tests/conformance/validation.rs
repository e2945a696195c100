//! Cases about invalid objects and unknown fields.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    strategic::deployment,
    target::{Patch, Target, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(an_enumeration),
        case(bounds_of_a_number),
        case(length_and_pattern_of_a_text),
        case(a_type),
        case(a_required_field),
        case(several_mistakes_are_listed),
        case(a_set_with_a_value_twice),
        case(a_list_map_with_a_key_twice),
        case(a_rule),
        case(a_rule_with_a_reason_and_a_field),
        case(a_rule_about_a_change),
        case(null_becomes_the_default),
        case(unknown_fields_are_dropped),
        case(unknown_fields_stay_where_they_may),
        case(int_or_string),
        case(unknown_fields_strictly),
        case(unknown_fields_with_a_warning),
        case(unknown_fields_ignored),
        case(unknown_fields_of_built_in_kinds_strictly),
        case(unknown_fields_of_built_in_kinds_with_a_warning),
        case(unknown_fields_in_a_patch_strictly),
        case(duplicate_fields_strictly),
        case(a_field_validation_that_nobody_knows),
        case(a_selector_that_does_not_select),
        case(a_selector_cannot_be_changed),
        case(a_label_that_cannot_be),
        case(a_key_that_cannot_be),
        case(a_service_without_ports),
    ]
}

async fn refused(t: &Target, spec: Value) -> crate::target::Answer {
    t.post(&t.widgets(""), &widget::with_spec("a", spec)).await
}

async fn an_enumeration(t: Target) -> Outcome {
    let details = refused(&t, json!({"color": "pink"}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [spec.color: Unsupported value: "pink": supported values: "red", "green", "blue", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"#);
    same(
        "details",
        &details,
        json!({"causes": [{"field": "spec.color", "message": "Unsupported value: \"pink\": supported values: \"red\", \"green\", \"blue\"", "reason": "FieldValueNotSupported"}, {"field": "<nil>", "message": "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation", "reason": "FieldValueInvalid"}], "group": "conformance.bowline.dev", "kind": "Widget", "name": "a"}),
    );
    Ok(())
}

async fn bounds_of_a_number(t: Target) -> Outcome {
    refused(&t, json!({"replicas": 11}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10"#);
    refused(&t, json!({"replicas": -1}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, .spec.replicas: Invalid value: -1: should be a non-negative integer]"#);
    Ok(())
}

async fn length_and_pattern_of_a_text(t: Target) -> Outcome {
    refused(&t, json!({"detail": "a".repeat(21)}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [spec.detail: Too long: may not be more than 20 bytes, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"#);
    refused(&t, json!({"detail": "NO"}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: spec.detail: Invalid value: "NO": spec.detail in body should match '^[a-z ]*$'"#);
    Ok(())
}

async fn a_type(t: Target) -> Outcome {
    let details = refused(&t, json!({"replicas": "two"}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string", .spec.replicas: Invalid value: 0: .spec.replicas accessor error: two is of the type string, expected int64, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"#);
    same(
        "first cause",
        &details["causes"][0]["reason"],
        json!("FieldValueTypeInvalid"),
    );
    refused(&t, json!({"tags": "x"}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [spec.tags: Invalid value: "string": spec.tags in body must be of type array: "string", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"#);
    Ok(())
}

async fn a_required_field(t: Target) -> Outcome {
    refused(&t, json!({"parts": [{"count": 1}]}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [spec.parts[0].name: Required value, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"#);
    Ok(())
}

async fn several_mistakes_are_listed(t: Target) -> Outcome {
    let answer = refused(&t, json!({"color": "pink", "replicas": 11})).await;
    same("code", &json!(answer.code), json!(422));
    // The causes are sorted, because a real server lists them in any order.
    let mut causes: Vec<String> = answer.body["details"]["causes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|cause| format!("{}: {}", text(cause, "/field"), text(cause, "/message")))
        .collect();
    let message = text(&answer.body, "/message");
    for cause in &causes {
        assert!(message.contains(cause), "{cause} is not in {message}");
    }
    causes.sort();
    same(
        "causes",
        &json!(causes),
        json!([
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
            r#"spec.color: Unsupported value: "pink": supported values: "red", "green", "blue""#,
            "spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10",
        ]),
    );
    Ok(())
}

async fn a_set_with_a_value_twice(t: Target) -> Outcome {
    refused(&t, json!({"tags": ["x", "y", "x"]})).await.refused(
        422,
        "Invalid",
        r#"Widget.conformance.bowline.dev "a" is invalid: spec.tags[2]: Duplicate value: "x""#,
    );
    Ok(())
}

async fn a_list_map_with_a_key_twice(t: Target) -> Outcome {
    refused(&t, json!({"parts": [{"name": "x"}, {"name": "x"}]}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: spec.parts[1]: Duplicate value: {"name":"x"}"#);
    Ok(())
}

async fn a_rule(t: Target) -> Outcome {
    let details = refused(&t, json!({"low": 5, "high": 3}))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: spec: Invalid value: low must not be above high"#);
    same(
        "details",
        &details,
        json!({"causes": [{"field": "spec", "message": "Invalid value: low must not be above high", "reason": "FieldValueInvalid"}], "group": "conformance.bowline.dev", "kind": "Widget", "name": "a"}),
    );
    Ok(())
}

async fn a_rule_with_a_reason_and_a_field(t: Target) -> Outcome {
    let details = refused(&t, json!({"low": -5})).await.refused(
        422,
        "Invalid",
        r#"Widget.conformance.bowline.dev "a" is invalid: spec.low: Forbidden: low is below zero"#,
    );
    same(
        "details",
        &details,
        json!({"causes": [{"field": "spec.low", "message": "Forbidden: low is below zero", "reason": "FieldValueForbidden"}], "group": "conformance.bowline.dev", "kind": "Widget", "name": "a"}),
    );
    Ok(())
}

async fn a_rule_about_a_change(t: Target) -> Outcome {
    t.widget("a", json!({"serial": "one"})).await;
    t.patch(
        &t.widgets("/a"),
        Patch::Merge,
        &json!({"spec": {"serial": "two"}}),
    )
    .await
    .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: spec.serial: Invalid value: "two": serial cannot be changed"#);
    let patched = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"spec": {"detail": "d"}}),
        )
        .await
        .ok();
    same("serial", &patched["spec"]["serial"], json!("one"));
    Ok(())
}

async fn null_becomes_the_default(t: Target) -> Outcome {
    let made = t
        .widget(
            "a",
            json!({"color": null, "detail": null, "limits": {"cpu": null}, "parts": [{"name": "x", "note": null}]}),
        )
        .await;
    same(
        "spec",
        &made["spec"],
        json!({"color": "red", "limits": {"cpu": "1"}, "parts": [{"count": 1, "name": "x", "note": null}]}),
    );
    Ok(())
}

async fn unknown_fields_are_dropped(t: Target) -> Outcome {
    let mut body = widget::with_spec("a", json!({"nope": 1, "limits": {"nope": 2}}));
    body["nope"] = json!(3);
    let made = t.post(&t.widgets(""), &body).await.created();
    same(
        "spec",
        &made["spec"],
        json!({"color": "red", "limits": {"cpu": "1"}}),
    );
    same("top", &made["nope"], json!(null));
    Ok(())
}

async fn unknown_fields_stay_where_they_may(t: Target) -> Outcome {
    let anything = json!({"deep": {"er": [1, {"x": null}]}, "n": 1.5});
    let made = t.widget("a", json!({"anything": anything})).await;
    same(
        "anything",
        &made["spec"]["anything"],
        json!({"deep": {"er": [1, {"x": null}]}, "n": 1.5}),
    );
    Ok(())
}

async fn int_or_string(t: Target) -> Outcome {
    let made = t.widget("a", json!({"size": 3})).await;
    same("size", &made["spec"]["size"], json!(3));
    let made = t.widget("b", json!({"size": "50%"})).await;
    same("size", &made["spec"]["size"], json!("50%"));
    t.post(
        &t.widgets(""),
        &widget::with_spec("c", json!({"size": true})),
    )
    .await
    .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "c" is invalid: [spec.size: Invalid value: "boolean": spec.size in body must be of type integer,string: "boolean", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"#);
    Ok(())
}

async fn validated(t: &Target, validation: &str, spec: Value) -> crate::target::Answer {
    let path = format!("{}?fieldValidation={validation}", t.widgets(""));
    t.post(&path, &widget::with_spec("a", spec)).await
}

async fn unknown_fields_strictly(t: Target) -> Outcome {
    validated(&t, "Strict", json!({"nope": 1, "limits": {"nope": 2}}))
        .await
        .refused(400, "BadRequest", r#"Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.limits.nope", unknown field "spec.nope""#);
    Ok(())
}

async fn unknown_fields_with_a_warning(t: Target) -> Outcome {
    let answer = validated(&t, "Warn", json!({"nope": 1, "limits": {"nope": 2}})).await;
    same(
        "warnings",
        &json!(answer.warnings),
        json!([
            "299 - \"unknown field \\\"spec.limits.nope\\\"\"",
            "299 - \"unknown field \\\"spec.nope\\\"\""
        ]),
    );
    answer.created();
    // Without the parameter, fieldValidation is also Warn.
    let answer = t
        .post(&t.widgets(""), &widget::with_spec("b", json!({"nope": 1})))
        .await;
    same(
        "warnings",
        &json!(answer.warnings),
        json!(["299 - \"unknown field \\\"spec.nope\\\"\""]),
    );
    Ok(())
}

async fn unknown_fields_ignored(t: Target) -> Outcome {
    let answer = validated(&t, "Ignore", json!({"nope": 1})).await;
    same("warnings", &json!(answer.warnings), json!([]));
    same("spec", &answer.created()["spec"], json!({"color": "red"}));
    Ok(())
}

async fn unknown_fields_of_built_in_kinds_strictly(t: Target) -> Outcome {
    let path = format!(
        "{}?fieldValidation=Strict",
        t.group("apps/v1", "deployments")
    );
    let mut body = deployment("a");
    body["spec"]["nope"] = json!(1);
    body["spec"]["template"]["spec"]["containers"][0]["nope"] = json!(2);
    t.post(&path, &body).await.refused(400, "BadRequest", r#"Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: unknown field "spec.nope", unknown field "spec.template.spec.containers[0].nope""#);
    Ok(())
}

async fn unknown_fields_of_built_in_kinds_with_a_warning(t: Target) -> Outcome {
    let mut body = deployment("a");
    body["spec"]["nope"] = json!(1);
    let answer = t.post(&t.group("apps/v1", "deployments"), &body).await;
    same(
        "warnings",
        &json!(answer.warnings),
        json!(["299 - \"unknown field \\\"spec.nope\\\"\""]),
    );
    same("nope", &answer.created()["spec"]["nope"], json!(null));
    Ok(())
}

async fn unknown_fields_in_a_patch_strictly(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let path = format!("{}?fieldValidation=Strict", t.widgets("/a"));
    // The rest of the message is the whole object.
    let details = t
        .patch(&path, Patch::Merge, &json!({"spec": {"nope": 1}}))
        .await
        .refused_with(422, "Invalid", r#" "" is invalid: patch: Invalid value: "#);
    let message = text(&details, "/causes/0/message");
    assert!(
        message.ends_with(r#"strict decoding error: unknown field "spec.nope""#),
        "{message}"
    );
    Ok(())
}

async fn duplicate_fields_strictly(t: Target) -> Outcome {
    let path = format!("{}?fieldValidation=Strict", t.configmaps(""));
    t.post_raw(
        &path,
        "application/json",
        r#"{"metadata": {"name": "a"}, "data": {"k": "v", "k": "w"}}"#,
    )
    .await
    .refused(400, "BadRequest", r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.k""#);
    Ok(())
}

async fn a_field_validation_that_nobody_knows(t: Target) -> Outcome {
    validated(&t, "Some", json!({}))
        .await
        .refused(422, "Invalid", r#"CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Some": supported values: "", "Ignore", "Strict", "Warn""#);
    Ok(())
}

async fn a_selector_that_does_not_select(t: Target) -> Outcome {
    let mut body = deployment("a");
    body["spec"]["template"]["metadata"]["labels"] = json!({"app": "b"});
    let details = t
        .post(&t.group("apps/v1", "deployments"), &body)
        .await
        .refused(422, "Invalid", r#"Deployment.apps "a" is invalid: spec.template.metadata.labels: Invalid value: {"app":"b"}: `selector` does not match template `labels`"#);
    same(
        "details",
        &details,
        json!({"causes": [{"field": "spec.template.metadata.labels", "message": "Invalid value: {\"app\":\"b\"}: `selector` does not match template `labels`", "reason": "FieldValueInvalid"}], "group": "apps", "kind": "Deployment", "name": "a"}),
    );
    Ok(())
}

async fn a_selector_cannot_be_changed(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments");
    t.post(&path, &deployment("a")).await.created();
    let answer = t
        .patch(
            &format!("{path}/a"),
            Patch::Merge,
            &json!({"spec": {
                "selector": {"matchLabels": {"app": "b"}},
                "template": {"metadata": {"labels": {"app": "b"}}},
            }}),
        )
        .await;
    same("code", &json!(answer.code), json!(422));
    same(
        "field",
        &answer.body["details"]["causes"][0]["field"],
        json!("spec.selector"),
    );
    Ok(())
}

async fn a_label_that_cannot_be(t: Target) -> Outcome {
    let metadata = json!({"name": "a", "labels": {"l": "not a label"}});
    t.post(&t.configmaps(""), &json!({"metadata": metadata}))
        .await
        .refused(422, "Invalid", r#"ConfigMap "a" is invalid: metadata.labels: Invalid value: "not a label": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#);
    let mut body = widget::with_spec("a", json!({}));
    body["metadata"] = metadata;
    t.post(&t.widgets(""), &body)
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: metadata.labels: Invalid value: "not a label": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"#);
    Ok(())
}

async fn a_key_that_cannot_be(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a"}, "data": {"not/a/key": "v"}}),
    )
    .await
    .refused(422, "Invalid", r#"ConfigMap "a" is invalid: data[not/a/key]: Invalid value: "not/a/key": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"#);
    Ok(())
}

async fn a_service_without_ports(t: Target) -> Outcome {
    t.post(
        &t.core("services"),
        &json!({"metadata": {"name": "a"}, "spec": {"selector": {"app": "a"}}}),
    )
    .await
    .refused(
        422,
        "Invalid",
        r#"Service "a" is invalid: spec.ports: Required value"#,
    );
    Ok(())
}
