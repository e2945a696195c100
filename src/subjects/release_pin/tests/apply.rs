use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, Response};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube::{Client, ResourceExt};
use kube_embedded::{Embedded, User};
use serde_json::json;
use tower::Service;

use crate::api::bowline::audit::AuditEntry;
use crate::api::hold::Hold;
use crate::api::{DeploymentPipeline, Environment, Release, ReleasePin, labels};
use crate::engine::audit::{self, AuditWriter};
use crate::engine::plan::{Asked, Fact, Plan};
use crate::engine::publish::{Applied, ApplyError, apply, apply_all};
use crate::engine::subject::dynamic;
use crate::engine::world::{Key, World};
use crate::fixture;
use crate::subjects::release_pin::actions::promote::{self, Promote};
use crate::subjects::release_pin::actions::rollback::{self, Rollback, Target};
use crate::subjects::release_pin::facts::{self, PinFact};
use crate::subjects::release_pin::kind::{KIND, live};

/// The time at which the tests make their plans, and usually also apply them.
fn then() -> Timestamp {
    "2026-01-06T00:00:00Z".parse().unwrap()
}

/// An embedded server with one component, two releases, two environments and one ReleasePin, for a test.
struct Shop {
    embedded: Embedded,
    client: Client,
    _folder: tempfile::TempDir,
}

impl Shop {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let embedded = fixture::store::open(&folder.path().join("store.db"), "ana").await;
        let client = embedded.client("default");
        for version in ["1", "2", "3"] {
            made(&client, &fixture::new_release("cart", version)).await;
        }
        for name in ["dev", "prod"] {
            let environment = fixture::environment(name);
            let lenient = json!({"spec": {"isProduction": false}});
            made(&client, &fixture::with(environment, lenient)).await;
        }
        made(&client, &fixture::pipeline_through(&["dev", "prod"])).await;
        let shop = Self {
            embedded,
            client,
            _folder: folder,
        };
        shop.pin("dev", "cart-2").await;
        shop
    }

    /// Checks that the audit entries of cart-prod belong to these operations in this order, and that they form a
    /// valid chain.
    async fn verifies(&self, operations: &[&str]) {
        let entries = self.entries();
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
        let verdict = audit::verify(&live(&[pin]), &own);
        assert!(verdict.is_valid(), "{verdict:?}");
    }

    fn pins(&self) -> Api<ReleasePin> {
        Api::default_namespaced(self.client.clone())
    }

    fn releases(&self) -> Api<Release> {
        Api::default_namespaced(self.client.clone())
    }

    fn entries(&self) -> Api<AuditEntry> {
        Api::default_namespaced(self.client.clone())
    }

    /// Returns a client that acts as the user `name`.
    fn client_of(&self, name: &str) -> Client {
        let user = User {
            name: name.to_owned(),
            groups: vec!["system:masters".to_owned()],
        };
        self.embedded.as_user(user).client("default")
    }

    /// Applies a plan with one change whose facts are no longer true. Returns the error as text.
    async fn refusal(&self, plan: &Plan) -> String {
        let error = apply(&self.client, plan, &plan.changes[0], &then).await;
        let error = error.unwrap_err();
        assert!(matches!(error, ApplyError::Stale { .. }), "{error}");
        error.to_string()
    }

    async fn pin(&self, environment: &str, release: &str) {
        made(
            &self.client,
            &fixture::new_pin("cart", environment, release),
        )
        .await;
    }

    /// Plans to promote cart to prod.
    async fn plan(&self, operation: &str) -> Plan {
        let mut feed = crate::subjects::watch(&self.client, Some("default"));
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
            now: then(),
            user: "ana".to_owned(),
            reason: None,
            namespace: "default".to_owned(),
        };
        promote::plan(&feed.world(), &command, &asked).unwrap()
    }
}

/// Creates an object on the test server.
async fn made(client: &Client, object: &impl serde::Serialize) {
    fixture::create(client, object).await.unwrap();
}

