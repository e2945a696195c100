use std::collections::{BTreeMap, BTreeSet};

use futures::{FutureExt, StreamExt};
use http::{Request, Response, StatusCode};
use kube::api::{Api, DeleteParams, PostParams};
use kube::client::Body;
use kube_embedded::Embedded;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::engine::world::Freshness;
use crate::engine::world::feed;
use crate::fixture::{self, install_kinds, key, remove_kinds, stored, with};

const NOW: &str = "2026-01-06T00:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn pin(name: &str, component: &str, environment: &str, release: &str) -> ReleasePin {
    let pin = fixture::new_pin(component, environment, release);
    stored(with(pin, json!({"metadata": {"name": name}})))
}

fn release(name: &str, component: Option<&str>, day: u8) -> PartialObjectMeta<Release> {
    let created = format!("2026-01-{day:02}T00:00:00Z");
    let release = fixture::metadata(name, component.unwrap_or_default(), &created);
    let annotations = json!({
        "bowline.dev/size": "4711", "bowline.dev/version": "v1", "bowline.dev/images": "i",
        "bowline.dev/content-hash": "abc",
    });
    let mut release = with(release, json!({"metadata": {"annotations": annotations}}));
    if component.is_none() {
        release.labels_mut().clear();
    }
    release
}

fn names<'w>(rows: impl Iterator<Item = &'w ReleaseRow>) -> Vec<String> {
    rows.map(|row| row.key.name.to_string()).collect()
}

#[test]
fn what_is_asked_is_what_was_told() {
    let mut world = World::new();
    world.releases(Event::Applied(release("c-1", Some("c"), 1)));
    world.releases(Event::Applied(release("c-3", Some("c"), 3)));
    world.releases(Event::Applied(release("c-2", Some("c"), 2)));
    world.releases(Event::Applied(release("foreign", None, 2)));
    world.pins(Event::Applied(pin("c-dev", "c", "dev", "c-3")));
    world.pins(Event::Applied(pin("c-prod", "c", "prod", "c-1")));
    let component = key("c");
    assert_eq!(names(world.releases_of(&component)), ["c-3", "c-2", "c-1"]);
    let (dev, prod) = (
        world.pin_of(&component, "dev").unwrap(),
        world.pin_of(&component, "prod").unwrap(),
    );
    assert_eq!(world.behind(prod, dev, now()), Some(2));
    assert_eq!(world.behind(dev, prod, now()), Some(0));
    assert_eq!(
        world.pins_naming(&key("c-1")).collect::<Vec<_>>(),
        ["c-prod"]
    );
    assert_eq!(world.pins_of(&component).count(), 2);
    let row = world.release(&key("c-1")).unwrap();
    assert_eq!((row.size, row.version.as_deref()), (Some(4711), Some("v1")));
    // The ReleasePin now names another release, so no ReleasePin names the old one.
    world.pins(Event::Applied(pin("c-prod", "c", "prod", "c-3")));
    assert_eq!(world.pins_naming(&key("c-1")).count(), 0);
    assert_eq!(
        world.pins_naming(&key("c-3")).collect::<Vec<_>>(),
        ["c-dev", "c-prod"]
    );
    // After the deletion of the release, ReleasePins still name it.
    world.releases(Event::Deleted(release("c-3", Some("c"), 3)));
    assert_eq!(world.pins_naming(&key("c-3")).count(), 2);
    let prod = world.pin_of(&component, "prod").unwrap();
    assert_eq!(world.behind(prod, prod, now()), None);
}

