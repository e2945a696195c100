use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use http::{Method, Request, Response};
use kube::client::Body;
use tower::Service;

use super::*;
use crate::embedded::{Embedded, User};
use crate::engine::actions::promote::{self, Promote};
use crate::engine::actions::release::{Source, release};
use crate::engine::catalog::Catalog;
use crate::engine::plan::Asked;
use crate::engine::world::feed::Feed;

/// A small shop on the embedded API: one component, two releases, two environments, one pin.
struct Shop {
    embedded: Embedded,
    client: Client,
    _folder: tempfile::TempDir,
}

const DEFINITIONS: &str = "
apiVersion: openchoreo.dev/v1alpha1
kind: Component
metadata: {name: cart}
spec: {componentType: deployment/web}
---
apiVersion: openchoreo.dev/v1alpha1
kind: ComponentTypeDefinition
metadata: {name: web}
spec: {workloadType: deployment}
---
apiVersion: openchoreo.dev/v1alpha1
kind: Workload
metadata: {name: cart}
spec: {image: shop/cart}
";

impl Shop {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let embedded = Embedded::open(&folder.path().join("store.db"), "ana")
            .await
            .unwrap();
        let client = embedded.client("default");
        let post = PostParams::default();
        let mut definitions = Catalog::from_texts([("shop", DEFINITIONS)])
            .unwrap()
            .definitions("cart")
            .unwrap();
        let releases: Api<Release> = Api::default_namespaced(client.clone());
        for version in ["1", "2", "3"] {
            definitions.workload.spec.image = Some(format!("shop/cart:{version}"));
            let made = release(&definitions, Some(version), &Source::Embedded);
            releases.create(&post, &made).await.unwrap();
        }
        let environments: Api<Environment> = Api::default_namespaced(client.clone());
        for name in ["dev", "prod"] {
            let spec = json!({"dataPlaneRef": {"name": "d"}, "namespace": name});
            let environment = Environment::new(name, serde_json::from_value(spec).unwrap());
            environments.create(&post, &environment).await.unwrap();
        }
        let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(client.clone());
        let path = json!({"promotionPaths": [{"sourceEnvironmentRef": {"name": "dev"}, "targetEnvironmentRefs": [{"name": "prod"}]}]});
        let pipeline = DeploymentPipeline::new("default", serde_json::from_value(path).unwrap());
        pipelines.create(&post, &pipeline).await.unwrap();
        let shop = Self {
            embedded,
            client,
            _folder: folder,
        };
        shop.pin("dev", "cart-2").await;
        shop
    }

    /// The audit of the pin of cart in prod has these operations, and verifies.
    async fn verifies(&self, operations: &[&str]) {
        let entries: Api<crate::api::AuditEntry> = Api::default_namespaced(self.client.clone());
        let entries = entries.list(&ListParams::default()).await.unwrap().items;
        let mut found: Vec<_> = entries
            .iter()
            .filter(|entry| entry.spec.subject.name == "cart-prod")
            .collect();
        found.sort_by_key(|entry| entry.spec.revision);
        let found: Vec<_> = found
            .iter()
            .map(|entry| entry.spec.operation.as_deref().unwrap_or("-"))
            .collect();
        assert_eq!(found, operations);
        let pin = self.pins().get("cart-prod").await.unwrap();
        let own: Vec<_> = entries
            .iter()
            .filter(|entry| entry.spec.subject.name == "cart-prod")
            .cloned()
            .collect();
        let verdict = audit::verify(&[pin], &own);
        assert!(verdict.is_valid(), "{verdict:?}");
    }

    fn pins(&self) -> Api<ReleasePin> {
        Api::default_namespaced(self.client.clone())
    }

    async fn pin(&self, environment: &str, release: &str) {
        let spec = json!({"component": "cart", "environment": environment, "releaseRef": {"name": release}});
        let mut pin = ReleasePin::new(
            &format!("cart-{environment}"),
            serde_json::from_value(spec).unwrap(),
        );
        let own = pin.labels_mut();
        own.insert(labels::COMPONENT.into(), "cart".into());
        own.insert(labels::ENVIRONMENT.into(), environment.into());
        self.pins()
            .create(&PostParams::default(), &pin)
            .await
            .unwrap();
    }

    /// Plans the promotion of cart to prod.
    async fn plan(&self, operation: &str) -> Plan {
        let mut feed = Feed::start(&self.client, Some("default"));
        feed.until(World::is_live).await;
        let command = Promote {
            components: vec!["cart".to_owned()],
            from: "dev".to_owned(),
            to: "prod".to_owned(),
            unready: true,
            skip_path: false,
        };
        let asked = Asked {
            operation: operation.to_owned(),
            now: "2026-01-06T00:00:00Z".parse().unwrap(),
            user: "ana".to_owned(),
            reason: None,
            namespace: "default".to_owned(),
        };
        promote::plan(&feed.world(), &command, &asked).unwrap()
    }
}