#[tokio::test]
async fn without_a_reason_a_plan_is_only_looked_at() {
    let shop = Shop::open().await;
    let environments: Api<Environment> = Api::default_namespaced(shop.client.clone());
    let strict = Patch::Merge(json!({"spec": {"requireReason": true}}));
    let params = PatchParams::default();
    environments.patch("prod", &params, &strict).await.unwrap();
    let mut plan = shop.plan("one").await;
    let lacks = plan
        .lacks_reason()
        .map(|change| change.environment.as_str());
    assert_eq!(lacks, Some("prod"));
    let refused = apply(&shop.client, &plan, &plan.changes[0], &then).await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "prod requires a reason for every change, so nothing was changed"
    );
    assert!(shop.pins().get_opt("cart-prod").await.unwrap().is_none());
    plan.reason = Some("INC-42".to_owned());
    let done = apply(&shop.client, &plan, &plan.changes[0], &then).await;
    assert_eq!(done.unwrap(), Applied::Done(1));
}

#[tokio::test]
async fn a_pin_is_made_and_moved_and_its_release_claimed() {
    let shop = Shop::open().await;
    let plan = shop.plan("one").await;
    let done = apply(&shop.client, &plan, &plan.changes[0], &then)
        .await
        .unwrap();
    assert_eq!(done, Applied::Done(1));
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(pin.spec.release_ref.name, "cart-2");
    assert_eq!(pin.operation().unwrap().unwrap().id, "one");
    let release = shop.releases().get("cart-2").await.unwrap();
    assert!(release.is_pinned());
    assert_eq!(release.claim().unwrap().unwrap().operation, "one");
    assert!(!shop.releases().get("cart-3").await.unwrap().is_pinned());
    // The second run of the same plan finds out that the first run made the change.
    let again = apply(&shop.client, &plan, &plan.changes[0], &then).await;
    assert_eq!(again.unwrap(), Applied::Done(1));
    let now = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(now.resource_version(), pin.resource_version());
    shop.verifies(&["one"]).await;
    // The ReleasePin already has the desired state, so `apply` writes nothing.
    let plan = shop.plan("two").await;
    assert_eq!(
        apply(&shop.client, &plan, &plan.changes[0], &then)
            .await
            .unwrap(),
        Applied::Unchanged
    );
    let now = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(now.resource_version(), pin.resource_version());
}

#[tokio::test]
async fn who_comes_second_is_told_who_was_first() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let (one, two) = (shop.plan("one").await, shop.plan("two").await);
    let bob = shop.client_of("bob");
    assert_eq!(
        apply(&bob, &one, &one.changes[0], &then).await.unwrap(),
        Applied::Done(2)
    );
    assert_eq!(
        shop.refusal(&two).await,
        "cart-prod was changed to cart-2 by bob at 2026-01-06T00:00:00Z, so nothing was changed"
    );
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(
        (
            pin.metadata.generation,
            pin.operation().unwrap().unwrap().id.as_str()
        ),
        (Some(2), "one")
    );
    // kubectl writes no operation annotation, but the server records the author and the time.
    let three = shop.plan("three").await;
    assert!(three.changes[0].unchanged);
    set_release(&bob, "cart-prod", "cart-3").await;
    let mut four = three.clone();
    four.changes[0].unchanged = false;
    let told = shop.refusal(&four).await;
    let pin = shop.pins().get("cart-prod").await.unwrap();
    let fields = pin.managed_fields();
    let at = fields.iter().filter_map(|field| field.time.clone()).max();
    assert_eq!(
        told,
        format!(
            "cart-prod was changed to cart-3 by bob with kubectl-edit at {}, so nothing was changed",
            at.unwrap().0
        )
    );
}

/// Changes the release of a ReleasePin without an operation annotation, like `kubectl edit`.
async fn set_release(client: &Client, pin: &str, release: &str) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
    let patch = Patch::Merge(json!({"spec": {"releaseRef": {"name": release}}}));
    let params = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    pins.patch(pin, &params, &patch).await.unwrap();
}

