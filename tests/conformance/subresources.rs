//! Cases about the subresources status and scale.

use serde_json::{Value, json};

use crate::{
    Case, Outcome, case,
    strategic::deployment,
    target::{Patch, Target, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(status_writes_leave_the_spec),
        case(main_writes_leave_the_status),
        case(status_writes_leave_labels),
        case(status_reads_are_whole_objects),
        case(status_of_what_is_not_there),
        case(status_is_validated),
        case(status_conflicts_like_the_main_resource),
        case(status_of_a_deployment),
        case(status_by_all_patches),
        case(scale_of_a_deployment),
        case(scale_of_a_custom_object),
        case(scale_is_written_by_replacement),
        case(scale_is_written_by_patch),
        case(scale_conflicts_like_the_main_resource),
        case(scale_below_zero_is_refused),
        case(scale_of_what_is_not_there),
        case(scale_counts_as_a_generation),
    ]
}

fn with_status(mut object: Value, status: Value) -> Value {
    object["status"] = status;
    object
}

async fn status_writes_leave_the_spec(t: Target) -> Outcome {
    let made = t.widget("a", json!({"color": "blue"})).await;
    let mut body = with_status(made, json!({"phase": "Done"}));
    body["spec"]["color"] = json!("green");
    let reported = t.put(&t.widgets("/a/status"), &body).await.ok();
    same("spec", &reported["spec"], json!({"color": "blue"}));
    same("status", &reported["status"], json!({"phase": "Done"}));
    same("generation", &reported["metadata"]["generation"], json!(1));
    Ok(())
}

async fn main_writes_leave_the_status(t: Target) -> Outcome {
    let made = t.widget("a", json!({})).await;
    let reported = t
        .put(
            &t.widgets("/a/status"),
            &with_status(made, json!({"phase": "Done"})),
        )
        .await
        .ok();
    let mut body = with_status(reported, json!({"phase": "Lost"}));
    body["spec"]["color"] = json!("green");
    let replaced = t.put(&t.widgets("/a"), &body).await.ok();
    same("spec", &replaced["spec"], json!({"color": "green"}));
    same("status", &replaced["status"], json!({"phase": "Done"}));
    let patched = t
        .patch(&t.widgets("/a"), Patch::Merge, &json!({"status": null}))
        .await
        .ok();
    same("the object", &patched, replaced);
    Ok(())
}

async fn status_writes_leave_labels(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let reported = t
        .patch(
            &t.widgets("/a/status"),
            Patch::Merge,
            &json!({
                "metadata": {"labels": {"l": "1"}, "annotations": {"n": "1"}, "finalizers": ["bowline.dev/x"]},
                "status": {"phase": "Done"},
            }),
        )
        .await
        .ok();
    for field in ["labels", "annotations", "finalizers"] {
        same(field, &reported["metadata"][field], json!(null));
    }
    Ok(())
}

async fn status_reads_are_whole_objects(t: Target) -> Outcome {
    let made = t.widget("a", json!({"color": "blue"})).await;
    let read = t.get(&t.widgets("/a/status")).await.ok();
    same("the object", &read, made);
    Ok(())
}

async fn status_of_what_is_not_there(t: Target) -> Outcome {
    t.get(&t.widgets("/a/status")).await.refused(
        404,
        "NotFound",
        r#"widgets.conformance.bowline.dev "a" not found"#,
    );
    t.patch(
        &t.widgets("/a/status"),
        Patch::Merge,
        &json!({"status": {}}),
    )
    .await
    .refused(
        404,
        "NotFound",
        r#"widgets.conformance.bowline.dev "a" not found"#,
    );
    Ok(())
}

async fn status_is_validated(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    t.patch(
        &t.widgets("/a/status"),
        Patch::Merge,
        &json!({"status": {"observed": "many"}}),
    )
    .await
    .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [status.observed: Invalid value: "string": observed in body must be of type integer: "string", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]"#);
    Ok(())
}

async fn status_conflicts_like_the_main_resource(t: Target) -> Outcome {
    let stale = t.widget("a", json!({})).await;
    t.patch(
        &t.widgets("/a"),
        Patch::Merge,
        &json!({"spec": {"color": "blue"}}),
    )
    .await
    .ok();
    t.put(
        &t.widgets("/a/status"),
        &with_status(stale, json!({"phase": "Done"})),
    )
    .await
    .refused(
        409,
        "Conflict",
        r#"Operation cannot be fulfilled on widgets.conformance.bowline.dev "a": the object has been modified; please apply your changes to the latest version and try again"#,
    );
    Ok(())
}

async fn status_of_a_deployment(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments");
    let made = t
        .post(&path, &with_status(deployment("a"), json!({"replicas": 7})))
        .await
        .created();
    same("status", &made["status"], json!({}));
    let reported = t
        .patch(
            &format!("{path}/a/status"),
            Patch::Strategic,
            &json!({"spec": {"replicas": 9}, "status": {
                "replicas": 2,
                "conditions": [{"type": "Available", "status": "True"}],
            }}),
        )
        .await
        .ok();
    same("replicas", &reported["spec"]["replicas"], json!(2));
    same("status.replicas", &reported["status"]["replicas"], json!(2));
    let reported = t
        .patch(
            &format!("{path}/a/status"),
            Patch::Strategic,
            &json!({"status": {"conditions": [{"type": "Progressing", "status": "True"}]}}),
        )
        .await
        .ok();
    same(
        "conditions are merged by type",
        &json!(reported["status"]["conditions"].as_array().map(Vec::len)),
        json!(2),
    );
    Ok(())
}

