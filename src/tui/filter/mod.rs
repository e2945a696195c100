//! The filter language: words that must all occur in a row, and conditions on its cells.
//!
//! | term | matches a row |
//! |------|------------|
//! | `word`, `"two words"` | with the word in a name, release, version or environment; case-sensitive only with a capital letter |
//! | `re:^cart-` | with a name, release, version or environment that matches the regular expression |
//! | `-l team=payments,tier in (web, batch)` | with these labels, in the syntax of kubectl |
//! | `health:degraded` | with a cell of this health; the start of the word is enough |
//! | `behind:2`, `behind:>0` | with a cell that is this number of releases behind the environment before |
//! | `env:production` | that exists in this environment; terms about cells then check only this environment |
//! | `release:v1.2*` | with a cell whose release has a matching name or version |
//! | `held`, `bad`, `mine`, `fault` | with a cell that is held; whose release is marked bad; that the user changed or holds; that is degraded or lacks its release |
//! | `marked` | that the user has marked |
//! | `failing`, `degraded`, `missing`, `progressing`, `ready`, `unknown`, `behind`, `pinned` | with a cell in this state |
//! | `!term` | that does not match the term |
//!
//! The terms about cells (health, behind, release, held, bad, mine, fault) apply together: a row
//! matches if one of its cells matches all of them, and none of its cells matches a negated one.

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

/// A filter of rows. A row matches the filter if it matches all terms.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    pub terms: Vec<Term>,
}

/// One term of a filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Whether the row must not match the condition (`!`).
    pub negated: bool,
    pub ask: Ask,
}

/// The condition of a term.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// The text occurs in a name of the row.
    Word(String),
    /// The regular expression matches a name of the row.
    Pattern(String),
    /// The labels of an object of the row match the selector.
    Labels(kube_values::selector::Selector),
    /// The row has a cell in the environment with this name.
    Environment(String),
    /// The user has marked the row.
    Marked,
    /// A cell of the row matches the condition.
    Place(CellCondition),
}

/// A condition on one cell of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum CellCondition {
    /// The health of the cell is this one.
    Health(Health),
    /// The cell is degraded or lacks its release.
    Fault,
    /// The cell is behind the environment before by a number of releases that has this relation to this value.
    Behind(Relation, u16),
    /// The cell has an active hold.
    Held,
    /// The effective release of the cell is marked bad.
    Bad,
    /// The current user made the last change of the ReleasePin, or placed a hold on the ReleasePin.
    Mine,
    /// The name or the version of the effective release matches the pattern.
    Release(Glob),
}

/// A comparison of a number with the value of the term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The number is equal to the value.
    Equal,
    /// The number is greater than the value.
    More,
    /// The number is greater than or equal to the value.
    AtLeast,
    /// The number is less than the value.
    Less,
    /// The number is less than or equal to the value.
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

/// The terms that consist of one word without a value, such as `held`.
static KEYWORDS: [(&str, Ask); 5] = [
    ("held", Ask::Place(CellCondition::Held)),
    ("bad", Ask::Place(CellCondition::Bad)),
    ("mine", Ask::Place(CellCondition::Mine)),
    ("fault", Ask::Place(CellCondition::Fault)),
    ("marked", Ask::Marked),
];

/// Synonyms for conditions on cells. bowline accepts them, but prints the equivalent field or keyword instead.
static STATES: [(&str, CellCondition); 12] = [
    ("failing", CellCondition::Fault),
    ("failed", CellCondition::Fault),
    ("broken", CellCondition::Fault),
    ("degraded", CellCondition::Health(Health::Degraded)),
    ("missing", CellCondition::Health(Health::Missing)),
    ("progressing", CellCondition::Health(Health::Progressing)),
    ("rolling", CellCondition::Health(Health::Progressing)),
    ("ready", CellCondition::Health(Health::Ready)),
    ("healthy", CellCondition::Health(Health::Ready)),
    ("unknown", CellCondition::Health(Health::Unknown)),
    ("behind", CellCondition::Behind(Relation::More, 0)),
    ("pinned", CellCondition::Held),
];

/// Returns the words that can complete the last word of a filter: fields, keywords and synonyms;
/// after a field, its values.
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

/// Parses a search in plain text. The search accepts only words and regular expressions, because text has no cells or
/// labels.
pub fn words(text: &str) -> Read {
    words_but(text, &["re"])
}

/// Parses a search in a list whose rows have no cells. The search accepts only words and regular expressions, so a
/// field such as `health:` is a mistake.
pub fn list_words(text: &str) -> Read {
    words_but(text, &read::FIELDS)
}

/// Parses words and regular expressions. A word `name:...` is a mistake if `fields` contains this name; otherwise the
/// word is plain text. `re:` is a mistake only if its expression is invalid.
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
    // Only a field can be a mistake; all other text is a word.
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
    /// Returns whether the filter matches every row.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Adds a term, or removes it if the filter already contains it.
    pub fn toggle(&mut self, term: Term) {
        match self.terms.iter().position(|known| *known == term) {
            Some(at) => {
                self.terms.remove(at);
            }
            None => self.terms.push(term),
        }
    }

    /// Returns true if every row that matches this filter also matches `other`. Then only rows that matched `other`
    /// need a check. Returns false if this is not certain.
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
        // A negated condition applies only to the cells in the selected environments. If these
        // differ, this filter may match rows that the other filter does not match.
        if scope(self) != scope(other) && other.terms.iter().any(denies_place) {
            return false;
        }
        let implied = |old: &Term| self.terms.iter().any(|new| new.implies(old));
        other.terms.iter().all(implied)
    }
}

impl Term {
    /// Creates a term without negation.
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

/// Returns whether a search for this text is case-sensitive.
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
            Self::Place(CellCondition::Health(health)) => {
                write!(f, "health:{}", health.word().to_lowercase())
            }
            Self::Place(CellCondition::Behind(relation, number)) => {
                let signs = Relation::SIGNS.iter();
                let sign = signs
                    .filter(|(_, known)| *known != Relation::Equal)
                    .find(|(_, known)| known == relation);
                write!(f, "behind:{}{number}", sign.map_or("", |(sign, _)| sign))
            }
            Self::Place(CellCondition::Release(glob)) => {
                write!(f, "release:{}", value(&glob.to_string()))
            }
            // The loop over the keywords above has already written these conditions, so nothing is left to write.
            Self::Marked | Self::Place(_) => Ok(()),
        }
    }
}

/// Formats the value of a filter term, in quotes if necessary.
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
