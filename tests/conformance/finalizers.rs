//! Cases about finalizers, which delay a deletion.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(deletion_is_marked_and_waits),
        case(a_second_deletion_changes_nothing),
        case(the_last_finalizer_ends_it_by_replacement),
        case(the_last_finalizer_ends_it_by_merge_patch),
        case(the_last_finalizer_ends_it_by_json_patch),
        case(the_last_finalizer_ends_it_by_apply),
        case(one_of_two_is_not_the_last),
        case(no_new_finalizers_while_deleting),
        case(other_changes_while_deleting),
        case(status_while_deleting),
        case(the_mark_cannot_be_removed),
        case(the_mark_counts_as_a_generation),
        case(the_name_is_taken_until_the_end),
        case(a_plain_name_is_refused_for_built_in_kinds),
        case(a_plain_name_is_a_warning_for_custom_kinds),
        case(watchers_see_the_mark_and_the_end),
        case(preconditions_hold_for_the_mark_too),
    ]
}

async fn held(t: &Target, finalizers: &[&str]) -> Value {
    let mut body = widget::with_spec("a", json!({}));
    body["metadata"]["finalizers"] = json!(finalizers);
    t.post(&t.widgets(""), &body).await.created()
}

async fn deletion_is_marked_and_waits(t: Target) -> Outcome {
    let made = held(&t, &["bowline.dev/x"]).await;
    let answer = t.delete(&t.widgets("/a")).await.ok();
    same("kind of the answer", &answer["kind"], json!("Widget"));
    text(&answer, "/metadata/deletionTimestamp").parse::<jiff::Timestamp>()?;
    same(
        "deletionGracePeriodSeconds",
        &answer["metadata"]["deletionGracePeriodSeconds"],
        json!(0),
    );
    assert_ne!(
        answer["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"]
    );
    same(
        "what is stored",
        &t.get(&t.widgets("/a")).await.ok(),
        answer,
    );
    Ok(())
}

async fn a_second_deletion_changes_nothing(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    let first = t.delete(&t.widgets("/a")).await.ok();
    let second = t.delete(&t.widgets("/a")).await.ok();
    same("the object", &second, first);
    Ok(())
}