#[tokio::test]
async fn a_pin_is_made_and_moved_and_its_release_claimed() {
    let shop = Shop::open().await;
    let plan = shop.plan("one").await;
    let done = apply(&shop.client, &plan, &plan.items[0]).await.unwrap();
    assert_eq!(done, Applied::Done(1));
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(pin.spec.release_ref.name, "cart-2");
    assert_eq!(pin.operation().unwrap().unwrap().id, "one");
    let releases: Api<Release> = Api::default_namespaced(shop.client.clone());
    let release = releases.get("cart-2").await.unwrap();
    assert!(release.is_pinned());
    assert_eq!(release.claim().unwrap().unwrap().operation, "one");
    assert!(!releases.get("cart-3").await.unwrap().is_pinned());
    // The same plan again finds that it was done.
    let scribe = Scribe::new(&shop.client, "default", plan.at).await.unwrap();
    let again = publish(&shop.pins(), &scribe, &plan, &plan.items[0])
        .await
        .unwrap();
    assert_eq!(again.resource_version(), pin.resource_version());
    shop.verifies(&["one"]).await;
    // And what is as wanted is left alone.
    let plan = shop.plan("two").await;
    assert_eq!(
        apply(&shop.client, &plan, &plan.items[0]).await.unwrap(),
        Applied::Unchanged
    );
    let version = shop
        .pins()
        .get("cart-prod")
        .await
        .unwrap()
        .resource_version();
    assert_eq!(version, pin.resource_version());
}

#[tokio::test]
async fn who_comes_second_is_told_who_was_first() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let (one, two) = (shop.plan("one").await, shop.plan("two").await);
    let bob = User {
        name: "bob".to_owned(),
        groups: vec!["system:masters".to_owned()],
    };
    let bob = shop.embedded.as_user(bob).client("default");
    assert_eq!(
        apply(&bob, &one, &one.items[0]).await.unwrap(),
        Applied::Done(2)
    );
    let error = apply(&shop.client, &two, &two.items[0]).await.unwrap_err();
    let told = error.to_string();
    assert!(matches!(error, ApplyError::Stale { .. }), "{told}");
    assert!(
        told.starts_with("cart-prod was changed to cart-2 by bob at 2026-01-06T00:00:00Z"),
        "{told}"
    );
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(
        (
            pin.metadata.generation,
            pin.operation().unwrap().unwrap().id.as_str()
        ),
        (Some(2), "one")
    );
}

#[tokio::test]
async fn a_fact_that_is_gone_stops_it() {
    let shop = Shop::open().await;
    let plan = shop.plan("one").await;
    let patch = Patch::Merge(json!({"spec": {"releaseRef": {"name": "cart-1"}}}));
    shop.pins()
        .patch("cart-dev", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let error = apply(&shop.client, &plan, &plan.items[0])
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("cart-dev does not run cart-2 any more"),
        "{error}"
    );
    assert!(shop.pins().get_opt("cart-prod").await.unwrap().is_none());
    let releases: Api<Release> = Api::default_namespaced(shop.client.clone());
    assert!(!releases.get("cart-2").await.unwrap().is_pinned());
}

