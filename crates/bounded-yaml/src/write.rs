//! Writes YAML that all YAML readers read in the same way.
//!
//! serde_yaml is not used, because it writes the strings `on` and `12:30:45` without quotes, which kubectl and Helm
//! then read as true and as a number. This module asks this crate's parser of plain scalars where quotes are
//! necessary, so that reading and writing always agree.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::scalar;

/// The largest length of a key, in characters, that is written on the line of its value. YAML allows at most 1024.
const SIMPLE_KEY: usize = 1000;

/// Returns a value as the text of a YAML document. The keys keep their order. A string is quoted if a reader could read
/// it as another value. A string of several lines becomes a block scalar if a block scalar can represent it.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    node(&mut out, value, Spot::default(), &mut 0);
    out
}

/// The position of a value in a YAML document, which determines the text before the value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spot<'k> {
    /// The indentation in spaces: of the key of the value, or of the text after the dashes.
    pub indent: usize,
    /// The number of list dashes before the value on its first line. The first item of a list in a list has several.
    pub dashes: usize,
    /// The key of the value; None for a list item or the whole document.
    pub key: Option<&'k str>,
}

/// Writes a map, a list or a scalar. `dashes` is the number of list dashes to write before the next key or scalar.
fn node(out: &mut String, value: &Value, spot: Spot<'_>, dashes: &mut usize) {
    let begin = |dashes: &mut usize| Spot {
        dashes: std::mem::take(dashes),
        ..spot
    };
    match value {
        Value::Object(map) if !map.is_empty() => {
            let inner = Spot::of_map(&spot);
            if spot.key.is_some() {
                open(out, begin(dashes));
            }
            for (key, item) in map {
                let key = Some(key.as_str());
                node(out, item, Spot { key, ..inner }, dashes);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            if spot.key.is_some() {
                open(out, begin(dashes));
            }
            for item in list {
                *dashes += 1;
                node(out, item, Spot::of_list(&spot), dashes);
            }
        }
        leaf => self::leaf(out, leaf, begin(dashes)),
    }
}

impl Spot<'_> {
    /// Returns the position of the entries of the map that is at this position.
    pub fn of_map(&self) -> Spot<'static> {
        let deeper = if self.key.is_some() { 2 } else { 0 };
        Spot {
            indent: self.indent + deeper,
            ..Spot::default()
        }
    }

    /// Returns the position of the items of the list that is at this position.
    pub fn of_list(&self) -> Spot<'static> {
        Spot {
            indent: self.indent + 2,
            ..Spot::default()
        }
    }

    /// Returns whether a string at this position can be a block scalar. This is not possible for the whole document,
    /// because the lines of the block would begin in column 0, where a line `---` ends the document.
    fn takes_blocks(&self) -> bool {
        self.key.is_some() || self.dashes > 0
    }
}

/// Writes the line with a key whose value is a map or list on the following lines.
pub fn open(out: &mut String, spot: Spot<'_>) {
    begin(out, spot);
    out.push('\n');
}

/// Writes a scalar, or an empty map or list, together with its key and dashes.
pub fn leaf(out: &mut String, value: &Value, spot: Spot<'_>) {
    if let Value::String(text) = value
        && spot.takes_blocks()
        && let Some(block) = Block::of(text)
    {
        block_head(out, block.chomping, spot);
        for line in block.lines() {
            block_line(out, line, Block::indent(spot));
        }
        return;
    }
    begin(out, spot);
    if spot.key.is_some() {
        out.push(' ');
    }
    inline(out, value);
    out.push('\n');
}

/// Returns the number of lines that [`leaf`] writes.
pub fn leaf_lines(value: &Value, spot: Spot<'_>) -> usize {
    let block = match value {
        Value::String(text) if spot.takes_blocks() => Block::of(text),
        _ => None,
    };
    key_lines(spot) + block.map_or(0, |block| 1 + newlines(block.body))
}

