//! Tests of the plan screen: its keys, its checks of facts, and its rows at every size.

use serde_json::json;

use super::{Stage, State};
use crate::action::{Action, Mode};
use crate::api::ReleasePin;
use crate::effect::{Answer, Effect, Previews, Refused};
use crate::engine::plan::Asked;
use crate::engine::world::Event as Told;
use crate::fixture::{outcomes, pin, release, unready};
use crate::keymap::Key;
use crate::model::{Event, Level};
use crate::screens::Screen;
use crate::snapshot_test::{LARGE_SIZES, LOOKS, SnapshotTest, rolled_back};
use crate::subjects::release_pin::actions::promote::{self, Promote};
use crate::subjects::release_pin::planner::ActionPlan;
use crate::subjects::release_pin::rules::Refusal;
use crate::subjects::service::{self, PlannedCommand};
use crate::tasks;
use crate::update::update;

fn plan(still: &SnapshotTest) -> &State {
    match still.model.front() {
        Screen::Plan(state) => state,
        other => panic!("no plan is in front but {}", other.title()),
    }
}

fn asking() -> SnapshotTest {
    rolled_back(SnapshotTest::fleet().keys("R"))
}

/// Opens a plan that the user confirms with a single key: marking a release, without a reason.
fn keyed() -> SnapshotTest {
    marked_good(SnapshotTest::fleet())
}

fn marked_good(still: SnapshotTest) -> SnapshotTest {
    let still = still.keys("A");
    let marking = {
        let command = crate::subjects::release_pin::actions::mark::Mark {
            release: "checkout-service-v1.2.3".to_owned(),
            verdict: crate::api::openchoreo::release::Verdict::Good,
        };
        let asked = crate::engine::plan::Asked {
            operation: "one".to_owned(),
            now: still.now,
            user: "ana".to_owned(),
            reason: None,
            namespace: "shop".to_owned(),
        };
        crate::subjects::release_pin::actions::mark::plan(&still.world, &command, &asked).unwrap()
    };
    let prepared = crate::subjects::service::PlannedCommand::Mark(marking);
    still.answer(|_| Answer::Planned(Ok(Box::new(prepared.into()))))
}

/// Returns the plan's ReleasePin as it is after this user changed it.
fn moved_by(user: &str) -> ReleasePin {
    let since = "2026-11-17T13:59:00Z";
    let mut pin = outcomes(
        pin("checkout-service", "production", "v1.2.4"),
        json!([
            {"generation": 1, "release": "checkout-service-v1.2.1", "since": "2026-11-08T13:38:00Z", "until": "2026-11-17T13:38:00Z", "healthy": true},
            {"generation": 3, "release": "checkout-service-v1.2.4", "since": since, "healthy": true},
        ]),
    );
    let annotations = pin.metadata.annotations.get_or_insert_default();
    annotations.insert("bowline.dev/changed-by".to_owned(), user.to_owned());
    pin
}

fn tell_world(mut still: SnapshotTest, pin: ReleasePin) -> SnapshotTest {
    still.world.pins(Told::Applied(pin));
    still.tell(Event::World(Vec::new()))
}

fn applies(still: &SnapshotTest) -> usize {
    let effects = still.effects.iter();
    effects
        .filter(|effect| matches!(effect, Effect::Apply(..)))
        .count()
}

#[test]
fn the_footer_of_a_plan_that_a_key_confirms_says_what_the_keys_do() {
    let still = keyed().shows(" y apply  enter/esc cancel  tab other button");
    // Enter presses the button that has the focus; this is Cancel by default.
    assert_eq!(applies(&keyed().keys("enter").hides("[ y apply ]")), 0);
    let chosen = keyed()
        .keys("tab")
        .shows(" y/enter apply  esc cancel")
        .keys("enter");
    assert_eq!(applies(&chosen), 1);
    assert_eq!(applies(&still.keys("y")), 1);
    // The key `Y` copies the command line and does not confirm the plan.
    keyed().keys("Y").shows("is on the clipboard");
}

