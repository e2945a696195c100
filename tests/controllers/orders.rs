//! Applies the objects of deploy/examples in random orders. The final objects must always be the same, equal
//! the rendered files byte for byte, and include no other object.
//!
//! The test cluster allows a volume claim to change its size and its storage class later. Other clusters
//! refuse this, so there the settings must be applied before their ReleasePin.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::api::{
    AuditEntry, ComponentEnvSnapshot, Release, ReleasePin, RenderedRelease, labels, names,
};
use bowline::connect::DataPlanes;
use bowline::controllers::all::{self, Loop};
use bowline::controllers::rendered::{self, DataPlaneOptions};
use bowline::controllers::{Context, component, pin, release, retention, simulator};
use bowline::engine::audit;
use bowline::render::{Inputs, Library, Rendered, render};
use bowline::resolve::git::{Git, Settings};
use bowline::subjects::release_pin::actions::release::{Source, release as make_release};
use bowline::subjects::release_pin::catalog::Catalog;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, Pod};
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kube::core::GroupVersionKind;
use kube::runtime::wait::{await_condition, conditions};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::dice::Dice;
use crate::place::{Place, Target};
use crate::{HANG, sized};

/// The number of embedded stores on which the test runs at the same time.
const SIDE_BY_SIDE: usize = 4;
/// The duration of one step of the simulator.
const STEP: Duration = Duration::from_millis(20);

pub async fn the_order_does_not_matter(target: Arc<Target>) {
    let begun = Instant::now();
    let example = Example::read(&target);
    let orders: u64 = match target.name {
        "embedded" => sized(4, 100),
        _ => sized(1, 5),
    };
    let states: Vec<State> = match target.name {
        "embedded" => {
            let ended = futures::stream::iter(0..orders).map(|order| {
                let example = &example;
                async move {
                    let own = Target::new(&Place::Embedded, &example.namespace).await;
                    example.play(&own, order).await
                }
            });
            ended.buffered(SIDE_BY_SIDE).collect().await
        }
        _ => {
            let client = target.client();
            prepare(&client).await;
            let mut states = Vec::new();
            for order in 0..orders {
                if order > 0 {
                    example.clear(&target).await;
                }
                states.push(example.play(&target, order).await);
            }
            states
        }
    };
    for (order, state) in states.iter().enumerate() {
        states[0].compare(state, order);
    }
    println!(
        "{}: {orders} orders of {} objects end in the same state: {} rendered releases with {} resources, {} KB of manifests, byte for byte; {} pods run; in {:.1} s",
        target.name,
        example.objects.len(),
        example.rendered.len(),
        example
            .rendered
            .values()
            .map(|it| it.resources.len())
            .sum::<usize>(),
        states[0].rendered.values().map(String::len).sum::<usize>() / 1024,
        states[0].pods.len(),
        begun.elapsed().as_secs_f64(),
    );
}

/// The objects of deploy/examples, and the expected result.
struct Example {
    namespace: String,
    objects: Vec<Value>,
    /// The expected manifests, by the name of the ReleasePin that gives them.
    rendered: BTreeMap<String, Rendered>,
    /// The namespaces to which the environments deploy.
    places: Vec<String>,
}

impl Example {
    fn read(target: &Target) -> Self {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples");
        let namespace = target.namespace.clone();
        let catalog = Catalog::read(&directory, Some(&namespace)).unwrap();
        let mut objects = documents(&directory);
        let environments: Vec<_> = catalog
            .names("Environment")
            .map(|name| catalog.environment(name).unwrap())
            .collect();
        let library = Library::new();
        let mut rendered = BTreeMap::new();
        for component in catalog.names("Component") {
            let definitions = catalog.definitions(component).unwrap();
            let made = make_release(&definitions, None, &Source::Embedded);
            let is_automatic = definitions.component.spec.auto_deploy;
            for environment in &environments {
                let name = environment.name_any();
                // Leaves out the ReleasePin that autoDeploy creates.
                if !(is_automatic && name == "development") {
                    let pin = bowline::fixture::new_pin(component, &name, &made.name_any());
                    objects.push(serde_json::to_value(pin).unwrap());
                }
                let settings = catalog.settings(component, &name).unwrap();
                let inputs = Inputs {
                    definitions: &definitions,
                    settings: settings.as_ref(),
                    environment,
                    namespace: &namespace,
                };
                let manifests = render(&inputs, &library).unwrap();
                rendered.insert(names::pin(component, &name), manifests);
            }
            if !is_automatic {
                objects.push(serde_json::to_value(made).unwrap());
            }
        }
        let places = environments.iter();
        let places = places.map(|it| it.spec.namespace.clone()).collect();
        Self {
            namespace,
            objects,
            rendered,
            places,
        }
    }

