//! The test environment of the RenderedRelease controller: embedded stores as control plane and data planes.
//! A gate before each store can refuse, delay and count requests.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::{FutureExt, StreamExt};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::client::Body;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{WatchStreamExt, reflector};
use kube::{Client, ResourceExt};
use kube_embedded::Embedded;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api::choreo::rendered::{RenderedRelease, ResourceStatus};
use crate::api::condition;
use crate::connect::{self, DataPlanes, Deadlines};
use crate::rendered::{DataPlaneOptions, Settings, run};
use crate::resolve::git::{self, Git};
use crate::{Context, metrics::Metrics, simulator};

/// The longest wait for an event; after it, the test fails.
const HANGS: Duration = Duration::from_secs(60);

/// What a gate does with a request.
#[derive(Clone, Debug)]
pub enum Fate {
    Pass,
    /// Answers the request with this HTTP status code.
    Refuse(u16),
    /// Never answers the request.
    Hang,
    /// Refuses the connection of the client.
    Unreachable,
    /// Passes the request on, and removes this kind from the discovery answer.
    Without(&'static str),
}

type Rule = Arc<dyn Fn(&Method, &str) -> Fate + Send + Sync>;

/// An embedded store behind a gate.
#[derive(Clone)]
pub struct Plane {
    pub store: Embedded,
    /// How long the client waits for an answer of the store.
    pub answer: Duration,
    rule: watch::Sender<Rule>,
    asked: Arc<Mutex<Vec<String>>>,
    _home: Arc<tempfile::TempDir>,
}

impl Plane {
    pub async fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let store = crate::fixture::store::open(&home.path().join("store.db"), "admin").await;
        let pass: Rule = Arc::new(|_, _| Fate::Pass);
        Self {
            store,
            answer: Duration::from_secs(30),
            rule: watch::Sender::new(pass),
            asked: Arc::default(),
            _home: Arc::new(home),
        }
    }

    /// Returns a client that does not pass the gate.
    pub fn admin(&self) -> Client {
        self.store.client("default")
    }

    /// Returns a client whose requests pass the gate.
    pub fn client(&self) -> Client {
        let plane = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let plane = plane.clone();
            async move { plane.serve(request).await }
        });
        let deadlines = Deadlines {
            answer: self.answer,
            body: self.answer,
        };
        connect::guard(service, "default", None, deadlines)
    }

    /// Sets the rule that decides what the gate does with the next requests. Ends a running watch that the
    /// new rule does not pass.
    pub fn rule(&self, rule: impl Fn(&Method, &str) -> Fate + Send + Sync + 'static) {
        self.rule.send_replace(Arc::new(rule));
    }

    pub fn pass(&self) {
        self.rule(|_, _| Fate::Pass);
    }

    async fn serve(&self, request: Request<Body>) -> Result<Response<Answer>, tower::BoxError> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let is_watch = request
            .uri()
            .query()
            .is_some_and(|query| query.contains("watch="));
        if !is_watch {
            self.asked.lock().unwrap().push(format!("{method} {path}"));
        }
        let fate = (self.rule.borrow().clone())(&method, &path);
        match fate {
            Fate::Refuse(code) => Ok(refusal(code)),
            Fate::Hang => futures::future::pending().await,
            Fate::Unreachable => Err("connection refused".into()),
            Fate::Without(kind) => {
                let answer = self.admin().send(request).await?;
                Ok(without(answer, kind).await)
            }
            Fate::Pass => {
                let answer = self.admin().send(request).await?;
                if !is_watch {
                    return Ok(answer.map(whole));
                }
                // A running watch ends when a new rule no longer passes it.
                let mut rules = self.rule.subscribe();
                let ended = async move {
                    let _ = rules
                        .wait_for(|rule| !matches!(rule(&method, &path), Fate::Pass))
                        .await;
                };
                let (parts, body) = answer.into_parts();
                let frames = http_body_util::BodyStream::new(body).take_until(ended.boxed());
                let frames = frames.map(|frame| frame.map_err(std::io::Error::other));
                let body = http_body_util::StreamBody::new(frames);
                let body = body.map_err(Into::into).boxed_unsync();
                Ok(Response::from_parts(parts, body))
            }
        }
    }

    /// Returns the requests since the last call, but no watch requests.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

type Answer = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, tower::BoxError>;

fn whole(body: impl Into<Body>) -> Answer {
    body.into().map_err(Into::into).boxed_unsync()
}

fn refusal(code: u16) -> Response<Answer> {
    let reason = match code {
        403 => "Forbidden",
        404 => "NotFound",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": format!("the gate says {code}"),
    });
    let mut response = Response::new(whole(status.to_string().into_bytes()));
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}

/// Removes a kind from a discovery document.
async fn without(answer: Response<Body>, kind: &str) -> Response<Answer> {
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let mut value: Value = serde_json::from_slice(&bytes).unwrap();
    if let Some(list) = value["resources"].as_array_mut() {
        list.retain(|resource| resource["kind"] != *kind);
    }
    Response::from_parts(parts, whole(value.to_string().into_bytes()))
}