#[test]
fn the_footer_the_help_and_the_plan_agree_in_every_stage() {
    let refused = |still: SnapshotTest| {
        still.answer(|_| {
            Answer::Planned(Err(Refused {
                why: vec!["held".to_owned()],
                ..Refused::default()
            }))
        })
    };
    let failed = |_: &Effect| {
        Answer::Applied(Err(Refused {
            why: vec!["no".to_owned()],
            ..Refused::default()
        }))
    };
    let confirmed = || asking().keys("\"production late\"").keys("enter");
    for (what, still) in [
        ("planning", SnapshotTest::fleet().keys("R")),
        ("refused", refused(SnapshotTest::fleet().keys("R"))),
        ("typed", asking()),
        ("editor", asking().keys("ctrl-e")),
        ("key", keyed()),
        ("stale", tell_world(asking(), moved_by("tom"))),
        ("applying", confirmed()),
        ("applied", confirmed().answer(failed)),
    ] {
        let state = plan(&still);
        let modes = state.modes();
        let keymap = &still.model.look.keymap;
        // The footer lists only actions that the plan accepts, with the same labels as the help.
        for (action, word) in state.hints() {
            let known = state.keys().into_iter().find(|key| key.action == action);
            assert_eq!(known.map(|key| key.does), Some(word), "{what}: {action:?}");
        }
        // A key that this plan does not accept appears neither in the footer nor in the help.
        let listed = keymap.listing(&[Mode::Plan]);
        let help = match modes.contains(&Mode::Text) {
            true => "f1",
            false => "?",
        };
        if what == "planning" {
            continue;
        }
        let untaken: Vec<Action> = listed
            .iter()
            .map(|(_, action, _)| *action)
            .filter(|action| !state.takes(*action))
            .collect();
        let help = still.keys(help);
        let mut screen = String::new();
        let mut help = help.tell(Event::Resize(200, 200));
        screen += &help.screen();
        help.model.size = (120, 40);
        for action in untaken {
            let name = format!(" {} ", action.word());
            assert!(!screen.contains(&name), "{what}: {name}\n{screen}");
        }
        assert!(screen.contains(" scroll "), "{what}:\n{screen}");
    }
}

#[test]
fn every_key_before_the_plan_is_drawn_is_dropped_and_counted() {
    for (keys, counted) in [
        ("y", "1 key was ignored: typed before the plan was shown"),
        ("y y", "2 keys were ignored"),
        // Before the plan is shown, the screen ignores all these keys: unbound keys, chords, and keys of the whole
        // program.
        ("\"production late\"", "15 keys were ignored"),
        ("g g", "2 keys were ignored"),
        (": q enter tab", "4 keys were ignored"),
    ] {
        let still = SnapshotTest::fleet().keys("R").keys(keys).shows(counted);
        let still = rolled_back(still).shows(counted).keys("enter");
        let still = still.shows("type production to confirm");
        assert_eq!(applies(&still), 0, "{keys}");
    }
    SnapshotTest::fleet()
        .keys("R y y")
        .tell(Event::Paste("production".to_owned()))
        .shows("2 keys and 1 pasted text were ignored: typed before the plan was shown");
    // Keys that leave the screen work before the plan is shown.
    assert!(matches!(
        SnapshotTest::fleet().keys("R y esc").model.front(),
        Screen::Matrix(_)
    ));
}

#[test]
fn a_key_that_comes_with_the_answer_is_dropped_until_the_plan_is_on_the_screen() {
    let mut still = keyed();
    let Some(Screen::Plan(state)) = still.model.stack.last_mut() else {
        panic!("no plan is in front");
    };
    state.drawn = false;
    let key = |key: &str| Event::Key(key.parse::<Key>().unwrap().event());
    update(&mut still.model, &still.world, still.now, key("y"));
    assert_eq!(plan(&still).dropped.keys, 1);
    let still = still.tell(Event::Tick).shows("1 key was ignored");
    assert_eq!(applies(&still.keys("y")), 1);
}

#[test]
fn an_open_plan_names_the_fact_that_changed_and_plans_again_with_the_typed_text() {
    let still = asking().keys("\"production errors up\"");
    let still = tell_world(still, moved_by("tom"))
        .shows("changed   tom changed checkout-service-production to checkout-service-v1.2.4")
        .shows("production errors up");
    // Enter does not apply a plan whose facts are no longer true.
    let still = still.keys("enter").shows("out of date: ctrl-r plans again");
    assert_eq!(applies(&still), 0);
    let tickets = |still: &SnapshotTest| plan(still).ticket;
    let before = tickets(&still);
    let still = still.keys("ctrl-r").shows("Planning...");
    assert!(tickets(&still) > before);
    assert!(matches!(still.effects.last(), Some(Effect::Plan(..))));
    let still = rolled_back(still)
        .hides("tom changed")
        .shows("production errors up")
        .shows("from      checkout-service-v1.2.4")
        .keys("enter");
    assert_eq!(applies(&still), 1);
}