async fn status_by_all_patches(t: Target) -> Outcome {
    t.widget("a", json!({})).await;
    let path = t.widgets("/a/status");
    let merged = t
        .patch(&path, Patch::Merge, &json!({"status": {"phase": "One"}}))
        .await
        .ok();
    same("status", &merged["status"], json!({"phase": "One"}));
    let patched = t
        .patch(
            &path,
            Patch::Json,
            &json!([{"op": "replace", "path": "/status/phase", "value": "Two"}]),
        )
        .await
        .ok();
    same("status", &patched["status"], json!({"phase": "Two"}));
    let body = json!({
        "apiVersion": widget::API_VERSION,
        "kind": "Widget",
        "metadata": {"name": "a"},
        "status": {"observed": 3},
    });
    let applied = t.apply(&path, "one", &body).await.ok();
    same(
        "status",
        &applied["status"],
        json!({"phase": "Two", "observed": 3}),
    );
    Ok(())
}

async fn scale_of_a_deployment(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments");
    let made = t.post(&path, &deployment("a")).await.created();
    let mut scale = t.get(&format!("{path}/a/scale")).await.ok();
    let metadata = scale["metadata"].take();
    same(
        "scale",
        &scale,
        json!({
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": null,
            "spec": {"replicas": 2},
            "status": {"replicas": 0, "selector": "app=a"},
        }),
    );
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
        same(field, &metadata[field], made["metadata"][field].clone());
    }
    Ok(())
}

async fn scale_of_a_custom_object(t: Target) -> Outcome {
    t.widget("a", json!({"replicas": 3})).await;
    t.patch(
        &t.widgets("/a/status"),
        Patch::Merge,
        &json!({"status": {"replicas": 1, "selector": "app=a"}}),
    )
    .await
    .ok();
    let scale = t.get(&t.widgets("/a/scale")).await.ok();
    same("kind", &scale["kind"], json!("Scale"));
    same("apiVersion", &scale["apiVersion"], json!("autoscaling/v1"));
    same("spec", &scale["spec"], json!({"replicas": 3}));
    same(
        "status",
        &scale["status"],
        json!({"replicas": 1, "selector": "app=a"}),
    );
    Ok(())
}

async fn scale_is_written_by_replacement(t: Target) -> Outcome {
    t.widget("a", json!({"replicas": 3})).await;
    let mut scale = t.get(&t.widgets("/a/scale")).await.ok();
    scale["spec"]["replicas"] = json!(5);
    let answer = t.put(&t.widgets("/a/scale"), &scale).await.ok();
    same("kind", &answer["kind"], json!("Scale"));
    same("spec", &answer["spec"], json!({"replicas": 5}));
    let stored = t.get(&t.widgets("/a")).await.ok();
    same("replicas", &stored["spec"]["replicas"], json!(5));
    Ok(())
}

async fn scale_is_written_by_patch(t: Target) -> Outcome {
    let path = t.group("apps/v1", "deployments");
    t.post(&path, &deployment("a")).await.created();
    let answer = t
        .patch(
            &format!("{path}/a/scale"),
            Patch::Merge,
            &json!({"spec": {"replicas": 4}}),
        )
        .await
        .ok();
    same("spec", &answer["spec"], json!({"replicas": 4}));
    let stored = t.get(&format!("{path}/a")).await.ok();
    same("replicas", &stored["spec"]["replicas"], json!(4));
    Ok(())
}

async fn scale_conflicts_like_the_main_resource(t: Target) -> Outcome {
    t.widget("a", json!({"replicas": 3})).await;
    let stale = t.get(&t.widgets("/a/scale")).await.ok();
    t.patch(
        &t.widgets("/a"),
        Patch::Merge,
        &json!({"spec": {"color": "blue"}}),
    )
    .await
    .ok();
    t.put(&t.widgets("/a/scale"), &stale)
        .await
        .refused(409, "Conflict", r#"Operation cannot be fulfilled on widgets.conformance.bowline.dev "a": the object has been modified; please apply your changes to the latest version and try again"#);
    Ok(())
}

async fn scale_below_zero_is_refused(t: Target) -> Outcome {
    t.widget("a", json!({"replicas": 3})).await;
    t.patch(
        &t.widgets("/a/scale"),
        Patch::Merge,
        &json!({"spec": {"replicas": -1}}),
    )
    .await
    .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "a" is invalid: [spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0, .spec.replicas: Invalid value: -1: should be a non-negative integer]"#);
    Ok(())
}

async fn scale_of_what_is_not_there(t: Target) -> Outcome {
    t.get(&t.widgets("/a/scale")).await.refused(
        404,
        "NotFound",
        r#"widgets.conformance.bowline.dev "a" not found"#,
    );
    t.get(&t.group("apps/v1", "deployments/a/scale"))
        .await
        .refused(404, "NotFound", r#"deployments.apps "a" not found"#);
    Ok(())
}

async fn scale_counts_as_a_generation(t: Target) -> Outcome {
    let made = t.widget("a", json!({"replicas": 3})).await;
    let answer = t
        .patch(
            &t.widgets("/a/scale"),
            Patch::Merge,
            &json!({"spec": {"replicas": 4}}),
        )
        .await
        .ok();
    let stored = t.get(&t.widgets("/a")).await.ok();
    same("generation", &stored["metadata"]["generation"], json!(2));
    same(
        "resourceVersion of the scale",
        &answer["metadata"]["resourceVersion"],
        stored["metadata"]["resourceVersion"].clone(),
    );
    assert_ne!(
        text(&stored, "/metadata/resourceVersion"),
        text(&made, "/metadata/resourceVersion")
    );
    Ok(())
}
