//! The filter language: words that must all occur, and conditions on cells.
//!
//! | term | keeps a row that |
//! |------|------------|
//! | `word`, `"two words"` | has the word in a name, release, version or environment; a capital letter makes it case-sensitive |
//! | `re:^cart-` | has a name, release, version or environment that matches the expression |
//! | `-l team=payments,tier in (web, batch)` | has these labels, in the syntax of kubectl |
//! | `health:degraded` | has this health in a cell; the start of the word is enough |
//! | `behind:2`, `behind:>0` | is so many releases behind the environment before |
//! | `env:production` | exists in this environment; the terms about cells then apply to this environment only |
//! | `release:v1.2*` | has a cell whose release has such a name or version |
//! | `held`, `bad`, `mine`, `fault` | is held; has a release that is marked bad; was changed or is held by the user; is degraded or lacks its release |
//! | `marked` | is marked |
//! | `failing`, `degraded`, `missing`, `progressing`, `ready`, `unknown`, `behind`, `pinned` | has a cell in this state |
//! | `!term` | does not fit the term |
//!
//! Terms about cells (health, behind, release, held, bad, mine, fault) belong together: one cell must fit all
//! of them, and no cell may fit a term with `!`.

pub mod facts;
pub mod matcher;
mod read;
pub mod selector;
#[cfg(test)]
mod tests;

use std::fmt;

pub use facts::{Facts, RowSummary, View};
pub use matcher::{Glob, Matcher};
pub use read::{Problem, Read, read};

use crate::subjects::release_pin::matrix::Health;

/// A filter: a row must fit all terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// The terms.
    pub terms: Vec<Term>,
}

/// One condition of a filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Whether the row must not fit the condition.
    pub negated: bool,
    /// The condition.
    pub ask: Ask,
}

/// The condition of a term.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// A text that must occur.
    Word(String),
    /// An expression that must match.
    Pattern(String),
    /// Conditions on labels.
    Labels(kube_values::selector::Selector),
    /// An environment in which the row must exist.
    Environment(String),
    /// The row is marked.
    Marked,
    /// A condition on one cell.
    Place(OfPlace),
}

/// A condition on one cell.
#[derive(Clone, Debug, PartialEq)]
pub enum OfPlace {
    /// The health.
    Health(Health),
    /// The cell has a fault.
    Fault,
    /// The number of releases that the cell is behind the environment before.
    Behind(Relation, u16),
    /// The cell has an active hold.
    Held,
    /// The effective release is marked bad.
    Bad,
    /// The user changed the ReleasePin last, or holds it.
    Mine,
    /// The name or version of the effective release.
    Release(Glob),
}

/// A comparison of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The number is equal to the value of the term.
    Equal,
    /// The number is greater than the value of the term.
    More,
    /// The number is greater than or equal to the value of the term.
    AtLeast,
    /// The number is less than the value of the term.
    Less,
    /// The number is less than or equal to the value of the term.
    AtMost,
}

