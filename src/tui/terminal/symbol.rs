//! The text of a cell that may be written, and its width.
//!
//! The last safety check: screens clean their texts, and this module replaces unsafe text that they missed.

use unicode_width::UnicodeWidthStr;

use crate::text;

/// The text of a cell, safe to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// One grapheme without control characters.
    pub text: &'a str,
    /// The width in columns.
    pub width: u16,
    /// Whether all terminals agree on the width.
    pub is_certain: bool,
}

impl Symbol<'_> {
    /// Returns the safe text of a cell.
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
        // All terminals agree on the width of Latin letters, lines and blocks.
        let certain = |c: char| matches!(c, ' '..='\u{2ff}' | '\u{2500}'..='\u{259f}');
        Symbol {
            text: symbol,
            width: u16::try_from(width).unwrap_or(u16::MAX),
            is_certain: symbol.chars().all(certain),
        }
    }
}
