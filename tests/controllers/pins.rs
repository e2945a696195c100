//! Helpers for tests with many ReleasePins: they change the releases, and check that the running resources
//! match.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use bowline::api::{ComponentEnvSnapshot, ReleasePin, RenderedRelease, labels, names};
use bowline::engine::publish::{Applied, apply};
use bowline::engine::world::World;
use bowline::engine::world::feed::Feed;
use bowline::subjects::release_pin::actions::deploy::{self, Deploy};
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::api::{Api, ListParams};
use kube::runtime::{WatchStreamExt, watcher};

use crate::HANG;
use crate::place::Target;
use crate::shop::{ENVIRONMENTS, Shop};

/// A shop in which every component runs in every environment.
pub struct Pins {
    pub shop: Shop,
    pub feed: Feed,
    components: Vec<String>,
}

impl Pins {
    /// Opens a shop with this number of components, each with a ReleasePin in each environment.
    pub async fn open(target: &Arc<Target>, components: usize) -> Self {
        let components: Vec<String> = (0..components).map(|n| format!("c{n}")).collect();
        let names: Vec<&str> = components.iter().map(String::as_str).collect();
        let shop = Shop::open(target, &names).await;
        shop.data_plane().await;
        let pins = Self {
            feed: shop.feed().await,
            shop,
            components,
        };
        pins.move_all("1").await;
        pins
    }

    /// Returns the component and the environment of every ReleasePin.
    pub fn all(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let components = self.components.iter();
        components
            .flat_map(|component| ENVIRONMENTS.map(|environment| (component.as_str(), environment)))
    }

    /// Deploys the releases with this version to every environment.
    pub async fn move_all(&self, version: &str) {
        futures::stream::iter(self.all())
            .for_each_concurrent(8, |(component, environment)| {
                self.move_one(component, environment, version)
            })
            .await;
    }

    /// Deploys the release with this version to one environment, as a user does with the program. Tries again
    /// until the deployment succeeds.
    pub async fn move_one(&self, component: &str, environment: &str, version: &str) {
        let command = Deploy {
            component: component.to_owned(),
            environment: environment.to_owned(),
            release: format!("{component}-{version}"),
            skip_path: true,
        };
        loop {
            let operation = uuid::Uuid::new_v4().to_string();
            let mut asked = self.shop.asked(&operation, "ana");
            asked.reason = Some("a proof".to_owned());
            let plan = deploy::plan(&self.feed.world(), &command, &asked);
            let plan = plan.unwrap_or_else(|refusal| panic!("{refusal}"));
            let applied = apply(&self.shop.client, &plan, &plan.changes[0], &Timestamp::now).await;
            match applied {
                Ok(Applied::Unchanged | Applied::Done(_)) => return,
                // The move was made: another process records it, or has already replaced it.
                Ok(Applied::Unrecorded(..) | Applied::Superseded { .. }) => return,
                Err(error) => {
                    println!("{component} in {environment}: again, for {error}");
                    self.feed.when(World::is_live).await;
                }
            }
        }
    }

    /// Waits until the controllers report every ReleasePin as ready.
    pub async fn agree(&self) {
        let pins = self.shop.pins();
        let mut states: BTreeMap<String, bool> = self
            .all()
            .map(|(component, environment)| (names::pin(component, environment), false))
            .collect();
        let found = watcher(pins, watcher::Config::default()).default_backoff();
        let mut found = std::pin::pin!(found.applied_objects());
        // All ReleasePins together may take long on a busy machine. Only a long time without progress is a
        // failure.
        let (mut most, mut since) = (0, Instant::now());
        loop {
            let left = HANG.saturating_sub(since.elapsed());
            if let Ok(pin) = tokio::time::timeout(left, found.try_next()).await {
                let pin = pin.unwrap().unwrap();
                states.insert(pin.name_any(), is_ready(&pin));
                let ready = states.values().filter(|ready| **ready).count();
                if ready == states.len() {
                    return;
                }
                if ready > most {
                    (most, since) = (ready, Instant::now());
                }
                continue;
            }
            let unready = states.iter().filter(|(_, ready)| !**ready);
            let unready: Vec<&String> = unready.map(|(name, _)| name).collect();
            let one = self.shop.pins().get(unready[0]).await.unwrap();
            let status = serde_json::to_string_pretty(&one.status).unwrap();
            let logs = crate::process::logs(&self.shop.target);
            panic!(
                "{} pins do not settle, such as {}: {status}\n{logs}",
                unready.len(),
                unready[0]
            );
        }
    }

    /// Checks the running resources against the ReleasePins: every expected object exists, and there are no
    /// others. `version` returns the expected version of a component in an environment.
    pub async fn verify(&self, version: impl Fn(&str, &str) -> String) {
        let pins = self.shop.pins().list(&ListParams::default()).await.unwrap();
        for pin in pins {
            let (component, environment) = (&pin.spec.component, &pin.spec.environment);
            let wanted = format!("{component}-{}", version(component, environment));
            assert_eq!(pin.spec.release_ref.name, wanted, "{environment}");
        }
        let rendered: Api<RenderedRelease> = Api::default_namespaced(self.shop.client.clone());
        let rendered = rendered.list(&ListParams::default()).await.unwrap().items;
        let mut found: Vec<String> = rendered.iter().map(|it| it.name_any()).collect();
        let mut wanted: Vec<String> = self
            .all()
            .map(|(component, environment)| names::pin(component, environment))
            .collect();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted, "rendered releases");
        for environment in ENVIRONMENTS {
            let namespace = self.shop.namespace_of(environment);
            let maps: Api<ConfigMap> = Api::namespaced(self.shop.client.clone(), &namespace);
            let all = maps.list(&ListParams::default()).await.unwrap().items;
            let ours = all
                .into_iter()
                .filter(|map| map.name_any() != "kube-root-ca.crt");
            let found: BTreeMap<String, String> = ours
                .map(|map| {
                    let data = map.data.clone().unwrap_or_default();
                    (map.name_any(), data["image"].clone())
                })
                .collect();
            let wanted: BTreeMap<String, String> = self
                .components
                .iter()
                .map(|component| {
                    let version = version(component, environment);
                    (component.clone(), format!("shop/{component}:{version}"))
                })
                .collect();
            assert_eq!(found, wanted, "resources of {environment}");
        }
        // Each ReleasePin has at least one snapshot, and each snapshot belongs to an existing ReleasePin.
        let snapshots: Api<ComponentEnvSnapshot> =
            Api::default_namespaced(self.shop.client.clone());
        let snapshots = snapshots
            .list_metadata(&ListParams::default())
            .await
            .unwrap();
        let owners: std::collections::BTreeSet<String> = snapshots
            .items
            .iter()
            .map(|snapshot| {
                let own = |label: &str| snapshot.labels()[label].as_str();
                names::pin(own(labels::COMPONENT), own(labels::ENVIRONMENT))
            })
            .collect();
        assert_eq!(owners.into_iter().collect::<Vec<_>>(), wanted, "snapshots");
    }
}

/// Returns whether the controllers have observed the current generation of a ReleasePin and have reported it
/// as ready.
pub fn is_ready(pin: &ReleasePin) -> bool {
    let Some(status) = &pin.status else {
        return false;
    };
    let ready = status.conditions.iter().find(|it| it.type_ == "Ready");
    status.observed_generation == pin.metadata.generation
        && status.applied_release.as_deref() == Some(&pin.spec.release_ref.name)
        && ready.is_some_and(|ready| ready.status == "True")
}
