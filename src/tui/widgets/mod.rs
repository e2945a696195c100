//! Small drawing functions that several screens share. They store nothing between two frames.

pub mod table;

use unicode_segmentation::UnicodeSegmentation;

use crate::text;

/// Wraps a text at blanks to lines of at most `width` columns. Splits a word that is longer than a line.
pub fn wrap(words: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let cleaned = text::clean(words);
    let mut lines = Vec::new();
    for paragraph in cleaned.split('\n') {
        let before = lines.len();
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            let mut word = word.to_owned();
            let room = |line: &str| width.saturating_sub(text::width(line));
            let gap = usize::from(!line.is_empty());
            if text::width(&word) + gap <= room(&line) {
                if gap == 1 {
                    line.push(' ');
                }
                line.push_str(&word);
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            while text::width(&word) > width {
                let (head, rest) = split(&word, width);
                lines.push(head);
                word = rest;
            }
            line = word;
        }
        // If a word ended exactly at the end of a line, nothing is left to add. But an empty paragraph becomes one
        // empty line.
        if !line.is_empty() || lines.len() == before {
            lines.push(line);
        }
    }
    lines
}

/// Splits a word after at most `width` columns. The first part has at least one grapheme, even if it is wider.
fn split(word: &str, width: usize) -> (String, String) {
    let mut used = 0;
    let mut at = 0;
    for (offset, grapheme) in word.grapheme_indices(true) {
        used += text::width(grapheme);
        if used > width && offset > 0 {
            break;
        }
        at = offset + grapheme.len();
    }
    let (head, rest) = word.split_at(at);
    (head.to_owned(), rest.to_owned())
}

/// Returns the index of the first row to draw. It differs from the previous `first` only as far as needed to make the
/// selected row visible.
pub fn scrolled(first: usize, selected: usize, height: usize, count: usize) -> usize {
    let height = height.max(1);
    let last = count.saturating_sub(height);
    let first = first.min(last);
    if selected < first {
        selected
    } else if selected >= first + height {
        selected + 1 - height
    } else {
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_wrapped_and_long_ones_cut() {
        for (text, width, expected) in [
            ("", 5, vec![""]),
            ("one two three", 7, vec!["one two", "three"]),
            ("one", 2, vec!["on", "e"]),
            ("a abcdef b", 3, vec!["a", "abc", "def", "b"]),
            ("a\nb", 5, vec!["a", "b"]),
            ("日本語", 4, vec!["日本", "語"]),
            ("日本", 1, vec!["日", "本"]),
        ] {
            assert_eq!(wrap(text, width), expected, "{text:?} {width}");
        }
    }

    #[test]
    fn the_selected_row_is_always_seen() {
        for (first, selected, height, count, expected) in [
            (0, 0, 5, 10, 0),
            (0, 4, 5, 10, 0),
            (0, 5, 5, 10, 1),
            (5, 2, 5, 10, 2),
            (9, 9, 5, 10, 5),
            (3, 0, 5, 2, 0),
            (0, 3, 0, 10, 3),
        ] {
            assert_eq!(scrolled(first, selected, height, count), expected);
        }
    }
}