#[test]
fn health_that_no_rule_reads_does_not_disturb_a_plan() {
    let worse = unready(
        outcomes(
            pin("checkout-service", "production", "v1.2.3"),
            json!([
                {"generation": 1, "release": "checkout-service-v1.2.1", "since": "2026-11-08T13:38:00Z", "until": "2026-11-17T13:38:00Z", "healthy": true},
                {"generation": 2, "release": "checkout-service-v1.2.3", "since": "2026-11-17T13:38:00Z", "healthy": false},
            ]),
        ),
        "Degraded",
        "0 of 5 ready",
        "13:59:00",
    );
    let still = tell_world(asking().keys("\"production late\""), worse);
    assert!(plan(&still).stale.is_empty(), "{:?}", plan(&still).stale);
    assert_eq!(applies(&still.keys("enter")), 1);
}

#[test]
fn a_plan_that_failed_is_made_again_with_the_typed_text() {
    let still = asking()
        .keys("\"production errors up\"")
        .keys("enter")
        .answer(|_| {
            Answer::Applied(Err(Refused {
                why: vec!["somebody was faster".to_owned()],
                ..Refused::default()
            }))
        })
        .shows("failed    somebody was faster")
        .keys("ctrl-r");
    rolled_back(still).shows("production errors up");
}

#[test]
fn a_task_shows_the_outcome_of_its_own_revision() {
    let still = asking().keys("\"production errors up\"").keys("enter");
    let mut still = still.answer(|_| {
        Answer::Applied(Ok(service::Outcome::Changed {
            created: None,
            results: vec![Ok(crate::engine::publish::Applied::Done(3))],
        }))
    });
    let since = "2026-11-17T14:00:01Z";
    let own = |healthy: bool| json!({"generation": 3, "release": "checkout-service-v1.2.1", "since": since, "healthy": healthy});
    let ready = outcomes(
        pin("checkout-service", "production", "v1.2.1"),
        json!([own(true)]),
    );
    still = tell_world(still, ready)
        .shows("checkout-service-production became ready with checkout-service-")
        .hides("leave it running");
    // Another user deploys a release that fails, and then deletes the ReleasePin.
    let later = unready(
        outcomes(
            pin("checkout-service", "production", "v1.2.4"),
            json!([{"generation": 4, "release": "checkout-service-v1.2.4", "since": since, "healthy": false}]),
        ),
        "Degraded",
        "0 of 5 ready",
        "14:00:30",
    );
    still = tell_world(still, later.clone())
        .shows("checkout-service-production became ready with checkout-service-");
    still.world.pins(Told::Deleted(later));
    still = still.tell(Event::World(Vec::new()));
    let (progress, words) = still.model.tasks[0].progress(&still.world);
    assert_eq!((progress, words.as_str()), (tasks::Progress::Done, "ready"));
    still.keys("esc g t").shows("1 done").hides("0 of 5 ready");
}

#[test]
fn a_plan_shows_what_matters_in_every_size_and_scrolls_the_changes() {
    let essential = [
        "rollback",
        "checkout-service",
        "production",
        "checkout-service-v1.2.3",
        "checkout-service-v1.2.1",
        "type production and why",
    ];
    for (width, height) in [
        (40, 10),
        (41, 11),
        (50, 12),
        (60, 17),
        (79, 13),
        (80, 24),
        (200, 60),
    ] {
        let still = asking().tell(Event::Resize(width, height));
        let screen = still.screen();
        for words in essential {
            assert!(
                screen.contains(words),
                "{width}x{height}: {words}\n{screen}"
            );
        }
        // After scrolling to the end, the user has seen every change with its whole diff.
        let mut seen = screen;
        let mut still = still;
        for _ in 0..40 {
            still = still.keys("page-down");
            seen += &still.screen();
        }
        for words in [
            "containers[web].image",
            ":1.2.3",
            ":1.2.1",
            "env[POOL]",
            "data.new-flow",
            "on 4 objects",
            "a hold of ana",
        ] {
            assert!(seen.contains(words), "{width}x{height}: {words}\n{seen}");
        }
        // The maximum scroll position is the last line, so one page-up from there scrolls at once.
        let bottom = still.screen();
        let up = still.keys("page-up").screen();
        assert!(up != bottom || height > 20, "{width}x{height}\n{up}");
        // The typed text stays visible at every terminal size.
        let typed = asking().tell(Event::Resize(width, height));
        let typed = typed.keys("\"production up\"");
        assert!(typed.screen().contains("production up"), "{width}x{height}");
        assert_eq!(applies(&typed.keys("enter")), 1, "{width}x{height}");
    }
}

