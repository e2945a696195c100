use serde_json::json;

use super::*;
use crate::api::bowline::audit::{Action as Done, ContentRef};
use crate::api::hold::Hold;
use crate::effect::Effect;
use crate::engine::revisions::{Cause, Missing, Reason, State};
use crate::engine::world::{Event, World};
use crate::fixture::{self, at, pin, release, world};
use crate::keymap;
use crate::model;
use crate::snapshot_test::SnapshotTest;
use crate::update::update;

/// Creates the shop for the tests of screens. One component fails in production.
pub(in crate::screens) fn shop() -> World {
    let mut world = world();
    for (minute, version) in (1..).zip(["v1.2.0", "v1.2.1", "v1.2.2", "v1.2.3", "v1.2.4"]) {
        let mut made = release("checkout-service", version, minute);
        if version == "v1.2.2" {
            made = fixture::marked_bad(made);
        }
        if let Some(annotations) = &mut made.metadata.annotations {
            let image = format!("registry.example/shop/checkout:{version}");
            annotations.insert("bowline.dev/images".to_owned(), image);
        }
        world.releases(Event::Applied(made));
    }
    world.pins(Event::Applied(pin(
        "checkout-service",
        "development",
        "v1.2.4",
    )));
    world.pins(Event::Applied(pin("checkout-service", "staging", "v1.2.3")));
    let failing = fixture::outcomes(
        pin("checkout-service", "production", "v1.2.3"),
        json!([
            {"generation": 6, "release": "checkout-service-v1.2.1", "since": "2026-11-08T10:00:00Z",
             "until": "2026-11-17T13:38:00Z", "healthy": true},
            {"generation": 7, "release": "checkout-service-v1.2.3", "since": "2026-11-17T13:38:00Z",
             "healthy": false},
        ]),
    );
    let failing = fixture::unready(
        failing,
        "ResourcesDegraded",
        "2 of 5 ready, web CrashLoopBackOff",
        "13:40:00",
    );
    world.pins(Event::Applied(failing));
    world
}

fn revision(number: i64, version: &str, created: &str, state: State) -> Revision<Pinned> {
    let name = format!("checkout-service-{version}");
    Revision {
        number,
        hash: Some(format!("{number:064x}")),
        created: Some(created.parse().unwrap()),
        cause: None,
        restored_from: None,
        state,
        why: None,
        mark: None,
        content: Some(Pinned {
            release: ContentRef::named(name),
            holds: Vec::new(),
            reference: None,
            replaced: None,
        }),
    }
}

fn because(action: Done, actor: &str, reason: Option<&str>) -> Option<Cause> {
    Some(Cause {
        action,
        actor: Some(actor.to_owned()),
        reason: reason.map(str::to_owned),
        operation: Some("0b8a6f0e-6a51-4a55-9d0f-9a1c2b7f3a10".to_owned()),
    })
}

/// Returns the revisions of the ReleasePin in production, with a gap.
pub(in crate::screens) fn revisions() -> Revisions<Pinned> {
    let hold: Hold = serde_json::from_value(json!({
        "id": "h1", "owner": "tom", "reason": "until the leak is found", "since": at("09:00:00"),
    }))
    .unwrap();
    let mut rows = vec![
        Row::Known(Revision {
            cause: because(Done::Deploy, "ci@shop.example", None),
            ..revision(1, "v1.2.0", "2026-10-20T09:12:00Z", State::Superseded)
        }),
        Row::Missing(Missing {
            first: 2,
            last: 3,
            missing: Reason::Unseen,
        }),
    ];
    let mut restored = revision(5, "v1.2.0", "2026-11-02T11:40:00Z", State::Healthy);
    restored.restored_from = Some(1);
    restored.cause = because(Done::Rollback, "tom", Some("v1.2.2 leaks connections"));
    if let Some(content) = &mut restored.content {
        content.holds.push(hold);
    }
    rows.extend([
        Row::Known(Revision {
            cause: because(Done::Promote, "ana", None),
            why: Some("1 of 5 ready, web OOMKilled".to_owned()),
            ..revision(4, "v1.2.2", "2026-11-02T11:02:00Z", State::Unhealthy)
        }),
        Row::Known(restored),
        Row::Known(Revision {
            cause: because(Done::Promote, "ana", Some("weekly")),
            ..revision(6, "v1.2.1", "2026-11-08T10:00:00Z", State::Healthy)
        }),
        Row::Known(Revision {
            cause: because(Done::Promote, "ana", Some("INC-42 hotfix")),
            why: Some("2 of 5 ready, web CrashLoopBackOff".to_owned()),
            ..revision(7, "v1.2.3", "2026-11-17T13:38:00Z", State::Unhealthy)
        }),
    ]);
    Revisions {
        subject: "checkout-service in production".to_owned(),
        current: 7,
        rows,
        record: None,
    }
}

/// Opens the shop with the cursor on production, presses these keys, and answers the request for
/// revisions.
pub(in crate::screens) fn opened(keys: &str) -> SnapshotTest {
    SnapshotTest::of(shop())
        .keys(keys)
        .answer(|_| Answer::Revisions(Ok(Box::new(revisions()))))
}

/// Presses keys; returns the effects of the model.
pub(in crate::screens) fn press(still: &mut SnapshotTest, keys: &str) -> Vec<Effect> {
    let keys = keymap::Key::sequence(keys).unwrap().into_iter();
    keys.flat_map(|key| tell(still, model::Event::Key(key.event())))
        .collect()
}

