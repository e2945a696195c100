//! A shop with one component on the embedded API, for the tests of the controllers.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use http::{Method, Request, Response};
use jiff::Timestamp;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::core::NamespaceResourceScope;
use kube::runtime::wait::await_condition;
use kube::{Client, Resource, ResourceExt};
use kube_embedded::{Embedded, User};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tower::Service;

use super::Context;
use super::metrics::Metrics;
use crate::api::hold::Hold;
use crate::api::{Release, ReleasePin, RenderedRelease, names};
use crate::fixture;
use crate::resolve::git::{Allowed, Git, Settings};

/// The longest wait for one event; after it, the test fails.
const HANG: Duration = Duration::from_secs(30);

/// The time of the controllers' clock at the start of a test.
pub(super) const NOW: &str = "2026-01-06T12:00:00Z";

/// The definitions of the component: a ConfigMap with the image, and with a message that settings can change.
pub(super) const DEFINITIONS: &str = "
apiVersion: openchoreo.dev/v1alpha1
kind: Component
metadata: {name: cart}
spec: {componentType: deployment/web, owner: {projectName: shop}, parameters: {message: hello}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: web}
spec:
  workloadType: deployment
  schema: {parameters: {message: \"string | default=none maxLength=20\"}}
  resources:
    - id: config
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: \"${metadata.name}\"}
        data: {image: \"${workload.image}\", message: \"${spec.message}\"}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Workload
metadata: {name: cart}
spec: {image: shop/cart}
";

/// Two environments, dev and prod, on one embedded data plane.
pub(super) const ENVIRONMENTS: &str = "
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
metadata: {name: prod}
spec: {dataPlaneRef: {name: here}, namespace: shop-prod, isProduction: true}
---
apiVersion: openchoreo.dev/v1alpha1
kind: DeploymentPipeline
metadata: {name: default}
spec: {promotionPaths: [{sourceEnvironmentRef: {name: dev}, targetEnvironmentRefs: [{name: prod}]}]}
";

/// The shop on an embedded store. The requests of `client` come from the test, so they are not recorded.
pub(super) struct Shop {
    pub(super) embedded: Embedded,
    pub(super) client: Client,
    pub(super) folder: tempfile::TempDir,
    now: Arc<Mutex<Timestamp>>,
}

/// The recorded requests of a controller, in their order. A test can stop the answers to simulate a crash.
#[derive(Clone, Default)]
pub(super) struct Requests {
    asked: Arc<Mutex<Vec<String>>>,
    written: Arc<AtomicUsize>,
    /// The number of writes that still get an answer; None for no limit. After the last one, no request gets
    /// an answer.
    fuse: Arc<Mutex<Option<usize>>>,
    blown: Arc<tokio::sync::Notify>,
}

impl Requests {
    /// Returns the recorded requests since the last call, without watches and lists.
    pub(super) fn take(&self) -> Vec<String> {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *asked)
    }

    /// Answers only this number of writes. Every later request waits for ever, as after a crash.
    pub(super) fn cut_after(&self, writes: usize) {
        *self.fuse.lock().unwrap() = Some(writes);
    }

    /// Waits until a request of the controller gets no answer.
    pub(super) async fn blown(&self) {
        self.blown.notified().await;
    }

    pub(super) fn written(&self) -> usize {
        self.written.load(Ordering::SeqCst)
    }

    /// Records a request, and returns whether the request gets an answer.
    fn note(&self, request: &Request<Body>) -> bool {
        let path = request.uri().path().trim_start_matches("/apis/");
        let is_read = *request.method() == Method::GET;
        let writes = !is_read && !path.contains("selfsubjectreviews");
        let at = match writes {
            true => self.written.fetch_add(1, Ordering::SeqCst),
            false => 0,
        };
        let fuse = *self.fuse.lock().unwrap_or_else(PoisonError::into_inner);
        if fuse.is_some_and(|fuse| self.written() > fuse || (writes && at >= fuse)) {
            self.blown.notify_one();
            return false;
        }
        // The path of one object: group/version/namespaces/default/resource/name.
        let of_one = path.split('/').count() > 5;
        if of_one || !is_read {
            let parts = path.split('/').skip(4).collect::<Vec<_>>().join("/");
            let line = format!("{} {parts}", request.method());
            self.asked
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(line);
        }
        true
    }
}

/// A running controller in a test.
pub(super) struct Running {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Running {
    pub(super) async fn stop(self) {
        let _ = self.stop.send(());
        tokio::time::timeout(HANG, self.task)
            .await
            .unwrap()
            .unwrap();
    }
}

/// A future that is ready when the controller has to stop.
pub(super) type Stop = std::pin::Pin<Box<dyn Future<Output = ()> + Send + Sync>>;

/// Starts a controller in a task.
pub(super) fn start<F>(context: &Arc<Context>, run: impl FnOnce(Arc<Context>, Stop) -> F) -> Running
where
    F: Future<Output = ()> + Send + 'static,
{
    let (stop, stopped) = oneshot::channel();
    let stopped: Stop = Box::pin(stopped.map(|_| ()));
    let task = tokio::spawn(run(context.clone(), stopped));
    Running { stop, task }
}

impl Shop {
    /// Opens a shop with environments and definitions, but without a release.
    pub(super) async fn open() -> Self {
        let shop = Self::empty().await;
        shop.apply(ENVIRONMENTS).await;
        shop.apply(DEFINITIONS).await;
        shop
    }

    pub(super) async fn empty() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let embedded = fixture::store::open(&file, "ana").await;
        Self {
            client: embedded.client("default"),
            embedded,
            folder,
            now: Arc::new(Mutex::new(NOW.parse().unwrap())),
        }
    }

    /// Returns a context for controllers, and the record of the controllers' requests.
    pub(super) fn context(&self) -> (Arc<Context>, Requests) {
        let requests = Requests::default();
        let user = User {
            name: "controller".to_owned(),
            groups: vec!["system:masters".to_owned()],
        };
        let (inner, noted) = (self.embedded.as_user(user), requests.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let mut inner = inner.clone();
            let passes = noted.note(&request);
            async move {
                if !passes {
                    return futures::future::pending().await;
                }
                let answer: Response<_> = Service::call(&mut inner, request)
                    .map(|answer| answer.unwrap_or_else(|never| match never {}))
                    .await;
                Ok::<_, std::io::Error>(answer)
            }
            .boxed()
        });
        let now = self.now.clone();
        let git = Settings {
            allowed: Allowed {
                file: true,
                loopback_http: true,
            },
            ..Settings::new(self.folder.path().join("git-cache"))
        };
        let context = Context::new(
            Client::new(service, "default"),
            Some("default".to_owned()),
            Arc::new(move || *now.lock().unwrap_or_else(PoisonError::into_inner)),
            Git::new(git),
            Arc::new(Metrics::default()),
        );
        (Arc::new(context), requests)
    }

    /// Sets the time of the controllers' clock.
    pub(super) fn at(&self, now: &str) {
        *self.now.lock().unwrap() = now.parse().unwrap();
    }

    pub(super) fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::default_namespaced(self.client.clone())
    }

    /// Applies YAML documents as kubectl does.
    pub(super) async fn apply(&self, documents: &str) {
        for document in fixture::documents_of(documents) {
            let object: DynamicObject = fixture::parse(document);
            let resource = fixture::resource_of(&object);
            let api: Api<DynamicObject> =
                Api::default_namespaced_with(self.client.clone(), &resource);
            let kubectl = PatchParams::apply("kubectl").force();
            let name = object.name_any();
            api.patch(&name, &kubectl, &Patch::Apply(&object))
                .await
                .unwrap();
        }
    }

    /// Creates a release of the component cart without labels and annotations. `version` becomes a part of
    /// the name.
    pub(super) async fn release(&self, version: &str) -> String {
        let mut made = release_of(version);
        made.metadata.labels = None;
        made.metadata.annotations = None;
        self.create(&made).await
    }

    pub(super) async fn create(&self, release: &Release) -> String {
        let post = PostParams::default();
        let made = self.api().create(&post, release).await.unwrap();
        made.name_any()
    }

    /// Creates a ReleasePin of cart, or changes its release, as kubectl does.
    pub(super) async fn pin(&self, environment: &str, release: &str) -> ReleasePin {
        self.hold(environment, release, Vec::new()).await
    }

    pub(super) async fn hold(
        &self,
        environment: &str,
        release: &str,
        holds: Vec<Hold>,
    ) -> ReleasePin {
        let name = names::pin("cart", environment);
        let mut pin = fixture::new_pin("cart", environment, release);
        pin.spec.holds = holds;
        let kubectl = PatchParams::apply("kubectl").force();
        let pins = self.api::<ReleasePin>();
        pins.patch(&name, &kubectl, &Patch::Apply(&pin))
            .await
            .unwrap()
    }

    pub(super) async fn get_pin(&self, environment: &str) -> ReleasePin {
        self.api()
            .get(&names::pin("cart", environment))
            .await
            .unwrap()
    }

    /// Waits until `wanted` is true for an object. `wanted` gets `None` if the object does not exist.
    pub(super) async fn until<K>(
        &self,
        name: &str,
        wanted: impl Fn(Option<&K>) -> bool,
    ) -> Option<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + DeserializeOwned
            + Send
            + 'static,
    {
        let found = await_condition(self.api::<K>(), name, wanted);
        match tokio::time::timeout(HANG, found).await {
            Ok(found) => found.unwrap(),
            Err(_) => {
                let is = self.api::<K>().get_opt(name).await.unwrap();
                panic!("{name} did not become as wanted: {is:#?}")
            }
        }
    }

    /// Waits until the controller has observed a ReleasePin and a condition has the given reason.
    pub(super) async fn until_reason(
        &self,
        environment: &str,
        type_: &str,
        reason: &str,
    ) -> ReleasePin {
        let wanted = |pin: Option<&ReleasePin>| {
            pin.is_some_and(|pin| {
                let observed = pin
                    .status
                    .as_ref()
                    .and_then(|status| status.observed_generation);
                observed == pin.metadata.generation && self::reason(pin, type_) == reason
            })
        };
        let name = names::pin("cart", environment);
        self.until(&name, wanted).await.unwrap()
    }

    /// Writes the health of the resources to the status of a RenderedRelease, as the RenderedRelease
    /// controller does.
    pub(super) async fn report(&self, name: &str, health: &str) {
        let rendered = self.api::<RenderedRelease>();
        let found = rendered.get(name).await.unwrap();
        let ready = if health == "Healthy" { "True" } else { "False" };
        let status = json!({"status": {
            "observedGeneration": found.metadata.generation,
            "resources": [{"id": "config", "version": "v1", "kind": "ConfigMap", "name": "cart", "health": health, "message": "as it is"}],
            "conditions": [{
                "type": "Ready", "status": ready, "reason": health, "message": "as it is",
                "lastTransitionTime": NOW, "observedGeneration": found.metadata.generation,
            }],
        }});
        let patch: Patch<Value> = Patch::Merge(status);
        rendered
            .patch_status(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
}

/// Returns a release of cart in the form that bowline creates. `version` becomes a part of the name.
pub(super) fn release_of(version: &str) -> Release {
    fixture::release_of(DEFINITIONS, "cart", version)
}

/// Returns the reason of a condition of a ReleasePin.
pub(super) fn reason<'p>(pin: &'p ReleasePin, type_: &str) -> &'p str {
    let conditions = pin
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let found = crate::api::condition::find(conditions, type_);
    found.map_or("", |condition| &condition.reason)
}
