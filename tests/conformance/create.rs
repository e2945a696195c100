//! Cases about the creation of objects: fields that the server adds, ignores or refuses.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    target::{Target, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(answers_with_the_stored_object),
        case(a_second_one_already_exists),
        case(a_second_custom_one_already_exists),
        case(identity_is_the_servers),
        case(deletion_cannot_be_set),
        case(status_is_dropped_where_it_is_a_subresource),
        case(status_is_kept_where_it_is_not_a_subresource),
        case(generation_starts_at_one),
        case(a_resource_version_is_refused),
        case(generate_name_adds_five_characters),
        case(a_name_wins_over_generate_name),
        case(a_name_is_required),
        case(the_namespace_must_match_the_path),
        case(the_namespace_must_exist),
        case(the_kind_may_be_left_out_for_built_in_kinds),
        case(the_kind_is_required_for_custom_kinds),
        case(another_kind_is_refused),
        case(another_version_is_refused),
        case(records_who_set_which_fields),
        case(the_manager_is_named_after_the_client),
        case(posting_to_a_name_is_not_allowed),
        case(uids_are_never_reused),
    ]
}

async fn answers_with_the_stored_object(t: Target) -> Outcome {
    let made = t
        .post(
            &t.configmaps(""),
            &json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a", "labels": {"l": "1"}, "annotations": {"n": "2"}},
                "data": {"k": "v"},
                "binaryData": {"b": "AAEC"},
            }),
        )
        .await
        .created();
    same("kind", &made["kind"], json!("ConfigMap"));
    same("apiVersion", &made["apiVersion"], json!("v1"));
    same("data", &made["data"], json!({"k": "v"}));
    same("binaryData", &made["binaryData"], json!({"b": "AAEC"}));
    same(
        "namespace",
        &made["metadata"]["namespace"],
        json!(t.namespace),
    );
    assert_eq!(
        text(&made, "/metadata/uid").len(),
        36,
        "uid: {}",
        made["metadata"]["uid"]
    );
    text(&made, "/metadata/resourceVersion").parse::<u64>()?;
    text(&made, "/metadata/creationTimestamp").parse::<jiff::Timestamp>()?;
    let stored = t.get(&t.configmaps("/a")).await.ok();
    same("what was stored", &stored, made);
    Ok(())
}

