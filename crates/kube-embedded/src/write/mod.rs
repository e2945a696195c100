//! Answers write requests: reads the object, computes its new state, and stores it by compare-and-swap, again after a
//! conflict.

mod admit;
mod body;
mod patch;

use serde_json::{Value, json};

use super::admission::Operation as Verb;
use super::catalog::Resource;
use super::object::{self, Part, PreparedObject, meta};
use super::origin::NotStored;
use super::service::{Answer, Call, Form};
use super::sqlite::{Expect, Follow, FollowUp, Put, Remove, Revision, StoreError, Write};
use super::status::{Cause, Failure, Subject};
use super::{Shared, encode, table};
use admit::readable;
use body::decode;
pub(super) use patch::{patch_failure, unreadable};

/// The largest number of attempts to store a change for which the client sends no precondition.
const ATTEMPTS: usize = 50;

enum Outcome {
    Stored(Value),
    Unchanged(Value),
    Removed(Value),
}

impl Shared {
    /// Answers a POST request, which creates an object.
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
                // The API generated this name, and an object already has it. So the loop generates another name.
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
        let PreparedObject {
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

    /// For a dry run, makes the checks that the store makes for a creation, without storing the object.
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
        if let Some(origin) = self.origin_of(resource) {
            return origin.create(self, resource, object).await;
        }
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

    /// Answers a PUT request, which replaces an object.
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
            // In this message, kube-apiserver shows the plural name of the resource in place of the kind.
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

    /// Returns the object in the request path. Fails with 404 if the object does not exist.
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
        change: impl Fn(&Value) -> Result<PreparedObject, Failure>,
    ) -> Result<Answer, Failure> {
        let (object, warnings) = self.changed(resource, call, retry, change).await?;
        self.answer_object(resource, call, 200, object, warnings)
    }

    /// Computes a change from the newest state of an object, and stores it. After a conflict, does this again if
    /// `retry` is true.
    pub(super) async fn changed(
        &self,
        resource: &Resource,
        call: &Call,
        retry: bool,
        change: impl Fn(&Value) -> Result<PreparedObject, Failure>,
    ) -> Result<(Value, Vec<String>), Failure> {
        let name = call.target.name.as_deref().unwrap_or_default();
        for _ in 0..ATTEMPTS {
            let old = self.existing(resource, call).await?;
            let PreparedObject {
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
                Err(NotStored::Conflict) if retry => {}
                Err(NotStored::Conflict) => break,
                Err(NotStored::Failed(failure)) => return Err(failure),
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
    ) -> Result<Outcome, NotStored> {
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

    /// Stores the new state of an object. Fails with a conflict if the stored state is no longer `old`.
    pub(super) async fn put(
        &self,
        resource: &Resource,
        old: &Value,
        object: &Value,
        follow_ups: Vec<FollowUp>,
    ) -> Result<Revision, NotStored> {
        if let Some(origin) = self.origin_of(resource) {
            return origin.replace(self, resource, old, object).await;
        }
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
                .filter(|uid| before.binary_search(uid).is_err())
                .cloned()
                .collect(),
            owners_lost: before
                .into_iter()
                .filter(|uid| after.binary_search(uid).is_err())
                .collect(),
            follow_ups,
        };
        let written = self.store.write(Write::Put(put)).await;
        if work {
            self.work.notify_one();
        }
        written.map_err(NotStored::from)
    }

    /// Removes an object from the store. The collector deletes its dependents later.
    pub(super) async fn remove(
        &self,
        resource: &Resource,
        object: &Value,
        revision: Revision,
    ) -> Result<Revision, NotStored> {
        if let Some(origin) = self.origin_of(resource) {
            return origin.remove(self, resource, object, revision).await;
        }
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
        written.map_err(NotStored::from)
    }

    /// Creates the answer that contains one object, in the format that the client accepts.
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

/// Returns the uids in the ownerReferences of an object, sorted and without duplicates.
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

/// Returns whether an object can be removed, because it has no finalizers.
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

/// Creates the failure for a write to an object that was deleted and created again with the same name, so that its
/// uid differs. The message is that of kube-apiserver's storage.
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

/// Returns whether a client may replace objects of a resource without a resourceVersion as precondition.
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

/// Creates follow-up work. `subject` is the object that the work is about: its uid, its key or its name.
pub(super) fn work(what: Follow, subject: &str) -> FollowUp {
    FollowUp {
        what,
        subject: subject.to_owned(),
        since: 0,
    }
}
