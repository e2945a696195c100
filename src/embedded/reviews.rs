//! Who am I, may I: questions that are posted and never stored.
//!
//! The store has one user, who may do everything; the policies in it speak for themselves.

use http::Method;
use serde_json::{Value, json};

use super::catalog::Resource;
use super::service::{Answer, Call};
use super::status::{Cause, Failure, Subject};

/// Answers a review; nothing when the resource is not one.
pub(super) fn answer(resource: &Resource, call: &Call) -> Result<Option<Answer>, Failure> {
    let known = matches!(
        resource.subject.group.as_str(),
        "authentication.k8s.io" | "authorization.k8s.io"
    );
    if !known {
        return Ok(None);
    }
    if call.method != Method::POST {
        return Err(Failure::method_not_allowed());
    }
    let mut review: Value = match call.body.is_empty() {
        true => json!({}),
        false => serde_json::from_slice(&call.body)
            .map_err(|cause| Failure::bad_request(format!("error decoding the review: {cause}")))?,
    };
    if !review.is_object() {
        return Err(Failure::bad_request(
            "error decoding the review: it is not an object",
        ));
    }
    if resource.subject.kind.ends_with("SubjectAccessReview")
        && review["spec"]["resourceAttributes"].is_object()
            == review["spec"]["nonResourceAttributes"].is_object()
    {
        let cause = Cause {
            reason: "FieldValueInvalid".into(),
            message: "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified".into(),
            field: "spec.resourceAttributes".into(),
        };
        let nameless = Subject {
            kind: String::new(),
            ..resource.subject.clone()
        };
        return Err(Failure::invalid(&nameless, "", vec![cause]));
    }
    let user = json!({"username": call.user.name, "groups": call.user.groups});
    let status = match resource.subject.kind.as_str() {
        "SelfSubjectReview" => json!({"userInfo": user}),
        "SelfSubjectAccessReview" | "SubjectAccessReview" | "LocalSubjectAccessReview" => {
            json!({"allowed": true, "reason": "the embedded store belongs to its user"})
        }
        "SelfSubjectRulesReview" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        _ => json!({"authenticated": false, "error": "the embedded store gives out no tokens"}),
    };
    review["apiVersion"] = resource.api_version().into();
    review["kind"] = resource.subject.kind.as_str().into();
    if !review["metadata"].is_object() {
        review["metadata"] = json!({});
    }
    if resource.subject.kind == "SelfSubjectReview" {
        review["metadata"]["creationTimestamp"] = call.writer.now.as_str().into();
    }
    review["status"] = status;
    Ok(Some(Answer::json(201, review)))
}