async fn a_second_one_already_exists(t: Target) -> Outcome {
    t.configmap("a").await;
    let details = t
        .post(&t.configmaps(""), &json!({"metadata": {"name": "a"}}))
        .await
        .refused(409, "AlreadyExists", r#"configmaps "a" already exists"#);
    same(
        "details",
        &details,
        json!({"name": "a", "kind": "configmaps"}),
    );
    Ok(())
}

async fn a_second_custom_one_already_exists(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let details = t
        .post(&t.widgets(""), &widget::with_spec("a", json!({})))
        .await
        .refused(
            409,
            "AlreadyExists",
            r#"widgets.conformance.bowline.dev "a" already exists"#,
        );
    same(
        "details",
        &details,
        json!({"name": "a", "group": widget::GROUP, "kind": "widgets"}),
    );
    Ok(())
}

async fn identity_is_the_servers(t: Target) -> Outcome {
    let made = t
        .post(
            &t.configmaps(""),
            &json!({"metadata": {
                "name": "a",
                "uid": "00000000-0000-0000-0000-000000000000",
                "creationTimestamp": "2001-01-01T00:00:00Z",
                "generation": 7,
                "selfLink": "/somewhere",
            }}),
        )
        .await
        .created();
    let metadata = &made["metadata"];
    assert_ne!(metadata["uid"], "00000000-0000-0000-0000-000000000000");
    assert_ne!(metadata["creationTimestamp"], "2001-01-01T00:00:00Z");
    same("selfLink", &metadata["selfLink"], json!(null));
    Ok(())
}

async fn deletion_cannot_be_set(t: Target) -> Outcome {
    let made = t
        .post(
            &t.configmaps(""),
            &json!({"metadata": {
                "name": "a",
                "deletionTimestamp": "2001-01-01T00:00:00Z",
                "deletionGracePeriodSeconds": 5,
            }}),
        )
        .await
        .created();
    same(
        "deletionTimestamp",
        &made["metadata"]["deletionTimestamp"],
        json!(null),
    );
    same(
        "deletionGracePeriodSeconds",
        &made["metadata"]["deletionGracePeriodSeconds"],
        json!(null),
    );
    Ok(())
}

async fn status_is_dropped_where_it_is_a_subresource(t: Target) -> Outcome {
    let mut widget = widget::with_spec("a", json!({}));
    widget["status"] = json!({"phase": "Done"});
    let made = t.post(&t.widgets(""), &widget).await.created();
    same("status", &made["status"], json!(null));
    Ok(())
}

async fn status_is_kept_where_it_is_not_a_subresource(t: Target) -> Outcome {
    let mut gadget = widget::gadget(&t.namespace);
    gadget["status"] = json!({"n": 3});
    let path = format!("/apis/{}/gadgets", widget::API_VERSION);
    let made = t.post(&path, &gadget).await.created();
    same("status", &made["status"], json!({"n": 3}));
    Ok(())
}

async fn generation_starts_at_one(t: Target) -> Outcome {
    let widget = t.widget("a", json!({})).await;
    same("generation", &widget["metadata"]["generation"], json!(1));
    let configmap = t.configmap("a").await;
    same(
        "generation of a kind without a spec",
        &configmap["metadata"]["generation"],
        json!(null),
    );
    Ok(())
}

async fn a_resource_version_is_refused(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "resourceVersion": "1"}}),
    )
    .await
    .refused(
        500,
        "",
        "resourceVersion should not be set on objects to be created",
    );
    Ok(())
}

async fn generate_name_adds_five_characters(t: Target) -> Outcome {
    let body = json!({"metadata": {"generateName": "thing-"}});
    let first = t.post(&t.configmaps(""), &body).await.created();
    let second = t.post(&t.configmaps(""), &body).await.created();
    let name = text(&first, "/metadata/name");
    let random = name.strip_prefix("thing-").unwrap_or_default();
    assert_eq!(random.len(), 5, "name: {name}");
    assert!(
        random
            .chars()
            .all(|letter| "bcdfghjklmnpqrstvwxz2456789".contains(letter)),
        "name: {name}"
    );
    assert_ne!(name, text(&second, "/metadata/name"));
    same(
        "generateName",
        &first["metadata"]["generateName"],
        json!("thing-"),
    );
    Ok(())
}

async fn a_name_wins_over_generate_name(t: Target) -> Outcome {
    let made = t
        .post(
            &t.configmaps(""),
            &json!({"metadata": {"name": "a", "generateName": "thing-"}}),
        )
        .await
        .created();
    same("name", &made["metadata"]["name"], json!("a"));
    Ok(())
}

async fn a_name_is_required(t: Target) -> Outcome {
    let details = t
        .post(&t.configmaps(""), &json!({"metadata": {}}))
        .await
        .refused(
            422,
            "Invalid",
            r#"ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#,
        );
    same(
        "details",
        &details,
        json!({"kind": "ConfigMap", "causes": [{
            "reason": "FieldValueRequired",
            "message": "Required value: name or generateName is required",
            "field": "metadata.name",
        }]}),
    );
    Ok(())
}

async fn the_namespace_must_match_the_path(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "namespace": "elsewhere"}}),
    )
    .await
    .refused(
        400,
        "BadRequest",
        "the namespace of the provided object does not match the namespace sent on the request",
    );
    Ok(())
}

