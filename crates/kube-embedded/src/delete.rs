//! Answers DELETE requests for one object or many: preconditions, finalizers and dependents.

use serde_json::{Value, json};

use super::admission::Operation as Verb;
use super::catalog::{DEFINITIONS, NAMESPACES, Resource};
use super::object::{self, meta};
use super::origin::NotStored;
use super::route::Options;
use super::select::{self, Fields};
use super::service::{Answer, Call};
use super::sqlite::{Follow, PageRequest, Revision, Scope};
use super::status::Failure;
use super::write::{nothing_holds, work};
use super::{Shared, User, encode};

/// The finalizer of an owner whose dependents must be deleted before it (foreground deletion).
pub const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner whose dependents must be kept. They lose their owner reference before the owner is
/// deleted.
pub const ORPHAN: &str = "orphan";
/// The namespaces that every cluster has, so they cannot be deleted.
const SYSTEM: [&str; 3] = ["default", "kube-system", "kube-public"];
const ATTEMPTS: usize = 50;

/// The options of a DELETE request.
#[derive(Clone, Debug, Default)]
pub(super) struct Deletion {
    uid: Option<String>,
    revision: Option<String>,
    propagation: Option<Propagation>,
    dry_run: bool,
    grace: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The result of deleting an object: the object, if it still waits for its finalizers, or the last state of the
/// object, if it is removed.
pub(super) enum Left {
    Waiting(Value),
    Gone(Value),
}

impl Shared {
    /// Answers a DELETE request for one object.
    pub(super) async fn delete(&self, resource: &Resource, call: &Call) -> Result<Answer, Failure> {
        let deletion = deletion(&call.options, &call.body)?;
        let namespace = call.target.namespace.as_deref().unwrap_or_default();
        let name = call.target.name.as_deref().unwrap_or_default();
        let (left, warnings) = self
            .delete_object(
                resource,
                namespace,
                name,
                &deletion,
                &call.user,
                &call.options,
                &call.writer.now,
            )
            .await?;
        let answer = match left {
            Left::Waiting(object) => self.answer_object(resource, call, 200, object, Vec::new())?,
            Left::Gone(object) if returns_object(resource) => {
                self.answer_object(resource, call, 200, object, Vec::new())?
            }
            Left::Gone(object) => {
                let mut details = json!({"name": name, "kind": resource.subject.plural, "uid": meta(&object, "uid")});
                if !resource.subject.group.is_empty() {
                    details["group"] = resource.subject.group.as_str().into();
                }
                Answer::json(
                    200,
                    json!({
                        "kind": "Status", "apiVersion": "v1", "metadata": {},
                        "status": "Success", "details": details,
                    }),
                )
            }
        };
        Ok(answer.warning(warnings))
    }

    /// Answers a DELETE request for all objects that match the selectors of the request.
    pub(super) async fn delete_collection(
        &self,
        resource: &Resource,
        call: &Call,
    ) -> Result<Answer, Failure> {
        let deletion = deletion(&call.options, &call.body)?;
        let labels = select::labels(&call.options.label_selector)?;
        let fields = Fields::parse(&call.options.field_selector)?;
        super::list::check_fields(resource, &fields)?;
        let mut request = PageRequest {
            scope: Scope {
                resource: resource.storage.clone(),
                namespace: call.target.namespace.clone(),
            },
            after: None,
            at: None,
            rows: 256,
            bytes: 4 << 20,
            bodies: true,
        };
        let mut items = Vec::new();
        let revision = loop {
            let page = self.store.page(request.clone()).await?;
            for row in &page.rows {
                let object = encode::value(resource, row)?;
                if !labels.matches(&object["metadata"]["labels"]) || !fields.matches(&object) {
                    continue;
                }
                let deleted = self
                    .delete_object(
                        resource,
                        &row.key.namespace,
                        &row.key.name,
                        &deletion,
                        &call.user,
                        &call.options,
                        &call.writer.now,
                    )
                    .await;
                match deleted {
                    Ok((Left::Waiting(object) | Left::Gone(object), _)) => items.push(object),
                    Err(failure) if failure.reason == "NotFound" => {}
                    Err(failure) => return Err(failure),
                }
            }
            match page.rows.last() {
                Some(last) if page.more => {
                    request.after = Some((last.key.namespace.clone(), last.key.name.clone()));
                }
                _ => break page.revision,
            }
        };
        Ok(Answer::json(
            200,
            json!({
                "kind": resource.list_kind(),
                "apiVersion": resource.api_version(),
                "metadata": {"resourceVersion": revision.to_string()},
                "items": items,
            }),
        ))
    }

