use crate::effect::{Answer, Effect};
use crate::engine::world::Event;
use crate::fixture::{self, pin, unready};
use crate::screens::history::tests::{answer, opened, press, shop};
use crate::snapshot_test::SnapshotTest;

#[test]
fn golden_screens() {
    opened("enter").keys("j").golden("component");
}

#[test]
fn left_and_right_choose_the_environment_and_ask_for_its_revisions() {
    let mut still = opened("g o");
    let asked = |effects: &[Effect]| -> Vec<String> {
        let places = effects.iter().filter_map(|effect| match effect {
            Effect::Revisions(_, place) => Some(place.environment.to_string()),
            _ => None,
        });
        places.collect()
    };
    for (keys, expected) in [
        ("l", vec![]),
        ("h", vec!["staging"]),
        ("h", vec!["development"]),
    ] {
        let effects = press(&mut still, keys);
        assert_eq!(asked(&effects), expected);
        if !expected.is_empty() {
            answer(&mut still, &effects);
        }
    }
    let subject = still.model.front().subject(&still.world);
    assert_eq!(subject.environment.as_deref(), Some("development"));
    // The key for Back returns to the previous screen.
    press(&mut still, "esc");
    assert_eq!(still.model.stack.len(), 1);
}

#[test]
fn what_is_not_deployed_says_so() {
    let mut world = shop();
    let gone = pin("checkout-service", "staging", "v1.2.3");
    world.pins(Event::Deleted(gone));
    SnapshotTest::of(world)
        .keys("enter h")
        .shows("checkout-service is not deployed in staging");
}

#[test]
fn revisions_that_cannot_be_read_say_why_in_the_pane_too() {
    let still = SnapshotTest::of(shop())
        .keys("enter")
        .answer(|_| Answer::Revisions(Err("ana may not list auditentries".to_owned())));
    still
        .shows("cannot read who made it effective: ana may not list auditentries")
        .hides("loading who made it");
}

#[test]
fn revisions_that_are_older_than_the_pin_name_nobody() {
    let mut still = opened("enter").hides("loading who made it");
    let component = fixture::key("checkout-service");
    let old = still.world.pin_of(&component, "production").unwrap();
    let generation = old.generation + 1;
    let mut newer = pin("checkout-service", "production", "v1.2.3");
    newer.metadata.generation = Some(generation);
    still.world.pins(Event::Applied(newer));
    still.shows("loading who made it effective");
}

#[test]
fn a_message_about_another_release_is_not_shown_beside_unknown() {
    let mut world = shop();
    let failing = unready(
        pin("checkout-service", "production", "v1.2.3"),
        "Degraded",
        "web CrashLoopBackOff",
        "13:40:00",
    );
    let mut moved = failing;
    moved.spec.release_ref.name = "checkout-service-v1.2.4".to_owned();
    moved.metadata.generation = Some(2);
    world.pins(Event::Applied(moved));
    SnapshotTest::of(world)
        .keys("enter")
        .shows("Unknown")
        .hides("CrashLoopBackOff");
}
