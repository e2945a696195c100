//! The text of one cell and its width.
//!
//! This module is the last safety check: it replaces unsafe text that a screen has not cleaned.

use unicode_width::UnicodeWidthStr;

use crate::text;

/// The text of one cell of a frame, safe to write to a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// One grapheme without control characters.
    pub text: &'a str,
    pub width: u16,
    /// Whether all terminals draw the text with the same width.
    pub is_certain: bool,
}

impl Symbol<'_> {
    /// Returns the text of a cell. If the text is not safe, returns a replacement for it.
    pub fn of(symbol: &str) -> Symbol<'_> {
        if let [b' '..=b'~'] = symbol.as_bytes() {
            return Symbol {
                text: symbol,
                width: 1,
                is_certain: true,
            };
        }
        let steers = |c: char| c.is_control() || text::is_unsafe(c);
        let width = symbol.width();
        if symbol.chars().any(steers) || width == 0 {
            return Symbol {
                text: "\u{fffd}",
                width: 1,
                is_certain: false,
            };
        }
        // All terminals draw Latin letters, lines and blocks with the same width.
        let certain = |c: char| matches!(c, ' '..='\u{2ff}' | '\u{2500}'..='\u{259f}');
        Symbol {
            text: symbol,
            width: u16::try_from(width).unwrap_or(u16::MAX),
            is_certain: symbol.chars().all(certain),
        }
    }
}