/// A client through which something happens to every change of a pin.
fn between<F>(embedded: &Embedded, happens: F) -> Client
where
    F: Fn(usize) -> Happening + Clone + Send + Sync + 'static,
{
    let (inner, count) = (embedded.clone(), Arc::new(AtomicUsize::new(0)));
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut inner = inner.clone();
        let changes = matches!(*request.method(), Method::PATCH | Method::POST)
            && request.uri().path().contains("/releasepins");
        let happening = match changes {
            true => happens(count.fetch_add(1, Ordering::SeqCst)),
            false => Happening::Nothing,
        };
        async move {
            if let Happening::LostBefore = happening {
                return Err(std::io::Error::other("the connection broke"));
            }
            if let Happening::Status = happening {
                let pins: Api<ReleasePin> = Api::default_namespaced(inner.client("default"));
                let patch = Patch::Merge(json!({"status": {"appliedRelease": "x"}, "metadata": {"annotations": {"seen": "yes"}}}));
                let patched = pins.patch_status("cart-prod", &PatchParams::default(), &patch).await;
                assert!(patched.is_ok(), "{patched:?}");
            }
            let answer: Response<_> = Service::call(&mut inner, request)
                .map(|answer| answer.unwrap_or_else(|never| match never {}))
                .await;
            match happening {
                Happening::LostAfter => Err(std::io::Error::other("the connection broke")),
                _ => Ok(answer),
            }
        }
        .boxed()
    });
    Client::new(service, "default")
}

#[derive(Clone, Copy)]
enum Happening {
    Nothing,
    /// The request is lost before the server sees it.
    LostBefore,
    /// The answer is lost after the write.
    LostAfter,
    /// Somebody writes the status just before.
    Status,
}

#[tokio::test]
async fn lost_answers_change_nothing_about_what_is_done() {
    for (made, first) in [
        (true, Happening::LostAfter),
        (false, Happening::LostAfter),
        (true, Happening::LostBefore),
        (false, Happening::LostBefore),
    ] {
        let shop = Shop::open().await;
        if made {
            shop.pin("prod", "cart-1").await;
        }
        let plan = shop.plan("one").await;
        let client = between(&shop.embedded, move |count| match count {
            0 | 1 => first,
            _ => Happening::Nothing,
        });
        let generation = if made { 2 } else { 1 };
        let done = apply(&client, &plan, &plan.items[0]).await.unwrap();
        assert_eq!(done, Applied::Done(generation));
        let pin = shop.pins().get("cart-prod").await.unwrap();
        assert_eq!(
            pin.metadata.generation,
            Some(generation),
            "once, and only once"
        );
        assert_eq!(pin.spec.release_ref.name, "cart-2");
        // What was made by hand is on record too, without an operation.
        let expected: &[&str] = if made { &["-", "one"] } else { &["one"] };
        shop.verifies(expected).await;
    }
}

#[tokio::test]
async fn writes_of_the_status_do_not_stop_it() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let plan = shop.plan("one").await;
    let client = between(&shop.embedded, |count| match count {
        0..10 => Happening::Status,
        _ => Happening::Nothing,
    });
    assert_eq!(
        apply(&client, &plan, &plan.items[0]).await.unwrap(),
        Applied::Done(2)
    );
}

#[tokio::test]
async fn a_server_that_never_answers_leaves_it_open() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let plan = shop.plan("one").await;
    let client = between(&shop.embedded, |_| Happening::LostBefore);
    let error = apply(&client, &plan, &plan.items[0]).await.unwrap_err();
    assert!(matches!(error, ApplyError::Unknown { .. }), "{error}");
    assert_eq!(
        shop.pins()
            .get("cart-prod")
            .await
            .unwrap()
            .metadata
            .generation,
        Some(1)
    );
}
