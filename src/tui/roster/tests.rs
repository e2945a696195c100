use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::engine::world::feed::Touched;
use crate::engine::world::{Event, Source, World};
use crate::filter::read;
use crate::fixture::*;

fn touched(source: Source, name: &str, component: &str) -> Touched {
    Touched {
        source,
        key: Some(key(name)),
        component: Some(component.into()),
    }
}

fn names(roster: &RowSet) -> Vec<String> {
    let rows = roster.window(0, usize::MAX);
    rows.map(|row| row.key.name.to_string()).collect()
}

fn fleet() -> (World, RowSet) {
    let mut world = world();
    for component in ["ant", "bee", "cat", "dog"] {
        world.releases(Event::Applied(release(component, "v1", 1)));
        world.releases(Event::Applied(release(component, "v2", 2)));
        world.pins(Event::Applied(pin(component, "staging", "v1")));
        world.pins(Event::Applied(pin(component, "production", "v1")));
    }
    let mut roster = RowSet::new(Kind::Components, Some("shop"), "ana");
    roster.rebuild(&world, now());
    (world, roster)
}

/// Changes a ReleasePin in the world (the read model), and updates the row set. Returns whether a row changed.
fn apply(world: &mut World, roster: &mut RowSet, pin: crate::api::ReleasePin) -> bool {
    let (name, component) = (
        pin.metadata.name.clone().unwrap(),
        pin.spec.component.clone(),
    );
    world.pins(Event::Applied(pin));
    roster.touch(
        world,
        &touched(Source::RELEASE_PINS, &name, &component),
        now(),
    )
}

#[test]
fn one_change_moves_one_row() {
    let (mut world, mut roster) = fleet();
    roster.set_sort(Sort::Health, false);
    roster.select(&key("bee"));
    assert_eq!(names(&roster), ["ant", "bee", "cat", "dog"]);
    let broken = unready(pin("cat", "production", "v1"), "Degraded", "", "13:00:00");
    assert!(apply(&mut world, &mut roster, broken.clone()));
    assert_eq!(names(&roster), ["cat", "ant", "bee", "dog"]);
    assert_eq!(
        (roster.selected(), roster.position()),
        (Some(&key("bee")), Some(2))
    );
    assert_eq!(roster.totals().degraded, 1);
    // Applying the same object again changes nothing.
    assert!(!apply(&mut world, &mut roster, broken));
    assert!(apply(
        &mut world,
        &mut roster,
        pin("cat", "production", "v2")
    ));
    assert_eq!(names(&roster), ["ant", "bee", "cat", "dog"]);
    assert_eq!(
        roster.totals(),
        Totals {
            rows: 4,
            ..Totals::default()
        }
    );
    assert!(apply(&mut world, &mut roster, pin("dog", "staging", "v2")));
    assert_eq!(roster.totals().behind, 1);
    roster.set_sort(Sort::Behind, false);
    assert_eq!(names(&roster), ["dog", "ant", "bee", "cat"]);
    roster.set_sort(Sort::Behind, true);
    assert_eq!(names(&roster), ["cat", "bee", "ant", "dog"]);
}

#[test]
fn a_selection_that_vanishes_goes_to_its_neighbour() {
    let (mut world, mut roster) = fleet();
    for (gone, next) in [("bee", "cat"), ("dog", "cat"), ("cat", "ant")] {
        roster.select(&key(gone));
        for version in ["v1", "v2"] {
            world.releases(Event::Deleted(release(gone, version, 1)));
        }
        for environment in ["staging", "production"] {
            world.pins(Event::Deleted(pin(gone, environment, "v1")));
            let name = format!("{gone}-{environment}");
            roster.touch(&world, &touched(Source::RELEASE_PINS, &name, gone), now());
        }
        assert_eq!(roster.selected(), Some(&key(next)), "after {gone}");
        if gone == "dog" {
            roster.toggle_mark(&key("cat"));
        }
    }
    assert_eq!(names(&roster), ["ant"]);
    assert_eq!(
        roster.marked(),
        [] as [&Key; 0],
        "what is gone is not marked"
    );
}

