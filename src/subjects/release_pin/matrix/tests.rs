use serde_json::json;

use super::*;
use crate::engine::world::Event;
use crate::fixture::*;

fn fleet() -> World {
    let mut world = world();
    for (version, minute) in [("v1", 1), ("v2", 2), ("v3", 3), ("v4", 4)] {
        world.releases(Event::Applied(release("cart", version, minute)));
    }
    world
}

fn cell_of<'w>(world: &'w World, environment: &str, when: Timestamp) -> Cell<'w> {
    let columns = Columns::of(world, Some("shop"));
    let column = columns.position(environment).unwrap();
    cell(world, &columns, &key("cart"), column, when).unwrap()
}

#[test]
fn columns_follow_the_pipeline_and_end_with_the_rest() {
    let mut world = world();
    world.pins(Event::Applied(pin("cart", "attic", "v1")));
    let columns = Columns::of(&world, Some("shop"));
    let names: Vec<&str> = columns.names().iter().map(|name| &**name).collect();
    assert_eq!(names, ["development", "staging", "production", "attic"]);
    assert_eq!(columns.before("shop", 0), None);
    assert_eq!(columns.before("shop", 2), Some(1));
    assert_eq!(columns.before("shop", 3), None);
    assert!(columns.is_production("shop", 2) && !columns.is_production("shop", 1));
    assert!(columns.is_first("shop", 0) && !columns.is_first("shop", 1));
    assert_eq!(columns.before("elsewhere", 2), None);
    assert_eq!(columns.faults().count(), 0);
    // All objects are in one namespace, so the columns for all namespaces are the same.
    assert_eq!(Columns::of(&world, None), columns);
    assert_eq!(
        Columns::of(&world, Some("other")).names(),
        [] as [Arc<str>; 0]
    );
    // Environments in a cycle have no order, so the cycle is reported as a fault.
    world.pipelines(Event::Applied(stored(pipeline(&[
        ("staging", "production"),
        ("production", "staging"),
    ]))));
    let columns = Columns::of(&world, Some("shop"));
    let names: Vec<&str> = columns.names().iter().map(|name| &**name).collect();
    assert_eq!(names, ["development", "production", "staging", "attic"]);
    let faults: Vec<String> = columns.faults().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "DeploymentPipeline default: the promotion paths lead in a circle through staging, production; remove one of the paths between them"
        ]
    );
}

#[test]
fn a_second_pipeline_is_a_fault_that_leaves_the_columns() {
    let mut world = world();
    let before = Columns::of(&world, Some("shop"));
    let mut other = stored(pipeline(&[("production", "development")]));
    other.metadata.name = Some("other".to_owned());
    world.pipelines(Event::Applied(other.clone()));
    let columns = Columns::of(&world, Some("shop"));
    assert_eq!(columns.names(), before.names());
    let faults: Vec<String> = columns.faults().map(ToString::to_string).collect();
    assert_eq!(
        faults,
        [
            "namespace shop has 2 DeploymentPipelines (default, other), but only one is allowed; bowline refuses promotions until you delete the others"
        ]
    );
    world.pipelines(Event::Deleted(other));
    assert_eq!(Columns::of(&world, Some("shop")), before);
}

#[test]
fn a_release_that_cannot_be_applied_fails_with_its_reason() {
    let failing = |applied: Option<&str>, observed: Option<i64>, outcome: Option<&str>| {
        let mut pin = unready(
            pin("cart", "production", "v2"),
            "GitFetchFailed",
            "cannot fetch",
            "13:40:00",
        );
        pin.metadata.generation = Some(2);
        let status = pin.status.as_mut().unwrap();
        status.applied_release = applied.map(str::to_owned);
        status.observed_generation = observed;
        status.outcomes = serde_json::from_value(match outcome {
            None => json!([]),
            Some(release) => json!([{"generation": 2, "release": release, "since": NOW}]),
        })
        .unwrap();
        pin
    };
    for (what, pin, expected) in [
        (
            "never applied",
            failing(None, Some(2), None),
            Health::Degraded,
        ),
        (
            "another release was applied before",
            failing(Some("cart-v1"), Some(2), Some("cart-v2")),
            Health::Degraded,
        ),
        (
            "a status that names no generation",
            failing(None, None, None),
            Health::Degraded,
        ),
        (
            "the failure is that of an earlier generation",
            failing(Some("cart-v1"), Some(1), None),
            Health::Unknown,
        ),
        (
            "a hold on the failing release that the controller has not seen",
            {
                let mut held = failing(Some("cart-v1"), Some(2), Some("cart-v2"));
                held.metadata.generation = Some(3);
                held
            },
            Health::Degraded,
        ),
        (
            "another release that the controller has not seen",
            {
                let mut moved = failing(Some("cart-v2"), Some(2), Some("cart-v1"));
                moved.metadata.generation = Some(3);
                moved
            },
            Health::Unknown,
        ),
        (
            "the failure is that of a release whose hold ended",
            failing(Some("cart-v1"), Some(2), Some("cart-v1")),
            Health::Unknown,
        ),
    ] {
        let mut world = fleet();
        world.pins(Event::Applied(pin));
        let cell = cell_of(&world, "production", now());
        assert_eq!(cell.health(), expected, "{what}");
        let reason = (expected == Health::Degraded).then_some(("GitFetchFailed", "cannot fetch"));
        assert_eq!(cell.reason, reason, "{what}");
    }
}

