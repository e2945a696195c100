//! Rules that hold on every screen.

use crate::tui::action::Action;
use crate::tui::effect::{Answer, Effect};
use crate::tui::keymap::Keymap;
use crate::tui::model::Event;
use crate::tui::screens::diff;
use crate::tui::screens::history::tests::opened;
use crate::tui::still::{Still, rolled_back};
use crate::tui::tasks::Target;

use super::data::record;
use super::{copied, still, with_tasks};

/// Returns every screen with something on it.
fn screens() -> Vec<(&'static str, Still)> {
    let audit = || {
        still()
            .keys("g a")
            .answer(|_| Answer::Record(Ok(record(false))))
    };
    let described = still()
        .keys("g r enter")
        .answer(|_| Answer::Described(Ok("kind: Release\n".to_owned())));
    let mut log = with_tasks(still());
    for logged in &mut log.model.log {
        logged.aim(&Target::of(&log.model.ground));
    }
    vec![
        ("matrix", still()),
        ("component", opened("enter")),
        ("revisions", opened("g v")),
        ("releases", still().keys("g r")),
        ("ReleasePins", still().keys("g p")),
        ("snapshots", still().keys("g s")),
        ("describe", described),
        ("gc", still().keys("g c")),
        ("audit", audit()),
        ("entry", audit().keys("enter")),
        ("tasks", with_tasks(still()).keys("g t")),
        ("log", log.keys("g l")),
        ("contexts", still().keys("g x")),
        ("diff", diff::tests::opened(diff::tests::compare())),
        ("plan", rolled_back(Still::fleet().keys("R"))),
        ("help", still().keys("?")),
    ]
}

#[test]
fn a_copied_command_names_the_target_on_every_screen() {
    for (name, still) in screens() {
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

/// Verbs that messages put behind a key.
const VERBS: [&str; 9] = [
    "copies", "clears", "searches", "scrolls", "quits", "lists", "plans", "shows", "goes",
];

/// Returns the words before the verbs of messages that look like keys.
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
    for (name, mut still) in screens() {
        still.model.look.keymap = Keymap::built_in("emacs").unwrap();
        // An unbound key, the filter of a screen without one, and an interrupt each say something.
        for keys in ["", "f12", "ctrl-s", "ctrl-g ctrl-c"] {
            if name == "help" && !keys.is_empty() {
                continue;
            }
            still = still.keys(keys);
            let modes = still.model.front().modes();
            let known = still.model.look.keymap.listing(modes).into_iter();
            let known: Vec<String> = known.map(|(keys, ..)| keys).collect();
            let screen = still.screen();
            for key in named_keys(&screen) {
                let is_bound =
                    |known: &String| *known == key || known.ends_with(&format!(" {key}"));
                assert!(known.iter().any(is_bound), "{name} {keys}: {key}\n{screen}");
                found += 1;
            }
        }
    }
    assert!(found > 3, "{found}");
    let mut log = with_tasks(still()).keys("g l");
    log.model.look.keymap = Keymap::built_in("emacs").unwrap();
    log.shows("alt-w copies the bowline command, alt-c the kubectl command");
    let mut quits = still();
    quits.model.look.keymap = Keymap::built_in("emacs").unwrap();
    quits.keys("ctrl-c").shows("ctrl-x k quits bowline");
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
    // In quotes it is a text.
    let quoted = still().keys("g c").keys("/").keys("\"\"health:x\"\"");
    quoted.keys("enter").hides("has no field");
}

#[test]
fn namespaces_are_asked_for_once_while_their_name_is_typed() {
    let asked = |still: &Still| {
        let effects = still.effects.iter();
        effects
            .filter(|effect| matches!(effect, Effect::Namespaces(_)))
            .count()
    };
    // Pasted, so that the argument is never empty.
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
