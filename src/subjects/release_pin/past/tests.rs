use serde_json::{Value, json};

use super::*;
use crate::engine::world::Event;
use crate::fixture::*;
use crate::subjects::release_pin::matrix::Health;

/// Returns an audit entry of a ReleasePin. If `environment` is None, returns an entry about the releases of a
/// component.
pub(crate) fn entry(
    component: &str,
    environment: Option<&str>,
    revision: i64,
    time: &str,
    spec: Value,
) -> AuditEntry {
    let subject = match environment {
        Some(environment) => {
            let pin = format!("{component}-{environment}");
            json!({"kind": "ReleasePin", "name": pin, "uid": pin})
        }
        None => json!({"kind": "Component", "name": component}),
    };
    let mut whole = json!({
        "subject": subject, "revision": revision, "recordedBy": "ana", "actor": "ana", "at": at(time),
    });
    let fields = whole.as_object_mut().unwrap();
    fields.extend(spec.as_object().unwrap().clone());
    let mut made = AuditEntry::new(
        &format!("{component}-{revision}"),
        serde_json::from_value(whole).unwrap(),
    );
    made.metadata.namespace = Some("shop".to_owned());
    let labels = made.labels_mut();
    labels.insert(labels::COMPONENT.to_owned(), component.to_owned());
    if let Some(environment) = environment {
        labels.insert(labels::ENVIRONMENT.to_owned(), environment.to_owned());
    }
    made
}

fn release_named(name: &str) -> Value {
    json!({"name": name})
}

/// Returns audit entries and a read model with this past: in production, cart v1 changes to v2 at 13:40, and a
/// rollback at 13:50 restores v1; staging is degraded since 13:42.
fn scene() -> (Vec<AuditEntry>, World) {
    let mut world = world();
    for (version, minute) in [("v1", 1), ("v2", 2)] {
        world.releases(Event::Applied(release("cart", version, minute)));
    }
    let moves = json!([
        {"generation": 1, "release": "cart-v1", "since": at("09:00:00"), "until": at("13:40:00"), "healthy": true},
        {"generation": 2, "release": "cart-v2", "since": at("13:40:00"), "until": at("13:50:00"), "healthy": false},
        {"generation": 3, "release": "cart-v1", "since": at("13:50:00"), "healthy": true},
    ]);
    let mut production = outcomes(pin("cart", "production", "v1"), moves);
    let holds = json!([{"id": "h", "owner": "ana", "since": at("13:50:00"), "until": at("13:58:00"), "release": "cart-v1"}]);
    production.spec.release_ref.name = "cart-v2".to_owned();
    production = held(production, holds.clone());
    production.status.as_mut().unwrap().conditions[0]
        .last_transition_time
        .0 = at("13:51:00");
    world.pins(Event::Applied(production));
    let staging = unready(
        pin("cart", "staging", "v2"),
        "Degraded",
        "0 of 3 ready",
        "13:42:00",
    );
    world.pins(Event::Applied(staging));
    let entries = vec![
        entry(
            "cart",
            Some("production"),
            1,
            "09:00:00",
            json!({"action": "Deploy", "to": release_named("cart-v1")}),
        ),
        entry(
            "cart",
            Some("production"),
            2,
            "13:40:00",
            json!({
                "action": "Promote", "from": release_named("cart-v1"), "to": release_named("cart-v2"), "reason": "INC-42",
            }),
        ),
        entry(
            "cart",
            Some("production"),
            3,
            "13:50:00",
            json!({
                "action": "Rollback", "from": release_named("cart-v2"), "to": release_named("cart-v1"),
                "releaseRef": "cart-v2", "holds": holds, "restoredFrom": 1,
            }),
        ),
        entry(
            "cart",
            None,
            1,
            "13:55:00",
            json!({"action": "MarkBad", "to": release_named("cart-v2")}),
        ),
    ];
    (entries, world)
}