#[tokio::test]
async fn a_fact_that_is_no_more_stops_it_and_is_told() {
    let shop = Shop::open().await;
    let plan = shop.plan("one").await;
    let (bob, gone) = (shop.client_of("bob"), DeleteParams::default());
    set_release(&bob, "cart-dev", "cart-1").await;
    let told = shop.refusal(&plan).await;
    assert!(
        told.starts_with("cart-dev runs cart-1 now, not cart-2; last changed by bob"),
        "{told}"
    );
    set_release(&bob, "cart-dev", "cart-2").await;

    // Another user creates the ReleasePin; later that user deletes it and creates it again.
    shop.pin("prod", "cart-1").await;
    let told = shop.refusal(&plan).await;
    assert!(
        told.starts_with("cart-prod was created with cart-1 by ana"),
        "{told}"
    );
    let plan = shop.plan("two").await;
    shop.pins().delete("cart-prod", &gone).await.unwrap();
    let told = shop.refusal(&plan).await;
    assert_eq!(
        told,
        "cart-prod was deleted; it ran cart-1, so nothing was changed"
    );
    shop.pin("prod", "cart-3").await;
    let told = shop.refusal(&plan).await;
    assert!(
        told.starts_with("cart-prod was deleted and created again with cart-3 by ana"),
        "{told}"
    );

    // The release is marked bad, and later deleted.
    let plan = shop.plan("three").await;
    let mark =
        json!({"verdict": "bad", "by": "cleo", "at": "2026-01-05T00:00:00Z", "note": "INC-7"});
    let mark = json!({"metadata": {"annotations": {labels::MARK: mark.to_string()}}});
    let params = PatchParams::default();
    let (releases, mark) = (shop.releases(), Patch::Merge(&mark));
    releases.patch("cart-2", &params, &mark).await.unwrap();
    assert_eq!(
        shop.refusal(&plan).await,
        "release cart-2 was marked bad by cleo at 2026-01-05T00:00:00Z (INC-7), so nothing was changed"
    );
    shop.releases().delete("cart-2", &gone).await.unwrap();
    assert_eq!(
        shop.refusal(&plan).await,
        "release cart-2 was deleted, so nothing was changed"
    );
    assert!(!shop.releases().get("cart-1").await.unwrap().is_pinned());
}

#[tokio::test]
async fn environments_and_paths_are_facts_too() {
    let shop = Shop::open().await;
    let plan = shop.plan("one").await;
    let environments: Api<Environment> = Api::default_namespaced(shop.client.clone());
    let params = PatchParams::default();
    let production = Patch::Merge(json!({"spec": {"isProduction": true}}));
    environments
        .patch("prod", &params, &production)
        .await
        .unwrap();
    let told = shop.refusal(&plan).await;
    assert!(told.starts_with("environment prod changed with "), "{told}");
    assert!(
        told.ends_with(": isProduction is true, was false, so nothing was changed"),
        "{told}"
    );
    let production = Patch::Merge(json!({"spec": {"isProduction": null}}));
    environments
        .patch("prod", &params, &production)
        .await
        .unwrap();
    let pipelines: Api<DeploymentPipeline> = Api::default_namespaced(shop.client.clone());
    let turned = json!({"spec": {"promotionPaths": [{"sourceEnvironmentRef": {"name": "prod"}, "targetEnvironmentRefs": [{"name": "dev"}]}]}});
    pipelines
        .patch("default", &params, &Patch::Merge(&turned))
        .await
        .unwrap();
    let told = shop.refusal(&plan).await;
    let leads = "the pipeline no longer has a path from dev to prod: its DeploymentPipeline has the paths prod to dev; it changed with ";
    assert!(told.starts_with(leads), "{told}");
}

#[tokio::test]
async fn a_pin_that_was_made_again_is_another_one() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let plan = shop.plan("one").await;
    // After bowline's last read and before its write, somebody deletes the ReleasePin and creates it again. The new
    // one has the same generation but another uid.
    let other = shop.embedded.clone();
    let client = between(&shop.embedded, move |what, count| match (what, count) {
        ("releasepins", 0) => {
            let other = other.clone();
            Happening::Before(Arc::new(move || {
                let client = other.client("default");
                async move {
                    let pins: Api<ReleasePin> = Api::default_namespaced(client);
                    let mut pin = pins.get("cart-prod").await.unwrap();
                    pins.delete("cart-prod", &DeleteParams::default())
                        .await
                        .unwrap();
                    pin.metadata.resource_version = None;
                    pin.metadata.uid = None;
                    pins.create(&PostParams::default(), &pin).await.unwrap();
                }
                .boxed()
            }))
        }
        _ => Happening::Nothing,
    });
    let error = apply(&client, &plan, &plan.changes[0], &then)
        .await
        .unwrap_err();
    let told = error.to_string();
    assert!(
        told.starts_with("cart-prod was deleted and created again with cart-1"),
        "{told}"
    );
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(pin.spec.release_ref.name, "cart-1");
}

/// An action of another client that runs while bowline writes.
type Deed = Arc<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

