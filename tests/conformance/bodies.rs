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
