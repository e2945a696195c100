//! Cases about deleting one object, and about deleting many objects in one request.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Target, names, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(answers_with_a_status),
        case(of_a_custom_object_answers_with_a_status),
        case(of_what_is_not_there),
        case(with_the_right_uid_and_version),
        case(with_another_uid_conflicts),
        case(with_a_stale_version_conflicts),
        case(with_a_policy_that_nobody_knows),
        case(with_two_policies),
        case(with_a_body_that_is_no_options),
        case(with_options_in_the_query),
        case(a_pod_that_runs_nowhere_goes_at_once),
        case(a_collection_answers_with_what_it_deleted),
        case(a_collection_by_labels),
        case(a_collection_by_name),
        case(a_collection_of_custom_objects),
        case(a_collection_respects_finalizers),
        case(a_collection_with_preconditions),
        case(an_empty_collection),
    ]
}

async fn answers_with_a_status(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let answer = t.delete(&t.configmaps("/a")).await.ok();
    same(
        "answer",
        &answer,
        json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]},
        }),
    );
    t.get(&t.configmaps("/a"))
        .await
        .refused(404, "NotFound", r#"configmaps "a" not found"#);
    Ok(())
}

async fn of_a_custom_object_answers_with_a_status(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let answer = t.delete(&t.widgets("/a")).await.ok();
    same("status", &answer["status"], json!("Success"));
    same(
        "details",
        &answer["details"],
        json!({
            "name": "a",
            "group": widget::GROUP,
            "kind": "widgets",
            "uid": made["metadata"]["uid"],
        }),
    );
    Ok(())
}

