//! Parses the lines of one keymap file. The caller checks whether the lines conflict with another keymap.

use std::collections::HashMap;

use bounded_yaml::Place;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{Source, did_you_mean, entries};
use super::key::{Key, UnknownKey};
use crate::action::{Action, Mode, WORDS};

/// The word in the field `run` that unbinds keys.
const UNBIND: &str = "none";

/// A mistake in a keymap file. bowline ignores the line with the mistake.
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
    /// The file names a base keymap that does not exist.
    #[error("unknown base keymap `{name}`; the keymaps are {}", super::names().join(", "))]
    Base {
        /// The name that the file gives as its base keymap.
        name: String,
    },
    /// The file names a mode that does not exist.
    #[error("unknown mode `{word}`{nearest}; the modes are {}", modes())]
    Mode {
        word: String,
        /// The text `, did you mean ...?` with the most similar mode; empty if no mode is similar.
        nearest: String,
    },
    /// The value of a mode is not a list of lines (TOML tables).
    #[error(
        "write lines as [[{mode}]] with on, run and desc, or {mode} = [{{ on = \"x\", run = \"open\", desc = \"...\" }}]"
    )]
    Shape {
        /// The name of the mode whose value is wrong.
        mode: String,
    },
    /// A line contains an unknown field.
    #[error("unknown field `{word}`{nearest}; a line has on, run and desc")]
    Field {
        word: String,
        /// The text `, did you mean ...?` with the most similar field; empty if no field is
        /// similar.
        nearest: String,
    },
    /// A required field is missing, or its value is not a text.
    #[error("the line needs `{field} = \"...\"`: {why}")]
    Missing {
        /// The name of the missing field.
        field: &'static str,
        /// What the missing field is for, as text.
        why: &'static str,
    },
    /// A word in the field `on` is not the name of a key.
    #[error(transparent)]
    Key(UnknownKey),
    /// The field `run` names an action that does not exist.
    #[error("unknown action `{word}`{nearest}; the help lists all actions")]
    Action {
        word: String,
        /// The text `, did you mean ...?` with the most similar action; empty if no action is
        /// similar.
        nearest: String,
    },
    /// The line binds an action that opens a plan to a key that is too easy to press by accident.
    #[error(
        "`{keys}` cannot open a plan: bind {action} to a capital letter, or to keys that end with one"
    )]
    Capital {
        /// The keys that the line binds.
        keys: String,
        /// The action that the line binds.
        action: &'static str,
    },
    /// The line binds a character that the user must be able to type in this mode.
    #[error(
        "`{keys}` is a text character in this mode: bind {action} to a key with ctrl or alt, or to a named key"
    )]
    Typed {
        /// The keys that the line binds.
        keys: String,
        /// The action that the line binds.
        action: &'static str,
    },
    /// Two lines of one mode bind the same keys.
    #[error("line {first} already binds `{keys}`; remove one of the two lines")]
    Twice {
        /// The keys of both lines.
        keys: String,
        /// The line number of the first of the two lines.
        first: usize,
    },
    /// One of two bound key sequences is the start of the other.
    #[error(
        "`{keys}` and `{other}` conflict in {mode}: one is the start of the other; choose other keys, or unbind the other with on = \"{other}\", run = \"none\""
    )]
    Begins {
        /// The keys that the faulty line binds.
        keys: String,
        /// The keys of the existing binding that conflicts with the line.
        other: String,
        /// The mode that contains both bindings.
        mode: &'static str,
    },
    /// The line unbinds keys that are not bound.
    #[error("`{keys}` has no binding in {mode} that could be removed; remove the line")]
    Unbound {
        /// The keys that have no binding.
        keys: String,
        /// The mode in which the line tries to unbind keys.
        mode: &'static str,
    },
}

/// Returns the word that names a mode in keymaps.
pub(super) fn word_of(mode: Mode) -> &'static str {
    let found = Mode::WORDS.iter().find(|(_, known)| *known == mode);
    found.map_or("", |(word, _)| word)
}

fn modes() -> String {
    Mode::WORDS.map(|(word, _)| word).join(", ")
}

/// The effect of a line on its keys.
pub(super) enum Meaning {
    Nothing,
    /// The keys run this action; the text is its description.
    Run(Action, String),
}

/// A valid line of a keymap file.
pub(super) struct Line {
    pub(super) mode: Mode,
    pub(super) keys: Vec<Key>,
    pub(super) meaning: Meaning,
    pub(super) place: Place,
}

/// The parsed content of a keymap file.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) base: Option<(String, Place)>,
    pub(super) lines: Vec<Line>,
    pub(super) faults: Vec<Fault>,
}

