//! A small example for tests: components with a few releases, three environments in a row, and ReleasePins.

use std::sync::Arc;

use bowline::api::{AuditEntry, Release, ReleasePin};
use bowline::engine::audit;
use bowline::engine::audit::AuditWriter;
use bowline::engine::plan::{Asked, Plan};
use bowline::engine::publish::{Applied, apply};
use bowline::engine::subject::dynamic;
use bowline::engine::world::World;
use bowline::engine::world::feed::Feed;
use bowline::fixture;
use bowline::subjects::release_pin::actions::deploy::{self, Deploy};
use bowline::subjects::release_pin::actions::release::{Source, release};
use bowline::subjects::release_pin::catalog::Catalog;
use bowline::subjects::release_pin::kind::{KIND, live};
use jiff::Timestamp;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::json;

use crate::place::Target;

/// The names of the environments, in the order of the pipeline.
pub const ENVIRONMENTS: [&str; 3] = ["dev", "staging", "prod"];

/// The small example, created on a target.
pub struct Shop {
    pub target: Arc<Target>,
    pub client: Client,
}

impl Shop {
    /// Creates the environments, and each component with three releases. The second release of each component
    /// runs in dev.
    pub async fn open(target: &Arc<Target>, components: &[&str]) -> Self {
        let shop = Self {
            target: target.clone(),
            client: target.client(),
        };
        for name in ENVIRONMENTS {
            let own = json!({"namespace": shop.namespace_of(name), "requireReason": false});
            let environment = fixture::with(fixture::environment(name), json!({"spec": own}));
            shop.create(&environment).await;
        }
        shop.create(&fixture::pipeline_through(&ENVIRONMENTS)).await;
        shop.create(&fixture::component_type()).await;
        for component in components {
            shop.component(component).await;
        }
        target.settle().await;
        shop
    }

    /// Returns the namespace to which an environment deploys.
    pub fn namespace_of(&self, environment: &str) -> String {
        format!("{}-{environment}", self.target.namespace)
    }

    /// Creates the DataPlane object of the environments. The data plane is the target itself.
    pub async fn data_plane(&self) {
        let plane = match self.target.name {
            "embedded" => fixture::data_plane(),
            _ => fixture::data_plane_in_cluster(),
        };
        self.create(&plane).await;
    }

    async fn component(&self, name: &str) {
        self.create(&fixture::component(name)).await;
        self.create(&fixture::workload(name, "0")).await;
        for version in ["1", "2", "3"] {
            self.release(name, version, &format!("{name}-{version}"))
                .await;
        }
        self.pin(name, "dev", &format!("{name}-2")).await;
    }

    /// Creates the release `name` of a component. The image of the release has this version.
    pub async fn release(&self, component: &str, version: &str, name: &str) {
        let fetched = Catalog::fetch(&self.client, &self.target.namespace, component).await;
        let mut definitions = fetched.unwrap().definitions(component).unwrap();
        definitions.workload.spec.image = Some(format!("shop/{component}:{version}"));
        let mut made = release(&definitions, Some(version), &Source::Embedded);
        made.metadata.name = Some(name.to_owned());
        self.create(&made).await;
        self.target.settle().await;
    }

    /// Creates an object.
    pub async fn create(&self, object: &impl Serialize) {
        fixture::create(&self.client, object).await.unwrap();
    }

    /// Creates a ReleasePin as a user does with kubectl. Then records the audit entry as the controller does.
    pub async fn pin(&self, component: &str, environment: &str, release: &str) -> ReleasePin {
        let pin = fixture::new_pin(component, environment, release);
        let params = PostParams::default();
        let pin = self.pins().create(&params, &pin).await.unwrap();
        if self.target.repository().is_some() {
            self.target.settle().await;
            return pin;
        }
        let namespace = &self.target.namespace;
        let audit = AuditWriter::new(&self.client, namespace, Timestamp::now()).await;
        let recorded = audit.unwrap().record(&KIND, &dynamic(&pin)).await;
        recorded.unwrap();
        pin
    }

    pub fn pins(&self) -> Api<ReleasePin> {
        Api::default_namespaced(self.client.clone())
    }

    pub fn releases(&self) -> Api<Release> {
        Api::default_namespaced(self.client.clone())
    }

    pub fn entries(&self) -> Api<AuditEntry> {
        Api::default_namespaced(self.client.clone())
    }

    /// Returns the read model of the target, as soon as all objects are listed.
    pub async fn feed(&self) -> Feed {
        let mut feed = bowline::subjects::watch(&self.client, Some(&self.target.namespace));
        feed.until(World::is_live).await;
        feed
    }

    /// Returns the inputs of a plan: this operation id, this user, and the current time.
    pub fn asked(&self, operation: &str, user: &str) -> Asked {
        Asked {
            operation: operation.to_owned(),
            now: Timestamp::now(),
            user: user.to_owned(),
            reason: None,
            namespace: self.target.namespace.clone(),
        }
    }

    /// Returns a plan to deploy a release of cart to dev.
    pub fn deployment(&self, world: &World, release: &str, operation: &str, user: &str) -> Plan {
        let command = Deploy {
            component: "cart".to_owned(),
            environment: "dev".to_owned(),
            release: release.to_owned(),
            skip_path: false,
        };
        deploy::plan(world, &command, &self.asked(operation, user)).unwrap()
    }

    /// Returns the audit entries of a ReleasePin, oldest first. Panics unless the entries are valid and each
    /// generation has one.
    pub async fn chain(&self, pin: &str) -> Vec<AuditEntry> {
        self.target.settle().await;
        let pin = self.pins().get(pin).await.unwrap();
        let of_pin = ListParams::default().fields(&format!("spec.subject.name={}", pin.name_any()));
        let mut entries = self.entries().list(&of_pin).await.unwrap().items;
        entries.sort_by_key(|entry| entry.spec.revision);
        let verdict = match self.target.repository() {
            None => {
                let verdict = audit::verify(&live(std::slice::from_ref(&pin)), &entries);
                assert_eq!(verdict.warnings, [], "no gaps");
                verdict
            }
            // On a repository, a change by hand is only a warning.
            Some(repository) => bowline::gitops::verify::verify(&repository.tree, None).unwrap(),
        };
        assert!(verdict.is_valid(), "{verdict:?}");
        assert_eq!(entries.len() as i64, pin.metadata.generation.unwrap());
        entries
    }
}

/// Applies a plan of one change, which must succeed. Returns the new revision of the ReleasePin.
pub async fn done(client: &Client, plan: &Plan) -> i64 {
    match apply(client, plan, &plan.changes[0], &Timestamp::now).await {
        Ok(Applied::Done(revision)) => revision,
        other => panic!("{other:?}"),
    }
}
