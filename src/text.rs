//! The one place that cleans foreign text for a terminal, and words ages and sizes there.
//!
//! Names, messages, log lines and file contents come from clusters and repositories that
//! others write to. Nothing in them may move the cursor, change colours, reorder what is
//! read or hide a difference between two names. This module removes what could; it does
//! not colour, wrap or align.

use std::borrow::Cow;
use std::io::{self, Write};

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// Stands where something that must not reach a terminal was.
pub const MARKER: char = '\u{fffd}';

/// Ends a text that was cut.
pub const ELLIPSIS: char = '…';

/// One column can carry any number of combining marks; more bytes than this are cut.
const GRAPHEME_BYTES: usize = 32;

/// Replaces everything that could steer a terminal or hide text; newlines and tabs stay.
pub fn clean(text: &str) -> Cow<'_, str> {
    scrub(text, false)
}

/// Like [`clean`], and newlines and tabs become a space: for text that must stay on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    scrub(text, true)
}

/// Like [`clean`], and every line after the first is indented: foreign text of several lines cannot look
/// like another message.
pub fn block(text: &str) -> Cow<'_, str> {
    match clean(text) {
        cleaned if !cleaned.contains('\n') => cleaned,
        cleaned => Cow::Owned(cleaned.trim_end_matches('\n').replace('\n', "\n  ")),
    }
}

/// Cleans everything that is written to it, as [`clean`] does. Bytes that are not UTF-8 become [`MARKER`].
pub struct CleanWriter<W>(pub W);

