//! Reads live objects from a data plane. This module writes nothing.
//!
//! If an object cannot be read, the result is an error and not an absent object, because a cluster that does not
//! answer must not look empty.

use std::collections::HashMap;

use futures::{StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Api, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use kube::discovery::{self, Scope};
use serde_json::Value;

use super::diff::Identity;

/// The largest number of concurrent requests to a data plane.
const AT_ONCE: usize = 8;

/// The result of reading live objects from a data plane.
#[derive(Debug, Default)]
pub struct Live {
    /// The requested objects that exist on the data plane.
    pub objects: Vec<Value>,
    /// The requested kinds that the data plane does not have.
    pub unknown: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("{object}: {error}")]
pub struct LiveError {
    pub object: String,
    pub error: kube::Error,
}

/// Reads the live objects with the kinds, namespaces and names of the objects in `named`. The result leaves out
/// objects that do not exist or whose name is not valid.
pub async fn live(client: &Client, named: &[Value]) -> Result<Live, LiveError> {
    let mut live = Live::default();
    let mut kinds: HashMap<GroupVersionKind, Option<(ApiResource, Scope)>> = HashMap::new();
    let mut wanted = Vec::with_capacity(named.len());
    for object in named {
        let Some(kind) = kind(object).filter(|_| is_named(object)) else {
            continue;
        };
        let known = match kinds.get(&kind) {
            Some(known) => known.clone(),
            None => {
                let found = found(client, &kind).await;
                let found = found.map_err(|error| failed(object, error))?;
                if found.is_none() {
                    live.unknown
                        .push(format!("{} of {}", kind.kind, kind.api_version()));
                }
                kinds.insert(kind, found.clone());
                found
            }
        };
        wanted.extend(known.map(|(resource, scope)| read(client, object, &resource, &scope)));
    }
    let answers = futures::stream::iter(wanted);
    let found: Vec<Option<DynamicObject>> = answers.buffered(AT_ONCE).try_collect().await?;
    let values = found.into_iter().flatten();
    live.objects = values
        .filter_map(|object| serde_json::to_value(object).ok())
        .collect();
    Ok(live)
}

/// Reads the live object that has the name and the namespace of `object`; None if it does not exist.
fn read(
    client: &Client,
    object: &Value,
    resource: &ApiResource,
    scope: &Scope,
) -> impl Future<Output = Result<Option<DynamicObject>, LiveError>> + use<> {
    let said = |at: &str| object.pointer(at).and_then(Value::as_str);
    let name = said("/metadata/name").unwrap_or_default().to_owned();
    let api: Api<DynamicObject> = match said("/metadata/namespace") {
        Some(namespace) if *scope == Scope::Namespaced => {
            Api::namespaced_with(client.clone(), namespace, resource)
        }
        _ => Api::all_with(client.clone(), resource),
    };
    let object = Identity::of(object);
    async move {
        let answer = api.get_opt(&name).await;
        answer.map_err(|error| LiveError {
            object: object.to_string(),
            error,
        })
    }
}

fn kind(object: &Value) -> Option<GroupVersionKind> {
    let said = |key: &str| object.get(key).and_then(Value::as_str);
    let (api_version, kind) = (said("apiVersion")?, said("kind")?);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Some(GroupVersionKind::gvk(group, version, kind))
}

/// Returns whether a name is valid in the URL path of a request.
pub fn fits(name: &str) -> bool {
    let is_fit = |c: char| c.is_ascii_graphic() && !"/%?#".contains(c);
    !name.is_empty() && name != "." && name != ".." && name.chars().all(is_fit)
}

/// Returns whether the name and the namespace of an object are valid in the URL path of a request.
fn is_named(object: &Value) -> bool {
    let said = |at: &str| object.pointer(at).and_then(Value::as_str);
    said("/metadata/name").is_some_and(fits) && said("/metadata/namespace").is_none_or(fits)
}

/// Returns the API resource of a kind from the discovery of the data plane; None if the data plane does not have the
/// kind.
async fn found(
    client: &Client,
    kind: &GroupVersionKind,
) -> Result<Option<(ApiResource, Scope)>, kube::Error> {
    match discovery::pinned_kind(client, kind).await {
        Ok((resource, capabilities)) => Ok(Some((resource, capabilities.scope))),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn failed(object: &Value, error: kube::Error) -> LiveError {
    LiveError {
        object: Identity::of(object).to_string(),
        error,
    }
}