async fn of_what_is_not_there(t: Target) -> Outcome {
    let details =
        t.delete(&t.configmaps("/a"))
            .await
            .refused(404, "NotFound", r#"configmaps "a" not found"#);
    same(
        "details",
        &details,
        json!({"name": "a", "kind": "configmaps"}),
    );
    Ok(())
}

fn preconditions(uid: &Value, version: &Value) -> Value {
    json!({"preconditions": {"uid": uid, "resourceVersion": version}})
}

async fn with_the_right_uid_and_version(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let metadata = &made["metadata"];
    t.delete_with(
        &t.widgets("/a"),
        &preconditions(&metadata["uid"], &metadata["resourceVersion"]),
    )
    .await
    .ok();
    let answer = t.get(&t.widgets("/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn with_another_uid_conflicts(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let uid = text(&made, "/metadata/uid");
    let details = t
        .delete_with(
            &t.configmaps("/a"),
            &json!({"preconditions": {"uid": "other"}}),
        )
        .await
        .refused(
            409,
            "Conflict",
            &format!(
                r#"Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (other) does not match the UID in record ({uid}). The object might have been deleted and then recreated"#
            ),
        );
    same(
        "details",
        &details,
        json!({"kind": "ConfigMap", "name": "a"}),
    );
    t.get(&t.configmaps("/a")).await.ok();
    Ok(())
}

async fn with_a_stale_version_conflicts(t: Target) -> Outcome {
    let stale = t.configmap("a").await;
    let mut fresh = stale.clone();
    fresh["data"]["k"] = json!("w");
    let fresh = t.put(&t.configmaps("/a"), &fresh).await.ok();
    let old = text(&stale, "/metadata/resourceVersion");
    let new = text(&fresh, "/metadata/resourceVersion");
    t.delete_with(
        &t.configmaps("/a"),
        &json!({"preconditions": {"resourceVersion": old}}),
    )
    .await
    .refused(
        409,
        "Conflict",
        &format!(
            r#"Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition ({old}) does not match the ResourceVersion in record ({new}). The object might have been modified"#
        ),
    );
    t.get(&t.configmaps("/a")).await.ok();
    Ok(())
}

async fn with_a_policy_that_nobody_knows(t: Target) -> Outcome {
    t.configmap("a").await;
    t.delete_with(&t.configmaps("/a"), &json!({"propagationPolicy": "Slow"}))
        .await
        .refused(422, "Invalid", r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Slow": supported values: "Foreground", "Background", "Orphan", "nil""#);
    Ok(())
}

async fn with_two_policies(t: Target) -> Outcome {
    t.configmap("a").await;
    t.delete_with(
        &t.configmaps("/a"),
        &json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
    )
    .await
    .refused(422, "Invalid", r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#);
    Ok(())
}

async fn with_a_body_that_is_no_options(t: Target) -> Outcome {
    t.configmap("a").await;
    let request = http::Request::delete(t.configmaps("/a"))
        .header("content-type", "application/json")
        .body(br#"{"kind":"ConfigMap","apiVersion":"v1"}"#.to_vec())?;
    let answer = t.send(request).await;
    same("code", &json!(answer.code), json!(400));
    t.get(&t.configmaps("/a")).await.ok();
    Ok(())
}

async fn with_options_in_the_query(t: Target) -> Outcome {
    t.configmap("a").await;
    let path = format!(
        "{}?propagationPolicy=Background&gracePeriodSeconds=0",
        t.configmaps("/a")
    );
    t.delete(&path).await.ok();
    let answer = t.get(&t.configmaps("/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn a_pod_that_runs_nowhere_goes_at_once(t: Target) -> Outcome {
    let pod = json!({
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "main", "image": "main:1"}]},
    });
    t.post(&t.core("pods"), &pod).await.created();
    let answer = t.delete(&t.core("pods/a")).await.ok();
    same("kind", &answer["kind"], json!("Pod"));
    same("name", &answer["metadata"]["name"], json!("a"));
    let answer = t.get(&t.core("pods/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn a_collection_answers_with_what_it_deleted(t: Target) -> Outcome {
    for name in ["b", "a"] {
        t.configmap(name).await;
    }
    let answer = t.delete(&t.configmaps("")).await.ok();
    same("kind", &answer["kind"], json!("ConfigMapList"));
    same("names", &json!(names(&answer)), json!(["a", "b"]));
    let left = t.get(&t.configmaps("")).await.ok();
    same("names left", &json!(names(&left)), json!([]));
    Ok(())
}

async fn labelled(t: &Target, name: &str, label: &str) {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": name, "labels": {"l": label}}}),
    )
    .await
    .created();
}

async fn a_collection_by_labels(t: Target) -> Outcome {
    for (name, label) in [("a", "1"), ("b", "2"), ("c", "1")] {
        labelled(&t, name, label).await;
    }
    t.delete(&format!("{}?labelSelector=l%3D1", t.configmaps("")))
        .await
        .ok();
    let left = t.get(&t.configmaps("")).await.ok();
    same("names left", &json!(names(&left)), json!(["b"]));
    Ok(())
}

async fn a_collection_by_name(t: Target) -> Outcome {
    for name in ["a", "b"] {
        t.configmap(name).await;
    }
    t.delete(&format!(
        "{}?fieldSelector=metadata.name%3Da",
        t.configmaps("")
    ))
    .await
    .ok();
    let left = t.get(&t.configmaps("")).await.ok();
    same("names left", &json!(names(&left)), json!(["b"]));
    Ok(())
}

async fn a_collection_of_custom_objects(t: Target) -> Outcome {
    for name in ["a", "b"] {
        t.widget(name, json!({})).await;
    }
    let answer = t.delete(&t.widgets("")).await.ok();
    same("kind", &answer["kind"], json!("WidgetList"));
    let left = t.get(&t.widgets("")).await.ok();
    same("names left", &json!(names(&left)), json!([]));
    Ok(())
}

async fn a_collection_respects_finalizers(t: Target) -> Outcome {
    t.configmap("a").await;
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "b", "finalizers": ["bowline.dev/x"]}}),
    )
    .await
    .created();
    t.delete(&t.configmaps("")).await.ok();
    let left = t.get(&t.configmaps("")).await.ok();
    same("names left", &json!(names(&left)), json!(["b"]));
    text(&left, "/items/0/metadata/deletionTimestamp");
    Ok(())
}

async fn a_collection_with_preconditions(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    t.configmap("b").await;
    let answer = t
        .delete_with(
            &t.configmaps(""),
            &json!({"preconditions": {"uid": made["metadata"]["uid"]}}),
        )
        .await;
    same("code", &json!(answer.code), json!(409));
    Ok(())
}

async fn an_empty_collection(t: Target) -> Outcome {
    let answer = t.delete(&t.configmaps("")).await.ok();
    same("kind", &answer["kind"], json!("ConfigMapList"));
    same("items", &answer["items"], json!([]));
    Ok(())
}