#[test]
fn a_text_is_seen_from_its_beginning_in_a_terminal_that_grew() {
    let still = asking().tell(Event::Resize(40, 10));
    let still = still
        .keys("\"production errors up\"")
        .hides("why production");
    still
        .tell(Event::Resize(80, 24))
        .shows("type production and why production errors up");
}

#[test]
fn a_plan_on_the_smallest_screen_says_that_it_scrolls_even_without_a_title() {
    for typed in ["", "production", "production errors up", "staging"] {
        let still = asking().tell(Event::Resize(40, 10));
        let still = match typed {
            "" => still,
            typed => still.keys(&format!("\"{typed}\"")),
        };
        still.shows("down scrolls");
    }
}

#[test]
fn a_plan_that_leaves_one_row_shows_a_change_in_it() {
    let mut still = asking();
    let now = still.now;
    // The message takes two rows.
    let error = "tom changed cart in staging, and then changed it again";
    crate::update::say(&mut still.model, now, Level::Error, error);
    still.tell(Event::Resize(40, 10)).shows("Deployment");
}

#[test]
fn the_first_change_in_sight_on_a_small_screen_is_the_image() {
    asking()
        .tell(Event::Resize(40, 10))
        .shows("1-2 of ")
        .shows("down scrolls")
        .keys("down")
        .shows("containers[web].image")
        .shows("…checkout:1.2.3 → …checkout:1.2.1")
        .hides("Degraded");
}

#[test]
fn a_production_change_that_cannot_be_read_is_refused_with_the_size_that_it_needs() {
    for (size, needs) in [
        ((39, 10), "needs 40x10"),
        ((40, 7), "needs 40x10"),
        ((20, 5), "needs 40x"),
        ((20, 4), "needs 40x"),
    ] {
        let still = asking().tell(Event::Resize(size.0, size.1)).shows(needs);
        let still = still.keys("\"production late\"").keys("enter");
        assert_eq!(applies(&still), 0, "{size:?}");
        let still = still.shows(needs);
        // After the terminal becomes larger, the text that is already typed applies the plan.
        let still = still.tell(Event::Resize(80, 24)).keys("enter");
        assert_eq!(applies(&still), 1, "{size:?}");
    }
}

#[test]
fn a_plan_that_a_key_confirms_looks_so() {
    keyed()
        .shows("to        marked good   promotion and rollback")
        .golden_in("plan-key", &LARGE_SIZES, &LOOKS);
}

#[test]
fn a_plan_whose_fact_changed_looks_so() {
    let still = asking().keys("\"production errors up\"");
    tell_world(still, moved_by("tom")).golden_in("plan-stale", &LARGE_SIZES, &LOOKS);
}

#[test]
fn a_release_that_is_marked_bad_is_a_changed_fact() {
    let mut still = asking();
    let mut bad = release("checkout-service", "v1.2.1", 1);
    let mark = json!({"verdict": "bad", "by": "tom", "at": still.now, "note": "leaks"});
    let annotations = bad.metadata.annotations.get_or_insert_default();
    annotations.insert("bowline.dev/mark".to_owned(), mark.to_string());
    still.world.releases(Told::Applied(bad));
    still
        .tell(Event::World(Vec::new()))
        .shows("release checkout-service-v1.2.1 was marked bad by tom");
}

#[test]
fn the_size_that_a_production_change_needs_counts_the_rows_of_a_message() {
    let mut still = asking();
    let now = still.now;
    let error = "tom changed cart in staging, ".repeat(4);
    crate::update::say(&mut still.model, now, Level::Error, error.trim());
    let still = still.tell(Event::Resize(40, 10)).shows("needs 40x12");
    let still = still.tell(Event::Resize(40, 12)).hides("needs 40");
    // A key press removes the message from the screen.
    let still = still.tell(Event::Resize(40, 6)).keys("\"production late\"");
    let still = still.keys("enter").shows("needs 40x");
    assert_eq!(applies(&still), 0);
    let still = still.tell(Event::Resize(40, 10)).hides("needs 40");
    assert_eq!(applies(&still.keys("enter")), 1);
}

#[test]
fn a_complaint_is_read_to_its_end_on_a_small_screen() {
    let still = asking().tell(Event::Resize(40, 10));
    still
        .keys("\"staging\"")
        .keys("enter")
        .shows("Type production (you typed staging)");
}

