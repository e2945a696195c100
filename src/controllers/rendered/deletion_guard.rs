//! Stops the cleanup of a RenderedRelease that is deleted only because its kind, the kind ReleasePin or its
//! namespace is deleted. Such a deletion deletes every RenderedRelease at once, so the cleanup would delete
//! all of production.
//!
//! A user can still request the cleanup with the annotation [`labels::REMOVE_RUNNING`] on the
//! RenderedRelease, or on the namespace if the namespace is being deleted. The value is the time of the
//! deletion, so that an old annotation does not affect a later deletion.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ObjectMeta};
use kube::{Client, CustomResourceExt, Resource, ResourceExt};

use super::State;
use crate::api::{ReleasePin, RenderedRelease, labels};
use crate::connect::explain;

/// The metadata of the kinds and the namespace whose deletion also deletes a RenderedRelease. A field is None
/// if the object does not exist.
#[derive(Debug, Default)]
struct Surroundings {
    kind: Option<ObjectMeta>,
    /// The metadata of the kind ReleasePin. The outer None: no ReleasePin owns the RenderedRelease. The inner
    /// None: the kind ReleasePin does not exist.
    pin_kind: Option<Option<ObjectMeta>>,
    namespace: Option<ObjectMeta>,
}

/// Returns why the controller does not clean up a RenderedRelease that is being deleted, and how the user can
/// continue. Returns None if the cleanup may run. A failed request also stops the cleanup.
pub(super) async fn objection(state: &State, release: &RenderedRelease) -> Option<String> {
    if is_wanted(&release.metadata) {
        return None;
    }
    match Surroundings::read(&state.context.client, release).await {
        Ok(surroundings) => surroundings.objection(release),
        Err(error) => Some(format!(
            "the controller removes nothing, because it cannot read whether a whole kind or namespace is being deleted: {}; grant it get on namespaces and on customresourcedefinitions",
            explain(&error)
        )),
    }
}

impl Surroundings {
    async fn read(client: &Client, release: &RenderedRelease) -> Result<Self, kube::Error> {
        let kinds: Api<CustomResourceDefinition> = Api::all(client.clone());
        let kind = async |name: &str| {
            let found = kinds.get_metadata_opt(name).await?;
            Ok::<_, kube::Error>(found.map(|found| found.metadata))
        };
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = release.namespace().unwrap_or_default();
        let namespace = namespaces.get_metadata_opt(&namespace).await?;
        Ok(Self {
            kind: kind(RenderedRelease::crd_name()).await?,
            pin_kind: match is_of_pin(&release.metadata) {
                true => Some(kind(ReleasePin::crd_name()).await?),
                false => None,
            },
            namespace: namespace.map(|found| found.metadata),
        })
    }

    fn objection(&self, release: &RenderedRelease) -> Option<String> {
        let (namespace, name) = (release.namespace().unwrap_or_default(), release.name_any());
        let (kind, pin_kind) = (RenderedRelease::crd_name(), ReleasePin::crd_name());
        let keep = format!(
            "to keep the workloads, remove the finalizer {} from the RenderedRelease",
            labels::DATAPLANE_CLEANUP
        );
        let annotation = |of: Option<&ObjectMeta>| {
            let value = of.and_then(deletion).unwrap_or_default();
            format!("{}={value}", labels::REMOVE_RUNNING)
        };
        if is_going(self.kind.as_ref()) {
            return Some(format!(
                "the controller removes nothing, because the kind {kind} is being deleted and every RenderedRelease with it; bowline uninstall keeps the workloads, bowline uninstall --remove-running removes them"
            ));
        }
        if let Some(found) = &self.pin_kind
            && (is_going(found.as_ref()) || is_older(&release.metadata, found.as_ref()))
        {
            return Some(format!(
                "the controller removes nothing, because the ReleasePin {name} was deleted together with its kind {pin_kind}; {keep}; to remove them: kubectl annotate --overwrite {kind} {name} -n {namespace} {}",
                annotation(Some(&release.metadata))
            ));
        }
        let is_namespace_going =
            is_going(self.namespace.as_ref()) && !self.namespace.as_ref().is_some_and(is_wanted);
        is_namespace_going.then(|| {
            format!(
                "the controller removes nothing, because the namespace {namespace} is being deleted and every RenderedRelease in it; {keep}; to remove them: kubectl annotate --overwrite namespace {namespace} {}",
                annotation(self.namespace.as_ref())
            )
        })
    }
}

