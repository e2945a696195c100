//! Chooses the theme, the keymap and the character set: first from the flags, then from the user's files, then from
//! the abilities of the terminal.
//!
//! bowline starts even if these settings contain a mistake: it reports the mistake and uses the next source.

use std::ffi::OsStr;

use bounded_yaml::Place;

use super::keymap::file::did_you_mean;
use super::keymap::{self, Keymap};
use super::model::Look;
use super::pen;
use super::run::Start;
use super::terminal::osc::Rgb;
use super::theme::{self, Background, Depth, Theme};
use crate::connect::{Environment, Looks};

pub fn variable(environment: &Environment, name: &str) -> Option<String> {
    let value = environment.variables.get(OsStr::new(name));
    value.and_then(|value| value.to_str()).map(str::to_owned)
}

fn depth(environment: &Environment) -> Depth {
    Depth::of(
        variable(environment, "NO_COLOR").as_deref(),
        variable(environment, "COLORTERM").as_deref(),
        variable(environment, "TERM").as_deref(),
    )
}

/// Loads a theme by name, and replaces its colours by those that the terminal supports. Also returns the mistakes in
/// the theme's file. Fails if there is no theme with this name.
pub fn theme(name: &str, environment: &Environment) -> Result<(Theme, Vec<String>), String> {
    let directory = environment.config_dir.as_deref();
    let known = theme::available(directory);
    if !known.iter().any(|one| one == name) {
        return Err(no_such("theme", name, &known));
    }
    let (theme, faults) = Theme::load(name, directory);
    let faults = faults.iter().map(ToString::to_string).collect();
    Ok((theme.at(depth(environment)), faults))
}

/// Chooses the theme, the keymap and the character set. Also returns the mistakes in the user's
/// files.
pub fn look(
    start: &Start,
    wanted: &Looks,
    environment: &Environment,
    background: Option<Rgb>,
) -> (Look, Vec<String>) {
    let directory = environment.config_dir.as_deref();
    let mut faults = Vec::new();
    let themes = theme::available(directory);
    let background = match background {
        Some(Rgb { red, green, blue }) => Background::of_channels([red, green, blue]),
        None => variable(environment, "COLORFGBG")
            .and_then(|value| Background::of_colorfgbg(&value))
            .unwrap_or(Background::Dark),
    };
    let configured = configured("theme", &wanted.theme, &themes, &mut faults);
    let name = start.theme.as_deref().or(configured);
    let (theme, wrong) = Theme::load(name.unwrap_or(background.theme()), directory);
    faults.extend(wrong.iter().map(ToString::to_string));
    let keymaps: Vec<String> = keymap::names().into_iter().map(str::to_owned).collect();
    let configured = self::configured("keymap", &wanted.keymap, &keymaps, &mut faults);
    let base = start.keymap.as_deref().or(configured);
    let (keymap, wrong) = Keymap::load(base.unwrap_or("default"), directory);
    faults.extend(wrong.iter().map(ToString::to_string));
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| variable(environment, name));
    let utf8 = utf8.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    });
    let glyphs = match start.ascii || !utf8 {
        true => &pen::ASCII,
        false => &pen::UNICODE,
    };
    let look = Look {
        theme: theme.at(depth(environment)),
        keymap,
        glyphs,
        themes,
    };
    (look, faults)
}

/// Returns the value of a setting in `config.toml`; None if the setting is absent or its value is
/// unknown. An unknown value also adds a message to `faults`.
fn configured<'w>(
    what: &str,
    wanted: &'w Option<(String, Place)>,
    known: &[String],
    faults: &mut Vec<String>,
) -> Option<&'w str> {
    let (name, place) = wanted.as_ref()?;
    match known.contains(name) {
        true => Some(name),
        false => {
            faults.push(format!("{place}: {}", no_such(what, name, known)));
            None
        }
    }
}

fn no_such(what: &str, name: &str, known: &[String]) -> String {
    let nearest = did_you_mean(name, known.iter().map(String::as_str));
    let nearest = nearest.trim_end_matches('?');
    format!(
        "unknown {what} `{name}`{nearest}; known: {}",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::{Action, Mode};
    use crate::connect;
    use crate::theme::Role;

    /// Creates a configuration directory that contains a theme file named `mine` and this text as `config.toml`.
    fn home(config: &str) -> (tempfile::TempDir, Environment) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("themes")).unwrap();
        let mine = "inherits = \"light\"\n[style]\nhold = \"#010203\"\n";
        std::fs::write(folder.path().join("themes/mine.toml"), mine).unwrap();
        std::fs::write(folder.path().join("config.toml"), config).unwrap();
        let variables = [("TERM", "xterm-256color"), ("COLORFGBG", "0;15")];
        let variables = variables.map(|(name, value)| (name.into(), value.into()));
        let environment = Environment {
            config_dir: Some(folder.path().to_owned()),
            variables: variables.into(),
            ..Environment::default()
        };
        (folder, environment)
    }

    #[test]
    fn flags_count_before_the_configuration_and_that_before_the_terminal() {
        for (config, flag, expected) in [
            ("", None, "light"),
            ("theme = \"mine\"", None, "mine"),
            ("theme = \"mine\"", Some("high-contrast"), "high-contrast"),
        ] {
            let (_folder, environment) = home(config);
            let start = Start {
                theme: flag.map(str::to_owned),
                ..Start::default()
            };
            let wanted = connect::looks(&environment);
            let (look, faults) = look(&start, &wanted, &environment, None);
            assert_eq!(look.theme.name(), expected);
            assert_eq!(look.themes.first().map(String::as_str), Some("mine"));
            assert!(faults.is_empty(), "{faults:?}");
        }
    }

    #[test]
    fn a_keymap_can_be_configured() {
        let (_folder, environment) = home("keymap = \"emacs\"");
        let wanted = connect::looks(&environment);
        let (look, faults) = look(&Start::default(), &wanted, &environment, None);
        let undo = look.keymap.keys_for(&[Mode::List], Action::Undo);
        assert_eq!(undo.as_deref(), Some("ctrl-x U"));
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn what_is_not_there_is_named_by_file_and_line() {
        let (folder, environment) = home("theme = \"drak\"\nkeymap = \"vim\"\n");
        let wanted = connect::looks(&environment);
        let (look, faults) = look(&Start::default(), &wanted, &environment, None);
        assert_eq!(look.theme.name(), "light");
        let file = folder.path().join("config.toml");
        let file = file.display();
        assert_eq!(faults.len(), 2, "{faults:?}");
        let theme = format!("{file}:1:9: unknown theme `drak`, did you mean `dark`; known: mine, ");
        assert!(faults[0].starts_with(&theme), "{faults:?}");
        let keymap = format!("{file}:2:10: unknown keymap `vim`; known: default, emacs");
        assert_eq!(faults[1], keymap);
    }

    #[test]
    fn a_theme_is_changed_to_one_of_the_users_in_as_many_colours_as_there_are() {
        use ratatui::style::Color;
        let (_folder, environment) = home("");
        let (mine, faults) = theme("mine", &environment).unwrap();
        assert!(faults.is_empty(), "{faults:?}");
        let hold = mine.style(Role::Hold).fg.unwrap();
        assert!(matches!(hold, Color::Indexed(_)), "{hold:?}");
        let none = theme("mien", &environment).unwrap_err();
        assert!(
            none.starts_with("unknown theme `mien`, did you mean `mine`"),
            "{none}"
        );
    }
}
