//! Bodies and media types that the server does not take.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, same},
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
        case(probe),
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

async fn probe(t: Target) -> Outcome {
    use std::fmt::Write;
    let mut out = String::new();
    t.configmap("a").await;
    t.widget("a", json!({})).await;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": 1,
        "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    t.post(&t.group("apps/v1", "deployments"), &deployment).await.created();
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "d"}, "data": {"a": "MQ=="}});
    let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "d"}, "spec": {"template": deployment["spec"]["template"]}});
    let configmap = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"a": "b"}}, "data": {"a": "1"}});
    let widget = json!({"apiVersion": "conformance.bowline.dev/v1", "kind": "Widget", "metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {}, "status": {}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": t.namespace}, "spec": {"finalizers": ["kubernetes"]}, "status": {}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "xs.probe.example"},
        "spec": {"group": "probe.example", "scope": "Namespaced", "names": {"plural": "xs", "kind": "X"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let vap = json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "probe"},
        "spec": {"matchConstraints": {"resourceRules": [{"apiGroups": ["probe.example"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["things"]}]},
        "validations": [{"expression": "true"}]}});
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "metadata": {}, "spec": {"resourceAttributes": {"verb": "get"}}, "status": {}});
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "gracePeriodSeconds": 1, "preconditions": {"uid": "u"}, "dryRun": ["All"]});
    let scale = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d", "namespace": t.namespace}, "spec": {"replicas": 2}, "status": {}});
    let doors: Vec<(&str, &str, String, &str, serde_json::Value)> = vec![
        ("cm", "POST", t.configmaps(""), "application/json", configmap.clone()),
        ("cm", "PUT", t.configmaps("/a"), "application/json", configmap.clone()),
        ("cm", "PATCH", t.configmaps("/a"), "application/merge-patch+json", configmap.clone()),
        ("cm", "PATCH", t.configmaps("/a"), "application/strategic-merge-patch+json", configmap.clone()),
        ("cm", "PATCH", t.configmaps("/a"), "application/apply-patch+yaml", configmap),
        ("w", "POST", t.widgets(""), "application/json", widget.clone()),
        ("w", "PUT", t.widgets("/a"), "application/json", widget.clone()),
        ("w", "PATCH", t.widgets("/a"), "application/merge-patch+json", widget.clone()),
        ("w", "PATCH", t.widgets("/a"), "application/apply-patch+yaml", widget.clone()),
        ("w/status", "PUT", t.widgets("/a/status"), "application/json", widget.clone()),
        ("w/status", "PATCH", t.widgets("/a/status"), "application/merge-patch+json", widget),
        ("secret", "POST", t.core("secrets"), "application/json", secret),
        ("job", "POST", t.group("batch/v1", "jobs"), "application/json", job),
        ("d", "PUT", t.group("apps/v1", "deployments/d"), "application/json", deployment.clone()),
        ("d", "PATCH", t.group("apps/v1", "deployments/d"), "application/strategic-merge-patch+json", deployment),
        ("scale", "PUT", t.group("apps/v1", "deployments/d/scale"), "application/json", scale.clone()),
        ("scale", "PATCH", t.group("apps/v1", "deployments/d/scale"), "application/merge-patch+json", scale),
        ("ns", "PUT", format!("/api/v1/namespaces/{}/status", t.namespace), "application/json", namespace.clone()),
        ("ns", "PUT", format!("/api/v1/namespaces/{}/finalize", t.namespace), "application/json", namespace),
        ("crd", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".into(), "application/json", crd),
        ("vap", "POST", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies".into(), "application/json", vap),
        ("ssar", "POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews".into(), "application/json", review),
        ("delete", "DELETE", t.configmaps("/a"), "application/json", options),
    ];
    for (what, method, path, kind, body) in doors {
        let mut places: Vec<String> = vec![String::new()];
        let mut more = Vec::new();
        for (key, value) in body.as_object().unwrap() {
            places.push(format!("/{key}"));
            for (inner, below) in value.as_object().into_iter().flatten() {
                places.push(format!("/{key}/{inner}"));
                for (third, _) in below.as_object().into_iter().flatten() {
                    more.push(format!("/{key}/{inner}/{third}"));
                }
            }
        }
        places.extend(more);
        for at in &places {
            for odd in [json!("x"), json!(3), json!(true), json!([]), json!([1]), json!({}), json!(null)] {
                let mut body = body.clone();
                if let Some(place) = body.pointer_mut(at) { *place = odd.clone(); }
                let path = format!("{path}?dryRun=All&fieldManager=probe&force={}", kind.contains("apply"));
                let path = if kind.contains("apply") { path } else { path.replace("&force=false", "") };
                let request = http::Request::builder().method(method).uri(&path).header("content-type", kind)
                    .body(body.to_string().into_bytes()).unwrap();
                let answer = t.send(request).await;
                let said = answer.body["message"].as_str().unwrap_or_default().replace(&t.namespace, "NS");
                writeln!(out, "{what} {method} {} {at} {odd} => {} {}", kind.split('/').nth(1).unwrap(), answer.code, said.chars().take(300).collect::<String>().replace('\n', " ")).unwrap();
            }
        }
    }
    std::fs::write("/tmp/panics-probe.txt", out).unwrap();
    Ok(())
}
