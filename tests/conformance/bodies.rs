//! Cases about request bodies and media types that the server refuses.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, same},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(a_body_that_is_no_json),
        case(a_custom_body_that_is_no_json),
        case(a_field_of_the_wrong_type),
        case(an_empty_body),
        case(yaml_is_read_too),
        case(a_media_type_that_nobody_reads),
        case(an_answer_that_nobody_writes),
        case(any_form_of_answer_is_json),
        case(a_patch_type_that_nobody_knows),
        case(a_strategic_patch_of_a_custom_kind),
        case(a_merge_patch_that_is_no_json),
        case(a_json_patch_that_is_no_list),
        case(an_apply_without_a_manager),
        case(a_field_manager_that_is_too_long),
        case(misshapen_objects),
        case(misshapen_patches),
        case(misshapen_metadata_of_a_custom_kind),
        case(a_custom_kind_of_another_name),
        case(misshapen_scales),
        case(misshapen_options_of_a_deletion),
        case(misshapen_reviews),
        case(misshapen_definitions),
        case(bytes_that_are_no_base64),
    ]
}

async fn a_body_that_is_no_json(t: Target) -> Outcome {
    t.post_raw(&t.configmaps(""), "application/json", "{\"metadata\":")
        .await
        .refused_with(
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ",
        );
    Ok(())
}

async fn a_custom_body_that_is_no_json(t: Target) -> Outcome {
    t.post_raw(&t.widgets(""), "application/json", "{\"metadata\":")
        .await
        .refused_with(
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse error: ",
        );
    Ok(())
}

async fn a_field_of_the_wrong_type(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a"}, "data": {"k": 1}}),
    )
    .await
    .refused_with(
        400,
        "BadRequest",
        r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: "#,
    );
    Ok(())
}

async fn an_empty_body(t: Target) -> Outcome {
    t.post_raw(&t.configmaps(""), "application/json", "")
        .await
        .refused_with(
            400,
            "BadRequest",
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ",
        );
    Ok(())
}

async fn yaml_is_read_too(t: Target) -> Outcome {
    let made = t
        .post_raw(
            &t.configmaps(""),
            "application/yaml",
            "metadata:\n  name: a\ndata:\n  k: \"v\"\n",
        )
        .await
        .created();
    same("data", &made["data"], json!({"k": "v"}));
    Ok(())
}

async fn a_media_type_that_nobody_reads(t: Target) -> Outcome {
    t.post_raw(&t.configmaps(""), "text/csv", "a,b")
        .await
        .refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        );
    t.post_raw(&t.widgets(""), "text/csv", "a,b")
        .await
        .refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        );
    Ok(())
}

async fn an_answer_that_nobody_writes(t: Target) -> Outcome {
    t.configmap("a").await;
    t.get_as(&t.configmaps("/a"), "text/csv").await.refused(
        406,
        "NotAcceptable",
        "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf",
    );
    Ok(())
}

async fn any_form_of_answer_is_json(t: Target) -> Outcome {
    t.configmap("a").await;
    for accept in ["*/*", "text/csv, */*", "text/csv, application/json;q=0.5"] {
        let answer = t.get_as(&t.configmaps("/a"), accept).await;
        assert_eq!(answer.content_type, "application/json", "for {accept}");
        answer.ok();
    }
    Ok(())
}

async fn a_patch_type_that_nobody_knows(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch_raw(&t.configmaps("/a"), "application/json", "{}")
        .await
        .refused(415, "UnsupportedMediaType", "415: Unsupported Media Type");
    Ok(())
}

async fn a_strategic_patch_of_a_custom_kind(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    t.patch(&t.widgets("/a"), Patch::Strategic, &json!({}))
        .await
        .refused(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        );
    Ok(())
}

async fn a_merge_patch_that_is_no_json(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch_raw(&t.configmaps("/a"), "application/merge-patch+json", "{")
        .await
        .refused_with(400, "BadRequest", "error decoding patch: ");
    Ok(())
}

