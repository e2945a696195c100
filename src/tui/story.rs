//! Stories: keys in, screen out, on a real embedded store with the real runner.
//!
//! A story goes on when what it waits for is on the screen; nothing in it sleeps.

mod repository;
mod tests;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, Stream, StreamExt};
use jiff::tz::TimeZone;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Client, ResourceExt};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde_json::json;
use tempfile::TempDir;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;

use super::effect::Effect;
use super::keymap::Key;
use super::model::{Event, Ground, Model};
use super::picture;
use super::run;
use super::runner::{self, Runner, Session};
use super::still;
use super::theme::Depth;
use super::update::update;
use super::view::view;
use crate::api::{self, Release, ReleasePin, names};
use crate::connect::{self, Connection, DataPlanes, Environment, Options, StoreFile};
use crate::engine::actions::release::{self, Source};
use crate::engine::catalog::Catalog;
use crate::engine::presence;
use crate::engine::world::World;
use crate::engine::world::feed::Touched;
use crate::resolve::git::{Git, Settings};
use crate::yaml;

/// Nothing takes this long; what does hangs.
const HANG: Duration = Duration::from_secs(60);

/// What runs where in a story, before it begins.
const SHOP: &str = "
apiVersion: openchoreo.dev/v1alpha1
kind: Component
metadata: {name: cart}
spec: {componentType: deployment/web, owner: {projectName: shop}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Component
metadata: {name: ledger}
spec: {componentType: deployment/web, owner: {projectName: shop}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: web}
spec:
  workloadType: deployment
  resources:
    - id: config
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: \"${metadata.name}\"}
        data: {image: \"${workload.image}\"}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Workload
metadata: {name: cart}
spec: {image: shop/cart:v1}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Workload
metadata: {name: ledger}
spec: {image: shop/ledger:v1}
---
apiVersion: openchoreo.dev/v1alpha1
kind: DataPlane
metadata: {name: here}
spec: {embedded: {}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Environment
metadata: {name: dev}
spec: {dataPlaneRef: {name: here}, namespace: shop-dev}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Environment
metadata: {name: staging}
spec: {dataPlaneRef: {name: here}, namespace: shop-staging}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Environment
metadata: {name: prod}
spec: {dataPlaneRef: {name: here}, namespace: shop-prod, isProduction: true}
---
apiVersion: openchoreo.dev/v1alpha1
kind: DeploymentPipeline
metadata: {name: default}
spec:
  promotionPaths:
    - sourceEnvironmentRef: {name: dev}
      targetEnvironmentRefs: [{name: staging}]
    - sourceEnvironmentRef: {name: staging}
      targetEnvironmentRefs: [{name: prod}]
";

/// A person at the keyboard, and the store that they work on.
pub struct Story {
    /// The model.
    pub model: Model,
    /// The client of the person.
    pub client: Client,
    session: Arc<Session>,
    runner: Runner,
    answers: UnboundedReceiver<Event>,
    versions: watch::Receiver<u64>,
    touched: std::pin::Pin<Box<dyn Stream<Item = Touched> + Send>>,
    /// What was put on the clipboard.
    pub copied: Vec<String>,
    options: Options,
    environment: Environment,
    _directory: TempDir,
    /// Whoever reads the outcomes of pins believes that a controller wrote them.
    _lock: Option<std::fs::File>,
}

impl Story {
    /// Opens the shop: cart at v3 in dev, v2 in staging and v2 in prod, where v1 was good before; ledger at
    /// v1 everywhere. Nothing reconciles: what pins say of themselves is written by the story.
    pub async fn shop() -> Self {
        Self::with(Options::default()).await
    }

    /// Opens the shop with other flags.
    pub async fn with(options: Options) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("shop.db");
        let lock = std::fs::File::create(presence::lock_file(&store)).unwrap();
        lock.lock().unwrap();
        let environment = Environment {
            user: "ana".to_owned(),
            ..Environment::default()
        };
        let filling = Options {
            embedded: Some(StoreFile::At(store.clone())),
            ..Options::default()
        };
        let connection = connect::connect(&filling, &environment).await.unwrap();
        fill(&connection).await;
        let options = Options {
            embedded: filling.embedded,
            ..options
        };
        Self::open(options, environment, directory, Some(lock)).await
    }

    /// Sits down in front of a target.
    async fn open(
        options: Options,
        environment: Environment,
        directory: TempDir,
        lock: Option<std::fs::File>,
    ) -> Self {
        let connection = connect::connect(&options, &environment).await.unwrap();
        let client = connection.client.clone();
        let planes = DataPlanes::of(&connection, &options, &environment);
        let session = Arc::new(Session::start(connection, git(directory.path()), planes));
        let ground = Ground {
            zone: TimeZone::UTC,
            ..run::ground(&session, &environment, &options)
        };
        let (sender, answers) = mpsc::unbounded_channel();
        runner::introduce(&session, &sender);
        let mut story = Self {
            model: Model::new(ground, still::look("dark", Depth::True), (120, 40)),
            client,
            versions: session.feed.versions(),
            touched: Box::pin(session.feed.touched()),
            runner: Runner::new(session.clone(), sender),
            session,
            answers,
            copied: Vec::new(),
            options,
            environment,
            _directory: directory,
            _lock: lock,
        };
        story.tell(Event::World(Vec::new()));
        story.shows("ledger").await;
        let live = |world: &World| world.is_live();
        tokio::time::timeout(HANG, story.session.feed.when(live))
            .await
            .unwrap();
        story.follow();
        story
    }

    /// Returns a client of somebody else.
    pub async fn somebody(&self, user: &str) -> Connection {
        let options = Options {
            impersonate: Some(user.to_owned()),
            readonly: false,
            ..self.options.clone()
        };
        connect::connect(&options, &self.environment).await.unwrap()
    }

    fn tell(&mut self, event: Event) {
        let effects = {
            let world = self.session.feed.world();
            update(&mut self.model, &world, self.session.now(), event)
        };
        for effect in effects {
            if let Some(Effect::Copy(text)) = self.runner.run(effect) {
                self.copied.push(text);
            }
        }
    }

    /// Takes in what the watches have told.
    fn follow(&mut self) {
        let mut touched = Vec::new();
        while let Some(Some(one)) = self.touched.next().now_or_never() {
            touched.push(one);
        }
        if !touched.is_empty() {
            self.tell(Event::World(touched));
        }
    }

    /// Presses keys, written as keymaps write them.
    pub fn keys(&mut self, keys: &str) -> &mut Self {
        for key in Key::sequence(keys).unwrap() {
            self.tell(Event::Key(key.event()));
        }
        self
    }

    /// Types a text.
    pub fn types(&mut self, text: &str) -> &mut Self {
        for c in text.chars() {
            let key = match c {
                ' ' => "space".parse::<Key>(),
                c => c.to_string().parse::<Key>(),
            };
            self.tell(Event::Key(key.unwrap().event()));
        }
        self
    }

    /// Returns the screen as text.
    pub fn screen(&self) -> String {
        let (width, height) = self.model.size;
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        view(
            &self.model,
            &self.session.feed.world(),
            self.session.now(),
            &mut buffer,
        );
        picture::text(&buffer)
    }

    /// Waits until the screen shows something.
    #[track_caller]
    pub fn shows<'s>(&'s mut self, words: &'s str) -> impl Future<Output = &'s mut Self> + 's {
        let caller = std::panic::Location::caller();
        async move {
            let shown = async {
                while !self.screen().contains(words) {
                    tokio::select! {
                        event = self.answers.recv() => {
                            let event = event.expect("the runner lives as long as the story");
                            self.tell(event);
                        }
                        _ = self.versions.changed() => self.follow(),
                    }
                }
            };
            if tokio::time::timeout(HANG, shown).await.is_err() {
                panic!("{words:?} is not shown, at {caller}:\n{}", self.screen());
            }
            self
        }
    }

    /// Asserts that the screen does not show something.
    #[track_caller]
    pub fn hides(&mut self, words: &str) -> &mut Self {
        let screen = self.screen();
        assert!(!screen.contains(words), "{words:?} is shown:\n{screen}");
        self
    }

    /// Reads a pin.
    pub async fn pin(&self, component: &str, environment: &str) -> ReleasePin {
        let pins: Api<ReleasePin> = Api::default_namespaced(self.client.clone());
        pins.get(&names::pin(component, environment)).await.unwrap()
    }
}

fn git(cache: &Path) -> Git {
    Git::new(Settings::new(cache))
}

/// Puts the shop into a store.
async fn fill(connection: &Connection) {
    let client = &connection.client;
    let kinds: Vec<ApiResource> = api::crds()
        .iter()
        .flat_map(|crd| {
            let names = &crd.spec.names;
            crd.spec.versions.iter().map(|version| {
                let kind = GroupVersionKind::gvk(&crd.spec.group, &version.name, &names.kind);
                ApiResource::from_gvk_with_plural(&kind, &names.plural)
            })
        })
        .collect();
    for document in yaml::documents("shop", SHOP).unwrap() {
        let object: DynamicObject = serde_json::from_value(document.value).unwrap();
        let types = object.types.clone().unwrap();
        let kind = kinds
            .iter()
            .find(|kind| kind.kind == types.kind && kind.api_version == types.api_version);
        let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), kind.unwrap());
        api.create(&PostParams::default(), &object).await.unwrap();
    }
    for (component, versions) in [("cart", &["v1", "v2", "v3"][..]), ("ledger", &["v1"])] {
        let catalog = Catalog::fetch(client, &connection.namespace, component)
            .await
            .unwrap();
        for version in versions {
            let mut definitions = catalog.definitions(component).unwrap();
            definitions.workload.spec.image = Some(format!("shop/{component}:{version}"));
            let made = release::release(&definitions, Some(version), &Source::Embedded);
            let releases: Api<Release> = Api::default_namespaced(client.clone());
            releases
                .create(&PostParams::default(), &made)
                .await
                .unwrap();
        }
    }
    for (component, environment, history) in [
        ("cart", "dev", &["v3"][..]),
        ("cart", "staging", &["v2"]),
        ("cart", "prod", &["v1", "v2"]),
        ("ledger", "dev", &["v1"]),
        ("ledger", "staging", &["v1"]),
        ("ledger", "prod", &["v1"]),
    ] {
        pinned(client, component, environment, history).await;
    }
}

