//! Themes: TOML files that define the style of each [`Role`]. A theme inherits the styles that it does not define
//! from another theme.
//!
//! Screens name only roles. A frame starts filled with [`Role::Text`]; text on a selected row uses [`Theme::on`].
//! Authors write a theme in true colour, and [`Theme::at`] reduces it to the colours of the terminal. On a terminal
//! without colours, attributes such as bold replace the colours.
//!
//! bowline reports mistakes in a user's theme, and uses the valid parts.

mod colour;
mod read;
mod role;
mod terminal;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;

use ratatui::style::{Color, Style};

pub use self::read::{Fault, Problem};
use self::read::{Look, Sheet};
pub use self::role::Role;
pub use self::terminal::{Background, Depth};
use crate::keymap::file::{Source, did_you_mean, text_of};

/// The built-in themes: name and text.
const BUILT_IN: [(&str, &str); 6] = [
    ("dark", include_str!("../../../themes/dark.toml")),
    ("light", include_str!("../../../themes/light.toml")),
    (
        "high-contrast",
        include_str!("../../../themes/high-contrast.toml"),
    ),
    (
        "colour-blind-safe",
        include_str!("../../../themes/colour-blind-safe.toml"),
    ),
    (
        "colour-blind-safe-light",
        include_str!("../../../themes/colour-blind-safe-light.toml"),
    ),
    (MONOCHROME, include_str!("../../../themes/monochrome.toml")),
];

/// The name of the theme for terminals without colours.
const MONOCHROME: &str = "monochrome";

/// The name of the theme that a user's theme inherits if its file names no other theme.
const ROOT: &str = "dark";

/// The subdirectory of the configuration directory that contains the user's themes.
pub const DIRECTORY: &str = "themes";

const ROLES: usize = Role::WORDS.len();

/// The styles of all roles, for a terminal with a given number of colours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theme {
    name: String,
    depth: Depth,
    styles: [Style; ROLES],
    sixteen: [Style; ROLES],
}

/// Returns the names of the built-in themes.
pub fn names() -> Vec<&'static str> {
    BUILT_IN.iter().map(|(name, _)| *name).collect()
}

/// Returns the names of all themes: first the user's themes, then the built-in ones.
pub fn available(config_dir: Option<&Path>) -> Vec<String> {
    let entries = config_dir.and_then(|directory| directory.join(DIRECTORY).read_dir().ok());
    let mut found: Vec<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|file| file.strip_suffix(".toml").map(str::to_owned))
        .collect();
    found.sort();
    for name in names() {
        if found.iter().all(|known| known != name) {
            found.push(name.to_owned());
        }
    }
    found
}

impl Theme {
    /// Returns a built-in theme; None if no built-in theme has this name.
    pub fn built_in(name: &str) -> Option<Self> {
        let (_, text) = BUILT_IN.iter().find(|(known, _)| *known == name)?;
        let mut faults = Vec::new();
        Some(Self::inherit(
            name,
            &Source { name, text },
            None,
            false,
            &mut faults,
        ))
    }

    /// Parses a user's theme, given as file name and text. The theme may inherit another theme of the user. Also
    /// returns the mistakes in the files.
    pub fn read(file: &str, text: &str, config_dir: Option<&Path>) -> (Self, Vec<Fault>) {
        let mut faults = Vec::new();
        let stem = Path::new(file).file_stem().and_then(|stem| stem.to_str());
        let source = Source { name: file, text };
        let name = stem.unwrap_or(file);
        let theme = Self::inherit(name, &source, config_dir, true, &mut faults);
        (theme, faults)
    }

