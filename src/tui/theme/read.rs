//! Parses one theme file. It does not parse the theme that the file inherits.

use std::collections::BTreeMap;

use bounded_yaml::Place;
use ratatui::style::{Color, Modifier};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::colour;
use super::role::Role;
use crate::keymap::file::{Source, did_you_mean, entries};

/// A mistake in a theme file. bowline ignores the value with the mistake.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Fault {
    /// The file name and the line number of the mistake.
    pub place: Place,
    /// The kind of mistake; its text also says how to correct the mistake.
    pub problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("cannot read the file: {0}")]
    Unreadable(String),
    #[error("the file is not valid TOML: {0}")]
    Syntax(String),
    /// The file inherits a theme that does not exist.
    #[error("unknown theme `{name}`{nearest}; the themes are {}", super::names().join(", "))]
    Theme {
        name: String,
        /// The text `, did you mean ...?` with the most similar theme; empty if no theme is
        /// similar.
        nearest: String,
    },
    /// A theme inherits itself, directly or through other themes.
    #[error("`{name}` inherits itself ({chain}); let one of these themes inherit dark or light")]
    Cycle {
        name: String,
        /// The names of the themes in the cycle, in the order of inheritance.
        chain: String,
    },
    /// The file contains an unknown field.
    #[error("unknown key `{word}`{nearest}; {known}")]
    Field {
        word: String,
        /// The text `, did you mean ...?` with the most similar field; empty if no field is
        /// similar.
        nearest: String,
        /// A list of the allowed fields, as text for the message.
        known: &'static str,
    },
    /// The file contains a style for a role that does not exist.
    #[error("unknown role `{word}`{nearest}; docs/themes.md lists the roles")]
    Role {
        word: String,
        /// The text `, did you mean ...?` with the most similar role; empty if no role is similar.
        nearest: String,
    },
    /// A value is not a valid colour.
    #[error(
        "{text} is not a colour{nearest}; write \"#rrggbb\", a name from [palette], a terminal colour (red, bright-red, default), or a number up to 255"
    )]
    Colour {
        text: String,
        /// The text `, did you mean ...?` with the most similar colour name; empty if no name is similar.
        nearest: String,
    },
    /// A value has the wrong type.
    #[error("`{word}` should be {expected}")]
    Shape {
        /// The name of the field with the wrong type.
        word: String,
        /// The type that the field must have, in words.
        expected: &'static str,
    },
}

/// A colour as a theme file contains it: a value such as `#rrggbb`, or the name of a palette entry or of a terminal
/// colour.
#[derive(Clone, Debug)]
pub(super) enum Ink {
    Colour(Color),
    Named(String, Place),
}

impl Ink {
    /// Converts the name to a colour: looks for the name first in the palette, then among the terminal colours.
    pub(super) fn resolve(&self, palette: &BTreeMap<String, Color>) -> Result<Color, Fault> {
        let (text, place) = match self {
            Self::Colour(colour) => return Ok(*colour),
            Self::Named(text, place) => (text, place),
        };
        let known = palette.get(text).copied();
        known.or_else(|| colour::parse(text)).ok_or_else(|| {
            let names = palette.keys().map(String::as_str);
            let problem = Problem::Colour {
                text: format!("`{text}`"),
                nearest: did_you_mean(text, colour::names().chain(names)),
            };
            let place = place.clone();
            Fault { place, problem }
        })
    }
}

/// A style as a theme file contains it, with colour names instead of colours.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub(super) fg: Option<Ink>,
    pub(super) bg: Option<Ink>,
    pub(super) attributes: Modifier,
}

/// The parsed parts of one theme file.
#[derive(Debug, Default)]
pub(super) struct Sheet {
    pub(super) inherits: Option<(String, Place)>,
    pub(super) palette: BTreeMap<String, Color>,
    pub(super) looks: Vec<(Role, Look)>,
    /// The styles of the file that apply only to terminals with sixteen colours.
    pub(super) sixteen: Vec<(Role, Look)>,
}

/// The attributes of a style, each with its name in theme files.
const ATTRIBUTES: [(&str, Modifier); 5] = [
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underline", Modifier::UNDERLINED),
    ("reverse", Modifier::REVERSED),
];

