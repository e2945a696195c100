//! Cases about the review kinds with which users ask for their own identity and permissions.

use serde_json::json;

use crate::{
    Case, Outcome, case,
    target::{Target, same, text},
};

pub fn cases() -> Vec<Case> {
    vec![
        case(who_am_i),
        case(may_i),
        case(may_i_use_a_verb_of_our_own),
        case(may_i_without_a_question),
        case(what_may_i),
        case(reviews_are_not_stored),
    ]
}

async fn who_am_i(t: Target) -> Outcome {
    let review = t
        .post(
            "/apis/authentication.k8s.io/v1/selfsubjectreviews",
            &json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}),
        )
        .await
        .created();
    same("kind", &review["kind"], json!("SelfSubjectReview"));
    same(
        "username",
        &review["status"]["userInfo"]["username"],
        json!("admin"),
    );
    let groups = review["status"]["userInfo"]["groups"].clone();
    for group in ["system:masters", "system:authenticated"] {
        assert!(
            groups
                .as_array()
                .is_some_and(|groups| groups.contains(&json!(group))),
            "no {group} in {groups}"
        );
    }
    text(&review, "/metadata/creationTimestamp");
    Ok(())
}

const ACCESS: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

async fn may_i(t: Target) -> Outcome {
    let spec = json!({"resourceAttributes": {
        "verb": "delete", "group": "apps", "resource": "deployments", "namespace": t.namespace,
    }});
    let review = t
        .post(
            ACCESS,
            &json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}),
        )
        .await
        .created();
    same("spec", &review["spec"], spec);
    same("allowed", &review["status"]["allowed"], json!(true));
    Ok(())
}

async fn may_i_use_a_verb_of_our_own(t: Target) -> Outcome {
    let review = t
        .post(
            ACCESS,
            &json!({"spec": {"resourceAttributes": {
                "verb": "promote", "group": "openchoreo.dev", "resource": "environments", "name": "production",
            }}}),
        )
        .await
        .created();
    same("allowed", &review["status"]["allowed"], json!(true));
    let review = t
        .post(
            ACCESS,
            &json!({"spec": {"nonResourceAttributes": {"verb": "get", "path": "/version"}}}),
        )
        .await
        .created();
    same("allowed", &review["status"]["allowed"], json!(true));
    Ok(())
}

async fn may_i_without_a_question(t: Target) -> Outcome {
    t.post(ACCESS, &json!({"spec": {}}))
        .await
        .refused(422, "Invalid", r#".authorization.k8s.io "" is invalid: spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"#);
    Ok(())
}

async fn what_may_i(t: Target) -> Outcome {
    let review = t
        .post(
            "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
            &json!({"spec": {"namespace": t.namespace}}),
        )
        .await
        .created();
    same("incomplete", &review["status"]["incomplete"], json!(false));
    let rules = review["status"]["resourceRules"].clone();
    assert!(
        rules.as_array().is_some_and(|rules| rules
            .iter()
            .any(|rule| rule["verbs"] == json!(["*"]) && rule["resources"] == json!(["*"]))),
        "no rule for everything in {rules:#}"
    );
    Ok(())
}

async fn reviews_are_not_stored(t: Target) -> Outcome {
    t.get(ACCESS).await.refused(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
    Ok(())
}
