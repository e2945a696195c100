//! Writes the finalizer of a RenderedRelease and the list of data planes that may have its resources. The
//! controller writes both before it applies the first resource, so that a cleanup finds every object.

use std::sync::Arc;

use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::{Error, State};
use crate::api::{RenderedRelease, labels};

/// Returns whether a RenderedRelease has the finalizer of the controller.
pub fn is_claimed(release: &RenderedRelease) -> bool {
    let finalizers = release.metadata.finalizers.as_deref();
    finalizers
        .unwrap_or_default()
        .iter()
        .any(|finalizer| finalizer == labels::DATAPLANE_CLEANUP)
}

/// Adds the finalizer, and stores the list of data planes in an annotation. Writes nothing if the finalizer
/// is already set and the annotation contains the same list.
pub async fn claim(
    state: &State,
    release: Arc<RenderedRelease>,
    planes: &[String],
) -> Result<Arc<RenderedRelease>, Error> {
    let listed = release.data_planes().unwrap_or_default();
    if is_claimed(&release) && listed == planes {
        return Ok(release);
    }
    let mut finalizers = release.metadata.finalizers.clone().unwrap_or_default();
    if !is_claimed(&release) {
        finalizers.push(labels::DATAPLANE_CLEANUP.to_owned());
    }
    let planes = json!(planes).to_string();
    patch(
        state,
        &release,
        json!({"finalizers": finalizers, "annotations": {labels::DATA_PLANES: planes}}),
    )
    .await
}

/// Removes the finalizer of the controller. Succeeds too if the RenderedRelease no longer exists.
pub async fn release(state: &State, release: &RenderedRelease) -> Result<(), Error> {
    let mut finalizers = release.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != labels::DATAPLANE_CLEANUP);
    match patch(state, release, json!({"finalizers": finalizers})).await {
        Err(Error::ControlPlane(kube::Error::Api(status))) if status.code == 404 => Ok(()),
        answer => answer.map(|_| ()),
    }
}

/// Changes the metadata of a RenderedRelease. The resourceVersion is a precondition, because the patch
/// replaces the whole list of finalizers.
async fn patch(
    state: &State,
    release: &RenderedRelease,
    mut metadata: serde_json::Value,
) -> Result<Arc<RenderedRelease>, Error> {
    let api = state.api(release);
    let name = release.metadata.name.as_deref().unwrap_or_default();
    metadata["resourceVersion"] = json!(release.metadata.resource_version);
    metadata["uid"] = json!(release.metadata.uid);
    let params = PatchParams {
        field_manager: Some(labels::MANAGER_CONTROLLER.to_owned()),
        ..PatchParams::default()
    };
    let body = json!({"metadata": metadata});
    let patched = api.patch(name, &params, &Patch::Merge(&body)).await?;
    state.wrote(&patched);
    Ok(Arc::new(patched))
}