    /// Returns the theme with this name: the user's theme, or else the built-in one. Also returns
    /// the mistakes in the user's files.
    pub fn load(name: &str, config_dir: Option<&Path>) -> (Self, Vec<Fault>) {
        let mut faults = Vec::new();
        if let Some((file, text)) = users(name, config_dir, &mut faults) {
            let (theme, found) = Self::read(&file, &text, config_dir);
            faults.extend(found);
            return (theme, faults);
        }
        if let Some(theme) = Self::built_in(name) {
            return (theme, faults);
        }
        if faults.is_empty() {
            let place = Source {
                name: "theme",
                text: "",
            }
            .place(0);
            let problem = no_theme(name.to_owned(), config_dir);
            faults.push(Fault { place, problem });
        }
        (Self::default(), faults)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn style(&self, role: Role) -> Style {
        self.styles[role as usize]
    }

    /// Returns the style of text on the background of another role, such as a symbol on a selected row. With more than
    /// sixteen colours, the text keeps its colour. Otherwise the text gets each property that the style of the
    /// background role sets, such as a colour.
    pub fn on(&self, background: Role, role: Role) -> Style {
        let paper = self.style(Role::Text).bg;
        let (background, mut role) = (self.style(background), self.style(role));
        if self.depth <= Depth::Ansi16 {
            return role.patch(background);
        }
        // The text keeps its own background, such as that of a badge, unless it is the background of the whole
        // screen. It does not keep the terminal's default text colour, which may be unreadable on this background.
        role.bg = role.bg.filter(|bg| Some(*bg) != paper);
        role.fg = role.fg.filter(|fg| *fg != Color::Reset);
        background.patch(role)
    }

    /// Returns the theme with its colours reduced to those that a terminal supports.
    pub fn at(&self, depth: Depth) -> Self {
        let mut theme = self.clone();
        theme.depth = depth;
        match depth {
            Depth::True => {}
            Depth::Ansi256 => theme.recolour(colour::of_256),
            Depth::Ansi16 => {
                theme.styles = self.sixteen;
                theme.recolour(colour::of_16);
            }
            Depth::Mono if self.is_colourless() => {}
            Depth::Mono => {
                // Without colours, a selected row would look like any other row in this theme, so use the styles of
                // the monochrome theme.
                if let Some(monochrome) = Self::built_in(MONOCHROME) {
                    theme.styles = monochrome.styles;
                }
            }
        }
        theme
    }

    fn is_colourless(&self) -> bool {
        self.styles.iter().all(|style| {
            [style.fg, style.bg]
                .into_iter()
                .flatten()
                .all(|colour| colour == Color::Reset)
        })
    }

    fn recolour(&mut self, to: fn(Color) -> Color) {
        for style in &mut self.styles {
            style.fg = style.fg.map(to);
            style.bg = style.bg.map(to);
        }
    }

    /// Parses a theme file, and the files of all themes that it inherits.
    fn inherit(
        name: &str,
        source: &Source<'_>,
        config_dir: Option<&Path>,
        is_users: bool,
        faults: &mut Vec<Fault>,
    ) -> Self {
        let mut sheets = vec![read::read(source, faults)];
        let mut users_own = vec![name.to_owned()];
        let mut is_users = is_users;
        loop {
            let wanted = sheets.last().and_then(|sheet| sheet.inherits.clone());
            let (wanted, place) = match wanted {
                Some(wanted) => wanted,
                None if is_users => (ROOT.to_owned(), source.place(0)),
                None => break,
            };
            let again = users_own.contains(&wanted);
            if is_users
                && !again
                && let Some((file, text)) = users(&wanted, config_dir, faults)
            {
                let source = Source {
                    name: &file,
                    text: &text,
                };
                sheets.push(read::read(&source, faults));
                users_own.push(wanted);
                continue;
            }
            let mut built_in = built_in_text(&wanted);
            if built_in.is_none() {
                let problem = if again {
                    let chain = users_own.join(", ");
                    Problem::Cycle {
                        name: wanted,
                        chain,
                    }
                } else {
                    no_theme(wanted, config_dir)
                };
                faults.push(Fault { place, problem });
                built_in = built_in_text(ROOT);
            }
            // A built-in theme can inherit only built-in themes.
            is_users = false;
            if let Some(text) = built_in {
                sheets.push(read::read(&Source { name: ROOT, text }, faults));
            }
        }
        sheets.reverse();
        Self::of_sheets(name, &sheets, faults)
    }

    fn of_sheets(name: &str, sheets: &[Sheet], faults: &mut Vec<Fault>) -> Self {
        let mut palette = BTreeMap::new();
        for sheet in sheets {
            palette.extend(sheet.palette.clone());
        }
        let mut theme = Self {
            name: name.to_owned(),
            depth: Depth::True,
            styles: [Style::new(); ROLES],
            sixteen: [Style::new(); ROLES],
        };
        for sheet in sheets {
            for (role, look) in &sheet.looks {
                if let Some(style) = style_of(look, &palette, faults) {
                    theme.styles[*role as usize] = style;
                    theme.sixteen[*role as usize] = style;
                }
            }
            for (role, look) in &sheet.sixteen {
                if let Some(style) = style_of(look, &palette, faults) {
                    theme.sixteen[*role as usize] = style;
                }
            }
        }
        theme
    }
}

impl Default for Theme {
    /// Returns the dark theme, because nothing is known about the terminal.
    fn default() -> Self {
        Self::built_in(ROOT).expect("BUG: the root of all themes is in the program")
    }
}

fn style_of(
    look: &Look,
    palette: &BTreeMap<String, Color>,
    faults: &mut Vec<Fault>,
) -> Option<Style> {
    let mut style = Style::new().add_modifier(look.attributes);
    let known = faults.len();
    for (ink, slot) in [(&look.fg, &mut style.fg), (&look.bg, &mut style.bg)] {
        match ink.as_ref().map(|ink| ink.resolve(palette)) {
            None => {}
            Some(Ok(colour)) => *slot = Some(colour),
            Some(Err(fault)) => faults.push(fault),
        }
    }
    (faults.len() == known).then_some(style)
}

fn built_in_text(name: &str) -> Option<&'static str> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// Reads the user's file of a theme. Returns the file's name and text; None if the user has no such file.
fn users(
    name: &str,
    config_dir: Option<&Path>,
    faults: &mut Vec<Fault>,
) -> Option<(String, String)> {
    let is_plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\']);
    let directory = config_dir.filter(|_| is_plain)?.join(DIRECTORY);
    let path = directory.join(format!("{name}.toml"));
    let file = path.display().to_string();
    match text_of(&path) {
        Ok(text) => text.map(|text| (file, text)),
        Err(error) => {
            let place = Source {
                name: &file,
                text: "",
            }
            .place(0);
            let problem = Problem::Unreadable(error.to_string());
            faults.push(Fault { place, problem });
            None
        }
    }
}

fn no_theme(name: String, config_dir: Option<&Path>) -> Problem {
    let known = available(config_dir);
    let nearest = did_you_mean(&name, known.iter().map(String::as_str));
    Problem::Theme { name, nearest }
}
