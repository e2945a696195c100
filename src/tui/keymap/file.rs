//! Reads the user's TOML settings files. bowline uses the valid lines, and reports each invalid line with its file
//! and line number.

use std::ops::Range;
use std::path::Path;

use bounded_yaml::{self, Place};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The name and the text of a settings file. Messages use the name.
#[derive(Clone, Copy, Debug)]
pub struct Source<'t> {
    pub name: &'t str,
    pub text: &'t str,
}

/// One entry of a TOML table: its name, the offset of the name in the file (in bytes), and its value.
pub type Entry<'e, 't> = (&'e str, usize, &'e Spanned<DeValue<'t>>);

impl<'t> Source<'t> {
    /// Parses the text as TOML. Returns the valid part, and each mistake with its offset in bytes.
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

    /// Converts an offset in bytes to the file name and the line number.
    pub fn place(&self, offset: usize) -> Place {
        Place::of(self.name, self.text, offset)
    }
}

/// Returns the entries of a table in the order in which the file contains them.
pub fn entries<'e, 't>(table: &'e DeTable<'t>) -> Vec<Entry<'e, 't>> {
    let mut entries: Vec<_> = table
        .iter()
        .map(|(name, value)| (name.get_ref().as_ref(), name.span().start, value))
        .collect();
    entries.sort_by_key(|(_, at, _)| *at);
    entries
}

/// Reads a file; returns None if the file does not exist.
pub fn text_of(path: &Path) -> Result<Option<String>, std::io::Error> {
    crate::small_file::small_file(path, crate::small_file::Links::Follow)
}

/// Returns the text `, did you mean ...?` with the known word that is most similar to `word`. Empty if no known word
/// is similar enough.
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

/// Returns the number of letters to add, remove or change to turn `from` into `to`. For a long word, returns
/// `usize::MAX`, so that no word is similar to it.
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
