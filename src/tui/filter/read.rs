//! Parses a filter while the user types it. Complete terms already apply, and the first mistake is reported with its
//! column.

use kube_values::selector::{Extent, MistakeKind, Selector};

use super::{Ask, CellCondition, Filter, Glob, KEYWORDS, Relation, STATES, Term};
use crate::subjects::release_pin::matrix::Health;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Read {
    /// The filter that consists of all complete and valid terms of the text.
    pub filter: Filter,
    /// The first mistake in the text; None if the text has no mistake.
    pub problem: Option<Problem>,
}

/// A mistake in the text of a filter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (column {})", .column + 1)]
pub struct Problem {
    /// The position of the mistake: the number of characters before the mistake.
    pub column: usize,
    /// The text for the user: the mistake and the correct form.
    pub message: String,
    /// Whether the mistake may disappear when the user continues to type, because the last term is incomplete.
    pub incomplete: bool,
}

pub(super) const FIELDS: [&str; 5] = ["re", "health", "behind", "env", "release"];

/// Parses the text of a filter. Leaves out the invalid terms, and reports the first of them.
pub fn read(text: &str) -> Read {
    let mut cursor = Cursor { text, at: 0 };
    let mut read = Read::default();
    loop {
        cursor.spaces();
        if cursor.rest().is_empty() {
            return read;
        }
        match cursor.term() {
            Ok(term) => read.filter.terms.push(term),
            Err((at, message)) => {
                // Skip the rest of the invalid term.
                cursor.bare();
                let incomplete = cursor.rest().is_empty();
                let column = text.get(..at).map_or(0, |before| before.chars().count());
                read.problem.get_or_insert(Problem {
                    column,
                    message,
                    incomplete,
                });
            }
        }
    }
}

/// Returns whether the parser reads this text, without quotes, as exactly one plain word.
pub(super) fn is_plain(word: &str) -> bool {
    let mut cursor = Cursor { text: word, at: 0 };
    match cursor.term() {
        Ok(term) => {
            cursor.rest().is_empty() && !term.negated && term.ask == Ask::Word(word.to_owned())
        }
        Err(_) => false,
    }
}

