use serde_json::json;

use super::*;
use crate::engine::world::Event;
use crate::fixture::*;
use crate::subjects::release_pin::past::tests::entry;

fn told(suspects: &[Suspect]) -> Vec<String> {
    let line = |suspect: &Suspect| {
        let place = suspect.environment.as_deref().unwrap_or("-");
        format!("{} {place}: {}", suspect.component.name, suspect.details)
    };
    suspects.iter().map(line).collect()
}

#[test]
fn changes_before_the_start_come_first_and_the_closest_of_them_leads() {
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
    let suspects = rank(&past, &world, at("14:02:00"), at("14:30:00"));
    let expected = [
        "cart production: 60 s before, 0 of 3 ready",
        "cart staging: 60 s before, 0 of 3 ready",
        "search development: 3 min before",
        "search production: 3 min before",
        "cart production: 3 min before, degraded 2 min later and since, degraded in staging too",
        "ledger production: 32 min before, no longer runs there",
        "cart -: 8 min after",
        "ledger production: 18 min after",
    ];
    assert_eq!(told(&suspects), expected);
    let after: Vec<bool> = suspects.iter().map(|suspect| suspect.is_after).collect();
    assert_eq!(after.iter().filter(|after| **after).count(), 2);
    assert_eq!(after[6..], [true, true]);
    // Changes more than a day before the start of the incident are left out.
    let start = "2026-11-16T08:03:00Z".parse().unwrap();
    let suspects = rank(&past, &world, start, start);
    assert_eq!(suspects.len(), 6);
    assert_eq!(suspects[0].what, What::Made("cart-v2".to_owned()));
    assert_eq!(suspects[0].details, "60 s before");
    assert!(told(&suspects).contains(&"cart -: 2 min before, runs nowhere".to_owned()));
}

#[test]
fn a_repair_after_the_start_is_listed_after_the_changes_before_it() {
    let mut world = world();
    let mut repaired = pin("cart", "production", "v1");
    repaired.status.as_mut().unwrap().outcomes.clear();
    world.pins(Event::Applied(repaired));
    let moved = |action: &str, from: &str, to: &str| json!({"action": action, "from": {"name": from}, "to": {"name": to}});
    let entries = [
        entry(
            "cart",
            Some("production"),
            2,
            "08:00:00",
            moved("Promote", "cart-v1", "cart-v2"),
        ),
        entry(
            "cart",
            Some("production"),
            3,
            "10:55:00",
            moved("Undo", "cart-v2", "cart-v1"),
        ),
    ];
    let past = Past::of(&entries, &world);
    let suspects = rank(&past, &world, at("10:00:00"), at("11:00:00"));
    assert_eq!(
        told(&suspects),
        [
            "cart production: 2 h before, no longer runs there",
            "cart production: 55 min after"
        ]
    );
}

#[test]
fn a_change_that_a_wrong_clock_puts_after_the_start_counts_as_before_it() {
    let world = world();
    let incident = Incident {
        world: &world,
        start: at("14:00:00"),
        now: at("15:00:00"),
    };
    for (time, is_after) in [
        ("13:59:00", false),
        ("14:00:00", false),
        ("14:02:00", false),
        ("14:02:01", true),
        ("14:50:00", true),
    ] {
        assert_eq!(incident.is_after(at(time)), is_after, "{time}");
    }
    assert_eq!(incident.when(at("14:00:00")), "at the start");
    assert_eq!(incident.when(at("13:58:30")), "90 s before");
    assert_eq!(incident.when(at("11:00:00")), "3 h before");
}

#[test]
fn what_nobody_recorded_is_a_suspect_too() {
    let mut world = world();
    world.pins(Event::Applied(pin("cart", "staging", "v1")));
    let past = Past::of(&[], &world);
    let suspects = rank(&past, &world, at("10:05:00"), now());
    assert_eq!(told(&suspects), ["cart staging: 5 min before"]);
}
