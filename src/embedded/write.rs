//! create, replace, patch and apply: read, compute, compare-and-swap, and again if somebody was faster.

use std::sync::Arc;

use serde_json::{Value, json};

use super::admission::{self, Admission, Denial, Operation as Verb};
use super::apply::{self, ApplyError, Manager, Operation};
use super::catalog::{Catalog, DEFINITIONS, POLICIES, Resource};
use super::duplicates::duplicates;
use super::object::{self, Draft, Part, meta};
use super::route::{FieldValidation, Options};
use super::service::{Answer, Call, Form};
use super::sqlite::{Expect, Follow, FollowUp, Put, Remove, Revision, StoreError, Write};
use super::status::{Cause, Failure, Subject};
use super::{Shared, User, encode, patch, table};

const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";
/// How often an unconditional change is computed again before it gives up.
const ATTEMPTS: usize = 50;

/// What an update comes to.
enum Outcome {
    Stored(Value),
    Unchanged(Value),
    Removed(Value),
}

impl Shared {
    /// POST of a new object.
    pub(super) async fn create(&self, resource: &Resource, call: &Call) -> Result<Answer, Failure> {
        let (mut object, repeated) = decode(resource, call)?;
        object::identify(resource, &call.target, &mut object)?;
        if !meta(&object, "resourceVersion").is_empty() && meta(&object, "resourceVersion") != "0" {
            return Err(Failure::other(
                500,
                "",
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let given = meta(&object, "name").to_owned();
        let prefix = meta(&object, "generateName").to_owned();
        if given.is_empty() && prefix.is_empty() {
            let cause = Cause {
                reason: "FieldValueRequired".into(),
                message: "Required value: name or generateName is required".into(),
                field: "metadata.name".into(),
            };
            return Err(Failure::invalid(&resource.subject, "", vec![cause]));
        }
        for attempt in 0.. {
            let mut object = object.clone();
            if given.is_empty() {
                object::meta_mut(&mut object).insert("name".into(), generated(&prefix).into());
            }
            let stored = self.create_object(resource, object, call, false).await;
            match stored {
                // A generated name that is taken is tried again with another one.
                Err(failure)
                    if given.is_empty() && failure.reason == "AlreadyExists" && attempt < 7 => {}
                stored => {
                    let (object, warnings) = stored?;
                    let warnings = [repeated, warnings].concat();
                    return self.answer_object(resource, call, 201, object, warnings);
                }
            }
        }
        Err(Failure::internal("no free name was found"))
    }

    async fn create_object(
        &self,
        resource: &Resource,
        object: Value,
        call: &Call,
        applied: bool,
    ) -> Result<(Value, Vec<String>), Failure> {
        let uid = uuid::Uuid::new_v4().to_string();
        let Draft {
            mut object,
            mut warnings,
        } = object::create(resource, object, &call.writer, &uid, applied)?;
        self.establish(resource, &mut object, &call.writer.now)
            .await?;
        warnings.extend(readable(resource, &object, None).await?);
        warnings.extend(
            self.admit(
                resource,
                &call.user,
                &call.options,
                Verb::Create,
                None,
                Some(&object),
                None,
            )
            .await?,
        );
        let namespace = meta(&object, "namespace").to_owned();
        if call.options.dry_run {
            self.check_free(resource, &namespace, &object).await?;
        } else {
            let revision = self.store_new(resource, &object).await?;
            encode::stamp(&mut object, revision);
        }
        Ok((object, warnings))
    }

    /// What the store would say, without storing.
    async fn check_free(
        &self,
        resource: &Resource,
        namespace: &str,
        object: &Value,
    ) -> Result<(), Failure> {
        let name = meta(object, "name");
        if self
            .store
            .get(&resource.key(namespace, name))
            .await?
            .is_some()
        {
            return Err(Failure::already_exists(&resource.subject, name));
        }
        if !namespace.is_empty() {
            let catalog = self.catalog().await?;
            let subject = catalog.find("", "v1", "namespaces").cloned();
            if let Some(namespaces) = subject
                && self
                    .store
                    .get(&namespaces.key("", namespace))
                    .await?
                    .is_none()
            {
                return Err(Failure::not_found(&namespaces.subject, namespace));
            }
        }
        Ok(())
    }

    async fn store_new(&self, resource: &Resource, object: &Value) -> Result<Revision, Failure> {
        let (namespace, name) = (meta(object, "namespace"), meta(object, "name"));
        let (bytes, rest) = encode::split(resource, object);
        let put = Put {
            key: resource.key(namespace, name),
            expect: Expect::Absent,
            uid: meta(object, "uid").to_owned(),
            deleting: false,
            meta: bytes,
            rest,
            owners_gained: owners(object),
            owners_lost: Vec::new(),
            follow_ups: Vec::new(),
        };
        match self.store.write(Write::Put(put)).await {
            Ok(revision) => Ok(revision),
            Err(StoreError::Conflict(there)) => {
                let mut failure = Failure::already_exists(&resource.subject, name);
                let meta: Value = there
                    .and_then(|row| serde_json::from_slice(&row.meta).ok())
                    .unwrap_or_default();
                if meta["deletionTimestamp"].is_string() {
                    failure.message = format!("object is being deleted: {}", failure.message);
                }
                Err(failure)
            }
            Err(StoreError::Namespace { terminating: true }) => {
                Err(Failure::terminating(&resource.subject, name, namespace))
            }
            Err(StoreError::Namespace { .. }) => Err(Failure::not_found(
                &Subject {
                    group: String::new(),
                    plural: "namespaces".into(),
                    kind: "Namespace".into(),
                },
                namespace,
            )),
            Err(other) => Err(other.into()),
        }
    }

    /// PUT of a whole object.
    pub(super) async fn replace(
        &self,
        resource: &Resource,
        call: &Call,
    ) -> Result<Answer, Failure> {
        let (mut sent, repeated) = decode(resource, call)?;
        object::identify(resource, &call.target, &mut sent)?;
        let part = part(call)?;
        let name = call.target.name.clone().unwrap_or_default();
        let version = meta(&sent, "resourceVersion").to_owned();
        let unconditional = version.is_empty() || version == "0";
        let key = resource.key(call.target.namespace.as_deref().unwrap_or_default(), &name);
        if self.store.get(&key).await?.is_none() && creates_on_update(resource) {
            let (object, warnings) = self.create_object(resource, sent, call, false).await?;
            let warnings = [repeated, warnings].concat();
            return self.answer_object(resource, call, 201, object, warnings);
        }
        if unconditional && !updates_unconditionally(resource) {
            self.existing(resource, call).await?;
            let cause = Cause {
                reason: "FieldValueInvalid".into(),
                message: "Invalid value: 0: must be specified for an update".into(),
                field: "metadata.resourceVersion".into(),
            };
            // A real server names the resource here, not the kind.
            let subject = Subject {
                kind: resource.subject.plural.clone(),
                ..resource.subject.clone()
            };
            return Err(Failure::invalid(&subject, &name, vec![cause]));
        }
        if !unconditional {
            super::list::parse_version(&version)?;
        }
        let uid = meta(&sent, "uid").to_owned();
        let change = |old: &Value| {
            if !uid.is_empty() && uid != meta(old, "uid") {
                return Err(other_uid(resource, old, &uid));
            }
            if !unconditional && meta(old, "resourceVersion") != version {
                return Err(Failure::stale(&resource.subject, &name));
            }
            let mut draft = object::update(resource, old, sent.clone(), part, &call.writer, false)?;
            draft.warnings.splice(0..0, repeated.iter().cloned());
            Ok(draft)
        };
        self.change(resource, call, unconditional, change).await
    }

    /// PATCH in any of its forms.
    pub(super) async fn patch(&self, resource: &Resource, call: &Call) -> Result<Answer, Failure> {
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
                _ => patch::strategic_merge(&resource.schema, old, &sent),
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
            if resource.custom.is_some() && new["kind"] != resource.subject.kind.as_str() {
                return Err(other_kind(resource, &name, &new["kind"]));
            }
            object::identify(resource, &call.target, &mut new)?;
            object::update(resource, old, new, part, &call.writer, false).map_err(|failure| {
                match failure
                    .message
                    .strip_prefix(&object::cannot_be_handled(resource))
                {
                    // What a patch makes is refused as the patch's fault.
                    Some(why) => unreadable(&patched(old).unwrap_or_default(), why),
                    None => failure,
                }
            })
        };
        self.change(resource, call, true, change).await
    }

    /// Server-side apply.
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
                    // Somebody else created it first: then it is a change.
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

    /// The object of a request, or 404.
    pub(super) async fn existing(
        &self,
        resource: &Resource,
        call: &Call,
    ) -> Result<Value, Failure> {
        let name = call.target.name.as_deref().unwrap_or_default();
        let namespace = call.target.namespace.as_deref().unwrap_or_default();
        match self.store.get(&resource.key(namespace, name)).await? {
            Some(row) => encode::value(resource, &row),
            None => Err(Failure::not_found(&resource.subject, name)),
        }
    }

    async fn change(
        &self,
        resource: &Resource,
        call: &Call,
        retry: bool,
        change: impl Fn(&Value) -> Result<Draft, Failure>,
    ) -> Result<Answer, Failure> {
        let (object, warnings) = self.changed(resource, call, retry, change).await?;
        self.answer_object(resource, call, 200, object, warnings)
    }

    /// Computes a change on the newest state and stores it, again if somebody else was faster.
    pub(super) async fn changed(
        &self,
        resource: &Resource,
        call: &Call,
        retry: bool,
        change: impl Fn(&Value) -> Result<Draft, Failure>,
    ) -> Result<(Value, Vec<String>), Failure> {
        let name = call.target.name.as_deref().unwrap_or_default();
        for _ in 0..ATTEMPTS {
            let old = self.existing(resource, call).await?;
            let Draft {
                mut object,
                mut warnings,
            } = change(&old)?;
            self.reestablish(resource, &old, &mut object, &call.writer.now)
                .await?;
            warnings.extend(readable(resource, &object, Some(&old)).await?);
            let part = call.target.subresource.as_deref();
            warnings.extend(
                self.admit(
                    resource,
                    &call.user,
                    &call.options,
                    Verb::Update,
                    part,
                    Some(&object),
                    Some(&old),
                )
                .await?,
            );
            match self
                .store_change(resource, &old, object, call.options.dry_run)
                .await
            {
                Ok(
                    Outcome::Stored(object) | Outcome::Unchanged(object) | Outcome::Removed(object),
                ) => {
                    return Ok((object, warnings));
                }
                Err(Stored::Conflict) if retry => {}
                Err(Stored::Conflict) => break,
                Err(Stored::Failed(failure)) => return Err(failure),
            }
        }
        Err(Failure::stale(&resource.subject, name))
    }

    async fn store_change(
        &self,
        resource: &Resource,
        old: &Value,
        mut object: Value,
        dry_run: bool,
    ) -> Result<Outcome, Stored> {
        let revision: Revision = meta(old, "resourceVersion").parse().unwrap_or_default();
        encode::stamp(&mut object, revision);
        let gone =
            !meta(&object, "deletionTimestamp").is_empty() && nothing_holds(resource, &object);
        if dry_run {
            return Ok(Outcome::Unchanged(object));
        }
        if gone {
            self.remove(resource, &object, revision).await?;
            return Ok(Outcome::Removed(object));
        }
        if object == *old {
            return Ok(Outcome::Unchanged(object));
        }
        let revision = self.put(resource, old, &object, Vec::new()).await?;
        encode::stamp(&mut object, revision);
        Ok(Outcome::Stored(object))
    }

    /// Stores a changed object on top of the state that it was computed from.
    pub(super) async fn put(
        &self,
        resource: &Resource,
        old: &Value,
        object: &Value,
        follow_ups: Vec<FollowUp>,
    ) -> Result<Revision, Stored> {
        let revision: Revision = meta(old, "resourceVersion").parse().unwrap_or_default();
        let (bytes, rest) = encode::split(resource, object);
        let (before, after) = (owners(old), owners(object));
        let work = !follow_ups.is_empty();
        let put = Put {
            key: resource.key(meta(object, "namespace"), meta(object, "name")),
            expect: Expect::Revision(revision),
            uid: meta(object, "uid").to_owned(),
            deleting: !meta(object, "deletionTimestamp").is_empty(),
            meta: bytes,
            rest,
            owners_gained: after
                .iter()
                .filter(|uid| !before.contains(uid))
                .cloned()
                .collect(),
            owners_lost: before
                .into_iter()
                .filter(|uid| !after.contains(uid))
                .collect(),
            follow_ups,
        };
        let written = self.store.write(Write::Put(put)).await;
        if work {
            self.work.notify_one();
        }
        written.map_err(Stored::from)
    }

    /// Removes an object for good, leaving its dependents to the collector.
    pub(super) async fn remove(
        &self,
        resource: &Resource,
        object: &Value,
        revision: Revision,
    ) -> Result<Revision, Stored> {
        let (bytes, rest) = encode::split(resource, object);
        let remove = Remove {
            key: resource.key(meta(object, "namespace"), meta(object, "name")),
            expect: revision,
            uid: meta(object, "uid").to_owned(),
            meta: bytes,
            rest,
            owners: owners(object),
        };
        let written = self.store.write(Write::Remove(remove)).await;
        self.work.notify_one();
        written.map_err(Stored::from)
    }

    /// Asks the policies in the store.
    #[allow(clippy::too_many_arguments)]
    pub(super) async fn admit(
        &self,
        resource: &Resource,
        user: &User,
        options: &Options,
        verb: Verb,
        subresource: Option<&str>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Vec<String>, Failure> {
        let catalog: Arc<Catalog> = self.catalog().await?;
        if catalog.policies().is_empty() {
            return Ok(Vec::new());
        }
        let known = object.or(old).unwrap_or(&Value::Null);
        let namespace = meta(known, "namespace").to_owned();
        let namespace_object = match (namespace.as_str(), catalog.find("", "v1", "namespaces")) {
            ("", _) | (_, None) => None,
            (name, Some(namespaces)) => match self.store.get(&namespaces.key("", name)).await? {
                Some(row) => Some(encode::value(namespaces, &row)?),
                None => None,
            },
        };
        let request = Admission {
            operation: verb,
            group: &resource.subject.group,
            version: &resource.version,
            resource: &resource.subject.plural,
            subresource: subresource.unwrap_or_default(),
            kind: &resource.subject.kind,
            namespace: (!namespace.is_empty()).then_some(namespace.as_str()),
            name: meta(known, "name"),
            object,
            old_object: old,
            namespace_object: namespace_object.as_ref(),
            username: &user.name,
            groups: &user.groups,
            dry_run: options.dry_run,
            allowed: &|_| true,
        };
        let verdict = catalog.policies().check(&request);
        match verdict.denial {
            None => Ok(verdict.warnings),
            Some(denial) => Err(denied(&request, &resource.subject, &denial)),
        }
    }

    /// Gives one object back in the form that the client asked for.
    pub(super) fn answer_object(
        &self,
        resource: &Resource,
        call: &Call,
        code: u16,
        object: Value,
        warnings: Vec<String>,
    ) -> Result<Answer, Failure> {
        let answer = match call.form {
            Form::Table => Answer::json(
                code,
                table::of(
                    resource,
                    std::slice::from_ref(&object),
                    &call.options.include_object,
                    &call.writer.now,
                ),
            ),
            Form::Partial => Answer::json(
                code,
                json!({
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": object["metadata"],
                }),
            ),
            Form::Object | Form::Yaml => Answer::json(code, object),
        };
        Ok(answer.warning(warnings))
    }
}

/// Why a change was not stored.
pub(super) enum Stored {
    /// Somebody else was faster.
    Conflict,
    /// Another reason, for the client.
    Failed(Failure),
}

impl From<StoreError> for Stored {
    fn from(error: StoreError) -> Stored {
        match error {
            StoreError::Conflict(_) => Stored::Conflict,
            other => Stored::Failed(other.into()),
        }
    }
}

/// The uids that an object names as its owners.
pub(super) fn owners(object: &Value) -> Vec<String> {
    let mut found: Vec<String> = object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str().map(str::to_owned))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// No finalizer keeps the object.
pub(super) fn nothing_holds(resource: &Resource, object: &Value) -> bool {
    let none = |list: &Value| list.as_array().is_none_or(Vec::is_empty);
    let namespace = resource.subject.group.is_empty() && resource.subject.plural == "namespaces";
    none(&object["metadata"]["finalizers"]) && (!namespace || none(&object["spec"]["finalizers"]))
}

fn part(call: &Call) -> Result<Part, Failure> {
    match call.target.subresource.as_deref() {
        None => Ok(Part::Main),
        Some("status") => Ok(Part::Status),
        Some("finalize") => Ok(Part::Finalize),
        Some(_) => Err(Failure::method_not_allowed()),
    }
}

fn unreadable(patched: &Value, why: &str) -> Failure {
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

/// Refuses a policy whose expressions cannot be read, and says which rules will not be enforced.
async fn readable(
    resource: &Resource,
    object: &Value,
    old: Option<&Value>,
) -> Result<Vec<String>, Failure> {
    let storage = resource.storage.clone();
    let unchanged = old.is_some_and(|old| old["spec"] == object["spec"]);
    if unchanged || !matches!(&*storage, DEFINITIONS | POLICIES) {
        return Ok(Vec::new());
    }
    let written = object.clone();
    let read = move || {
        let refused = match &*storage {
            POLICIES => admission::unreadable(&written),
            _ => Vec::new(),
        };
        (refused, admission::unenforced(&storage, &written))
    };
    let (causes, warnings) = tokio::task::spawn_blocking(read)
        .await
        .map_err(Failure::internal)?;
    match causes.is_empty() {
        true => Ok(warnings),
        false => Err(Failure::invalid(
            &resource.subject,
            meta(object, "name"),
            causes,
        )),
    }
}

fn other_kind(resource: &Resource, name: &str, kind: &Value) -> Failure {
    let sent = Subject {
        kind: kind.as_str().unwrap_or_default().to_owned(),
        ..resource.subject.clone()
    };
    let cause = Cause {
        reason: "FieldValueInvalid".into(),
        message: format!("Invalid value: {kind}: must be {}", resource.subject.kind),
        field: "kind".into(),
    };
    Failure::invalid(&sent, name, vec![cause])
}

/// The words of a real server's storage for an object that was replaced by a namesake.
fn other_uid(resource: &Resource, old: &Value, uid: &str) -> Failure {
    let (namespace, name) = (meta(old, "namespace"), meta(old, "name"));
    let place: Vec<&str> = [resource.storage.trim_start_matches('/'), namespace, name]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect();
    Failure::conflict(
        &resource.subject,
        name,
        &format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            place.join("/"),
            meta(old, "uid")
        ),
    )
}

/// Kinds that may be replaced without naming the state that is replaced.
fn updates_unconditionally(resource: &Resource) -> bool {
    resource.custom.is_none()
        && !matches!(
            resource.subject.group.as_str(),
            "coordination.k8s.io"
                | "apiextensions.k8s.io"
                | "admissionregistration.k8s.io"
                | "policy"
                | "discovery.k8s.io"
        )
}

fn creates_on_update(resource: &Resource) -> bool {
    matches!(
        (
            resource.subject.group.as_str(),
            resource.subject.plural.as_str()
        ),
        ("coordination.k8s.io", "leases")
            | ("rbac.authorization.k8s.io", _)
            | (
                "",
                "services" | "endpoints" | "events" | "limitranges" | "resourcequotas"
            )
            | ("events.k8s.io", "events")
    )
}

fn generated(prefix: &str) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let random = uuid::Uuid::new_v4();
    let suffix: String = random
        .as_bytes()
        .iter()
        .take(5)
        .filter_map(|byte| LETTERS.get(*byte as usize % LETTERS.len()))
        .map(|byte| char::from(*byte))
        .collect();
    let kept: String = prefix.chars().take(58).collect();
    format!("{kept}{suffix}")
}

/// Reads the body of a create or replace, with warnings about fields that stand there twice.
fn decode(resource: &Resource, call: &Call) -> Result<(Value, Vec<String>), Failure> {
    let unrecognized = |cause: &dyn std::fmt::Display| {
        Failure::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: {cause}",
            resource.subject.kind
        ))
    };
    let value: Value = match call.content_type.as_str() {
        "" | "application/json" => {
            serde_json::from_slice(&call.body).map_err(|cause| unrecognized(&cause))?
        }
        "application/yaml" => decode_yaml(&call.body)?,
        _ => {
            return Err(Failure::unsupported_media_type(&[
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ]));
        }
    };
    if !value.is_object() {
        return Err(unrecognized(&"the body is not an object"));
    }
    let strictness = call.writer.field_validation;
    if strictness == FieldValidation::Ignore || call.content_type == "application/yaml" {
        return Ok((value, Vec::new()));
    }
    let repeated: Vec<String> = duplicates(&call.body)
        .iter()
        .map(|path| format!("duplicate field {path:?}"))
        .collect();
    if strictness == FieldValidation::Strict && !repeated.is_empty() {
        return Err(Failure::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: strict decoding error: {}",
            resource.version,
            repeated.join(", "),
            kind = resource.subject.kind,
        )));
    }
    Ok((value, repeated))
}

