//! Cases about valid and invalid object names.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    target::{Target, same, text},
    widget,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(with_capitals),
        case(of_custom_objects),
        case(that_are_too_long),
        case(with_dots_are_fine),
        case(of_namespaces_have_no_dots),
        case(of_services_have_no_dots),
        case(of_roles_may_have_colons),
        case(that_are_generated_are_cut),
        case(that_are_paths),
    ]
}

async fn with_capitals(t: Target) -> Outcome {
    let details = t
        .post(&t.configmaps(""), &json!({"metadata": {"name": "Big"}}))
        .await
        .refused(422, "Invalid", r#"ConfigMap "Big" is invalid: metadata.name: Invalid value: "Big": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#);
    same(
        "details",
        &details,
        json!({"causes": [{"field": "metadata.name", "message": "Invalid value: \"Big\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')", "reason": "FieldValueInvalid"}], "kind": "ConfigMap", "name": "Big"}),
    );
    Ok(())
}

async fn of_custom_objects(t: Target) -> Outcome {
    t.post(&t.widgets(""), &widget::with_spec("under_score", json!({})))
        .await
        .refused(422, "Invalid", r#"Widget.conformance.bowline.dev "under_score" is invalid: metadata.name: Invalid value: "under_score": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#);
    Ok(())
}

async fn that_are_too_long(t: Target) -> Outcome {
    let longest = "a".repeat(253);
    t.configmap(&longest).await;
    let answer = t
        .post(
            &t.configmaps(""),
            &json!({"metadata": {"name": "a".repeat(254)}}),
        )
        .await;
    same("code", &json!(answer.code), json!(422));
    same(
        "cause",
        &answer.body["details"]["causes"][0]["message"],
        json!(
            "Invalid value: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": must be no more than 253 characters"
        ),
    );
    Ok(())
}

async fn with_dots_are_fine(t: Target) -> Outcome {
    for name in ["a.b-c.d1", "0", "1.2.3"] {
        let made = t.configmap(name).await;
        same("name", &made["metadata"]["name"], json!(name));
        t.get(&t.configmaps(&format!("/{name}"))).await.ok();
    }
    Ok(())
}

async fn of_namespaces_have_no_dots(t: Target) -> Outcome {
    t.post("/api/v1/namespaces", &json!({"metadata": {"name": "a.b"}}))
        .await
        .refused(422, "Invalid", r#"Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b": must not contain dots"#);
    Ok(())
}

async fn of_services_have_no_dots(t: Target) -> Outcome {
    let answer = t
        .post(
            &t.core("services"),
            &json!({"metadata": {"name": "a.b"}, "spec": {"ports": [{"port": 80}]}}),
        )
        .await;
    same("code", &json!(answer.code), json!(422));
    same(
        "cause",
        &answer.body["details"]["causes"][0]["field"],
        json!("metadata.name"),
    );
    Ok(())
}

async fn of_roles_may_have_colons(t: Target) -> Outcome {
    let path = t.group("rbac.authorization.k8s.io/v1", "roles");
    let made = t
        .post(
            &path,
            &json!({"metadata": {"name": "Team:reader"}, "rules": []}),
        )
        .await
        .created();
    same("name", &made["metadata"]["name"], json!("Team:reader"));
    let read = t.get(&format!("{path}/Team:reader")).await.ok();
    same("what is stored", &read, made);
    Ok(())
}

async fn that_are_generated_are_cut(t: Target) -> Outcome {
    let made = t
        .post(
            &t.configmaps(""),
            &json!({"metadata": {"generateName": "a".repeat(100)}}),
        )
        .await
        .created();
    let name = text(&made, "/metadata/name");
    same("length", &json!(name.len()), json!(63));
    Ok(())
}

async fn that_are_paths(t: Target) -> Outcome {
    for name in ["..", ".", "a/b", "a%b"] {
        let answer = t
            .post(&t.configmaps(""), &json!({"metadata": {"name": name}}))
            .await;
        same(name, &json!(answer.code), json!(422));
    }
    Ok(())
}
