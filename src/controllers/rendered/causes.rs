//! Finds the reason why a workload does not become ready. The status of a workload seldom contains the
//! reason, so this module reads the status of the workload's pods.
//!
//! The controller reads the pods at intervals, and only after the workload is not ready for a while. It
//! ignores pods whose images are not the desired ones, because they belong to an older template.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::Value;

use super::desired::Desired;
use super::live::Live;
use super::pause;
use super::plane::{Plane, lock};
use crate::api::Object;
use crate::api::choreo::rendered::Health;
use crate::engine::health::{self, Verdict};

/// The maximum number of pods that are read for one workload.
const PODS: u32 = 50;
/// How long the controller remembers the cause of a workload.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// The known causes of workloads that are not ready, by the uid of the workload.
#[derive(Default)]
pub struct Causes {
    known: Mutex<HashMap<String, Cause>>,
}

#[derive(Clone)]
struct Cause {
    since: Instant,
    looked: Option<Instant>,
    why: Option<String>,
}

/// Returns the health of a workload: from its own status and, if the workload is not ready, from its pods.
pub async fn verdict(plane: &Plane, desired: &Desired, live: &Live) -> Verdict {
    let verdict = live.verdict.clone();
    let is_unwell = matches!(verdict.health, Health::Progressing | Health::Degraded);
    let Some(selector) = selector(desired).filter(|_| !live.simulated && !live.deleting) else {
        return verdict;
    };
    let causes = &plane.causes.known;
    if !is_unwell {
        lock(causes).remove(&live.uid);
        return verdict;
    }
    let mut cause = known(causes, &live.uid);
    let is_due = cause.since.elapsed() >= plane.settings.pods_after
        && cause.looked.is_none_or(|at| at.elapsed() >= pause::MOVING);
    if is_due {
        let api: Api<Pod> = Api::namespaced(plane.client.clone(), &desired.identity.namespace);
        let params = ListParams::default().labels(&selector).limit(PODS);
        // If the controller may not read pods, the deployment continues without the reason.
        if let Ok(pods) = plane.ask(api.list(&params)).await {
            cause.why = pods.items.iter().find_map(|pod| trouble(pod, desired));
        }
        cause.looked = Some(Instant::now());
        lock(causes).insert(live.uid.clone(), cause.clone());
    }
    let Some(why) = cause.why else {
        return verdict;
    };
    // Keeps only "2 of 5 ready" of "2 of 5 ready, 3 of 5 updated".
    let message = verdict.message.unwrap_or_default();
    let ready = message.split(',').next().unwrap_or_default();
    Verdict::new(Health::Degraded, format!("{ready}, {why}"))
}

fn known(causes: &Mutex<HashMap<String, Cause>>, uid: &str) -> Cause {
    let mut causes = lock(causes);
    if let Some(cause) = causes.get(uid) {
        return cause.clone();
    }
    causes.retain(|_, cause| cause.since.elapsed() < FORGOTTEN);
    let cause = Cause {
        since: Instant::now(),
        looked: None,
        why: None,
    };
    causes.insert(uid.to_owned(), cause.clone());
    cause
}

/// Returns the label selector for the pods of a workload; None if objects of this kind have no pods.
fn selector(desired: &Desired) -> Option<String> {
    let identity = &desired.identity;
    match (identity.group.as_str(), identity.kind.as_str()) {
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") => {
            let labels = desired.object.pointer("/spec/selector/matchLabels")?;
            let terms = labels.as_object()?.iter();
            let terms = terms.filter_map(|(key, value)| Some(format!("{key}={}", value.as_str()?)));
            Some(terms.collect::<Vec<_>>().join(",")).filter(|terms| !terms.is_empty())
        }
        ("batch", "Job") => Some(format!("batch.kubernetes.io/job-name={}", identity.name)),
        _ => None,
    }
}

/// Returns why a container of a pod does not run. Returns None if all containers run, or if the pod does not
/// have the desired images.
fn trouble(pod: &Pod, desired: &Desired) -> Option<String> {
    let template = desired.object.pointer("/spec/template/spec/containers");
    let wanted = template.and_then(Value::as_array)?;
    let spec = pod.spec.as_ref()?;
    let is_wanted = wanted.iter().all(|wanted| {
        let name = wanted.get("name").and_then(Value::as_str);
        let image = wanted.get("image").and_then(Value::as_str);
        let runs = spec
            .containers
            .iter()
            .find(|it| Some(it.name.as_str()) == name);
        runs.is_some_and(|runs| runs.image.as_deref() == image)
    });
    let status = serde_json::to_value(pod.status.as_ref()?).ok()?;
    let status: &Object = status.as_object()?;
    let (_, why) = health::trouble(status).filter(|_| is_wanted)?;
    Some(why.to_owned())
}
