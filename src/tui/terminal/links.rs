//! Links (OSC 8). The cells of a frame cannot store links, so a screen passes its links separately.
//!
//! If a link appears, moves or disappears, its cells are written again even if their text is unchanged, because the
//! terminal stores links with the cells.

use std::ops::Range;

use ratatui::layout::Rect;

/// The maximum length of a link's address in bytes, because some terminals do not open longer addresses or treat them
/// as an attack.
const LONGEST: usize = 2048;

/// A rectangle of cells that opens an address when the user clicks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    pub area: Rect,
    url: String,
}

impl Link {
    /// Returns a link; None if the address is unsafe. A safe address starts with `http` or `https`, is printable
    /// ASCII, and is not too long.
    pub fn new(area: Rect, url: &str) -> Option<Link> {
        let is_web = url.starts_with("https://") || url.starts_with("http://");
        let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic());
        (is_web && is_plain && url.len() <= LONGEST).then(|| Link {
            area,
            url: url.to_owned(),
        })
    }

    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Returns the byte ranges of the web addresses in a text. An address ends at a blank, a quote or an angle bracket.
/// Punctuation at its end is not part of it.
pub fn addresses(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let begins = ["https://", "http://"].map(|scheme| rest.find(scheme));
        let Some(start) = begins.into_iter().flatten().min() else {
            break;
        };
        let url = rest.get(start..).unwrap_or_default();
        let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>');
        let end = url.find(ends).unwrap_or(url.len());
        let whole = url.get(..end).unwrap_or_default();
        let whole = whole.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '}']);
        found.push(at + start..at + start + whole.len());
        at += start + end;
    }
    found
}

/// Writes the sequence that starts a link to `url`. If `url` is None, writes the sequence that ends the current link.
pub fn begin(url: Option<&str>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\x1b]8;;");
    out.extend_from_slice(url.unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\x1b\\");
}

/// Returns the areas of all links that were added or removed.
pub fn changed(before: &[Link], now: &[Link]) -> Vec<Rect> {
    let gone = before.iter().filter(|link| !now.contains(link));
    let new = now.iter().filter(|link| !before.contains(link));
    gone.chain(new).map(|link| link.area).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_web_become_links() {
        let area = Rect::new(0, 0, 4, 1);
        for (url, made) in [
            ("https://example.org/a?b=c#d", true),
            ("http://127.0.0.1:8080/", true),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("https://a\u{1b}\\\u{1b}]52;c;AAAA", false),
            ("https://a b", false),
            ("https://gr\u{f6}\u{df}e.example", false),
            ("", false),
        ] {
            assert_eq!(Link::new(area, url).is_some(), made, "{url:?}");
        }
        let endless = format!("https://{}", "a".repeat(LONGEST));
        assert_eq!(Link::new(area, &endless), None);
    }

    #[test]
    fn addresses_are_found_in_sentences_and_in_yaml() {
        for (text, expected) in [
            ("", &[][..]),
            (
                "repository: https://example.org/shop.git",
                &["https://example.org/shop.git"],
            ),
            (
                "see \"http://a.example/b\", or (https://c.example).",
                &["http://a.example/b", "https://c.example"],
            ),
            ("xhttps://a", &["https://a"]),
            ("https:/a ftp://b git@c:d", &[]),
            (
                "https://a\u{1b}]8;;https://b",
                &["https://a\u{1b}]8;;https://b"],
            ),
        ] {
            let found = addresses(text);
            let found: Vec<&str> = found.into_iter().map(|range| &text[range]).collect();
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn what_came_and_what_went_is_written_again() {
        let link = |x, url| Link::new(Rect::new(x, 0, 2, 1), url).unwrap();
        let (a, b, c) = (
            link(0, "https://a"),
            link(4, "https://b"),
            link(4, "https://c"),
        );
        let before = [a.clone(), b.clone()];
        assert_eq!(changed(&before, &before), []);
        assert_eq!(changed(&before, &[a.clone(), c]), [b.area, b.area]);
        assert_eq!(changed(&before, std::slice::from_ref(&b)), [a.area]);
    }
}
