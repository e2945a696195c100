//! Cleans foreign text for a terminal, and formats ages and sizes.
//!
//! Names, messages, log lines and file contents come from clusters and repositories that other people write
//! to. They must not move the cursor, change colours, reorder text or hide a difference between two names, so
//! this module replaces such characters. It does not colour, wrap or align text.

use std::borrow::Cow;
use std::io::{self, Write};

pub use kube_embedded::human_duration as age;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// The replacement for each character that must not reach a terminal.
pub const MARKER: char = '\u{fffd}';

/// The character that marks where a text was shortened.
pub const ELLIPSIS: char = '…';

/// The maximum size of a grapheme in bytes. Without this limit, one terminal column could contain any number
/// of combining marks.
const GRAPHEME_BYTES: usize = 32;

/// Replaces all characters that could control a terminal or hide text. Does not change newlines and tabs.
pub fn clean(text: &str) -> Cow<'_, str> {
    scrub(text, false)
}

/// Like [`clean`], but also replaces each newline and tab by a space, so that the text stays on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    scrub(text, true)
}

/// Like [`clean`], but indents every line after the first one, so that a foreign text cannot look like two
/// messages.
pub fn block(text: &str) -> Cow<'_, str> {
    match clean(text) {
        cleaned if !cleaned.contains('\n') => cleaned,
        cleaned => Cow::Owned(cleaned.trim_end_matches('\n').replace('\n', "\n  ")),
    }
}

/// A writer that cleans its input like [`clean`] before it writes. Replaces bytes that are not UTF-8 by
/// [`MARKER`].
pub struct CleanWriter<W>(pub W);

impl<W: Write> Write for CleanWriter<W> {
    /// Writes all bytes or fails, because a partial count would not match the cleaned text.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(clean(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Formats a count and a noun in the plural, and makes the noun singular for 1: `1 file`, `2 files`, `1
/// entry`.
pub fn counted(count: usize, words: &str) -> String {
    match (count, words.strip_suffix("ies"), words.strip_suffix('s')) {
        (1, Some(stem), _) => format!("1 {stem}y"),
        (1, None, Some(word)) => format!("1 {word}"),
        _ => format!("{count} {words}"),
    }
}

/// Formats a number of bytes: `812 B`, `4.7 KB`, `52 KB`, `1.3 MB`.
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

/// Quotes a word for a POSIX shell. A word without special characters stays unchanged.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Returns how many terminal columns a text needs on one line, after it is cleaned.
pub fn width(text: &str) -> usize {
    line(text).graphemes(true).map(columns).sum()
}

/// Cleans a text to one line of at most `columns` terminal columns. Cuts a longer text between two graphemes
/// and adds `…`.
pub fn fit(text: &str, columns: usize) -> String {
    let cleaned = line(text);
    let mut out = String::new();
    let mut used = 0;
    // The length in bytes of the part that leaves one column for the ellipsis.
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

/// Like [`fit`], but cuts the middle of the text. This is for names, because names with the same beginning
/// often differ at the end.
pub fn fit_name(text: &str, columns: usize) -> String {
    // With fewer columns, the end of the name would be too short to help.
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
            // Removes a carriage return before a newline.
        } else if is_emoji_glue(c) && out.chars().next_back().is_some_and(is_pictograph) {
            // Removes a joiner or a variation selector after an emoji, without a marker.
        } else {
            out.push(MARKER);
        }
    }
    Cow::Owned(out)
}

/// Returns whether a text contains only printable ASCII, which needs no cleaning. Compares whole chunks,
/// because that is fast.
fn is_plain(text: &str) -> bool {
    let is_fine = |byte: &u8| matches!(byte, b' '..=b'~');
    text.as_bytes()
        .chunks(32)
        .all(|chunk| chunk.iter().fold(true, |fine, byte| fine & is_fine(byte)))
}

fn is_layout(c: char) -> bool {
    matches!(c, '\n' | '\t')
}

/// Returns whether a character could control a terminal, reorder text or be invisible.
pub fn is_unsafe(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // The control characters: C0 with ESC, DEL, C1.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul and Khmer fillers.
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => {
            true
        }
        // Mongolian variation selectors and vowel separator.
        '\u{180b}'..='\u{180f}' => true,
        // Zero-width characters, direction marks, line and paragraph separators, embeddings and isolates.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{2800}' | '\u{3164}' | '\u{ffa0}' | '\u{feff}' => true,
        '\u{fe00}'..='\u{fe0f}' | '\u{fff0}'..='\u{fffb}' => true,
        // Egyptian, shorthand and musical format controls; tags and more variation selectors.
        '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        // Arabic and Kaithi number signs are format characters too, but they are visible.
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

/// Splits an address into its scheme and the rest; None if the address has no valid scheme.
pub fn split_scheme(address: &str) -> Option<(&str, &str)> {
    address.split_once("://").filter(|(scheme, _)| {
        scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    })
}

/// Formats a valid or invalid address for messages: on one line, and with `***` instead of credentials.
/// `is_server` returns whether a text is a host with a port.
pub fn address(address: &str, is_server: impl Fn(&str) -> bool) -> String {
    let (scheme, rest) = match split_scheme(address) {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, address),
    };
    let cut = rest.find(['?', '#']).unwrap_or(rest.len());
    let (rest, hidden) = rest.split_at(cut);
    // The address may be invalid. So everything before the last `@` (or its encoding `%40`) counts as
    // credentials, except the plain user name of an ssh address.
    let lower = rest.to_ascii_lowercase();
    let end = rest.rfind('@').map(|at| (at, 1));
    let encoded = lower.rfind("%40").map(|at| (at, 3));
    let rest = match end.max(encoded) {
        Some((at, width)) => {
            let user = rest.get(..at).unwrap_or_default();
            let after = rest.get(at + width..).unwrap_or_default();
            let plain = matches!(scheme, None | Some("ssh"))
                && !user.is_empty()
                && user.len() <= 32
                && user
                    .chars()
                    .all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            if plain {
                format!("{user}@{after}")
            } else {
                format!("***@{after}")
            }
        }
        None => match rest.split_once('/').unwrap_or((rest, "")) {
            // If the text after the colon is not a port, it may be a part of a password.
            (authority, path)
                if authority.contains(':') && scheme.is_some() && !is_server(authority) =>
            {
                format!("***/{path}")
            }
            _ => rest.to_owned(),
        },
    };
    let scheme = scheme
        .map(|scheme| format!("{scheme}://"))
        .unwrap_or_default();
    let hidden = if hidden.is_empty() { "" } else { "?***" };
    fit(&format!("{scheme}{rest}{hidden}"), 256)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
