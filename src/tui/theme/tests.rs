use std::collections::BTreeSet;

use ratatui::style::Modifier;

use super::colour::{Oklab, channels, linear, luminance};
use super::*;

/// Typical dark terminal backgrounds, for themes that set no background of their own.
const DARK: [&str; 3] = ["#000000", "#1e1e1e", "#282c34"];
/// Typical light terminal backgrounds, for themes that set no background of their own.
const LIGHT: [&str; 3] = ["#ffffff", "#fafafa", "#fdf6e3"];

/// The roles of lines and bars. They contain no text, so they need no minimum contrast.
const LINES: [Role; 2] = [Role::Border, Role::Scrollbar];

fn theme(name: &str) -> Theme {
    Theme::built_in(name).unwrap()
}

fn rgb(text: &str) -> [u8; 3] {
    colour::parse(text).and_then(channels).unwrap()
}

/// Returns the contrast of two colours as defined by WCAG, from 1 to 21.
fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
    let (a, b) = (luminance(a), luminance(b));
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

fn faults_of(text: &str) -> (Theme, Vec<String>) {
    let (theme, faults) = Theme::read("mine.toml", text, None);
    (theme, faults.iter().map(ToString::to_string).collect())
}

#[test]
fn every_built_in_theme_has_every_role_and_no_fault() {
    for (name, text) in BUILT_IN {
        let mut faults = Vec::new();
        let source = Source { name, text };
        Theme::inherit(name, &source, None, false, &mut faults);
        assert_eq!(faults, [], "{name}");
        let mut defined = BTreeSet::new();
        let mut next = Some(name.to_owned());
        while let Some(name) = next.take() {
            let text = built_in_text(&name).unwrap();
            let sheet = read::read(&Source { name: &name, text }, &mut faults);
            defined.extend(sheet.looks.iter().map(|(role, _)| *role));
            next = sheet.inherits.map(|(name, _)| name);
        }
        for (word, role) in Role::WORDS {
            assert!(defined.contains(&role), "{name} says nothing of {word}");
        }
        assert_eq!(theme(name).name(), name);
    }
}

#[test]
fn everything_that_is_read_has_contrast_enough() {
    for (name, grounds, enough) in [
        ("dark", &DARK[..], 4.5),
        ("light", &LIGHT, 4.5),
        ("high-contrast", &["#000000"], 7.0),
        ("colour-blind-safe", &DARK, 4.5),
        ("colour-blind-safe-light", &LIGHT, 4.5),
    ] {
        let theme = theme(name);
        let mut low = Vec::new();
        let mut check = |what: String, style: Style, background: [u8; 3]| {
            let background = style.bg.and_then(channels).unwrap_or(background);
            if let Some(ink) = style.fg.and_then(channels) {
                let found = contrast(ink, background);
                if found < enough {
                    low.push(format!("{what}: {found:.2}"));
                }
            }
        };
        for (word, role) in Role::WORDS {
            for background in grounds {
                if !LINES.contains(&role) {
                    check(
                        format!("{word} on {background}"),
                        theme.style(role),
                        rgb(background),
                    );
                }
            }
            if LINES.contains(&role) || word.starts_with("selection") {
                continue;
            }
            for selection in [Role::Selection, Role::SelectionUnfocused] {
                let style = theme.on(selection, role);
                let what = format!("{word} on {}", selection.word());
                let known = |colour: Option<Color>| colour.and_then(channels).is_some();
                assert!(known(style.fg) && known(style.bg), "{name}: {what}");
                check(what, style, [0; 3]);
            }
        }
        assert_eq!(low, [""; 0], "{name}");
        // The background of a selected row must differ visibly from the background of the screen.
        let background = theme.style(Role::Selection).bg.and_then(channels).unwrap();
        for paper in grounds {
            let seen = Oklab::of(background).distance(Oklab::of(rgb(paper)));
            assert!(seen > 0.04, "{name}: the selection on {paper}: {seen:.3}");
        }
    }
}

#[test]
fn only_selection_badges_buttons_and_words_are_painted() {
    let painted = [
        Role::Selection,
        Role::SelectionUnfocused,
        Role::Readonly,
        Role::Armed,
        Role::AsOf,
        Role::AddedWord,
        Role::RemovedWord,
        Role::Button,
        Role::ButtonFocused,
    ];
    for name in [
        "dark",
        "light",
        "colour-blind-safe",
        "colour-blind-safe-light",
    ] {
        for (word, role) in Role::WORDS {
            let has = theme(name).style(role).bg.is_some();
            assert_eq!(has, painted.contains(&role), "{name}: {word}");
        }
        let text = theme(name).style(Role::Text);
        assert_eq!((text.fg, text.bg), (Some(Color::Reset), None), "{name}");
    }
}

