//! Cases about `dryRun=All`: the server answers as if it had written, but writes nothing.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, names, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(of_a_creation),
        case(of_a_creation_with_a_generated_name),
        case(of_a_creation_that_fails),
        case(of_a_replacement),
        case(of_a_replacement_that_conflicts),
        case(of_patches),
        case(of_an_apply_that_makes),
        case(of_an_apply_that_changes),
        case(of_an_apply_that_conflicts),
        case(of_a_deletion),
        case(of_a_deletion_in_its_options),
        case(of_a_deletion_with_finalizers),
        case(of_a_collection),
        case(of_a_status),
        case(of_a_scale),
        case(of_some_is_refused),
        case(is_seen_by_no_watch),
    ]
}

fn dry(path: &str) -> String {
    format!("{path}?dryRun=All")
}

async fn of_a_creation(t: Target) -> Outcome {
    let made = t
        .post(
            &dry(&t.widgets("")),
            &widget::with_spec("a", json!({"parts": [{"name": "x"}]})),
        )
        .await
        .created();
    same(
        "spec, with defaults",
        &made["spec"],
        json!({"color": "red", "parts": [{"name": "x", "count": 1}]}),
    );
    text(&made, "/metadata/uid");
    text(&made, "/metadata/creationTimestamp");
    same(
        "resourceVersion",
        &made["metadata"]["resourceVersion"],
        json!(null),
    );
    let answer = t.get(&t.widgets("/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn of_a_creation_with_a_generated_name(t: Target) -> Outcome {
    let made = t
        .post(
            &dry(&t.configmaps("")),
            &json!({"metadata": {"generateName": "thing-"}}),
        )
        .await
        .created();
    assert_eq!(text(&made, "/metadata/name").len(), "thing-12345".len());
    let list = t.get(&t.configmaps("")).await.ok();
    same("names", &json!(names(&list)), json!([]));
    Ok(())
}

async fn of_a_creation_that_fails(t: Target) -> Outcome {
    t.configmap("a").await;
    t.post(&dry(&t.configmaps("")), &json!({"metadata": {"name": "a"}}))
        .await
        .refused(409, "AlreadyExists", r#"configmaps "a" already exists"#);
    let answer = t
        .post(
            &dry(&t.widgets("")),
            &widget::with_spec("a", json!({"color": "pink"})),
        )
        .await;
    same("code", &json!(answer.code), json!(422));
    Ok(())
}

async fn unchanged(t: &Target, path: &str, before: Value) {
    let after = t.get(path).await.ok();
    same("what is stored", &after, before);
}

async fn of_a_replacement(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let mut body = made.clone();
    body["spec"]["color"] = json!("blue");
    let answer = t.put(&dry(&t.widgets("/a")), &body).await.ok();
    same("color", &answer["spec"]["color"], json!("blue"));
    same("generation", &answer["metadata"]["generation"], json!(2));
    same(
        "resourceVersion",
        &answer["metadata"]["resourceVersion"],
        made["metadata"]["resourceVersion"].clone(),
    );
    unchanged(&t, &t.widgets("/a"), made).await;
    Ok(())
}

async fn of_a_replacement_that_conflicts(t: Target) -> Outcome {
    let stale = t.configmap("a").await;
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .ok();
    let answer = t.put(&dry(&t.configmaps("/a")), &stale).await;
    same("code", &json!(answer.code), json!(409));
    same("reason", &answer.body["reason"], json!("Conflict"));
    Ok(())
}

async fn of_patches(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let path = dry(&t.configmaps("/a"));
    for (kind, body) in [
        (
            Patch::Json,
            json!([{"op": "replace", "path": "/data/k", "value": "w"}]),
        ),
        (Patch::Merge, json!({"data": {"k": "w"}})),
        (Patch::Strategic, json!({"data": {"k": "w"}})),
    ] {
        let answer = t.patch(&path, kind, &body).await.ok();
        same(
            &format!("data by {kind:?}"),
            &answer["data"],
            json!({"k": "w"}),
        );
        unchanged(&t, &t.configmaps("/a"), made.clone()).await;
    }
    Ok(())
}

async fn apply(t: &Target, query: &str, color: &str) -> crate::target::Answer {
    let path = format!("{}?dryRun=All{query}", t.widgets("/a"));
    t.patch_raw(
        &path,
        "application/apply-patch+yaml",
        &widget::with_spec("a", json!({"color": color})).to_string(),
    )
    .await
}

async fn of_an_apply_that_makes(t: Target) -> Outcome {
    let answer = apply(&t, "&fieldManager=one", "blue").await.created();
    same("spec", &answer["spec"], json!({"color": "blue"}));
    let answer = t.get(&t.widgets("/a")).await;
    same("code", &json!(answer.code), json!(404));
    Ok(())
}

async fn of_an_apply_that_changes(t: Target) -> Outcome {
    let body = widget::with_spec("a", json!({"color": "green"}));
    let made = t.apply(&t.widgets("/a"), "one", &body).await.created();
    let answer = apply(&t, "&fieldManager=one", "blue").await.ok();
    same("spec", &answer["spec"], json!({"color": "blue"}));
    let answer = apply(&t, "&fieldManager=two&force=true", "red").await.ok();
    same("spec", &answer["spec"], json!({"color": "red"}));
    unchanged(&t, &t.widgets("/a"), made).await;
    Ok(())
}

async fn of_an_apply_that_conflicts(t: Target) -> Outcome {
    let body = widget::with_spec("a", json!({"color": "green"}));
    t.apply(&t.widgets("/a"), "one", &body).await.created();
    apply(&t, "&fieldManager=two", "blue").await.refused(
        409,
        "Conflict",
        r#"Apply failed with 1 conflict: conflict with "one": .spec.color"#,
    );
    Ok(())
}

async fn of_a_deletion(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    let answer = t.delete(&dry(&t.configmaps("/a"))).await.ok();
    same("status", &answer["status"], json!("Success"));
    unchanged(&t, &t.configmaps("/a"), made).await;
    Ok(())
}

async fn of_a_deletion_in_its_options(t: Target) -> Outcome {
    let made = t.configmap("a").await;
    t.delete_with(&t.configmaps("/a"), &json!({"dryRun": ["All"]}))
        .await
        .ok();
    unchanged(&t, &t.configmaps("/a"), made).await;
    Ok(())
}

async fn of_a_deletion_with_finalizers(t: Target) -> Outcome {
    let made = t
        .post(
            &t.configmaps(""),
            &json!({"metadata": {"name": "a", "finalizers": ["bowline.dev/x"]}}),
        )
        .await
        .created();
    t.delete(&dry(&t.configmaps("/a"))).await.ok();
    unchanged(&t, &t.configmaps("/a"), made).await;
    Ok(())
}

async fn of_a_collection(t: Target) -> Outcome {
    for name in ["a", "b"] {
        t.configmap(name).await;
    }
    t.delete(&dry(&t.configmaps(""))).await.ok();
    let list = t.get(&t.configmaps("")).await.ok();
    same("names", &json!(names(&list)), json!(["a", "b"]));
    Ok(())
}

async fn of_a_status(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let answer = t
        .patch(
            &dry(&t.widgets("/a/status")),
            Patch::Merge,
            &json!({"status": {"phase": "Done"}}),
        )
        .await
        .ok();
    same("status", &answer["status"], json!({"phase": "Done"}));
    unchanged(&t, &t.widgets("/a"), made).await;
    Ok(())
}

async fn of_a_scale(t: Target) -> Outcome {
    let made = t.widget("a", json!({"replicas": 1})).await;
    let answer = t
        .patch(
            &dry(&t.widgets("/a/scale")),
            Patch::Merge,
            &json!({"spec": {"replicas": 2}}),
        )
        .await
        .ok();
    same("spec", &answer["spec"], json!({"replicas": 2}));
    unchanged(&t, &t.widgets("/a"), made).await;
    Ok(())
}

async fn of_some_is_refused(t: Target) -> Outcome {
    let path = format!("{}?dryRun=Some", t.configmaps(""));
    t.post(&path, &json!({"metadata": {"name": "a"}}))
        .await
        .refused(422, "Invalid", r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All""#);
    Ok(())
}

async fn is_seen_by_no_watch(t: Target) -> Outcome {
    t.configmap("a").await;
    let mut watch = t
        .watch(&format!(
            "{}?resourceVersion={}",
            t.configmaps(""),
            t.now().await
        ))
        .await;
    t.post(&dry(&t.configmaps("")), &json!({"metadata": {"name": "b"}}))
        .await
        .created();
    t.patch(
        &dry(&t.configmaps("/a")),
        Patch::Merge,
        &json!({"data": {"k": "w"}}),
    )
    .await
    .ok();
    t.delete(&dry(&t.configmaps("/a"))).await.ok();
    t.configmap("c").await;
    watch.expect("ADDED", "c").await;
    Ok(())
}
