//! Rules that every screen must keep.

use crate::action::Action;
use crate::effect::{Answer, Effect, Refused};
use crate::keymap::Keymap;
use crate::model::Event;
use crate::screens::history::tests::opened;
use crate::screens::{Screen, diff};
use crate::snapshot_test::{SnapshotTest, rolled_back};
use crate::subjects::release_pin::rules::{Refusal, Step};
use crate::tasks::Target;

use super::data::record;
use super::{copied, still, with_tasks};

/// A screen, as (name, function that opens the screen with some rows).
type Opened = (&'static str, fn() -> SnapshotTest);

const SCREENS: [Opened; 23] = [
    ("matrix", still),
    ("component", || opened("enter")),
    ("revisions", || opened("g v")),
    ("releases", || still().keys("g r")),
    ("ReleasePins", || still().keys("g p")),
    ("snapshots", || still().keys("g s")),
    ("describe", described),
    ("gc", || still().keys("g c")),
    ("audit", audit),
    ("entry", || audit().keys("enter")),
    ("tasks", || with_tasks(still()).keys("g t")),
    ("log", log),
    ("contexts", || still().keys("g x")),
    ("diff", || diff::tests::opened(diff::tests::compare())),
    ("plan", || rolled_back(SnapshotTest::fleet().keys("R"))),
    ("held", || refused(held())),
    ("bad", || refused(bad())),
    ("no pin", || refused(no_pin())),
    ("no release", || refused(no_release())),
    ("not first", || refused(not_first())),
    ("not ready", || refused(unready())),
    ("no last good", || refused(no_last_good())),
    ("help", || still().keys("?")),
];

fn described() -> SnapshotTest {
    still()
        .keys("g r enter")
        .answer(|_| Answer::Described(Ok("kind: Release\n".to_owned())))
}

fn audit() -> SnapshotTest {
    still()
        .keys("g a")
        .answer(|_| Answer::Record(Ok(record(false))))
}

fn log() -> SnapshotTest {
    let mut log = with_tasks(still());
    for logged in &mut log.model.log {
        logged.aim(&Target::of(&log.model.target_info));
    }
    log.keys("g l")
}

/// Opens the plan screen that shows this refusal.
fn refused(refusal: Refusal) -> SnapshotTest {
    let refused = Refused {
        why: vec![refusal.to_string()],
        refusals: vec![refusal],
        ..Refused::default()
    };
    SnapshotTest::fleet()
        .keys("R")
        .answer(|_| Answer::Planned(Err(refused)))
}

fn held() -> Refusal {
    Refusal::Held {
        component: "ledger".to_owned(),
        environment: "production".to_owned(),
        release: "ledger-v3.0.9".to_owned(),
        holds: "mei: INC-41".to_owned(),
        ids: Vec::new(),
        requires_reason: true,
    }
}

fn bad() -> Refusal {
    let release = "checkout-service-v1.2.2".to_owned();
    Refusal::Bad { release }
}

fn no_pin() -> Refusal {
    Refusal::NoPin {
        component: "notifier".to_owned(),
        environment: "development".to_owned(),
        step: Step::Deploy {
            environment: "development".to_owned(),
        },
        requires_reason: false,
    }
}

fn no_pin_in_production() -> Refusal {
    Refusal::NoPin {
        component: "notifier".to_owned(),
        environment: "production".to_owned(),
        step: Step::Promote {
            from: "staging".to_owned(),
            to: "production".to_owned(),
        },
        requires_reason: true,
    }
}

fn no_release() -> Refusal {
    Refusal::NoRelease {
        release: "cart-v9".to_owned(),
        known: Vec::new(),
    }
}

fn not_first() -> Refusal {
    Refusal::NotFirst {
        environment: "production".to_owned(),
        first: vec!["development".to_owned()],
    }
}

fn unready() -> Refusal {
    Refusal::Unready {
        component: "cart".to_owned(),
        environment: "staging".to_owned(),
        why: "1 of 2 ready".to_owned(),
    }
}

fn no_last_good() -> Refusal {
    Refusal::NoLastGood {
        component: "cart".to_owned(),
        environment: "staging".to_owned(),
        bad: Vec::new(),
        abandoned: Vec::new(),
    }
}

#[test]
fn the_key_that_a_refused_plan_names_plans_for_the_refused_cell() {
    for (refusal, hint, key, planned) in [
        (
            held(),
            "U removes the hold on ledger in production",
            "U",
            "bowline unpin ledger --environment production --hold freeze",
        ),
        (
            bad(),
            "A marks this release good",
            "A",
            "bowline mark good checkout-service-v1.2.2",
        ),
        (
            no_pin(),
            "D deploys it there",
            "D",
            "bowline deploy notifier --environment development",
        ),
        (
            no_pin_in_production(),
            "P promotes it from staging",
            "P",
            "bowline promote notifier --from staging --to production",
        ),
    ] {
        let still = refused(refusal).shows(hint).keys(key);
        let line = super::ordered(&still).command_lines(None).join(" ");
        assert!(line.starts_with(planned), "{line}");
        // The refused plan was open below, so after esc the user can make it again.
        still.keys("esc").shows(hint).shows("ctrl-r plan again");
    }
    for key in ["P", "R", "H", "s"] {
        refused(held())
            .keys(key)
            .shows("has no effect on this screen");
    }
    refused(held()).keys("T").shows("has no action here");
}

#[test]
fn a_copied_command_names_the_target_on_every_screen() {
    for (name, open) in SCREENS {
        let still = open();
        let modes = still.model.front().modes();
        let Some(keys) = still.model.look.keymap.keys_for(modes, Action::CopyCommand) else {
            assert_eq!(name, "help");
            continue;
        };
        let still = still.keys(&keys);
        let Some(line) = copied(&still) else {
            still.shows("Nothing to copy here");
            continue;
        };
        assert!(
            line.contains("--context prod-eu --kubeconfig /home/ana/.kube/config"),
            "{name}: {line}"
        );
    }
}

#[test]
fn the_help_lists_the_key_of_the_columns_only_where_it_works() {
    let listed = |still: &SnapshotTest| -> Vec<String> {
        let front = still.model.front();
        let listing = still.model.look.keymap.listing(front.modes()).into_iter();
        let listing = listing.filter(|(_, action, _)| {
            // Check only keys that always have no effect here: the effect of the other keys depends on the selection.
            matches!(action, Action::Columns) && !front.lacks(*action)
        });
        listing.map(|(keys, ..)| keys).collect()
    };
    let mut idle = Vec::new();
    for (name, open) in SCREENS {
        let still = open();
        let keys = match still.model.front() {
            Screen::Plan(_) => None,
            _ => listed(&still).into_iter().next(),
        };
        if let Some(keys) = keys
            && still
                .keys(&keys)
                .screen()
                .contains("has no effect on this screen")
        {
            idle.push(format!("{name}: {keys}"));
        }
    }
    assert_eq!(idle, [] as [&str; 0]);
    still().keys("?").hides("switch to other columns");
    still().keys("g r ?").shows("switch to other columns");
}

#[test]
fn the_keys_that_scroll_everywhere_scroll_the_help_too() {
    let first = SnapshotTest::fleet().keys("f1").screen();
    for key in ["page-down", "ctrl-f", "ctrl-d"] {
        let after = SnapshotTest::fleet().keys("f1").keys(key).screen();
        assert_ne!(after, first, "{key}");
    }
}

#[test]
fn the_footer_of_a_small_terminal_keeps_the_key_of_the_help() {
    let footer = still().tell(Event::Resize(80, 24)).screen();
    let footer = footer.lines().last().unwrap_or_default();
    assert!(footer.contains("? help"), "{footer}");
    assert!(footer.contains("P promote"), "{footer}");
}

/// The verbs that follow the name of a key in messages.
const VERBS: [&str; 16] = [
    "clears", "comes", "copies", "deploys", "goes", "lists", "marks", "opens", "plans", "quits",
    "removes", "returns", "scrolls", "searches", "shows", "switches",
];

/// Returns the words on a screen that look like names of keys, because one of these verbs follows them.
fn named_keys(screen: &str) -> Vec<String> {
    let words: Vec<&str> = screen.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| VERBS.contains(&pair[1]));
    let keys = pairs.map(|pair| pair[0].trim_start_matches(['(', ';']));
    let special = ["esc", "tab", "enter", "space"];
    keys.filter(|word| {
        let modified = word.starts_with("ctrl-") || word.starts_with("alt-");
        word.chars().count() == 1 || modified || special.contains(word)
    })
    .map(str::to_owned)
    .collect()
}