/// The position in bytes and the message of a mistake.
type Wrong = (usize, String);

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }

    fn spaces(&mut self) {
        self.take(char::is_whitespace);
    }

    fn bare(&mut self) -> &'t str {
        self.take(|c| !c.is_whitespace())
    }

    fn ends(&self) -> bool {
        let next = self.rest().chars().next();
        next.is_none_or(char::is_whitespace)
    }

    fn term(&mut self) -> Result<Term, Wrong> {
        let start = self.at;
        let mut negated = false;
        while self.eat("!") {
            negated = !negated;
        }
        if self.ends() {
            return Err((start, "! needs a term after it".to_owned()));
        }
        let ask = self.ask()?;
        Ok(Term { negated, ask })
    }

    fn ask(&mut self) -> Result<Ask, Wrong> {
        let start = self.at;
        if self.eat("-l") {
            if self.ends() {
                return self.selector();
            }
            self.at = start;
        }
        let head = self.take(|c| c.is_ascii_lowercase());
        if !head.is_empty() && self.eat(":") {
            return self.field(start, head);
        }
        self.at = start;
        if self.rest().starts_with('"') {
            let word = self.value(start)?;
            return match word.is_empty() {
                true => Err((start, "the quotes are empty".to_owned())),
                false => Ok(Ask::Word(word)),
            };
        }
        let word = self.bare();
        if let Some((_, ask)) = KEYWORDS.iter().find(|(known, _)| *known == word) {
            return Ok(ask.clone());
        }
        let state = STATES.iter().find(|(known, _)| *known == word);
        Ok(match state {
            Some((_, state)) => Ask::Place(state.clone()),
            None => Ask::Word(word.to_owned()),
        })
    }

    /// Parses a value: plain, or in quotes with the escapes `\"` and `\\`. The end of the text
    /// closes open quotes.
    fn value(&mut self, start: usize) -> Result<String, Wrong> {
        if !self.eat("\"") {
            return Ok(self.bare().to_owned());
        }
        let mut value = String::new();
        let mut characters = self.rest().char_indices().peekable();
        let mut end = None;
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    end = Some(at + 1);
                    break;
                }
                '\\' => match characters.next_if(|(_, next)| matches!(next, '"' | '\\')) {
                    Some((_, escaped)) => value.push(escaped),
                    None => value.push('\\'),
                },
                c => value.push(c),
            }
        }
        self.at += end.unwrap_or(self.rest().len());
        match self.ends() {
            true => Ok(value),
            false => Err((start, "add a space after the quotes".to_owned())),
        }
    }

    fn field(&mut self, start: usize, field: &str) -> Result<Ask, Wrong> {
        if !FIELDS.contains(&field) {
            let known = FIELDS.map(|field| format!("{field}:")).join(", ");
            let message = format!(
                "unknown field {field}:; the fields are {known}; use quotes to search for the text"
            );
            return Err((start, message));
        }
        let at = self.at;
        let value = self.value(start)?;
        if value.is_empty() {
            let example = match field {
                "re" => "a regular expression, for example re:^cart-",
                "health" => return Err((at, format!("health: needs one of {}", healths()))),
                "behind" => "a number, for example behind:>0",
                "env" => "an environment, for example env:production",
                _ => "a release or a version, for example release:v1.2*",
            };
            return Err((at, format!("{field}: needs {example}")));
        }
        match field {
            "re" => match super::matcher::expression(&value) {
                Ok(_) => Ok(Ask::Pattern(value)),
                Err(error) => Err((at, cause(&error))),
            },
            "health" => health(&value).map_err(|message| (at, message)),
            "behind" => behind(&value).map_err(|message| (at, message)),
            "env" => Ok(Ask::Environment(value)),
            _ => Ok(Ask::Place(CellCondition::Release(Glob::new(&value)))),
        }
    }

    fn selector(&mut self) -> Result<Ask, Wrong> {
        match Selector::parse_at(self.text, self.at, Extent::Part) {
            Ok((selector, end)) => {
                self.at = end;
                Ok(Ask::Labels(selector))
            }
            Err(mistake) => {
                self.at = mistake.at;
                Err((self.at, self.selector_message(&mistake.kind)))
            }
        }
    }

    fn selector_message(&self, mistake: &MistakeKind) -> String {
        let unexpected = |inside: &str| match self.rest().chars().next() {
            Some(c) => format!("unexpected {c:?} in {inside}"),
            None => format!("{inside} is incomplete"),
        };
        match mistake {
            MistakeKind::NoName => "a label selector needs the name of a label here".to_owned(),
            MistakeKind::NoValue => "a label selector needs a value here".to_owned(),
            MistakeKind::Close => unexpected("the values of a label"),
            _ => unexpected("a label selector"),
        }
    }
}

fn health(value: &str) -> Result<Ask, String> {
    let wanted = value.to_lowercase();
    let word = |health: &Health| health.word().to_lowercase();
    let mut fit = Health::ALL
        .iter()
        .filter(|health| word(health).starts_with(&wanted));
    if let (Some(health), None) = (fit.next(), fit.next()) {
        return Ok(Ask::Place(CellCondition::Health(*health)));
    }
    let state = STATES.iter().find(|(known, _)| *known == wanted);
    match state {
        Some((_, state @ (CellCondition::Health(_) | CellCondition::Fault))) => {
            Ok(Ask::Place(state.clone()))
        }
        _ => Err(format!("unknown health {value}; use one of {}", healths())),
    }
}

/// Lists the words that are valid after `health:`, for a message.
fn healths() -> String {
    let known = Health::ALL
        .iter()
        .map(|health| health.word().to_lowercase());
    let known: Vec<String> = known.chain(["failing".to_owned()]).collect();
    known.join(", ")
}

fn behind(value: &str) -> Result<Ask, String> {
    let signed = Relation::SIGNS
        .iter()
        .find_map(|(sign, relation)| Some((*relation, value.strip_prefix(sign)?)));
    let (relation, number) = signed.unwrap_or((Relation::Equal, value));
    match number.parse() {
        Ok(number) => Ok(Ask::Place(CellCondition::Behind(relation, number))),
        Err(_) => Err(format!(
            "{value} is not a number; write behind:2 or behind:>0"
        )),
    }
}

/// Returns one line that says why a regular expression is invalid.
fn cause(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().next_back().unwrap_or_default();
    let cause = last.trim().trim_start_matches("error: ");
    format!("invalid regular expression: {cause}")
}