/// Passes an event to the model; returns the effects of the model.
pub(in crate::screens) fn tell(still: &mut SnapshotTest, event: model::Event) -> Vec<Effect> {
    update(&mut still.model, &still.world, still.now, event)
}

/// Answers the last request for revisions.
pub(in crate::screens) fn answer(still: &mut SnapshotTest, effects: &[Effect]) {
    let asked = effects.iter().rev().find_map(|effect| match effect {
        Effect::Revisions(ticket, _) => Some(*ticket),
        _ => None,
    });
    let answer = Answer::Revisions(Ok(Box::new(revisions())));
    tell(still, model::Event::Answer(asked.unwrap(), answer));
}

/// Describes the requests in these effects.
fn wanted(effects: &[Effect]) -> Vec<String> {
    effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Compare(_, comparison) => Some(comparison.what.command_line()),
            Effect::Plan(_, command) => Some(command.command_lines(None).join(" && ")),
            Effect::Revisions(_, place) => Some(format!(
                "revisions {} {}",
                place.component, place.environment
            )),
            Effect::Copy(text) => Some(format!("copy {text}")),
            _ => None,
        })
        .collect()
}

#[test]
fn keys_on_revisions() {
    let revisions = "bowline diff checkout-service --environment production";
    let rollback = "bowline rollback checkout-service --environment production";
    for (keys, expected) in [
        // The selected revision and the one before, even across a gap.
        (
            "d",
            format!("{revisions} --from-revision 6 --to-revision 7"),
        ),
        (
            "j enter",
            format!("{revisions} --from-revision 5 --to-revision 6"),
        ),
        (
            "j j j d",
            format!("{revisions} --from-revision 1 --to-revision 4"),
        ),
        // Two marked revisions, in the order of their numbers; after three marks, the last two;
        // with one mark, the marked and the selected revision.
        (
            "space j j space d",
            format!("{revisions} --from-revision 4 --to-revision 7"),
        ),
        (
            "space space space d",
            format!("{revisions} --from-revision 5 --to-revision 6"),
        ),
        (
            "G space g g d",
            format!("{revisions} --from-revision 1 --to-revision 7"),
        ),
        (
            "space j - k d",
            format!("{revisions} --from-revision 5 --to-revision 6"),
        ),
        // Rolls back to the selected revision; on the current revision, to the last good revision.
        ("j R", format!("{rollback} --to-revision 6")),
        ("j j R", format!("{rollback} --to-revision 5")),
        ("R", rollback.to_owned()),
        (
            "j j j B",
            "bowline mark bad checkout-service-v1.2.2".to_owned(),
        ),
        (
            "j j j A",
            "bowline mark good checkout-service-v1.2.2".to_owned(),
        ),
        (
            "D",
            "bowline deploy checkout-service --environment production --skip-path".to_owned(),
        ),
        ("G y", "copy checkout-service-v1.2.0".to_owned()),
    ] {
        for screen in ["g v", "enter"] {
            let mut still = opened(screen);
            let effects = press(&mut still, keys);
            assert_eq!(
                wanted(&effects),
                std::slice::from_ref(&expected),
                "{screen} {keys}"
            );
        }
    }
}

#[test]
fn what_is_not_known_is_not_compared_and_not_gone_back_to() {
    for (keys, expected) in [
        ("j j j j R", "revisions 2 to 3: not observed"),
        ("j j j j d", "revisions 2 to 3: not observed"),
        (
            "j j j j space",
            "this revision has no record, so it cannot be compared",
        ),
        (
            "G d",
            "checkout-service in production has no revision before 1",
        ),
    ] {
        let mut still = opened("g v");
        let effects = press(&mut still, keys);
        assert_eq!(wanted(&effects), [""; 0], "{keys}");
        let said = still
            .model
            .notice
            .as_ref()
            .map(|notice| notice.text.as_str());
        assert_eq!(said, Some(expected), "{keys}");
    }
}

#[test]
fn the_cursor_stays_with_its_revision_and_news_are_asked_for_once() {
    let mut still = opened("g v");
    press(&mut still, "j");
    // The ReleasePin did not change, so the screen sends no request.
    let touched = || {
        vec![crate::engine::world::feed::Touched {
            source: crate::engine::world::Source::RELEASE_PINS,
            key: Some(fixture::key("checkout-service-production")),
            component: None,
        }]
    };
    let effects = tell(&mut still, model::Event::World(touched()));
    assert_eq!(wanted(&effects), [""; 0]);
    let moved = fixture::outcomes(
        pin("checkout-service", "production", "v1.2.1"),
        json!([{"generation": 8, "release": "checkout-service-v1.2.1", "since": at("13:59:00")}]),
    );
    still.world.pins(Event::Applied(moved));
    let effects = tell(&mut still, model::Event::World(touched()));
    // The matrix below also requests the revisions, because its pane shows which change made the
    // release effective.
    assert_eq!(
        wanted(&effects),
        ["revisions checkout-service production"; 2]
    );
    answer(&mut still, &effects);
    let effects = press(&mut still, "R");
    assert_eq!(
        wanted(&effects),
        ["bowline rollback checkout-service --environment production --to-revision 6"]
    );
    // The screen ignores the answer to an earlier request.
    let late = model::Event::Answer(1, Answer::Revisions(Err("late".to_owned())));
    tell(&mut still, late);
    still.hides("late");
}