    /// Applies all objects in a random order, and starts the controllers somewhere in between. Returns the
    /// final state. `order` is the random seed.
    async fn play(&self, target: &Target, order: u64) -> State {
        let client = target.client();
        let mut dice = Dice(1_000 + order);
        let mut objects: Vec<&Value> = self.objects.iter().collect();
        for place in (1..objects.len()).rev() {
            objects.swap(place, dice.roll(place as u64 + 1) as usize);
        }
        let from = dice.roll(objects.len() as u64) as usize;
        let mut controllers = None;
        for (place, object) in objects.into_iter().enumerate() {
            if place == from {
                controllers = Some(Controllers::start(target));
            }
            self.apply(&client, object).await;
        }
        self.settled(&client, order).await;
        if target.name == "cluster" {
            self.pods_run(&client).await;
        }
        let controllers = controllers.expect("they are started on the way");
        controllers.stop().await;
        let state = State::of(self, &client, target.name == "cluster").await;
        state.verify(self, order);
        state
    }

    async fn apply(&self, client: &Client, object: &Value) {
        let objects = api(client, object, Some(&self.namespace));
        let name = object["metadata"]["name"].as_str().unwrap();
        let params = PatchParams::apply("somebody").force();
        let applied = objects.patch(name, &params, &Patch::Apply(object)).await;
        applied.unwrap_or_else(|error| panic!("{} {name}: {error}", object["kind"]));
    }

    /// Waits until every ReleasePin is ready and its rendered resources are as expected.
    async fn settled(&self, client: &Client, order: u64) {
        let pins: Api<ReleasePin> = Api::namespaced(client.clone(), &self.namespace);
        let rendered: Api<RenderedRelease> = Api::namespaced(client.clone(), &self.namespace);
        let mut left: BTreeMap<String, &str> = BTreeMap::new();
        for name in self.rendered.keys() {
            left.insert(format!("pin {name}"), "is not there");
            left.insert(format!("rendered {name}"), "is not there");
        }
        let config = watcher::Config::default;
        let pins = watcher(pins, config()).default_backoff().applied_objects();
        let pins = pins.map_ok(|pin| {
            let state = match crate::pins::is_ready(&pin) {
                true => "",
                false => "is not ready",
            };
            (format!("pin {}", pin.name_any()), state)
        });
        let rendered = watcher(rendered, config())
            .default_backoff()
            .applied_objects();
        let rendered = rendered.map_ok(|found| {
            let name = found.name_any();
            (format!("rendered {name}"), self.state_of(&found))
        });
        let mut news = futures::stream::select(pins.boxed(), rendered.boxed());
        let all = async {
            while !left.values().all(|state| state.is_empty()) {
                let (what, state) = news.next().await.unwrap().unwrap();
                left.insert(what, state);
            }
        };
        if tokio::time::timeout(HANG, all).await.is_err() {
            left.retain(|_, state| !state.is_empty());
            let pins: Api<ReleasePin> = Api::namespaced(client.clone(), &self.namespace);
            let name = left.keys().next().unwrap().split(' ').nth(1).unwrap();
            let one = pins.get_opt(name).await.unwrap();
            let status = serde_json::to_string_pretty(&one.map(|pin| pin.status)).unwrap();
            panic!("order {order} does not settle: {left:#?}; {name}: {status}");
        }
    }

