//! The simulator of an embedded data plane: no container runs, but the status of workloads changes over
//! seconds as in a real cluster.
//!
//! The simulator is a controller and uses only the API. It writes the status of an object and, once, the
//! annotation `bowline.dev/simulated`, so that every screen can show that the object is simulated. Pure
//! functions compute the next step of a status from the status before, so another process can continue the
//! simulation.
//!
//! The containers of a faulty image crash. A user lists faulty images in the settings, or at any time in the
//! annotation `bowline.dev/faulty-images` of a DataPlane. `IMAGE in NAMESPACE` crashes only in that
//! namespace, so that a release can be healthy in staging and fail in production.

mod claims;
mod daemons;
mod jobs;
mod pods;
mod rollouts;
mod stateful;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::{FutureExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use kube::api::{Patch, PatchParams};
use kube::core::NamespaceResourceScope;
use kube::runtime::controller::Action;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{Controller, WatchStreamExt};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Context, run as runner};
use crate::api::openchoreo::environment::Reach;
use crate::api::{DataPlane, Object, labels};
use crate::connect::explain;

/// The settings of the simulator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The duration of one step. In one step, for example, one replica becomes ready.
    pub step: Duration,
    /// The images whose containers crash, in addition to the images that DataPlanes list.
    pub faulty: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            step: Duration::from_secs(1),
            faulty: Vec::new(),
        }
    }
}

/// The object and the other inputs of one simulated step.
struct Scene<'a> {
    object: &'a Value,
    status: Object,
    /// The images whose containers crash.
    faulty: &'a [String],
    /// The current time, in the format of the API.
    now: &'a str,
}