#[test]
fn filters_hide_rows_and_keep_marks() {
    let (mut world, mut roster) = fleet();
    roster.select(&key("cat"));
    roster.toggle_mark(&key("ant"));
    roster.set_filter(read("bee").filter);
    assert_eq!(names(&roster), ["bee"]);
    assert_eq!(roster.selected(), Some(&key("bee")));
    assert_eq!(roster.marked(), [&key("ant")]);
    roster.set_filter(read("nothing").filter);
    assert_eq!((roster.len(), roster.position()), (0, None));
    roster.set_filter(read("marked").filter);
    assert_eq!(names(&roster), ["ant"]);
    roster.toggle_mark(&key("dog"));
    assert_eq!(names(&roster), ["ant", "dog"]);
    roster.set_filter(read("held").filter);
    assert_eq!(roster.len(), 0);
    // A row appears when its object starts to match the filter.
    let holds = json!([{"id": "a", "owner": "ana", "since": NOW, "until": "2026-11-17T15:00:00Z"}]);
    apply(
        &mut world,
        &mut roster,
        held(pin("dog", "production", "v1"), holds),
    );
    assert_eq!(names(&roster), ["dog"]);
    // A row disappears when its hold expires.
    assert_eq!(roster.next_expiry(), Some(at("15:00:00")));
    assert!(!roster.tick(&world, at("14:59:59")));
    assert!(roster.tick(&world, at("15:00:00")));
    assert_eq!((roster.len(), roster.next_expiry()), (0, None));
    roster.set_filter(Filter::default());
    roster.mark_shown();
    assert_eq!(roster.marked().len(), 4);
    roster.unmark();
    assert_eq!(roster.marked().len(), 0);
}

#[test]
fn faults_are_found() {
    let (mut world, mut roster) = fleet();
    assert!(!roster.step_to_fault(true));
    assert_eq!(roster.worst().map(|(key, _)| key), Some(key("ant")));
    let staging = unready(pin("bee", "staging", "v1"), "Degraded", "", "13:50:00");
    apply(&mut world, &mut roster, staging);
    assert_eq!(roster.worst(), Some((key("bee"), 1)));
    let production = unready(pin("dog", "production", "v1"), "Degraded", "", "13:00:00");
    apply(&mut world, &mut roster, production);
    assert_eq!(
        roster.worst(),
        Some((key("dog"), 2)),
        "production comes first"
    );
    roster.select(&key("cat"));
    for (forward, expected) in [(true, "dog"), (true, "bee"), (false, "dog"), (false, "bee")] {
        assert!(roster.step_to_fault(forward));
        assert_eq!(roster.selected(), Some(&key(expected)));
    }
}

#[test]
fn steps_stop_at_the_ends() {
    let (_, mut roster) = fleet();
    for (step, expected) in [
        (5, "ant"),
        (1, "bee"),
        (9, "dog"),
        (-2, "bee"),
        (isize::MIN, "ant"),
    ] {
        roster.step(step);
        assert_eq!(roster.selected(), Some(&key(expected)));
    }
    assert_eq!(roster.window(1, 2).count(), 2);
    assert_eq!(roster.window(3, 9).count(), 1);
    assert_eq!(roster.window(9, 9).count(), 0);
}

#[test]
fn another_environment_makes_another_column() {
    let (mut world, mut roster) = fleet();
    assert_eq!(roster.columns().names().len(), 3);
    apply(&mut world, &mut roster, pin("ant", "attic", "v1"));
    assert_eq!(roster.columns().names().len(), 4);
    // A new listing of a kind that the row set shows rebuilds the rows. A new listing of another kind changes
    // nothing.
    world.pins(Event::Listing);
    world.pins(Event::Listed);
    let list = |source| Touched {
        source,
        key: None,
        component: None,
    };
    assert!(roster.touch(&world, &list(Source::RELEASE_PINS), now()));
    assert_eq!(roster.columns().names().len(), 3);
    let mut releases = RowSet::new(Kind::Releases, Some("shop"), "ana");
    assert!(releases.touch(&world, &list(Source::RELEASES), now()));
    assert_eq!(releases.len(), 8);
    assert!(!releases.touch(&world, &list(Source::SNAPSHOTS), now()));
}

#[test]
fn releases_and_pins_follow_their_component() {
    let (mut world, _) = fleet();
    let mut pins = RowSet::new(Kind::Pins, None, "ana");
    let mut releases = RowSet::new(Kind::Releases, None, "ana");
    pins.rebuild(&world, now());
    releases.rebuild(&world, now());
    pins.set_filter(read("behind:>0").filter);
    releases.set_filter(read("env:staging").filter);
    assert_eq!(pins.len(), 0);
    assert_eq!(names(&releases), ["ant-v1", "bee-v1", "cat-v1", "dog-v1"]);
    let moved = pin("ant", "staging", "v2");
    world.pins(Event::Applied(moved));
    let event = touched(Source::RELEASE_PINS, "ant-staging", "ant");
    assert!(pins.touch(&world, &event, now()) && releases.touch(&world, &event, now()));
    assert_eq!(
        names(&pins),
        ["ant-production"],
        "the pin after it is behind now"
    );
    assert_eq!(names(&releases), ["ant-v2", "bee-v1", "cat-v1", "dog-v1"]);
    world.releases(Event::Deleted(release("ant", "v2", 2)));
    releases.touch(&world, &touched(Source::RELEASES, "ant-v2", "ant"), now());
    assert_eq!(names(&releases), ["bee-v1", "cat-v1", "dog-v1"]);
}