/// Colour vision deficiencies, as matrices that convert colours in linear light. From Machado and others (2009).
const SIGHTS: [(&str, [[f64; 3]; 3]); 4] = [
    (
        "all cones",
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    ),
    (
        "no long cones",
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
    ),
    (
        "no medium cones",
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ),
    (
        "no short cones",
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ),
];

fn seen(colour: [u8; 3], [red, green, blue]: [[f64; 3]; 3]) -> Oklab {
    let light = colour.map(linear);
    let mix = |row: [f64; 3]| -> f64 {
        let sum: f64 = row.iter().zip(light).map(|(part, of)| part * of).sum();
        sum.clamp(0.0, 1.0)
    };
    Oklab::of_linear([mix(red), mix(green), mix(blue)])
}

#[test]
fn health_and_diffs_stay_apart_for_every_kind_of_sight() {
    let groups = [
        &[Role::Good, Role::Progressing, Role::Degraded][..],
        &[Role::Added, Role::Removed, Role::Changed],
    ];
    for name in ["colour-blind-safe", "colour-blind-safe-light"] {
        let theme = theme(name);
        let ink = |role| theme.style(role).fg.and_then(channels).unwrap();
        for (sight, matrix) in SIGHTS {
            for group in groups {
                for (position, a) in group.iter().enumerate() {
                    for b in &group[..position] {
                        let apart = seen(ink(*a), matrix).distance(seen(ink(*b), matrix));
                        assert!(apart > 0.1, "{name}, {sight}: {a:?} {b:?} {apart:.3}");
                    }
                }
            }
        }
    }
    // Prove that this check can fail: without medium cones, two tints of the dark theme look too similar.
    let dark = theme("dark");
    let ink = |role| dark.style(role).fg.and_then(channels).unwrap();
    let (_, no_medium) = SIGHTS[2];
    let apart = seen(ink(Role::Tint5), no_medium).distance(seen(ink(Role::Tint6), no_medium));
    assert!(apart < 0.1, "{apart}");
}

#[test]
fn without_colour_attributes_tell_health_and_selection_apart() {
    let mono = theme(MONOCHROME);
    assert!(mono.is_colourless());
    for role in Role::WORDS.map(|(_, role)| role) {
        let style = mono.style(role);
        assert_eq!((style.fg, style.bg), (None, None));
    }
    let health = [Role::Good, Role::Progressing, Role::Degraded, Role::Unknown];
    let mut looks: Vec<Modifier> = Vec::new();
    for role in health {
        looks.push(mono.style(role).add_modifier);
        for background in [Role::Selection, Role::SelectionUnfocused] {
            let on = mono.on(background, role).add_modifier;
            assert!(on.contains(mono.style(background).add_modifier));
        }
        looks.push(mono.on(Role::Selection, role).add_modifier);
    }
    let distinct: BTreeSet<_> = looks.iter().map(Modifier::bits).collect();
    assert_eq!(distinct.len(), looks.len(), "{looks:?}");
    for (a, b) in [
        (Role::Added, Role::Removed),
        (Role::AddedWord, Role::RemovedWord),
        (Role::Added, Role::AddedWord),
        (Role::Button, Role::ButtonFocused),
        (Role::Text, Role::Match),
        (Role::Readonly, Role::Armed),
    ] {
        assert_ne!(mono.style(a), mono.style(b), "{a:?} {b:?}");
    }
}

#[test]
fn colours_come_down_to_what_the_terminal_has() {
    for name in names() {
        let theme = theme(name);
        assert_eq!(theme.at(Depth::True), theme);
        for (word, role) in Role::WORDS {
            let colours = |depth| {
                let style = theme.at(depth).style(role);
                [style.fg, style.bg].into_iter().flatten()
            };
            for colour in colours(Depth::Ansi256) {
                assert!(!matches!(colour, Color::Rgb(..)), "{name} {word}");
            }
            for colour in colours(Depth::Ansi16) {
                let own = !matches!(colour, Color::Rgb(..) | Color::Indexed(_));
                assert!(own, "{name} {word}: {colour}");
            }
            assert_eq!(colours(Depth::Mono).count(), 0, "{name} {word}");
        }
        let sixteen = theme.at(Depth::Ansi16);
        let selected = sixteen.on(Role::Selection, Role::Degraded);
        let selection = sixteen.style(Role::Selection);
        assert_eq!((selected.fg, selected.bg), (selection.fg, selection.bg));
        // No text may have the colour of its background.
        for (word, role) in Role::WORDS {
            let style = sixteen.style(role);
            assert!(style.bg.is_none() || style.fg != style.bg, "{name} {word}");
        }
    }
    let mono = theme("dark").at(Depth::Mono);
    assert_eq!(
        mono.style(Role::Selection),
        theme(MONOCHROME).style(Role::Selection)
    );
    let (own, _) = faults_of("inherits = 'monochrome'\n[style]\ngood = { bold = true }");
    let good = own.at(Depth::Mono).style(Role::Good);
    assert_eq!(good.add_modifier, Modifier::BOLD);
}