    /// Returns why a RenderedRelease has not reached its final state; the empty text if it has.
    fn state_of(&self, found: &RenderedRelease) -> &'static str {
        let wanted = self.rendered.get(&found.name_any());
        let hash = wanted.map(Rendered::hash);
        if found.annotations().get(labels::RENDERED_HASH) != hash.as_ref() {
            return "is not what it should be";
        }
        let status = found.status.as_ref();
        let is_seen = status.is_some_and(|it| it.observed_generation == found.metadata.generation);
        let mut conditions = status.iter().flat_map(|status| &status.conditions);
        let is_ready = conditions.any(|it| it.type_ == "Ready" && it.status == "True");
        match is_seen && is_ready {
            true => "",
            false => "is not ready",
        }
    }

    /// Waits until the running pods are exactly the pods of the newest pod templates.
    async fn pods_run(&self, client: &Client) {
        let pods: Api<Pod> = Api::all(client.clone());
        let config = watcher::Config::default().labels("app.kubernetes.io/name");
        let news = watcher(pods, config).default_backoff();
        let mut news = std::pin::pin!(news);
        let wanted = self.wanted_pods(client).await;
        let run = async {
            while running(self, client).await != wanted {
                news.next().await.unwrap().unwrap();
            }
        };
        if tokio::time::timeout(HANG, run).await.is_err() {
            assert_eq!(running(self, client).await, wanted);
        }
    }

    /// Returns the pods that the Deployments should have, with one entry per replica.
    async fn wanted_pods(&self, client: &Client) -> Vec<String> {
        let mut wanted = Vec::new();
        for place in &self.places {
            let resource =
                ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
            let deployments: Api<DynamicObject> =
                Api::namespaced_with(client.clone(), place, &resource);
            for deployment in deployments.list(&ListParams::default()).await.unwrap() {
                let spec = &deployment.data["spec"];
                let one = pod(place, &deployment.name_any(), &spec["template"]["spec"]);
                let replicas = spec["replicas"].as_u64().unwrap() as usize;
                wanted.extend(std::iter::repeat_n(one, replicas));
            }
        }
        wanted.sort();
        wanted
    }

    /// Deletes the ReleasePins with all their objects, and then the namespaces.
    async fn clear(&self, target: &Target) {
        let client = target.client();
        let pins: Api<ReleasePin> = Api::namespaced(client.clone(), &self.namespace);
        let rendered: Api<RenderedRelease> = Api::namespaced(client.clone(), &self.namespace);
        // The components are deleted first, because autoDeploy would create their ReleasePins again.
        let components: Api<bowline::api::Component> =
            Api::namespaced(client.clone(), &self.namespace);
        let every = ListParams::default();
        let now = DeleteParams::default();
        components.delete_collection(&now, &every).await.unwrap();
        pins.delete_collection(&now, &every).await.unwrap();
        let controllers = Controllers::start(target);
        for name in self.rendered.keys() {
            let gone = |it: Option<&RenderedRelease>| it.is_none();
            let gone = await_condition(rendered.clone(), name, gone);
            let gone = tokio::time::timeout(HANG, gone).await;
            gone.unwrap_or_else(|_| panic!("{name} does not go"))
                .unwrap();
        }
        controllers.stop().await;
        let live = live(self, &client).await;
        let left: Vec<&String> = live.keys().collect();
        assert!(left.is_empty(), "resources are left: {left:?}");
        let namespaces: Api<Namespace> = Api::all(client.clone());
        for name in self.places.iter().chain([&self.namespace]) {
            let uid = namespaces.get(name).await.unwrap().uid().unwrap();
            namespaces.delete(name, &now).await.unwrap();
            let gone = await_condition(namespaces.clone(), name, conditions::is_deleted(&uid));
            let gone = tokio::time::timeout(HANG, gone).await;
            gone.unwrap_or_else(|_| panic!("{name} does not go"))
                .unwrap();
        }
        let own = json!({"metadata": {"name": self.namespace}});
        let own = serde_json::from_value(own).unwrap();
        namespaces
            .create(&PostParams::default(), &own)
            .await
            .unwrap();
    }
}

