//! Edits flow maps (`{a: 1}`) and flow lists (`[1, 2]`). In a JSON text, all maps and lists have this form.

use serde::Serialize;
use serde_json::Value;

use super::change::{Refused, Writer};
use super::node::Node;
use super::text::{line_ending, line_start};
use crate::write::{inline, is_plain};

impl Writer<'_> {
    /// Removes the entries with the indexes `going` from a flow map or list, and adds the entries `coming` at its
    /// end. `places` contains the byte range of each existing entry.
    pub(super) fn flow(
        &mut self,
        node: &Node,
        places: &[(usize, usize)],
        going: &[usize],
        coming: &[(Option<&str>, &Value)],
    ) -> Result<(), Refused> {
        let last = places.last().copied();
        if let (Some((start, _)), Some((_, end))) = (places.first(), last)
            && going.len() == places.len()
        {
            let written = self.entries(node, last, coming).join(", ");
            self.put(*start, end, written);
            return Ok(());
        }
        // Each removed entry is removed together with a comma: the comma before it if no kept entry follows,
        // otherwise the comma after it.
        let kept = (0..places.len()).rev().find(|at| !going.contains(at));
        for at in going.iter().filter(|at| Some(**at) < kept) {
            if let (Some((start, _)), Some((next, _))) = (places.get(*at), places.get(at + 1)) {
                self.put(*start, *next, String::new());
            }
        }
        let kept_end = kept.and_then(|at| places.get(at)).map(|(_, end)| *end);
        if let (Some(kept_end), Some((_, end))) = (kept_end, last)
            && kept_end < end
        {
            self.put(kept_end, end, String::new());
        }
        if coming.is_empty() {
            return Ok(());
        }
        let written = self.entries(node, last, coming);
        match last {
            Some((start, end)) => {
                let comma = match self.own_line(start) {
                    Some(indent) => format!(",{}{indent}", line_ending(self.text, start)),
                    None => ", ".to_owned(),
                };
                let written: Vec<String> = written
                    .into_iter()
                    .map(|one| format!("{comma}{one}"))
                    .collect();
                self.put(end, end, written.concat());
            }
            None => {
                let inside = node.start + 1;
                self.put(inside, inside, written.join(", "));
            }
        }
        Ok(())
    }

    /// Formats new entries of a flow map or list in the style of its last entry.
    fn entries(
        &self,
        node: &Node,
        last: Option<(usize, usize)>,
        coming: &[(Option<&str>, &Value)],
    ) -> Vec<String> {
        let indent = last.and_then(|(start, _)| self.own_line(start));
        let eol = line_ending(self.text, node.start);
        let entry = |(key, value): &(Option<&str>, &Value)| {
            let value = match indent {
                Some(indent) => {
                    let lines = pretty(value, self.unit(node, indent));
                    lines.replace('\n', &format!("{eol}{indent}"))
                }
                None => self.in_flow(value),
            };
            match key {
                Some(key) if self.json => format!("{}: {value}", quoted(key)),
                Some(key) => format!("{}: {value}", flow_text(key)),
                None => value,
            }
        };
        coming.iter().map(entry).collect()
    }

    /// Returns the indentation of an entry of a JSON text if the entry starts its line; otherwise None.
    fn own_line(&self, start: usize) -> Option<&str> {
        let before = self.text.get(line_start(self.text, start)..start)?;
        (self.json
            && start > 0
            && before.trim().is_empty()
            && self.text.get(..start)?.contains('\n'))
        .then_some(before)
    }

    /// Returns the text that a JSON text uses for one level of indentation. `indent` is the indentation of an entry;
    /// the indentation of the line on which the entry's map or list begins is cut off from it. The default is two
    /// spaces.
    fn unit<'i>(&self, node: &Node, indent: &'i str) -> &'i str {
        let line = self.text.get(line_start(self.text, node.start)..);
        let line = line.unwrap_or_default();
        let outer = line.len() - line.trim_start_matches([' ', '\t']).len();
        indent
            .get(outer..)
            .filter(|unit| !unit.is_empty())
            .unwrap_or("  ")
    }

    /// Formats a value as text inside a flow map or list.
    pub(super) fn in_flow(&self, value: &Value) -> String {
        match self.json {
            true => in_json(value),
            false => in_flow(value),
        }
    }
}

/// Formats a value as JSON on one line.
fn in_json(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_json).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries = map.iter();
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{}: {}", quoted(key), in_json(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        leaf => leaf.to_string(),
    }
}

/// Formats a value as JSON on several lines, with `unit` as one level of indentation.
pub(super) fn pretty(value: &Value, unit: &str) -> String {
    let mut out = Vec::new();
    let formatter = serde_json::ser::PrettyFormatter::with_indent(unit.as_bytes());
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, formatter);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8(out).unwrap_or_else(|_| value.to_string()),
        Err(_) => value.to_string(),
    }
}

/// Formats a value for a YAML flow map or list.
fn in_flow(value: &Value) -> String {
    match value {
        Value::String(text) => flow_text(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(in_flow).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(map) => {
            let entries = map.iter();
            let entries: Vec<String> = entries
                .map(|(key, value)| format!("{}: {}", flow_text(key), in_flow(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        leaf => {
            let mut out = String::new();
            inline(&mut out, leaf);
            out
        }
    }
}

fn flow_text(text: &str) -> String {
    match is_plain(text) && !text.contains([',', '?', ':']) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

pub(super) fn quoted(text: &str) -> String {
    // The text is written as a JSON string, because every JSON string is also a YAML string.
    Value::from(text).to_string()
}