#[test]
fn holds_and_their_releases_count() {
    let mut held = pin("c-prod", "c", "prod", "c-2");
    held.spec.holds = serde_json::from_value(json!([
        {"id": "a", "owner": "ana", "since": "2026-01-01T00:00:00Z", "release": "c-1"},
        {"id": "b", "owner": "bob", "since": "2026-01-02T00:00:00Z", "until": "2026-01-03T00:00:00Z", "release": "c-0"},
    ]))
    .unwrap();
    let mut world = World::new();
    world.pins(Event::Applied(held.clone()));
    let row = world.pin(&key("c-prod")).unwrap();
    assert_eq!(row.effective_release(now()), "c-1");
    assert_eq!(
        row.effective_release(now()),
        held.spec.effective_release(now())
    );
    assert_eq!(row.active_holds(now()).count(), 1);
    for named in ["c-0", "c-1", "c-2"] {
        assert_eq!(world.pins_naming(&key(named)).count(), 1, "{named}");
    }
    // If a GitOps tool owns the ReleasePin, a hold that fixes a release does not end.
    held.annotations_mut()
        .insert("argocd.argoproj.io/tracking-id".into(), "x".into());
    world.pins(Event::Applied(held));
    let row = world.pin(&key("c-prod")).unwrap();
    assert_eq!(row.effective_release(now()), "c-0");
    assert_eq!(row.active_holds(now()).count(), 2);
}

#[test]
fn a_new_list_forgets_what_it_does_not_bring() {
    let mut world = crate::subjects::read_model();
    world.pins(Event::Listing);
    world.pins(Event::Applied(pin("a", "c", "dev", "c-1")));
    world.pins(Event::Applied(pin("b", "c", "prod", "c-1")));
    assert_eq!(*world.freshness(Source::RELEASE_PINS), Freshness::Loading);
    world.pins(Event::Listed);
    assert_eq!(*world.freshness(Source::RELEASE_PINS), Freshness::Live);
    world.cut_off(Source::RELEASE_PINS, now(), "no route".to_owned(), false);
    world.cut_off(
        Source::RELEASE_PINS,
        now() + jiff::SignedDuration::from_secs(60),
        "refused".to_owned(),
        true,
    );
    let stale = Freshness::Stale {
        since: now(),
        why: "refused".to_owned(),
        denied: true,
    };
    assert_eq!(*world.freshness(Source::RELEASE_PINS), stale);
    assert_eq!(world.pins_of(&key("c")).count(), 2);
    world.pins(Event::Listing);
    world.pins(Event::Applied(pin("b", "c", "prod", "c-2")));
    world.pins(Event::Listed);
    assert_eq!(*world.freshness(Source::RELEASE_PINS), Freshness::Live);
    assert_eq!(world.pins_of(&key("c")).count(), 1);
    assert_eq!(world.pins_naming(&key("c-1")).count(), 0);
    assert!(!world.is_live());
}

/// Checks that the indexes match the rows of the tables.
fn check(world: &World) {
    let mut named: BTreeMap<Key, BTreeSet<Arc<str>>> = BTreeMap::new();
    let tables = world.release_pins();
    for (key, row) in tables.pins.iter() {
        for release in row.named_releases() {
            named
                .entry(key.beside(release))
                .or_default()
                .insert(key.name.clone());
        }
        let component = key.beside(&row.component);
        let found = world.pin_of(&component, &row.environment);
        assert!(found.is_some(), "{key:?} is in no index");
    }
    let indexed: BTreeMap<_, _> = tables.named_by.clone().into_iter().collect();
    assert_eq!(indexed, named);
    let with_component = tables.releases.iter();
    let with_component = with_component.filter(|(_, row)| row.component.is_some());
    let counted: usize = tables.components.values().map(|of| of.releases.len()).sum();
    assert_eq!(counted, with_component.count());
    let all = world.all_releases();
    let unowned: BTreeSet<&Key> = all
        .filter(|row| row.component.is_none())
        .map(|row| &row.key)
        .collect();
    assert!(world.unowned_releases().map(|row| &row.key).eq(unowned));
    assert!(tables.components.values().all(|of| !of.is_empty()));
    for component in world.components() {
        let created: Vec<_> = world
            .releases_of(component)
            .map(|row| row.created)
            .collect();
        assert!(created.is_sorted_by(|one, next| one >= next), "{created:?}");
    }
}