async fn a_json_patch_that_is_no_list(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch_raw(&t.configmaps("/a"), "application/json-patch+json", "{}")
        .await
        .refused_with(400, "BadRequest", "error decoding patch: ");
    Ok(())
}

async fn an_apply_without_a_manager(t: Target) -> Outcome {
    t.patch_raw(
        &t.configmaps("/a"),
        "application/apply-patch+yaml",
        r#"{"apiVersion":"v1","kind":"ConfigMap"}"#,
    )
    .await
    .refused(422, "Invalid", r#"PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch"#);
    Ok(())
}

async fn a_field_manager_that_is_too_long(t: Target) -> Outcome {
    let path = format!("{}?fieldManager={}", t.configmaps(""), "m".repeat(129));
    t.post(&path, &json!({"metadata": {"name": "a"}}))
        .await
        .refused(422, "Invalid", r#"CreateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes"#);
    Ok(())
}

/// Returns one value of every JSON type except the type of `but`.
fn odd(but: Value) -> Vec<Value> {
    let mut all = vec![
        json!("x"),
        json!(3),
        json!(true),
        json!([]),
        json!([1]),
        json!({}),
    ];
    let same = |a: &Value, b: &Value| std::mem::discriminant(a) == std::mem::discriminant(b);
    all.retain(|value| !same(value, &but));
    all
}

fn with(mut object: Value, place: &str, value: Value) -> Value {
    match object.pointer_mut(place) {
        Some(found) => *found = value,
        None => panic!("no {place} in {object}"),
    }
    object
}

fn config() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"l": "m"}}, "data": {"k": "v"}})
}

/// Returns copies of an object. In each copy, one of `parts` has a value of another type.
fn misshapen(object: &Value, parts: &[(&str, Value)]) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (place, right) in parts {
        for value in odd(right.clone()) {
            let what = format!("{value} at {place}");
            found.push((what, with(object.clone(), place, value)));
        }
    }
    found
}

const CANNOT: &str = r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: json: "#;

async fn misshapen_objects(t: Target) -> Outcome {
    let parts = [
        ("/metadata", json!({})),
        ("/metadata/name", json!("")),
        ("/metadata/labels", json!({})),
        ("/metadata/labels/l", json!("")),
        ("/data", json!({})),
        ("/data/k", json!("")),
    ];
    t.configmap("a").await;
    for (_, body) in misshapen(&config(), &parts) {
        let made = t.post(&t.configmaps(""), &body).await;
        made.refused_with(400, "BadRequest", CANNOT);
        let replaced = t.put(&t.configmaps("/a"), &body).await;
        replaced.refused_with(400, "BadRequest", CANNOT);
    }
    let unknown = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: ";
    let parts = [("/kind", json!("")), ("/apiVersion", json!(""))];
    for (_, body) in misshapen(&config(), &parts) {
        let made = t.post(&t.configmaps(""), &body).await;
        made.refused_with(400, "BadRequest", unknown);
        let replaced = t.put(&t.configmaps("/a"), &body).await;
        replaced.refused_with(400, "BadRequest", unknown);
    }
    // The Go decoder of the server reads null as an object without fields.
    t.post(&t.configmaps(""), &Value::Null).await.refused_with(
        422,
        "Invalid",
        "ConfigMap \"\" is invalid: metadata.name: Required value",
    );
    Ok(())
}

