//! Writes many ReleasePins and releases to an API, in the same form as bowline stores them. The caller
//! chooses their size.

use bowline::api::openchoreo::pin::ReleasePin;
use bowline::api::{Release, names};
use bowline::fixture::{self, within};
use bowline::subjects::release_pin::actions::release::{Source, plain_spec, release};
use bowline::subjects::release_pin::catalog::Catalog;
use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

pub const NAMESPACE: &str = "shop";
pub const ENVIRONMENTS: [&str; 5] = ["dev", "test", "staging", "canary", "production"];
const OPENCHOREO: &str = "openchoreo.dev/v1alpha1";
const AT_ONCE: usize = 24;

/// How many objects to write, and how large they are.
#[derive(Clone, Copy)]
pub struct Amount {
    pub pins: usize,
    pub releases: usize,
    /// The size of the definitions in each release, before compression, in bytes.
    pub content: usize,
    /// Whether releases contain uncompressed definitions, which need much more memory in a server.
    pub tree: bool,
}

impl Amount {
    pub fn components(self) -> usize {
        self.pins.div_ceil(ENVIRONMENTS.len())
    }
}

pub fn component(number: usize) -> String {
    format!("service-{number:05}")
}

pub fn release_name(number: usize, version: usize) -> String {
    names::release(&component(number), &format!("v{version}"))
}

/// Writes the objects to an API. Returns the stored size of all releases in bytes.
pub async fn fill(client: &Client, amount: Amount) -> usize {
    let mut objects = vec![
        fixture::namespace(NAMESPACE),
        fixture::to_json(&within(NAMESPACE, fixture::data_plane_in_cluster())),
    ];
    let environments = ENVIRONMENTS.map(fixture::environment).into_iter();
    objects.extend(environments.map(|one| fixture::to_json(&within(NAMESPACE, one))));
    let pipeline = fixture::pipeline_through(&ENVIRONMENTS);
    objects.push(fixture::to_json(&within(NAMESPACE, pipeline)));
    for object in objects {
        fixture::create(client, &object).await.unwrap();
    }
    let releases: Api<Release> = Api::namespaced(client.clone(), NAMESPACE);
    let made = futures::stream::iter(0..amount.releases).map(async |number| {
        let (component, version) = (
            number % amount.components(),
            number / amount.components() + 1,
        );
        let made = tokio::task::spawn_blocking(move || make(component, version, amount));
        let made = made.await.unwrap();
        let stored = serde_json::to_vec(&made).unwrap().len();
        releases
            .create(&PostParams::default(), &made)
            .await
            .unwrap();
        stored
    });
    let bytes = made.buffer_unordered(AT_ONCE).collect::<Vec<_>>().await;
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), NAMESPACE);
    let places = (0..amount.components())
        .flat_map(|number| ENVIRONMENTS.map(|environment| (number, environment)));
    let written = futures::stream::iter(places.take(amount.pins)).map(async |place| {
        let (number, environment) = place;
        let pin = pin(number, environment);
        let name = pin.name_any();
        pins.create(&PostParams::default(), &pin).await?;
        let status = status(&pin.spec.release_ref.name, number % 100 != 0, 0);
        let patch = Patch::Merge(status);
        pins.patch_status(&name, &PatchParams::default(), &patch)
            .await
            .map(drop)
    });
    let written = written.buffer_unordered(AT_ONCE);
    written.try_collect::<Vec<()>>().await.unwrap();
    bytes.into_iter().sum()
}

/// Returns a release as `bowline release create` makes it. The resources in its component type have
/// `amount.content` bytes.
fn make(number: usize, version: usize, amount: Amount) -> Release {
    let name = component(number);
    let mut resources = String::new();
    let mut seed = (number * 31 + version) as u64;
    while resources.len() < amount.content {
        let mut word = || {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let words = [
                "cache", "queue", "limit", "timeout", "worker", "shard", "index", "retry",
            ];
            format!("{}-{:04x}", words[(seed >> 40) as usize % 8], (seed >> 48))
        };
        let at = resources.len();
        resources += &format!(
            "    - id: r{at}\n      template:\n        apiVersion: v1\n        kind: ConfigMap\n        metadata: {{name: \"${{metadata.name}}-{at}\"}}\n        data: {{a-{}: {}, b-{}: {}, c-{}: {}}}\n",
            word(),
            word(),
            word(),
            word(),
            word(),
            word(),
        );
    }
    let text = format!(
        "apiVersion: {OPENCHOREO}\nkind: ComponentTypeDefinition\nmetadata: {{name: web}}\nspec:\n  workloadType: deployment\n  resources:\n{resources}---\napiVersion: {OPENCHOREO}\nkind: Component\nmetadata: {{name: {name}}}\nspec: {{componentType: deployment/web}}\n---\napiVersion: {OPENCHOREO}\nkind: Workload\nmetadata: {{name: {name}}}\nspec: {{image: \"shop/{name}:{version}\"}}\n"
    );
    let catalog = Catalog::from_texts([("world.yaml", text.as_str())]).unwrap();
    let definitions = catalog.definitions(&name).unwrap();
    let version = format!("v{version}");
    let mut made = release(&definitions, Some(&version), &Source::Embedded);
    if amount.tree {
        made.spec = plain_spec(&definitions);
    }
    made
}

fn pin(number: usize, environment: &str) -> ReleasePin {
    fixture::new_pin(&component(number), environment, &release_name(number, 1))
}

/// Returns a status as the controller writes it to a ReleasePin. A different `turn` gives a different text,
/// so that each write changes the object.
pub fn status(release: &str, ready: bool, turn: usize) -> Value {
    json!({"status": {
        "appliedRelease": release, "observedGeneration": 1,
        "outcomes": [{"generation": 1, "release": release, "healthy": ready, "since": "2026-01-05T00:00:00Z"}],
        "conditions": [{
            "type": "Ready", "status": if ready { "True" } else { "False" },
            "reason": if ready { "ReconcileSuccess" } else { "Degraded" },
            "message": format!("{} of 5 ready", turn % 6), "lastTransitionTime": "2026-01-05T00:00:00Z",
        }],
    }})
}