/// A function that returns the status after one step. The simulator writes the status if it changed.
type Step = fn(&Scene<'_>) -> Object;

/// The simulator could not write a status.
#[derive(Debug, thiserror::Error)]
#[error("{}", explain(.0))]
struct Error(#[from] kube::Error);

/// The state that the reconciles of all simulated kinds share.
struct Stage {
    context: Arc<Context>,
    step: Duration,
    faulty: watch::Receiver<Vec<String>>,
    /// The time of the next step of each simulated object, by the uid of the object.
    due: Mutex<HashMap<String, Instant>>,
}

/// Runs the simulator until the stop future is ready.
pub async fn run(
    context: Arc<Context>,
    settings: Settings,
    stop: impl Future<Output = ()> + Send + Sync + 'static,
) {
    let (sender, faulty) = watch::channel(settings.faulty.clone());
    let (told, stopped) = watch::channel(false);
    let stage = Arc::new(Stage {
        context: context.clone(),
        step: settings.step,
        faulty,
        due: Mutex::default(),
    });
    let until = || stopped.clone();
    let kinds = futures::future::join_all([
        play::<Deployment>(stage.clone(), rollouts::step, until()).boxed(),
        play::<StatefulSet>(stage.clone(), stateful::step, until()).boxed(),
        play::<DaemonSet>(stage.clone(), daemons::step, until()).boxed(),
        play::<Job>(stage.clone(), jobs::step, until()).boxed(),
        play::<Pod>(stage.clone(), pods::step, until()).boxed(),
        play::<PersistentVolumeClaim>(stage.clone(), claims::volume, until()).boxed(),
        play::<HorizontalPodAutoscaler>(stage.clone(), claims::autoscaler, until()).boxed(),
        play::<Service>(stage.clone(), claims::service, until()).boxed(),
    ]);
    let stop = async {
        stop.await;
        told.send_replace(true);
    };
    tokio::select! {
        (_, ()) = async { futures::join!(kinds, stop) } => {}
        () = follow_faults(&context, settings.faulty, sender) => {}
    }
}

/// Keeps the list of faulty images equal to the annotations of the DataPlanes.
async fn follow_faults(context: &Context, given: Vec<String>, sender: watch::Sender<Vec<String>>) {
    let (planes, writer): (Store<DataPlane>, _) = reflector::store();
    let changes = watcher(context.all::<DataPlane>(), watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    // The stream also reports the end of the first list. Before that, the store is empty.
    let mut changes = std::pin::pin!(changes);
    loop {
        if let Ok(None) = changes.try_next().await {
            return;
        }
        let mut faulty = given.clone();
        for plane in planes.state() {
            if matches!(plane.spec.reach(), Some(Reach::Embedded | Reach::InCluster)) {
                faulty.extend(listed(&plane));
            }
        }
        sender.send_if_modified(|known| {
            let differs = *known != faulty;
            *known = faulty;
            differs
        });
    }
}

fn listed(plane: &DataPlane) -> Vec<String> {
    let list = plane.annotations().get(labels::FAULTY_IMAGES);
    let images = list.map_or("", String::as_str).split(',').map(str::trim);
    images
        .filter(|image| !image.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Simulates all objects of one kind.
async fn play<K>(stage: Arc<Stage>, step: Step, mut stopped: watch::Receiver<bool>)
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static,
    K::DynamicType: Eq + Hash + Clone + Debug + Default + Unpin,
{
    let api: Api<K> = Api::all(stage.context.client.clone());
    let faults = futures::stream::unfold(stage.faulty.clone(), |mut faulty| async {
        faulty.changed().await.ok().map(|()| ((), faulty))
    });
    let controller = Controller::new(api, watcher::Config::default())
        .reconcile_all_on(faults)
        .graceful_shutdown_on(async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        });
    let base = stage.context.clone();
    runner::run(
        "simulator",
        controller,
        0,
        base,
        stage,
        move |object, stage| go_on(object, stage, step),
    )
    .await;
}

/// Computes and writes the next step of an object, if that step is due.
async fn go_on<K>(object: Arc<K>, stage: Arc<Stage>, step: Step) -> Result<Action, Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let uid = object.uid().unwrap_or_default();
    if object.meta().deletion_timestamp.is_some() {
        stage.due().remove(&uid);
        return Ok(Action::await_change());
    }
    let due = stage.due().get(&uid).copied();
    if let Some(wait) = due.map(|due| due.saturating_duration_since(Instant::now()))
        && !wait.is_zero()
    {
        return Ok(Action::requeue(wait));
    }
    let Ok(mut value) = serde_json::to_value(&*object) else {
        return Ok(Action::await_change());
    };
    let status = match value.get_mut("status").map(Value::take) {
        Some(Value::Object(status)) => status,
        _ => Object::new(),
    };
    let faulty = stage.faulty.borrow().clone();
    let now: Timestamp = stage.context.now();
    let next = step(&Scene {
        object: &value,
        status: status.clone(),
        faulty: &faulty,
        now: &format!("{now:.0}"),
    });
    if next == status {
        stage.due().remove(&uid);
        return Ok(Action::await_change());
    }
    write(&*object, &stage, status, next).await?;
    stage.due().insert(uid, Instant::now() + stage.step);
    Ok(Action::requeue(stage.step))
}

/// Writes a status. Before the first status, writes the annotation that marks the object as simulated.
async fn write<K>(object: &K, stage: &Stage, before: Object, next: Object) -> Result<(), Error>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned,
{
    let namespace = object.namespace().unwrap_or_default();
    let api: Api<K> = Api::namespaced(stage.context.client.clone(), &namespace);
    let name = object.name_any();
    let params = PatchParams {
        field_manager: Some(labels::MANAGER_SIMULATOR.to_owned()),
        ..PatchParams::default()
    };
    let uid = object.uid();
    if !object.annotations().contains_key(labels::SIMULATED) {
        let mark = json!({"metadata": {"uid": uid, "annotations": {labels::SIMULATED: labels::SIMULATED_TRUE}}});
        settle(
            api.patch_metadata(&name, &params, &Patch::Merge(&mark))
                .await,
        )?;
    }
    // A merge patch keeps the fields that it does not name, so removed fields are set to null.
    let gone = before
        .into_iter()
        .filter(|(field, _)| !next.contains_key(field));
    let mut status: Object = gone.map(|(field, _)| (field, Value::Null)).collect();
    status.extend(next);
    let status = json!({"metadata": {"uid": uid}, "status": status});
    settle(
        api.patch_status(&name, &params, &Patch::Merge(&status))
            .await,
    )
}

/// Ignores the error of a write to a deleted or replaced object, because the simulator has nothing more to do
/// for that object.
fn settle<T>(answer: Result<T, kube::Error>) -> Result<(), Error> {
    match answer {
        Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        answer => Ok(answer.map(|_| ())?),
    }
}

impl Stage {
    fn due(&self) -> std::sync::MutexGuard<'_, HashMap<String, Instant>> {
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Scene<'_> {
    fn generation(&self) -> i64 {
        let generation = self.object.pointer("/metadata/generation");
        generation.and_then(Value::as_i64).unwrap_or_default()
    }

    fn name(&self) -> &str {
        let name = self.object.pointer("/metadata/name");
        name.and_then(Value::as_str).unwrap_or_default()
    }

    fn spec(&self, pointer: &str) -> Option<&Value> {
        self.object.get("spec")?.pointer(pointer)
    }

    fn number(&self, pointer: &str, absent: i64) -> i64 {
        self.spec(pointer).and_then(Value::as_i64).unwrap_or(absent)
    }

    fn count(&self, field: &str) -> i64 {
        let count = self.status.get(field).and_then(Value::as_i64);
        count.unwrap_or_default()
    }

    /// Returns the name and the image of the first container of a pod that has a faulty image; None if there
    /// is none.
    fn crash(&self, pod: Option<&Value>) -> Option<(String, String)> {
        let pod = pod?;
        let containers = ["initContainers", "containers"]
            .iter()
            .filter_map(|field| pod.get(*field)?.as_array())
            .flatten();
        containers
            .map(|container| {
                let said = |field: &str| container.get(field).and_then(Value::as_str);
                (
                    said("name").unwrap_or_default(),
                    said("image").unwrap_or_default(),
                )
            })
            .find(|(_, image)| self.faulty.iter().any(|faulty| self.crashes(faulty, image)))
            .map(|(name, image)| (name.to_owned(), image.to_owned()))
    }

    fn crashes(&self, faulty: &str, image: &str) -> bool {
        let own = self.object.pointer("/metadata/namespace");
        match faulty.split_once(" in ") {
            Some((faulty, namespace)) => {
                own.and_then(Value::as_str) == Some(namespace.trim())
                    && matches(faulty.trim(), image)
            }
            None => matches(faulty, image),
        }
    }
}

fn matches(faulty: &str, image: &str) -> bool {
    match faulty.strip_suffix('*') {
        Some(prefix) => image.starts_with(prefix),
        None => image == faulty,
    }
}

/// Sets a condition of a status. The transition time changes only with the status field of the condition.
fn condition(status: &mut Object, now: &str, type_: &str, is: &str, reason: &str, message: &str) {
    let list = status.entry("conditions").or_insert_with(|| json!([]));
    let Value::Array(list) = list else {
        return;
    };
    let known = list.iter_mut().find(|known| known["type"] == *type_);
    let since = known
        .as_ref()
        .filter(|known| known["status"] == *is)
        .and_then(|known| known.get("lastTransitionTime").cloned())
        .unwrap_or_else(|| now.into());
    let condition = json!({
        "type": type_, "status": is, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    match known {
        Some(known) => *known = condition,
        None => list.push(condition),
    }
}

/// Returns the status, the reason and the message of a condition; None if the condition is missing.
fn said<'a>(status: &'a Object, type_: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let list = status.get("conditions")?.as_array()?;
    let found = list.iter().find(|condition| condition["type"] == *type_)?;
    let text = |field: &str| found.get(field).and_then(Value::as_str).unwrap_or_default();
    Some((text("status"), text("reason"), text("message")))
}

/// Sets a condition that reports crashing containers, for kinds without conditions of their own. It has the
/// form of the condition Progressing of a Deployment.
fn crashing(status: &mut Object, scene: &Scene<'_>, crash: Option<(String, String)>) {
    let (is, reason, message) = match crash {
        Some((container, image)) => (
            "False",
            "ProgressDeadlineExceeded",
            format!("CrashLoopBackOff: container {container}, image {image}"),
        ),
        None => ("True", "Progressing", String::new()),
    };
    condition(status, scene.now, "Progressing", is, reason, &message);
}

/// Writes a count. Removes the field if the count is zero, as real controllers do.
fn put(status: &mut Object, field: &str, count: i64) {
    match count {
        0 => status.remove(field),
        count => status.insert(field.to_owned(), count.into()),
    };
}
