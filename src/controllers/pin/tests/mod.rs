mod crash;
mod faults;
mod metadata;
mod requests;
mod statuses;

use tokio::task::JoinHandle;

use super::*;
use crate::api::condition;
use crate::testing::{Requests, Shop, start};

/// The ReleasePin controller without its loop: watches run, and a test starts each reconcile.
struct Planner {
    shared: Arc<Shared>,
    requests: Requests,
    watches: JoinHandle<()>,
}

impl Planner {
    async fn open(shop: &Shop) -> Self {
        let (context, requests) = shop.context();
        let shared = Shared::new(context);
        let watches = tokio::spawn(shared.triggers().for_each(|_| async {}));
        shared.ready().await;
        Self {
            shared,
            requests,
            watches,
        }
    }

    /// Reconciles a ReleasePin once. Returns the result and the requests that the reconcile sent.
    async fn reconcile(
        &self,
        shop: &Shop,
        environment: &str,
    ) -> (Result<Action, PinError>, Vec<String>) {
        let pin = Arc::new(shop.get_pin(environment).await);
        self.requests.take();
        let done = reconcile(pin, self.shared.clone()).await;
        (done, self.requests.take())
    }

    /// Waits until the condition is true for the read model.
    async fn world(&self, wanted: impl Fn(&World) -> bool) {
        self.shared.base.feed().when(wanted).await;
    }

    /// Waits until the read model shows the claim label on a release.
    async fn claimed(&self, release: &str) {
        let key = Key::new("default", release);
        self.world(|world| world.release(&key).is_some_and(|row| row.pinned))
            .await;
    }

    /// Waits until the condition is true for the row of a RenderedRelease.
    async fn row(&self, name: &str, wanted: impl Fn(&Row) -> bool) {
        let key = Key::new("default", name);
        // The table sends no events to the test, so the test polls it.
        while !self
            .shared
            .rendered
            .get(&key)
            .is_some_and(|row| wanted(&row))
        {
            tokio::task::yield_now().await;
        }
    }

    fn close(self) {
        self.watches.abort();
    }
}

#[tokio::test]
async fn a_pin_becomes_a_rendered_release_and_its_status_follows_the_health() {
    let shop = Shop::open().await;
    let release = shop.release("1").await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    shop.pin("dev", &release).await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::NOT_OBSERVED)
        .await;
    let status = pin.status.clone().unwrap();
    assert_eq!(status.applied_release.as_deref(), Some("cart-1"));
    for step in [condition::RESOLVED, condition::RENDERED, condition::APPLIED] {
        assert!(
            condition::is_true(&status.conditions, step, Some(1)),
            "{step}"
        );
    }
    let rendered: crate::api::RenderedRelease = shop.api().get("cart-dev").await.unwrap();
    let object = serde_json::to_value(&rendered.spec.resources[0].object).unwrap();
    assert_eq!(
        object["data"],
        serde_json::json!({"image": "shop/cart:1", "message": "hello"})
    );
    assert_eq!(rendered.spec.owner.project_name, "shop");
    assert_eq!(rendered.owner_references()[0].uid, pin.uid().unwrap());

    shop.report("cart-dev", "Healthy").await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::RECONCILE_SUCCESS)
        .await;
    let outcomes = pin.status.unwrap().outcomes;
    assert_eq!((outcomes.len(), outcomes[0].healthy), (1, Some(true)));

    // The health report of the old release does not make the new release ready.
    let second = shop.release("2").await;
    shop.pin("dev", &second).await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::NOT_OBSERVED)
        .await;
    let outcomes = pin.status.unwrap().outcomes;
    let said: Vec<_> = outcomes
        .iter()
        .map(|one| {
            (
                one.generation,
                one.release.as_str(),
                one.until.is_some(),
                one.healthy,
            )
        })
        .collect();
    assert_eq!(
        said,
        [(1, "cart-1", true, Some(true)), (2, "cart-2", false, None)]
    );
    shop.report("cart-dev", "Degraded").await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::DEGRADED)
        .await;
    let outcome = pin.status.unwrap().outcomes.pop().unwrap();
    assert_eq!(
        (outcome.healthy, outcome.why.as_deref()),
        (Some(false), Some("ConfigMap cart: as it is"))
    );
    running.stop().await;
}