#[test]
fn every_key_that_a_message_names_is_one_of_the_keymap() {
    let mut found = 0;
    for keymap in ["default", "emacs"] {
        for screen in SCREENS {
            found += named_keys_work(keymap, screen);
        }
    }
    assert!(found > 10, "{found}");
    let mut log = with_tasks(still()).keys("g l");
    log.model.look.keymap = Keymap::built_in("emacs").unwrap();
    log.shows("alt-w copies the bowline command, alt-c the kubectl command");
    let mut quits = still();
    quits.model.look.keymap = Keymap::built_in("emacs").unwrap();
    quits.keys("ctrl-c").shows("ctrl-x k quits bowline");
}

/// Presses every key that the messages of a screen name, and asserts that the key has an effect. Returns the number
/// of such keys.
fn named_keys_work(keymap: &str, (name, opened): Opened) -> usize {
    let mut found = 0;
    let (filter, cancel) = match keymap {
        "emacs" => ("ctrl-s", "ctrl-g ctrl-c"),
        _ => ("/", "esc ctrl-c"),
    };
    // The last three steps show notices: an unbound key, the filter key on a screen without a filter, and an
    // interrupt.
    let steps = ["", "f12", filter, cancel];
    let open = |count: usize| {
        let mut still = opened();
        still.model.look.keymap = Keymap::built_in(keymap).unwrap();
        for keys in steps.iter().take(count) {
            still = still.keys(keys);
        }
        still
    };
    for count in 1..=steps.len() {
        let still = open(count);
        if name == "help" && count > 1 {
            break;
        }
        let modes = still.model.front().modes();
        let known = still.model.look.keymap.listing(modes).into_iter();
        let known: Vec<String> = known.map(|(keys, ..)| keys).collect();
        let screen = still.screen();
        for key in named_keys(&screen) {
            let is_bound = |known: &&String| **known == key || known.ends_with(&format!(" {key}"));
            let Some(keys) = known.iter().find(is_bound) else {
                panic!("{keymap} {name} {count}: {key} is not bound\n{screen}");
            };
            let after = open(count).keys(keys).screen();
            for idle in ["has no action here", "has no effect on this screen"] {
                assert!(
                    !after.contains(idle),
                    "{keymap} {name}: {keys}\n{screen}\n{after}"
                );
            }
            found += 1;
        }
    }
    found
}