#[test]
fn a_theme_is_laid_over_what_it_inherits() {
    let (mine, faults) = faults_of(
        r##"
        inherits = "light"
        [palette]
        sky = "#010203"
        sea = 30
        warm = "bright-red"
        [style]
        good = "sea"
        degraded = { fg = "warm", bg = "black", bold = true, dim = false }
        muted = 7
        "##,
    );
    assert_eq!(faults, [""; 0]);
    let light = theme("light");
    let fg = |role| mine.style(role).fg;
    // A palette entry of the user also changes the inherited styles that name this entry.
    assert_eq!(fg(Role::Title), Some(Color::Rgb(1, 2, 3)));
    assert_eq!(fg(Role::Good), Some(Color::Indexed(30)));
    assert_eq!(fg(Role::Muted), Some(Color::Gray));
    assert_eq!(mine.style(Role::Warning), light.style(Role::Warning));
    let degraded = Style::new().fg(Color::LightRed).bg(Color::Black);
    assert_eq!(
        mine.style(Role::Degraded),
        degraded.add_modifier(Modifier::BOLD)
    );
    // With sixteen colours, the theme's own style has priority over a style for sixteen colours that it inherits.
    let sixteen = mine.at(Depth::Ansi16);
    assert_eq!(sixteen.style(Role::Muted).fg, Some(Color::Gray));
    assert_eq!(sixteen.style(Role::Good).fg, Some(Color::Cyan));
    let (own, faults) = faults_of("[style-16]\ngood = 'magenta'");
    assert_eq!(faults, [""; 0]);
    let good = own.at(Depth::Ansi16).style(Role::Good);
    assert_eq!(good.fg, Some(Color::Magenta));
    assert_eq!(own.style(Role::Good), theme("dark").style(Role::Good));
}

#[test]
fn what_is_wrong_is_named_by_line_and_the_rest_counts() {
    for (text, expected) in [
        (
            "[style]\ngod = 'red'",
            "mine.toml:2:1: unknown role `god`, did you mean `good`?; docs/themes.md lists the roles",
        ),
        (
            "[style]\ngood = 'gren'",
            "mine.toml:2:8: `gren` is not a colour, did you mean `green`?; write \"#rrggbb\"",
        ),
        (
            "[style]\ngood = { bg = '#12345' }",
            "mine.toml:2:15: `#12345` is not a colour; ",
        ),
        ("[style]\ngood = 256", "mine.toml:2:8: 256 is not a colour"),
        (
            "[style]\ngood = true",
            "mine.toml:2:8: true is not a colour",
        ),
        (
            "[style]\ngood = { fg = [1] }",
            "mine.toml:2:15: [1] is not a colour",
        ),
        (
            "[palette]\nsea = 'wet'",
            "mine.toml:2:7: `wet` is not a colour",
        ),
        (
            "[style]\ngood = { blod = true }",
            "mine.toml:2:10: unknown key `blod`, did you mean `bold`?; a style has fg,",
        ),
        (
            "[style]\ngood = { bold = 1 }",
            "mine.toml:2:17: `bold` should be true or false",
        ),
        (
            "[stile]\ngood = 'red'",
            "mine.toml:1:2: unknown key `stile`, did you mean `style`?; a theme has inherits,",
        ),
        (
            "style = 3",
            "mine.toml:1:9: `style` should be a table of roles",
        ),
        (
            "palette = 3",
            "mine.toml:1:11: `palette` should be a table of names",
        ),
        (
            "inherits = 3",
            "mine.toml:1:12: `inherits` should be the name of a theme",
        ),
        (
            "inherits = 'drak'",
            "mine.toml:1:12: unknown theme `drak`, did you mean `dark`?; the themes are dark, light,",
        ),
        (
            "inherits = 'mine'",
            "mine.toml:1:12: `mine` inherits itself (mine); let one of these themes inherit dark or light",
        ),
        (
            "[style]\ngood = ",
            "mine.toml:2:8: the file is not valid TOML",
        ),
    ] {
        let (read, faults) = faults_of(text);
        assert!(faults[0].contains(expected), "{text}: {faults:?}");
        assert_eq!(read.styles, theme("dark").styles, "{text}");
    }
    let (read, faults) = faults_of("[style]\nwrong = 1\ngood = 'magenta'\nmuted = 'wrong'");
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert_eq!(read.style(Role::Good).fg, Some(Color::Magenta));
}