async fn misshapen_patches(t: Target) -> Outcome {
    t.configmap("a").await;
    let parts = [
        ("/metadata", json!({})),
        ("/metadata/name", json!("")),
        ("/metadata/labels", json!({})),
        ("/metadata/labels/l", json!("")),
        ("/data", json!({})),
        ("/kind", json!("")),
        ("/apiVersion", json!("")),
    ];
    for (what, body) in misshapen(&config(), &parts) {
        for kind in [Patch::Merge, Patch::Strategic] {
            let answer = t.patch(&t.configmaps("/a"), kind, &body).await;
            // The answer is 200 for a patch with an empty map, because it changes nothing.
            match answer.code {
                200 => assert_eq!(answer.body["data"], json!({"k": "v"}), "{kind:?}: {what}"),
                _ => drop(answer.refused_with(
                    422,
                    "Invalid",
                    " \"\" is invalid: patch: Invalid value: ",
                )),
            }
        }
    }
    for (place, value) in [
        ("/metadata", json!("x")),
        ("/data", json!([1])),
        ("/kind", json!(3)),
    ] {
        let body = json!([{"op": "replace", "path": place, "value": value}]);
        t.patch(&t.configmaps("/a"), Patch::Json, &body)
            .await
            .refused_with(422, "Invalid", " \"\" is invalid: patch: Invalid value: ");
    }
    Ok(())
}

async fn misshapen_metadata_of_a_custom_kind(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let mut body = widget::with_spec("a", json!({}));
    body["metadata"]["labels"] = json!({"l": "m"});
    body["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"].clone();
    let parts = [
        ("/metadata", json!({})),
        ("/metadata/name", json!("")),
        ("/metadata/labels", json!({})),
        ("/metadata/labels/l", json!("")),
    ];
    let cannot = r#"Widget in version "v1" cannot be handled as a Widget: json: "#;
    for (_, body) in misshapen(&body, &parts) {
        let again = t.post(&t.widgets(""), &body).await;
        again.refused_with(400, "BadRequest", cannot);
        for path in [t.widgets("/a"), t.widgets("/a/status")] {
            let replaced = t.put(&path, &body).await;
            replaced.refused_with(400, "BadRequest", cannot);
            let patched = t.patch(&path, Patch::Merge, &body).await;
            // A merge patch with an empty object is a valid patch, so it gets another answer.
            if patched.code != 409 {
                patched.refused_with(422, "Invalid", " \"\" is invalid: patch: Invalid value: ");
            }
        }
    }
    Ok(())
}

async fn a_custom_kind_of_another_name(t: Target) -> Outcome {
    let body = with(widget::with_spec("a", json!({})), "/kind", json!("x"));
    t.post(&t.widgets(""), &body).await.refused(
        422,
        "Invalid",
        r#"x.conformance.bowline.dev "a" is invalid: kind: Invalid value: "x": must be Widget"#,
    );
    let body = with(
        widget::with_spec("a", json!({})),
        "/apiVersion",
        json!(null),
    );
    t.post(&t.widgets(""), &body).await.refused_with(
        400,
        "BadRequest",
        r#"Widget in version "" cannot be handled as a Widget: "#,
    );
    Ok(())
}

async fn misshapen_scales(t: Target) -> Outcome {
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}});
    t.post(&t.group("apps/v1", "deployments"), &deployment)
        .await
        .created();
    let path = t.group("apps/v1", "deployments/d/scale");
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "d", "namespace": t.namespace}, "spec": {"replicas": 2}});
    let parts = [
        ("/metadata", json!({})),
        ("/spec", json!({})),
        ("/spec/replicas", json!(2)),
        ("/kind", json!("")),
    ];
    for (_, body) in misshapen(&scale, &parts) {
        t.put(&path, &body)
            .await
            .refused_with(400, "BadRequest", "");
        let patched = t.patch(&path, Patch::Merge, &body).await;
        patched.refused_with(422, "Invalid", " \"\" is invalid: patch: Invalid value: ");
    }
    for (place, other) in [
        ("/metadata/name", "e"),
        ("/metadata/namespace", "elsewhere"),
    ] {
        let body = with(scale.clone(), place, json!(other));
        t.put(&path, &body)
            .await
            .refused_with(400, "BadRequest", "the name");
    }
    let after = t.get(&path).await.ok();
    same("replicas", &after["spec"]["replicas"], json!(1));
    Ok(())
}