#[test]
fn what_ran_where_at_a_moment() {
    let (entries, world) = scene();
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    let cell = |time: &str, column| {
        past.then(&world, &columns, at(time))
            .cell(&key("cart"), column)
    };
    for (time, expected) in [
        ("08:59:59", None),
        (
            "09:00:00",
            Some(("cart-v1", Health::Ready, None, 0, Some("09:00:00"), None)),
        ),
        (
            "13:39:59",
            Some(("cart-v1", Health::Ready, None, 0, Some("09:00:00"), None)),
        ),
        (
            "13:40:00",
            Some((
                "cart-v2",
                Health::Degraded,
                None,
                0,
                Some("13:40:00"),
                Some("cart-v1"),
            )),
        ),
        // At this time, the controller has not yet written the change into the status.
        (
            "13:50:30",
            Some((
                "cart-v1",
                Health::Unknown,
                Some("cart-v2"),
                1,
                Some("13:50:00"),
                None,
            )),
        ),
        // At this time, the hold has ended, so the release of the releaseRef is effective again.
        (
            "13:59:00",
            Some((
                "cart-v2",
                Health::Unknown,
                None,
                0,
                Some("13:58:00"),
                Some("cart-v1"),
            )),
        ),
    ] {
        let found = cell(time, 2).cell();
        let found = found.map(|cell| {
            let good = cell.good.map(|good| good.release);
            (
                cell.release,
                cell.health(),
                cell.wanted,
                cell.held,
                cell.since,
                good,
            )
        });
        let expected = expected.map(|(release, health, wanted, held, since, good)| {
            (release, health, wanted, held, since.map(at), good)
        });
        assert_eq!(found, expected, "{time}");
    }
    assert_eq!(
        cell("08:59:59", 2),
        Recorded::Nothing,
        "it was deployed later"
    );
    assert_eq!(
        cell("13:00:00", 0),
        Recorded::Nothing,
        "nothing is on record there"
    );
    // The release counts as bad only after the time of its mark.
    assert!(!cell("13:45:00", 2).cell().unwrap().bad);
    assert!(cell("13:59:00", 2).cell().unwrap().bad);
    // The changes in staging have no audit entries, only outcomes.
    let staging = cell("13:43:00", 1).cell().unwrap();
    assert_eq!(
        (staging.release, staging.health(), staging.label),
        ("cart-v2", Health::Degraded, "v2")
    );
    assert_eq!(
        cell("13:41:00", 1).cell().unwrap().health(),
        Health::Unknown
    );
    // Until the promotion, production was behind staging.
    assert_eq!(cell("13:00:00", 2).cell().unwrap().behind, Some(1));
    assert_eq!(cell("13:45:00", 2).cell().unwrap().behind, Some(0));
}

#[test]
fn moments_can_be_stepped_through() {
    let (entries, world) = scene();
    let past = Past::of(&entries, &world);
    let mut moment = Some(now());
    let mut steps = Vec::new();
    while let Some(at) = moment.and_then(|moment| past.before(moment)) {
        steps.push(at);
        moment = Some(at);
    }
    let expected = ["13:55:00", "13:50:00", "13:40:00", "10:00:00", "09:00:00"].map(at);
    assert_eq!(steps, expected);
    assert_eq!(past.after(at("09:00:00")), Some(at("10:00:00")));
    assert_eq!(past.after(at("13:55:00")), None);
    assert_eq!(past.at(at("13:40:00")).len(), 1);
    assert_eq!(past.begins(), Some(at("09:00:00")));
    let columns = Columns::of(&world, None);
    assert!(
        past.then(&world, &columns, at("08:00:00"))
            .is_before_the_record()
    );
    assert!(
        !past
            .then(&world, &columns, at("09:00:00"))
            .is_before_the_record()
    );
    assert!(
        Past::default()
            .then(&world, &columns, now())
            .is_before_the_record()
    );
    let then = past.then(&world, &columns, at("13:45:00"));
    let made = then.made(&key("cart"), 2).unwrap();
    assert_eq!(
        (made.action, made.reason.as_deref()),
        (Some(Action::Promote), Some("INC-42"))
    );
    let then = past.then(&world, &columns, now());
    let made = then.made(&key("cart"), 1).unwrap();
    assert_eq!((made.action, made.revision), (None, 1));
    // The hold of the rollback ended at 13:58. So the release that was promoted at 13:40 became effective again.
    let made = then.made(&key("cart"), 2).unwrap();
    assert_eq!((made.action, made.revision), (Some(Action::Promote), 2));
}

#[test]
fn a_hold_did_not_make_the_release_that_it_holds() {
    let (mut entries, world) = scene();
    entries.truncate(2);
    let holds = json!([{"id": "h", "owner": "mei", "since": at("13:45:00")}]);
    let held = json!({
        "action": "Pin", "actor": "mei", "from": release_named("cart-v2"), "to": release_named("cart-v2"), "holds": holds,
    });
    entries.push(entry("cart", Some("production"), 3, "13:45:00", held));
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    let then = past.then(&world, &columns, at("13:46:00"));
    let made = then.made(&key("cart"), 2).unwrap();
    assert_eq!(
        (made.action, made.actor.as_deref()),
        (Some(Action::Promote), Some("ana"))
    );
}

#[test]
fn a_change_after_the_end_of_a_hold_did_not_make_the_release() {
    let (mut entries, world) = scene();
    entries.truncate(3);
    // The user carl removes the hold of the user ana after its end.
    let lifted = json!({
        "action": "Unpin", "actor": "carl", "from": release_named("cart-v2"), "to": release_named("cart-v2"),
    });
    entries.push(entry("cart", Some("production"), 4, "13:59:00", lifted));
    entries[1].spec.actor = Some("tom".to_owned());
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    let then = past.then(&world, &columns, at("13:59:30"));
    let made = then.made(&key("cart"), 2).unwrap();
    assert_eq!(
        (made.action, made.actor.as_deref()),
        (Some(Action::Promote), Some("tom"))
    );
    let cell = then.cell(&key("cart"), 2).cell().unwrap();
    assert_eq!(
        (cell.release, cell.since),
        ("cart-v2", Some(at("13:58:00")))
    );
}