/// An embedded control plane that is also a data plane, and further data planes.
pub struct Stage {
    pub own: Plane,
    pub others: BTreeMap<String, Plane>,
    pub settings: Settings,
    pub simulator: simulator::Settings,
}

/// The running controller. Dropping the value ends the controller.
pub struct Running {
    task: JoinHandle<()>,
    stop: watch::Sender<bool>,
}

impl Running {
    /// Stops the controller and waits for its end.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        tokio::time::timeout(HANGS, self.task)
            .await
            .unwrap()
            .unwrap();
    }

    /// Ends the controller at once.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

impl Stage {
    pub async fn new() -> Self {
        let stage = Self {
            own: Plane::new().await,
            others: BTreeMap::new(),
            settings: Settings {
                deadline: Duration::from_secs(5),
                first_pause: Duration::from_millis(20),
                longest_pause: Duration::from_millis(200),
                pods_after: Duration::ZERO,
                ..Settings::default()
            },
            simulator: simulator::Settings {
                step: Duration::from_millis(1),
                faulty: Vec::new(),
            },
        };
        stage
            .environment("dev", json!({"embedded": {}}), "shop-dev")
            .await;
        stage
    }

    /// Adds a data plane, which the controller reaches through a kubeconfig context.
    pub async fn plane(&mut self, name: &str) -> Plane {
        let plane = Plane::new().await;
        self.others.insert(name.to_owned(), plane.clone());
        plane
    }

    pub fn start(&self) -> Running {
        let folder = Path::new("unused");
        let context = Arc::new(Context::new(
            self.own.client(),
            None,
            Arc::new(Timestamp::now),
            Git::new(git::Settings::new(folder)),
            Arc::new(Metrics::default()),
        ));
        let contexts = self.others.iter();
        let contexts = contexts.map(|(name, plane)| (name.clone(), plane.client()));
        let planes = DataPlanes::given(self.own.client(), true, contexts.collect());
        let ways = DataPlaneOptions {
            planes,
            settings: self.settings,
            simulator: self.simulator.clone(),
        };
        let (stop, mut stopped) = watch::channel(false);
        let task = tokio::spawn(run(context, ways, async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }));
        Running { task, stop }
    }

    /// Creates an Environment and its DataPlane object.
    pub async fn environment(&self, name: &str, reach: Value, namespace: &str) {
        self.put(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "DataPlane",
            "metadata": {"name": name, "namespace": "default"}, "spec": reach,
        }))
        .await;
        self.put(json!({
            "apiVersion": "openchoreo.dev/v1alpha1", "kind": "Environment",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"dataPlaneRef": {"name": name}, "namespace": namespace},
        }))
        .await;
    }

    /// Applies an object to the control plane as another user would do.
    pub async fn put(&self, object: Value) -> DynamicObject {
        put(&self.own.admin(), object).await
    }

    /// Creates or changes a RenderedRelease of an environment.
    pub async fn release(
        &self,
        name: &str,
        environment: &str,
        objects: &[Value],
    ) -> RenderedRelease {
        let id = |object: &Value| {
            let text = |at: &str| {
                object
                    .pointer(at)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
            };
            text("/metadata/annotations/id").to_owned()
        };
        let resources: Vec<Value> = objects
            .iter()
            .enumerate()
            .map(|(at, object)| {
                let id = Some(id(object)).filter(|id| !id.is_empty());
                json!({"id": id.unwrap_or_else(|| format!("r{at}")), "object": object})
            })
            .collect();
        self.put(json!({
            "apiVersion": "core.choreo.dev/v1", "kind": "Release",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "owner": {"projectName": "shop", "componentName": name},
                "environmentName": environment, "resources": resources,
            },
        }))
        .await;
        self.releases().get(name).await.unwrap()
    }

    pub fn releases(&self) -> Api<RenderedRelease> {
        Api::namespaced(self.own.admin(), "default")
    }

    pub async fn delete(&self, name: &str) {
        let params = DeleteParams::default();
        self.releases().delete(name, &params).await.unwrap();
    }

    /// Waits until `wanted` is true for a RenderedRelease.
    pub async fn until(
        &self,
        name: &str,
        wanted: impl Fn(&RenderedRelease) -> bool,
    ) -> RenderedRelease {
        let found = until(self.releases(), |release| {
            release.name_any() == name && wanted(release)
        })
        .await;
        match found {
            Ok(release) => release,
            Err(_) => {
                let last = self.releases().get_opt(name).await.unwrap();
                panic!(
                    "{name} is not as wanted: {:#}",
                    json!(last.map(|it| (it.metadata, it.status)))
                );
            }
        }
    }

    /// Waits until a RenderedRelease is ready in its current generation.
    pub async fn until_ready(&self, name: &str) -> RenderedRelease {
        self.until(name, |release| {
            let conditions = release
                .status
                .as_ref()
                .map(|status| status.conditions.as_slice());
            let generation = release.metadata.generation;
            condition::is_true(conditions.unwrap_or_default(), condition::READY, generation)
        })
        .await
    }

    /// Waits until a condition of a RenderedRelease has this reason for the current generation.
    pub async fn until_reason(&self, name: &str, type_: &str, reason: &str) -> RenderedRelease {
        self.until(name, |release| {
            said(release, type_).is_some_and(|(generation, known, _)| {
                generation == release.metadata.generation && known == reason
            })
        })
        .await
    }

    /// Waits until a RenderedRelease is gone.
    pub async fn until_gone(&self, name: &str) {
        let (store, writer) = reflector::store();
        let stream = watcher(self.releases(), watcher::Config::default()).reflect(writer);
        let mut stream = std::pin::pin!(stream);
        let gone = async {
            while let Some(event) = stream.next().await {
                event.unwrap();
                let is_there = |release: &Arc<RenderedRelease>| release.name_any() == name;
                let is_listed = store.wait_until_ready().now_or_never().is_some();
                if is_listed && !store.state().iter().any(is_there) {
                    return;
                }
            }
        };
        if tokio::time::timeout(HANGS, gone).await.is_err() {
            let last = self.releases().get_opt(name).await.unwrap();
            panic!(
                "{name} is still there: {:#}",
                json!(last.map(|it| (it.metadata, it.status)))
            );
        }
    }
}

