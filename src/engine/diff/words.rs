//! Compares two lines by word, where one line replaces the other.

use std::ops::Range;

use super::sequence;

/// The largest number of words in a line that is compared word by word. For a longer line, only the common start and
/// end are found.
const WORDS: usize = 400;

/// Returns the byte ranges that differ, first of the line `before`, then of the line `after`. Returns no ranges if
/// the lines have too little in common.
pub fn words(before: &str, after: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    let (old, new) = (split(before), split(after));
    let found = match old.len().max(new.len()) > WORDS {
        true => vec![middle(&old, &new)],
        false => sequence::edits(&old, &new, None).edits,
    };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let (mut at_old, mut at_new) = (Offsets::new(&old), Offsets::new(&new));
    for edit in &found {
        left.extend(at_old.bytes(&edit.before));
        right.extend(at_new.bytes(&edit.after));
    }
    let changed = |ranges: &[Range<usize>]| ranges.iter().map(Range::len).sum::<usize>();
    let is_telling = |text: &str, ranges: &[Range<usize>]| changed(ranges) * 4 < text.len() * 3;
    match is_telling(before, &left) || is_telling(after, &right) {
        true => (left, right),
        false => (Vec::new(), Vec::new()),
    }
}

fn middle(old: &[&str], new: &[&str]) -> sequence::Edit {
    let front = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let back = old[front..].iter().rev().zip(new[front..].iter().rev());
    let back = back.take_while(|(a, b)| a == b).count();
    sequence::Edit {
        before: front..old.len() - back,
        after: front..new.len() - back,
    }
}

/// Splits a line into words: runs of letters and digits, runs of spaces, and any other single character.
fn split(text: &str) -> Vec<&str> {
    let class = |c: char| match c {
        c if c.is_alphanumeric() || c == '_' => 1,
        c if c.is_whitespace() => 2,
        _ => 0,
    };
    let mut words = Vec::new();
    let mut start = 0;
    let mut last = 0;
    for (at, c) in text.char_indices() {
        let this = class(c);
        if at > start && (this == 0 || this != last) {
            words.push(&text[start..at]);
            start = at;
        }
        last = this;
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

/// Converts ranges of words to ranges of bytes in the same line. The ranges must come in ascending order.
struct Offsets<'a> {
    words: &'a [&'a str],
    word: usize,
    byte: usize,
}

impl<'a> Offsets<'a> {
    fn new(words: &'a [&'a str]) -> Self {
        Self {
            words,
            word: 0,
            byte: 0,
        }
    }

    fn skip_to(&mut self, word: usize) -> usize {
        let skipped = self.words.get(self.word..word).unwrap_or_default();
        self.byte += skipped.iter().map(|word| word.len()).sum::<usize>();
        self.word = word;
        self.byte
    }

    fn bytes(&mut self, range: &Range<usize>) -> Option<Range<usize>> {
        let start = self.skip_to(range.start);
        let end = self.skip_to(range.end);
        (start < end).then_some(start..end)
    }
}