#[test]
fn the_reason_of_today_is_not_shown_at_an_earlier_moment() {
    let (entries, mut world) = scene();
    let now = world.pin(&key("cart-production")).unwrap();
    assert_eq!(now.moves.len(), 3);
    let mut failing = outcomes(
        pin("cart", "production", "v1"),
        json!([
            {"generation": 2, "release": "cart-v2", "since": at("13:40:00"), "until": at("13:50:00"), "healthy": false},
            {"generation": 3, "release": "cart-v1", "since": at("13:50:00"), "healthy": false},
        ]),
    );
    failing = unready(failing, "Degraded", "0 of 3 ready", "13:30:00");
    world.pins(Event::Applied(failing));
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    for time in ["13:45:00", "13:55:00"] {
        let then = past.then(&world, &columns, at(time));
        let cell = then.cell(&key("cart"), 2).cell().unwrap();
        assert_eq!(
            (cell.health(), cell.reason),
            (Health::Degraded, None),
            "{time}"
        );
    }
}

#[test]
fn a_deleted_pin_runs_nothing_after_its_last_recorded_change() {
    let (entries, mut world) = scene();
    world.pins(Event::Deleted(pin("cart", "production", "v1")));
    let columns = Columns::of(&world, Some("shop"));
    let cell = |world: &World, time: &str| {
        let past = Past::of(&entries, world);
        let then = past.then(world, &columns, at(time));
        let release = then
            .cell(&key("cart"), 2)
            .cell()
            .map(|cell| cell.release.to_owned());
        (
            release,
            matches!(then.cell(&key("cart"), 2), Recorded::Deleted(last) if last == at("13:50:00")),
        )
    };
    assert_eq!(cell(&world, "13:45:00").0.as_deref(), Some("cart-v2"));
    assert_eq!(cell(&world, "13:50:00").0.as_deref(), Some("cart-v1"));
    assert_eq!(cell(&world, "13:57:00"), (None, true));
    // Another ReleasePin with the same name exists since 13:58.
    let mut again = outcomes(
        pin("cart", "production", "v2"),
        json!([{"generation": 1, "release": "cart-v2", "since": at("13:58:00"), "healthy": true}]),
    );
    again.metadata.uid = Some("another".to_owned());
    world.pins(Event::Applied(again));
    assert_eq!(cell(&world, "13:57:00"), (None, true));
    assert_eq!(cell(&world, "13:59:00").0.as_deref(), Some("cart-v2"));
}

#[test]
fn only_components_of_the_moment_are_listed() {
    let (entries, mut world) = scene();
    world.releases(Event::Applied(release("later", "v1", 1)));
    let mut later = release("later", "v1", 1);
    later.metadata.creation_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
        at("13:59:00"),
    ));
    world.releases(Event::Applied(later));
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    let components = |time: &str| {
        past.then(&world, &columns, at(time))
            .components(Some("shop"))
    };
    assert_eq!(components("13:00:00"), [key("cart")]);
    assert_eq!(components("13:59:30"), [key("cart"), key("later")]);
    assert_eq!(
        past.environments("shop").collect::<Vec<_>>(),
        ["production", "staging"]
    );
}

#[test]
fn the_first_entry_says_what_was_before_it() {
    let (mut entries, mut world) = scene();
    entries.remove(0);
    let mut bare = pin("cart", "production", "v1");
    bare.status = None;
    world.pins(Event::Applied(bare));
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    let before = past
        .then(&world, &columns, at("13:00:00"))
        .cell(&key("cart"), 2);
    let before = before.cell().unwrap();
    assert_eq!(
        (before.release, before.since, before.health()),
        ("cart-v1", None, Health::Unknown)
    );
    // The entry no longer records the release before the change, so an earlier cell is unknown.
    entries.retain(|entry| entry.spec.revision == 3);
    entries[0].spec.from = None;
    let past = Past::of(&entries, &world);
    let before = past
        .then(&world, &columns, at("13:00:00"))
        .cell(&key("cart"), 2);
    assert_eq!(before, Recorded::NotYet);
}

#[test]
fn a_pin_that_is_gone_is_still_on_record() {
    let (entries, mut world) = scene();
    world.pins(Event::Deleted(pin("cart", "production", "v1")));
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    let then = past
        .then(&world, &columns, at("13:45:00"))
        .cell(&key("cart"), 2);
    let cell = then.cell().unwrap();
    assert_eq!((cell.release, cell.health()), ("cart-v2", Health::Unknown));
    assert_eq!(past.components().collect::<Vec<_>>(), [&key("cart")]);
}

#[test]
fn a_clock_that_is_wrong_does_not_turn_the_order_around() {
    let (mut entries, world) = scene();
    entries[2].spec.at.0 = at("13:39:00");
    let past = Past::of(&entries, &world);
    let columns = Columns::of(&world, Some("shop"));
    let cell = past
        .then(&world, &columns, at("13:40:00"))
        .cell(&key("cart"), 2);
    assert_eq!(
        cell.cell().unwrap().release,
        "cart-v1",
        "the rollback came after the promotion"
    );
}