fn decode_yaml(body: &[u8]) -> Result<Value, Failure> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Failure::bad_request("error decoding YAML: the body is not UTF-8"))?;
    // JSON is what clients send most; the YAML door is for the rest.
    if let Ok(value) = serde_json::from_str(text) {
        return as_object(value);
    }
    let documents = crate::yaml::documents("the request", text)
        .map_err(|cause| Failure::bad_request(format!("error decoding YAML: {cause}")))?;
    match <[_; 1]>::try_from(documents) {
        Ok([document]) => as_object(document.value),
        Err(documents) => Err(Failure::bad_request(format!(
            "error decoding YAML: one document is needed, and {} were sent",
            documents.len()
        ))),
    }
}

fn as_object(value: Value) -> Result<Value, Failure> {
    match value.is_object() {
        true => Ok(value),
        false => Err(Failure::bad_request(
            "error decoding YAML: the document is not an object",
        )),
    }
}

/// A patch that could not be applied.
pub(super) fn patch_failure(error: &patch::PatchError) -> Failure {
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

fn denied(request: &Admission<'_>, subject: &Subject, denial: &Denial) -> Failure {
    let reason = match denial.reason.as_str() {
        "Invalid" => "Invalid",
        "Unauthorized" => "Unauthorized",
        "RequestEntityTooLarge" => "RequestEntityTooLarge",
        _ => "Forbidden",
    };
    let mut failure = Failure::other(denial.code, reason, denial.status_message(request));
    let mut details = json!({
        "name": request.name,
        "kind": subject.plural,
        "causes": [{"message": denial.message}],
    });
    if !subject.group.is_empty() {
        details["group"] = subject.group.as_str().into();
    }
    failure.details = Some(details);
    failure
}

/// Work of a kind on a subject.
pub(super) fn work(what: Follow, subject: &str) -> FollowUp {
    FollowUp {
        what,
        subject: subject.to_owned(),
        since: 0,
    }
}