/// Returns the number of lines for a key and the start of its value: two if the key is too long for the line of its
/// value, otherwise one.
pub fn key_lines(spot: Spot<'_>) -> usize {
    1 + usize::from(spot.key.is_some_and(is_long))
}

/// Writes the text before a value: the indentation, the dashes, and the key with its colon.
fn begin(out: &mut String, spot: Spot<'_>) {
    pad(out, spot.indent.saturating_sub(2 * spot.dashes));
    for _ in 0..spot.dashes {
        out.push_str("- ");
    }
    if let Some(key) = spot.key {
        if is_long(key) {
            out.push_str("? ");
            inline_text(out, key);
            out.push('\n');
            pad(out, spot.indent);
        } else {
            inline_text(out, key);
        }
        out.push(':');
    }
}

/// Returns whether a key is too long to be written on the line of its value.
fn is_long(key: &str) -> bool {
    // An escaped byte needs at most ten characters, so most keys pass this quick check.
    key.len() * 10 > SIMPLE_KEY && {
        let mut written = String::new();
        inline_text(&mut written, key);
        written.chars().count() > SIMPLE_KEY
    }
}

/// A string of several lines as a literal block scalar (`|`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'t> {
    body: &'t str,
    chomping: &'static str,
}

impl<'t> Block<'t> {
    /// Converts a string to a literal block scalar; None if the block could not represent the string exactly.
    pub fn of(text: &'t str) -> Option<Self> {
        if !fits_block(text) {
            return None;
        }
        let (body, chomping) = match text.strip_suffix('\n') {
            None => (text, "-"),
            Some(body) if body.ends_with('\n') => (body, "+"),
            Some(body) => (body, ""),
        };
        Some(Self { body, chomping })
    }

    /// Returns the lines of the block scalar, without line ends and without indentation.
    pub fn lines(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        self.body.split('\n')
    }

    /// Returns the chomping indicator of the block scalar: `-`, `+` or nothing.
    pub fn chomping(&self) -> &'static str {
        self.chomping
    }

    /// Returns the indentation of a block scalar's lines at this position, in spaces.
    pub fn indent(spot: Spot<'_>) -> usize {
        spot.of_map().indent
    }
}

/// Writes the header line of a block scalar: the key, `|` and the chomping indicator.
pub fn block_head(out: &mut String, chomping: &str, spot: Spot<'_>) {
    begin(out, spot);
    out.push_str(if spot.key.is_some() { " |" } else { "|" });
    out.push_str(chomping);
    out.push('\n');
}

/// Writes one line of a block scalar, with its indentation and a line feed. An empty line gets no indentation.
pub fn block_line(out: &mut String, line: &str, indent: usize) {
    if !line.is_empty() {
        pad(out, indent);
        out.push_str(line);
    }
    out.push('\n');
}

fn pad(out: &mut String, indent: usize) {
    const BLANKS: &str = "                                ";
    let mut left = indent;
    while left > 0 {
        let some = left.min(BLANKS.len());
        out.push_str(&BLANKS[..some]);
        left -= some;
    }
}

pub(super) fn inline(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&self::number(number)),
        Value::String(text) => inline_text(out, text),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Formats a number so that all YAML versions read it. YAML 1.1 requires a decimal point before the exponent and a
/// sign in the exponent.
fn number(number: &Number) -> String {
    let text = number.to_string();
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return text;
    };
    let point = if mantissa.contains('.') { "" } else { ".0" };
    let sign = if exponent.starts_with(['+', '-']) {
        ""
    } else {
        "+"
    };
    format!("{mantissa}{point}e{sign}{exponent}")
}

fn inline_text(out: &mut String, text: &str) {
    if is_plain(text) {
        return out.push_str(text);
    }
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            c if u32::from(c) <= 0xff => {
                let _ = write!(out, "\\x{:02x}", u32::from(c));
            }
            c if u32::from(c) <= 0xffff => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
}

