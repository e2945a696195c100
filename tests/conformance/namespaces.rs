//! Cases about namespaces, and about the objects in a deleted namespace.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    target::{Patch, Target, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(begin_active),
        case(take_their_content_with_them),
        case(refuse_new_content_while_they_end),
        case(wait_for_finalizers_of_their_content),
        case(of_the_system_cannot_be_deleted),
        case(are_not_deleted_together),
        case(that_are_not_there),
    ]
}

async fn begin_active(t: Target) -> Outcome {
    let namespace = t
        .get(&format!("/api/v1/namespaces/{}", t.namespace))
        .await
        .ok();
    same("status", &namespace["status"], json!({"phase": "Active"}));
    same(
        "spec",
        &namespace["spec"],
        json!({"finalizers": ["kubernetes"]}),
    );
    same(
        "labels",
        &namespace["metadata"]["labels"],
        json!({"kubernetes.io/metadata.name": t.namespace}),
    );
    Ok(())
}

async fn take_their_content_with_them(t: Target) -> Outcome {
    t.configmap("a").await;
    t.widget("a", json!({})).await;
    let path = format!("/api/v1/namespaces/{}", t.namespace);
    let answer = t.delete(&path).await.ok();
    same("kind", &answer["kind"], json!("Namespace"));
    same("phase", &answer["status"]["phase"], json!("Terminating"));
    text(&answer, "/metadata/deletionTimestamp");
    t.gone(&path).await;
    t.gone(&t.configmaps("/a")).await;
    t.gone(&t.widgets("/a")).await;
    Ok(())
}

async fn refuse_new_content_while_they_end(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "finalizers": ["bowline.dev/x"]}}),
    )
    .await
    .created();
    let path = format!("/api/v1/namespaces/{}", t.namespace);
    t.delete(&path).await.ok();
    let details = t
        .post(&t.configmaps(""), &json!({"metadata": {"name": "b"}}))
        .await
        .refused(
            403,
            "Forbidden",
            &format!(
                r#"configmaps "b" is forbidden: unable to create new content in namespace {} because it is being terminated"#,
                t.namespace
            ),
        );
    same(
        "details",
        &details,
        json!({"name": "b", "kind": "configmaps", "causes": [{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {} is being terminated", t.namespace),
            "field": "metadata.namespace",
        }]}),
    );
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"metadata": {"finalizers": []}}),
    )
    .await
    .ok();
    Ok(())
}

async fn wait_for_finalizers_of_their_content(t: Target) -> Outcome {
    t.post(
        &t.configmaps(""),
        &json!({"metadata": {"name": "a", "finalizers": ["bowline.dev/x"]}}),
    )
    .await
    .created();
    let path = format!("/api/v1/namespaces/{}", t.namespace);
    t.delete(&path).await.ok();
    t.until(&t.configmaps("/a"), "deletion", |answer| {
        answer.body["metadata"]["deletionTimestamp"].is_string()
    })
    .await;
    let namespace = t.get(&path).await.ok();
    same("phase", &namespace["status"]["phase"], json!("Terminating"));
    t.patch(
        &t.configmaps("/a"),
        Patch::Merge,
        &json!({"metadata": {"finalizers": []}}),
    )
    .await
    .ok();
    t.gone(&path).await;
    Ok(())
}

async fn of_the_system_cannot_be_deleted(t: Target) -> Outcome {
    t.delete("/api/v1/namespaces/default").await.refused(
        403,
        "Forbidden",
        r#"namespaces "default" is forbidden: this namespace may not be deleted"#,
    );
    Ok(())
}

async fn are_not_deleted_together(t: Target) -> Outcome {
    t.delete("/api/v1/namespaces").await.refused(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
    Ok(())
}

async fn that_are_not_there(t: Target) -> Outcome {
    let details = t.get("/api/v1/namespaces/nowhere").await.refused(
        404,
        "NotFound",
        r#"namespaces "nowhere" not found"#,
    );
    same(
        "details",
        &details,
        json!({"name": "nowhere", "kind": "namespaces"}),
    );
    Ok(())
}