async fn the_last_finalizer_ends_it_by_replacement(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    let mut marked = t.delete(&t.widgets("/a")).await.ok();
    marked["metadata"]["finalizers"] = json!([]);
    let answer = t.put(&t.widgets("/a"), &marked).await.ok();
    same("kind of the answer", &answer["kind"], json!("Widget"));
    let answer = t.get(&t.widgets("/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn the_last_finalizer_ends_it_by_merge_patch(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    t.delete(&t.widgets("/a")).await.ok();
    t.patch(
        &t.widgets("/a"),
        Patch::Merge,
        &json!({"metadata": {"finalizers": null}}),
    )
    .await
    .ok();
    let answer = t.get(&t.widgets("/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn the_last_finalizer_ends_it_by_json_patch(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    t.delete(&t.widgets("/a")).await.ok();
    t.patch(
        &t.widgets("/a"),
        Patch::Json,
        &json!([
            {"op": "test", "path": "/metadata/finalizers/0", "value": "bowline.dev/x"},
            {"op": "remove", "path": "/metadata/finalizers/0"},
        ]),
    )
    .await
    .ok();
    let answer = t.get(&t.widgets("/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn the_last_finalizer_ends_it_by_apply(t: Target) -> Outcome {
    let mut body = widget::with_spec("a", json!({}));
    body["metadata"]["finalizers"] = json!(["bowline.dev/x"]);
    t.apply(&t.widgets("/a"), "one", &body).await.created();
    t.delete(&t.widgets("/a")).await.ok();
    t.apply(&t.widgets("/a"), "one", &widget::with_spec("a", json!({})))
        .await
        .ok();
    let answer = t.get(&t.widgets("/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn one_of_two_is_not_the_last(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x", "bowline.dev/y"]).await;
    t.delete(&t.widgets("/a")).await.ok();
    t.patch(
        &t.widgets("/a"),
        Patch::Merge,
        &json!({"metadata": {"finalizers": ["bowline.dev/y"]}}),
    )
    .await
    .ok();
    let left = t.get(&t.widgets("/a")).await.ok();
    same(
        "finalizers",
        &left["metadata"]["finalizers"],
        json!(["bowline.dev/y"]),
    );
    Ok(())
}

async fn no_new_finalizers_while_deleting(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    t.delete(&t.widgets("/a")).await.ok();
    let details = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"metadata": {"finalizers": ["bowline.dev/x", "bowline.dev/y"]}}),
        )
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"bowline.dev/y"}"#);
    same(
        "reason of the first cause",
        &details["causes"][0]["reason"],
        json!("FieldValueForbidden"),
    );
    same(
        "field of the first cause",
        &details["causes"][0]["field"],
        json!("metadata.finalizers"),
    );
    Ok(())
}

async fn other_changes_while_deleting(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    let marked = t.delete(&t.widgets("/a")).await.ok();
    let changed = t
        .patch(
            &t.widgets("/a"),
            Patch::Merge,
            &json!({"metadata": {"labels": {"l": "1"}}, "spec": {"color": "blue"}}),
        )
        .await
        .ok();
    same("spec", &changed["spec"], json!({"color": "blue"}));
    same(
        "deletionTimestamp",
        &changed["metadata"]["deletionTimestamp"],
        marked["metadata"]["deletionTimestamp"].clone(),
    );
    Ok(())
}

async fn status_while_deleting(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    t.delete(&t.widgets("/a")).await.ok();
    let reported = t
        .patch(
            &t.widgets("/a/status"),
            Patch::Merge,
            &json!({"status": {"phase": "Ending"}}),
        )
        .await
        .ok();
    same("status", &reported["status"], json!({"phase": "Ending"}));
    Ok(())
}

async fn the_mark_cannot_be_removed(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    let marked = t.delete(&t.widgets("/a")).await.ok();
    let mut body = marked.clone();
    if let Some(metadata) = body["metadata"].as_object_mut() {
        metadata.remove("deletionTimestamp");
        metadata.remove("deletionGracePeriodSeconds");
    }
    let replaced = t.put(&t.widgets("/a"), &body).await.ok();
    same(
        "deletionTimestamp",
        &replaced["metadata"]["deletionTimestamp"],
        marked["metadata"]["deletionTimestamp"].clone(),
    );
    Ok(())
}

async fn the_mark_counts_as_a_generation(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    let marked = t.delete(&t.widgets("/a")).await.ok();
    same("generation", &marked["metadata"]["generation"], json!(2));
    Ok(())
}

async fn the_name_is_taken_until_the_end(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    t.delete(&t.widgets("/a")).await.ok();
    t.post(&t.widgets(""), &widget::with_spec("a", json!({})))
        .await
        .refused(
            409,
            "AlreadyExists",
            r#"object is being deleted: widgets.conformance.bowline.dev "a" already exists"#,
        );
    Ok(())
}

async fn a_plain_name_is_refused_for_built_in_kinds(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "finalizers": ["plain"]}}),
    )
    .await
    .refused(422, "Invalid", r#"ConfigMap "a" is invalid: metadata.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer name nor is it fully qualified"#);
    Ok(())
}

async fn a_plain_name_is_a_warning_for_custom_kinds(t: Target) -> Outcome {
    let mut body = widget::with_spec("a", json!({}));
    body["metadata"]["finalizers"] = json!(["plain"]);
    let answer = t.post(&t.widgets(""), &body).await;
    same(
        "warnings",
        &json!(answer.warnings),
        json!([
            "299 - \"metadata.finalizers: \\\"plain\\\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers\""
        ]),
    );
    answer.created();
    Ok(())
}

async fn watchers_see_the_mark_and_the_end(t: Target) -> Outcome {
    let made = held(&t, &["bowline.dev/x"]).await;
    let version = text(&made, "/metadata/resourceVersion");
    let mut watch = t
        .watch(&format!("{}?resourceVersion={version}", t.widgets("")))
        .await;
    t.delete(&t.widgets("/a")).await.ok();
    let marked = watch.expect("MODIFIED", "a").await;
    text(&marked, "/metadata/deletionTimestamp");
    t.patch(
        &t.widgets("/a"),
        Patch::Merge,
        &json!({"metadata": {"finalizers": []}}),
    )
    .await
    .ok();
    let ended = watch.expect("DELETED", "a").await;
    same(
        "deletionTimestamp",
        &ended["metadata"]["deletionTimestamp"],
        marked["metadata"]["deletionTimestamp"].clone(),
    );
    Ok(())
}

async fn preconditions_hold_for_the_mark_too(t: Target) -> Outcome {
    held(&t, &["bowline.dev/x"]).await;
    let answer = t
        .delete_with(
            &t.widgets("/a"),
            &json!({"preconditions": {"uid": "other"}}),
        )
        .await;
    same("code", &json!(answer.code), json!(409));
    same("reason", &answer.body["reason"], json!("Conflict"));
    let stored = t.get(&t.widgets("/a")).await.ok();
    same(
        "deletionTimestamp",
        &stored["metadata"]["deletionTimestamp"],
        json!(null),
    );
    Ok(())
}
