//! Evaluates the admission policies in the store for write requests.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::{self, Admission, Denial, Operation as Verb};
use crate::catalog::{Catalog, DEFINITIONS, POLICIES, Resource};
use crate::object::meta;
use crate::route::Options;
use crate::status::{Failure, Subject};
use crate::{Shared, User, encode};

impl Shared {
    /// Evaluates the admission policies for one write request. Returns their warnings; fails if a policy denies the
    /// write.
    #[allow(clippy::too_many_arguments)]
    pub(crate) async fn admit(
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
}

/// Fails if a client writes a policy whose expressions cannot be parsed. Returns a warning for each rule of a policy
/// or a definition that is not enforced.
pub(super) async fn readable(
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