/// Creates the cluster-wide objects that the example needs.
async fn prepare(client: &Client) {
    let classes: Api<PriorityClass> = Api::all(client.clone());
    let class = json!({"metadata": {"name": "shop-critical"}, "value": 1000});
    let class = serde_json::from_value(class).unwrap();
    classes
        .create(&PostParams::default(), &class)
        .await
        .unwrap();
}

/// The controllers of the test. They run in this process.
struct Controllers {
    told: oneshot::Sender<()>,
    running: JoinHandle<()>,
    _folder: tempfile::TempDir,
}

impl Controllers {
    fn start(target: &Target) -> Self {
        let client = target.client_of(labels::MANAGER_CONTROLLER);
        let folder = tempfile::tempdir().unwrap();
        let context = Arc::new(Context::new(
            client.clone(),
            Some(target.namespace.clone()),
            Arc::new(Timestamp::now),
            Git::new(Settings::new(folder.path())),
            Arc::default(),
        ));
        let planes = DataPlanes::given(client, target.name == "embedded", BTreeMap::new());
        let loops = vec![
            Loop::new("pin", pin::run),
            Loop::new("component", component::run),
            Loop::new("release", release::run),
            Loop::new("retention", retention::run),
            Loop::new("renderedrelease", move |context, stop| {
                let ways = DataPlaneOptions {
                    simulator: simulator::Settings {
                        step: STEP,
                        ..simulator::Settings::default()
                    },
                    ..DataPlaneOptions::new(planes.clone())
                };
                rendered::run(context, ways, stop)
            }),
        ];
        let (told, stopped) = oneshot::channel::<()>();
        let stop = all::stop(async {
            let _ = stopped.await;
        });
        Self {
            told,
            running: tokio::spawn(async move { all::run(loops, &context, stop).await }),
            _folder: folder,
        }
    }

    async fn stop(self) {
        drop(self.told);
        self.running.await.unwrap();
    }
}

/// The state that must be equal for every order of the objects: texts by the name of the object.
struct State {
    rendered: BTreeMap<String, String>,
    snapshots: BTreeMap<String, String>,
    releases: BTreeMap<String, String>,
    pins: BTreeMap<String, String>,
    live: BTreeMap<String, String>,
    pods: Vec<String>,
}

impl State {
    async fn of(example: &Example, client: &Client, has_pods: bool) -> Self {
        let every = ListParams::default();
        let namespace = &example.namespace;
        let rendered: Api<RenderedRelease> = Api::namespaced(client.clone(), namespace);
        let rendered = rendered.list(&every).await.unwrap();
        let snapshots: Api<ComponentEnvSnapshot> = Api::namespaced(client.clone(), namespace);
        let snapshots = snapshots.list(&every).await.unwrap();
        let releases: Api<Release> = Api::namespaced(client.clone(), namespace);
        let releases = releases.list(&every).await.unwrap();
        let pins: Api<ReleasePin> = Api::namespaced(client.clone(), namespace);
        let pins = pins.list(&every).await.unwrap().items;
        let entries: Api<AuditEntry> = Api::namespaced(client.clone(), namespace);
        let entries = entries.list(&every).await.unwrap().items;
        let verdict = audit::verify(&bowline::subjects::release_pin::kind::live(&pins), &entries);
        assert!(verdict.is_valid(), "{verdict:?}");
        assert_eq!(verdict.warnings, [], "no gaps");
        Self {
            rendered: rendered
                .iter()
                .map(|it| (it.name_any(), json!(it.spec).to_string()))
                .collect(),
            snapshots: snapshots
                .iter()
                .map(|it| (it.name_any(), json!(it.spec).to_string()))
                .collect(),
            releases: releases
                .iter()
                .map(|it| (it.name_any(), json!(it.spec).to_string()))
                .collect(),
            pins: pins
                .iter()
                .map(|pin| (pin.name_any(), word(pin, &entries)))
                .collect(),
            live: live(example, client).await,
            pods: match has_pods {
                true => running(example, client).await,
                false => Vec::new(),
            },
        }
    }

