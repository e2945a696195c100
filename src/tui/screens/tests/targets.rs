//! Tests of two cases: bowline connects to another target while the screens show the old one, and a task continues
//! after the user has left its target.

use super::{copied, still, with_tasks};
use crate::connect::Address;
use crate::effect::Effect;
use crate::engine::world::Event as Told;
use crate::fixture::{outcomes, pin, unready};
use crate::model::{Event, TargetInfo};
use crate::screens::Screen;
use crate::snapshot_test::{SnapshotTest, rolled_back, target_info};
use crate::tasks::{Rolling, State};

fn elsewhere() -> TargetInfo {
    TargetInfo {
        name: "prod-us".to_owned(),
        address: Address::of_context("prod-us", "/home/ana/.kube/config", "shop"),
        ..target_info()
    }
}

/// Requests a connection to another context; returns the ticket of the request.
fn connecting(still: SnapshotTest) -> (SnapshotTest, u64) {
    let still = still.keys(":").keys("\"ctx prod-us\"").keys("enter");
    let ticket = still.effects.iter().rev().find_map(|effect| match effect {
        Effect::Connect(ticket, _) => Some(*ticket),
        _ => None,
    });
    (still, ticket.unwrap())
}

fn arrived(still: SnapshotTest, ticket: u64) -> SnapshotTest {
    still.tell(Event::Connected(ticket, Ok(Box::new(elsewhere()))))
}

fn switches(still: &SnapshotTest) -> bool {
    let mut effects = still.effects.iter();
    effects.any(|effect| matches!(effect, Effect::Switch))
}

#[test]
fn the_header_names_the_connection_until_it_ends() {
    let (mut still, ticket) = connecting(still());
    still.now += jiff::SignedDuration::from_secs(60);
    let still = still
        .tell(Event::Tick)
        .shows("connecting to context prod-us");
    let failed = Event::Connected(ticket, Err("no route to host".to_owned()));
    let still = still
        .tell(failed)
        .hides("connecting to")
        .shows("no route to host");
    assert!(!switches(&still));
    let (still, ticket) = connecting(self::still());
    let still = arrived(still, ticket)
        .hides("connecting to")
        .shows("now in prod-us");
    assert!(switches(&still));
}

#[test]
fn esc_and_ctrl_c_drop_a_connection() {
    for key in ["esc", "ctrl-c"] {
        let (still, ticket) = connecting(still());
        let still = still.keys(key).hides("connecting to");
        assert!(
            matches!(still.effects.last(), Some(Effect::Cancel(dropped)) if *dropped == ticket)
        );
        // An answer that arrives after the user cancelled the connection changes nothing.
        let still = arrived(still, ticket).hides("now in prod-us");
        assert!(!switches(&still), "{key}");
    }
}

#[test]
fn a_connection_waits_while_a_plan_is_open_and_a_key_switches_to_it() {
    let (still, ticket) = connecting(still());
    let still = arrived(rolled_back(still.keys("R")), ticket)
        .shows("connected to context prod-us: finish or close this first, then g w switches to it");
    assert!(!switches(&still));
    assert_eq!(still.model.target_info.name, "prod-eu");
    assert!(matches!(still.model.front(), Screen::Plan(_)));
    let still = still.keys("esc").shows("connected to context prod-us");
    assert!(!switches(&still));
    let still = still.keys("g w").shows("now in prod-us");
    assert!(switches(&still));
}

#[test]
fn a_connection_waits_while_a_line_is_typed() {
    let (still, ticket) = connecting(still());
    let still = arrived(still.keys(":").keys("\"ns p\""), ticket).shows(":ns p");
    assert!(!switches(&still));
    let still = still.keys("esc g w");
    assert!(switches(&still));
}

#[test]
fn the_tasks_of_a_target_that_was_left_are_frozen() {
    let (still, ticket) = connecting(with_tasks(still()));
    let mut still = arrived(still, ticket);
    // The new target has a ReleasePin with the same name and revision, which is ready. The task must not take it for
    // its own.
    still.world = crate::snapshot_test::fleet();
    let ready = outcomes(
        pin("checkout-service", "production", "v1.2.3"),
        serde_json::json!([{"generation": 2, "release": "checkout-service-v1.2.3", "since": "2026-11-17T13:38:00Z", "healthy": true}]),
    );
    still.world.pins(Told::Applied(ready));
    let still = still
        .tell(Event::World(Vec::new()))
        .keys("g t j")
        .shows("CrashLoopBackOff")
        .shows("when you left prod-eu: 2 of 5 ready");
    let still = still.keys("Y");
    let line = copied(&still).unwrap().to_owned();
    assert!(line.contains("--context prod-eu"), "{line}");
    let still = still
        .keys("Z")
        .shows("this changed prod-eu, which is not shown");
    assert!(!matches!(still.model.front(), Screen::Plan(_)));
}

#[test]
fn a_recreated_pin_is_not_the_one_that_a_task_changed() {
    let mut still = with_tasks(still());
    let key = crate::fixture::key("checkout-service-production");
    let mut rolling = Rolling::new(&key, 1, "checkout-service-v1.2.3");
    rolling.uid = Some("checkout-service-production".into());
    still.model.tasks[2].state = State::Rolling(vec![rolling]);
    let mut another = unready(
        pin("checkout-service", "production", "v1.2.3"),
        "Progressing",
        "0 of 5 ready",
        "13:59:00",
    );
    another.metadata.uid = Some("another".to_owned());
    still.world.pins(Told::Applied(another));
    still
        .tell(Event::World(Vec::new()))
        .keys("g t j")
        .shows("its ReleasePin was deleted")
        .keys("Z")
        .shows("was deleted and created again after this");
}

#[test]
fn a_screen_that_was_left_follows_the_read_model() {
    let mut still = still().keys("g r").shows("20 releases").keys("esc");
    let gone = crate::fixture::release("cart", "v0.8.6", 1);
    still.world.releases(Told::Deleted(gone));
    let touched = crate::engine::world::feed::Touched {
        source: crate::engine::world::Source::RELEASES,
        key: Some(crate::fixture::key("cart-v0.8.6")),
        component: Some("cart".into()),
    };
    still
        .tell(Event::World(vec![touched]))
        .keys("tab")
        .shows("19 releases");
}

#[test]
fn a_screen_that_was_left_takes_its_answer() {
    use crate::effect::Answer;
    let still = still().keys("g x").keys("esc").answer(|effect| {
        assert!(matches!(effect, Effect::Namespaces(_)));
        Answer::Namespaces(Ok(vec!["pay".into(), "shop".into()]))
    });
    still.keys("tab").shows("pay");
}
