use std::collections::BTreeSet;

use super::*;
use crate::action::WORDS;

/// The lists of active modes that screens, plans, prompts and choices use.
const STACKS: [&[Mode]; 7] = [
    &[Mode::Matrix, Mode::List, Mode::Global],
    &[Mode::List, Mode::Global],
    &[Mode::Diff, Mode::Global],
    &[Mode::Plan, Mode::Global],
    &[Mode::Text],
    &[Mode::Text, Mode::Global],
    &[Mode::Plan, Mode::Text],
];

fn keys(text: &str) -> Vec<Key> {
    Key::sequence(text).unwrap()
}

fn step<'k>(keymap: &'k Keymap, modes: &[Mode], text: &str) -> Step<'k> {
    keymap.step(modes, &keys(text))
}

fn laid_over(text: &str) -> (Keymap, Vec<String>) {
    let (keymap, faults) = Keymap::read("default", Some(("keymap.toml", text)));
    (keymap, faults.iter().map(ToString::to_string).collect())
}

#[test]
fn the_built_in_keymaps_have_no_fault_and_reach_every_action() {
    for (name, text) in BUILT_IN {
        let (_, faults) = Keymap::lay_over(None, &Source { name, text });
        assert_eq!(faults, [], "{name}");
        let keymap = Keymap::built_in(name).unwrap();
        let mut reached = BTreeSet::new();
        for modes in STACKS {
            for (keys, action, desc) in keymap.listing(modes) {
                assert_eq!(step(&keymap, modes, &keys), Step::Run(action), "{keys}");
                assert!(!desc.is_empty() && desc.chars().count() < 50, "{desc}");
                reached.insert(action);
            }
        }
        for (word, action) in WORDS {
            assert!(reached.contains(action), "{name} has no key for {word}");
        }
    }
    assert_eq!(Keymap::built_in("vi"), None);
}