/// Returns the generation, the reason and the message of a condition.
pub fn said(release: &RenderedRelease, type_: &str) -> Option<(Option<i64>, String, String)> {
    let conditions = &release.status.as_ref()?.conditions;
    let found = condition::find(conditions, type_)?;
    let (reason, message) = (found.reason.clone(), found.message.clone());
    Some((found.observed_generation, reason, message))
}

/// Waits until `wanted` is true for an object of a kind. Returns an error after a minute.
pub async fn until<K>(api: Api<K>, wanted: impl Fn(&K) -> bool) -> Result<K, ()>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned + Send + 'static,
{
    let stream = watcher(api, watcher::Config::default()).applied_objects();
    let mut stream = std::pin::pin!(stream);
    let found = async {
        while let Some(object) = stream.next().await {
            match object {
                Ok(object) if wanted(&object) => return Some(object),
                _ => {}
            }
        }
        None
    };
    tokio::time::timeout(HANGS, found)
        .await
        .ok()
        .flatten()
        .ok_or(())
}

/// Returns an API client for the kind and the namespace of an object.
pub fn api(client: &Client, object: &Value) -> Api<DynamicObject> {
    let text = |at: &str| {
        object
            .pointer(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let (group, version) = text("/apiVersion")
        .split_once('/')
        .unwrap_or(("", text("/apiVersion")));
    let kind = GroupVersionKind::gvk(group, version, text("/kind"));
    let mut resource = ApiResource::from_gvk(&kind);
    if text("/kind") == "EnvSettings" {
        resource.plural = "envsettings".to_owned();
    }
    match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

/// Applies an object as another user would do.
pub async fn put(client: &Client, object: Value) -> DynamicObject {
    let name = object["metadata"]["name"].as_str().unwrap().to_owned();
    let params = PatchParams::apply("somebody").force();
    api(client, &object)
        .patch(&name, &params, &Patch::Apply(&object))
        .await
        .unwrap()
}

/// Reads an object by its kind, namespace and name.
pub async fn get(client: &Client, object: &Value) -> Option<Value> {
    let name = object["metadata"]["name"].as_str().unwrap();
    let found = api(client, object).get_opt(name).await.unwrap();
    found.map(|found| serde_json::to_value(found).unwrap())
}

pub async fn namespace(client: &Client, name: &str) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    put(client, namespace).await;
}

pub fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace}, "data": {"value": value},
    })
}

pub fn secret(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace}, "stringData": {"value": "x"},
    })
}

pub fn deployment(namespace: &str, name: &str, replicas: u32, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": image}]},
            },
        },
    })
}

/// Returns the inventory entry of the object with this kind and name.
pub fn entry<'a>(
    release: &'a RenderedRelease,
    kind: &str,
    name: &str,
) -> Option<&'a ResourceStatus> {
    let entries = &release.status.as_ref()?.resources;
    entries
        .iter()
        .find(|entry| entry.kind == kind && entry.name == name)
}

/// Returns the CRD of a custom kind, for tests with an uncommon kind.
pub fn queues() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "queues.shop.example"},
        "spec": {
            "group": "shop.example", "scope": "Namespaced",
            "names": {"plural": "queues", "singular": "queue", "kind": "Queue", "listKind": "QueueList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

pub fn queue(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "shop.example/v1", "kind": "Queue", "metadata": {"name": name, "namespace": namespace}, "spec": {"a": 1}})
}
