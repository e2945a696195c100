use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{Api, ListParams};
use kube_embedded::Clock;

use super::script::{COMPANY, Deed, FARES, PAST, What};
use super::stage::When;
use super::*;
use crate::api::ReleasePin;
use crate::api::bowline::audit::AuditEntry;
use crate::connect;
use crate::controllers::beside::Beside;
use crate::engine::audit;
use crate::engine::plan::Asked;
use crate::engine::world::Key;
use crate::subjects::release_pin::READ_BY_GC;
use crate::subjects::release_pin::actions::gc::{self, Gc};
use crate::subjects::release_pin::actions::rollback;
use crate::subjects::release_pin::kind::live;
use crate::subjects::release_pin::matrix::Health;
use crate::subjects::release_pin::planner::{ActionRequest, Planner};
use crate::subjects::release_pin::rows::Pin;

/// The time after which a test of the demo fails. Usually the tests need much less.
const HANG: Duration = Duration::from_secs(180);

fn now() -> Timestamp {
    "2026-01-06T12:00:00Z".parse().unwrap()
}

fn surroundings() -> Environment {
    Environment {
        user: "demo".to_owned(),
        ..Environment::default()
    }
}

fn bind(test: impl FnOnce()) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path("../../../snapshots/cli");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(test);
}

fn matrix(demo: &Demo, at: Timestamp) -> String {
    Matrix::of(&demo.stage.feed.world(), Some(NAMESPACE), at).text()
}

async fn record(demo: &Demo) -> (Vec<ReleasePin>, Vec<AuditEntry>) {
    let clock: Clock = Arc::new(now);
    let client = demo.stage.connection("demo", &clock).client;
    let pins: Api<ReleasePin> = Api::namespaced(client.clone(), NAMESPACE);
    let entries: Api<AuditEntry> = Api::namespaced(client, NAMESPACE);
    let all = ListParams::default();
    (
        pins.list(&all).await.unwrap().items,
        entries.list(&all).await.unwrap().items,
    )
}

#[tokio::test]
async fn the_world_reads_back_as_its_matrix() {
    let printed = run(&surroundings(), now()).await.unwrap();
    bind(|| insta::assert_snapshot!("demo", printed));
}

#[tokio::test]
async fn the_past_is_whole_and_believable() {
    let demo = Demo::play(&surroundings(), now()).await.unwrap();
    let (pins, entries) = record(&demo).await;
    let verdict = audit::verify(&live(&pins), &entries);
    assert!(verdict.is_valid(), "{:?}", verdict.problems);
    assert!(verdict.warnings.is_empty(), "{:?}", verdict.warnings);
    assert_eq!(entries.len(), PAST.len());
    let actors: BTreeSet<_> = entries
        .iter()
        .filter_map(|entry| entry.spec.actor.as_deref())
        .collect();
    assert_eq!(
        actors.into_iter().collect::<Vec<_>>(),
        ["ana", "bowline-controller", "kai", "mei", "tom"]
    );
    assert!(entries.iter().all(|entry| entry.spec.reason.is_some()));
    let world = demo.stage.feed.world();
    for pin in world.all_pins() {
        for release in pin.named_releases() {
            let key = Key::new(NAMESPACE, release);
            assert!(world.release(&key).is_some(), "{} dangles", pin.key.name);
        }
    }
    let checkout = Key::new(NAMESPACE, "checkout-service");
    let broken = world.pin_of(&checkout, "production-eu").unwrap();
    let good = rollback::last_good(&world, broken, now()).unwrap();
    assert_eq!(&*good.release, "checkout-service-v1.2.1");
    let asked = Asked {
        operation: "gc".to_owned(),
        now: now(),
        user: "demo".to_owned(),
        reason: None,
        namespace: NAMESPACE.to_owned(),
    };
    assert!(world.are_live(&READ_BY_GC));
    let collection = gc::plan(&world, &Gc::default(), &asked).unwrap();
    let going: Vec<_> = collection
        .going()
        .map(|gone| gone.key.name.to_string())
        .collect();
    assert_eq!(
        going,
        [
            "cart-v0.8.4",
            "checkout-service-v1.1.9",
            "checkout-service-v1.1.8"
        ]
    );
}

