//! Creates the missing namespaces before resources are applied to them. The labels of such a namespace name
//! the RenderedRelease. The controller never deletes a namespace.

use std::collections::BTreeSet;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};

use super::live::Owner;
use super::plane::{Plane, RequestError, lock};
use crate::api::choreo::rendered::RenderedReleaseSpec;
use crate::api::{labels, names};

/// The result of creating the namespaces that a RenderedRelease needs.
#[derive(Default)]
pub struct Namespaces {
    /// The names of the namespaces that this pass created. They contain no objects yet.
    pub made: BTreeSet<String>,
    /// The names of the namespaces that could not be created, with the errors.
    pub failed: Vec<(String, RequestError)>,
}

/// Creates the missing namespaces.
pub async fn ensure(
    plane: &Plane,
    wanted: BTreeSet<String>,
    owner: &Owner,
    spec: &RenderedReleaseSpec,
) -> Namespaces {
    let known = lock(&plane.namespaces).clone();
    let missing = wanted.into_iter().filter(|name| !known.contains(name));
    let answers = futures::stream::iter(missing).map(|name| async move {
        let answer = make(plane, &name, owner, spec).await;
        (name, answer)
    });
    let mut answers = answers.buffer_unordered(plane.settings.requests);
    let mut namespaces = Namespaces::default();
    while let Some((name, answer)) = answers.next().await {
        match answer {
            Ok(is_new) => {
                lock(&plane.namespaces).insert(name.clone());
                if is_new {
                    namespaces.made.insert(name);
                }
            }
            Err(error) => namespaces.failed.push((name, error)),
        }
    }
    namespaces
}

/// Creates a namespace. Returns false if the namespace already exists.
async fn make(
    plane: &Plane,
    name: &str,
    owner: &Owner,
    spec: &RenderedReleaseSpec,
) -> Result<bool, RequestError> {
    let api: Api<Namespace> = Api::all(plane.client.clone());
    let namespace = namespace(name, owner, spec);
    let params = PostParams {
        field_manager: Some(labels::MANAGER_DATAPLANE.to_owned()),
        ..PostParams::default()
    };
    match plane.ask(api.create(&params, &namespace)).await {
        Ok(_) => Ok(true),
        Err(error) if error.code() == Some(409) => Ok(false),
        // If the controller may not create namespaces, it can still use existing ones.
        Err(error) if error.code() == Some(403) => {
            match plane.ask(api.get_metadata_opt(name)).await {
                Ok(Some(_)) => Ok(false),
                _ => Err(error),
            }
        }
        Err(error) => Err(error),
    }
}

/// Returns the manifest of a namespace, with labels that name the RenderedRelease.
fn namespace(name: &str, owner: &Owner, spec: &RenderedReleaseSpec) -> Namespace {
    let labels = [
        (labels::CREATED_BY, labels::RELEASE_CONTROLLER.to_owned()),
        (labels::RELEASE_NAME, names::label_value(&owner.name)),
        (labels::RELEASE_NAMESPACE, owner.namespace.clone()),
        (labels::RELEASE_UID, owner.uid.clone()),
        (
            labels::NAMESPACE_ENVIRONMENT,
            names::label_value(&spec.environment_name),
        ),
        (
            labels::NAMESPACE_PROJECT,
            names::label_value(&spec.owner.project_name),
        ),
    ]
    .map(|(label, value)| (label.to_owned(), value));
    Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(labels.into()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}
