//! Waits until the rollout of a workload ends.

use futures::StreamExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher;

use super::{Facts, Verdict, of};
use crate::api::Object;
use crate::api::choreo::rendered::Health;

/// Returns the health of a Deployment, StatefulSet or DaemonSet. `kind` is its kind.
pub fn of_workload(object: &DynamicObject, kind: &str) -> Verdict {
    let empty = Object::default();
    let map = |name: &str| object.data.get(name).and_then(serde_json::Value::as_object);
    of(&Facts {
        group: "apps",
        kind,
        generation: object.metadata.generation,
        deleting: object.metadata.deletion_timestamp.is_some(),
        spec: map("spec").unwrap_or(&empty),
        status: map("status"),
    })
}

/// Waits until an object is healthy or its rollout has failed, and returns the verdict; None if the object is
/// deleted. Calls `progress` with every verdict in between. Never times out, so the caller sets a deadline.
pub async fn settled(
    api: Api<DynamicObject>,
    name: &str,
    kind: &str,
    progress: &mut (dyn FnMut(&Verdict) + Send),
) -> Option<Verdict> {
    let mut states = std::pin::pin!(watcher::watch_object(api, name));
    let mut known = false;
    while let Some(state) = states.next().await {
        match state {
            Ok(Some(object)) => {
                known = true;
                let verdict = of_workload(&object, kind);
                match verdict.health {
                    Health::Healthy | Health::Degraded => return Some(verdict),
                    _ => progress(&verdict),
                }
            }
            Ok(None) if known => return None,
            // The watcher lists the objects again after an error, so this loop only waits.
            Ok(None) | Err(_) => {}
        }
    }
    None
}