    /// Checks that the state is equal to the expected result.
    fn verify(&self, example: &Example, order: u64) {
        let found: BTreeMap<&String, &str> = self
            .rendered
            .iter()
            .map(|(name, spec)| (name, spec.as_str()))
            .collect();
        for (name, wanted) in &example.rendered {
            let wanted = serde_json::to_string(&wanted.resources).unwrap();
            let spec: Value = serde_json::from_str(found[name]).unwrap();
            let resources = serde_json::to_string(&spec["resources"]).unwrap();
            assert_eq!(resources, wanted, "order {order}: {name}");
        }
        assert_eq!(self.rendered.len(), example.rendered.len(), "order {order}");
        let resources = example.rendered.values().flat_map(|it| &it.resources);
        let mut wanted: Vec<String> = resources.map(|it| identity(&it.object)).collect();
        wanted.sort();
        let live: Vec<&String> = self.live.keys().collect();
        assert_eq!(live, wanted.iter().collect::<Vec<_>>(), "order {order}");
        // Each ReleasePin has one snapshot, so its release was resolved only once.
        assert_eq!(self.snapshots.len(), self.pins.len(), "order {order}");
        assert_eq!(self.pins.len(), example.rendered.len(), "order {order}");
    }

    fn compare(&self, other: &Self, order: usize) {
        let parts = [
            (&self.rendered, &other.rendered),
            (&self.snapshots, &other.snapshots),
            (&self.releases, &other.releases),
            (&self.pins, &other.pins),
            (&self.live, &other.live),
        ];
        for (first, other) in parts {
            let names = |of: &BTreeMap<String, String>| of.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(first), names(other), "order {order}");
            for (name, text) in first {
                assert_eq!(text, &other[name], "order {order}: {name}");
            }
        }
        assert_eq!(self.pods, other.pods, "order {order}");
    }
}

/// Returns a text for a ReleasePin and its audit entries, without times and uids.
fn word(pin: &ReleasePin, entries: &[AuditEntry]) -> String {
    let status = pin.status.clone().unwrap_or_default();
    let conditions = status.conditions.iter();
    let conditions: Vec<String> = conditions
        .map(|it| format!("{} {} {}", it.type_, it.status, it.reason))
        .collect();
    let outcomes = status.outcomes.iter();
    let outcomes: Vec<_> = outcomes
        .map(|it| (it.generation, &it.release, it.healthy))
        .collect();
    let entries = entries.iter();
    let entries = entries.filter(|it| it.spec.subject.name == pin.name_any());
    let mut entries: Vec<_> = entries.map(|it| it.spec.revision).collect();
    entries.sort();
    json!({
        "generation": pin.metadata.generation, "spec": pin.spec, "labels": pin.labels(),
        "applied": status.applied_release, "snapshot": status.snapshot, "conditions": conditions,
        "outcomes": outcomes, "entries": entries,
    })
    .to_string()
}

/// Returns the live objects that bowline applied, as texts. Leaves out the fields that the server sets or
/// that depend on the time.
async fn live(example: &Example, client: &Client) -> BTreeMap<String, String> {
    let resources = example.rendered.values().flat_map(|it| &it.resources);
    let kinds: BTreeMap<String, Value> = resources
        .map(|it| {
            let object = Value::Object(it.object.clone());
            (
                format!("{} {}", object["apiVersion"], object["kind"]),
                object,
            )
        })
        .collect();
    // The selector leaves out the objects of other tests on the same cluster.
    let ours = format!(
        "{}={},{}={}",
        labels::MANAGED_BY,
        labels::RELEASE_CONTROLLER,
        labels::RELEASE_NAMESPACE,
        example.namespace
    );
    let ours = ListParams::default().labels(&ours);
    let mut found = BTreeMap::new();
    for of_kind in kinds.values() {
        // The list covers all namespaces, so that an object in a wrong namespace is found.
        for object in api(client, of_kind, None).list(&ours).await.unwrap() {
            let mut object = serde_json::to_value(object).unwrap();
            object["apiVersion"] = of_kind["apiVersion"].clone();
            object["kind"] = of_kind["kind"].clone();
            strip(&mut object);
            let name = identity(object.as_object().unwrap());
            found.insert(name, object.to_string());
        }
    }
    found
}