/// Checks that a row set that was updated after every event equals a newly built row set.
fn check(world: &World, roster: &RowSet, filter: &Filter) {
    let mut fresh = RowSet::new(roster.kind, Some("shop"), "ana");
    fresh.rebuild(world, now());
    fresh.set_sort(roster.sort, roster.reversed);
    fresh.marked = roster.marked.clone();
    fresh.set_filter(filter.clone());
    assert_eq!(names(roster), names(&fresh));
    assert_eq!(roster.totals(), fresh.totals());
    assert_eq!(roster.order.len(), roster.slots.len());
    if let Some(selected) = roster.selected() {
        assert!(roster.slots.contains_key(selected), "{selected:?} is gone");
        assert!(
            roster.is_empty() || roster.position().is_some(),
            "{selected:?} is hidden"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn following_events_is_as_good_as_reading_anew(
        kind in prop::sample::select(vec![Kind::Components, Kind::Pins, Kind::Releases]),
        events in prop::collection::vec((0..9u8, 0..5u8, 0..3usize, 1..5u8), 0..40)
    ) {
        let mut world = world();
        let mut roster = RowSet::new(kind, Some("shop"), "ana");
        roster.rebuild(&world, now());
        for (what, component, environment, version) in events {
            let component = format!("c{component}");
            let environment = ["development", "staging", "production"][environment];
            let version = format!("v{version}");
            let of_pin = touched(Source::RELEASE_PINS, &format!("{component}-{environment}"), &component);
            let of_release = touched(Source::RELEASES, &format!("{component}-{version}"), &component);
            let own = pin(&component, environment, &version);
            let made = release(&component, &version, version.len() as u8);
            match what {
                0 | 1 => {
                    world.pins(Event::Applied(own));
                    roster.touch(&world, &of_pin, now());
                }
                2 => {
                    world.pins(Event::Applied(unready(own, "Degraded", "", "13:00:00")));
                    roster.touch(&world, &of_pin, now());
                }
                3 => {
                    world.pins(Event::Deleted(own));
                    roster.touch(&world, &of_pin, now());
                }
                4 => {
                    world.releases(Event::Applied(made));
                    roster.touch(&world, &of_release, now());
                }
                5 => {
                    world.releases(Event::Deleted(made));
                    roster.touch(&world, &of_release, now());
                }
                6 => roster.set_sort(Sort::ALL[component.len() * version.len() % 6].0, environment == "staging"),
                7 => roster.set_filter(read(["v1", "fault", "c1 behind:>0"][version.len() % 3]).filter),
                _ => {
                    roster.set_filter(Filter::default());
                    roster.step(1);
                    if let Some(key) = roster.selected().cloned() {
                        roster.toggle_mark(&key);
                    }
                }
            }
            check(&world, &roster, &roster.filter.clone());
        }
    }
}

#[test]
fn the_end_of_a_hold_reaches_every_row_of_its_component() {
    let mut world = world();
    for (version, minute) in [("v1", 1), ("v2", 2), ("v3", 3)] {
        world.releases(Event::Applied(release("cart", version, minute)));
    }
    // A hold keeps v1 effective in development until 15:00. After that, v3 is effective there, and
    // staging is behind.
    let holds = json!([
        {"id": "h", "owner": "mei", "since": at("09:00:00"), "until": at("15:00:00"), "release": "cart-v1"},
    ]);
    world.pins(Event::Applied(held(
        pin("cart", "development", "v3"),
        holds,
    )));
    world.pins(Event::Applied(pin("cart", "staging", "v2")));
    for kind in [Kind::Components, Kind::Pins, Kind::Releases] {
        let made_at = |when| {
            let mut roster = RowSet::new(kind, Some("shop"), "ana");
            roster.rebuild(&world, when);
            roster
        };
        let standings = |roster: &RowSet| {
            let rows = roster.window(0, 10);
            let rows = rows.map(|row| (row.key.clone(), *row.summary));
            rows.collect::<Vec<_>>()
        };
        let mut roster = made_at(now());
        let fresh = made_at(at("15:00:01"));
        assert_ne!(standings(&roster), standings(&fresh), "{kind:?}");
        assert!(roster.tick(&world, at("15:00:01")), "{kind:?}");
        assert_eq!(standings(&roster), standings(&fresh), "{kind:?}");
        assert_eq!(roster.totals(), fresh.totals(), "{kind:?}");
    }
}