#[tokio::test]
async fn the_company_does_what_it_is_said_to() {
    let demo = Demo::play(&surroundings(), now()).await.unwrap();
    let mut last = now();
    for deed in COMPANY {
        last = past::moment(now(), deed.at);
        let clock: Clock = Arc::new(move || last);
        // No controller runs in this test, so a deployed release never becomes ready, and the rule about readiness is
        // not checked.
        let when = match deed.what {
            What::Promote(..) => When::Past,
            _ => When::Present,
        };
        let moved = demo.stage.perform(deed, &clock, when).await.unwrap();
        assert!(moved.is_some(), "{deed:?}");
    }
    let shown = matrix(&demo, last);
    bind(|| insta::assert_snapshot!("demo_company", shown));
    let (pins, entries) = record(&demo).await;
    assert!(audit::verify(&live(&pins), &entries).is_valid());
    // The current definitions must be those of the release in the first environment. Otherwise a deploy by the real
    // user would restore an older version.
    let clock: Clock = Arc::new(move || last);
    let connection = demo.stage.connection("demo", &clock);
    let planner = Planner {
        connection: &connection,
        feed: &demo.stage.feed,
        git: &demo.git,
    };
    for component in script::components() {
        let order = ActionRequest::Deploy {
            component: component.to_owned(),
            environment: script::DEVELOPMENT.to_owned(),
            release: None,
            skip_path: false,
        };
        let asked = Asked {
            operation: "deploy".to_owned(),
            now: last,
            user: "demo".to_owned(),
            reason: None,
            namespace: NAMESPACE.to_owned(),
        };
        let action_plan = planner.action_plan(&order, &asked).await.unwrap();
        let change = action_plan.plan.changes.first().unwrap();
        let from = change.from.as_ref().unwrap();
        assert_eq!(from.hash, change.to.hash, "{component}");
    }
}

#[tokio::test]
async fn controllers_take_over_and_all_is_well_but_the_hotfix() {
    let demo = Demo::play(&surroundings(), Timestamp::now()).await.unwrap();
    let connection = connect::connect(&demo.options, &demo.environment)
        .await
        .unwrap();
    let beside = Beside {
        connection: &connection,
        options: &demo.options,
        environment: &demo.environment,
        git: &demo.git,
    };
    let fares = |pin: &Pin| {
        let expected = match &*pin.key.name {
            "checkout-service-production-eu" => Health::Degraded,
            _ => Health::Ready,
        };
        // Wait for the snapshot: before the controller has observed the ReleasePin, the status comes from the script.
        pin.snapshot.is_some() && Health::told(pin, Timestamp::now()) == expected
    };
    let settled = demo.stage.feed.when(|world| world.all_pins().all(fares));
    let settled = tokio::time::timeout(HANG, beside.until(settled)).await;
    let health = |pin: &Pin| (pin.key.name.clone(), pin.ready.clone());
    let found = || {
        demo.stage
            .feed
            .world()
            .all_pins()
            .map(health)
            .collect::<Vec<_>>()
    };
    assert!(settled.is_ok(), "{:?}", found());
}

#[test]
fn the_script_is_in_order_and_keeps_away_from_what_is_broken() {
    for component in script::components() {
        let own: Vec<&Deed> = PAST
            .iter()
            .filter(|deed| deed.component == component)
            .collect();
        assert!(own.is_sorted_by_key(|deed| deed.at), "{component}");
        assert!(own.iter().all(|deed| deed.at < 0), "{component}");
        assert!(
            own.first().is_some_and(|deed| deed.at > FOUNDED),
            "{component}"
        );
    }
    assert!(COMPANY.is_sorted_by_key(|deed| deed.at));
    for deed in COMPANY {
        assert!(deed.at > 0, "{deed:?}");
        assert_ne!(deed.component, "checkout-service", "{deed:?}");
        let moves_production = match deed.what {
            What::Promote(_, to) | What::Rollback(to, _) => to.starts_with("production"),
            _ => false,
        };
        assert!(!moves_production, "{deed:?}");
    }
    for (component, environment, _) in FARES {
        assert!(
            script::newest(component).is_some(),
            "{component} in {environment}"
        );
    }
}

#[test]
fn the_surroundings_lead_nowhere() {
    let own = Environment {
        kubeconfig: Some("/home/ana/.kube/config".into()),
        home: Some("/home/ana".into()),
        config_dir: Some("/home/ana/.config/bowline".into()),
        in_pod: true,
        ..surroundings()
    };
    let apart = apart(&own, Path::new("/tmp/demo"));
    let contexts = crate::connect::contexts(&Options::default(), &apart);
    assert!(contexts.is_empty());
    assert_eq!(apart.config_dir, own.config_dir);
    assert!(!apart.in_pod);
}

#[test]
fn the_world_is_the_whole_example() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/examples");
    let mut there = Vec::new();
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => open.push(path),
                Some(extension) if extension == "yaml" => {
                    there.push(path.strip_prefix(&root).unwrap().display().to_string());
                }
                _ => {}
            }
        }
    }
    there.sort();
    let here: Vec<_> = example::FILES
        .iter()
        .map(|(file, _)| (*file).to_owned())
        .collect();
    assert_eq!(here, there);
}
