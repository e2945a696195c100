//! Cases about reading one object. Also about reading an object that does not exist.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    target::{Target, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(an_object_that_is_not_there),
        case(a_custom_object_that_is_not_there),
        case(an_object_in_a_namespace_that_is_not_there),
        case(a_resource_that_is_not_there),
        case(a_custom_resource_that_is_not_there),
        case(a_version_that_is_not_there),
        case(a_group_that_is_not_there),
        case(a_subresource_that_is_not_there),
        case(from_any_revision),
        case(from_a_revision_that_is_no_number),
        case(custom_objects_carry_what_was_stored),
        case(yaml_on_request),
    ]
}

async fn an_object_that_is_not_there(t: Target) -> Outcome {
    let details =
        t.get(&t.configmaps("/a"))
            .await
            .refused(404, "NotFound", r#"configmaps "a" not found"#);
    same(
        "details",
        &details,
        json!({"name": "a", "kind": "configmaps"}),
    );
    let details = t.get(&t.group("apps/v1", "deployments/a")).await.refused(
        404,
        "NotFound",
        r#"deployments.apps "a" not found"#,
    );
    same(
        "details",
        &details,
        json!({"name": "a", "group": "apps", "kind": "deployments"}),
    );
    Ok(())
}

async fn a_custom_object_that_is_not_there(t: Target) -> Outcome {
    let details = t.get(&t.widgets("/a")).await.refused(
        404,
        "NotFound",
        r#"widgets.conformance.bowline.dev "a" not found"#,
    );
    same(
        "details",
        &details,
        json!({"name": "a", "group": widget::GROUP, "kind": "widgets"}),
    );
    Ok(())
}

async fn an_object_in_a_namespace_that_is_not_there(t: Target) -> Outcome {
    t.get("/api/v1/namespaces/nowhere/configmaps/a")
        .await
        .refused(404, "NotFound", r#"configmaps "a" not found"#);
    let list = t.get("/api/v1/namespaces/nowhere/configmaps").await.ok();
    same("items", &list["items"], json!([]));
    Ok(())
}

async fn a_resource_that_is_not_there(t: Target) -> Outcome {
    let details = t.get(&t.core("gizmos")).await.refused(
        404,
        "NotFound",
        "the server could not find the requested resource",
    );
    same("details", &details, json!({}));
    Ok(())
}

async fn a_custom_resource_that_is_not_there(t: Target) -> Outcome {
    let path = t.group(widget::API_VERSION, "gizmos");
    let answer = t.get(&path).await;
    same("code", &json!(answer.code), json!(404));
    same("body", &answer.body, json!("404 page not found\n"));
    Ok(())
}

async fn a_version_that_is_not_there(t: Target) -> Outcome {
    t.get(&t.group("apps/v9", "deployments")).await.refused(
        404,
        "NotFound",
        "the server could not find the requested resource",
    );
    let answer = t
        .get(&t.group("conformance.bowline.dev/v9", "widgets"))
        .await;
    same("code", &json!(answer.code), json!(404));
    same("body", &answer.body, json!("404 page not found\n"));
    Ok(())
}

async fn a_group_that_is_not_there(t: Target) -> Outcome {
    let answer = t.get(&t.group("nobody.example/v1", "things")).await;
    same("code", &json!(answer.code), json!(404));
    same("body", &answer.body, json!("404 page not found\n"));
    Ok(())
}

async fn a_subresource_that_is_not_there(t: Target) -> Outcome {
    t.configmap("a").await;
    t.get(&t.configmaps("/a/status")).await.refused(
        404,
        "NotFound",
        "the server could not find the requested resource",
    );
    let path = format!("/apis/{}/gadgets", widget::API_VERSION);
    t.post(&path, &widget::gadget(&t.namespace)).await.created();
    let answer = t.get(&format!("{path}/{}/status", t.namespace)).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn from_any_revision(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let revision = text(&made, "/metadata/resourceVersion");
    for revision in [revision.as_str(), "0", ""] {
        let path = format!("{}?resourceVersion={revision}", t.configmaps("/a"));
        // A read with a resourceVersion may come from a cache that has not seen the write yet, so the case
        // waits.
        let answer = t.until(&path, "reading", |answer| answer.code == 200).await;
        same("the object", &answer.body, made.clone());
    }
    Ok(())
}

async fn from_a_revision_that_is_no_number(t: Target) -> Outcome {
    t.configmap("a").await;
    let path = format!("{}?resourceVersion=abc", t.configmaps("/a"));
    t.get(&path).await.refused(
        500,
        "",
        r#"resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax"#,
    );
    Ok(())
}

async fn custom_objects_carry_what_was_stored(t: Target) -> Outcome {
    let made = t
        .widget("a", json!({"color": "blue", "parts": [{"name": "x"}]}))
        .await;
    let read = t.get(&t.widgets("/a")).await.ok();
    same("the object", &read, made);
    same(
        "apiVersion",
        &read["apiVersion"],
        json!(widget::API_VERSION),
    );
    same("kind", &read["kind"], json!("Widget"));
    Ok(())
}

async fn yaml_on_request(t: Target) -> Outcome {
    t.configmap("a").await;
    let answer = t.get_as(&t.configmaps("/a"), "application/yaml").await;
    assert_eq!(answer.content_type, "application/yaml");
    let body = answer.ok();
    let text = body.as_str().unwrap_or_default();
    assert!(
        text.starts_with("apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\n"),
        "{text}"
    );
    Ok(())
}