async fn the_namespace_must_exist(t: Target) -> Outcome {
    let details = t
        .post(
            "/api/v1/namespaces/nowhere/configmaps",
            &json!({"metadata": {"name": "a"}}),
        )
        .await
        .refused(404, "NotFound", r#"namespaces "nowhere" not found"#);
    same(
        "details",
        &details,
        json!({"name": "nowhere", "kind": "namespaces"}),
    );
    let path = format!("/apis/{}/namespaces/nowhere/widgets", widget::API_VERSION);
    t.post(&path, &widget::with_spec("a", json!({})))
        .await
        .refused(404, "NotFound", r#"namespaces "nowhere" not found"#);
    Ok(())
}

async fn the_kind_may_be_left_out_for_built_in_kinds(t: Target) -> Outcome {
    let made = t
        .post(&t.configmaps(""), &json!({"metadata": {"name": "a"}}))
        .await
        .created();
    same("kind", &made["kind"], json!("ConfigMap"));
    same("apiVersion", &made["apiVersion"], json!("v1"));
    Ok(())
}

async fn the_kind_is_required_for_custom_kinds(t: Target) -> Outcome {
    t.post(&t.widgets(""), &json!({"metadata": {"name": "a"}}))
        .await
        .refused(
            400,
            "BadRequest",
            r#"the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{"metadata":{"name":"a"}}' ({"metadata":{"name":"a"}})"#,
        );
    Ok(())
}

async fn another_kind_is_refused(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
    )
    .await
    .refused_with(
        400,
        "BadRequest",
        r#"Secret in version "v1" cannot be handled as a ConfigMap: "#,
    );
    Ok(())
}

async fn another_version_is_refused(t: Target) -> Outcome {
    t.post(
        &t.widgets(""),
        &json!({"apiVersion": "conformance.bowline.dev/v2", "kind": "Widget", "metadata": {"name": "a"}}),
    )
    .await
    .refused(400, "BadRequest", "the API version in the data (conformance.bowline.dev/v2) does not match the expected API version (conformance.bowline.dev/v1)");
    Ok(())
}

async fn records_who_set_which_fields(t: Target) -> Outcome {
    let path = format!("{}?fieldManager=maker", t.configmaps(""));
    let made = t
        .post(
            &path,
            &json!({"metadata": {"name": "a", "labels": {"l": "1"}}, "data": {"k": "v"}}),
        )
        .await
        .created();
    let mut entries = made["metadata"]["managedFields"].clone();
    let time = entries[0]["time"].take();
    same("time", &time, made["metadata"]["creationTimestamp"].clone());
    same(
        "managedFields",
        &entries,
        json!([{
            "manager": "maker",
            "operation": "Update",
            "apiVersion": "v1",
            "time": null,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:data": {".": {}, "f:k": {}},
                "f:metadata": {"f:labels": {".": {}, "f:l": {}}},
            },
        }]),
    );
    Ok(())
}

async fn the_manager_is_named_after_the_client(t: Target) -> Outcome {
    let request = http::Request::post(t.configmaps(""))
        .header("content-type", "application/json")
        .header("user-agent", "tool/v1.2 (linux)")
        .body(
            json!({"metadata": {"name": "a"}, "data": {"k": "v"}})
                .to_string()
                .into_bytes(),
        )?;
    let made = t.send(request).await.created();
    same(
        "manager",
        &made["metadata"]["managedFields"][0]["manager"],
        json!("tool"),
    );
    Ok(())
}

async fn posting_to_a_name_is_not_allowed(t: Target) -> Outcome {
    t.post(&t.configmaps("/a"), &json!({"metadata": {"name": "a"}}))
        .await
        .refused(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        );
    Ok(())
}

async fn uids_are_never_reused(t: Target) -> Outcome {
    let first = t.configmap("a").await;
    t.delete(&t.configmaps("/a")).await.ok();
    let second = t.configmap("a").await;
    assert_ne!(first["metadata"]["uid"], second["metadata"]["uid"]);
    let older: u64 = text(&first, "/metadata/resourceVersion").parse()?;
    let newer: u64 = text(&second, "/metadata/resourceVersion").parse()?;
    assert!(
        newer > older,
        "resourceVersion went from {older} to {newer}"
    );
    Ok(())
}