/// Parses a keymap file: returns the valid lines, and the mistakes in the other lines.
pub(super) fn read(source: &Source<'_>) -> Lines {
    let (table, errors) = source.parse();
    let mut read = Lines::default();
    for (at, message) in errors {
        read.fault(source.place(at), Problem::Syntax(message));
    }
    for (word, at, value) in entries(&table) {
        let known = Mode::WORDS.iter().find(|(known, _)| *known == word);
        match known {
            Some((_, mode)) => read.lines_of(source, *mode, word, value),
            None if word == "base" => match value.get_ref().as_str() {
                Some(name) => read.base = Some((name.to_owned(), source.place(at))),
                None => read.fault(
                    source.place(at),
                    Problem::Missing {
                        field: "base",
                        why: "the name of the base keymap",
                    },
                ),
            },
            None => {
                let nearest = did_you_mean(word, Mode::WORDS.map(|(word, _)| word));
                let word = word.to_owned();
                read.fault(source.place(at), Problem::Mode { word, nearest });
            }
        }
    }
    read.refuse_the_same_twice();
    read
}

impl Lines {
    fn fault(&mut self, place: Place, problem: Problem) {
        self.faults.push(Fault { place, problem });
    }

    fn lines_of(
        &mut self,
        source: &Source<'_>,
        mode: Mode,
        word: &str,
        value: &Spanned<DeValue<'_>>,
    ) {
        let shape = || Problem::Shape {
            mode: word.to_owned(),
        };
        let Some(list) = value.get_ref().as_array() else {
            return self.fault(source.place(value.span().start), shape());
        };
        for item in list.iter() {
            let place = source.place(item.span().start);
            let Some(table) = item.get_ref().as_table() else {
                self.fault(place, shape());
                continue;
            };
            let read = line(source, mode, &place, table, &mut self.faults);
            self.lines.extend(read);
        }
    }

    fn refuse_the_same_twice(&mut self) {
        let mut first: HashMap<(Mode, Vec<Key>, bool), Place> = HashMap::new();
        let faults = &mut self.faults;
        self.lines.retain(|line| {
            // A line that unbinds keys does not conflict with a line that binds the same keys again.
            let unbinds = matches!(line.meaning, Meaning::Nothing);
            let same = (line.mode, line.keys.clone(), unbinds);
            let first = first.entry(same).or_insert_with(|| line.place.clone());
            let is_first = *first == line.place;
            if !is_first {
                let (keys, first) = (Key::print(&line.keys), first.line);
                faults.push(Fault {
                    place: line.place.clone(),
                    problem: Problem::Twice { keys, first },
                });
            }
            is_first
        });
    }
}

/// Parses a line. If the line has mistakes, adds the mistakes to `faults` and returns None.
fn line(
    source: &Source<'_>,
    mode: Mode,
    whole: &Place,
    table: &DeTable<'_>,
    faults: &mut Vec<Fault>,
) -> Option<Line> {
    let known = faults.len();
    let mut fault = |place: Place, problem| faults.push(Fault { place, problem });
    let (mut on, mut run, mut desc) = (None, None, None);
    for (word, at, value) in entries(table) {
        let slot = match word {
            "on" => &mut on,
            "run" => &mut run,
            "desc" => &mut desc,
            _ => {
                let nearest = did_you_mean(word, ["on", "run", "desc"]);
                let word = word.to_owned();
                fault(source.place(at), Problem::Field { word, nearest });
                continue;
            }
        };
        let text = value.get_ref().as_str().map(str::trim);
        *slot = text
            .filter(|text| !text.is_empty())
            .map(|text| (text, source.place(value.span().start)));
    }
    let missing = |field, why| (whole.clone(), Problem::Missing { field, why });
    let keys = match on {
        None => {
            let (place, problem) =
                missing("on", "the key, or several keys with spaces between them");
            fault(place, problem);
            None
        }
        Some((on, place)) => match Key::sequence(on) {
            Ok(keys) => Some((keys, place)),
            Err(unknown) => {
                fault(place, Problem::Key(unknown));
                None
            }
        },
    };
    // The word `none` instead of an action means that the line unbinds the keys.
    let action = match run {
        None => {
            let (place, problem) = missing("run", "the action, or none to remove the binding");
            fault(place, problem);
            None
        }
        Some((UNBIND, _)) => None,
        Some((word, at)) => {
            let action = Action::named(word);
            if action.is_none() {
                let nearest = did_you_mean(word, WORDS.iter().map(|(word, _)| *word));
                let word = word.to_owned();
                fault(at, Problem::Action { word, nearest });
            }
            action
        }
    };
    if action.is_some() && desc.is_none() {
        let (place, problem) = missing("desc", "a short description for the help");
        fault(place, problem);
    }
    if let (Some(action), Some((keys, place))) = (action, &keys) {
        let printed = || (Key::print(keys), action.word());
        if action.plans() && !keys.last().is_some_and(|key| key.is_capital()) {
            let (keys, action) = printed();
            fault(place.clone(), Problem::Capital { keys, action });
        }
        if mode == Mode::Text && keys.first().is_some_and(|key| key.is_typed()) {
            let (keys, action) = printed();
            fault(place.clone(), Problem::Typed { keys, action });
        }
    }
    let (keys, place) = keys.filter(|_| faults.len() == known)?;
    let meaning = match (action, desc) {
        (Some(action), Some((desc, _))) => Meaning::Run(action, desc.to_owned()),
        _ => Meaning::Nothing,
    };
    Some(Line {
        mode,
        keys,
        meaning,
        place,
    })
}