impl Relation {
    const SIGNS: [(&'static str, Relation); 5] = [
        (">=", Relation::AtLeast),
        ("<=", Relation::AtMost),
        (">", Relation::More),
        ("<", Relation::Less),
        ("=", Relation::Equal),
    ];

    fn holds(self, one: u16, other: u16) -> bool {
        match self {
            Self::Equal => one == other,
            Self::More => one > other,
            Self::AtLeast => one >= other,
            Self::Less => one < other,
            Self::AtMost => one <= other,
        }
    }
}

/// The terms that are one word without a value.
static KEYWORDS: [(&str, Ask); 5] = [
    ("held", Ask::Place(OfPlace::Held)),
    ("bad", Ask::Place(OfPlace::Bad)),
    ("mine", Ask::Place(OfPlace::Mine)),
    ("fault", Ask::Place(OfPlace::Fault)),
    ("marked", Ask::Marked),
];

/// Other words for states, as screens and users name them. Printing a filter writes the equivalent fields and
/// keywords.
static STATES: [(&str, OfPlace); 12] = [
    ("failing", OfPlace::Fault),
    ("failed", OfPlace::Fault),
    ("broken", OfPlace::Fault),
    ("degraded", OfPlace::Health(Health::Degraded)),
    ("missing", OfPlace::Health(Health::Missing)),
    ("progressing", OfPlace::Health(Health::Progressing)),
    ("rolling", OfPlace::Health(Health::Progressing)),
    ("ready", OfPlace::Health(Health::Ready)),
    ("healthy", OfPlace::Health(Health::Ready)),
    ("unknown", OfPlace::Health(Health::Unknown)),
    ("behind", OfPlace::Behind(Relation::More, 0)),
    ("pinned", OfPlace::Held),
];

/// Returns the words that complete the last word of a filter: fields, keywords and words for states, and
/// after a field its values.
pub fn completions(text: &str, environments: &[String], releases: &[String]) -> Vec<String> {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let word = last.trim_start_matches('!');
    let sign = last.strip_suffix(word).unwrap_or_default();
    let with = |field: &str, values: Vec<String>| -> Vec<String> {
        let values = values.into_iter();
        values.map(|value| format!("{field}:{value}")).collect()
    };
    let known: Vec<String> = match word.split_once(':') {
        Some(("health", _)) => {
            let words = Health::ALL
                .iter()
                .map(|health| health.word().to_lowercase());
            with("health", words.collect())
        }
        Some(("env", _)) => with("env", environments.to_vec()),
        Some(("release", _)) => with("release", releases.to_vec()),
        Some(("behind", _)) => with("behind", vec![">0".to_owned()]),
        Some(_) => Vec::new(),
        None => {
            let fields = read::FIELDS.iter().map(|field| format!("{field}:"));
            let keywords = KEYWORDS.iter().map(|(word, _)| (*word).to_owned());
            let states = STATES.iter().map(|(word, _)| (*word).to_owned());
            fields.chain(keywords).chain(states).collect()
        }
    };
    let fitting = known.into_iter().filter(|known| known.starts_with(word));
    fitting.map(|known| format!("{sign}{known}")).collect()
}

/// Reads a search in plain text, which has no cells or labels: only words and expressions.
pub fn words(text: &str) -> Read {
    words_but(text, &["re"])
}

/// Reads the words and expressions that a user searches for in a list whose rows have no fields. A field such as
/// `health:` is reported as a mistake.
pub fn list_words(text: &str) -> Read {
    words_but(text, &read::FIELDS)
}

/// Reads words and expressions. A word `name:...` is an error if `fields` has the name, and otherwise plain
/// text; `re:` is an error only if its expression is invalid.
fn words_but(text: &str, fields: &[&str]) -> Read {
    let is_of_text = |read: &Read| {
        let mut terms = read.filter.terms.iter();
        let plain = |term: &Term| matches!(term.ask, Ask::Word(_) | Ask::Pattern(_));
        read.problem.is_none() && terms.all(plain)
    };
    let whole = read(text);
    if is_of_text(&whole) {
        return whole;
    }
    let term = |word: &str| match read(word) {
        known if is_of_text(&known) => known.filter.terms,
        _ => vec![Term::new(Ask::Word(word.to_owned()))],
    };
    // Only a field can be a mistake; everything else is a word.
    let field = |word: &str| {
        let (name, _) = word.trim_start_matches('!').split_once(':')?;
        let known = fields.iter().find(|known| **known == name)?;
        Some((*known, word.ends_with(':')))
    };
    let wrong = text.split_whitespace().find_map(|word| {
        let problem = match field(word)? {
            ("re", _) => read(word).problem?,
            (other, incomplete) => Problem {
                column: 0,
                message: format!(
                    "this list has no field {other}:; use quotes to search for the text"
                ),
                incomplete,
            },
        };
        let before = text.find(word).and_then(|at| text.get(..at));
        let column = problem.column + before.map_or(0, |before| before.chars().count());
        Some((word, Problem { column, ..problem }))
    });
    let is_wrong = |word: &&str| wrong.as_ref().is_some_and(|(wrong, _)| wrong == word);
    Read {
        filter: Filter {
            terms: text
                .split_whitespace()
                .filter(|word| !is_wrong(word))
                .flat_map(term)
                .collect(),
        },
        problem: wrong.map(|(_, problem)| problem),
    }
}

impl Filter {
    /// Returns whether the filter keeps all rows.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Adds a term, or removes it if the filter has it.
    pub fn toggle(&mut self, term: Term) {
        match self.terms.iter().position(|known| *known == term) {
            Some(at) => {
                self.terms.remove(at);
            }
            None => self.terms.push(term),
        }
    }