impl<W: Write> Write for CleanWriter<W> {
    /// Takes all bytes, or fails.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(clean(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Words a span of seconds as kubectl does: two or three figures, never more.
pub fn age(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let pair = |large: i64, a: char, small: i64, b: char| match small {
        0 => format!("{large}{a}"),
        small => format!("{large}{a}{small}{b}"),
    };
    match seconds {
        // Clocks of two machines differ a little.
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => pair(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => pair(seconds / HOUR, 'h', seconds / MINUTE % 60, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => pair(seconds / DAY, 'd', seconds / HOUR % 24, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => pair(seconds / YEAR, 'y', seconds / DAY % 365, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

/// Counts things whose word takes an s: `1 pin`, `2 pins`.
pub fn counted(count: usize, words: &str) -> String {
    let word = match count {
        1 => words.strip_suffix('s').unwrap_or(words),
        _ => words,
    };
    format!("{count} {word}")
}

/// Words a number of bytes: `812 B`, `4.7 KB`, `52 KB`, `1.3 MB`.
pub fn bytes(count: u64) -> String {
    let mut size = count as f64;
    let mut unit = "B";
    for larger in ["KB", "MB", "GB", "TB"] {
        if size < 1000.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    match size < 9.95 && unit != "B" {
        true => format!("{size:.1} {unit}"),
        false => format!("{size:.0} {unit}"),
    }
}

/// Writes a word as a shell reads it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Counts the terminal columns of a text after cleaning it to one line.
pub fn width(text: &str) -> usize {
    line(text).graphemes(true).map(columns).sum()
}

/// Cleans a text to one line of at most `columns` terminal columns, cut between graphemes with `…`.
pub fn fit(text: &str, columns: usize) -> String {
    let cleaned = line(text);
    let mut out = String::new();
    let mut used = 0;
    // Where the text would have to end to leave a column for the ellipsis.
    let mut room_for_ellipsis = 0;
    for grapheme in cleaned.graphemes(true) {
        let wide = self::columns(grapheme);
        if used + wide > columns {
            out.truncate(room_for_ellipsis);
            if columns > 0 {
                out.push(ELLIPSIS);
            }
            return out;
        }
        out.push_str(shorten(grapheme));
        used += wide;
        if used < columns {
            room_for_ellipsis = out.len();
        }
    }
    out
}

/// Like [`fit`], for names: it is the middle that goes, for names that begin alike differ in their ends.
pub fn fit_name(text: &str, columns: usize) -> String {
    // Where so little is left, no end says anything.
    const LEAST: usize = 6;
    if columns < LEAST || width(text) <= columns {
        return fit(text, columns);
    }
    let cleaned = line(text);
    let graphemes: Vec<&str> = cleaned.graphemes(true).collect();
    let tail = (columns - 1) / 2;
    let mut used = 0;
    let fits = |grapheme: &&&str| {
        used += self::columns(grapheme);
        used <= tail
    };
    let kept = graphemes.iter().rev().take_while(fits).count();
    let (head, tail) = graphemes.split_at(graphemes.len() - kept);
    let taken: usize = tail.iter().map(|grapheme| self::columns(grapheme)).sum();
    let mut out = fit(&head.concat(), columns - taken);
    out.extend(tail.iter().map(|grapheme| shorten(grapheme)));
    out
}

fn columns(grapheme: &str) -> usize {
    UnicodeWidthStr::width(grapheme)
}

fn shorten(grapheme: &str) -> &str {
    let mut end = grapheme.len().min(GRAPHEME_BYTES);
    while !grapheme.is_char_boundary(end) {
        end -= 1;
    }
    &grapheme[..end]
}

fn scrub(text: &str, one_line: bool) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let is_fine = |c: char| !(is_unsafe(c) || one_line && is_layout(c));
    let Some(first) = text.find(|c| !is_fine(c)) else {
        return Cow::Borrowed(text);
    };
    let mut out = String::with_capacity(text.len());
    out.push_str(&text[..first]);
    let mut rest = text[first..].chars().peekable();
    while let Some(c) = rest.next() {
        if is_layout(c) {
            out.push(if one_line { ' ' } else { c });
        } else if !is_unsafe(c) {
            out.push(c);
        } else if c == '\r' && rest.peek() == Some(&'\n') {
            // A Windows line end; the newline that follows says it.
        } else if is_emoji_glue(c) && out.chars().next_back().is_some_and(is_pictograph) {
            // An emoji loses its variant, not its text.
        } else {
            out.push(MARKER);
        }
    }
    Cow::Owned(out)
}

/// Tells whether a text has nothing but what a typewriter has on one line: most have, and whole chunks
/// are seen at a glance.
fn is_plain(text: &str) -> bool {
    let is_fine = |byte: &u8| matches!(byte, b' '..=b'~');
    text.as_bytes()
        .chunks(32)
        .all(|chunk| chunk.iter().fold(true, |fine, byte| fine & is_fine(byte)))
}

fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

/// Tells whether a character steers a terminal, reorders text or is drawn as nothing.
pub fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // C0 with ESC, DEL, C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul and Khmer fillers.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => {
            true
        }
        // Mongolian variation selectors and vowel separator.
        '\u{180b}'..='\u{180f}' => true,
        // Zero width, direction marks, line and paragraph separators, embeddings, isolates.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' => true,
        // Egyptian, shorthand and musical format controls; tags and more variation selectors.
        '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        // Arabic and Kaithi number signs are format characters that are drawn.
        _ => false,
    }
}

fn is_emoji_glue(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{27bf}' | '\u{2900}'..='\u{297f}'
        | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ages_have_two_or_three_figures() {
        const MINUTE: i64 = 60;
        const HOUR: i64 = 3600;
        const DAY: i64 = 24 * HOUR;
        for (seconds, words) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (135, "2m15s"),
            (9 * MINUTE + 59, "9m59s"),
            (10 * MINUTE + 30, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (8 * HOUR + 59 * MINUTE, "8h"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + 3 * HOUR, "2d3h"),
            (8 * DAY + 3 * HOUR, "8d"),
            (729 * DAY, "729d"),
            (730 * DAY, "2y"),
            (731 * DAY, "2y1d"),
            (9 * 365 * DAY, "9y"),
        ] {
            assert_eq!(age(seconds), words, "{seconds}");
        }
    }

    #[test]
    fn sizes_have_two_or_three_figures() {
        for (count, words) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 KB"),
            (1024, "1.0 KB"),
            (4800, "4.7 KB"),
            (10_189, "10 KB"),
            (53_000, "52 KB"),
            (1_023_000, "999 KB"),
            (1_024_000, "1.0 MB"),
            (u64::MAX, "16777216 TB"),
        ] {
            assert_eq!(bytes(count), words, "{count}");
        }
    }

    #[test]
    fn what_survives_cleaning() {
        for (given, cleaned, on_one_line) in [
            ("checkout-service", "checkout-service", "checkout-service"),
            ("größe 界 é", "größe 界 é", "größe 界 é"),
            ("a\tb\nc", "a\tb\nc", "a b c"),
            ("a\r\nb", "a\nb", "a b"),
            ("a\rb", "a\u{fffd}b", "a\u{fffd}b"),
            (
                "\u{1b}[31mred\u{1b}[0m",
                "\u{fffd}[31mred\u{fffd}[0m",
                "\u{fffd}[31mred\u{fffd}[0m",
            ),
            ("\u{9b}2J", "\u{fffd}2J", "\u{fffd}2J"),
            (
                "bell\u{7}\u{8}\u{7f}",
                "bell\u{fffd}\u{fffd}\u{fffd}",
                "bell\u{fffd}\u{fffd}\u{fffd}",
            ),
            (
                "user\u{202e}gnp.exe",
                "user\u{fffd}gnp.exe",
                "user\u{fffd}gnp.exe",
            ),
            (
                "\u{2066}x\u{2069}",
                "\u{fffd}x\u{fffd}",
                "\u{fffd}x\u{fffd}",
            ),
            ("pro\u{200b}d", "pro\u{fffd}d", "pro\u{fffd}d"),
            ("pro\u{200d}d", "pro\u{fffd}d", "pro\u{fffd}d"),
            ("prod\u{fe0f}", "prod\u{fffd}", "prod\u{fffd}"),
            ("a\u{2028}b", "a\u{fffd}b", "a\u{fffd}b"),
            ("x\u{e0041}", "x\u{fffd}", "x\u{fffd}"),
            ("\u{2764}\u{fe0f}", "\u{2764}", "\u{2764}"),
            (
                "\u{1f469}\u{200d}\u{1f4bb}",
                "\u{1f469}\u{1f4bb}",
                "\u{1f469}\u{1f4bb}",
            ),
        ] {
            assert_eq!(clean(given), cleaned, "clean {given:?}");
            assert_eq!(line(given), on_one_line, "line {given:?}");
        }
    }

    #[test]
    fn clean_text_is_borrowed() {
        assert!(matches!(clean("as it was\n\tand is"), Cow::Borrowed(_)));
        assert!(matches!(line("as it was"), Cow::Borrowed(_)));
        assert!(matches!(line("two\nlines"), Cow::Owned(_)));
    }

    #[test]
    fn lines_after_the_first_are_indented() {
        for (given, shown) in [
            ("one line", "one line"),
            ("ends\n", "ends"),
            ("two\nhint: lines", "two\n  hint: lines"),
            ("two\r\n\u{1b}[2Jlines\n\n", "two\n  \u{fffd}[2Jlines"),
        ] {
            assert_eq!(block(given), shown, "{given:?}");
        }
    }

    #[test]
    fn a_writer_cleans_what_passes() {
        let mut out = CleanWriter(Vec::new());
        writeln!(out, "a\u{1b}[31m\u{202e}b").unwrap();
        out.write_all(b"\xff\t.").unwrap();
        assert_eq!(
            String::from_utf8(out.0).unwrap(),
            "a\u{fffd}[31m\u{fffd}b\n\u{fffd}\t."
        );
    }

    #[test]
    fn cuts_to_columns() {
        for (given, columns, cut) in [
            ("checkout", 8, "checkout"),
            ("checkout", 7, "checko…"),
            ("checkout", 1, "…"),
            ("checkout", 0, ""),
            ("", 0, ""),
            ("界界界", 6, "界界界"),
            ("界界界", 5, "界界…"),
            ("界界界", 4, "界…"),
            ("界界界", 1, "…"),
            ("e\u{301}e\u{301}e\u{301}", 2, "e\u{301}…"),
            ("a\nb", 3, "a b"),
        ] {
            assert_eq!(fit(given, columns), cut, "{given:?} in {columns}");
        }
    }

    #[test]
    fn cuts_names_in_their_middle() {
        for (given, columns, cut) in [
            ("production-eu", 13, "production-eu"),
            ("production-eu", 12, "produc…on-eu"),
            ("production-us", 10, "produ…n-us"),
            ("production-us", 6, "pro…us"),
            ("production-us", 5, "prod…"),
            ("production-us", 1, "…"),
            ("production-us", 0, ""),
            ("界界界界界", 8, "界界…界"),
            ("界界界界界", 6, "界…界"),
        ] {
            assert_eq!(fit_name(given, columns), cut, "{given:?} in {columns}");
        }
    }

    #[test]
    fn a_column_does_not_carry_a_pile_of_marks() {
        let pile = format!("a{}", "\u{301}".repeat(10_000));
        assert!(fit(&pile, 4).len() <= GRAPHEME_BYTES);
    }

    fn foreign() -> impl Strategy<Value = String> {
        proptest::collection::vec(
            prop_oneof![
                any::<char>(),
                (0u32..0x300).prop_filter_map("scalar", char::from_u32),
                (0x2000u32..0x2070).prop_filter_map("scalar", char::from_u32),
                (0xfe00u32..0xfe10).prop_filter_map("scalar", char::from_u32),
                (0x1f440u32..0x1f4ff).prop_filter_map("scalar", char::from_u32),
            ],
            0..40,
        )
        .prop_map(|chars| chars.into_iter().collect())
    }

    proptest! {
        #[test]
        fn nothing_unsafe_survives(text in foreign(), columns in 0usize..30) {
            let cleaned = clean(&text);
            prop_assert!(!cleaned.chars().any(|c| (c.is_control() && c != '\n' && c != '\t') || is_unsafe(c)));
            let one = line(&text);
            prop_assert!(!one.chars().any(|c| c.is_control() || is_unsafe(c)));
            for cut in [fit(&text, columns), fit_name(&text, columns)] {
                prop_assert!(!cut.chars().any(|c| c.is_control() || is_unsafe(c)));
                prop_assert!(width(&cut) <= columns, "{cut:?} is wider than {columns}");
            }
        }

        #[test]
        fn cleaning_twice_changes_nothing(text in foreign(), columns in 0usize..30) {
            let cleaned = clean(&text).into_owned();
            prop_assert!(matches!(clean(&cleaned), Cow::Borrowed(_)));
            let one = line(&text).into_owned();
            prop_assert!(matches!(line(&one), Cow::Borrowed(_)));
            let cut = fit(&text, columns);
            prop_assert_eq!(fit(&cut, columns), cut);
        }
    }
}
