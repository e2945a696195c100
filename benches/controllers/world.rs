//! Creates many ReleasePins for the controllers to reconcile. Each ReleasePin has a claimed release and an
//! audit entry.

use std::collections::BTreeMap;

use bowline::api::openchoreo::pin::ReleasePin;
use bowline::api::{labels, names};
use bowline::engine::audit::AuditWriter;
use bowline::engine::subject::dynamic;
use bowline::fixture::{self, within};
use bowline::subjects::release_pin::actions::release::{Source, release};
use bowline::subjects::release_pin::catalog::Catalog;
use bowline::subjects::release_pin::kind::KIND;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::json;

/// The definitions from which each component of the benchmark is made.
const DEFINITIONS: &str = r#"
apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: web}
spec:
  workloadType: deployment
  schema: {parameters: {message: "string | default=none", port: "integer | default=80"}}
  resources:
    - id: config
      template:
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: "${metadata.name}"}
        data: {image: "${workload.image}", message: "${spec.message}"}
    - id: account
      template:
        apiVersion: v1
        kind: ServiceAccount
        metadata: {name: "${metadata.name}"}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Component
metadata: {name: NAME}
spec: {componentType: deployment/web, parameters: {message: hello}}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Workload
metadata: {name: NAME}
spec: {image: "shop/NAME:1"}
"#;

const AT_ONCE: usize = 16;

pub struct World {
    pub namespace: String,
    client: Client,
    /// For each component, the uid and resourceVersion of its release and of its ReleasePin. Recorded writes
    /// contain them.
    pub pins: BTreeMap<String, [(String, String); 2]>,
}

impl World {
    pub async fn make(client: &Client, namespace: &str, pins: usize) -> Self {
        let mut world = Self {
            namespace: namespace.to_owned(),
            client: client.clone(),
            pins: BTreeMap::new(),
        };
        let own = json!({"spec": {"namespace": world.data_plane()}});
        let environment = fixture::with(fixture::environment("dev"), own);
        for object in [
            fixture::namespace(namespace),
            fixture::to_json(&within(namespace, fixture::data_plane_in_cluster())),
            fixture::to_json(&within(namespace, environment)),
        ] {
            fixture::create(client, &object).await.unwrap();
        }
        let made = futures::stream::iter(0..pins).map(|number| world.component(number));
        world.pins = made.buffer_unordered(AT_ONCE).collect().await;
        world
    }

    /// Returns the namespace in the data plane that gets the resources.
    pub fn data_plane(&self) -> String {
        format!("{}-dev", self.namespace)
    }

    async fn component(&self, number: usize) -> (String, [(String, String); 2]) {
        let name = format!("c{number}");
        let text = DEFINITIONS.replace("NAME", &name);
        let catalog = Catalog::from_texts([("world.yaml", text.as_str())]).unwrap();
        let definitions = catalog.definitions(&name).unwrap();
        let mut release = release(&definitions, Some("1"), &Source::Embedded);
        let pinned = (labels::PINNED.to_owned(), labels::PINNED_TRUE.to_owned());
        release.labels_mut().extend([pinned]);
        let release_name = release.name_any();
        let releases = Api::namespaced(self.client.clone(), &self.namespace);
        let release = releases
            .create(&PostParams::default(), &release)
            .await
            .unwrap();
        let pin = fixture::new_pin(&name, "dev", &release_name);
        let pins: Api<ReleasePin> = Api::namespaced(self.client.clone(), &self.namespace);
        let pin = pins.create(&PostParams::default(), &pin).await.unwrap();
        let audit = AuditWriter::of(
            &self.client,
            &self.namespace,
            "admin".to_owned(),
            Timestamp::now(),
        );
        audit.record(&KIND, &dynamic(&pin)).await.unwrap();
        (name, [known(&release), known(&pin)])
    }

    /// Waits until every ReleasePin of this world is ready.
    pub async fn ready(&self) {
        let pins: Api<ReleasePin> = Api::namespaced(self.client.clone(), &self.namespace);
        let found = watcher(pins, watcher::Config::default()).default_backoff();
        let mut found = std::pin::pin!(found.applied_objects());
        let mut unready: std::collections::BTreeSet<String> = self
            .pins
            .keys()
            .map(|component| names::pin(component, "dev"))
            .collect();
        while let Some(pin) = found.try_next().await.unwrap() {
            let conditions = pin.status.iter().flat_map(|status| &status.conditions);
            let mut ready = conditions.filter(|it| it.type_ == "Ready" && it.status == "True");
            if ready.next().is_some() {
                unready.remove(&pin.name_any());
            }
            if unready.is_empty() {
                return;
            }
        }
    }
}

/// Returns the uid and the resourceVersion of an object.
fn known(object: &impl ResourceExt) -> (String, String) {
    (object.uid().unwrap(), object.resource_version().unwrap())
}
