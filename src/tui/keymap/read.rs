//! The lines of one keymap file. Whether they fit those of another is not known here.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::file::{Source, did_you_mean, entries};
use super::key::{Key, UnknownKey};
use crate::tui::action::{Action, Mode, WORDS};
use crate::yaml::Place;

/// The word that unbinds keys.
const UNBIND: &str = "none";

/// Something in a keymap that does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Fault {
    /// Where.
    pub place: Place,
    /// What is wrong, and what to do.
    pub problem: Problem,
}

/// What can be wrong with a keymap.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is there and cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is not TOML.
    #[error("it is not TOML: {0}")]
    Syntax(String),
    /// It is laid over a keymap that does not exist.
    #[error("there is no keymap `{name}` to lay it over; there are {}", super::names().join(", "))]
    Base {
        /// What was written.
        name: String,
    },
    /// A list of lines is for a mode that does not exist.
    #[error("`{word}` is no mode{nearest}; modes are {}", modes())]
    Mode {
        /// What was written.
        word: String,
        /// The nearest mode, as a question.
        nearest: String,
    },
    /// Something else stands where lines should.
    #[error(
        "write lines as [[{mode}]] with on, run and desc, or {mode} = [{{ on = \"x\", run = \"open\", desc = \"...\" }}]"
    )]
    Shape {
        /// The mode that they are for.
        mode: String,
    },
    /// A line says something that lines do not say.
    #[error("`{word}` says nothing here{nearest}; a line has on, run and desc")]
    Field {
        /// What was written.
        word: String,
        /// The nearest word, as a question.
        nearest: String,
    },
    /// A line lacks something, or it is no text.
    #[error("the line needs `{field} = \"...\"`: {why}")]
    Missing {
        /// What is missing.
        field: &'static str,
        /// What it is for.
        why: &'static str,
    },
    /// A key that no keyboard has.
    #[error(transparent)]
    Key(UnknownKey),
    /// An action that does not exist.
    #[error("`{word}` is no action{nearest}; the help lists them all")]
    Action {
        /// What was written.
        word: String,
        /// The nearest action, as a question.
        nearest: String,
    },
    /// A plan on a key that is too easily pressed.
    #[error(
        "`{keys}` may not open a plan: put {action} on a capital letter, or on keys that end in one"
    )]
    Capital {
        /// The keys.
        keys: String,
        /// The action.
        action: &'static str,
    },
    /// A character that text needs.
    #[error(
        "`{keys}` is typed into text: put {action} on a key with ctrl or alt, or on a named one"
    )]
    Typed {
        /// The keys.
        keys: String,
        /// The action.
        action: &'static str,
    },
    /// Keys that mean two things in one mode.
    #[error("`{keys}` stands in line {first} already; remove one of the two")]
    Twice {
        /// The keys.
        keys: String,
        /// The line of the first.
        first: usize,
    },
    /// Keys that are the beginning of others.
    #[error(
        "`{keys}` cannot be beside `{other}` in {mode}: one begins the other; choose other keys, or unbind it with on = \"{other}\", run = \"none\""
    )]
    Begins {
        /// The keys.
        keys: String,
        /// Those that were there.
        other: String,
        /// The mode of both.
        mode: &'static str,
    },
    /// Keys are unbound that mean nothing.
    #[error("`{keys}` means nothing in {mode} to begin with; remove the line")]
    Unbound {
        /// The keys.
        keys: String,
        /// The mode.
        mode: &'static str,
    },
}

/// Returns the word that names a mode.
pub(super) fn word_of(mode: Mode) -> &'static str {
    let found = Mode::WORDS.iter().find(|(_, known)| *known == mode);
    found.map_or("", |(word, _)| word)
}

fn modes() -> String {
    Mode::WORDS.map(|(word, _)| word).join(", ")
}

/// What a line says of its keys.
pub(super) enum Meaning {
    /// They mean nothing any more.
    Nothing,
    /// They run an action, for which there is a description.
    Run(Action, String),
}

/// A line of a keymap.
pub(super) struct Line {
    pub(super) mode: Mode,
    pub(super) keys: Vec<Key>,
    pub(super) meaning: Meaning,
    pub(super) place: Place,
}

/// What a file says.
#[derive(Default)]
pub(super) struct Lines {
    pub(super) base: Option<(String, Place)>,
    pub(super) lines: Vec<Line>,
    pub(super) faults: Vec<Fault>,
}

/// Reads a file: the lines that make sense, and what is wrong with the others.
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
                        why: "the name of the keymap that this one is laid over",
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
            match line(source, mode, &place, table) {
                Ok(line) => self.lines.push(line),
                Err(fault) => self.faults.push(fault),
            }
        }
    }

    fn refuse_the_same_twice(&mut self) {
        let mut first: HashMap<(Mode, Vec<Key>, bool), Place> = HashMap::new();
        let faults = &mut self.faults;
        self.lines.retain(|line| {
            // Unbinding a prefix to bind its first key anew takes a line of each.
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

fn line(
    source: &Source<'_>,
    mode: Mode,
    whole: &Place,
    table: &DeTable<'_>,
) -> Result<Line, Fault> {
    let fault = |place: Place, problem| Err(Fault { place, problem });
    let (mut on, mut run, mut desc) = (None, None, None);
    for (word, at, value) in entries(table) {
        let slot = match word {
            "on" => &mut on,
            "run" => &mut run,
            "desc" => &mut desc,
            _ => {
                let nearest = did_you_mean(word, ["on", "run", "desc"]);
                let word = word.to_owned();
                return fault(source.place(at), Problem::Field { word, nearest });
            }
        };
        let text = value.get_ref().as_str().map(str::trim);
        *slot = text
            .filter(|text| !text.is_empty())
            .map(|text| (text, source.place(value.span().start)));
    }
    let missing = |field, why| Fault {
        place: whole.clone(),
        problem: Problem::Missing { field, why },
    };
    let (on, place) = on.ok_or_else(|| missing("on", "the key, or keys with spaces between"))?;
    let keys = match Key::sequence(on) {
        Ok(keys) => keys,
        Err(unknown) => return fault(place, Problem::Key(unknown)),
    };
    let (word, at) = run.ok_or_else(|| missing("run", "the action, or none to unbind"))?;
    let mut read = Line {
        mode,
        keys,
        meaning: Meaning::Nothing,
        place,
    };
    if word == UNBIND {
        return Ok(read);
    }
    let Some(action) = Action::named(word) else {
        let nearest = did_you_mean(word, WORDS.iter().map(|(word, _)| *word));
        let word = word.to_owned();
        return fault(at, Problem::Action { word, nearest });
    };
    let (desc, _) = desc.ok_or_else(|| missing("desc", "a few words for the help"))?;
    let printed = || (Key::print(&read.keys), action.word());
    if action.plans() && !read.keys.last().is_some_and(|key| key.is_capital()) {
        let (keys, action) = printed();
        return fault(read.place, Problem::Capital { keys, action });
    }
    if mode == Mode::Text && read.keys.first().is_some_and(|key| key.is_typed()) {
        let (keys, action) = printed();
        return fault(read.place, Problem::Typed { keys, action });
    }
    read.meaning = Meaning::Run(action, desc.to_owned());
    Ok(read)
}
