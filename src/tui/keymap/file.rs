//! Files of settings that a person wrote: read as far as they make sense, and what does not is named by
//! file and line.

use std::io::ErrorKind;
use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::yaml::Place;

/// A file's name, as messages say it, and its text.
#[derive(Clone, Copy, Debug)]
pub struct Source<'t> {
    /// The name, or the path.
    pub name: &'t str,
    /// What is in it.
    pub text: &'t str,
}

/// A name and a value of a table, and where each begins.
pub type Entry<'e, 't> = (&'e str, usize, &'e Spanned<DeValue<'t>>);

impl<'t> Source<'t> {
    /// Reads it as TOML: what is good of it, and what is wrong with the rest, by its offset.
    pub fn parse(&self) -> (DeTable<'t>, Vec<(usize, String)>) {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        let errors = errors
            .iter()
            .map(|error| {
                let Range { start, .. } = error.span().unwrap_or_default();
                (start, error.message().replace('\n', ", "))
            })
            .collect();
        (table.into_inner(), errors)
    }

    /// Says where an offset is.
    pub fn place(&self, offset: usize) -> Place {
        Place::of(self.name, self.text, offset)
    }
}

/// Lists what a table holds, in the order of the file.
pub fn entries<'e, 't>(table: &'e DeTable<'t>) -> Vec<Entry<'e, 't>> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(name, value)| (name.get_ref().as_ref(), name.span().start, value))
        .collect();
    entries.sort_by_key(|(_, at, _)| *at);
    entries
}

/// Reads a file that need not be there.
pub fn text_of(path: &Path) -> Result<Option<String>, std::io::Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns `, did you mean ...?` with the known word that is nearest, if one is near.
pub fn did_you_mean<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let enough = (word.chars().count() / 2).clamp(1, 4);
    let near = known
        .into_iter()
        .map(|known| (distance(word, known), known));
    match near.min() {
        Some((distance, known)) if distance <= enough => format!(", did you mean `{known}`?"),
        _ => String::new(),
    }
}

/// Counts the letters to add, drop or change; a long word is far from all.
fn distance(from: &str, to: &str) -> usize {
    const LONGEST: usize = 40;
    if from.len() > LONGEST {
        return usize::MAX;
    }
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (above, a) in from.chars().enumerate() {
        let mut diagonal = above;
        let mut left = above + 1;
        let mut next = vec![left];
        for (b, up) in to.chars().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(a != b)).min(left + 1).min(up + 1);
            diagonal = *up;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_found_and_a_far_one_is_not() {
        for (word, expected) in [
            ("promot", ", did you mean `promote`?"),
            ("rolback", ", did you mean `rollback`?"),
            ("prmoote", ", did you mean `promote`?"),
            ("kitten", ""),
            ("", ""),
        ] {
            assert_eq!(did_you_mean(word, ["promote", "rollback"]), expected);
        }
        for (from, to, expected) in [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3)] {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn places_count_from_one_in_characters() {
        let source = Source {
            name: "f",
            text: "a\néb\n",
        };
        for (offset, line, column) in [(0, 1, 1), (2, 2, 1), (4, 2, 2), (6, 3, 1), (99, 3, 1)] {
            let place = source.place(offset);
            assert_eq!((place.line, place.column), (line, column), "{offset}");
        }
    }
}