#[derive(Clone)]
enum Happening {
    Nothing,
    /// The write request is lost before it reaches the server.
    LostBefore,
    /// The server makes the write, but its answer is lost.
    LostAfter,
    /// Another client acts just before the server gets the write.
    Before(Deed),
    /// The server makes the write, its answer is lost, and then another client acts.
    LostThen(Deed),
}

/// Returns a client whose writes are disturbed. `happens` gets the resource and the number of the write, and returns
/// the disturbance.
fn between<F>(embedded: &Embedded, happens: F) -> Client
where
    F: Fn(&str, usize) -> Happening + Clone + Send + Sync + 'static,
{
    const KINDS: [&str; 4] = [
        "releases",
        "releasepins",
        "auditentries",
        "selfsubjectreviews",
    ];
    let counts: Arc<[AtomicUsize; 4]> = Arc::default();
    let inner = embedded.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let mut inner = inner.clone();
        let writes = matches!(*request.method(), Method::PATCH | Method::POST);
        let path = request.uri().path();
        let kind = KINDS
            .iter()
            .position(|kind| path.split('/').any(|part| part == *kind));
        let happening = match kind.filter(|_| writes) {
            Some(kind) => happens(KINDS[kind], counts[kind].fetch_add(1, Ordering::SeqCst)),
            None => Happening::Nothing,
        };
        async move {
            let broke = || std::io::Error::other("the connection broke");
            match &happening {
                Happening::LostBefore => return Err(broke()),
                Happening::Before(deed) => deed().await,
                _ => {}
            }
            let answer: Response<_> = Service::call(&mut inner, request)
                .map(|answer| answer.unwrap_or_else(|never| match never {}))
                .await;
            match happening {
                Happening::LostAfter => Err(broke()),
                Happening::LostThen(deed) => {
                    deed().await;
                    Err(broke())
                }
                _ => Ok(answer),
            }
        }
        .boxed()
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn lost_answers_change_nothing_about_what_is_done() {
    for kind in [
        "selfsubjectreviews",
        "releases",
        "releasepins",
        "auditentries",
    ] {
        for (made, lost) in [
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
            let client = between(&shop.embedded, move |what, count| match count {
                0 | 1 if what == kind => lost.clone(),
                _ => Happening::Nothing,
            });
            let generation = if made { 2 } else { 1 };
            let done = apply(&client, &plan, &plan.changes[0], &then)
                .await
                .unwrap();
            assert_eq!(done, Applied::Done(generation), "{kind}");
            let pin = shop.pins().get("cart-prod").await.unwrap();
            assert_eq!(
                pin.metadata.generation,
                Some(generation),
                "once, and only once"
            );
            assert_eq!(pin.spec.release_ref.name, "cart-2");
            // If somebody created the ReleasePin by hand, its first audit entry has no operation.
            let expected: &[&str] = if made { &["-", "one"] } else { &["one"] };
            shop.verifies(expected).await;
        }
    }
}

#[tokio::test]
async fn what_was_done_and_then_overwritten_was_done() {
    for (made, engine) in [(true, true), (true, false), (false, true), (false, false)] {
        let shop = Shop::open().await;
        if made {
            shop.pin("prod", "cart-1").await;
        }
        let plan = shop.plan("one").await;
        let bob = shop.client_of("bob");
        let deed: Deed = Arc::new(move || {
            let bob = bob.clone();
            async move {
                match engine {
                    true => roll_back(&bob).await,
                    false => set_release(&bob, "cart-prod", "cart-3").await,
                }
            }
            .boxed()
        });
        let client = between(&shop.embedded, move |what, count| match (what, count) {
            ("releasepins", 0) => Happening::LostThen(deed.clone()),
            _ => Happening::Nothing,
        });
        let done = apply(&client, &plan, &plan.changes[0], &then)
            .await
            .unwrap();
        let Applied::Superseded { revision, by } = done else {
            panic!("{done:?}");
        };
        assert_eq!(revision, if made { 2 } else { 1 });
        let expected = match engine {
            true => "cart-prod was changed to cart-3 by bob at 2026-01-06T00:00:00Z",
            false => "cart-prod was changed to cart-3 by bob with kubectl-edit at 20",
        };
        let expected = match made {
            true => expected.to_owned(),
            false => expected.replace("changed to", "created with"),
        };
        assert!(by.starts_with(&expected), "{by}");
        let next = if engine { "back" } else { "-" };
        let expected: &[&str] = if made {
            &["-", "one", next]
        } else {
            &["one", next]
        };
        shop.verifies(expected).await;
    }
}

/// Rolls cart-prod back to cart-3, like `bowline rollback`.
async fn roll_back(client: &Client) {
    let mut feed = crate::subjects::watch(client, Some("default"));
    feed.until(World::is_live).await;
    let command = Rollback {
        component: "cart".to_owned(),
        environment: "prod".to_owned(),
        to: Target::Release("cart-3".to_owned()),
        hold: true,
        recorded: Vec::new(),
        controller: crate::engine::controller_status::ControllerStatus::Runs,
    };
    let asked = Asked {
        operation: "back".to_owned(),
        now: then(),
        user: "bob".to_owned(),
        reason: None,
        namespace: "default".to_owned(),
    };
    let plan = rollback::plan(&feed.world(), &command, &asked).unwrap();
    let done = apply(client, &plan, &plan.changes[0], &then).await.unwrap();
    assert!(matches!(done, Applied::Done(_)), "{done:?}");
}

#[tokio::test]
async fn what_hides_whether_it_was_done_is_said() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let plan = shop.plan("one").await;
    let embedded = shop.embedded.clone();
    // Somebody changes the ReleasePin twice without the operation annotation, before bowline writes its first audit
    // entry.
    let deed: Deed = Arc::new(move || {
        let client = embedded.client("default");
        async move {
            let pins: Api<ReleasePin> = Api::default_namespaced(client);
            for release in ["cart-3", "cart-1"] {
                let mut pin = pins.get("cart-prod").await.unwrap();
                pin.annotations_mut().remove(labels::OPERATION);
                pin.spec.release_ref.name = release.to_owned();
                let params = PostParams::default();
                pins.replace("cart-prod", &params, &pin).await.unwrap();
            }
        }
        .boxed()
    });
    let client = between(&shop.embedded, move |what, count| match (what, count) {
        ("releasepins", 0) => Happening::LostThen(deed.clone()),
        _ => Happening::Nothing,
    });
    let error = apply(&client, &plan, &plan.changes[0], &then)
        .await
        .unwrap_err();
    assert!(error.is_open(), "{error}");
    let told = error.to_string();
    assert!(
        told.starts_with("cart-prod was changed to cart-1 by ana"),
        "{told}"
    );
    assert!(told.ends_with("before or after your change"), "{told}");
}