    /// Deletes one object. If the object has finalizers, it stays and gets a deletionTimestamp.
    #[allow(clippy::too_many_arguments)]
    pub(super) async fn delete_object(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
        deletion: &Deletion,
        user: &User,
        options: &Options,
        now: &str,
    ) -> Result<(Left, Vec<String>), Failure> {
        for _ in 0..ATTEMPTS {
            let Some(row) = self.store.get(&resource.key(namespace, name)).await? else {
                return Err(Failure::not_found(&resource.subject, name));
            };
            let old = encode::value(resource, &row)?;
            deletion.check(resource, &old)?;
            if &*resource.storage == NAMESPACES && SYSTEM.contains(&name) {
                return Err(Failure::forbidden(
                    &resource.subject,
                    name,
                    "this namespace may not be deleted",
                ));
            }
            let warnings = self
                .admit(
                    resource,
                    user,
                    options,
                    Verb::Delete,
                    None,
                    None,
                    Some(&old),
                )
                .await?;
            let object = doomed(resource, &old, deletion, now);
            if deletion.dry_run {
                let left = match nothing_holds(resource, &object) {
                    true => Left::Gone(old),
                    false => Left::Waiting(object),
                };
                return Ok((left, warnings));
            }
            let stored = if nothing_holds(resource, &object) {
                self.remove(resource, &old, row.revision)
                    .await
                    .map(|revision| {
                        let mut gone = old;
                        encode::stamp(&mut gone, revision);
                        Left::Gone(gone)
                    })
            } else if object == old {
                Ok(Left::Waiting(old))
            } else {
                let follow_ups = pending(resource, &object);
                self.put(resource, &old, &object, follow_ups)
                    .await
                    .map(|revision: Revision| {
                        let mut waiting = object;
                        encode::stamp(&mut waiting, revision);
                        Left::Waiting(waiting)
                    })
            };
            match stored {
                Ok(left) => return Ok((left, warnings)),
                // After a conflict, the loop reads the object again and checks the preconditions on its new state.
                Err(NotStored::Conflict) => {}
                Err(NotStored::Failed(failure)) => return Err(failure),
            }
        }
        Err(Failure::stale(&resource.subject, name))
    }
}

impl Deletion {
    /// Returns the options with which the collector deletes an object. They contain the uid, so that a later object
    /// of the same name is not deleted.
    pub(super) fn of(uid: &str) -> Deletion {
        Deletion {
            uid: Some(uid.to_owned()),
            ..Deletion::default()
        }
    }