/// Removes the fields of an object that the server sets or that depend on the order.
fn strip(object: &mut Value) {
    let removed = [
        ("/metadata", "uid"),
        ("/metadata", "resourceVersion"),
        ("/metadata", "creationTimestamp"),
        ("/metadata", "generation"),
        ("/metadata", "managedFields"),
        ("/metadata/labels", labels::RELEASE_UID),
        ("/metadata/annotations", "deployment.kubernetes.io/revision"),
        ("/spec", "clusterIP"),
        ("/spec", "clusterIPs"),
        ("", "status"),
    ];
    let replicas = object.pointer("/status/readyReplicas").cloned();
    for (place, field) in removed {
        if let Some(Value::Object(map)) = object.pointer_mut(place) {
            map.remove(field);
        }
    }
    let annotations = object.pointer("/metadata/annotations");
    if annotations.is_some_and(|it| it.as_object().is_some_and(serde_json::Map::is_empty)) {
        object["metadata"]
            .as_object_mut()
            .unwrap()
            .remove("annotations");
    }
    object["ready"] = json!(replicas);
}

/// Returns the running pods, each as a text with its owner and its images. Leaves out pods that are being
/// deleted.
async fn running(example: &Example, client: &Client) -> Vec<String> {
    let mut found = Vec::new();
    for place in &example.places {
        let pods: Api<Pod> = Api::namespaced(client.clone(), place);
        for it in pods.list(&ListParams::default()).await.unwrap() {
            let owners = it.owner_references();
            // Skips the pods of jobs, because their number depends on the time.
            if owners.iter().any(|owner| owner.kind == "Job") {
                continue;
            }
            let value = serde_json::to_value(&it).unwrap();
            let ready = value["status"]["conditions"].as_array();
            let ready = ready.is_some_and(|all| {
                all.iter()
                    .any(|one| one["type"] == "Ready" && one["status"] == "True")
            });
            let of = it.labels().get("app.kubernetes.io/name");
            let mut text = pod(place, of.map_or("", String::as_str), &value["spec"]);
            if !ready {
                text += " not ready";
            }
            if it.metadata.deletion_timestamp.is_some() {
                text += " going";
            }
            found.push(text);
        }
    }
    found.sort();
    found
}

fn pod(place: &str, of: &str, spec: &Value) -> String {
    let containers = spec["containers"].as_array().unwrap().iter();
    let images: Vec<&str> = containers.map(|it| it["image"].as_str().unwrap()).collect();
    format!("{place} {of} {}", images.join(" "))
}

fn identity(object: &serde_json::Map<String, Value>) -> String {
    let metadata = &object["metadata"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!(
        "{} {} {}",
        text(&object["kind"]),
        text(&metadata["namespace"]),
        text(&metadata["name"])
    )
}

/// Returns an API client for the kind of the object `of`, in one namespace; in all namespaces if `namespace`
/// is None.
fn api(client: &Client, of: &Value, namespace: Option<&str>) -> Api<DynamicObject> {
    let version = of["apiVersion"].as_str().unwrap();
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = of["kind"].as_str().unwrap();
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = match kind.kind.as_str() {
        // The plural of EnvSettings is equal to the singular.
        "EnvSettings" => ApiResource::from_gvk_with_plural(&kind, "envsettings"),
        _ => ApiResource::from_gvk(&kind),
    };
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Returns the YAML documents of all files below a directory. Skips nested git repositories.
fn documents(directory: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            if !path.join(".bowline.toml").exists() {
                found.extend(documents(&path));
            }
        } else if path.extension().is_some_and(|it| it == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            for document in text.split("\n---\n") {
                let object: Value = serde_yaml::from_str(document).unwrap();
                found.extend((!object.is_null()).then_some(object));
            }
        }
    }
    found
}
