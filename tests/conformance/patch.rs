//! Cases about JSON patches and merge patches.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    fields::owners,
    target::{Patch, Target, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(merge_sets_and_removes),
        case(merge_replaces_lists_whole),
        case(merge_makes_what_is_missing_on_the_way),
        case(merge_with_a_stale_version_conflicts),
        case(merge_with_the_current_version),
        case(merge_cannot_change_the_uid),
        case(merge_cannot_rename),
        case(merge_cannot_change_the_kind),
        case(merge_that_changes_nothing_is_no_write),
        case(merge_of_what_is_not_there),
        case(merge_whose_result_is_invalid),
        case(merge_can_clear_managed_fields),
        case(json_does_all_six_operations),
        case(json_escapes_slashes),
        case(json_appends_and_inserts),
        case(json_test_that_fails),
        case(json_test_for_null_of_what_is_absent),
        case(json_removal_of_what_is_absent),
        case(json_addition_below_what_is_absent),
        case(json_with_an_unknown_operation),
        case(json_is_all_or_nothing),
        case(a_patch_names_its_manager),
        case(two_patches_of_different_fields_both_hold),
    ]
}

async fn merge_sets_and_removes(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({
            "metadata": {"name": "a", "labels": {"keep": "1", "drop": "2"}},
            "data": {"keep": "1", "drop": "2"},
        }),
    )
    .await
    .created();
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Merge,
            &json!({
                "metadata": {"labels": {"drop": null, "new": "3"}},
                "data": {"drop": null, "new": "3"},
            }),
        )
        .await
        .ok();
    same("data", &patched["data"], json!({"keep": "1", "new": "3"}));
    same(
        "labels",
        &patched["metadata"]["labels"],
        json!({"keep": "1", "new": "3"}),
    );
    Ok(())
}

async fn merge_replaces_lists_whole(t: Target) -> Outcome {
    t.widget(
        "a",
        json!({"tags": ["x", "y"], "parts": [{"name": "one", "count": 4}, {"name": "two"}]}),
    )
    .await;
    let patched = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"spec": {"tags": ["z"], "parts": [{"name": "one"}]}}),
        )
        .await
        .ok();
    same("tags", &patched["spec"]["tags"], json!(["z"]));
    same(
        "parts, with their defaults",
        &patched["spec"]["parts"],
        json!([{"name": "one", "count": 1}]),
    );
    Ok(())
}

async fn merge_makes_what_is_missing_on_the_way(t: Target) -> Outcome {
    t.post(&t.configmaps(""), &json!({"metadata": {"name": "a"}}))
        .await
        .created();
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Merge,
            &json!({"metadata": {"annotations": {"n": "1", "absent": null}}, "data": {"k": "v"}}),
        )
        .await
        .ok();
    same("data", &patched["data"], json!({"k": "v"}));
    same(
        "annotations",
        &patched["metadata"]["annotations"],
        json!({"n": "1"}),
    );
    Ok(())
}

async fn merge_with_a_stale_version_conflicts(t: Target) -> Outcome {
    let stale = text(&t.configmap("a").await, "/metadata/resourceVersion");
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .ok();
    let details = t
        .patch(
            &t.configmaps("/a"),
            Patch::Merge,
            &json!({"metadata": {"resourceVersion": stale}, "data": {"k": "x"}}),
        )
        .await
        .refused(
            409,
            "Conflict",
            r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#,
        );
    same(
        "details",
        &details,
        json!({"name": "a", "kind": "configmaps"}),
    );
    Ok(())
}

async fn merge_with_the_current_version(t: Target) -> Outcome {
    let current = text(&t.widget("a", json!({})).await, "/metadata/resourceVersion");
    let patched = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"metadata": {"resourceVersion": current}, "spec": {"color": "blue"}}),
        )
        .await
        .ok();
    same("spec", &patched["spec"], json!({"color": "blue"}));
    Ok(())
}

async fn merge_cannot_change_the_uid(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"metadata": {"uid": "other"}, "data": {"k": "x"}}),
    )
    .await
    .refused(
        422,
        "Invalid",
        r#"ConfigMap "a" is invalid: metadata.uid: Invalid value: "other": field is immutable"#,
    );
    Ok(())
}