#[tokio::test]
async fn claims_are_of_the_time_of_claiming() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let plan = shop.plan("one").await;
    // The plan is an hour old, and the clock advances by two minutes with each call.
    let minutes = AtomicI64::new(60);
    let clock = || {
        let passed = minutes.fetch_add(2, Ordering::SeqCst);
        then() + SignedDuration::from_mins(passed)
    };
    let client = between(&shop.embedded, |what, count| match (what, count) {
        ("releasepins", 0..4) => Happening::LostBefore,
        _ => Happening::Nothing,
    });
    let done = apply(&client, &plan, &plan.changes[0], &clock)
        .await
        .unwrap();
    assert_eq!(done, Applied::Done(2));
    let release = shop.releases().get("cart-2").await.unwrap();
    let claim = release.claim().unwrap().unwrap();
    // bowline claimed the release at minute 62. It claimed the release again at minute 68, because the claim was then
    // six minutes old.
    assert_eq!(claim.at.0, then() + SignedDuration::from_mins(68));
    let pin = shop.pins().get("cart-prod").await.unwrap();
    let operation = pin.operation().unwrap().unwrap();
    assert_eq!(operation.at.0, then() + SignedDuration::from_hours(1));
}

#[tokio::test]
async fn a_hold_that_ends_while_one_thinks_is_a_change() {
    let shop = Shop::open().await;
    let until = then() + SignedDuration::from_mins(30);
    let hold =
        json!([{"id": "h", "owner": "ana", "since": then(), "until": until, "release": "cart-3"}]);
    let patch = Patch::Merge(json!({"spec": {"holds": hold}}));
    let params = PatchParams::default();
    shop.pins()
        .patch("cart-dev", &params, &patch)
        .await
        .unwrap();
    let plan = shop.plan("one").await;
    assert_eq!(plan.changes[0].to.name, "cart-3");
    let later = || then() + SignedDuration::from_hours(1);
    let error = apply(&shop.client, &plan, &plan.changes[0], &later).await;
    let told = error.unwrap_err().to_string();
    assert!(
        told.starts_with("cart-dev runs cart-2 now, not cart-3"),
        "{told}"
    );
}