#[test]
fn a_cell_says_what_runs_and_how() {
    let mut world = fleet();
    world.pins(Event::Applied(pin("cart", "development", "v4")));
    world.pins(Event::Applied(pin("cart", "staging", "v2")));
    let failing = unready(
        pin("cart", "production", "v1"),
        "Degraded",
        "Deployment web: 2 of 5 ready, CrashLoopBackOff",
        "13:40:00",
    );
    world.pins(Event::Applied(failing));
    let cell = cell_of(&world, "production", now());
    assert_eq!(
        (cell.release, cell.version, cell.label),
        ("cart-v1", "v1", "v1")
    );
    assert_eq!(
        (cell.health(), cell.told),
        (Health::Degraded, Health::Degraded)
    );
    assert_eq!(cell.progress.unwrap().to_string(), "2/5");
    assert_eq!(cell.behind, Some(1));
    assert_eq!((cell.held, cell.expired(), cell.wanted), (0, 0, None));
    assert_eq!(cell.since, Some(at("10:00:00")));
    assert_eq!(cell.changed(), Some(at("13:40:00")));
    let cell = cell_of(&world, "staging", now());
    assert_eq!(
        (cell.behind, cell.health(), cell.progress),
        (Some(2), Health::Ready, None)
    );
    let cell = cell_of(&world, "development", now());
    assert_eq!((cell.behind, cell.good), (None, None));
}

#[test]
fn what_the_controller_has_not_seen_is_unknown() {
    let mut world = fleet();
    let mut moved = pin("cart", "production", "v1");
    moved.metadata.generation = Some(2);
    moved.spec.release_ref.name = "cart-v2".to_owned();
    world.pins(Event::Applied(moved));
    let cell = cell_of(&world, "production", now());
    assert_eq!(
        (cell.label, cell.health(), cell.since, cell.turned),
        ("v2", Health::Unknown, None, None)
    );
}

#[test]
fn a_release_that_is_not_there_is_missing_once_the_list_is() {
    let mut world = fleet();
    world.pins(Event::Applied(pin("cart", "production", "9f1c22ab")));
    let cell = cell_of(&world, "production", now());
    assert_eq!((cell.health(), cell.told), (Health::Missing, Health::Ready));
    assert_eq!((cell.version, cell.label), ("cart-9f1c22ab", "9f1c22ab"));
    let mut loading = World::new();
    loading.pins(Event::Applied(pin("cart", "production", "v1")));
    assert!(!cell_of(&loading, "production", now()).missing);
}

#[test]
fn holds_fix_and_end() {
    let mut world = fleet();
    let holds = json!([
        {"id": "a", "owner": "ana", "since": "2026-11-17T09:00:00Z", "release": "cart-v1"},
        {"id": "b", "owner": "tom", "since": "2026-11-17T09:00:00Z", "until": "2026-11-17T13:00:00Z"},
    ]);
    world.pins(Event::Applied(held(pin("cart", "production", "v2"), holds)));
    world.releases(Event::Applied(marked_bad(release("cart", "v1", 1))));
    let cell = cell_of(&world, "production", now());
    assert_eq!((cell.release, cell.wanted), ("cart-v1", Some("cart-v2")));
    assert_eq!((cell.held, cell.expired(), cell.bad), (1, 1, true));
    let cell = cell_of(&world, "production", at("12:00:00"));
    assert_eq!((cell.held, cell.expired()), (2, 0));
}

#[test]
fn a_release_runs_since_the_first_of_its_last_moves() {
    let mut world = fleet();
    let moves = json!([
        {"generation": 1, "release": "cart-v0", "since": "2026-11-17T07:00:00Z", "until": "2026-11-17T08:00:00Z", "healthy": true},
        {"generation": 2, "release": "cart-v1", "since": "2026-11-17T08:00:00Z", "until": "2026-11-17T09:00:00Z", "healthy": true},
        {"generation": 3, "release": "cart-v2", "since": "2026-11-17T09:00:00Z", "until": "2026-11-17T09:30:00Z", "healthy": true},
        {"generation": 4, "release": "cart-v2", "since": "2026-11-17T09:30:00Z", "healthy": true},
    ]);
    world.pins(Event::Applied(outcomes(
        pin("cart", "production", "v2"),
        moves,
    )));
    let cell = cell_of(&world, "production", now());
    assert_eq!(cell.since, Some(at("09:00:00")));
    let good = cell.good.unwrap();
    assert_eq!(
        (good.release, good.label, good.revision),
        ("cart-v1", "v1", 2)
    );
    assert_eq!(
        (good.since, good.until),
        (at("08:00:00"), Some(at("09:00:00")))
    );
}

#[test]
fn progress_is_found_in_messages() {
    for (message, expected) in [
        ("", None),
        ("2 of 5 ready", Some("2/5")),
        ("web: 0 of 3 ready, 1 of 3 updated", Some("0/3")),
        ("1 of 3 updated, 2 of 3 ready", Some("2/3")),
        ("one of 3 ready", None),
        ("2 of many ready", None),
        ("2 of 5", None),
        ("99999999999 of 5 ready", None),
        ("é of 5 ready", None),
    ] {
        let found = Progress::find(message).map(|progress| progress.to_string());
        assert_eq!(found.as_deref(), expected, "{message}");
    }
}
