//! Answers SelfSubjectReview and SubjectAccessReview requests. Nothing is stored for them.
//!
//! The reviews say that the user may do everything, because the API has only one user and no RBAC. They do not
//! consider the admission policies.

use http::Method;
use serde_json::{Value, json};

use super::catalog::Resource;
use super::object;
use super::service::{Answer, Call};
use super::status::{Cause, Failure, Subject};

/// Answers a request for a review; None if the resource is not a review.
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
    if !review.is_object() && !review.is_null() {
        return Err(Failure::bad_request(
            "error decoding the review: it is not an object",
        ));
    }
    object::readable(resource, &review)
        .map_err(|why| why.refuse(&resource.subject.kind, &resource.version))?;
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
    let metadata = object::meta_mut(&mut review);
    if resource.subject.kind == "SelfSubjectReview" {
        let now = call.writer.now.as_str();
        metadata.insert("creationTimestamp".into(), now.into());
    }
    let fields = object::map_of(&mut review);
    fields.insert("apiVersion".into(), resource.api_version().into());
    fields.insert("kind".into(), resource.subject.kind.as_str().into());
    fields.insert("status".into(), status);
    Ok(Some(Answer::json(201, review)))
}
