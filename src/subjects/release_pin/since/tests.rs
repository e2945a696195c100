use serde_json::json;

use super::*;
use crate::engine::world::Event;
use crate::subjects::release_pin::fixture::*;
use crate::subjects::release_pin::past::tests::entry;

fn told(suspects: &[Suspect]) -> Vec<String> {
    let line = |suspect: &Suspect| {
        let place = suspect.environment.as_deref().unwrap_or("-");
        format!("{} {place}: {}", suspect.component.name, suspect.why)
    };
    suspects.iter().map(line).collect()
}

#[test]
fn the_likeliest_cause_comes_first() {
    let mut world = world();
    for component in ["cart", "search", "ledger"] {
        for (version, minute) in [("v1", 1), ("v2", 2)] {
            world.releases(Event::Applied(release(component, version, minute)));
        }
    }
    let broken = |environment| {
        let mut broken = unready(
            pin("cart", environment, "v2"),
            "Degraded",
            "0 of 3 ready",
            "14:01:00",
        );
        broken.status.as_mut().unwrap().outcomes.clear();
        broken
    };
    world.pins(Event::Applied(broken("production")));
    world.pins(Event::Applied(broken("staging")));
    let quiet = |component, environment, version| {
        let mut quiet = pin(component, environment, version);
        quiet.status.as_mut().unwrap().outcomes.clear();
        quiet
    };
    world.pins(Event::Applied(quiet("search", "production", "v2")));
    world.pins(Event::Applied(quiet("search", "development", "v2")));
    world.pins(Event::Applied(quiet("ledger", "production", "v1")));
    let moved = |component: &str, action: &str| {
        json!({
            "action": action, "from": {"name": format!("{component}-v1")}, "to": {"name": format!("{component}-v2")},
        })
    };
    let entries = [
        entry(
            "cart",
            Some("production"),
            2,
            "13:59:00",
            moved("cart", "Promote"),
        ),
        entry(
            "search",
            Some("production"),
            2,
            "13:59:30",
            moved("search", "Promote"),
        ),
        entry(
            "search",
            Some("development"),
            2,
            "13:59:30",
            moved("search", "Deploy"),
        ),
        entry(
            "ledger",
            Some("production"),
            2,
            "13:30:00",
            moved("ledger", "Promote"),
        ),
        entry(
            "ledger",
            Some("production"),
            3,
            "14:20:00",
            json!({
                "action": "Pin", "from": {"name": "ledger-v2"}, "to": {"name": "ledger-v2"},
            }),
        ),
        entry(
            "cart",
            None,
            1,
            "14:10:00",
            json!({"action": "MarkBad", "to": {"name": "cart-v2"}}),
        ),
    ];
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    let suspects = rank(&past, &world, &columns, at("14:02:00"), at("14:30:00"));
    let expected = [
        "cart production: promoted 3 min before, production, degraded 2 min later and since, degraded in staging too",
        "search production: promoted 3 min before, production",
        "cart production: degraded since 60 s before, production, 0 of 3 ready",
        "search development: deployed 3 min before",
        "cart staging: degraded since 60 s before, 0 of 3 ready",
        "ledger production: promoted 32 min before, production, no longer runs there",
        "ledger production: pinned 18 min after, production",
        "cart -: marked bad 8 min after",
    ];
    assert_eq!(told(&suspects), expected);
    // Releases of the day before get few points, and older changes are left out.
    let start = "2026-11-16T08:03:00Z".parse().unwrap();
    let suspects = rank(&past, &world, &columns, start, start);
    assert_eq!(suspects.len(), 6);
    assert_eq!(suspects[0].what, What::Made("cart-v2".to_owned()));
    assert_eq!(suspects[0].why, "made 60 s before");
    assert!(told(&suspects).contains(&"cart -: made 2 min before, runs nowhere".to_owned()));
}

#[test]
fn closer_is_likelier_and_later_is_not() {
    let world = world();
    let columns = Columns::of(&world, None);
    let incident = Incident {
        world: &world,
        columns: &columns,
        start: at("14:00:00"),
        now: at("15:00:00"),
    };
    let times = [
        "14:00:00", "13:59:00", "13:50:00", "14:01:00", "13:30:00", "13:00:00", "14:05:00",
        "14:50:00",
    ];
    let points: Vec<u32> = times.map(|time| incident.closeness(at(time))).into();
    assert_eq!(points, [60, 54, 30, 36, 15, 8, 6, 1]);
    assert_eq!(incident.when(at("14:00:00")), "at the start");
    assert_eq!(incident.when(at("13:58:30")), "90 s before");
    assert_eq!(incident.when(at("11:00:00")), "3 h before");
}

#[test]
fn what_nobody_recorded_is_a_suspect_too() {
    let mut world = world();
    world.pins(Event::Applied(pin("cart", "staging", "v1")));
    let past = Past::of(&[], &world);
    let columns = Columns::of(&world, None);
    let suspects = rank(&past, &world, &columns, at("10:05:00"), now());
    assert_eq!(
        told(&suspects),
        ["cart staging: changed by an unrecorded user, 5 min before"]
    );
}