#[tokio::test]
async fn writes_of_the_status_do_not_stop_it() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let plan = shop.plan("one").await;
    let embedded = shop.embedded.clone();
    // Another client writes the status before each write of bowline, and after that as often as the store accepts.
    let status: Deed = Arc::new(move || {
        let client = embedded.client("default");
        async move { flap(&client, 0).await }.boxed()
    });
    let client = between(&shop.embedded, move |what, _| match what {
        "releasepins" => Happening::Before(status.clone()),
        _ => Happening::Nothing,
    });
    let other = shop.client.clone();
    let flapping = tokio::spawn(async move {
        for count in 1.. {
            flap(&other, count).await;
        }
    });
    let done = apply(&client, &plan, &plan.changes[0], &then).await;
    flapping.abort();
    assert_eq!(done.unwrap(), Applied::Done(2));
    shop.verifies(&["-", "one"]).await;
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert!(
        pin.annotations().contains_key("seen"),
        "nobody's annotation is lost"
    );
}

/// Writes the status of a ReleasePin and an annotation, neither of which a rule reads.
async fn flap(client: &Client, count: usize) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client.clone());
    let params = PatchParams::default();
    let status = Patch::Merge(json!({"status": {"appliedRelease": format!("x-{count}")}}));
    pins.patch_status("cart-prod", &params, &status)
        .await
        .unwrap();
    let seen = Patch::Merge(json!({"metadata": {"annotations": {"seen": count.to_string()}}}));
    pins.patch("cart-prod", &params, &seen).await.unwrap();
}

#[tokio::test]
async fn what_a_rule_refuses_is_refused_at_once() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let mut plan = shop.plan("one").await;
    plan.changes[0].holds = vec![Hold {
        id: String::new(),
        owner: "ana".to_owned(),
        reason: None,
        since: Time(then()),
        until: None,
        release: None,
    }];
    let writes = Arc::new(AtomicUsize::new(0));
    let counted = writes.clone();
    let client = between(&shop.embedded, move |what, count| {
        if what == "releasepins" {
            counted.store(count + 1, Ordering::SeqCst);
        }
        Happening::Nothing
    });
    let error = apply(&client, &plan, &plan.changes[0], &then).await;
    let error = error.unwrap_err();
    assert!(
        matches!(&error, ApplyError::Target(kube::Error::Api(status)) if status.code == 422),
        "{error:?}"
    );
    assert!(error.to_string().contains("spec.holds[0].id"), "{error}");
    assert_eq!(writes.load(Ordering::SeqCst), 2, "once more, and no more");
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(pin.metadata.generation, Some(1));
}

#[tokio::test]
async fn a_server_that_never_answers_leaves_it_open() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let plan = shop.plan("one").await;
    let client = between(&shop.embedded, |what, _| match what {
        "releasepins" => Happening::LostBefore,
        _ => Happening::Nothing,
    });
    tokio::time::pause();
    let error = apply(&client, &plan, &plan.changes[0], &then).await;
    let error = error.unwrap_err();
    assert!(matches!(error, ApplyError::Unknown { .. }), "{error}");
    assert!(
        error.to_string().ends_with("the connection broke"),
        "{error}"
    );
    let pin = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(pin.metadata.generation, Some(1));
}

#[tokio::test]
async fn a_long_chain_is_read_in_pages_where_it_has_to_be() {
    let shop = Shop::open().await;
    shop.pin("prod", "cart-1").await;
    let audit = AuditWriter::new(&shop.client, "default", then())
        .await
        .unwrap();
    for count in 0..8 {
        let pin = shop.pins().get("cart-prod").await.unwrap();
        audit.record(&KIND, &dynamic(&pin)).await.unwrap();
        set_release(
            &shop.client,
            "cart-prod",
            &format!("cart-{}", count % 2 + 2),
        )
        .await;
    }
    // After two changes without an audit entry, the newest entry does not belong to the previous revision.
    set_release(&shop.client, "cart-prod", "cart-1").await;
    let pin = shop.pins().get("cart-prod").await.unwrap();
    let newest = audit.record(&KIND, &dynamic(&pin)).await.unwrap().unwrap();
    assert_eq!(newest.spec.revision, 10);
    let before = audit::link(&shop.entries().get(&entry_name(&pin, 9)).await.unwrap());
    assert_eq!(newest.spec.previous, Some(before));
    shop.verifies(&["-"; 10]).await;
}