/// Returns the time of the deletion of an object, in the format of the annotation [`labels::REMOVE_RUNNING`];
/// None if the object is not being deleted.
pub fn deletion(metadata: &ObjectMeta) -> Option<String> {
    let time = metadata.deletion_timestamp.as_ref()?.0;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// Returns whether the annotation [`labels::REMOVE_RUNNING`] of an object has the time of its current
/// deletion, which requests the cleanup.
pub fn is_wanted(metadata: &ObjectMeta) -> bool {
    let annotations = metadata.annotations.as_ref();
    let asked = annotations.and_then(|annotations| annotations.get(labels::REMOVE_RUNNING));
    asked.is_some() && asked == deletion(metadata).as_ref()
}

/// Returns whether an object does not exist or is being deleted.
fn is_going(found: Option<&ObjectMeta>) -> bool {
    found.is_none_or(|found| found.deletion_timestamp.is_some())
}

/// Returns whether an object is older than a kind. A RenderedRelease is older than the kind ReleasePin only
/// if the kind was deleted, together with every ReleasePin, and installed again.
fn is_older(object: &ObjectMeta, kind: Option<&ObjectMeta>) -> bool {
    let created = |metadata: &ObjectMeta| metadata.creation_timestamp.as_ref().map(|time| time.0);
    match (created(object), kind.and_then(created)) {
        (Some(object), Some(kind)) => object < kind,
        _ => false,
    }
}

/// Returns whether a ReleasePin owns an object.
fn is_of_pin(metadata: &ObjectMeta) -> bool {
    let version = ReleasePin::api_version(&());
    let (group, _) = version.split_once('/').unwrap_or_default();
    metadata.owner_references.iter().flatten().any(|owner| {
        let owner_group = owner.api_version.split_once('/').unwrap_or_default().0;
        owner.kind == ReleasePin::kind(&()) && owner_group == group
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const BEFORE: &str = "2026-01-01T00:00:00Z";
    const BIRTH: &str = "2026-01-02T00:00:00Z";
    const AFTER: &str = "2026-01-03T00:00:00Z";

    fn metadata(value: Value) -> ObjectMeta {
        serde_json::from_value(value).unwrap()
    }

    fn release(owners: Value) -> RenderedRelease {
        let mut release = RenderedRelease::new("cart-prod", Default::default());
        release.metadata = metadata(json!({
            "name": "cart-prod", "namespace": "shop", "creationTimestamp": BIRTH, "ownerReferences": owners,
        }));
        release
    }

    #[test]
    fn the_cleanup_stops_where_a_kind_or_a_namespace_goes() {
        let there = || Some(metadata(json!({"creationTimestamp": BEFORE})));
        let newer = || Some(metadata(json!({"creationTimestamp": AFTER})));
        let going = || {
            Some(metadata(
                json!({"creationTimestamp": BEFORE, "deletionTimestamp": AFTER}),
            ))
        };
        let marked = |value: &str| {
            Some(metadata(json!({
                "deletionTimestamp": AFTER, "annotations": {"bowline.dev/remove-running": value},
            })))
        };
        let (kind, pin_kind) = (
            "kind releases.core.choreo.dev",
            "kind releasepins.openchoreo.dev",
        );
        for (kind_found, pin_kind_found, namespace, reason) in [
            (there(), Some(there()), there(), None),
            (there(), None, there(), None),
            // A newer kind ReleasePin stops the cleanup only if a ReleasePin owns the RenderedRelease.
            (newer(), None, there(), None),
            (going(), Some(there()), there(), Some(kind)),
            (None, None, there(), Some(kind)),
            (there(), Some(going()), there(), Some(pin_kind)),
            (there(), Some(None), there(), Some(pin_kind)),
            (there(), Some(newer()), there(), Some(pin_kind)),
            (there(), Some(there()), going(), Some("namespace shop")),
            (there(), Some(there()), None, Some("namespace shop")),
            (there(), Some(there()), marked(AFTER), None),
            // The annotation has the time of another deletion, or an invalid value, so it has no effect.
            (
                there(),
                Some(there()),
                marked(BEFORE),
                Some("namespace shop"),
            ),
            (
                there(),
                Some(there()),
                marked("true"),
                Some("namespace shop"),
            ),
        ] {
            let surroundings = Surroundings {
                kind: kind_found,
                pin_kind: pin_kind_found,
                namespace,
            };
            let found = surroundings.objection(&release(json!([])));
            match reason {
                None => assert_eq!(found, None, "{surroundings:?}"),
                Some(reason) => assert!(
                    found.as_ref().is_some_and(|found| found.contains(reason)),
                    "{surroundings:?}: {found:?} has no {reason}"
                ),
            }
        }
    }

    #[test]
    fn the_annotation_counts_for_one_deletion() {
        let object = |deleted: Option<&str>, value: &str| {
            metadata(json!({
                "deletionTimestamp": deleted, "annotations": {"bowline.dev/remove-running": value},
            }))
        };
        for (deleted, value, is) in [
            (Some(AFTER), AFTER, true),
            (Some(AFTER), BEFORE, false),
            (Some(AFTER), "true", false),
            (Some(AFTER), "", false),
            (None, AFTER, false),
            (None, "true", false),
        ] {
            assert_eq!(
                is_wanted(&object(deleted, value)),
                is,
                "{deleted:?} {value}"
            );
        }
        assert!(!is_wanted(&metadata(json!({}))));
    }

    #[test]
    fn only_a_release_pin_counts_as_one() {
        let owner = |version: &str, kind: &str| json!([{"apiVersion": version, "kind": kind, "name": "a", "uid": "1"}]);
        for (owners, is) in [
            (json!([]), false),
            (owner("openchoreo.dev/v1alpha1", "ReleasePin"), true),
            (owner("openchoreo.dev/v1", "ReleasePin"), true),
            (owner("openchoreo.dev/v1alpha1", "ReleaseBinding"), false),
            (owner("example.com/v1", "ReleasePin"), false),
        ] {
            assert_eq!(is_of_pin(&release(owners.clone()).metadata), is, "{owners}");
        }
    }
}