proptest! {
    #[test]
    fn indexes_agree_with_the_rows(
        events in prop::collection::vec((0..6u8, 0..6u8, 0..3u8, 0..4u8, 1..20u8), 0..60)
    ) {
        let mut world = World::new();
        for (what, name, component, target, day) in events {
            let (name, component) = (format!("n{name}"), format!("c{component}"));
            match what {
                // The component and the environment of a ReleasePin never change, so the name determines both.
                0 | 1 => {
                    let environment = format!("e-{name}");
                    let owner = format!("c-{name}");
                    world.pins(Event::Applied(pin(&name, &owner, &environment, &format!("r{target}"))));
                }
                2 => world.pins(Event::Deleted(pin(&name, "", "", ""))),
                3 => world.releases(Event::Applied(release(&name, Some(&component), day))),
                4 => world.releases(Event::Applied(release(&name, None, day))),
                _ => world.releases(Event::Deleted(release(&name, None, day))),
            }
            check(&world);
        }
        world.pins(Event::Listing);
        world.pins(Event::Listed);
        world.releases(Event::Listing);
        world.releases(Event::Listed);
        let tables = world.release_pins();
        prop_assert!(tables.components.is_empty() && tables.named_by.is_empty());
    }
}

#[tokio::test]
async fn a_feed_follows_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = fixture::store::open(&folder.path().join("store.db"), "ana").await;
    let client = embedded.client("shop");
    let mut feed = crate::subjects::watch(&client, None);
    let mut touched = Box::pin(feed.touched());
    feed.until(World::is_live).await;
    for _ in READ_BY_GC {
        assert_eq!(touched.next().await.unwrap().key, None, "a list");
    }
    let post = PostParams::default();
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&post, &namespace).await.unwrap();
    let mut made = pin("c-dev", "c", "dev", "c-1");
    made.metadata.uid = None;
    made.metadata.labels = Some(
        [
            ("openchoreo.dev/component", "c"),
            ("openchoreo.dev/environment", "dev"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into(),
    );
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), "shop");
    pins.create(&post, &made).await.unwrap();
    feed.when(|world| world.pin_of(&key("c"), "dev").is_some())
        .await;
    let told = feed::Touched {
        source: Source::RELEASE_PINS,
        key: Some(key("c-dev")),
        component: Some("c".into()),
    };
    assert_eq!(touched.next().await, Some(told.clone()));
    pins.delete("c-dev", &DeleteParams::default())
        .await
        .unwrap();
    feed.until(|world| world.pin_of(&key("c"), "dev").is_none())
        .await;
    assert!(feed.world().is_live());
    assert_eq!(touched.next().await, Some(told));
}

/// Returns a client whose server answers every discovery request with an error.
fn without_discovery(embedded: &Embedded) -> kube::Client {
    let client = embedded.client("shop");
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        let denied = request.uri().path() == "/apis/openchoreo.dev/v1alpha1";
        async move {
            if !denied {
                return client.send(request).await;
            }
            let status = json!({"kind": "Status", "apiVersion": "v1", "code": 403, "reason": "Forbidden", "message": "no", "status": "Failure"});
            let mut answer = Response::new(Body::from(status.to_string().into_bytes()));
            *answer.status_mut() = StatusCode::FORBIDDEN;
            Ok(answer)
        }
        .boxed()
    });
    kube::Client::new(service, "shop")
}

#[tokio::test]
async fn a_kind_that_the_server_does_not_have_is_absent_until_it_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let embedded = fixture::store::open(&folder.path().join("store.db"), "ana").await;
    let client = embedded.client("shop");
    for (client, gone) in [
        (client.clone(), &READ_BY_GC[..]),
        (client.clone(), &[Source::SNAPSHOTS]),
        (without_discovery(&embedded), &[Source::RELEASE_PINS]),
    ] {
        remove_kinds(&client, gone).await.unwrap();
        let mut feed = crate::subjects::watch(&client, Some("shop"));
        feed.until(|world| world.are_known(&READ_BY_GC)).await;
        for source in READ_BY_GC {
            let is_gone = gone.contains(&source);
            assert_eq!(feed.world().is_absent(source), is_gone, "{source:?}");
        }
        install_kinds(&client).await.unwrap();
        feed.until(World::is_live).await;
        assert_eq!(feed.world().absent_kinds(), [""; 0]);
    }
}
