//! Answers PATCH requests: JSON patch, merge patch, strategic merge patch and server-side apply.

use serde_json::{Value, json};

use super::body::decode_yaml;
use super::part;
use crate::apply::{self, ApplyError, Manager, Operation};
use crate::catalog::Resource;
use crate::object::{self, Part, Unreadable, meta};
use crate::service::{Answer, Call};
use crate::status::{Cause, Failure, Subject};
use crate::{Shared, patch};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

impl Shared {
    /// Answers a PATCH request with any type of patch.
    pub(crate) async fn patch(&self, resource: &Resource, call: &Call) -> Result<Answer, Failure> {
        let builtin = [JSON_PATCH, MERGE_PATCH, STRATEGIC, APPLY];
        let custom = [JSON_PATCH, MERGE_PATCH, APPLY];
        let accepted: &[&str] = if resource.custom.is_some() {
            &custom
        } else {
            &builtin
        };
        let kind = call.content_type.as_str();
        if !builtin.contains(&kind) {
            return Err(Failure::other(
                415,
                "UnsupportedMediaType",
                "415: Unsupported Media Type",
            ));
        }
        if !accepted.contains(&kind) {
            return Err(Failure::unsupported_media_type(accepted));
        }
        if kind == APPLY {
            return self.apply(resource, call).await;
        }
        if call.options.force {
            let cause = Cause {
                reason: "FieldValueForbidden".into(),
                message: "Forbidden: may not be specified for non-apply patch".into(),
                field: "force".into(),
            };
            return Err(options_invalid(vec![cause]));
        }
        let part = part(call)?;
        let sent: Value = serde_json::from_slice(&call.body)
            .map_err(|cause| Failure::bad_request(format!("error decoding patch: {cause}")))?;
        let name = call.target.name.clone().unwrap_or_default();
        let patched = |old: &Value| {
            match kind {
                JSON_PATCH => patch::json_patch(old, &sent),
                MERGE_PATCH => patch::merge_patch(old, &sent),
                _ => patch::strategic_merge(&resource.schema, old, &sent)
                    .map(|merged| of_its_kind(merged, old)),
            }
            .map_err(|error| patch_failure(&error))
        };
        let change = |old: &Value| {
            let mut new = patched(old)?;
            if meta(&new, "resourceVersion") != meta(old, "resourceVersion")
                && !meta(&new, "resourceVersion").is_empty()
            {
                return Err(Failure::stale(&resource.subject, &name));
            }
            // If the patched object is invalid, the error is about the patch, because the stored object was valid.
            object::readable(resource, &new).map_err(|why| match why {
                Unreadable::Mismatch(failure) if failure.code == 422 => failure,
                why => unreadable(&new, &why.why()),
            })?;
            object::identify(resource, &call.target, &mut new)?;
            object::update(resource, old, new, part, &call.writer, false).map_err(|failure| {
                let begin = object::cannot_be_handled(&resource.subject.kind, &resource.version);
                match failure.message.strip_prefix(&begin) {
                    Some(why) => unreadable(&patched(old).unwrap_or_default(), why),
                    None => failure,
                }
            })
        };
        self.change(resource, call, true, change).await
    }

    /// Answers a PATCH request that is a server-side apply.
    async fn apply(&self, resource: &Resource, call: &Call) -> Result<Answer, Failure> {
        let Some(manager) = &call.options.field_manager else {
            let cause = Cause {
                reason: "FieldValueRequired".into(),
                message: "Required value: is required for apply patch".into(),
                field: "fieldManager".into(),
            };
            return Err(options_invalid(vec![cause]));
        };
        let sent = decode_yaml(&call.body)?;
        object::check_applied(resource, &call.target, &sent)?;
        let part = part(call)?;
        let name = call.target.name.clone().unwrap_or_default();
        let api_version = resource.api_version();
        let manager = Manager {
            name: manager,
            operation: Operation::Apply,
            api_version: &api_version,
            subresource: call.target.subresource.as_deref(),
            time: &call.writer.now,
            reset_fields: object::reset_fields(resource, part),
        };
        let key = resource.key(call.target.namespace.as_deref().unwrap_or_default(), &name);
        loop {
            if part == Part::Main && self.store.get(&key).await?.is_none() {
                let mut merged =
                    apply::apply(&resource.schema, None, &sent, &manager, call.options.force)
                        .map_err(apply_failure)?;
                let metadata = object::meta_mut(&mut merged);
                metadata.insert("name".into(), name.as_str().into());
                metadata.remove("resourceVersion");
                object::identify(resource, &call.target, &mut merged)?;
                match self.create_object(resource, merged, call, true).await {
                    // Another client has created the object since it was read, so the loop applies the configuration
                    // to this object.
                    Err(failure) if failure.reason == "AlreadyExists" => continue,
                    created => {
                        let (object, warnings) = created?;
                        return self.answer_object(resource, call, 201, object, warnings);
                    }
                }
            }
            let change = |old: &Value| {
                let version = meta(&sent, "resourceVersion");
                if !version.is_empty() && version != meta(old, "resourceVersion") {
                    return Err(Failure::stale(&resource.subject, &name));
                }
                let uid = meta(&sent, "uid");
                if !uid.is_empty() && uid != meta(old, "uid") {
                    return Err(Failure::conflict(
                        &resource.subject,
                        &name,
                        &format!(
                            "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                            meta(old, "uid")
                        ),
                    ));
                }
                let merged = apply::apply(
                    &resource.schema,
                    Some(old),
                    &sent,
                    &manager,
                    call.options.force,
                )
                .map_err(apply_failure)?;
                object::update(resource, old, merged, part, &call.writer, true)
            };
            return self.change(resource, call, true, change).await;
        }
    }
}

/// Converts the error of a patch to the answer for the client.
pub(crate) fn patch_failure(error: &patch::PatchError) -> Failure {
    let (code, reason) = error.status();
    let mut failure = Failure::other(code, reason, error.message());
    if code == 422 {
        failure.details = Some(json!({}));
    }
    failure
}

fn apply_failure(error: ApplyError) -> Failure {
    match error {
        ApplyError::Conflict(conflicts) => {
            let causes = conflicts
                .iter()
                .map(|conflict| Cause {
                    reason: "FieldManagerConflict".into(),
                    message: conflict.message(),
                    field: conflict.field.clone(),
                })
                .collect();
            Failure::apply_conflict(apply::conflict_message(&conflicts), causes)
        }
        other => {
            let (code, reason) = other.status();
            Failure::other(code, reason, other.to_string())
        }
    }
}

fn options_invalid(causes: Vec<Cause>) -> Failure {
    Failure::invalid(&Subject::options("PatchOptions"), "", causes)
}

pub(crate) fn unreadable(patched: &Value, why: &str) -> Failure {
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {:?}: {why}", patched.to_string()),
        field: "patch".into(),
    };
    let nothing = Subject {
        group: String::new(),
        plural: String::new(),
        kind: String::new(),
    };
    Failure::invalid(&nothing, "", vec![cause])
}

/// Restores the apiVersion and kind of the object, because a strategic merge patch must not change them.
fn of_its_kind(mut merged: Value, old: &Value) -> Value {
    for field in ["apiVersion", "kind"] {
        if merged[field].is_string() {
            object::map_of(&mut merged).insert(field.into(), old[field].clone());
        }
    }
    merged
}
