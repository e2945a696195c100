//! Formats results: tables for users, JSON and YAML for programs.

use clap::ValueEnum;
use serde::Serialize;
use serde_json::Value;

use crate::text;

/// The output formats of `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table
    #[default]
    Table,
    /// A table with more columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// Only the names, as kind/name, one per line
    Name,
}

/// Returns the output line of an object for `-o name`, such as `release.openchoreo.dev/cart-v1`.
pub fn name_line(kind: &str, name: &str) -> String {
    format!("{}\n", text::line(&format!("{kind}/{name}")))
}

/// Formats rows as aligned columns. The first row is the header.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| text::width(cell)).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line += &text::line(cell);
            let gap = width.saturating_sub(text::width(cell)) + 3;
            line.extend(std::iter::repeat_n(' ', gap));
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Formats a value as indented JSON with a line break at the end. Escapes control characters, because a terminal
/// would interpret them.
pub fn json(value: &impl Serialize) -> String {
    let json = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut out = String::with_capacity(json.len() + 1);
    for c in json.chars() {
        match text::is_unsafe(c) {
            // Control characters can occur only in strings of the JSON, so a `\u` escape is valid here.
            true => {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    out += &format!("\\u{unit:04x}");
                }
            }
            false => out.push(c),
        }
    }
    out.push('\n');
    out
}

/// Formats a value as a YAML document.
pub fn yaml(value: &impl Serialize) -> String {
    bounded_yaml::write(&serde_json::to_value(value).unwrap_or(Value::Null))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_the_same_and_steers_nothing() {
        let value = serde_json::json!({"a\u{7f}": ["\u{202e}x\n\u{1b}[31m", "é", "\u{e0041}"]});
        let text = json(&value);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        assert_eq!(text::clean(&text), text);
    }

    #[test]
    fn yaml_escapes_every_character_that_is_unsafe_on_a_terminal() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            if text::is_unsafe(c) {
                let value = serde_json::json!({"a": format!("x{c}y\nz")});
                let text = yaml(&value);
                assert_eq!(text::clean(&text), text, "{c:?}");
            }
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(
            name_line("release.openchoreo.dev", "a\nhint: b\u{1b}[2J"),
            "release.openchoreo.dev/a hint: b\u{fffd}[2J\n"
        );
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        let rows = [
            row(["NAME", "AGE"]),
            row(["naïve", "3d"]),
            row(["a\tb", ""]),
        ];
        assert_eq!(table(&rows), "NAME    AGE\nnaïve   3d\na b\n");
    }
}
