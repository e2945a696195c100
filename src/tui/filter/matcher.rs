//! A filter that is compiled once, to check many rows fast.

use std::fmt;
use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use super::facts::{Facts, Place};
use super::selector::Ready;
use super::{Ask, CellCondition, Filter, has_capital};

/// The maximum size of a compiled regular expression, in bytes.
const EXPRESSION: usize = 1 << 20;

/// A filter, compiled for the environments of a table. The flag next to a term is true if the term is negated (`!`).
#[derive(Clone, Debug, Default)]
pub struct Matcher {
    texts: Vec<(bool, Text)>,
    selectors: Vec<(bool, Ready)>,
    marked: Vec<bool>,
    /// The `env:` terms: whether the term is negated, and for each column whether the term selects it.
    environments: Vec<(bool, Vec<bool>)>,
    places: Vec<(bool, CellCondition)>,
}

/// A search for a text in the names of a row, and the columns whose environment names match this text.
#[derive(Clone, Debug)]
struct Text {
    search: Search,
    columns: Vec<bool>,
    in_a_column: bool,
}

#[derive(Clone, Debug)]
enum Search {
    Folded(String),
    Exact(String),
    Expression(Regex),
    /// A regular expression that runs on the text in lower case.
    FoldedExpression(Regex),
}

impl Matcher {
    pub fn new(filter: &Filter, environments: &[Arc<str>]) -> Self {
        let mut matcher = Self::default();
        for term in &filter.terms {
            let negated = term.negated;
            match &term.ask {
                Ask::Word(word) => {
                    let search = match has_capital(word) {
                        true => Search::Exact(word.clone()),
                        false => Search::Folded(word.to_lowercase()),
                    };
                    matcher
                        .texts
                        .push((negated, Text::new(search, environments)));
                }
                Ask::Pattern(pattern) => {
                    // The parser of filters has already rejected every invalid expression, so this never fails.
                    if let Ok(search) = Search::expression(pattern) {
                        matcher
                            .texts
                            .push((negated, Text::new(search, environments)));
                    }
                }
                Ask::Labels(selector) => matcher.selectors.push((negated, Ready::new(selector))),
                Ask::Environment(name) => {
                    let columns = named(name, environments);
                    matcher.environments.push((negated, columns));
                }
                Ask::Marked => matcher.marked.push(negated),
                Ask::Place(ask) => matcher.places.push((negated, ask.clone())),
            }
        }
        matcher
    }

    /// Returns whether a row matches the filter. `marked` says whether the user has marked the row.
    pub fn keeps(&self, facts: &Facts, marked: bool) -> bool {
        self.marked.iter().all(|negated| marked != *negated)
            && self.keeps_places(facts)
            && self
                .texts
                .iter()
                .all(|(negated, text)| text.is_in(facts) != *negated)
            && self.selectors.iter().all(|(negated, selector)| {
                selector.matches_any(facts.labels(), facts.all_labels()) != *negated
            })
    }

    /// Returns whether the filter contains the term `marked`.
    pub fn asks_for_marks(&self) -> bool {
        !self.marked.is_empty()
    }

    fn keeps_places(&self, facts: &Facts) -> bool {
        if self.places.is_empty() && self.environments.is_empty() {
            return true;
        }
        let is_in =
            |place: &Place, columns: &[bool]| columns.get(usize::from(place.column)) == Some(&true);
        let mut elsewhere = self.environments.iter().filter(|(negated, _)| *negated);
        if elsewhere.any(|(_, columns)| facts.places().iter().any(|place| is_in(place, columns))) {
            return false;
        }
        let looked_at = |place: &&Place| {
            let mut asked = self.environments.iter().filter(|(negated, _)| !*negated);
            asked.all(|(_, columns)| is_in(place, columns))
        };
        let mut denied = self.places.iter().filter(|(negated, _)| *negated);
        let places = || facts.places().iter().filter(looked_at);
        if denied.any(|(_, ask)| places().any(|place| ask.holds(place, facts))) {
            return false;
        }
        let here = self.environments.iter().any(|(negated, _)| !*negated);
        let wanted = || self.places.iter().filter(|(negated, _)| !*negated);
        if !here && wanted().next().is_none() {
            return true;
        }
        places().any(|place| wanted().all(|(_, ask)| ask.holds(place, facts)))
    }
}

impl CellCondition {
    fn holds(&self, place: &Place, facts: &Facts) -> bool {
        match self {
            Self::Health(health) => place.health == Some(*health),
            Self::Fault => place.health.is_some_and(|health| health.is_fault()),
            Self::Behind(relation, number) => place
                .behind
                .is_some_and(|behind| relation.holds(behind, *number)),
            Self::Held => place.held,
            Self::Bad => place.bad,
            Self::Mine => place.mine,
            Self::Release(glob) => {
                let (name, version) = facts.release(place);
                glob.fits(name) || (!version.is_empty() && glob.fits(version))
            }
        }
    }
}

impl Text {
    fn new(search: Search, environments: &[Arc<str>]) -> Self {
        let columns: Vec<bool> = environments
            .iter()
            .map(|name| search.finds(name, &name.to_lowercase()))
            .collect();
        let in_a_column = columns.contains(&true);
        Self {
            search,
            columns,
            in_a_column,
        }
    }

    fn is_in(&self, facts: &Facts) -> bool {
        self.search.finds(facts.text(), facts.folded())
            || self.in_a_column && {
                let mut places = facts.places().iter();
                places.any(|place| self.columns.get(usize::from(place.column)) == Some(&true))
            }
    }
}

