//! YAML that every reader reads the same.
//!
//! Written by hand, although serde_yaml writes YAML too: what must be quoted is decided by
//! the very function that reads plain scalars here, so that the two cannot drift apart.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::scalar::{self, Plain};

/// YAML lets a key that stands on the line of its value have 1024 characters.
const SIMPLE_KEY: usize = 1000;

/// Writes a value as a YAML document: keys in their order, text quoted wherever some reader
/// might take it for something else, text of several lines as a block.
pub fn write(value: &Value) -> String {
    let mut out = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => block(&mut out, value, 0),
        Value::Array(list) if !list.is_empty() => block(&mut out, value, 0),
        // At the top a block scalar would stand at column 0, where `---` would end it.
        Value::String(text) => {
            out.push_str(&inline_text(text));
            out.push('\n');
        }
        scalar => {
            out.push_str(&inline(scalar));
            out.push('\n');
        }
    }
    out
}

/// Writes a map or list that is not empty, each line indented, the cursor at a line's start.
fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) => {
            for (at, (key, item)) in map.iter().enumerate() {
                // The first line of a map in a list continues behind its dash.
                if at > 0 || out.is_empty() || out.ends_with('\n') {
                    pad(out, indent);
                }
                let key = inline_text(key);
                if key.chars().count() > SIMPLE_KEY {
                    let _ = write!(out, "? {key}\n{:indent$}", "");
                } else {
                    out.push_str(&key);
                }
                out.push(':');
                entry(out, item, indent, indent);
            }
        }
        Value::Array(list) => {
            for (at, item) in list.iter().enumerate() {
                if at > 0 || out.is_empty() || out.ends_with('\n') {
                    pad(out, indent);
                }
                out.push('-');
                entry(out, item, indent + 2, indent + 2);
            }
        }
        _ => {}
    }
}

/// Writes what follows a `key:` or a `-`.
fn entry(out: &mut String, item: &Value, list_indent: usize, text_indent: usize) {
    match item {
        Value::Object(map) if !map.is_empty() => {
            if out.ends_with('-') {
                out.push(' ');
                block(out, item, list_indent);
            } else {
                out.push('\n');
                block(out, item, list_indent + 2);
            }
        }
        Value::Array(list) if !list.is_empty() => {
            out.push(if out.ends_with('-') { ' ' } else { '\n' });
            block(out, item, list_indent);
        }
        Value::String(text) if fits_block(text) => {
            let indent = if out.ends_with('-') {
                text_indent
            } else {
                text_indent + 2
            };
            literal(out, text, indent);
        }
        scalar => {
            out.push(' ');
            out.push_str(&inline(scalar));
            out.push('\n');
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    let _ = write!(out, "{:indent$}", "");
}

fn inline(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => self::number(number),
        Value::String(text) => inline_text(text),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// YAML 1.1 takes an exponent only with a sign and behind a point.
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

fn inline_text(text: &str) -> String {
    if is_plain(text) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() + 2);
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
    out
}

/// Tells whether a text can stand without quotes; on the safe side.
fn is_plain(text: &str) -> bool {
    let inner = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(
                c,
                '_' | '-'
                    | '.'
                    | '/'
                    | '@'
                    | '+'
                    | '='
                    | '('
                    | ')'
                    | '$'
                    | ';'
                    | '~'
                    | '^'
                    | '<'
                    | '>'
                    | '|'
                    | '*'
                    | '&'
                    | '!'
                    | '?'
                    | '%'
                    | ':'
                    | ' '
                    | ','
            )
    };
    let starts =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '/' | '.' | '$' | '(' | '^' | '+');
    text.starts_with(starts)
        && text.chars().all(inner)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains("...")
        // Dates are timestamps to some readers of YAML 1.1.
        && !looks_like_date(text)
        && matches!(scalar::plain(text), Plain::Means(Value::String(_)))
}

fn looks_like_date(text: &str) -> bool {
    text.as_bytes().get(4) == Some(&b'-') && text.as_bytes().iter().take(4).all(u8::is_ascii_digit)
}

fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{ad}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
        && u32::from(c) <= 0xffff
        || matches!(c, '\u{1f300}'..='\u{1f64f}' | '\u{20000}'..='\u{2fa1f}')
}

/// Tells whether a text can be a literal block and come back byte for byte.
fn fits_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with(['\n', ' ', '\t'])
        && text.chars().all(|c| c == '\n' || c == '\t' || is_printable(c))
        // A line of nothing but blanks is read differently at the end of a block.
        && text.split('\n').all(|line| line.is_empty() || !line.trim_matches([' ', '\t']).is_empty())
}

fn literal(out: &mut String, text: &str, indent: usize) {
    let (body, chomping) = match text.strip_suffix('\n') {
        None => (text, "-"),
        Some(body) if body.ends_with('\n') => (body, "+"),
        Some(body) => (body, ""),
    };
    let _ = writeln!(out, " |{chomping}");
    for line in body.split('\n') {
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
}