fn entry_name(pin: &ReleasePin, generation: i64) -> String {
    crate::api::names::audit_entry(&pin.name_any(), &pin.uid().unwrap(), generation)
}

/// Returns a plan that makes the same change for several components.
async fn set(shop: &Shop, names: &[&str]) -> Plan {
    let mut plan = shop.plan("set").await;
    let first = plan.changes.remove(0);
    for name in names {
        let mut change = first.clone();
        change.name = (*name).to_owned();
        let own = Key::new("default", &format!("{name}-prod"));
        let named = |fact: &PinFact| -> Arc<dyn Fact> {
            let mut fact = fact.clone();
            if let PinFact::Pin { key, .. } | PinFact::Effective { key, .. } = &mut fact {
                *key = own.clone();
            }
            Arc::new(fact)
        };
        change.facts = facts::of(&first).map(named).collect();
        for field in &mut change.fields {
            match field.path.join(".").as_str() {
                "spec.component" => field.value = Some((*name).into()),
                "metadata.labels" => {
                    let own = json!({labels::COMPONENT: name, labels::ENVIRONMENT: "prod"});
                    field.value = Some(own);
                }
                _ => {}
            }
        }
        change.subject.key = own;
        plan.changes.push(change);
    }
    plan
}

#[tokio::test]
async fn a_set_is_checked_as_a_whole_before_anything_is_written() {
    let shop = Shop::open().await;
    let plan = set(&shop, &["a", "b", "c"]).await;
    let spec = json!({"component": "b", "environment": "prod", "releaseRef": {"name": "cart-1"}});
    let mut pin = ReleasePin::new("b-prod", serde_json::from_value(spec).unwrap());
    pin.labels_mut()
        .insert(labels::COMPONENT.into(), "b".into());
    pin.labels_mut()
        .insert(labels::ENVIRONMENT.into(), "prod".into());
    shop.pins()
        .create(&PostParams::default(), &pin)
        .await
        .unwrap();
    let abort = AtomicBool::new(false);
    let results = apply_all(&shop.client, &plan, &then, &abort).await;
    let told: Vec<String> = results
        .iter()
        .map(|result| result.as_ref().unwrap_err().to_string())
        .collect();
    assert_eq!(told.len(), 3);
    assert_eq!(told[0], told[2]);
    assert!(
        told[0].starts_with("not started: another change"),
        "{told:?}"
    );
    assert!(
        told[1].starts_with("b-prod was created with cart-1 by ana"),
        "{told:?}"
    );
    let pins = shop.pins().list(&ListParams::default()).await.unwrap();
    assert_eq!(pins.items.len(), 2, "nothing was written");

    shop.pins()
        .delete("b-prod", &DeleteParams::default())
        .await
        .unwrap();
    let results = apply_all(&shop.client, &plan, &then, &abort).await;
    for result in results {
        assert_eq!(result.unwrap(), Applied::Done(1));
    }
}

#[tokio::test]
async fn a_set_is_aborted_between_its_changes() {
    let shop = Shop::open().await;
    let plan = set(&shop, &["a", "b", "c"]).await;
    let abort = Arc::new(AtomicBool::new(false));
    let flag = abort.clone();
    let client = between(&shop.embedded, move |what, count| {
        if (what, count) == ("releasepins", 1) {
            flag.store(true, Ordering::SeqCst);
        }
        Happening::Nothing
    });
    let results = apply_all(&client, &plan, &then, &abort).await;
    assert!(matches!(
        results.as_slice(),
        [
            Ok(Applied::Done(1)),
            Ok(Applied::Done(1)),
            Err(ApplyError::NotBegun { .. })
        ]
    ));
    // The second run of the same plan makes the changes that the aborted run left out.
    abort.store(false, Ordering::SeqCst);
    let results = apply_all(&client, &plan, &then, &abort).await;
    for result in results {
        assert_eq!(result.unwrap(), Applied::Done(1));
    }
}
