//! The Release controller: adds the labels and annotations that bowline's lists show, if the author of a
//! Release did not set them. Such an author is, for example, kubectl or a GitOps tool.
//!
//! The controller never changes an existing label or annotation. The content hash may need a fetch from git;
//! if that fetch fails, the controller still writes the other values.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::Context;
use super::run::pause;
use crate::api::openchoreo::release::ReleaseSpec;
use crate::api::{Release, labels, names};
use crate::connect::explain;
use crate::engine::bodies::BodyError;
use crate::engine::world::{Key, Source, World};
use crate::resolve;
use crate::subjects::release_pin::actions::release as release_action;
use crate::subjects::release_pin::rows::ReleaseRow;

/// The number of releases that the controller completes at the same time.
const AT_ONCE: usize = 4;

/// Runs the controller until the stop future is ready.
pub async fn run(context: Arc<Context>, stop: impl Future<Output = ()> + Send + Sync + 'static) {
    let feed = context.feed();
    let mut stop = std::pin::pin!(stop);
    let mut touched = std::pin::pin!(feed.touched());
    let mut queue: BTreeSet<Key> = lacking(&feed.world());
    let mut failures: HashMap<Key, u32> = HashMap::new();
    let (mut working, mut waiting) = (FuturesUnordered::new(), FuturesUnordered::new());
    loop {
        while working.len() < AT_ONCE
            && let Some(key) = queue.pop_first()
        {
            working.push(attempt(&context, key));
        }
        tokio::select! {
            () = &mut stop => return,
            Some(touched) = touched.next() => {
                if touched.source == Source::RELEASES {
                    queue.extend(match touched.key {
                        Some(key) => BTreeSet::from([key]),
                        None => lacking(&feed.world()),
                    });
                }
            }
            Some(key) = waiting.next(), if !waiting.is_empty() => {
                queue.insert(key);
            }
            Some((key, done)) = working.next(), if !working.is_empty() => match done {
                Ok(()) => {
                    failures.remove(&key);
                }
                Err(error) => {
                    let times = failures.entry(key.clone()).or_default();
                    let again_in = pause(*times);
                    *times = times.saturating_add(1);
                    tracing::warn!(release = %key.name, %error, ?again_in, "cannot complete the metadata of a release");
                    waiting.push(async move {
                        tokio::time::sleep(again_in).await;
                        key
                    });
                }
            },
        }
    }
}

/// Returns the releases that lack a label or an annotation.
fn lacking(world: &World) -> BTreeSet<Key> {
    let rows = world.all_releases().filter(|row| is_lacking(row));
    rows.map(|row| row.key.clone()).collect()
}

fn is_lacking(row: &ReleaseRow) -> bool {
    let complete =
        row.component.is_some() && row.hash.is_some() && row.size.is_some() && row.images.is_some();
    !complete && !row.deleting
}

async fn attempt(context: &Context, key: Key) -> (Key, Result<(), String>) {
    let row = {
        let world = context.feed().world();
        world.release(&key).filter(|row| is_lacking(row)).cloned()
    };
    let Some(row) = row else {
        return (key, Ok(()));
    };
    let begun = Instant::now();
    let done = complete(context, &row).await;
    let took = begun.elapsed();
    context.metrics.reconciled("release", done.is_ok(), took);
    (key, done)
}

/// Adds the missing labels and annotations to a release.
async fn complete(context: &Context, row: &ReleaseRow) -> Result<(), String> {
    let (namespace, name) = (&*row.key.namespace, &*row.key.name);
    let uid = Some(&*row.uid);
    let spec = context
        .bodies
        .spec::<Release>(&context.client, namespace, name, uid)
        .await;
    let spec = match spec {
        Ok(spec) => spec,
        // The release was deleted or replaced, so its watch triggers another check.
        Err(error) if matches!(*error, BodyError::Gone { .. } | BodyError::Replaced { .. }) => {
            return Ok(());
        }
        Err(error) => return Err(error.to_string()),
    };
    let hash = match row.hash {
        Some(_) => Ok(None),
        None => match resolve::resolve(&spec, &context.git).await {
            Ok(resolved) => Ok(Some(resolved.definitions.content_hash())),
            Err(error) => Err(error.to_string()),
        },
    };
    let known = hash.as_ref().ok().cloned().flatten();
    if let Some(metadata) = missing(row, &spec, known) {
        let releases = context.within::<Release>(namespace);
        let ours = PatchParams {
            field_manager: Some(labels::MANAGER_CONTROLLER.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({ "metadata": metadata }));
        match releases.patch_metadata(name, &ours, &patch).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return Ok(()),
            Err(error) => return Err(explain(&error)),
        }
    }
    hash.map(|_| ())
}

/// Returns the labels and annotations to add to a release; None if nothing is missing.
fn missing(row: &ReleaseRow, spec: &ReleaseSpec, hash: Option<String>) -> Option<Value> {
    let image = spec.workload.get("spec").and_then(|spec| spec.get("image"));
    let image = image.and_then(Value::as_str).unwrap_or_default();
    let mut spec_of_contents = spec.clone();
    let packed = release_action::contents_mut(&mut spec_of_contents)
        .any(|content| content.compressed().is_some());
    let annotations: BTreeMap<&str, String> = [
        (labels::CONTENT_HASH, hash),
        (
            labels::SIZE,
            row.size
                .is_none()
                .then(|| release_action::size(spec).to_string()),
        ),
        (
            labels::IMAGES,
            row.images.is_none().then(|| image.to_owned()),
        ),
        (
            labels::VERSION_TEXT,
            row.version.as_deref().map(str::to_owned),
        ),
        (
            labels::COMPRESSION,
            packed.then(|| labels::COMPRESSION_GZIP.to_owned()),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name, value?)))
    .collect();
    let component = row.component.is_none();
    let component = component.then(|| names::label_value(&spec.component.name));
    if annotations.is_empty() && component.is_none() {
        return None;
    }
    let mut metadata = json!({"uid": &*row.uid, "annotations": annotations});
    if let Some(component) = component {
        metadata["labels"] = json!({labels::COMPONENT: component});
    }
    Some(metadata)
}

#[cfg(test)]
mod tests;