#[test]
fn in_no_built_in_keymap_does_a_mode_hide_a_chord_of_another() {
    for (name, _) in BUILT_IN {
        let keymap = Keymap::built_in(name).unwrap();
        for modes in STACKS {
            let listed: BTreeSet<_> = keymap
                .listing(modes)
                .into_iter()
                .map(|(keys, ..)| keys)
                .collect();
            for mode in modes {
                for (keys, ..) in keymap.listing(&[*mode]) {
                    let is_typed = Key::sequence(&keys).unwrap()[0].is_typed();
                    if is_typed && modes.contains(&Mode::Text) {
                        assert!(
                            !listed.contains(&keys),
                            "{name}: {keys} is typed in {modes:?}"
                        );
                        continue;
                    }
                    let same = step(&keymap, modes, &keys);
                    assert!(
                        listed.contains(&keys) && matches!(same, Step::Run(_)),
                        "{name}: {keys} of {mode:?} is hidden in {modes:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn there_is_always_a_way_back_and_out() {
    for (name, _) in BUILT_IN {
        let keymap = Keymap::built_in(name).unwrap();
        for modes in STACKS {
            assert_eq!(step(&keymap, modes, "esc"), Step::Run(Action::Back));
            assert_eq!(step(&keymap, modes, "ctrl-c"), Step::Run(Action::Interrupt));
        }
        for modes in &STACKS[..4] {
            assert!(keymap.keys_for(modes, Action::Quit).is_some());
            assert!(keymap.keys_for(modes, Action::Leave).is_some());
            assert!(keymap.keys_for(modes, Action::Help).is_some());
        }
    }
}

#[test]
fn the_earlier_mode_counts_and_chords_of_all_are_offered() {
    let (keymap, faults) = laid_over(
        r#"
        matrix = [{ on = "g z", run = "live", desc = "now" }, { on = "x", run = "live", desc = "now" }]
        list = [
          { on = "x", run = "sort", desc = "sort" },
          { on = "g m", run = "open", desc = "open" },
        ]
        diff = [{ on = "g", run = "copy", desc = "copy" }]
        "#,
    );
    assert_eq!(faults, [""; 0]);
    let matrix = STACKS[0];
    assert_eq!(step(&keymap, matrix, "x"), Step::Run(Action::Live));
    assert_eq!(step(&keymap, STACKS[1], "x"), Step::Run(Action::Sort));
    assert_eq!(step(&keymap, matrix, "g m"), Step::Run(Action::Open));
    assert_eq!(step(&keymap, matrix, "g g"), Step::Run(Action::Top));
    assert_eq!(step(&keymap, matrix, "g q"), Step::Nothing);
    assert_eq!(step(&keymap, matrix, "x x"), Step::Nothing);
    let Step::More(more) = step(&keymap, matrix, "g") else {
        panic!("g is a prefix");
    };
    let named: Vec<_> = more.iter().map(|(key, ..)| key.to_string()).collect();
    assert_eq!(named.join(""), "zmgorpsvcatlxw");
    assert_eq!(more[0], (keys("z")[0], Some(Action::Live), "now"));
    assert_eq!(more[1].1, Some(Action::Open));
    // A key that runs an action hides the chords of later modes that start with the key, in `step`
    // and in `listing`.
    assert_eq!(step(&keymap, STACKS[2], "g"), Step::Run(Action::Copy));
    assert_eq!(step(&keymap, STACKS[2], "g m"), Step::Nothing);
    assert_eq!(keymap.keys_for(STACKS[2], Action::GoMatrix), None);
    assert_eq!(
        keymap.keys_for(STACKS[0], Action::Sort).as_deref(),
        Some("s")
    );
    // Before any key press, all bindings are possible.
    assert!(matches!(step(&keymap, STACKS[4], ""), Step::More(_)));
    assert_eq!(keymap.step(&[], &keys("x")), Step::Nothing);
}

#[test]
fn keys_that_begin_longer_ones_say_that_there_is_more() {
    let (keymap, faults) = laid_over("[[text]]\non = 'ctrl-x r m'\nrun = 'back'\ndesc = 'x'");
    assert_eq!(faults, [""; 0]);
    let text = &[Mode::Text];
    let more = Step::More(vec![(keys("r")[0], None, "more keys")]);
    assert_eq!(step(&keymap, text, "ctrl-x"), more);
    assert_eq!(step(&keymap, text, "ctrl-x r m"), Step::Run(Action::Back));
    assert_eq!(step(&keymap, text, "x"), Step::Nothing);
}

#[test]
fn a_user_replaces_unbinds_and_chooses_the_base() {
    let (keymap, faults) = laid_over(
        r#"
        [[list]]
        on = "g"
        run = "top"
        desc = "to the top"
        [[list]]
        on = "f"
        run = "none"
        [[global]]
        on = "g"
        run = "none"
        [[global]]
        on = "g"
        run = "help"
        desc = "help"
        [[list]]
        on = "d"
        run = "sort"
        desc = "sort"
        "#,
    );
    assert_eq!(faults, [""; 0]);
    let list = STACKS[1];
    assert_eq!(step(&keymap, list, "g"), Step::Run(Action::Top));
    assert_eq!(step(&keymap, &[Mode::Global], "g"), Step::Run(Action::Help));
    assert_eq!(step(&keymap, list, "f"), Step::Nothing);
    assert_eq!(step(&keymap, list, "d"), Step::Run(Action::Sort));
    assert_eq!(step(&keymap, list, "g m"), Step::Nothing);

    let (emacs, faults) = laid_over("base = \"emacs\"");
    assert_eq!(faults, [""; 0]);
    assert_eq!(emacs, Keymap::built_in("emacs").unwrap());
    let (default, _) = Keymap::read("default", None);
    assert_eq!(default, Keymap::built_in("default").unwrap());
}

#[test]
fn what_is_wrong_is_named_by_line_and_the_rest_counts() {
    for (text, expected) in [
        (
            "[[list]]\non = 'x'\nrun = 'promot'\ndesc = 'd'",
            "keymap.toml:3:7: unknown action `promot`, did you mean `promote`?; the help lists all actions",
        ),
        (
            "[[list]]\non = 'ctrl-shift'\nrun = 'open'\ndesc = 'd'",
            "keymap.toml:2:6: `ctrl-shift` is not a key; write a character",
        ),
        (
            "[[lists]]\non = 'x'\nrun = 'open'\ndesc = 'd'",
            "keymap.toml:1:3: unknown mode `lists`, did you mean `list`?; the modes are global, list, matrix, diff, plan, text",
        ),
        (
            "\n[[list]]\non = 'x'\nrun = 'open'",
            "keymap.toml:2:1: the line needs `desc = \"...\"`: a short description for the help",
        ),
        (
            "list = [{ run = 'open', desc = 'd' }]",
            "keymap.toml:1:9: the line needs `on = \"...\"`",
        ),
        (
            "list = [{ on = 'x', desc = 'd' }]",
            "the line needs `run = \"...\"`: the action, or none to remove the binding",
        ),
        (
            "list = [{ on = 'x', run = 'open', des = 'd' }]",
            "keymap.toml:1:35: unknown field `des`, did you mean `desc`?; a line has on, run and desc",
        ),
        ("list = 3", "keymap.toml:1:8: write lines as [[list]]"),
        ("list = ['x']", "keymap.toml:1:9: write lines as [[list]]"),
        (
            "list = [\n{ on = 'x', run = 'open', desc = 'd' },\n{ on = 'x', run = 'sort', desc = 'd' }]",
            "keymap.toml:3:8: line 2 already binds `x`; remove one of the two lines",
        ),
        (
            "list = [{ on = 'x', run = 'open', desc = 'd' }, { on = 'x', run = 'sort', desc = 'd' }]",
            "line 1 already binds `x`",
        ),
        (
            "global = [{ on = 'g', run = 'top', desc = 'd' }]",
            "`g` and `g g` conflict in global: one is the start of the other; choose other keys, or unbind the other with on = \"g g\", run = \"none\"",
        ),
        (
            "list = [{ on = 'd d', run = 'diff', desc = 'd' }]",
            "`d d` and `d` conflict in list",
        ),
        (
            "list = [{ on = 'x', run = 'promote', desc = 'd' }]",
            "keymap.toml:1:16: `x` cannot open a plan: bind promote to a capital letter, or to keys that end with one",
        ),
        (
            "list = [{ on = 'alt-P', run = 'promote', desc = 'd' }]",
            "`alt-P` cannot open a plan",
        ),
        (
            "text = [{ on = 'x', run = 'back', desc = 'd' }]",
            "`x` is a text character in this mode: bind back to a key with ctrl or alt, or to a named key",
        ),
        (
            "text = [{ on = 'space', run = 'back', desc = 'd' }]",
            "`space` is a text character",
        ),
        (
            "list = [{ on = 'ctrl-y', run = 'none' }]",
            "`ctrl-y` has no binding in list that could be removed; remove the line",
        ),
        (
            "base = 'vi'",
            "keymap.toml:1:1: unknown base keymap `vi`; the keymaps are default, emacs",
        ),
        (
            "base = 3",
            "keymap.toml:1:1: the line needs `base = \"...\"`",
        ),
        (
            "list = [\n{ on = 'x' \"\n",
            "keymap.toml:2:12: the file is not valid TOML",
        ),
    ] {
        let good = "matrix = [{ on = 'ctrl-t', run = 'live', desc = 'now' }]";
        let text = format!("{text}\n");
        let (keymap, faults) = laid_over(&text);
        assert!(
            faults.iter().any(|fault| fault.contains(expected)),
            "{text}\n{faults:#?}\n{expected}"
        );
        assert_eq!(step(&keymap, STACKS[1], "P"), Step::Run(Action::Promote));
        // A valid line applies even if an invalid line follows.
        let (keymap, faults) = laid_over(&format!("{good}\n{text}"));
        assert!(!faults.is_empty());
        assert_eq!(step(&keymap, STACKS[0], "ctrl-t"), Step::Run(Action::Live));
    }
}

#[test]
fn faults_come_in_the_order_of_the_file() {
    let (_, faults) = Keymap::read(
        "default",
        Some((
            "k",
            "[[text]]\non = 'x'\nrun = 'back'\ndesc = 'd'\n[[list]]\non = '??'\n[[lists]]\n[[list]]\non = 'd d'\nrun = 'diff'\ndesc = 'd'",
        )),
    );
    let lines: Vec<_> = faults.iter().map(|fault| fault.place.line).collect();
    assert_eq!(lines, [2, 5, 6, 7, 9]);
}

#[test]
fn the_users_file_is_read_from_the_directory() {
    let folder = tempfile::tempdir().unwrap();
    let default = Keymap::built_in("default").unwrap();
    let nothing = (default.clone(), Vec::new());
    assert_eq!(Keymap::load("default", None), nothing);
    assert_eq!(Keymap::load("default", Some(folder.path())), nothing);

    let file = folder.path().join(FILE);
    std::fs::write(
        &file,
        "[[list]]\non = 'W'\nrun = 'promote'\ndesc = 'walk on'",
    )
    .unwrap();
    let (keymap, faults) = Keymap::load("default", Some(folder.path()));
    assert_eq!(faults, []);
    assert_eq!(step(&keymap, STACKS[1], "W"), Step::Run(Action::Promote));

    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    let (keymap, faults) = Keymap::load("default", Some(folder.path()));
    assert_eq!(keymap, default);
    assert!(
        matches!(faults[0].problem, Problem::Unreadable(_)),
        "{faults:?}"
    );
    assert!(faults[0].to_string().contains(FILE));
}

#[test]
fn the_page_about_keymaps_is_right() {
    let page = include_str!("../../../docs/keymaps.md");
    let examples = page
        .split("```")
        .filter_map(|block| block.strip_prefix("toml"));
    let mut read = 0;
    for example in examples {
        assert_eq!(laid_over(example).1, [""; 0], "{example}");
        read += 1;
    }
    assert_eq!(read, 2);
    let words = WORDS.iter().map(|(word, _)| *word);
    for word in words.chain(Mode::WORDS.map(|(word, _)| word)) {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
}

#[test]
fn two_mistakes_in_a_line_are_two_messages() {
    let (_, faults) = laid_over("list = [{ on = 'qq-x', run = 'opn', dsc = 'd' }]");
    for expected in ["qq-x", "unknown action `opn`", "unknown field `dsc`"] {
        let found = faults.iter().filter(|fault| fault.contains(expected));
        assert_eq!(found.count(), 1, "{expected}: {faults:?}");
    }
}
