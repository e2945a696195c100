//! What may be written of the text of a cell, and how wide it is.
//!
//! The last gate: screens clean what they show, and this replaces what they forgot.

use unicode_width::UnicodeWidthStr;

use crate::text;

/// The text of a cell as it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'a> {
    /// One grapheme without anything that steers a terminal.
    pub text: &'a str,
    /// How many columns it takes.
    pub width: u16,
    /// Whether all terminals agree on how many.
    pub is_certain: bool,
}

impl Symbol<'_> {
    /// Reads the text of a cell.
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
        // Letters of Latin scripts, lines and blocks.
        let certain = |c: char| matches!(c, ' '..='\u{2ff}' | '\u{2500}'..='\u{259f}');
        Symbol {
            text: symbol,
            width: u16::try_from(width).unwrap_or(u16::MAX),
            is_certain: symbol.chars().all(certain),
        }
    }
}