/// Pins releases one after the other, each of which was healthy.
pub async fn pinned(client: &Client, component: &str, environment: &str, history: &[&str]) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
    let name = names::pin(component, environment);
    let mut outcomes = Vec::new();
    for (minute, version) in history.iter().enumerate() {
        let release = format!("{component}-{version}");
        let generation = match minute {
            0 => {
                let pin: ReleasePin = serde_json::from_value(json!({
                    "apiVersion": "openchoreo.dev/v1alpha1", "kind": "ReleasePin",
                    "metadata": {"name": name, "labels": {
                        "openchoreo.dev/component": component, "openchoreo.dev/environment": environment,
                    }},
                    "spec": {"component": component, "environment": environment, "releaseRef": {"name": release}},
                }))
                .unwrap();
                pins.create(&PostParams::default(), &pin)
                    .await
                    .unwrap()
                    .metadata
                    .generation
            }
            _ => {
                let patch = json!({"spec": {"releaseRef": {"name": release}}});
                let moved = pins
                    .patch(&name, &PatchParams::default(), &Patch::Merge(patch))
                    .await;
                moved.unwrap().metadata.generation
            }
        };
        let since = format!("2026-01-06T12:{minute:02}:00Z");
        if let Some(last) = outcomes.last_mut() {
            let last: &mut serde_json::Value = last;
            last["until"] = json!(since);
        }
        outcomes.push(json!({
            "generation": generation, "release": release, "since": since, "healthy": true,
        }));
    }
    settled(client, component, environment, json!(outcomes)).await;
}

/// Writes what a controller would: that the pin was seen as it is, and is ready.
pub async fn settled(
    client: &Client,
    component: &str,
    environment: &str,
    outcomes: serde_json::Value,
) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
    let name = names::pin(component, environment);
    let pin = pins.get(&name).await.unwrap();
    let generation = pin.metadata.generation;
    let mut status = json!({
        "appliedRelease": pin.spec.release_ref.name, "observedGeneration": generation,
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "ReconcileSuccess", "message": "everything is healthy",
            "lastTransitionTime": "2026-01-06T12:30:00Z", "observedGeneration": generation,
        }],
    });
    if outcomes.is_array() {
        status["outcomes"] = outcomes;
    }
    let patch = Patch::Merge(json!({"status": status}));
    pins.patch_status(&pin.name_any(), &PatchParams::default(), &patch)
        .await
        .unwrap();
}
