//! Tests that `bowline theme import` writes a theme that the terminal UI reads without a warning.

use super::run;
use bowline::tui::theme::{Role, Theme};
use ratatui::style::Color;
use std::path::{Path, PathBuf};

/// A typical skin of k9s: it has YAML anchors, some elements of the screen, and one error.
const SKIN: &str = r##"
letters: &letters "#f8f8f2"
target_info: &target_info "#282a36"
line: &line "#44475a"
green: &green "#50fa7b"
red: &red "#ff5555"

k9s:
  body:
    fgColor: *letters
    bgColor: *target_info
    logoColor: orange
  prompt:
    fgColor: *letters
    bgColor: *target_info
    suggestColor: *line
  info:
    fgColor: dodgerblue
    sectionColor: *letters
  dialog:
    fgColor: *letters
    bgColor: default
    buttonFgColor: *letters
    buttonBgColor: *line
    buttonFocusFgColor: black
    buttonFocusBgColor: *green
    labelFgColor: orange
    fieldFgColor: *letters
  frame:
    border: {fgColor: *line, focusColor: *letters}
    menu: {fgColor: *letters, keyColor: hotpink, numKeyColor: hotpink}
    crumbs: {fgColor: *letters, bgColor: *line, activeColor: *line}
    status:
      newColor: *green
      modifyColor: gold
      addColor: *green
      errorColor: *red
      highlightColor: orange
      killColor: gray
      completedColor: gray
    title: {fgColor: *letters, bgColor: *target_info, highlightColor: orange, counterColor: gold, filterColor: hotpink}
  views:
    charts:
      bgColor: default
      defaultDialColors: [*green, *red]
    table:
      fgColor: *letters
      bgColor: *target_info
      cursorFgColor: *letters
      cursorBgColor: *line
      header: {fgColor: *letters, bgColor: *target_info, sorterColor: gold}
    yaml: {keyColor: hotpink, colourColor: gold, valueColor: *letters}
    logs: {fgColor: *letters, bgColor: *target_info, indicator: {fgColor: *letters}}
"##;

fn skin(home: &Path) -> PathBuf {
    let file = home.join("skin.yaml");
    std::fs::write(&file, SKIN).unwrap();
    file
}

fn style(theme: &Theme, role: Role) -> (Option<Color>, Option<Color>) {
    let style = theme.style(role);
    (style.fg, style.bg)
}

#[test]
fn an_imported_skin_reads_back_as_a_theme() {
    let home = tempfile::tempdir().unwrap();
    let file = skin(home.path());
    let (code, printed, said) = run(home.path(), &["theme", "import", file.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    let slip = "k9s has no setting views.yaml.colourColor; ignored\n";
    assert!(
        said.starts_with("warning: ") && said.ends_with(slip),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");

    let (theme, faults) = Theme::read("skin.toml", &printed, None);
    assert_eq!(faults, []);
    let letters = Some(Color::Rgb(0xf8, 0xf8, 0xf2));
    let line = Some(Color::Rgb(0x44, 0x47, 0x5a));
    let target_info = Some(Color::Rgb(0x28, 0x2a, 0x36));
    assert_eq!(style(&theme, Role::Text), (letters, target_info));
    assert_eq!(style(&theme, Role::Title), (letters, None));
    assert_eq!(style(&theme, Role::Selection), (letters, line));
    let red = Some(Color::Rgb(0xff, 0x55, 0x55));
    assert_eq!(style(&theme, Role::Degraded), (red, None));
    let dark = Theme::built_in("dark").unwrap();
    assert_eq!(theme.style(Role::Armed), dark.style(Role::Armed));
}

#[test]
fn a_name_keeps_the_theme_and_never_overwrites_one() {
    let home = tempfile::tempdir().unwrap();
    let file = skin(home.path());
    let import = |name| {
        let arguments = ["theme", "import", file.to_str().unwrap(), "--name", name];
        run(home.path(), &arguments)
    };
    let (code, printed, said) = import("night");
    assert_eq!((code, printed.as_str()), (0, ""), "{said}");
    let kept = said
        .lines()
        .last()
        .unwrap()
        .rsplit(" is in ")
        .next()
        .unwrap();
    let directory = Path::new(kept).parent().and_then(Path::parent);
    let (theme, faults) = Theme::load("night", directory);
    assert_eq!((theme.name(), faults), ("night", Vec::new()));

    std::fs::write(kept, "mine").unwrap();
    let (code, _, said) = import("night");
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("hint: choose another --name"), "{said}");
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "mine");
    let (code, ..) = import("../night");
    assert_eq!(code, 2);
}

#[test]
fn what_is_no_skin_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("values.yaml");
    let import = || run(home.path(), &["theme", "import", file.to_str().unwrap()]);
    let (code, _, said) = import();
    assert_eq!(code, 1, "{said}");
    for (text, expected) in [
        (
            "replicas: 3",
            "values.yaml: the file is not a k9s skin: it has no key k9s\nhint: ",
        ),
        ("", "values.yaml: the file is not a k9s skin"),
        ("k9s: *none", "values.yaml:1:"),
    ] {
        std::fs::write(&file, text).unwrap();
        let (code, printed, said) = import();
        assert_eq!((code, printed.as_str()), (1, ""), "{text}");
        assert!(said.contains(expected), "{text}: {said}");
    }
}