async fn misshapen_options_of_a_deletion(t: Target) -> Outcome {
    t.configmap("a").await;
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
        "gracePeriodSeconds": 1, "preconditions": {"uid": "u"}, "dryRun": ["All"]});
    let parts = [
        ("/propagationPolicy", json!("")),
        ("/gracePeriodSeconds", json!(1)),
        ("/preconditions", json!({})),
        ("/preconditions/uid", json!("")),
        ("/dryRun", json!([])),
        ("/kind", json!("")),
    ];
    let mut bodies = misshapen(&options, &parts);
    bodies.extend(
        odd(json!({}))
            .into_iter()
            .map(|value| (String::new(), value)),
    );
    for (_, body) in bodies {
        let request = http::Request::delete(t.configmaps("/a"))
            .header("content-type", "application/json")
            .body(body.to_string().into_bytes())?;
        t.send(request).await.refused_with(400, "BadRequest", "");
    }
    t.get(&t.configmaps("/a")).await.ok();
    Ok(())
}

async fn misshapen_reviews(t: Target) -> Outcome {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "metadata": {}, "spec": {"resourceAttributes": {"verb": "get"}}, "status": {}});
    let parts = [
        ("/metadata", json!({})),
        ("/spec", json!({})),
        ("/spec/resourceAttributes", json!({})),
        ("/spec/resourceAttributes/verb", json!("")),
        ("/status", json!({})),
        ("/kind", json!("")),
    ];
    for (_, body) in misshapen(&review, &parts) {
        t.post(path, &body)
            .await
            .refused_with(400, "BadRequest", "");
    }
    Ok(())
}

async fn misshapen_definitions(t: Target) -> Outcome {
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "odds.bodies.example"},
        "spec": {"group": "bodies.example", "scope": "Namespaced", "names": {"plural": "odds", "kind": "Odd"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let parts = [
        ("/metadata", json!({})),
        ("/spec", json!({})),
        ("/spec/names", json!({})),
        ("/spec/names/kind", json!("")),
        ("/spec/versions/0", json!({})),
        ("/spec/versions/0/schema", json!({})),
        ("/spec/versions/0/schema/openAPIV3Schema", json!({})),
    ];
    for (_, body) in misshapen(&definition, &parts) {
        t.post(path, &body)
            .await
            .refused_with(400, "BadRequest", "");
    }
    for (spec, status, fits) in [
        (".spec.n", ".status.n", true),
        (".spec.a.b", ".status.a.b", true),
        ("", ".status.n", false),
        (".spec", ".status.n", false),
        ("spec.n", ".status.n", false),
        (".status.n", ".status.n", false),
        (".spec.n", ".spec.n", false),
        (".spec.n", "", false),
    ] {
        let mut body = definition.clone();
        body["spec"]["versions"][0]["subresources"] =
            json!({"scale": {"specReplicasPath": spec, "statusReplicasPath": status}});
        let answer = t.post(path, &body).await;
        assert_eq!(answer.code == 201, fits, "{spec:?} {status:?}: {answer:?}");
        assert!(fits || answer.code == 422, "{answer:?}");
    }
    let body = with(definition, "/spec/scope", json!("x"));
    t.post(path, &body).await.refused_with(
        422,
        "Invalid",
        r#"CustomResourceDefinition.apiextensions.k8s.io "odds.bodies.example" is invalid: spec.scope: Unsupported value: "x""#,
    );
    Ok(())
}

async fn bytes_that_are_no_base64(t: Target) -> Outcome {
    for (data, fits) in [
        ("MQ==", true),
        ("x", false),
        ("MQ", false),
        ("M\nQ==", true),
        ("MR==", true),
        ("!!!!", false),
    ] {
        let body = json!({"metadata": {"name": "a"}, "data": {"k": data}});
        let answer = t
            .post(&format!("{}?dryRun=All", t.core("secrets")), &body)
            .await;
        match fits {
            true => drop(answer.created()),
            false => drop(answer.refused_with(
                400,
                "BadRequest",
                r#"Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte "#,
            )),
        }
    }
    Ok(())
}