#[test]
fn a_list_of_texts_says_that_it_has_no_fields() {
    for screen in ["g c", "g x"] {
        still()
            .keys(screen)
            .keys("/")
            .keys("\"health:x\"")
            .keys("enter")
            .shows("this list has no field health:");
    }
    opened("g v")
        .keys("/")
        .keys("\"!env:x \"")
        .shows("this list has no field env:");
    // In quotes, `health:x` is a search for this text instead of a condition.
    let quoted = still().keys("g c").keys("/").keys("\"\"health:x\"\"");
    quoted.keys("enter").hides("has no field");
}

#[test]
fn namespaces_are_asked_for_once_while_their_name_is_typed() {
    let asked = |still: &SnapshotTest| {
        let effects = still.effects.iter();
        effects
            .filter(|effect| matches!(effect, Effect::Namespaces(_)))
            .count()
    };
    // Paste the text instead of typing it, because the completions depend on a non-empty argument.
    let still = still().keys(":");
    let still = still.tell(Event::Paste("ns sh".to_owned()));
    assert_eq!(asked(&still), 1);
    assert_eq!(asked(&still.keys("o p")), 1);
}

#[test]
fn a_list_says_how_it_is_sorted_when_the_column_is_not_in_sight() {
    let sizes = still().keys("g r s s").shows("SIZE\u{25bc}");
    sizes.keys("c").shows("BY SIZE\u{25bc}");
}