/// Returns whether all YAML readers read a string without quotes as this string.
pub(super) fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let starts = |c: u8| {
        c.is_ascii_alphanumeric() || matches!(c, b'_' | b'/' | b'.' | b'$' | b'(' | b'^' | b'+')
    };
    let Some(first) = bytes.first().filter(|first| starts(**first)) else {
        return false;
    };
    // One loop over the bytes decides for most strings.
    let seen = bytes
        .iter()
        .fold(0, |seen, byte| seen | BYTES[usize::from(*byte)]);
    if seen & FOREIGN != 0 {
        return false;
    }
    if seen & TELLING != 0
        && (text.ends_with([' ', ':'])
            || bytes.windows(2).any(|pair| pair == b": ")
            || bytes.windows(3).any(|three| three == b"..."))
    {
        return false;
    }
    // No reader has a special word that begins with a letter and is longer than `false`, so this is a string for
    // every reader.
    if first.is_ascii_alphabetic() && bytes.len() > LONGEST_WORD {
        return true;
    }
    // A date needs quotes, because some YAML 1.1 readers read it as a timestamp.
    !looks_like_date(text) && scalar::is_text(text)
}

/// The length of the longest word beginning with a letter that a reader does not read as a string.
const LONGEST_WORD: usize = "false".len();

/// The class of bytes that require quotes everywhere in a string.
const FOREIGN: u8 = 1;
/// The class of bytes that require quotes only at some positions in a string.
const TELLING: u8 = 2;

/// The class of each byte: [`FOREIGN`], [`TELLING`], or 0 if the byte never requires quotes.
const BYTES: [u8; 256] = {
    let others = b"_-/@+=()$;~^<>|*&!?%,";
    let mut bytes = [FOREIGN; 256];
    let mut at = 0;
    while at < 256 {
        if (at as u8).is_ascii_alphanumeric() {
            bytes[at] = 0;
        }
        at += 1;
    }
    let mut at = 0;
    while at < others.len() {
        bytes[others[at] as usize] = 0;
        at += 1;
    }
    bytes[b':' as usize] = TELLING;
    bytes[b' ' as usize] = TELLING;
    bytes[b'.' as usize] = TELLING;
    bytes
};

fn looks_like_date(text: &str) -> bool {
    text.as_bytes().get(4) == Some(&b'-') && text.as_bytes().iter().take(4).all(u8::is_ascii_digit)
}

/// Returns whether a character is visible. False for control characters, invisible characters, and characters that
/// change the direction of the text.
fn is_printable(c: char) -> bool {
    match c {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => {
            false
        }
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => false,
        '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}' => false,
        '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}' => false,
        '\u{1f300}'..='\u{1f64f}' | '\u{20000}'..='\u{2fa1f}' => true,
        _ => !c.is_control() && u32::from(c) <= 0xffff,
    }
}

/// Returns whether a literal block scalar can represent a string exactly.
fn fits_block(text: &str) -> bool {
    newlines(text) > 0
        && !text.starts_with(['\n', ' ', '\t'])
        && (is_plain_ascii(text)
            || text
                .chars()
                .all(|c| c == '\n' || c == '\t' || is_printable(c)))
        && !has_blank_line(text)
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Returns whether a line of the string consists only of spaces or tabs. YAML readers disagree about such a line at
/// the end of a block scalar.
fn has_blank_line(text: &str) -> bool {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    // This fast check decides for most strings, because no line in them begins with a space.
    let indented = text
        .as_bytes()
        .windows(2)
        .any(|two| two[0] == b'\n' && is_blank(&two[1]));
    indented
        && text
            .split('\n')
            .any(|line| !line.is_empty() && line.as_bytes().iter().all(is_blank))
}

/// Returns whether a string contains only printable ASCII characters, tabs and line feeds. The check is fast, because
/// it reads whole chunks.
fn is_plain_ascii(text: &str) -> bool {
    let is_fine = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
    let mut chunks = text.as_bytes().chunks(64);
    chunks.all(|chunk| chunk.iter().fold(true, |fine, byte| fine & is_fine(byte)))
}