    fn check(&self, resource: &Resource, object: &Value) -> Result<(), Failure> {
        let refuse = |what: &str, wanted: &str, found: &str, perhaps: &str| {
            let name = meta(object, "name");
            let mut failure = Failure::conflict(&resource.subject, name, "");
            failure.message = format!(
                "Operation cannot be fulfilled on {} \"{name}\": the {what} in the precondition ({wanted}) does not match the {what} in record ({found}). The object might have been {perhaps}",
                resource.subject.qualified_kind()
            );
            if let Some(details) = &mut failure.details {
                details["kind"] = resource.subject.kind.as_str().into();
            }
            failure
        };
        if let Some(uid) = &self.uid
            && uid != meta(object, "uid")
        {
            return Err(refuse(
                "UID",
                uid,
                meta(object, "uid"),
                "deleted and then recreated",
            ));
        }
        if let Some(revision) = &self.revision
            && revision != meta(object, "resourceVersion")
        {
            return Err(refuse(
                "ResourceVersion",
                revision,
                meta(object, "resourceVersion"),
                "modified",
            ));
        }
        Ok(())
    }
}

/// Parses the options of a deletion from the query and the body of the request. An option in the body has priority.
fn deletion(options: &Options, body: &[u8]) -> Result<Deletion, Failure> {
    let body: Value = match body.is_empty() {
        true => json!({}),
        false => serde_json::from_slice(body).map_err(|cause| {
            Failure::bad_request(format!("error decoding DeleteOptions: {cause}"))
        })?,
    };
    if !body.is_object() && !body.is_null() {
        return Err(Failure::bad_request(
            "error decoding DeleteOptions: the body is not an object",
        ));
    }
    // The apiVersion is removed before the check, because DeleteOptions have the same fields in every API group.
    let mut ours = body.clone();
    if ours["apiVersion"].is_string() {
        object::map_of(&mut ours).remove("apiVersion");
    }
    // An option that cannot be parsed is an error. If it were ignored, the API could delete more than the client
    // wants.
    object::readable_as("", "v1", "DeleteOptions", &ours)
        .map_err(|why| why.refuse("DeleteOptions", "v1"))?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let policy = text(&body["propagationPolicy"]).or(options.propagation_policy.clone());
    let orphan = body["orphanDependents"]
        .as_bool()
        .or(options.orphan_dependents);
    if let (Some(policy), Some(_)) = (&policy, orphan) {
        return Err(Failure::other(
            422,
            "Invalid",
            format!(
                "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Invalid value: {policy:?}: orphanDependents and deletionPropagation cannot be both set"
            ),
        ));
    }
    let propagation = match (policy.as_deref(), orphan) {
        (Some("Background"), _) => Some(Propagation::Background),
        (Some("Foreground"), _) => Some(Propagation::Foreground),
        (Some("Orphan"), _) | (None, Some(true)) => Some(Propagation::Orphan),
        (None, Some(false)) => Some(Propagation::Background),
        (None, None) => None,
        (Some(other), _) => {
            return Err(Failure::other(
                422,
                "Invalid",
                format!(
                    "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                ),
            ));
        }
    };
    let dry_run = body["dryRun"]
        .as_array()
        .is_some_and(|values| values.iter().any(|value| value == "All"));
    Ok(Deletion {
        uid: text(&body["preconditions"]["uid"]),
        revision: text(&body["preconditions"]["resourceVersion"]),
        propagation,
        dry_run: dry_run || options.dry_run,
        grace: body["gracePeriodSeconds"]
            .as_i64()
            .or(options.grace_period_seconds),
    })
}

/// Returns the object with a deletionTimestamp, and with the finalizer that the propagation policy requires.
fn doomed(resource: &Resource, old: &Value, deletion: &Deletion, now: &str) -> Value {
    let mut object = old.clone();
    let first = meta(old, "deletionTimestamp").is_empty();
    let mut finalizers: Vec<Value> = old["metadata"]["finalizers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if let Some(propagation) = deletion.propagation {
        finalizers.retain(|finalizer| finalizer != FOREGROUND && finalizer != ORPHAN);
        match propagation {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.into()),
            Propagation::Orphan => finalizers.push(ORPHAN.into()),
        }
    }
    let cleanup = super::definitions::CLEANUP;
    if &*resource.storage == DEFINITIONS && first && !finalizers.iter().any(|f| f == cleanup) {
        finalizers.push(cleanup.into());
    }
    let meta = object::meta_mut(&mut object);
    match finalizers.is_empty() {
        true => meta.remove("finalizers"),
        false => meta.insert("finalizers".into(), finalizers.into()),
    };
    if first {
        meta.insert("deletionTimestamp".into(), now.into());
        meta.insert(
            "deletionGracePeriodSeconds".into(),
            deletion.grace.unwrap_or(0).min(0).into(),
        );
        if let Some(generation) = meta
            .get("generation")
            .and_then(Value::as_i64)
            .filter(|n| *n > 0)
        {
            meta.insert("generation".into(), generation.saturating_add(1).into());
        }
    }
    if &*resource.storage == NAMESPACES {
        object::map_at(&mut object, "status").insert("phase".into(), "Terminating".into());
    }
    object
}

/// Returns the follow-up work that must be done before an object can be removed, from its finalizers.
fn pending(resource: &Resource, object: &Value) -> Vec<super::sqlite::FollowUp> {
    let mut found = Vec::new();
    let name = meta(object, "name");
    let place = super::collector::place(resource, meta(object, "namespace"), name);
    let holds = |finalizer: &str| {
        object["metadata"]["finalizers"]
            .as_array()
            .is_some_and(|list| list.iter().any(|item| item == finalizer))
    };
    if holds(FOREGROUND) {
        found.push(work(Follow::Foreground, &place));
    }
    if holds(ORPHAN) {
        found.push(work(Follow::Orphan, &place));
    }
    if &*resource.storage == NAMESPACES {
        found.push(work(Follow::Namespace, name));
    }
    if &*resource.storage == DEFINITIONS {
        found.push(work(Follow::Definition, name));
    }
    found
}

/// Returns whether the API answers the deletion of an object with the object, and not with a Status.
fn returns_object(resource: &Resource) -> bool {
    resource.subject.group.is_empty()
        && matches!(
            resource.subject.plural.as_str(),
            "pods"
                | "services"
                | "serviceaccounts"
                | "persistentvolumes"
                | "persistentvolumeclaims"
                | "podtemplates"
                | "resourcequotas"
        )
}