async fn merge_cannot_rename(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"metadata": {"name": "b"}}),
    )
    .await
    .refused(
        400,
        "BadRequest",
        "the name of the object (b) does not match the name on the URL (a)",
    );
    Ok(())
}

async fn merge_cannot_change_the_kind(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    t.patch(&t.widgets("/a"), Patch::Merge, &json!({"kind": "Gadget"}))
        .await
        .refused(422, "Invalid", r#"Gadget.conformance.bowline.dev "a" is invalid: kind: Invalid value: "Gadget": must be Widget"#);
    Ok(())
}

async fn merge_that_changes_nothing_is_no_write(t: Target) -> Outcome {
    let made = t.widget("a", json!({"color": "blue"})).await;
    let patched = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"spec": {"color": "blue", "detail": null}}),
        )
        .await
        .ok();
    same("the object", &patched, made);
    Ok(())
}

async fn merge_of_what_is_not_there(t: Target) -> Outcome {
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"data": {"k": "v"}}),
    )
    .await
    .refused(404, "NotFound", r#"configmaps "a" not found"#);
    t.patch(&t.widgets("/a"), Patch::Merge, &json!({"spec": {}}))
        .await
        .refused(
            404,
            "NotFound",
            r#"widgets.conformance.bowline.dev "a" not found"#,
        );
    Ok(())
}

async fn merge_whose_result_is_invalid(t: Target) -> Outcome {
    let made = t.widget("a", json!({"color": "blue"})).await;
    let details = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"spec": {"color": "pink"}}),
        )
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [spec.color: Unsupported value: "pink": supported values: "red", "green", "blue", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"#);
    same(
        "details",
        &details,
        json!({"causes": [{"field": "spec.color", "message": "Unsupported value: \"pink\": supported values: \"red\", \"green\", \"blue\"", "reason": "FieldValueNotSupported"}, {"field": "<nil>", "message": "Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation", "reason": "FieldValueInvalid"}], "group": "conformance.bowline.dev", "kind": "Widget", "name": "a"}),
    );
    same("the object", &t.get(&t.widgets("/a")).await.ok(), made);
    Ok(())
}

async fn merge_can_clear_managed_fields(t: Target) -> Outcome {
    t.configmap("a").await;
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Merge,
            &json!({"metadata": {"managedFields": [{}]}}),
        )
        .await
        .ok();
    same(
        "managedFields",
        &patched["metadata"]["managedFields"],
        json!(null),
    );
    Ok(())
}

async fn json_does_all_six_operations(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a"}, "data": {"a": "1", "b": "2", "c": "3", "d": "4"}}),
    )
    .await
    .created();
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Json,
            &json!([
                {"op": "test", "path": "/data/a", "value": "1"},
                {"op": "add", "path": "/data/e", "value": "5"},
                {"op": "replace", "path": "/data/a", "value": "one"},
                {"op": "remove", "path": "/data/b"},
                {"op": "copy", "from": "/data/c", "path": "/data/f"},
                {"op": "move", "from": "/data/d", "path": "/data/g"},
            ]),
        )
        .await
        .ok();
    same(
        "data",
        &patched["data"],
        json!({"a": "one", "c": "3", "e": "5", "f": "3", "g": "4"}),
    );
    Ok(())
}

async fn json_escapes_slashes(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "annotations": {"x.dev/y": "1"}}}),
    )
    .await
    .created();
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Json,
            &json!([{"op": "replace", "path": "/metadata/annotations/x.dev~1y", "value": "2"}]),
        )
        .await
        .ok();
    same(
        "annotations",
        &patched["metadata"]["annotations"],
        json!({"x.dev/y": "2"}),
    );
    Ok(())
}