    /// Returns true only if this filter keeps no row that `other` drops; then only the rows that `other` kept need
    /// a check. False means that this is not certain.
    pub fn narrows(&self, other: &Filter) -> bool {
        let scope = |filter: &Filter| -> Vec<String> {
            let terms = filter.terms.iter().filter(|term| !term.negated);
            let scope = terms.filter_map(|term| match &term.ask {
                Ask::Environment(name) => Some(name.clone()),
                _ => None,
            });
            scope.collect()
        };
        let denies_place = |term: &Term| term.negated && matches!(&term.ask, Ask::Place(_));
        // A negated condition covers only the cells in scope. If the scopes differ, this filter may keep rows that
        // the other filter dropped.
        if scope(self) != scope(other) && other.terms.iter().any(denies_place) {
            return false;
        }
        let implied = |old: &Term| self.terms.iter().any(|new| new.implies(old));
        other.terms.iter().all(implied)
    }
}

impl Term {
    /// Returns a term that is not negated.
    pub fn new(ask: Ask) -> Self {
        Self {
            negated: false,
            ask,
        }
    }

    fn implies(&self, other: &Term) -> bool {
        match (&self.ask, &other.ask) {
            (Ask::Word(new), Ask::Word(old)) if !self.negated && !other.negated => {
                match has_capital(old) {
                    true => new.contains(old),
                    false => new.to_lowercase().contains(&old.to_lowercase()),
                }
            }
            _ => self == other,
        }
    }
}

/// Returns whether a text is case-sensitive: whether it has a capital letter.
fn has_capital(text: &str) -> bool {
    text.chars().any(char::is_uppercase)
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            if at > 0 {
                f.write_str(" ")?;
            }
            if term.negated {
                f.write_str("!")?;
            }
            write!(f, "{}", term.ask)?;
        }
        Ok(())
    }
}

impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keyword = KEYWORDS.iter().find(|(_, ask)| ask == self);
        if let Some((word, _)) = keyword {
            return f.write_str(word);
        }
        match self {
            Self::Word(word) => f.write_str(&quoted(word, read::is_plain(word))),
            Self::Pattern(pattern) => write!(f, "re:{}", value(pattern)),
            Self::Labels(selector) => write!(f, "-l {selector}"),
            Self::Environment(name) => write!(f, "env:{}", value(name)),
            Self::Place(OfPlace::Health(health)) => {
                write!(f, "health:{}", health.word().to_lowercase())
            }
            Self::Place(OfPlace::Behind(relation, number)) => {
                let signs = Relation::SIGNS.iter();
                let sign = signs
                    .filter(|(_, known)| *known != Relation::Equal)
                    .find(|(_, known)| known == relation);
                write!(f, "behind:{}{number}", sign.map_or("", |(sign, _)| sign))
            }
            Self::Place(OfPlace::Release(glob)) => {
                write!(f, "release:{}", value(&glob.to_string()))
            }
            // The search for a keyword above has written these conditions.
            Self::Marked | Self::Place(_) => Ok(()),
        }
    }
}

/// Writes the value of a field.
fn value(text: &str) -> String {
    let plain = !text.is_empty() && !text.starts_with('"') && !text.contains(char::is_whitespace);
    quoted(text, plain)
}

fn quoted(text: &str, plain: bool) -> String {
    match plain {
        true => text.to_owned(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