#[test]
fn the_users_themes_are_found_by_name_and_inherit_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join(DIRECTORY);
    std::fs::create_dir(&directory).unwrap();
    for (file, text) in [
        ("a.toml", "inherits = 'b'\n[style]\ngood = 'red'"),
        (
            "b.toml",
            "inherits = 'light'\n[style]\ngood = 'blue'\nmuted = 'cyan'",
        ),
        ("dark.toml", "inherits = 'dark'\n[style]\ngood = 'yellow'"),
        ("x.toml", "inherits = 'y'"),
        ("y.toml", "\ninherits = 'x'\n[style]\ngood = 'green'"),
        ("readme.txt", ""),
    ] {
        std::fs::write(directory.join(file), text).unwrap();
    }
    std::fs::write(directory.join("bytes.toml"), [0xff]).unwrap();
    let load = |name| Theme::load(name, Some(folder.path()));

    let (a, faults) = load("a");
    assert_eq!((faults, a.name()), (Vec::new(), "a"));
    assert_eq!(a.style(Role::Good).fg, Some(Color::Red));
    assert_eq!(a.style(Role::Muted).fg, Some(Color::Cyan));
    assert_eq!(a.style(Role::Title), theme("light").style(Role::Title));

    // A user's file with the name of a built-in theme changes that theme.
    let (dark, faults) = load("dark");
    assert_eq!(faults, []);
    assert_eq!(dark.style(Role::Good).fg, Some(Color::Yellow));
    assert_eq!(dark.style(Role::Title), theme("dark").style(Role::Title));

    let (x, faults) = load("x");
    assert_eq!(x.style(Role::Good).fg, Some(Color::Green));
    let message = faults[0].to_string();
    assert!(
        message.contains("y.toml:2:12: `x` inherits itself (x, y"),
        "{message}"
    );

    let (_, faults) = load("bytes");
    assert!(
        matches!(faults[0].problem, Problem::Unreadable(_)),
        "{faults:?}"
    );
    for name in ["drak", "../themes/a", "", "."] {
        let (read, faults) = load(name);
        assert_eq!(read, Theme::default());
        assert!(
            matches!(faults[0].problem, Problem::Theme { .. }),
            "{faults:?}"
        );
    }
    assert_eq!(Theme::load("light", None), (theme("light"), Vec::new()));
    let available = available(Some(folder.path()));
    assert_eq!(&available[..4], ["a", "b", "bytes", "dark"]);
    assert_eq!(available.iter().filter(|name| *name == "dark").count(), 1);
    assert!(available.contains(&"monochrome".to_owned()));
}

#[test]
fn the_page_about_themes_is_right() {
    let page = include_str!("../../../docs/themes.md");
    let example = page
        .split("```")
        .find_map(|block| block.strip_prefix("toml"));
    let (mine, faults) = faults_of(example.unwrap());
    assert_eq!(faults, [""; 0]);
    assert_eq!(mine.style(Role::Title).fg, Some(Color::Rgb(0, 0x5f, 0x87)));
    for name in names().into_iter().chain(Role::WORDS.map(|(word, _)| word)) {
        // docs/themes.md lists the tints as a range, so it does not name each one.
        let tint = ["tint2", "tint3", "tint4", "tint5"].contains(&name);
        assert!(tint || page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn two_mistakes_in_a_style_are_two_messages() {
    for (text, expected) in [
        (
            "[style]\ngood = { fg = 'gren', bg = 'rd' }",
            ["`gren` is not a colour", "`rd` is not a colour"],
        ),
        (
            "[style]\ngood = { fg = [1], blod = true }",
            ["[1] is not a colour", "unknown key `blod`"],
        ),
        (
            "[style]\ngood = { bold = 1, dim = 2 }",
            ["`bold` should be", "`dim` should be"],
        ),
    ] {
        let (read, faults) = faults_of(text);
        assert_eq!(faults.len(), 2, "{text}: {faults:?}");
        for part in expected {
            let mut found = faults.iter();
            assert!(
                found.any(|fault| fault.contains(part)),
                "{part}: {faults:?}"
            );
        }
        assert_eq!(read.style(Role::Good), theme("dark").style(Role::Good));
    }
}