#[test]
fn a_plan_that_is_out_of_date_shows_no_health_of_another_release() {
    let still = tell_world(asking(), moved_by("tom"));
    let screen = still.shows("checkout-service-v1.2.3").screen();
    let from = screen.lines().find(|line| line.contains("   from "));
    assert!(!from.unwrap().contains("Ready"), "{screen}");
}

/// Opens a plan that promotes two components to production.
fn set() -> SnapshotTest {
    let still = SnapshotTest::fleet().keys("h * P");
    let asked = Asked {
        operation: "one".to_owned(),
        now: still.now,
        user: "ana".to_owned(),
        reason: None,
        namespace: "shop".to_owned(),
    };
    let command = Promote {
        components: vec!["cart".to_owned(), "search".to_owned()],
        from: "staging".to_owned(),
        to: "production".to_owned(),
        unready: false,
        skip_path: false,
    };
    let plan = promote::plan(&still.world, &command, &asked).unwrap();
    let prepared = PlannedCommand::Changes(Box::new(ActionPlan::of(plan)));
    let shown = Box::new(prepared.clone());
    still
        .answer(|_| Answer::Planned(Ok(Box::new(prepared.into()))))
        .answer(|_| {
            Answer::Shown(Ok(Previews {
                prepared: shown,
                diffs: vec![None, None],
            }))
        })
}

#[test]
fn a_set_shows_its_count_and_its_first_change_on_a_small_screen() {
    for (width, height) in [(40, 10), (50, 12), (79, 13)] {
        let still = set().tell(Event::Resize(width, height));
        still
            .shows("1 of 2, cart")
            .shows("cart-v0.8.7 → cart-v0.9.0")
            .shows("type production 2")
            .hides("needs ");
    }
    let still = set().tell(Event::Resize(40, 7)).shows("needs 40x10");
    let still = still.keys("\"production 2 late\"").keys("enter");
    assert_eq!(applies(&still), 0);
    let still = set().keys("\"production\"").keys("enter");
    still.shows("Type the number of components (2) after the name");
}

#[test]
fn the_plan_screen_asks_for_the_confirmation_of_the_engine() {
    for still in [asking(), set(), keyed()] {
        let Stage::Asking(prepared, ..) = &plan(&still).stage else {
            panic!("the plan does not ask");
        };
        let expected = prepared.confirmation(&still.world, None);
        assert_eq!(plan(&still).needed(), Some(&expected));
    }
    for typed in ["", "staging", "production", "production 3", "2"] {
        let still = set();
        let missing = plan(&still).needed().unwrap().read(typed).unwrap_err();
        let still = still.keys(&format!("\"{typed}\"")).keys("enter");
        assert_eq!(applies(&still), 0, "{typed}");
        still.shows(&missing.to_string());
    }
}

#[test]
fn a_protected_context_replaces_the_key_by_its_name() {
    let protected = || {
        let mut still = SnapshotTest::fleet();
        let target_info = &mut still.model.target_info;
        target_info.protected = true;
        target_info.readonly = Some("context prod-eu is protected".to_owned());
        marked_good(still)
    };
    let still = protected();
    assert_eq!(plan(&still).needed().unwrap().words, ["prod-eu"]);
    assert_eq!(applies(&still.keys("y").keys("enter")), 0);
    let still = protected().keys("\"prod-eu\"").keys("enter");
    assert_eq!(applies(&still), 1);
}

#[test]
fn a_small_screen_cuts_the_middle_of_names_and_not_the_rows() {
    keyed()
        .tell(Event::Resize(24, 7))
        .shows(" mark good")
        .shows("from")
        .shows("marked good");
}

#[test]
fn a_rollback_that_knows_no_good_release_offers_the_revisions_if_there_are_several() {
    for (revisions, shown) in [(1, "no earlier release"), (2, "matrix > revisions")] {
        let mut still = SnapshotTest::fleet();
        let mut pin = pin("checkout-service", "production", "v1.2.3");
        pin.metadata.generation = Some(revisions);
        still.world.pins(Told::Applied(pin));
        let refusal = Refusal::NoLastGood {
            component: "checkout-service".to_owned(),
            environment: "production".to_owned(),
            bad: Vec::new(),
            abandoned: Vec::new(),
        };
        let still = still.keys("R").answer(|_| {
            Answer::Planned(Err(Refused {
                why: vec![refusal.to_string()],
                chooses_revision: refusal.is_about_last_good(),
                refusals: vec![refusal],
                ..Refused::default()
            }))
        });
        still.shows(shown).hides("--to");
    }
}