async fn json_appends_and_inserts(t: Target) -> Outcome {
    t.widget("a", json!({"order": ["b"]})).await;
    let patched = t
        .patch(
            &t.widgets("/a"),
            Patch::Json,
            &json!([
                {"op": "add", "path": "/spec/order/-", "value": "c"},
                {"op": "add", "path": "/spec/order/0", "value": "a"},
            ]),
        )
        .await
        .ok();
    same("order", &patched["spec"]["order"], json!(["a", "b", "c"]));
    Ok(())
}

async fn json_test_that_fails(t: Target) -> Outcome {
    t.configmap("a").await;
    let details = t
        .patch(
            &t.configmaps("/a"),
            Patch::Json,
            &json!([{"op": "test", "path": "/data/k", "value": "x"}]),
        )
        .await
        .refused(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        );
    same("details", &details, json!({}));
    Ok(())
}

async fn json_test_for_null_of_what_is_absent(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let patched = t
        .patch(
            &t.configmaps("/a"),
            Patch::Json,
            &json!([
                {"op": "test", "path": "/metadata/finalizers", "value": null},
                {"op": "add", "path": "/metadata/finalizers", "value": ["bowline.dev/x"]},
            ]),
        )
        .await
        .ok();
    same(
        "finalizers",
        &patched["metadata"]["finalizers"],
        json!(["bowline.dev/x"]),
    );
    same("data", &patched["data"], made["data"].clone());
    Ok(())
}

async fn json_removal_of_what_is_absent(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Json,
        &json!([{"op": "remove", "path": "/data/absent"}]),
    )
    .await
    .refused(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    Ok(())
}

async fn json_addition_below_what_is_absent(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Json,
        &json!([{"op": "add", "path": "/metadata/annotations/n", "value": "1"}]),
    )
    .await
    .refused(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    Ok(())
}

async fn json_with_an_unknown_operation(t: Target) -> Outcome {
    t.configmap("a").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Json,
        &json!([{"op": "polish", "path": "/data/k"}]),
    )
    .await
    .refused(
        422,
        "Invalid",
        "the server rejected our request due to an error in our request",
    );
    Ok(())
}

async fn json_is_all_or_nothing(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let answer = t
        .patch(
            &t.configmaps("/a"),
            Patch::Json,
            &json!([
                {"op": "replace", "path": "/data/k", "value": "x"},
                {"op": "test", "path": "/data/k", "value": "v"},
            ]),
        )
        .await;
    same("code", &json!(answer.code), json!(422));
    same("the object", &t.get(&t.configmaps("/a")).await.ok(), made);
    Ok(())
}

async fn a_patch_names_its_manager(t: Target) -> Outcome {
    let path = format!("{}?fieldManager=maker", t.configmaps(""));
    t.post(
        &path,
        &json!({"metadata": {"name": "a"}, "data": {"k": "v"}}),
    )
    .await
    .created();
    let path = format!("{}?fieldManager=mender", t.configmaps("/a"));
    let patched = t
        .patch(&path, Patch::Merge, &json!({"data": {"k": "w", "n": "1"}}))
        .await
        .ok();
    same(
        "owners",
        &owners(&patched),
        json!([
            {"by": "maker Update", "fields": {"f:data": {}}},
            {"by": "mender Update", "fields": {"f:data": {"f:k": {}, "f:n": {}}}},
        ]),
    );
    Ok(())
}

async fn two_patches_of_different_fields_both_hold(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let path = t.widgets("/a");
    let writes = (0..8).map(|writer| {
        let (t, path) = (t.clone(), path.clone());
        async move {
            let body = json!({"spec": {"options": {format!("o{writer}"): "x"}}});
            t.patch(&path, Patch::Merge, &body).await
        }
    });
    for answer in futures::future::join_all(writes).await {
        answer.ok();
    }
    let stored = t.get(&path).await.ok();
    same("kind", &stored["kind"], json!("Widget"));
    same(
        "options",
        &stored["spec"]["options"],
        json!({"o0": "x", "o1": "x", "o2": "x", "o3": "x", "o4": "x", "o5": "x", "o6": "x", "o7": "x"}),
    );
    same(
        "apiVersion",
        &stored["apiVersion"],
        json!(widget::API_VERSION),
    );
    Ok(())
}