impl Search {
    /// Compiles a regular expression. An expression that ignores case runs on the text in lower case, because the
    /// regex engine finds a literal prefix many times faster there.
    fn expression(pattern: &str) -> Result<Self, regex::Error> {
        let names_letters = ["\\x", "\\u", "\\p", "(?"];
        let named = names_letters.iter().any(|word| pattern.contains(word));
        match counts_case(pattern) || named || !pattern.is_ascii() {
            true => expression(pattern).map(Self::Expression),
            false => by_lines(pattern).build().map(Self::FoldedExpression),
        }
    }

    fn finds(&self, text: &str, folded: &str) -> bool {
        match self {
            Self::Folded(word) => folded.contains(word.as_str()),
            Self::Exact(word) => text.contains(word.as_str()),
            Self::Expression(expression) => expression.is_match(text),
            Self::FoldedExpression(expression) => expression.is_match(folded),
        }
    }
}

/// Compiles a regular expression in which `^` and `$` match the start and the end of a line. The expression is
/// case-sensitive if it contains a capital letter.
pub(super) fn expression(pattern: &str) -> Result<Regex, regex::Error> {
    let case = counts_case(pattern);
    by_lines(pattern).case_insensitive(!case).build()
}

fn by_lines(pattern: &str) -> RegexBuilder {
    let mut builder = RegexBuilder::new(pattern);
    builder.multi_line(true).size_limit(EXPRESSION);
    builder
}

/// Returns whether a regular expression contains a capital letter, other than in an escape such as
/// `\S`.
fn counts_case(pattern: &str) -> bool {
    let mut escaped = false;
    pattern.chars().any(|c| {
        let counts = !escaped && c.is_uppercase();
        escaped = c == '\\' && !escaped;
        counts
    })
}

/// Returns for each column whether `name` selects it. If an environment has exactly this name, only its column is
/// selected; otherwise all columns whose names start with `name`.
fn named(name: &str, environments: &[Arc<str>]) -> Vec<bool> {
    let columns = |glob: Glob| -> Vec<bool> {
        let fit = environments.iter().map(|known| glob.fits(known));
        fit.collect()
    };
    let exact = columns(Glob::new(name));
    match exact.contains(&true) {
        true => exact,
        false => columns(Glob::new(&format!("{name}*"))),
    }
}

/// A pattern in which `*` stands for any text and `?` for one character. The pattern is case-sensitive only if it
/// contains a capital letter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glob {
    pattern: String,
    exact: bool,
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.pattern)
    }
}

impl Glob {
    /// Parses a pattern; every text is a valid pattern.
    pub fn new(pattern: &str) -> Self {
        Self {
            pattern: pattern.to_owned(),
            exact: has_capital(pattern),
        }
    }

    fn fits(&self, text: &str) -> bool {
        let Self { pattern, exact } = self;
        if pattern.is_ascii() && text.is_ascii() {
            let same =
                |one: u8, other: u8| one == other || !exact && one.eq_ignore_ascii_case(&other);
            return fits(pattern.as_bytes(), text.as_bytes(), (b'*', b'?'), same);
        }
        let same = |one: char, other: char| {
            one == other || !exact && one.to_lowercase().eq(other.to_lowercase())
        };
        let characters = |text: &str| text.chars().collect::<Vec<char>>();
        fits(&characters(pattern), &characters(text), ('*', '?'), same)
    }
}

/// Compares text and pattern from left to right. After a mismatch, the comparison goes back to the last star, and
/// lets the star stand for one character more.
fn fits<T: Copy + PartialEq>(
    pattern: &[T],
    text: &[T],
    (many, one): (T, T),
    same: impl Fn(T, T) -> bool,
) -> bool {
    let (mut at, mut here) = (0, 0);
    // The position after the last star in the pattern, and the position in the text at which to try
    // again.
    let mut again: Option<(usize, usize)> = None;
    loop {
        match (pattern.get(at), text.get(here)) {
            (Some(&wanted), _) if wanted == many => {
                at += 1;
                if at == pattern.len() {
                    return true;
                }
                again = Some((at, here));
            }
            (Some(&wanted), Some(&found)) if wanted == one || same(wanted, found) => {
                at += 1;
                here += 1;
            }
            (None, None) => return true,
            _ => match again {
                Some((star, from)) if from < text.len() => {
                    (at, here) = (star, from + 1);
                    again = Some((star, from + 1));
                }
                _ => return false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "anything", true),
            ("v1.2*", "v1.2.3", true),
            ("v1.2*", "v1.3", false),
            ("v1.2", "v1.20", false),
            ("*-v1", "cart-v1", true),
            ("*a*b", "xaab", true),
            ("*a*b", "xaabc", false),
            ("a**b", "ab", true),
            ("v?.0", "v7.0", true),
            ("v?.0", "v.0", false),
            ("rc", "RC", true),
            ("RC", "rc", false),
            ("*é", "CAFÉ", true),
            ("caf?", "café", true),
            ("*É", "café", false),
            ("a*b*", "acb", true),
            ("a*bc", "abbc", true),
        ] {
            assert_eq!(Glob::new(pattern).fits(text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn expressions_read_lines_and_small_letters_mean_any() {
        for (pattern, text, expected) in [
            ("^api$", "Cart-API\nAPI", true),
            ("^API$", "cart-api\napi", false),
            ("[^a-z]", "CART", false),
            ("\\S-\\d", "X-1", true),
            ("\\x41pi", "api", true),
            ("é$", "CAFÉ", true),
            ("(?-i)api", "API", false),
        ] {
            let search = Search::expression(pattern).unwrap();
            let found = search.finds(text, &text.to_lowercase());
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }
}