/// Parses a theme file, and returns the valid part of it. Adds the mistakes to `faults`.
pub(super) fn read(source: &Source<'_>, faults: &mut Vec<Fault>) -> Sheet {
    let mut reading = Reading { source, faults };
    let mut sheet = Sheet::default();
    let (table, errors) = source.parse();
    for (at, message) in errors {
        reading.fault(at, Problem::Syntax(message));
    }
    for (word, at, value) in entries(&table) {
        let value = (value.span().start, value.get_ref());
        match word {
            "inherits" => match value.1.as_str() {
                Some(name) => sheet.inherits = Some((name.to_owned(), source.place(value.0))),
                None => reading.shape(value.0, word, "the name of a theme"),
            },
            "palette" => sheet.palette = reading.palette(value),
            "style" => sheet.looks = reading.looks(word, value),
            "style-16" => sheet.sixteen = reading.looks(word, value),
            _ => {
                let words = ["inherits", "palette", "style", "style-16"];
                let known = "a theme has inherits, [palette], [style] and [style-16]";
                reading.field(at, word, &words, known);
            }
        }
    }
    sheet
}

struct Reading<'r> {
    source: &'r Source<'r>,
    faults: &'r mut Vec<Fault>,
}

/// A TOML value with its offset in the file, in bytes.
type At<'v, 't> = (usize, &'v DeValue<'t>);

impl Reading<'_> {
    fn fault(&mut self, at: usize, problem: Problem) {
        let place = self.source.place(at);
        self.faults.push(Fault { place, problem });
    }

    fn shape(&mut self, at: usize, word: &str, expected: &'static str) {
        let word = word.to_owned();
        self.fault(at, Problem::Shape { word, expected });
    }

    fn field(&mut self, at: usize, word: &str, words: &[&str], known: &'static str) {
        let nearest = did_you_mean(word, words.iter().copied());
        let word = word.to_owned();
        self.fault(
            at,
            Problem::Field {
                word,
                nearest,
                known,
            },
        );
    }

    fn palette(&mut self, (at, value): At<'_, '_>) -> BTreeMap<String, Color> {
        let Some(table) = value.as_table() else {
            self.shape(at, "palette", "a table of names and colours");
            return BTreeMap::new();
        };
        let mut palette = BTreeMap::new();
        for (name, _, value) in entries(table) {
            let resolved = self.ink(value).map(|ink| ink.resolve(&BTreeMap::new()));
            match resolved {
                Some(Ok(colour)) => {
                    palette.insert(name.to_owned(), colour);
                }
                Some(Err(fault)) => self.faults.push(fault),
                None => {}
            }
        }
        palette
    }

    fn looks(&mut self, word: &str, (at, value): At<'_, '_>) -> Vec<(Role, Look)> {
        let Some(table) = value.as_table() else {
            self.shape(at, word, "a table of roles and how they look");
            return Vec::new();
        };
        let mut looks = Vec::new();
        for (word, at, value) in entries(table) {
            let Some(role) = Role::named(word) else {
                let nearest = did_you_mean(word, Role::WORDS.map(|(word, _)| word));
                let word = word.to_owned();
                self.fault(at, Problem::Role { word, nearest });
                continue;
            };
            let look = match value.get_ref().as_table() {
                Some(table) => self.look(table),
                None => self.ink(value).map(|ink| Look {
                    fg: Some(ink),
                    ..Look::default()
                }),
            };
            looks.extend(look.map(|look| (role, look)));
        }
        looks
    }

    fn look(&mut self, table: &DeTable<'_>) -> Option<Look> {
        let mut look = Look::default();
        let known = self.faults.len();
        for (word, at, value) in entries(table) {
            let attribute = ATTRIBUTES.iter().find(|(known, _)| *known == word);
            match (word, attribute) {
                ("fg", _) => look.fg = self.ink(value),
                ("bg", _) => look.bg = self.ink(value),
                (_, Some((_, attribute))) => match value.get_ref().as_bool() {
                    Some(on) => look.attributes.set(*attribute, on),
                    None => self.shape(value.span().start, word, "true or false"),
                },
                _ => {
                    let words = ["fg", "bg", "bold", "dim", "italic", "underline", "reverse"];
                    let known = "a style has fg, bg, bold, dim, italic, underline and reverse";
                    self.field(at, word, &words, known);
                }
            }
        }
        (self.faults.len() == known).then_some(look)
    }

    fn ink(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Ink> {
        let at = value.span().start;
        let number = || match value.get_ref() {
            DeValue::Integer(number) => u8::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        if let Some(text) = value.get_ref().as_str() {
            return Some(Ink::Named(text.to_owned(), self.source.place(at)));
        }
        let Some(number) = number() else {
            let written = self.source.text.get(value.span()).unwrap_or_default();
            let text: String = written.chars().take(40).collect();
            let nearest = String::new();
            self.fault(at, Problem::Colour { text, nearest });
            return None;
        };
        Some(Ink::Colour(colour::numbered(number)))
    }
}
